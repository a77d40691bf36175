/* Indexing by several tensors at once. The indices become one table of offsets into the indexed
 * tensor, in the broadcast shape of the index tensors; reading and writing through the table are the
 * loops of select.c and scatter.c. */
#include "base/dtype.h"
#include "graph/infer.h"
#include "run/reference/kernels.h"
#include "run/reference/scatter.h"
#include "run/reference/select.h"

#include <string.h>

typedef struct Indexing {
    Tensor *table;  /* int64: offsets in elements */
    uint32_t place; /* where its dimensions stand in the chosen elements */
    uint32_t rank;  /* of those */
    int64_t shape[FERRY_MAX_RANK];
    int64_t rest[FERRY_MAX_RANK];  /* strides of the indexed tensor over them; 0 along the table */
    int64_t steps[FERRY_MAX_RANK]; /* of the table over them; 0 along the rest */
} Indexing;

static const Tensor *index_at(const Call *call, uint32_t i) {
    const Value *value = call->node->args[1].tensors.items[i];
    return value ? &call->values[value->id] : NULL;
}

/* Sizes of the broadcast index; false when they do not fit. */
static bool merge_shape(const Tensor *index, uint32_t *rank, int64_t *shape) {
    if (index->rank > *rank) {
        uint32_t added = index->rank - *rank;
        memmove(shape + added, shape, *rank * sizeof *shape);
        for (uint32_t d = 0; d < added; d++) shape[d] = 1;
        *rank = index->rank;
    }
    for (uint32_t d = 0; d < index->rank; d++) {
        int64_t *size = &shape[*rank - index->rank + d];
        if (*size == 1)
            *size = index->shape[d];
        else if (index->shape[d] != 1 && index->shape[d] != *size)
            return false;
    }
    return true;
}

typedef struct Adding {
    const Tensor *table, *index;
    int64_t size, stride;
    bool failed;
    int64_t bad;
} Adding;

static void add_offsets(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    Adding *adding = context;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = offsets[1] + i * loop->steps[1];
        int64_t chosen = adding->index->dtype == FERRY_I64
                             ? ((const int64_t *)adding->index->data)[at]
                             : ((const int32_t *)adding->index->data)[at];
        int64_t wrapped = chosen < 0 ? chosen + adding->size : chosen;
        if (wrapped < 0 || wrapped >= adding->size) {
            adding->failed = true;
            adding->bad = chosen;
            return;
        }
        ((int64_t *)adding->table->data)[offsets[0] + i * loop->steps[0]] +=
            wrapped * adding->stride;
    }
}

/* Add the offsets of one index tensor to the table. */
static ferry_status add_index(const Call *call, const Tensor *table, const Tensor *index,
                              int64_t size, int64_t stride) {
    Adding adding = {.table = table, .index = index, .size = size, .stride = stride};
    Loop loop = loop_start(table->rank, table->shape);
    loop_strides(&loop, table->strides);
    if (!loop_tensor(&loop, index)) return call_reject_shape(call);
    loop_run(&loop, NULL, 1, add_offsets, &adding);
    if (!adding.failed) return FERRY_OK;
    return call_fail(call, FERRY_INVALID_ARGUMENT, "index %lld is outside a dimension of size %lld",
                     (long long)adding.bad, (long long)size);
}

/* `self` is indexed, with its own strides. */
static ferry_status make_table(Call *call, const Tensor *self, Indexing *out) {
    uint32_t count = call->node->args[1].tensors.count, rank = 0, kept = 0;
    int64_t shape[FERRY_MAX_RANK];
    unsigned dims = 0;
    for (uint32_t i = 0; i < count; i++) {
        const Tensor *index = index_at(call, i);
        if (!index) continue;
        dims |= 1u << i;
        if (!merge_shape(index, &rank, shape)) return call_reject_shape(call);
    }
    TRY(call_temporary(call, FERRY_I64, rank, shape, &out->table));
    memset(out->table->data, 0, (size_t)tensor_count(out->table) * sizeof(int64_t));
    out->place = infer_index_place(dims);
    for (uint32_t d = 0; d < self->rank; d++) {
        if (dims >> d & 1) {
            TRY(add_index(call, out->table, index_at(call, d), self->shape[d], self->strides[d]));
            continue;
        }
        uint32_t at = kept < out->place ? kept : kept + rank;
        out->shape[at] = self->shape[d];
        out->rest[at] = self->strides[d];
        kept++;
    }
    for (uint32_t d = 0; d < rank; d++) {
        out->shape[out->place + d] = shape[d];
        out->steps[out->place + d] = out->table->strides[d];
    }
    out->rank = kept + rank;
    return FERRY_OK;
}

ferry_status kernel_index(Call *call) {
    const Tensor *self = call_tensor(call, 0), *output = call_output(call, 0);
    Indexing indexing = {0};
    TRY(make_table(call, self, &indexing));
    Selection selection = {.index = indexing.table, .source = self, .size = INT64_MAX, .stride = 1};
    if (output->rank != indexing.rank ||
        memcmp(output->shape, indexing.shape, indexing.rank * sizeof *output->shape) != 0) {
        return call_reject_shape(call);
    }
    return select_run(call, &selection, indexing.steps, indexing.rest);
}

ferry_status kernel_index_put(Call *call) {
    const Tensor *self = call_tensor(call, 0), *values = call_tensor(call, 2);
    Tensor written = *self, spread;
    Indexing indexing = {0};
    tensor_row_major(&written);
    TRY(make_table(call, &written, &indexing));
    if (!tensor_broadcast(values, indexing.rank, indexing.shape, &spread)) {
        return call_reject_shape(call);
    }
    Scatter scatter = {.combine = call->node->args[3].boolean ? COMBINE_ADD : COMBINE_REPLACE,
                       .index = indexing.table,
                       .source = &spread,
                       .size = INT64_MAX,
                       .stride = 1};
    return scatter_run(call, self, &scatter, indexing.rank, indexing.shape, indexing.steps,
                       spread.strides, indexing.rest);
}

/* ---- nonzero ---- */

/* Rows of the coordinates of what is not zero, in row-major order. */
ferry_status kernel_nonzero(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    Tensor *output = call_output(call, 0);
    TRY(call_convert(call, &self, FERRY_BOOL));
    TRY(call_contiguous(call, &self));
    int64_t total = tensor_count(self), found = 0;
    for (int64_t i = 0; i < total; i++) found += self->data[i] != 0;
    output->shape[0] = found;
    TRY(call_allocate(call, 0));
    int64_t *row = (int64_t *)output->data;
    for (int64_t i = 0; i < total; i++) {
        if (!self->data[i]) continue;
        int64_t rest = i;
        for (uint32_t d = self->rank; d-- > 0;) {
            row[d] = rest % self->shape[d];
            rest /= self->shape[d];
        }
        row += self->rank;
    }
    return FERRY_OK;
}
