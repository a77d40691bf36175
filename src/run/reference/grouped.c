/* Products of groups of rows, each with a matrix of its own. */
#include "run/reference/kernels.h"
#include "run/reference/product.h"

#include <string.h>

static Matrix matrix_of(const Tensor *tensor) {
    return (Matrix){tensor->data, tensor->strides[tensor->rank - 2],
                    tensor->strides[tensor->rank - 1]};
}

/* Rows offs[g - 1] to offs[g] are multiplied by mat2[g]; rows after the last group give zeros. */
ferry_status kernel_grouped_mm(Call *call) {
    const Tensor *self = call_tensor(call, 0), *weights = call_tensor(call, 1),
                 *offsets = call_tensor(call, 2);
    ferry_dtype dtype = call_compute_dtype(self->dtype);
    Tensor *output;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, self->dtype);
    if (self->shape[1] != weights->shape[1] || offsets->shape[0] != weights->shape[0]) {
        return call_reject_shape(call);
    }
    TRY(call_convert(call, &self, dtype));
    TRY(call_convert(call, &weights, dtype));
    TRY(call_convert(call, &offsets, FERRY_I64));
    TRY(call_contiguous(call, &offsets));
    TRY(call_start(call, dtype, &output));
    memset(output->data, 0, (size_t)tensor_count(output) * (dtype == FERRY_F32 ? 4 : 8));
    Matrix left = matrix_of(self), result = matrix_of(output);
    int64_t first = 0;
    for (int64_t group = 0; group < weights->shape[0]; group++) {
        int64_t last = ((const int64_t *)offsets->data)[group];
        if (last < first || last > self->shape[0]) {
            return call_fail(call, FERRY_INVALID_ARGUMENT,
                             "group %lld ends at row %lld, after %lld of %lld", (long long)group,
                             (long long)last, (long long)first, (long long)self->shape[0]);
        }
        Tensor matrix = tensor_slice(weights, 0, group, 1, 1);
        Product product = {.dtype = dtype,
                           .m = last - first,
                           .n = weights->shape[2],
                           .k = self->shape[1],
                           .scale = 1,
                           .a = matrix_at(dtype, &left, first, 0),
                           .b = matrix_of(&matrix),
                           .c = matrix_at(dtype, &result, first, 0)};
        if (product.m > 0) product_run_split(&product, call->pool);
        first = last;
    }
    call_finish(call, output);
    return FERRY_OK;
}
