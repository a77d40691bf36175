/* The reference runtime: small programs whose numbers are worked out by hand or by torch. */
#include "reference.h"

/* A test asks for more memory than there is: the sanitizer must let malloc fail. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

/* ---- element by element ---- */

static void test_every_op_has_a_kernel(void **state) {
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        if (!reference_supports((Op)op)) fail_msg("no kernel for %s", op_name((Op)op));
    }
}

static void test_arithmetic(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(2, 3), NUMBERS(1, -2, 3, 4, 5, -6));
    Value *row = given(f, FERRY_F32, DIMS(3), NUMBERS(10, 20, 30));
    Value *column = given(f, FERRY_F32, DIMS(2, 1), NUMBERS(2, 4));
    expect(f, build_add(&f->b, x, row), 0, NUMBERS(11, 18, 33, 14, 25, 24));
    expect(f, build_sub(&f->b, row, x), 0, NUMBERS(9, 22, 27, 6, 15, 36));
    expect(f, build_mul(&f->b, x, column), 0, NUMBERS(2, -4, 6, 16, 20, -24));
    expect(f, build_binary(&f->b, OP_DIV, x, column), 0, NUMBERS(.5, -1, 1.5, 1, 1.25, -1.5));
    expect(f, build_add(&f->b, row, column), 0, NUMBERS(12, 22, 32, 14, 24, 34));
    expect(f, build_binary(&f->b, OP_MAXIMUM, x, column), 0, NUMBERS(2, 2, 3, 4, 5, 4));
    expect(f, build_binary(&f->b, OP_POW, x, column), 1e-3, NUMBERS(1, 4, 9, 256, 625, 1296));
    expect(f, build_binary(&f->b, OP_MINIMUM, x, column), 0, NUMBERS(1, -2, 2, 4, 4, -6));
    expect(f, build_scalar(&f->b, OP_ADD_SCALAR, x, 0.5), 0,
           NUMBERS(1.5, -1.5, 3.5, 4.5, 5.5, -5.5));
    expect(f, build_scalar(&f->b, OP_MUL_SCALAR, x, 2), 0, NUMBERS(2, -4, 6, 8, 10, -12));
    expect(f, build_scalar(&f->b, OP_DIV_SCALAR, x, 4), 0, NUMBERS(.25, -.5, .75, 1, 1.25, -1.5));
    expect(f, build_scalar(&f->b, OP_POW_SCALAR, x, 3), 0, NUMBERS(1, -8, 27, 64, 125, -216));
    expect(f, RUN_OP(f, OP_SCALAR_POW, arg_float(2), arg_tensor(x)), 1e-5,
           NUMBERS(2, .25, 8, 16, 32, 1 / 64.));
    expect(f, RUN_OP(f, OP_CLAMP, arg_tensor(x), arg_float(-3), arg_float(3.5)), 0,
           NUMBERS(1, -2, 3, 3.5, 3.5, -3));
    expect(f, RUN_OP(f, OP_CLAMP, arg_tensor(x), arg_int(&f->b, 0)), 0, NUMBERS(1, 0, 3, 4, 5, 0));
    expect(f, RUN_OP(f, OP_CLAMP, arg_tensor(x), arg_none(), arg_int(&f->b, 2)), 0,
           NUMBERS(1, -2, 2, 2, 2, -6));
    expect(f, build_unary(&f->b, OP_NEG, x), 0, NUMBERS(-1, 2, -3, -4, -5, 6));
    expect(f, build_unary(&f->b, OP_ABS, x), 0, NUMBERS(1, 2, 3, 4, 5, 6));
    check(f);
}

static void test_functions(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(4), NUMBERS(-2, -0.5, 0.25, 3));
    Value *p = given(f, FERRY_F64, DIMS(3), NUMBERS(0.25, 1, 9));
    expect(f, build_unary(&f->b, OP_EXP, x), 1e-5,
           NUMBERS(0.135335283, 0.606530660, 1.284025417, 20.085536923));
    expect(f, build_unary(&f->b, OP_LOG, p), 1e-15,
           NUMBERS(-1.3862943611198906, 0, 2.1972245773362196));
    expect(f, build_unary(&f->b, OP_SQRT, p), 0, NUMBERS(0.5, 1, 3));
    expect(f, build_unary(&f->b, OP_RSQRT, p), 1e-15, NUMBERS(2, 1, 1 / 3.));
    expect(f, build_unary(&f->b, OP_RECIPROCAL, p), 1e-15, NUMBERS(4, 1, 1 / 9.));
    expect(f, build_unary(&f->b, OP_COS, x), 1e-6,
           NUMBERS(-0.416146837, 0.877582562, 0.968912422, -0.989992497));
    expect(f, build_unary(&f->b, OP_SIN, x), 1e-6,
           NUMBERS(-0.909297427, -0.479425539, 0.247403959, 0.141120008));
    expect(f, build_unary(&f->b, OP_TANH, x), 1e-6,
           NUMBERS(-0.964027580, -0.462117157, 0.244918662, 0.995054754));
    expect(f, build_unary(&f->b, OP_SIGMOID, x), 1e-6,
           NUMBERS(0.119202922, 0.377540669, 0.562176501, 0.952574127));
    expect(f, build_unary(&f->b, OP_ERF, x), 1e-6,
           NUMBERS(-0.995322265, -0.520499878, 0.276326390, 0.999977910));
    expect(f, build_unary(&f->b, OP_RELU, x), 0, NUMBERS(0, 0, 0.25, 3));
    expect(f, build_unary(&f->b, OP_SILU, x), 1e-6,
           NUMBERS(-0.238405844, -0.188770334, 0.140544125, 2.857722380));
    expect(f, build_gelu(&f->b, x, false), 1e-6,
           NUMBERS(-0.045500264, -0.154268770, 0.149676571, 2.995950306));
    expect(f, build_gelu(&f->b, x, true), 1e-6,
           NUMBERS(-0.045402306, -0.154285988, 0.149675430, 2.996362657));
    expect(f, build_unary(&f->b, OP_SOFTPLUS, x), 1e-6,
           NUMBERS(0.126928011, 0.474076984, 0.825939419, 3.048587352));
    expect(f, RUN_OP(f, OP_SOFTPLUS, arg_tensor(x), arg_int(&f->b, 2), arg_float(0.4)), 1e-6,
           NUMBERS(0.009074964, 0.156630844, 0.25, 3) /* above the threshold: x */);
    expect(f, RUN_OP(f, OP_ELU, arg_tensor(x), arg_float(0.5)), 1e-6,
           NUMBERS(-0.432332358, -0.196734670, 0.25, 3));
    expect(f, build_unary(&f->b, OP_LEAKY_RELU, x), 1e-6, NUMBERS(-0.02, -0.005, 0.25, 3));
    check(f);
}

static void test_integers(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_I32, DIMS(3), NUMBERS(2147483647, -5, 7));
    Value *y = given(f, FERRY_I32, DIMS(3), NUMBERS(1, 3, -2));
    Value *bytes = given(f, FERRY_U8, DIMS(2), NUMBERS(200, 100));
    expect(f, build_add(&f->b, x, y), 0, NUMBERS(-2147483648., -2, 5));
    expect(f, build_sub(&f->b, y, x), 0, NUMBERS(-2147483646., 8, -9));
    expect(f, build_mul(&f->b, x, y), 0, NUMBERS(2147483647, -15, -14));
    expect(f, build_scalar(&f->b, OP_POW_SCALAR, y, 3), 0, NUMBERS(1, 27, -8));
    expect(f, build_binary(&f->b, OP_MAXIMUM, x, y), 0, NUMBERS(2147483647, 3, 7));
    expect(f, build_unary(&f->b, OP_NEG, x), 0, NUMBERS(-2147483647., 5, -7));
    expect(f, build_unary(&f->b, OP_RELU, x), 0, NUMBERS(2147483647, 0, 7));
    expect(f, build_add(&f->b, bytes, bytes), 0, NUMBERS(144, 200));
    expect(f, RUN_OP(f, OP_CLAMP, arg_tensor(x), arg_none(), arg_int(&f->b, 0)), 0,
           NUMBERS(0, -5, 0));
    expect(f, build_binary(&f->b, OP_AND, x, y), 0, NUMBERS(1, 3, 6));
    expect(f, build_binary(&f->b, OP_OR, x, y), 0, NUMBERS(2147483647, -5, -1));
    expect(f, build_unary(&f->b, OP_NOT, y), 0, NUMBERS(-2, -4, 1));
    check(f);
}

/* Numbers that float64 cannot tell apart. */
static void test_integers_are_exact(void **state) {
    Fixture *f = *state;
    const int64_t big[] = {INT64_C(9007199254740993), INT64_C(9007199254740992)};
    const int64_t shape = 2;
    Value *x = build_constant(&f->b, VALUE_CONSTANT, "big", FERRY_I64, 1, &shape, big);
    Value *last = build_slice_const(&f->b, x, 0, 1, 2);
    expect(f, build_binary(&f->b, OP_EQ, x, last), 0, NUMBERS(0, 1));
    expect(f, build_binary(&f->b, OP_GT, x, last), 0, NUMBERS(1, 0));
    expect(f, build_sub(&f->b, x, last), 0, NUMBERS(1, 0));
    expect(f, build_sub(&f->b, build_reduce(&f->b, OP_SUM, x, 0, true), x), 0,
           NUMBERS(9007199254740992., 9007199254740993.));
    check(f);
}

static void test_comparison_and_logic(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(4), NUMBERS(1, 2, NAN, -1));
    Value *two = scalar_input(f, FERRY_F32, 2);
    Value *less = build_binary(&f->b, OP_LT, x, two), *equal = build_binary(&f->b, OP_EQ, x, two);
    Value *half = given(f, FERRY_BF16, DIMS(2), NUMBERS(0.1, 0.2));
    expect(f, less, 0, NUMBERS(1, 0, 0, 1));
    expect(f, equal, 0, NUMBERS(0, 1, 0, 0));
    expect(f, build_binary(&f->b, OP_NE, x, two), 0, NUMBERS(1, 0, 1, 1));
    expect(f, build_binary(&f->b, OP_LE, x, two), 0, NUMBERS(1, 1, 0, 1));
    expect(f, build_binary(&f->b, OP_GT, x, two), 0, NUMBERS(0, 0, 0, 0));
    expect(f, build_binary(&f->b, OP_GE, x, two), 0, NUMBERS(0, 1, 0, 0));
    expect(f, build_scalar(&f->b, OP_EQ_SCALAR, x, 1), 0, NUMBERS(1, 0, 0, 0));
    expect(f, build_scalar(&f->b, OP_NE_SCALAR, x, 1), 0, NUMBERS(0, 1, 1, 1));
    expect(f, build_scalar(&f->b, OP_LT_SCALAR, x, 1.5), 0, NUMBERS(1, 0, 0, 1));
    expect(f, build_scalar(&f->b, OP_LE_SCALAR, x, 1), 0, NUMBERS(1, 0, 0, 1));
    expect(f, build_scalar(&f->b, OP_GT_SCALAR, x, 1), 0, NUMBERS(0, 1, 0, 0));
    expect(f, build_scalar(&f->b, OP_GE_SCALAR, x, 1), 0, NUMBERS(1, 1, 0, 0));
    expect(f, build_scalar(&f->b, OP_EQ_SCALAR, half, 0.1), 0, NUMBERS(1, 0));
    expect(f, build_binary(&f->b, OP_OR, less, equal), 0, NUMBERS(1, 1, 0, 1));
    expect(f, build_binary(&f->b, OP_AND, less, equal), 0, NUMBERS(0, 0, 0, 0));
    expect(f, build_unary(&f->b, OP_NOT, less), 0, NUMBERS(0, 1, 1, 0));
    expect(f, build_where(&f->b, less, x, two), 0, NUMBERS(1, 2, 2, -1));
    expect(f, build_binary(&f->b, OP_MAXIMUM, x, two), 0, NUMBERS(2, 2, NAN, 2));
    check(f);
}

static void test_conversion_and_halves(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(4), NUMBERS(1.00390625, -2.7, 0, 300));
    Value *bf16 = given(f, FERRY_BF16, DIMS(3), NUMBERS(1, 256, 3));
    Value *f16 = given(f, FERRY_F16, DIMS(3), NUMBERS(2048, 65504, 0.5));
    expect(f, build_to(&f->b, x, FERRY_I64), 0, NUMBERS(1, -2, 0, 300));
    expect(f, build_to(&f->b, x, FERRY_BOOL), 0, NUMBERS(1, 1, 0, 1));
    expect(f, build_to(&f->b, x, FERRY_BF16), 0, NUMBERS(1, -2.703125, 0, 300)); /* ties to even */
    expect(f, build_to(&f->b, bf16, FERRY_F64), 0, NUMBERS(1, 256, 3));
    /* 257 lies between 256 and 258: even wins */
    expect(f, build_scalar(&f->b, OP_ADD_SCALAR, bf16, 1), 0, NUMBERS(2, 256, 4));
    /* a scalar is not rounded before the product: 3 * 1.003 = 3.009, not 3 * 1 */
    expect(f, build_scalar(&f->b, OP_MUL_SCALAR, bf16, 1.003), 0, NUMBERS(1, 256, 3.015625));
    expect(f, build_scalar(&f->b, OP_ADD_SCALAR, f16, 1), 0, NUMBERS(2048, 65504, 1.5));
    expect(f, build_add(&f->b, f16, f16), 0, NUMBERS(4096, INFINITY, 1));
    expect(f, build_gelu(&f->b, bf16, false), 0, NUMBERS(0.83984375, 256, 3));
    /* e^(-2) / (1 + e^(-2)) = 0.1192 and its complement, each rounded once */
    Value *pair = given(f, FERRY_BF16, DIMS(2, 1), NUMBERS(1, 3));
    expect(f, build_softmax(&f->b, pair, 0), 0, NUMBERS(0.119140625, 0.87890625));
    expect(f, build_softmax(&f->b, build_transpose(&f->b, pair, 0, 1), 1), 0,
           NUMBERS(0.119140625, 0.87890625));
    check(f);
}

/* ---- shape, selection ---- */

static void test_shape(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_I64, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    Value *turned = build_transpose(b, x, 0, 1), *parts[3];
    const Sym *flat[] = {build_const(b, -1)},
              *wide[] = {build_const(b, 2), build_const(b, 2), build_const(b, 3)};
    expect(f, turned, 0, NUMBERS(1, 4, 2, 5, 3, 6));
    expect(f, build_view(b, turned, flat, 1), 0, NUMBERS(1, 4, 2, 5, 3, 6));
    expect(f, build_squeeze(b, build_unsqueeze(b, turned, 1), 1), 0, NUMBERS(1, 4, 2, 5, 3, 6));
    expect(f, build_expand(b, x, wide, 3), 0, NUMBERS(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
    expect(f, build_cat(b, (Value *[]){x, x}, 2, 1), 0,
           NUMBERS(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
    expect(f, build_cat(b, (Value *[]){turned, turned}, 2, 0), 0,
           NUMBERS(1, 4, 2, 5, 3, 6, 1, 4, 2, 5, 3, 6));
    expect(f, build_slice_const(b, x, 1, 1, INT64_MAX), 0, NUMBERS(2, 3, 5, 6));
    expect(f, build_slice_const(b, x, 1, -2, -1), 0, NUMBERS(2, 5));
    expect(f,
           RUN_OP(f, OP_SLICE, arg_tensor(x), arg_int(b, 1), arg_int(b, 0), arg_int(b, 3),
                  arg_int(b, 2)),
           0, NUMBERS(1, 3, 4, 6));
    expect(f, build_select(b, x, 1, -1), 0, NUMBERS(3, 6));
    build_split(b, x, (const int64_t[]){1, 2}, 2, 1, parts);
    expect(f, parts[0], 0, NUMBERS(1, 4));
    expect(f, parts[1], 0, NUMBERS(2, 3, 5, 6));
    /* rows of a slice are still at one distance: no copy is needed to split them */
    const Sym *split[] = {build_const(b, 2), build_const(b, 2), build_const(b, 1)};
    expect(f, build_view(b, parts[1], split, 3), 0, NUMBERS(2, 3, 5, 6));
    expect(f, build_add(b, turned, build_scalar(b, OP_MUL_SCALAR, turned, 10)), 0,
           NUMBERS(11, 44, 22, 55, 33, 66));
    check(f);
}

static void test_selection(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *table = given(f, FERRY_F16, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    Value *ids = given(f, FERRY_I64, DIMS(2, 2), NUMBERS(2, 0, 1, 1));
    Value *rows = given(f, FERRY_I32, DIMS(3), NUMBERS(1, 1, 0));
    expect(f, build_embedding(b, table, ids), 0, NUMBERS(5, 6, 1, 2, 3, 4, 3, 4));
    expect(f, build_embedding(b, build_transpose(b, table, 0, 1), rows), 0,
           NUMBERS(2, 4, 6, 2, 4, 6, 1, 3, 5));
    expect(f, RUN_OP(f, OP_INDEX_SELECT, arg_tensor(table), arg_int(b, 1), arg_tensor(rows)), 0,
           NUMBERS(2, 2, 1, 4, 4, 3, 6, 6, 5));
    expect(f, RUN_OP(f, OP_INDEX_SELECT, arg_tensor(table), arg_int(b, 0), arg_tensor(rows)), 0,
           NUMBERS(3, 4, 3, 4, 1, 2));
    expect(f, build_gather(b, table, 0, ids), 0, NUMBERS(5, 2, 3, 4));
    Value *other = build_to(b, build_scalar(b, OP_NE_SCALAR, ids, 1), FERRY_I64);
    expect(f, build_gather(b, build_slice_const(b, table, 0, 0, 2), 1, other), 0,
           NUMBERS(2, 2, 3, 3));
    check(f);
}

/* ---- reduction, creation ---- */

static void test_reduction(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_F32, DIMS(2, 3), NUMBERS(1, -2, 3, 9, 5, -6));
    Value *flags = given(f, FERRY_BOOL, DIMS(2, 3), NUMBERS(1, 0, 1, 0, 0, 0));
    Value *ids = given(f, FERRY_I32, DIMS(4), NUMBERS(3, 1, 4, 4));
    Value *odd = given(f, FERRY_F32, DIMS(3), NUMBERS(1, NAN, 2));
    expect(f, build_reduce(b, OP_SUM, x, 1, false), 0, NUMBERS(2, 8));
    expect(f, build_reduce(b, OP_SUM, x, 0, true), 0, NUMBERS(10, 3, -3));
    expect(f, RUN_OP(f, OP_SUM, arg_tensor(x), arg_ints(b, NULL, 0)), 0, NUMBERS(10));
    expect(f, RUN_OP(f, OP_MEAN, arg_tensor(x), arg_ints(b, (const int64_t[]){-1, 0}, 2)), 1e-6,
           NUMBERS(10 / 6.));
    expect(f, build_reduce(b, OP_MEAN, x, 0, false), 0, NUMBERS(5, 1.5, -1.5));
    expect(f, build_reduce(b, OP_SUM, flags, 1, false), 0, NUMBERS(2, 0));
    expect(f, build_reduce(b, OP_AMAX, x, 1, false), 0, NUMBERS(3, 9));
    expect(f, build_reduce(b, OP_AMIN, x, 0, true), 0, NUMBERS(1, -2, -6));
    expect(f, build_reduce(b, OP_AMIN, ids, 0, false), 0, NUMBERS(1));
    expect(f, build_reduce(b, OP_AMAX, odd, 0, false), 0, NUMBERS(NAN));
    expect(f, build_reduce(b, OP_ANY, flags, 1, false), 0, NUMBERS(1, 0));
    expect(f, build_reduce(b, OP_ANY, x, 0, false), 0, NUMBERS(1, 1, 1));
    expect(f, build_reduce(b, OP_ARGMAX, x, 1, false), 0, NUMBERS(2, 0));
    expect(f, build_reduce(b, OP_ARGMAX, ids, 0, true), 0, NUMBERS(2)); /* the first of equals */
    expect(f, build_reduce(b, OP_ARGMAX, odd, 0, false), 0, NUMBERS(1));
    expect(f, build_cumsum(b, x, 1), 0, NUMBERS(1, -1, 2, 9, 14, 8));
    expect(f, build_cumsum(b, x, 0), 0, NUMBERS(1, -2, 3, 10, 3, -3));
    expect(f, build_cumsum(b, flags, 1), 0, NUMBERS(1, 1, 2, 0, 0, 0));
    expect(f, build_softmax(b, x, 1), 1e-6,
           NUMBERS(0.118499656, 0.005899750, 0.875600593, 0.982013490, 0.017986210, 3.004e-7));
    expect(f, build_softmax(b, x, 0), 1e-6,
           NUMBERS(0.000335350, 0.000911051, 0.999876605, 0.999664650, 0.999088949, 0.000123395));
    check(f);
}

static void test_creation(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const Sym *two = build_const(b, 2), *sizes[] = {two, two};
    expect(f, build_arange(b, two, build_const(b, 6), FERRY_I64), 0, NUMBERS(2, 3, 4, 5));
    expect(f,
           RUN_OP(f, OP_ARANGE, arg_int(b, -1), arg_int(b, 8), arg_int(b, 4), arg_dtype(FERRY_F32)),
           0, NUMBERS(-1, 3, 7));
    expect(f, build_full(b, sizes, 2, 1.5, FERRY_BF16), 0, NUMBERS(1.5, 1.5, 1.5, 1.5));
    expect(f, build_full(b, NULL, 0, -3, FERRY_I32), 0, NUMBERS(-3));
    expect(f, build_scalar_tensor(b, build_const(b, 7), FERRY_I64), 0, NUMBERS(7));
    Value *ones = build_full(b, sizes, 2, 1, FERRY_F32);
    expect(f, build_cumsum(b, ones, 1), 0, NUMBERS(1, 2, 1, 2));
    expect(f, build_matmul(b, ones, ones), 0, NUMBERS(2, 2, 2, 2));
    check(f);
}

/* ---- layers ---- */

static void test_linear(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const ferry_dtype dtypes[] = {FERRY_F32, FERRY_F64, FERRY_F16, FERRY_BF16};
    for (int i = 0; i < 4; i++) {
        Value *x = given(f, dtypes[i], DIMS(2, 1, 2), NUMBERS(1, 2, 3, 4));
        Value *w = given(f, dtypes[i], DIMS(3, 2), NUMBERS(1, 0, 0, 1, 1, 1));
        Value *bias = given(f, dtypes[i], DIMS(3), NUMBERS(10, 20, 30));
        expect(f, build_linear(b, x, w, bias), 0, NUMBERS(11, 22, 33, 13, 24, 37));
        expect(f, build_linear(b, x, w, NULL), 0, NUMBERS(1, 2, 3, 3, 4, 7));
        /* a weight that is a transposition, an input whose rows are not contiguous */
        Value *square = build_slice_const(b, w, 0, 1, 3);
        expect(f,
               build_linear(b, build_transpose(b, x, 0, 2), build_transpose(b, square, 0, 1), NULL),
               0, NUMBERS(3, 4, 4, 6));
    }
    check(f);
}

static void test_matmul(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const ferry_dtype dtypes[] = {FERRY_F32, FERRY_F64, FERRY_BF16, FERRY_I64};
    for (int i = 0; i < 4; i++) {
        Value *x = given(f, dtypes[i], DIMS(2, 1, 2, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
        Value *y = given(f, dtypes[i], DIMS(2, 2, 1), NUMBERS(1, 10, 2, 1));
        expect(f, build_matmul(b, x, y), 0, NUMBERS(21, 43, 4, 10, 65, 87, 16, 22));
        Value *plain = build_select(b, build_select(b, x, 0, 0), 0, 0);
        expect(f, build_matmul(b, build_transpose(b, plain, 0, 1), plain), 0,
               NUMBERS(10, 14, 14, 20));
    }
    check(f);
}

/* Large enough to be split over the pool; every result is known in closed form. */
static void test_large_products(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    enum { ROWS = 70, INNER = 130, COLUMNS = 150 };
    static float x[ROWS * INNER], w[COLUMNS * INNER];
    static uint16_t half[COLUMNS * INNER];
    for (int i = 0; i < ROWS * INNER; i++) x[i] = (float)(i / INNER % 3);
    for (int i = 0; i < COLUMNS * INNER; i++) w[i] = (float)(i / INNER % 5);
    dtype_convert(FERRY_F32, w, FERRY_BF16, half, COLUMNS * INNER);
    const int64_t x_shape[] = {ROWS, INNER}, w_shape[] = {COLUMNS, INNER};
    Value *input = build_constant(b, VALUE_CONSTANT, "x", FERRY_F32, 2, x_shape, x);
    Value *weight = build_constant(b, VALUE_CONSTANT, "w", FERRY_F32, 2, w_shape, w);
    Value *narrow = build_constant(b, VALUE_CONSTANT, "h", FERRY_BF16, 2, w_shape, half);
    build_output(b, "linear", build_linear(b, input, weight, NULL));
    build_output(b, "matmul", build_matmul(b, input, build_transpose(b, weight, 0, 1)));
    Value *rounded = build_linear(b, build_to(b, input, FERRY_BF16), narrow, NULL);
    build_output(b, "half", build_to(b, rounded, FERRY_F32));
    for (int threads = 0; threads < 2; threads++) {
        assert_int_equal(run(f, threads ? f->pool : NULL), FERRY_OK);
        for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
            float wanted = (float)((int)(i / COLUMNS % 3) * (int)(i % COLUMNS % 5) * INNER);
            for (size_t output = 0; output < 3; output++) {
                float found = ((const float *)ferry_tensors_at(f->outputs, output)->data)[i];
                float exact = output == 2 ? bf16_to_f32(f32_to_bf16(wanted)) : wanted;
                if (found != exact) fail_msg("element %zu: expected %g, found %g", i, exact, found);
            }
        }
    }
}

static void test_norms(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_F32, DIMS(2, 4), NUMBERS(1, 2, 3, 4, -1, 0, 0, 5));
    Value *w = given(f, FERRY_F32, DIMS(4), NUMBERS(1, 2, 1, 0.5));
    Value *bias = given(f, FERRY_F32, DIMS(4), NUMBERS(0, 0, 1, 1));
    Value *half = given(f, FERRY_BF16, DIMS(1, 4), NUMBERS(1, 2, 3, 4));
    Value *half_weight = given(f, FERRY_BF16, DIMS(4), NUMBERS(1.0078125, 2, 1, 0.5));
    expect(f, build_layer_norm(b, x, NULL, NULL, 0), 1e-6,
           NUMBERS(-1.341640786, -0.447213595, 0.447213595, 1.341640786, -0.852802865, -0.426401433,
                   -0.426401433, 1.705605731));
    expect(f, build_layer_norm(b, x, w, bias, 0.75), 1e-6,
           NUMBERS(-1.060660172, -0.707106781, 1.353553391, 1.530330086, -0.8, -0.8, 0.6, 1.8));
    expect(f, build_rms_norm(b, x, NULL, 0), 1e-6,
           NUMBERS(0.365148372, 0.730296743, 1.095445115, 1.460593487, -0.392232270, 0, 0,
                   1.961161351));
    expect(f, build_rms_norm(b, x, w, 0.5), 1e-6,
           NUMBERS(0.353553391, 1.414213562, 1.060660172, 0.707106781, -0.377964473, 0, 0,
                   0.944911183));
    /* one rounding at the end: 0.365148 * 1.0078125 = 0.368 -> 0.3671875 */
    expect(f, build_rms_norm(b, half, half_weight, 0), 0,
           NUMBERS(0.3671875, 1.4609375, 1.09375, 0.73046875));
    expect(f, build_layer_norm(b, build_to(b, x, FERRY_F64), NULL, NULL, 0), 1e-14,
           NUMBERS(-1.3416407864998738, -0.4472135954999579, 0.4472135954999579, 1.3416407864998738,
                   -0.85280286542244166, -0.42640143271122083, -0.42640143271122083,
                   1.7056057308448833));
    check(f);
}

static void test_attention_masks(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    /* scores are 0, so that the weights are even over what is visible */
    Value *query = given(f, FERRY_F32, DIMS(1, 1, 3, 2), NUMBERS(0, 0, 0, 0, 0, 0));
    Value *key = given(f, FERRY_F32, DIMS(1, 1, 4, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    Value *value = given(f, FERRY_F32, DIMS(1, 1, 4, 1), NUMBERS(1, 2, 4, 8));
    Value *mask = given(f, FERRY_BOOL, DIMS(3, 4), NUMBERS(1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1));
    Value *added = given(f, FERRY_F32, DIMS(1, 1, 1, 4), NUMBERS(0, -INFINITY, 0, -INFINITY));
    Value *nothing =
        given(f, FERRY_F32, DIMS(1, 1, 3, 4),
              NUMBERS(0, 0, 0, 0, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 0, 0, 0, 0));
    expect(f, build_attention(b, query, key, value, NULL, false, 1), 1e-6,
           NUMBERS(3.75, 3.75, 3.75));
    expect(f, build_attention(b, query, key, value, NULL, true, 1), 1e-6, NUMBERS(1, 1.5, 7 / 3.));
    expect(f, build_attention(b, query, key, value, mask, false, 1), 1e-6, NUMBERS(1.5, 0, 4.5));
    expect(f, build_attention(b, query, key, value, added, false, 1), 1e-6, NUMBERS(2.5, 2.5, 2.5));
    expect(f, build_attention(b, query, key, value, nothing, false, 1), 1e-6,
           NUMBERS(3.75, 0, 3.75));
    expect(f, build_attention(b, query, key, value, mask, true, 1), 1e-6, NUMBERS(1, 0, 1));
    expect(f,
           build_to(b,
                    build_attention(b, build_to(b, query, FERRY_BF16), build_to(b, key, FERRY_BF16),
                                    build_to(b, value, FERRY_BF16), build_to(b, added, FERRY_BF16),
                                    false, 1),
                    FERRY_F32),
           0, NUMBERS(2.5, 2.5, 2.5));
    check(f);
}

static void test_attention_scores(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const ferry_dtype dtypes[] = {FERRY_F32, FERRY_F64};
    for (int i = 0; i < 2; i++) {
        /* four query heads share two key heads */
        Value *query = given(f, dtypes[i], DIMS(1, 4, 1, 1), NUMBERS(0, 1, 0, 1));
        Value *key = given(f, dtypes[i], DIMS(1, 2, 2, 1), NUMBERS(0, 1, 0, 2));
        Value *value = given(f, dtypes[i], DIMS(1, 2, 2, 2), NUMBERS(0, 1, 1, 2, 0, 10, 10, 20));
        /* sigmoid(scale * 1), sigmoid(scale * 2) */
        expect(f, build_attention(b, query, key, value, NULL, false, 0.5), 2e-6,
               NUMBERS(.5, 1.5, 0.622459331, 1.622459331, 5, 15, 7.310585786, 17.310585786));
        /* heads that are a view of [batch, length, heads, size] */
        Value *turned = build_transpose(b, build_transpose(b, key, 1, 2), 1, 2);
        expect(f, build_attention(b, query, turned, value, NULL, true, 0.5), 1e-6,
               NUMBERS(0, 1, 0, 1, 0, 10, 0, 10));
    }
    check(f);
}

/* Many blocks of queries, against the definition. */
static void test_attention_blocks(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    enum { LENGTH = 150, SIZE = 4 };
    static float data[2 * LENGTH * SIZE];
    for (int i = 0; i < 2 * LENGTH * SIZE; i++) data[i] = (float)(i * 7 % 11 - 5) / 4;
    const int64_t shape[] = {1, 2, LENGTH, SIZE};
    Value *x = build_constant(b, VALUE_CONSTANT, "x", FERRY_F32, 4, shape, data);
    build_output(b, "causal", build_attention(b, x, x, x, NULL, true, 0.7));
    assert_int_equal(run(f, f->pool), FERRY_OK);
    const float *found = ferry_tensors_at(f->outputs, 0)->data;
    for (int row = 0; row < 2 * LENGTH; row++) {
        const float *head = data + row / LENGTH * LENGTH * SIZE, *query = data + row * SIZE;
        double sums[SIZE] = {0}, total = 0;
        for (int key = 0; key <= row % LENGTH; key++) {
            double score = 0;
            for (int i = 0; i < SIZE; i++) score += (double)query[i] * head[key * SIZE + i];
            double weight = exp(0.7 * score);
            total += weight;
            for (int i = 0; i < SIZE; i++) sums[i] += weight * head[key * SIZE + i];
        }
        for (int i = 0; i < SIZE; i++) {
            assert_true(fabs(found[row * SIZE + i] - sums[i] / total) < 1e-5);
        }
    }
}

static void test_rotary(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x =
        given(f, FERRY_F32, DIMS(1, 2, 1, 6), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    /* width 4 of 6, halves: frequencies (a, b, a, b); interleaved: (a, a, b, b) */
    Value *cos_half = given(f, FERRY_F32, DIMS(1, 1, 1, 4), NUMBERS(2, 3, 2, 3));
    Value *sin_half = given(f, FERRY_F32, DIMS(1, 1, 1, 4), NUMBERS(10, 20, 10, 20));
    Value *cos_pair = given(f, FERRY_F32, DIMS(1, 1, 1, 4), NUMBERS(2, 2, 3, 3));
    Value *sin_pair = given(f, FERRY_F32, DIMS(1, 1, 1, 4), NUMBERS(10, 10, 20, 20));
    expect(f, build_rotary(b, x, cos_half, sin_half, false), 0,
           NUMBERS(2 - 30, 6 - 80, 6 + 10, 12 + 40, 5, 6, 14 - 90, 24 - 200, 18 + 70, 30 + 160, 11,
                   12));
    expect(f, build_rotary(b, x, cos_pair, sin_pair, true), 0,
           NUMBERS(2 - 20, 4 + 10, 9 - 80, 12 + 60, 5, 6, 14 - 80, 16 + 70, 27 - 200, 30 + 180, 11,
                   12));
    /* the full width, and heads that are a view */
    Value *part = build_slice_const(b, x, 3, 2, 6);
    expect(f, build_rotary(b, part, cos_half, sin_half, false), 0,
           NUMBERS(6 - 50, 12 - 120, 10 + 30, 18 + 80, 18 - 110, 30 - 240, 22 + 90, 36 + 200));
    expect(f,
           build_rotary(b, build_to(b, x, FERRY_F64), build_to(b, cos_pair, FERRY_F64),
                        build_to(b, sin_pair, FERRY_F64), true),
           0,
           NUMBERS(2 - 20, 4 + 10, 9 - 80, 12 + 60, 5, 6, 14 - 80, 16 + 70, 27 - 200, 30 + 180, 11,
                   12));
    check(f);
}

/* ---- runs ---- */

/* x [batch, length], y [length, 2*length + 1]: sizes and positions depend on the symbols. */
static void build_symbolic(Fixture *f) {
    Builder *b = &f->b;
    SymTable *table = &f->program->symbols;
    const Sym *batch = sym_symbol(table, "batch", 1, 8);
    const Sym *length = sym_symbol(table, "length", 2, SYM_UNBOUNDED), *one = sym_const(table, 1);
    const Sym *width = sym_add(table, sym_mul(table, length, sym_const(table, 2)), one);
    Value *x = build_input(b, "x", FERRY_F32, 2, (const Sym *[]){batch, length});
    Value *y = build_input(b, "y", FERRY_F32, 2, (const Sym *[]){length, width});
    Value *positions = build_arange(b, one, sym_add(table, length, one), FERRY_F32);
    const Sym *flat[] = {sym_mul(table, batch, length)};
    build_output(b, "sum", build_view(b, build_add(b, x, positions), flat, 1));
    build_output(b, "last", build_slice(b, x, 1, sym_sub(table, length, one), length));
    build_output(b, "product", build_matmul(b, x, y));
    build_output(b, "size", build_scalar_tensor(b, width, FERRY_I64));
}

static const double zeros[64];

static void feed_symbolic(Fixture *f, int64_t batch, int64_t length, int64_t rows, int64_t width) {
    ferry_tensors_free(f->inputs);
    f->inputs = ferry_tensors_new();
    feed(f, "x", FERRY_F32, 2, (const int64_t[]){batch, length}, (size_t)(batch * length), zeros);
    feed(f, "y", FERRY_F32, 2, (const int64_t[]){rows, width}, (size_t)(rows * width), zeros);
}

static void test_symbols(void **state) {
    Fixture *f = *state;
    build_symbolic(f);
    for (int64_t length = 2; length < 5; length++) {
        feed_symbolic(f, length - 1, length, length, 2 * length + 1);
        assert_int_equal(run(f, f->pool), FERRY_OK);
        const ferry_tensor *sum = ferry_tensors_find(f->outputs, "sum");
        assert_int_equal(sum->shape[0], (length - 1) * length);
        assert_true(((const float *)sum->data)[length - 1] == (float)length);
        assert_int_equal(ferry_tensors_find(f->outputs, "last")->shape[1], 1);
        assert_int_equal(ferry_tensors_find(f->outputs, "product")->shape[1], 2 * length + 1);
        assert_int_equal(*(int64_t *)ferry_tensors_find(f->outputs, "size")->data, 2 * length + 1);
    }
}

static void test_symbol_errors(void **state) {
    Fixture *f = *state;
    build_symbolic(f);
    feed_symbolic(f, 2, 3, 4, 7);
    check_fails(f, FERRY_INVALID_ARGUMENT, "y", "dimension 0 (length): expected 3");
    feed_symbolic(f, 2, 3, 3, 8);
    check_fails(f, FERRY_INVALID_ARGUMENT, "y",
                "(2*length + 1): expected 7, as in the inputs before, found 8");
    feed_symbolic(f, 2, 1, 1, 3);
    check_fails(f, FERRY_INVALID_ARGUMENT, "x",
                "dimension 1 (length): expected at least 2, found 1");
    feed_symbolic(f, 9, 3, 3, 7);
    check_fails(f, FERRY_INVALID_ARGUMENT, "x", "dimension 0 (batch): expected at most 8, found 9");
    ferry_tensors_free(f->inputs);
    f->inputs = ferry_tensors_new();
    feed(f, "x", FERRY_F32, DIMS(1, 2), NUMBERS(0, 0));
    check_fails(f, FERRY_INVALID_ARGUMENT, "y", "missing");
    feed(f, "y", FERRY_F16, DIMS(2, 5), 10, zeros);
    check_fails(f, FERRY_INVALID_ARGUMENT, "y", "expected float32, found float16");
}

static void test_input_errors(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const Sym *width = sym_symbol(&f->program->symbols, "width", 1, 100);
    const Sym *twice = sym_mul(&f->program->symbols, width, build_const(b, 2));
    Value *x = build_input(b, "x", FERRY_I64, 2, (const Sym *[]){build_const(b, 3), twice});
    build_output(b, "y", build_scalar_tensor(b, width, FERRY_I64));
    build_output(b, "x", x);
    feed(f, "x", FERRY_I64, DIMS(3, 4), 12, zeros);
    assert_int_equal(run(f, NULL), FERRY_OK); /* width is solved for */
    assert_int_equal(*(int64_t *)ferry_tensors_at(f->outputs, 0)->data, 2);
    const struct {
        int64_t shape[3];
        size_t rank;
        const char *words;
    } wrong[] = {{{2, 4}, 2, "dimension 0: expected 3, found 2"},
                 {{3, 5}, 2, "5 does not determine 2*width"},
                 {{3, 2, 2}, 3, "expected rank 2, found rank 3"}};
    for (size_t i = 0; i < 3; i++) {
        ferry_tensors_free(f->inputs);
        f->inputs = ferry_tensors_new();
        const int64_t *shape = wrong[i].shape;
        feed(f, "x", FERRY_I64, wrong[i].rank, shape,
             (size_t)(shape[0] * shape[1] * (wrong[i].rank > 2 ? shape[2] : 1)), zeros);
        check_fails(f, FERRY_INVALID_ARGUMENT, "x", wrong[i].words);
    }
}

/* Sizes that differ only when it runs: two symbols that the program takes for equal. */
static void test_run_time_sizes(void **state) {
    Fixture *f = *state;
    SymTable *table = &f->program->symbols;
    const Sym *m = sym_symbol(table, "m", 0, 9), *n = sym_symbol(table, "n", 0, 9);
    Value *x = build_input(&f->b, "x", FERRY_F32, 1, &m),
          *y = build_input(&f->b, "y", FERRY_F32, 1, &n);
    build_scope(&f->b, "model.layers.%d", 3);
    build_output(&f->b, "z", build_add(&f->b, x, y));
    feed(f, "x", FERRY_F32, DIMS(3), 3, zeros);
    feed(f, "y", FERRY_F32, DIMS(4), 4, zeros);
    check_fails(f, FERRY_INVALID_ARGUMENT, "model.layers.3",
                "aten::add.Tensor: the sizes of this run");
}

static void check_index_error(void **state, int kind, double index, const char *words) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *table = given(f, FERRY_F32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    Value *ids = given(f, FERRY_I64, DIMS(1), NUMBERS(index));
    build_scope(b, "model.embed");
    Value *value =
        kind == 0   ? build_embedding(b, table, ids)
        : kind == 1 ? RUN_OP(f, OP_INDEX_SELECT, arg_tensor(table), arg_int(b, 0), arg_tensor(ids))
                    : build_gather(b, table, 1, build_unsqueeze(b, ids, 0));
    build_output(b, "y", value);
    check_fails(f, FERRY_INVALID_ARGUMENT, "model.embed", words);
}

static void test_embedding_range(void **state) {
    check_index_error(state, 0, 3, "aten::embedding: index 3 is outside a dimension of size 3");
}

static void test_index_select_range(void **state) {
    check_index_error(state, 1, -1,
                      "aten::index_select: index -1 is outside a dimension of size 3");
}

static void test_gather_range(void **state) {
    check_index_error(state, 2, 2, "aten::gather: index 2 is outside a dimension of size 2");
}

static void test_unsupported(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_I64, DIMS(2), NUMBERS(4, 6));
    build_output(&f->b, "y", build_scalar(&f->b, OP_DIV_SCALAR, x, 2));
    check_fails(f, FERRY_UNSUPPORTED, "",
                "aten::div.Scalar: the reference runtime has no kernel for int64");
}

static void test_out_of_memory(void **state) {
    Fixture *f = *state;
    const Sym *size = build_const(&f->b, INT64_C(1) << 50);
    Value *huge = build_full(&f->b, &size, 1, 1, FERRY_F32);
    build_output(&f->b, "y", build_unary(&f->b, OP_NEG, huge));
    check_fails(f, FERRY_OUT_OF_MEMORY, "neg", "could not allocate 4503599627370496 bytes");
}

static void test_empty(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_F32, DIMS(0, 3), 0, zeros);
    Value *past = given(f, FERRY_F32, DIMS(1, 1, 0, 2), 0, zeros);
    Value *now = given(f, FERRY_F32, DIMS(1, 1, 1, 2), NUMBERS(1, 2));
    Value *w = given(f, FERRY_F32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    expect(f, build_linear(b, x, w, NULL), 0, 0, zeros);
    expect(f, build_softmax(b, x, 1), 0, 0, zeros);
    expect(f, build_reduce(b, OP_SUM, x, 0, false), 0, NUMBERS(0, 0, 0));
    expect(f, build_matmul(b, build_transpose(b, x, 0, 1), x), 0,
           NUMBERS(0, 0, 0, 0, 0, 0, 0, 0, 0));
    expect(f, build_cat(b, (Value *[]){past, now}, 2, 2), 0, NUMBERS(1, 2));
    expect(f, build_attention(b, now, past, past, NULL, false, 1), 0, NUMBERS(0, 0));
    expect(f, build_arange(b, build_const(b, 3), build_const(b, 3), FERRY_I64), 0, 0, zeros);
    check(f);
}

/* Weights: converted, transposed and concatenated recipes; an output that is a weight. */
static void test_weights(void **state) {
    Fixture *f = *state;
    Arena *arena = &f->program->arena;
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {2, 3}, turned[] = {1, 0};
    const Recipe *plain = recipe_bytes(arena, numbers, FERRY_F32, 2, shape);
    const Recipe *whole = recipe_permute(arena, plain, turned);
    Value *transposed = program_weight(f->program, VALUE_PARAMETER, "t", whole);
    Value *cast =
        program_weight(f->program, VALUE_PARAMETER, "c", recipe_cast(arena, whole, FERRY_BF16));
    Value *column =
        program_weight(f->program, VALUE_PARAMETER, "s", recipe_slice(arena, plain, 1, 1, 3));
    expect(f, transposed, 0, NUMBERS(1, 4, 2, 5, 3, 6));
    expect(f, build_add(&f->b, cast, cast), 0, NUMBERS(2, 8, 4, 10, 6, 12));
    expect(f, build_unary(&f->b, OP_NEG, column), 0, NUMBERS(-2, -3, -5, -6));
    check(f);
}

static void test_evaluate(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    const int32_t numbers[] = {1, 2, 3, 4};
    const int64_t shape[] = {2, 2};
    Value *x = build_constant(b, VALUE_CONSTANT, "x", FERRY_I32, 2, shape, numbers);
    const Arg split[] = {arg_tensor(x), arg_ints(b, (const int64_t[]){1, 1}, 2), arg_int(b, 1)};
    Node *node = build_node(b, OP_SPLIT, split, 3);
    Arena arena = {0};
    void *results[2];
    assert_int_equal(reference_evaluate(f->program, node, &arena, results, &f->error), FERRY_OK);
    assert_memory_equal(results[0], ((const int32_t[]){1, 3}), 8);
    assert_memory_equal(results[1], ((const int32_t[]){2, 4}), 8);
    const Sym *open = sym_symbol(&f->program->symbols, "open", 0, 9);
    Node *symbolic = build_arange(b, build_const(b, 0), open, FERRY_I64)->producer;
    assert_int_equal(reference_evaluate(f->program, symbolic, &arena, results, &f->error),
                     FERRY_INVALID_ARGUMENT);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_kernel),
        TEST(test_arithmetic),
        TEST(test_functions),
        TEST(test_integers),
        TEST(test_integers_are_exact),
        TEST(test_comparison_and_logic),
        TEST(test_conversion_and_halves),
        TEST(test_shape),
        TEST(test_selection),
        TEST(test_reduction),
        TEST(test_creation),
        TEST(test_linear),
        TEST(test_matmul),
        TEST(test_large_products),
        TEST(test_norms),
        TEST(test_attention_masks),
        TEST(test_attention_scores),
        TEST(test_attention_blocks),
        TEST(test_rotary),
        TEST(test_symbols),
        TEST(test_symbol_errors),
        TEST(test_input_errors),
        TEST(test_run_time_sizes),
        TEST(test_embedding_range),
        TEST(test_index_select_range),
        TEST(test_gather_range),
        TEST(test_unsupported),
        TEST(test_out_of_memory),
        TEST(test_empty),
        TEST(test_weights),
        TEST(test_evaluate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
