/* The safetensors format.
 *
 *   8 bytes   N, the length of the header, little-endian
 *   N bytes   a JSON object: name -> {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]},
 *             and optionally "__metadata__": {string: string}
 *   rest      the data; offsets count from here, the tensors cover it without gap or overlap
 *
 * Files are mapped. Every number of the header is checked before it is used. */
#ifndef FORMAT_SAFETENSORS_H
#define FORMAT_SAFETENSORS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include <ferry/tensor.h>

typedef struct SafeTensor {
    const char *name;
    ferry_dtype dtype;
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    uint64_t offset; /* from the start of the file */
    uint64_t size;   /* in bytes */
} SafeTensor;

typedef struct SafeTensors {
    MappedFile file;
    SafeTensor *items; /* by ascending offset */
    size_t count;
    Map by_name; /* name -> SafeTensor */
} SafeTensors;

/* Map and check a file. Names and tables live in the arena. BAD_FORMAT names the file and the tensor
 * for anything that is not as it must be. */
ferry_status safetensors_open(const char *path, Arena *arena, SafeTensors *out, ferry_error *error);
void safetensors_close(SafeTensors *file);

/* The same checks on a header in memory, for a file of `file_size` bytes (for tests and fuzzers). */
ferry_status safetensors_parse(const char *path, const unsigned char *bytes, uint64_t file_size,
                               Arena *arena, SafeTensors *out, ferry_error *error);

/* Write tensors, in the order given, to a file that appears complete or not at all. */
ferry_status safetensors_write(const char *path, const ferry_tensor *tensors, size_t count,
                               ferry_error *error);

#endif
