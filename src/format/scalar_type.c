#include "format/scalar_type.h"

#include <stddef.h>

static const struct {
    int64_t number;
    ferry_dtype dtype;
} scalar_types[] = {
    {1, FERRY_U8},    {2, FERRY_I8},    {3, FERRY_I16},      {4, FERRY_I32},
    {5, FERRY_I64},   {6, FERRY_F16},   {7, FERRY_F32},      {8, FERRY_F64},
    {12, FERRY_BOOL}, {13, FERRY_BF16}, {29, FERRY_F8_E4M3}, {30, FERRY_F8_E5M2},
};

enum { SCALAR_TYPE_COUNT = sizeof scalar_types / sizeof *scalar_types };

ferry_dtype scalar_type_dtype(int64_t number) {
    for (size_t i = 0; i < SCALAR_TYPE_COUNT; i++) {
        if (scalar_types[i].number == number) return scalar_types[i].dtype;
    }
    return FERRY_DTYPE_NONE;
}

int64_t scalar_type_number(ferry_dtype dtype) {
    for (size_t i = 0; i < SCALAR_TYPE_COUNT; i++) {
        if (scalar_types[i].dtype == dtype) return scalar_types[i].number;
    }
    return 0;
}
