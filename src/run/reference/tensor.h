/* Tensors while a program runs: an element type, sizes, strides, and a share of some memory.
 *
 * Views (permute, slice, expand, ...) share the memory of what they look at; the memory goes when
 * its last tensor is released. Inputs and weights are borrowed and never written. */
#ifndef RUN_REFERENCE_TENSOR_H
#define RUN_REFERENCE_TENSOR_H

#include <ferry/dtype.h>
#include <ferry/tensor.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Storage Storage;

typedef struct Tensor {
    ferry_dtype dtype;
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    int64_t strides[FERRY_MAX_RANK]; /* in elements */
    unsigned char *data;             /* NULL: there is no tensor */
    Storage *storage;                /* NULL: the memory is borrowed */
} Tensor;

/* Give `tensor`, whose dtype and shape are set, row-major strides. */
void tensor_row_major(Tensor *tensor);

/* The same, and memory of its own, not initialized. False when a size is negative or memory is
 * exhausted; `*bytes` is what was asked for, UINT64_MAX when it does not fit 64 bits. */
bool tensor_allocate(Tensor *tensor, uint64_t *bytes);

/* A tensor of the same memory; it must be released like the first. */
Tensor tensor_share(const Tensor *tensor);

/* Let go of the memory; the tensor is empty then. Releasing an empty tensor does nothing. */
void tensor_release(Tensor *tensor);

int64_t tensor_count(const Tensor *tensor);
bool tensor_same_shape(const Tensor *a, const Tensor *b);
bool tensor_is_contiguous(const Tensor *tensor);

/* These make a view that borrows the memory of `tensor`; see tensor_share. */

/* False when the elements do not lie so that strides alone give the shape. */
bool tensor_view(const Tensor *tensor, uint32_t rank, const int64_t *shape, Tensor *out);

/* Sizes of 1 become those of `shape`, new dimensions come in front. False when another size
 * differs. */
bool tensor_broadcast(const Tensor *tensor, uint32_t rank, const int64_t *shape, Tensor *out);

Tensor tensor_permute(const Tensor *tensor, const int64_t *dims);

/* Dimension `from` moved to place `to`; the others keep their order. */
Tensor tensor_move(const Tensor *tensor, uint32_t from, uint32_t to);

/* Elements start, start + step, ... (length of them) of a dimension. */
Tensor tensor_slice(const Tensor *tensor, uint32_t dim, int64_t start, int64_t length,
                    int64_t step);

Tensor tensor_drop(const Tensor *tensor, uint32_t dim);

#endif
