#include "run/reference/tensor.h"
#include "base/dtype.h"

#include <stdlib.h>
#include <string.h>

/* The bytes follow at a distance that keeps them aligned for vector instructions. */
struct Storage {
    size_t shares;
};

enum { ALIGNMENT = 64 };

void tensor_row_major(Tensor *tensor) {
    int64_t stride = 1;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        tensor->strides[d] = stride;
        stride *= tensor->shape[d];
    }
}

bool tensor_allocate(Tensor *tensor, uint64_t *bytes) {
    *bytes = UINT64_MAX;
    if (!dtype_bytes(tensor->dtype, tensor->rank, tensor->shape, bytes)) return false;
    if (*bytes > INT64_MAX - 2 * ALIGNMENT) return false;
    size_t padded = (*bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Storage *storage = aligned_alloc(ALIGNMENT, padded);
    if (!storage) return false;
    storage->shares = 1;
    tensor->storage = storage;
    tensor->data = (unsigned char *)storage + ALIGNMENT;
    tensor_row_major(tensor);
    return true;
}

Tensor tensor_share(const Tensor *tensor) {
    if (tensor->storage) tensor->storage->shares++;
    return *tensor;
}

void tensor_release(Tensor *tensor) {
    if (tensor->storage && --tensor->storage->shares == 0) free(tensor->storage);
    tensor->storage = NULL;
    tensor->data = NULL;
}

int64_t tensor_count(const Tensor *tensor) {
    int64_t count = 1;
    for (uint32_t d = 0; d < tensor->rank; d++) count *= tensor->shape[d];
    return count;
}

bool tensor_same_shape(const Tensor *a, const Tensor *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->shape[d] != b->shape[d]) return false;
    }
    return true;
}

bool tensor_is_contiguous(const Tensor *tensor) {
    int64_t stride = 1;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        if (tensor->shape[d] != 1 && tensor->strides[d] != stride) return false;
        stride *= tensor->shape[d];
    }
    return true;
}

/* ---- views ---- */

/* The new dimensions are matched against runs of old ones that lie behind each other, from the last
 * to the first. */
bool tensor_view(const Tensor *tensor, uint32_t rank, const int64_t *shape, Tensor *out) {
    Tensor view = *tensor;
    view.rank = rank;
    if (rank) memcpy(view.shape, shape, rank * sizeof *shape);
    if (tensor_is_contiguous(tensor)) {
        tensor_row_major(&view);
        return *out = view, true;
    }
    uint32_t next = rank;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        int64_t stride = tensor->strides[d], run = tensor->shape[d], filled = 1;
        while (d > 0 && (tensor->shape[d - 1] == 1 || tensor->strides[d - 1] == stride * run)) {
            run *= tensor->shape[--d];
        }
        while (next > 0 && (filled < run || shape[next - 1] == 1)) {
            view.strides[--next] = stride * filled;
            filled *= shape[next];
        }
        if (filled != run) return false;
    }
    if (next > 0) return false;
    return *out = view, true;
}

bool tensor_broadcast(const Tensor *tensor, uint32_t rank, const int64_t *shape, Tensor *out) {
    if (tensor->rank > rank) return false;
    uint32_t added = rank - tensor->rank;
    Tensor view = *tensor;
    view.rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        bool given = d >= added;
        if (given && tensor->shape[d - added] != 1 && tensor->shape[d - added] != shape[d]) {
            return false;
        }
        bool repeated = !given || tensor->shape[d - added] != shape[d];
        view.shape[d] = shape[d];
        view.strides[d] = repeated ? 0 : tensor->strides[d - added];
    }
    return *out = view, true;
}

Tensor tensor_permute(const Tensor *tensor, const int64_t *dims) {
    Tensor view = *tensor;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        view.shape[d] = tensor->shape[dims[d]];
        view.strides[d] = tensor->strides[dims[d]];
    }
    return view;
}

Tensor tensor_move(const Tensor *tensor, uint32_t from, uint32_t to) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t next = 0;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (d == to) {
            dims[d] = from;
            continue;
        }
        if (next == from) next++;
        dims[d] = next++;
    }
    return tensor_permute(tensor, dims);
}

Tensor tensor_slice(const Tensor *tensor, uint32_t dim, int64_t start, int64_t length,
                    int64_t step) {
    Tensor view = *tensor;
    int64_t offset = length ? start * tensor->strides[dim] : 0;
    view.data += offset * (int64_t)ferry_dtype_size(tensor->dtype);
    view.shape[dim] = length;
    view.strides[dim] *= step;
    return view;
}

Tensor tensor_drop(const Tensor *tensor, uint32_t dim) {
    Tensor view = *tensor;
    view.rank--;
    for (uint32_t d = dim; d < view.rank; d++) {
        view.shape[d] = tensor->shape[d + 1];
        view.strides[d] = tensor->strides[d + 1];
    }
    return view;
}
