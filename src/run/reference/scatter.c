#include "run/reference/scatter.h"
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <math.h>
#include <string.h>

typedef struct Writing {
    const Scatter *scatter;
    const Tensor *output;
    bool failed;
    int64_t bad; /* an index that is out of range */
} Writing;

#define COMBINED(type, wrapped)                                                                    \
    static type combine_##type(Combine combine, type a, type b) {                                  \
        switch (combine) {                                                                         \
        case COMBINE_ADD: return (type)((wrapped)a + (wrapped)b);                                  \
        case COMBINE_MULTIPLY: return (type)((wrapped)a * (wrapped)b);                             \
        case COMBINE_MAX: return a > b || a != a ? a : b;                                          \
        case COMBINE_MIN: return a < b || a != a ? a : b;                                          \
        default: return b;                                                                         \
        }                                                                                          \
    }

COMBINED(double, double)
COMBINED(int64_t, uint64_t)

static void write_element(Combine combine, ferry_dtype dtype, unsigned char *target,
                          const unsigned char *source) {
    if (combine == COMBINE_REPLACE) {
        memcpy(target, source, ferry_dtype_size(dtype));
    } else if (ferry_dtype_is_float(dtype)) {
        double a, b;
        dtype_convert(dtype, target, FERRY_F64, &a, 1);
        dtype_convert(dtype, source, FERRY_F64, &b, 1);
        a = combine_double(combine, a, b);
        dtype_convert(FERRY_F64, &a, dtype, target, 1);
    } else {
        int64_t a, b;
        dtype_convert(dtype, target, FERRY_I64, &a, 1);
        dtype_convert(dtype, source, FERRY_I64, &b, 1);
        a = combine_int64_t(combine, a, b);
        dtype_convert(FERRY_I64, &a, dtype, target, 1);
    }
}

static void scatter_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    Writing *writing = context;
    const Scatter *scatter = writing->scatter;
    const Tensor *index = scatter->index, *output = writing->output;
    int64_t size = (int64_t)ferry_dtype_size(output->dtype);
    for (int64_t i = 0; i < n; i++) {
        int64_t place = offsets[0] + i * loop->steps[0];
        int64_t chosen = index->dtype == FERRY_I64 ? ((const int64_t *)index->data)[place]
                                                   : ((const int32_t *)index->data)[place];
        if (chosen < 0 || chosen >= scatter->size) {
            writing->failed = true;
            writing->bad = chosen;
            return;
        }
        int64_t target = offsets[2] + i * loop->steps[2] + chosen * scatter->stride;
        write_element(scatter->combine, output->dtype, output->data + target * size,
                      scatter->source->data + (offsets[1] + i * loop->steps[1]) * size);
    }
}

ferry_status scatter_run(Call *call, const Tensor *self, Scatter *scatter, uint32_t rank,
                         const int64_t *shape, const int64_t *index, const int64_t *source,
                         const int64_t *target) {
    Writing writing = {.scatter = scatter, .output = call_output(call, 0)};
    if (!tensor_same_shape(self, writing.output)) return call_reject_shape(call);
    TRY(call_allocate(call, 0));
    call_copy(call, self, writing.output);
    Loop loop = loop_start(rank, shape);
    loop_strides(&loop, index);
    loop_strides(&loop, source);
    loop_strides(&loop, target);
    loop_run(&loop, NULL, 1, scatter_stretch, &writing); /* in order: on this thread alone */
    if (!writing.failed) return FERRY_OK;
    return call_fail(call, FERRY_INVALID_ARGUMENT, "index %lld is outside a dimension of size %lld",
                     (long long)writing.bad, (long long)scatter->size);
}

/* ---- along one dimension ---- */

/* Row-major strides of the output, still along `dim`. */
static void target_strides(const Tensor *self, uint32_t dim, int64_t *strides, Scatter *scatter) {
    Tensor target = *self;
    tensor_row_major(&target);
    memcpy(strides, target.strides, self->rank * sizeof *strides);
    strides[dim] = 0;
    scatter->size = self->shape[dim];
    scatter->stride = target.strides[dim];
}

ferry_status kernel_index_copy(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    Scatter scatter = {.index = call_tensor(call, 2), .source = call_tensor(call, 3)};
    const Tensor *source = scatter.source;
    int64_t index[FERRY_MAX_RANK] = {0}, target[FERRY_MAX_RANK];
    uint32_t dim;
    TRY(call_dim(call, 1, self->rank, &dim));
    for (uint32_t d = 0; d < self->rank; d++) {
        int64_t expected = d == dim ? scatter.index->shape[0] : self->shape[d];
        if (source->shape[d] != expected) return call_reject_shape(call);
    }
    index[dim] = scatter.index->strides[0];
    target_strides(self, dim, target, &scatter);
    return scatter_run(call, self, &scatter, source->rank, source->shape, index, source->strides,
                       target);
}

ferry_status kernel_scatter(Call *call) {
    static const struct {
        const char *name;
        Combine combine;
    } reductions[] = {{"sum", COMBINE_ADD},
                      {"prod", COMBINE_MULTIPLY},
                      {"amax", COMBINE_MAX},
                      {"amin", COMBINE_MIN}};
    const Tensor *self = call_tensor(call, 0), *index = call_tensor(call, 2);
    Scatter scatter = {.index = index, .source = call_tensor(call, 3)};
    int64_t target[FERRY_MAX_RANK];
    uint32_t dim;
    TRY(call_dim(call, 1, self->rank, &dim));
    for (size_t i = 0; call->node->op == OP_SCATTER_REDUCE && i < 4; i++) {
        if (strcmp(call->node->args[4].string, reductions[i].name) == 0)
            scatter.combine = reductions[i].combine;
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        bool fits = index->shape[d] <= scatter.source->shape[d] &&
                    (d == dim || index->shape[d] <= self->shape[d]);
        if (!fits) return call_reject_shape(call);
    }
    target_strides(self, dim, target, &scatter);
    return scatter_run(call, self, &scatter, index->rank, index->shape, index->strides,
                       scatter.source->strides, target);
}
