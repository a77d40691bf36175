#include "format/onnx.h"

static const int numbers[FERRY_DTYPE_COUNT] = {
    [FERRY_F32] = 1,  [FERRY_U8] = 2,    [FERRY_I8] = 3,       [FERRY_I16] = 5,
    [FERRY_I32] = 6,  [FERRY_I64] = 7,   [FERRY_BOOL] = 9,     [FERRY_F16] = 10,
    [FERRY_F64] = 11, [FERRY_BF16] = 16, [FERRY_F8_E4M3] = 17, [FERRY_F8_E5M2] = 19,
};

int onnx_dtype(ferry_dtype dtype) {
    return numbers[dtype];
}

ferry_dtype onnx_dtype_of(int64_t number) {
    for (int dtype = 1; dtype < FERRY_DTYPE_COUNT; dtype++) {
        if (numbers[dtype] == number) return (ferry_dtype)dtype;
    }
    return FERRY_DTYPE_NONE;
}
