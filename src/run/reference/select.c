#include "run/reference/select.h"
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <string.h>

static int64_t read_index(Selection *selection, int64_t offset) {
    const Tensor *index = selection->index;
    int64_t value = index->dtype == FERRY_I64 ? ((const int64_t *)index->data)[offset]
                                              : ((const int32_t *)index->data)[offset];
    if (value >= 0 && value < selection->size) return value * selection->stride;
    atomic_store(&selection->bad, value);
    atomic_store(&selection->failed, true);
    return 0;
}

static void select_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    Selection *selection = context;
    int64_t size = (int64_t)ferry_dtype_size(selection->output->dtype);
    int64_t index_step = loop->steps[1], step = loop->steps[2] * size;
    unsigned char *target = selection->output->data + offsets[0] * size;
    const unsigned char *source = selection->source->data + offsets[2] * size;
    if (selection->size == 0) {
        read_index(selection, offsets[1]);
        return;
    }
    if (index_step == 0) {
        source += read_index(selection, offsets[1]) * size;
        if (step == size) {
            memcpy(target, source, (size_t)(n * size));
            return;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t chosen = index_step ? read_index(selection, offsets[1] + i * index_step) * size : 0;
        memcpy(target + i * size, source + chosen + i * step, (size_t)size);
    }
}

ferry_status select_run(Call *call, Selection *selection, const int64_t *index,
                        const int64_t *source) {
    selection->output = call_output(call, 0);
    TRY(call_allocate(call, 0));
    Loop loop = loop_start(selection->output->rank, selection->output->shape);
    loop_strides(&loop, selection->output->strides);
    loop_strides(&loop, index);
    loop_strides(&loop, source);
    loop_run(&loop, call->pool, 2, select_stretch, selection);
    if (!selection->failed) return FERRY_OK;
    return call_fail(call, FERRY_INVALID_ARGUMENT, "index %lld is outside a dimension of size %lld",
                     (long long)selection->bad, (long long)selection->size);
}

ferry_status kernel_embedding(Call *call) {
    const Tensor *weight = call_tensor(call, 0), *index = call_tensor(call, 1);
    Selection selection = {
        .index = index, .source = weight, .size = weight->shape[0], .stride = weight->strides[0]};
    int64_t index_strides[FERRY_MAX_RANK] = {0}, source[FERRY_MAX_RANK] = {0};
    for (uint32_t d = 0; d < index->rank; d++) index_strides[d] = index->strides[d];
    source[index->rank] = weight->strides[1];
    return select_run(call, &selection, index_strides, source);
}

ferry_status kernel_index_select(Call *call) {
    const Tensor *self = call_tensor(call, 0), *index = call_tensor(call, 2);
    uint32_t dim;
    TRY(call_dim(call, 1, self->rank, &dim));
    Selection selection = {
        .index = index, .source = self, .size = self->shape[dim], .stride = self->strides[dim]};
    int64_t index_strides[FERRY_MAX_RANK] = {0}, source[FERRY_MAX_RANK] = {0};
    for (uint32_t d = 0; d < self->rank; d++) source[d] = self->strides[d];
    source[dim] = 0;
    index_strides[dim] = index->strides[0];
    return select_run(call, &selection, index_strides, source);
}

ferry_status kernel_gather(Call *call) {
    const Tensor *self = call_tensor(call, 0), *index = call_tensor(call, 2);
    uint32_t dim;
    int64_t source[FERRY_MAX_RANK] = {0};
    TRY(call_dim(call, 1, self->rank, &dim));
    if (index->rank != self->rank) return call_reject_shape(call);
    for (uint32_t d = 0; d < self->rank; d++) {
        source[d] = d == dim ? 0 : self->strides[d];
        if (d != dim && index->shape[d] > self->shape[d]) return call_reject_shape(call);
    }
    Selection selection = {
        .index = index, .source = self, .size = self->shape[dim], .stride = self->strides[dim]};
    return select_run(call, &selection, index->strides, source);
}
