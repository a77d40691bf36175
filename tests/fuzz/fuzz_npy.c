/* Any bytes as a NumPy array: the header is refused with a message, or says how many bytes follow. */
#include "base/dtype.h"
#include "base/error.h"
#include "format/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Turn elements that are there into row-major order. */
static void turn(const NpyHeader *header, const uint8_t *elements) {
    void *target = malloc(header->bytes + 1);
    if (!target) abort();
    npy_copy_fortran(header, elements, target);
    free(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    NpyHeader header;
    size_t offset, length;
    uint64_t wanted;
    if (npy_read_prefix("fuzz", "x", bytes, size, &offset, &length, &error) != FERRY_OK) {
        if (!error.message[0]) abort();
        return 0;
    }
    if (length > size - offset) return 0;
    if (npy_read_header("fuzz", "x", (const char *)bytes + offset, length, &header, &error) !=
        FERRY_OK) {
        if (!error.message[0]) abort();
        return 0;
    }
    if (!dtype_bytes(header.dtype, header.rank, header.shape, &wanted)) abort();
    if (wanted != header.bytes) abort();
    if (header.bytes <= size - offset - length) turn(&header, bytes + offset + length);
    return 0;
}
