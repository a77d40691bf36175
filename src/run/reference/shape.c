/* Operations that move no numbers: views of their arguments, except cat. */
#include "run/reference/kernels.h"

ferry_status kernel_view(Call *call) {
    const Tensor *self = call_tensor(call, 0), *output = call_output(call, 0);
    Tensor view;
    int64_t count = 1;
    for (uint32_t d = 0; d < output->rank; d++) {
        if (output->shape[d] < 0 || __builtin_mul_overflow(count, output->shape[d], &count)) {
            return call_memory(call, UINT64_MAX);
        }
    }
    if (count != tensor_count(self)) {
        return call_fail(call, FERRY_INVALID_ARGUMENT, "cannot view %lld elements as %lld",
                         (long long)tensor_count(self), (long long)count);
    }
    if (tensor_view(self, output->rank, output->shape, &view)) return call_share(call, 0, &view);
    TRY(call_contiguous(call, &self));
    tensor_view(self, output->rank, output->shape, &view);
    return call_share(call, 0, &view);
}

ferry_status kernel_permute(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count;
    TRY(call_integers(call, 1, dims, &count));
    Tensor view = tensor_permute(self, dims);
    return call_share(call, 0, &view);
}

ferry_status kernel_unsqueeze(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim;
    TRY(call_dim(call, 1, self->rank + 1, &dim));
    Tensor view = *self;
    view.shape[view.rank] = 1;
    view.strides[view.rank++] = 1;
    view = tensor_move(&view, self->rank, dim);
    return call_share(call, 0, &view);
}

ferry_status kernel_squeeze(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim;
    TRY(call_dim(call, 1, self->rank, &dim));
    if (self->shape[dim] != 1) return call_reject_shape(call);
    Tensor view = tensor_drop(self, dim);
    return call_share(call, 0, &view);
}

ferry_status kernel_expand(Call *call) {
    const Tensor *self = call_tensor(call, 0), *output = call_output(call, 0);
    Tensor view;
    if (!tensor_broadcast(self, output->rank, output->shape, &view)) return call_reject_shape(call);
    return call_share(call, 0, &view);
}

ferry_status kernel_cat(Call *call) {
    const Arg *list = &call->node->args[0];
    const Tensor *output = call_output(call, 0);
    uint32_t dim;
    int64_t position = 0;
    TRY(call_dim(call, 1, output->rank, &dim));
    TRY(call_allocate(call, 0));
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        const Tensor *part = &call->values[list->tensors.items[i]->id];
        int64_t length = part->shape[dim];
        if (length > output->shape[dim] - position) return call_reject_shape(call);
        Tensor place = tensor_slice(output, dim, position, length, 1);
        if (!tensor_same_shape(part, &place)) return call_reject_shape(call);
        call_copy(call, part, &place);
        position += length;
    }
    return position == output->shape[dim] ? FERRY_OK : call_reject_shape(call);
}

/* A slice bound as ATen reads it: negative counts from the end, then clamped to [0, size]. */
static int64_t slice_bound(int64_t bound, int64_t size) {
    if (bound < 0) bound += size;
    return bound < 0 ? 0 : bound > size ? size : bound;
}

ferry_status kernel_slice(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim;
    int64_t start, end, step;
    TRY(call_dim(call, 1, self->rank, &dim));
    TRY(call_integer(call, 2, &start));
    TRY(call_integer(call, 3, &end));
    TRY(call_integer(call, 4, &step));
    start = slice_bound(start, self->shape[dim]);
    end = slice_bound(end, self->shape[dim]);
    int64_t length = end > start ? (end - start - 1) / step + 1 : 0;
    Tensor view = tensor_slice(self, dim, start, length, step);
    return call_share(call, 0, &view);
}

ferry_status kernel_select(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim;
    int64_t index;
    TRY(call_dim(call, 1, self->rank, &dim));
    TRY(call_integer(call, 2, &index));
    int64_t size = self->shape[dim], place = index < 0 ? index + size : index;
    if (place < 0 || place >= size) {
        return call_fail(call, FERRY_INVALID_ARGUMENT,
                         "index %lld is outside dimension %u of size %lld", (long long)index, dim,
                         (long long)size);
    }
    Tensor view = tensor_slice(self, dim, place, 1, 1);
    view = tensor_drop(&view, dim);
    return call_share(call, 0, &view);
}

ferry_status kernel_split(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim;
    int64_t position = 0;
    TRY(call_dim(call, 2, self->rank, &dim));
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        int64_t length = call_output(call, i)->shape[dim];
        if (length < 0 || length > self->shape[dim] - position) return call_reject_shape(call);
        Tensor view = tensor_slice(self, dim, position, length, 1);
        TRY(call_share(call, i, &view));
        position += length;
    }
    return position == self->shape[dim] ? FERRY_OK : call_reject_shape(call);
}
