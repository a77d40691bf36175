/* Element types: names and conversions. */
#include "check.h"
#include "base/dtype.h"

#include <math.h>

static void dtypes_are_found_by_their_names(void **state) {
    (void)state;
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        ferry_dtype dtype = (ferry_dtype)d;
        assert_int_equal(ferry_dtype_parse(ferry_dtype_name(dtype)), dtype);
        assert_int_equal(dtype_from_safetensors(dtype_safetensors_name(dtype)), dtype);
        assert_true(ferry_dtype_size(dtype) > 0);
    }
    assert_int_equal(ferry_dtype_parse("bf16"), FERRY_BF16);
    assert_int_equal(ferry_dtype_parse("complex64"), FERRY_DTYPE_NONE);
    assert_int_equal(ferry_dtype_size(FERRY_DTYPE_NONE), 0);
    assert_string_equal(ferry_dtype_name((ferry_dtype)99), "none");
    assert_true(ferry_dtype_is_float(FERRY_F8_E5M2));
    assert_false(ferry_dtype_is_float(FERRY_I64));
}

static void the_bytes_of_a_tensor_are_checked_for_overflow(void **state) {
    (void)state;
    uint64_t bytes;
    assert_true(dtype_bytes(FERRY_F32, 0, NULL, &bytes));
    assert_int_equal(bytes, 4);
    assert_true(dtype_bytes(FERRY_I16, 3, (const int64_t[]){2, 3, 4}, &bytes));
    assert_int_equal(bytes, 48);
    assert_true(dtype_bytes(FERRY_I16, 2, (const int64_t[]){0, 4}, &bytes));
    assert_int_equal(bytes, 0);
    assert_false(dtype_bytes(FERRY_DTYPE_NONE, 1, (const int64_t[]){4}, &bytes));
    assert_false(dtype_bytes(FERRY_I16, 1, (const int64_t[]){-4}, &bytes));
    assert_false(dtype_bytes(FERRY_F32, 1, (const int64_t[]){INT64_MAX / 2}, &bytes));
    assert_false(dtype_bytes(FERRY_U8, 3, (const int64_t[]){0, INT64_MAX, 2}, &bytes));
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Every pattern goes to float32 and back; a NaN stays a NaN of its sign. */
static void round_trip(ferry_dtype dtype, unsigned exponent_mask) {
    static uint16_t all[65536], back[65536];
    static float wide[65536];
    for (unsigned i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    dtype_convert(dtype, all, FERRY_F32, wide, 65536);
    dtype_convert(FERRY_F32, wide, dtype, back, 65536);
    for (unsigned i = 0; i < 65536; i++) {
        bool is_nan = (i & 0x7fff) > exponent_mask;
        assert_int_equal(isnan(wide[i]) != 0, is_nan);
        assert_int_equal(signbit(wide[i]) != 0, i >> 15);
        if (is_nan) {
            assert_true((back[i] & 0x7fff) > exponent_mask);
            assert_int_equal(back[i] >> 15, i >> 15);
        } else {
            assert_int_equal(back[i], i);
        }
    }
}

static void all_half_precision_values_survive_float32(void **state) {
    (void)state;
    round_trip(FERRY_F16, 0x7c00);
    round_trip(FERRY_BF16, 0x7f80);
}

static void half_precision_rounds_to_nearest_even(void **state) {
    (void)state;
    static const struct {
        float value;
        uint16_t f16, bf16;
    } cases[] = {
        {1.0f, 0x3c00, 0x3f80},
        {-2.0f, 0xc000, 0xc000},
        {0x1.002p0f, 0x3c00, 0x3f80},
        {0x1.006p0f, 0x3c02, 0x3f80},
        {0x1.0021p0f, 0x3c01, 0x3f80},
        {0x1.01p0f, 0x3c04, 0x3f80},
        {0x1.03p0f, 0x3c0c, 0x3f82},
        {0x1.0101p0f, 0x3c04, 0x3f81},
        {65504.0f, 0x7bff, 0x4780},
        {65519.9f, 0x7bff, 0x4780},
        {65520.0f, 0x7c00, 0x4780},
        {1e30f, 0x7c00, 0x714a},
        {0x1p-14f, 0x0400, 0x3880},
        {0x1.ff8p-15f, 0x03ff, 0x3880},
        {0x1.ffep-15f, 0x0400, 0x3880},
        {0x1p-24f, 0x0001, 0x3380},
        {0x1p-25f, 0x0000, 0x3300},
        {0x1.8p-25f, 0x0001, 0x3340},
        {0x1.8p-24f, 0x0002, 0x33c0},
        {-0.0f, 0x8000, 0x8000},
        {0x1.fffffep127f, 0x7c00, 0x7f80},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(f32_to_f16(cases[i].value), cases[i].f16);
        assert_int_equal(f32_to_bf16(cases[i].value), cases[i].bf16);
    }
    assert_int_equal(f32_to_f16(float_of(0xffc00000)) & 0xfe00, 0xfe00);
    assert_int_equal(f32_to_bf16(float_of(0x7f800001)), 0x7fc0);
}

static void float8_values_are_those_of_the_ocp_formats(void **state) {
    (void)state;
    static const struct {
        uint8_t byte;
        float e4m3, e5m2;
    } values[] = {
        {0x00, 0.0f, 0.0f},         {0x01, 0x1p-9f, 0x1p-16f}, {0x08, 0x1p-6f, 0x1p-13f},
        {0x38, 1.0f, 0.5f},         {0x3c, 1.5f, 1.0f},        {0x7b, 352.0f, 57344.0f},
        {0x7e, 448.0f, NAN},        {0x7f, NAN, NAN},          {0x7c, 384.0f, INFINITY},
        {0xfc, -384.0f, -INFINITY}, {0xb8, -1.0f, -0.5f},
    };
    for (size_t i = 0; i < COUNT(values); i++) {
        float found[2];
        dtype_convert(FERRY_F8_E4M3, &values[i].byte, FERRY_F32, &found[0], 1);
        dtype_convert(FERRY_F8_E5M2, &values[i].byte, FERRY_F32, &found[1], 1);
        assert_true(found[0] == values[i].e4m3 || (isnan(found[0]) && isnan(values[i].e4m3)));
        assert_true(found[1] == values[i].e5m2 || (isnan(found[1]) && isnan(values[i].e5m2)));
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        for (ferry_dtype dtype = FERRY_F8_E4M3; dtype <= FERRY_F8_E5M2; dtype++) {
            uint8_t from = (uint8_t)byte, back;
            float wide;
            dtype_convert(dtype, &from, FERRY_F32, &wide, 1);
            dtype_convert(FERRY_F32, &wide, dtype, &back, 1);
            if (!isnan(wide))
                assert_int_equal(back, byte);
            else
                assert_int_equal(back, (byte & 0x80) | 0x7f);
        }
    }
}

static void float8_rounds_and_overflows_as_torch_does(void **state) {
    (void)state;
    static const struct {
        float value;
        uint8_t e4m3, e5m2;
    } cases[] = {
        {448.0f, 0x7e, 0x5f},     {464.0f, 0x7e, 0x5f},     {464.1f, 0x7f, 0x5f},
        {1000.0f, 0x7f, 0x64},    {INFINITY, 0x7f, 0x7c},   {-INFINITY, 0xff, 0xfc},
        {57344.0f, 0x7f, 0x7b},   {61439.0f, 0x7f, 0x7b},   {61440.0f, 0x7f, 0x7c},
        {0x1p-10f, 0x00, 0x14},   {0x1.8p-10f, 0x01, 0x16}, {0x1p-17f, 0x00, 0x00},
        {0x1.8p-17f, 0x00, 0x01}, {1.0625f, 0x38, 0x3c},    {1.1875f, 0x3a, 0x3d},
        {-0.0f, 0x80, 0x80},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t found[2];
        dtype_convert(FERRY_F32, &cases[i].value, FERRY_F8_E4M3, &found[0], 1);
        dtype_convert(FERRY_F32, &cases[i].value, FERRY_F8_E5M2, &found[1], 1);
        assert_int_equal(found[0], cases[i].e4m3);
        assert_int_equal(found[1], cases[i].e5m2);
    }
}

static void floats_saturate_when_they_become_integers(void **state) {
    (void)state;
    static const struct {
        double value;
        ferry_dtype dtype;
        int64_t wanted;
    } cases[] = {
        {1.9, FERRY_I32, 1},
        {-1.9, FERRY_I32, -1},
        {NAN, FERRY_I32, 0},
        {3e9, FERRY_I32, INT32_MAX},
        {-3e9, FERRY_I32, INT32_MIN},
        {2147483647.0, FERRY_I32, INT32_MAX},
        {-2147483648.9, FERRY_I32, INT32_MIN},
        {INFINITY, FERRY_I64, INT64_MAX},
        {-INFINITY, FERRY_I64, INT64_MIN},
        {9223372036854775808.0, FERRY_I64, INT64_MAX},
        {9223372036854774784.0, FERRY_I64, 9223372036854774784},
        {300, FERRY_U8, 255},
        {-1, FERRY_U8, 0},
        {-0.5, FERRY_U8, 0},
        {200, FERRY_I8, 127},
        {-200, FERRY_I8, -128},
        {40000, FERRY_I16, 32767},
        {0.5, FERRY_BOOL, 1},
        {-0.0, FERRY_BOOL, 0},
        {NAN, FERRY_BOOL, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t narrow = 0, found = 0;
        dtype_convert(FERRY_F64, &cases[i].value, cases[i].dtype, &narrow, 1);
        dtype_convert(cases[i].dtype, &narrow, FERRY_I64, &found, 1);
        assert_int_equal(found, cases[i].wanted);
    }
}

static void integers_wrap_and_round_once(void **state) {
    (void)state;
    int64_t large = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    float single;
    dtype_convert(FERRY_I64, &large, FERRY_F32, &single, 1);
    assert_true(single == 0x1.000002p60f);
    int32_t number = 300;
    uint8_t byte;
    int8_t small;
    dtype_convert(FERRY_I32, &number, FERRY_U8, &byte, 1);
    assert_int_equal(byte, 44);
    number = 200;
    dtype_convert(FERRY_I32, &number, FERRY_I8, &small, 1);
    assert_int_equal(small, -56);
    dtype_convert(FERRY_I8, &small, FERRY_BOOL, &byte, 1);
    assert_int_equal(byte, 1);
}

static void conversions_take_unaligned_addresses_of_any_length(void **state) {
    (void)state;
    enum { MOST = 1030 };
    static unsigned char source[MOST * 4 + 3], target[MOST * 8 + 3];
    for (size_t count = 0; count <= MOST; count += count < 20 ? 1 : 101) {
        for (int shift = 0; shift < 4; shift++) {
            for (size_t i = 0; i < count; i++) {
                float value = (float)i - 7;
                memcpy(source + shift + i * 4, &value, 4);
            }
            dtype_convert(FERRY_F32, source + shift, FERRY_I64, target + 3 - shift, count);
            for (size_t i = 0; i < count; i++) {
                int64_t found;
                memcpy(&found, target + 3 - shift + i * 8, 8);
                assert_int_equal(found, (int64_t)i - 7);
            }
        }
    }
    dtype_convert(FERRY_F32, NULL, FERRY_F32, NULL, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_found_by_their_names),
        cmocka_unit_test(the_bytes_of_a_tensor_are_checked_for_overflow),
        cmocka_unit_test(all_half_precision_values_survive_float32),
        cmocka_unit_test(half_precision_rounds_to_nearest_even),
        cmocka_unit_test(float8_values_are_those_of_the_ocp_formats),
        cmocka_unit_test(float8_rounds_and_overflows_as_torch_does),
        cmocka_unit_test(floats_saturate_when_they_become_integers),
        cmocka_unit_test(integers_wrap_and_round_once),
        cmocka_unit_test(conversions_take_unaligned_addresses_of_any_length),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
