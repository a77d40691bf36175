/* Tensors out of numbers. A constant fill is one element that all others repeat. */
#include "base/dtype.h"
#include "run/reference/kernels.h"

ferry_status kernel_arange(Call *call) {
    const Tensor *output = call_output(call, 0);
    int64_t start, step, value;
    TRY(call_integer(call, 0, &start));
    TRY(call_integer(call, 2, &step));
    TRY(call_allocate(call, 0));
    size_t size = ferry_dtype_size(output->dtype);
    for (int64_t i = 0; i < output->shape[0]; i++) {
        if (__builtin_mul_overflow(i, step, &value) ||
            __builtin_add_overflow(value, start, &value)) {
            return call_fail(call, FERRY_INVALID_ARGUMENT, "the range leaves 64 bits");
        }
        dtype_convert(FERRY_I64, &value, output->dtype, output->data + (size_t)i * size, 1);
    }
    return FERRY_OK;
}

static void store_scalar(const Scalar *scalar, const Tensor *target) {
    if (scalar->is_float)
        dtype_convert(FERRY_F64, &scalar->number, target->dtype, target->data, 1);
    else
        dtype_convert(FERRY_I64, &scalar->integer, target->dtype, target->data, 1);
}

ferry_status kernel_full(Call *call) {
    const Tensor *output = call_output(call, 0);
    Tensor *one, view;
    Scalar scalar;
    TRY(call_scalar(call, 1, &scalar));
    TRY(call_temporary(call, output->dtype, 0, NULL, &one));
    store_scalar(&scalar, one);
    tensor_broadcast(one, output->rank, output->shape, &view);
    return call_share(call, 0, &view);
}

ferry_status kernel_scalar_tensor(Call *call) {
    Scalar scalar;
    TRY(call_scalar(call, 0, &scalar));
    TRY(call_allocate(call, 0));
    store_scalar(&scalar, call_output(call, 0));
    return FERRY_OK;
}
