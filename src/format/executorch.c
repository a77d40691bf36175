#include "format/executorch.h"

#include <stdint.h>

static const int8_t numbers[FERRY_DTYPE_COUNT] = {
    [FERRY_U8] = 0 + 1,    [FERRY_I8] = 1 + 1,       [FERRY_I16] = 2 + 1,
    [FERRY_I32] = 3 + 1,   [FERRY_I64] = 4 + 1,      [FERRY_F16] = 5 + 1,
    [FERRY_F32] = 6 + 1,   [FERRY_F64] = 7 + 1,      [FERRY_BOOL] = 11 + 1,
    [FERRY_BF16] = 15 + 1, [FERRY_F8_E5M2] = 23 + 1, [FERRY_F8_E4M3] = 24 + 1,
};

int pte_dtype(ferry_dtype dtype) {
    return numbers[dtype] - 1;
}

ferry_dtype pte_dtype_of(int number) {
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        if (numbers[d] && numbers[d] == number + 1) return (ferry_dtype)d;
    }
    return FERRY_DTYPE_NONE;
}
