/* Named tensors: what goes into a run and what comes out, read from and written to safetensors and
 * NumPy .npz files. */
#ifndef FERRY_TENSOR_H
#define FERRY_TENSOR_H

#include <ferry/dtype.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRY_MAX_RANK 8

/* A dense, row-major tensor. `data` holds the product of the first `rank` entries of `shape`
 * elements of `dtype`; a rank of 0 is one element. */
typedef struct ferry_tensor {
    const char *name;
    ferry_dtype dtype;
    size_t rank;
    int64_t shape[FERRY_MAX_RANK];
    void *data;
} ferry_tensor;

/* An ordered collection of tensors with distinct names. It owns everything it holds. */
typedef struct ferry_tensors ferry_tensors;

/* A new, empty collection, or NULL when memory is exhausted. */
FERRY_API ferry_tensors *ferry_tensors_new(void);

FERRY_API void ferry_tensors_free(ferry_tensors *tensors);

/* Append a tensor that the collection allocates, its bytes zero. `*out` (optional) receives a
 * pointer that stays valid until the collection is freed. INVALID_ARGUMENT for a name that is
 * already there, a negative size, or a rank above FERRY_MAX_RANK. */
FERRY_API ferry_status ferry_tensors_add(ferry_tensors *tensors, const char *name,
                                         ferry_dtype dtype, size_t rank, const int64_t *shape,
                                         ferry_tensor **out, ferry_error *error);

FERRY_API size_t ferry_tensors_count(const ferry_tensors *tensors);

/* The tensor at `index`, in the order of addition; NULL past the end. */
FERRY_API const ferry_tensor *ferry_tensors_at(const ferry_tensors *tensors, size_t index);

/* The tensor called `name`, or NULL. */
FERRY_API const ferry_tensor *ferry_tensors_find(const ferry_tensors *tensors, const char *name);

/* Read every tensor of a `.safetensors` or `.npz` file (told apart by content). The file is read
 * whole: it holds inputs or outputs, not weights. */
FERRY_API ferry_status ferry_tensors_load(const char *path, ferry_tensors **out,
                                          ferry_error *error);

/* Write all tensors; the suffix of `path` chooses the format (`.safetensors` or `.npz`). The file
 * appears complete or not at all. bfloat16 and float8 have no NumPy form and are refused in .npz. */
FERRY_API ferry_status ferry_tensors_save(const ferry_tensors *tensors, const char *path,
                                          ferry_error *error);

/* Number of elements of `tensor`. */
FERRY_API size_t ferry_tensor_count(const ferry_tensor *tensor);

/* Number of bytes of `tensor`'s data. */
FERRY_API size_t ferry_tensor_bytes(const ferry_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
