/* Any bytes as a safetensors file: refused with a message, or every tensor lies inside the file. */
#include "base/dtype.h"
#include "base/error.h"
#include "format/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    Arena arena = {0};
    SafeTensors file;
    ferry_error error = {0};
    if (safetensors_parse("fuzz", bytes, size, &arena, &file, &error) == FERRY_OK) {
        for (size_t i = 0; i < file.count; i++) {
            const SafeTensor *tensor = &file.items[i];
            uint64_t wanted;
            if (map_find(&file.by_name, tensor->name) != tensor) abort();
            if (!dtype_bytes(tensor->dtype, tensor->rank, tensor->shape, &wanted)) abort();
            if (wanted != tensor->size) abort();
            if (tensor->offset > size || tensor->size > size - tensor->offset) abort();
        }
        map_free(&file.by_name);
    } else if (!error.message[0]) {
        abort();
    }
    arena_free(&arena);
    return 0;
}
