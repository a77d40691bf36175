/* The header of a NumPy .npy array.
 *
 *   6 bytes   "\x93NUMPY"
 *   2 bytes   major and minor version: 1.0, 2.0 or 3.0
 *   2 bytes   the length of the header, little-endian; 4 bytes from version 2.0 on
 *   header    a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *   rest      the elements */
#ifndef FORMAT_NPY_H
#define FORMAT_NPY_H

#include "base/buffer.h"
#include <ferry/tensor.h>

enum {
    NPY_PREFIX = 12,         /* the longest part in front of the header */
    NPY_MAX_HEADER = 1 << 16 /* NumPy itself refuses more than 10000 */
};

typedef struct NpyHeader {
    ferry_dtype dtype;
    bool fortran_order; /* the first index runs fastest */
    size_t rank;
    int64_t shape[FERRY_MAX_RANK];
    uint64_t bytes; /* of all elements */
} NpyHeader;

/* Check the first NPY_PREFIX bytes (`size` of them are there) and say where the dict is. `path` and
 * `member` are for messages. */
ferry_status npy_read_prefix(const char *path, const char *member, const unsigned char *bytes,
                             size_t size, size_t *offset, size_t *length, ferry_error *error);

/* Read the dict of `length` characters. */
ferry_status npy_read_header(const char *path, const char *member, const char *text, size_t length,
                             NpyHeader *out, ferry_error *error);

/* Append prefix and header, version 1.0. UNSUPPORTED for a dtype that NumPy does not have. */
ferry_status npy_write_header(Buffer *buffer, const ferry_tensor *tensor, ferry_error *error);

/* Copy elements from Fortran order to row-major order. */
void npy_copy_fortran(const NpyHeader *header, const void *source, void *target);

#endif
