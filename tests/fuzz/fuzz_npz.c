/* Any bytes as a NumPy archive: refused with a message, or arrays whose every byte can be read. */
#include "base/error.h"
#include "format/npz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_tensors *tensors = ferry_tensors_new();
    ferry_error error = {0};
    if (npz_read("fuzz", bytes, size, tensors, &error) == FERRY_OK) {
        unsigned sum = 0;
        for (size_t i = 0; i < ferry_tensors_count(tensors); i++) {
            const ferry_tensor *tensor = ferry_tensors_at(tensors, i);
            const unsigned char *data = tensor->data;
            if (ferry_tensors_find(tensors, tensor->name) != tensor) abort();
            for (size_t j = 0; j < ferry_tensor_bytes(tensor); j++) sum += data[j];
        }
        volatile unsigned keep = sum;
        (void)keep;
    } else if (!error.message[0]) {
        abort();
    }
    ferry_tensors_free(tensors);
    return 0;
}
