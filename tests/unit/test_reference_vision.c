/* Kernels of convolution, pooling, normalization, padding and resizing; the numbers are torch's. */
#include "reference.h"

#define LIST(f, ...)                                                                               \
    arg_ints(&(f)->b, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)

static Value *pattern(Fixture *f) {
    double numbers[24];
    for (int i = 0; i < 24; i++) numbers[i] = i % 7 - 3;
    return given(f, FERRY_F32, DIMS(1, 2, 3, 4), 24, numbers);
}

static Value *count_to(Fixture *f, ferry_dtype dtype, size_t rank, const int64_t *shape) {
    double numbers[24];
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) count *= (size_t)shape[d];
    for (size_t i = 0; i < count; i++) numbers[i] = (double)i + 1;
    return given(f, dtype, rank, shape, count, numbers);
}

/* ---- convolution ---- */

static void test_convolution(void **state) {
    Fixture *f = *state;
    Value *x = pattern(f);
    Value *w = given(f, FERRY_F32, DIMS(1, 2, 2, 2), NUMBERS(1, -1, 2, .5, 0, 1, -2, 1));
    Value *bias = given(f, FERRY_F32, DIMS(1), NUMBERS(.5));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(w), arg_tensor(bias), LIST(f, 1, 1),
                  LIST(f, 0, 0), LIST(f, 1, 1), arg_bool(false), LIST(f, 0, 0), arg_int(&f->b, 1)),
           1e-6, NUMBERS(7.5, 3, 2, -14, 2.5, 12));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(w), arg_none(), LIST(f, 2, 1),
                  LIST(f, 1, 0), LIST(f, 1, 2), arg_bool(false), LIST(f, 0, 0), arg_int(&f->b, 1)),
           1e-6, NUMBERS(-13.5, -12, -13, 10.5));
    Value *depthwise = given(f, FERRY_F32, DIMS(2, 1, 2, 2), NUMBERS(1, -1, 2, .5, 0, 1, -2, 1));
    Value *biases = given(f, FERRY_F32, DIMS(2), NUMBERS(1, -1));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(depthwise), arg_tensor(biases),
                  LIST(f, 1, 1), LIST(f, 0, 0), LIST(f, 1, 1), arg_bool(false), LIST(f, 0, 0),
                  arg_int(&f->b, 2)),
           1e-6, NUMBERS(3, 5.5, 4.5, -4.5, -2, 7.5, 4, -3, -3, -10, 4, 4));
    Value *point = given(f, FERRY_F32, DIMS(2, 2, 1, 1), NUMBERS(1, 2, -1, .5));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(point), arg_none(), LIST(f, 1, 1),
                  LIST(f, 0, 0), LIST(f, 1, 1), arg_bool(false), LIST(f, 0, 0), arg_int(&f->b, 1)),
           1e-6,
           NUMBERS(1, 4, -7, -4, -1, 2, 5, 1, 4, -7, -4, -1, 4, 3.5, -0.5, -1, -1.5, -2, -2.5, 4,
                   3.5, -0.5, -1, -1.5));
    check(f);
}

static void test_convolution_of_signals(void **state) {
    Fixture *f = *state;
    for (int half = 0; half < 3; half++) {
        static const ferry_dtype dtypes[] = {FERRY_F32, FERRY_F64, FERRY_F16};
        double numbers[12];
        for (int i = 0; i < 12; i++) numbers[i] = i % 7 - 3;
        Value *x = given(f, dtypes[half], DIMS(1, 3, 4), 12, numbers);
        Value *w = given(f, dtypes[half], DIMS(1, 3, 2), NUMBERS(1, 2, 3, -1, 0, 1));
        expect(f,
               RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(w), arg_none(), LIST(f, 2),
                      LIST(f, 1), LIST(f, 1), arg_bool(false), LIST(f, 0), arg_int(&f->b, 1)),
               1e-6, NUMBERS(-9, -1, -9));
    }
    check(f);
}

static void test_transposed_convolution(void **state) {
    Fixture *f = *state;
    Value *x = count_to(f, FERRY_F32, DIMS(1, 1, 2, 2));
    Value *w = given(f, FERRY_F32, DIMS(1, 1, 2, 2), NUMBERS(1, 2, 0, -1));
    Value *bias = given(f, FERRY_F32, DIMS(1), NUMBERS(.25));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(x), arg_tensor(w), arg_tensor(bias), LIST(f, 2, 2),
                  LIST(f, 0, 0), LIST(f, 1, 1), arg_bool(true), LIST(f, 1, 1), arg_int(&f->b, 1)),
           1e-6,
           NUMBERS(1.25, 2.25, 2.25, 4.25, 0.25, 0.25, -0.75, 0.25, -1.75, 0.25, 3.25, 6.25, 4.25,
                   8.25, 0.25, 0.25, -2.75, 0.25, -3.75, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25));
    Value *signal = count_to(f, FERRY_F64, DIMS(1, 2, 3)),
          *filter = count_to(f, FERRY_F64, DIMS(2, 1, 3));
    expect(f,
           RUN_OP(f, OP_CONVOLUTION, arg_tensor(signal), arg_tensor(filter), arg_none(), LIST(f, 2),
                  LIST(f, 1), LIST(f, 1), arg_bool(true), LIST(f, 0), arg_int(&f->b, 1)),
           1e-12, NUMBERS(22, 49, 29, 63, 36));
    check(f);
}

/* ---- pooling ---- */

static void test_pools(void **state) {
    Fixture *f = *state;
    Value *x = count_to(f, FERRY_F32, DIMS(1, 1, 4, 4));
    expect(f,
           RUN_OP(f, OP_MAX_POOL, arg_tensor(pattern(f)), LIST(f, 2, 2), LIST(f, 2, 2),
                  LIST(f, 1, 1), LIST(f, 1, 1)),
           0, NUMBERS(-3, -1, 0, 1, 3, 1, 2, 3, -2, 3, 1, 2));
    expect(f,
           RUN_OP(f, OP_MAX_POOL, arg_tensor(x), LIST(f, 3, 3), LIST(f, 2, 2), LIST(f, 0, 0),
                  LIST(f, 1, 1), arg_bool(true)),
           0, NUMBERS(11, 12, 15, 16));
    expect(f,
           RUN_OP(f, OP_MAX_POOL, arg_tensor(x), LIST(f, 2, 2), LIST(f, 1, 1), LIST(f, 0, 0),
                  LIST(f, 2, 2)),
           0, NUMBERS(11, 12, 15, 16));
    expect(f, RUN_OP(f, OP_AVG_POOL, arg_tensor(x), LIST(f, 2, 2), LIST(f, 2, 2), LIST(f, 1, 1)),
           1e-6, NUMBERS(0.25, 1.25, 1, 3.5, 8.5, 5, 3.25, 7.25, 4));
    expect(f,
           RUN_OP(f, OP_AVG_POOL, arg_tensor(x), LIST(f, 2, 2), LIST(f, 2, 2), LIST(f, 1, 1),
                  arg_bool(false), arg_bool(false)),
           1e-6, NUMBERS(1, 2.5, 4, 7, 8.5, 10, 13, 14.5, 16));
    expect(f,
           RUN_OP(f, OP_AVG_POOL, arg_tensor(x), LIST(f, 3, 3), LIST(f, 2, 2), LIST(f, 1, 1),
                  arg_bool(true)),
           1e-6, NUMBERS(1.55555558, 3.33333325, 2, 6.33333349, 11, 6, 4.5, 7.5, 4));
    check(f);
}

/* ---- normalization ---- */

static void test_channel_norms(void **state) {
    Fixture *f = *state;
    Value *x = count_to(f, FERRY_F32, DIMS(1, 4, 2));
    Value *weight = given(f, FERRY_F32, DIMS(4), NUMBERS(1, 2, 1, 1));
    Value *bias = given(f, FERRY_F32, DIMS(4), NUMBERS(0, 0, 1, -1));
    Value *mean = given(f, FERRY_F32, DIMS(4), NUMBERS(1, 2, 3, 4));
    Value *variance = given(f, FERRY_F32, DIMS(4), NUMBERS(2, 1, 1, 4));
    expect(f,
           RUN_OP(f, OP_BATCH_NORM, arg_tensor(x), arg_tensor(weight), arg_tensor(bias),
                  arg_tensor(mean), arg_tensor(variance), arg_bool(false), arg_float(0),
                  arg_float(0)),
           1e-6, NUMBERS(0, 0.707106769, 2, 4, 3, 4, 0.5, 1));
    expect(f,
           RUN_OP(f, OP_GROUP_NORM, arg_tensor(x), arg_int(&f->b, 2), arg_tensor(weight),
                  arg_tensor(bias), arg_float(1e-5)),
           1e-6,
           NUMBERS(-1.34163535, -0.447211742, 0.894423723, 2.68327093, -0.341635585, 0.552788019,
                   -0.552788377, 0.341635227));
    expect(f, RUN_OP(f, OP_GROUP_NORM, arg_tensor(x), arg_int(&f->b, 4)), 1e-6,
           NUMBERS(-0.999979973, 0.999979973, -0.999979973, 0.999979973, -0.999979973, 0.999979973,
                   -0.999979973, 0.999979973));
    check(f);
}

/* ---- padding ---- */

static void test_pad(void **state) {
    Fixture *f = *state;
    Value *x = count_to(f, FERRY_F32, DIMS(1, 2, 3));
    expect(f,
           RUN_OP(f, OP_PAD, arg_tensor(x), LIST(f, 1, 0, -1, 1), arg_string("constant"),
                  arg_float(9)),
           0, NUMBERS(9, 4, 5, 6, 9, 9, 9, 9));
    expect(f, RUN_OP(f, OP_PAD, arg_tensor(x), LIST(f, 2, 1), arg_string("reflect")), 0,
           NUMBERS(3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5));
    expect(f, RUN_OP(f, OP_PAD, arg_tensor(x), LIST(f, 2, 1), arg_string("replicate")), 0,
           NUMBERS(1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6));
    Value *flags = given(f, FERRY_BOOL, DIMS(2), NUMBERS(0, 1));
    expect(
        f,
        RUN_OP(f, OP_PAD, arg_tensor(flags), LIST(f, 1, 1), arg_string("constant"), arg_float(1)),
        0, NUMBERS(1, 0, 1, 1));
    check(f);
}

static void test_reflection_needs_size(void **state) {
    Fixture *f = *state;
    const Sym *size = sym_symbol(&f->program->symbols, "n", 0, SYM_UNBOUNDED);
    Value *x = build_input(&f->b, "x", FERRY_F32, 1, &size);
    feed(f, "x", FERRY_F32, DIMS(2), NUMBERS(1, 2));
    build_output(&f->b, "y",
                 RUN_OP(f, OP_PAD, arg_tensor(x), LIST(f, 2, 0), arg_string("reflect")));
    check_fails(f, FERRY_INVALID_ARGUMENT, "", "reflection needs padding below the size of 2");
}

/* ---- resizing ---- */

static void test_upsample(void **state) {
    Fixture *f = *state;
    Value *s = given(f, FERRY_F32, DIMS(1, 1, 2, 3), NUMBERS(1, 2, 4, 8, 16, 32));
    Value *x = count_to(f, FERRY_F32, DIMS(1, 1, 4, 4));
    expect(f, RUN_OP(f, OP_UPSAMPLE_NEAREST, arg_tensor(s), LIST(f, 3, 5)), 0,
           NUMBERS(1, 1, 2, 2, 4, 1, 1, 2, 2, 4, 8, 8, 16, 16, 32));
    expect(f, RUN_OP(f, OP_UPSAMPLE_NEAREST_EXACT, arg_tensor(s), LIST(f, 3, 5)), 0,
           NUMBERS(1, 1, 2, 4, 4, 8, 8, 16, 32, 32, 8, 8, 16, 32, 32));
    expect(f, RUN_OP(f, OP_UPSAMPLE_BILINEAR, arg_tensor(s), LIST(f, 3, 4), arg_bool(false)), 1e-5,
           NUMBERS(1, 1.625, 2.75, 4, 4.5, 7.3125, 12.375, 18, 8, 13, 22, 32));
    expect(f, RUN_OP(f, OP_UPSAMPLE_BILINEAR, arg_tensor(s), LIST(f, 3, 4), arg_bool(true)), 1e-5,
           NUMBERS(1, 1.66666675, 2.66666675, 4, 4.5, 7.5, 12, 18, 8, 13.333334, 21.333334, 32));
    expect(f,
           RUN_OP(f, OP_UPSAMPLE_BILINEAR, arg_tensor(s), LIST(f, 3, 4), arg_bool(false),
                  arg_float(1.5), arg_float(1.5)),
           1e-5,
           NUMBERS(1, 1.5, 2.33333349, 3.66666675, 4.5, 6.75, 10.500001, 16.5, 8, 12, 18.6666679,
                   29.333334));
    expect(f, RUN_OP(f, OP_UPSAMPLE_BICUBIC, arg_tensor(s), LIST(f, 2, 4), arg_bool(false)), 1e-5,
           NUMBERS(0.928222656, 1.41992188, 2.83056641, 4.14355469, 7.42578125, 11.359375,
                   22.6445312, 33.1484375));
    expect(f, RUN_OP(f, OP_UPSAMPLE_BILINEAR_AA, arg_tensor(x), LIST(f, 2, 3), arg_bool(false)),
           1e-5, NUMBERS(4.15714312, 5.35714293, 6.55714273, 10.4428568, 11.6428576, 12.8428574));
    expect(f, RUN_OP(f, OP_UPSAMPLE_BICUBIC_AA, arg_tensor(x), LIST(f, 2, 3), arg_bool(false)),
           1e-5, NUMBERS(3.53703904, 4.84710741, 6.15717649, 10.842824, 12.1528921, 13.4629622));
    check(f);
}

static void test_grid_sampler(void **state) {
    Fixture *f = *state;
    static const double expected[3][3][4] = {
        {{0.25, 9, 0, 0}, {1, 2, 0, 0}, {-0.0634765625, 10.6875, 0, 0}},
        {{1, 9, 28, 18}, {1, 2, 32, 4}, {0.311523438, 9, 28.65625, 18}},
        {{1, 9, 28, 9}, {1, 2, 32, 2}, {-0.25390625, 9, 28.65625, 9}},
    };
    Value *s = given(f, FERRY_F32, DIMS(1, 1, 2, 3), NUMBERS(1, 2, 4, 8, 16, 32));
    Value *grid = given(f, FERRY_F32, DIMS(1, 2, 2, 2), NUMBERS(-1, -1, 0, 0, .5, 1.5, 2, 0));
    for (int padding = 0; padding < 3; padding++) {
        for (int mode = 0; mode < 3; mode++) {
            expect(f,
                   RUN_OP(f, OP_GRID_SAMPLER, arg_tensor(s), arg_tensor(grid), arg_int(&f->b, mode),
                          arg_int(&f->b, padding), arg_bool(false)),
                   1e-5, 4, expected[padding][mode]);
        }
    }
    expect(f,
           RUN_OP(f, OP_GRID_SAMPLER, arg_tensor(s), arg_tensor(grid), arg_int(&f->b, 0),
                  arg_int(&f->b, 2), arg_bool(true)),
           1e-5, NUMBERS(1, 9, 18.75, 9));
    check(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_convolution),
        TEST(test_convolution_of_signals),
        TEST(test_transposed_convolution),
        TEST(test_pools),
        TEST(test_channel_norms),
        TEST(test_pad),
        TEST(test_reflection_needs_size),
        TEST(test_upsample),
        TEST(test_grid_sampler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
