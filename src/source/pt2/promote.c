/* Type promotion as ATen does it (c10/core/ScalarType.cpp and TensorIterator's result_type). */
#include "source/pt2/reader.h"

Value *promote_to(Call *c, Value *x, ferry_dtype dtype) {
    return build_to(c->b, x, dtype);
}

Value *promote_to_compute(Call *c, Value *x) {
    bool half = x->dtype == FERRY_F16 || x->dtype == FERRY_BF16;
    return half ? promote_to(c, x, FERRY_F32) : x;
}

/* bool < integers < floats */
static int category(ferry_dtype dtype) {
    return ferry_dtype_is_float(dtype) ? 2 : dtype == FERRY_BOOL ? 0 : 1;
}

static ferry_dtype promote_pair(ferry_dtype a, ferry_dtype b) {
    static const ferry_dtype order[] = {FERRY_BOOL, FERRY_U8,  FERRY_I8,   FERRY_I16, FERRY_I32,
                                        FERRY_I64,  FERRY_F16, FERRY_BF16, FERRY_F32, FERRY_F64};
    if (a == b) return a;
    bool bytes = (a == FERRY_U8 && b == FERRY_I8) || (a == FERRY_I8 && b == FERRY_U8);
    bool halves = (a == FERRY_F16 && b == FERRY_BF16) || (a == FERRY_BF16 && b == FERRY_F16);
    if (bytes) return FERRY_I16;
    if (halves) return FERRY_F32;
    for (int i = sizeof order / sizeof *order; i-- > 0;) {
        if (order[i] == a || order[i] == b) return order[i];
    }
    return a;
}

/* The default dtype of a number's category. */
static ferry_dtype scalar_dtype(const Arg *scalar) {
    if (scalar->kind == VALUE_FLOAT) return FERRY_F32;
    return scalar->kind == VALUE_BOOL ? FERRY_BOOL : FERRY_I64;
}

ferry_dtype promote_types(const Value *a, const Value *b, const Arg *scalar) {
    if (!b) {
        /* A number counts only when its category is higher. */
        ferry_dtype other = scalar_dtype(scalar);
        return category(other) > category(a->dtype) ? other : a->dtype;
    }
    /* Of two tensors one without dimensions counts only when its category is higher. */
    if (a->rank > 0 && b->rank == 0 && category(b->dtype) <= category(a->dtype)) return a->dtype;
    if (b->rank > 0 && a->rank == 0 && category(a->dtype) <= category(b->dtype)) return b->dtype;
    return promote_pair(a->dtype, b->dtype);
}
