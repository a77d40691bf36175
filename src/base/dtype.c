/* Names and conversions of element types. A conversion goes through a block of float64 or int64
 * unless the pair has a direct loop; the pairs that carry weights (bf16, f16, f32) do. */
#include "base/dtype.h"
#include "base/clones.h"

#include <math.h>

static const struct {
    const char *torch_name;
    const char *safetensors_name;
    size_t size;
} dtypes[FERRY_DTYPE_COUNT] = {
    [FERRY_DTYPE_NONE] = {"none", "none", 0},
#define FERRY_DTYPE(name, torch_name, safetensors_name, size)                                      \
    [FERRY_##name] = {torch_name, safetensors_name, size},
#include <ferry/dtype.def>
#undef FERRY_DTYPE
};

const char *ferry_dtype_name(ferry_dtype dtype) {
    return (unsigned)dtype < FERRY_DTYPE_COUNT ? dtypes[dtype].torch_name : "none";
}

size_t ferry_dtype_size(ferry_dtype dtype) {
    return (unsigned)dtype < FERRY_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool ferry_dtype_is_float(ferry_dtype dtype) {
    return dtype >= FERRY_F16 && dtype <= FERRY_F8_E5M2;
}

ferry_dtype ferry_dtype_parse(const char *name) {
    static const struct {
        const char *name;
        ferry_dtype dtype;
    } short_names[] = {
        {"f16", FERRY_F16},  {"bf16", FERRY_BF16}, {"f32", FERRY_F32},    {"f64", FERRY_F64},
        {"half", FERRY_F16}, {"float", FERRY_F32}, {"double", FERRY_F64},
    };
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        if (strcmp(name, dtypes[d].torch_name) == 0) return (ferry_dtype)d;
    }
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
        if (strcmp(name, short_names[i].name) == 0) return short_names[i].dtype;
    }
    return FERRY_DTYPE_NONE;
}

const char *dtype_safetensors_name(ferry_dtype dtype) {
    return (unsigned)dtype < FERRY_DTYPE_COUNT ? dtypes[dtype].safetensors_name : "none";
}

ferry_dtype dtype_from_safetensors(const char *name) {
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        if (strcmp(name, dtypes[d].safetensors_name) == 0) return (ferry_dtype)d;
    }
    return FERRY_DTYPE_NONE;
}

bool dtype_bytes(ferry_dtype dtype, size_t rank, const int64_t *shape, uint64_t *bytes) {
    int64_t product = (int64_t)ferry_dtype_size(dtype);
    bool empty = false;
    if (product == 0) return false;
    for (size_t d = 0; d < rank; d++) {
        if (shape[d] < 0) return false;
        if (shape[d] == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, shape[d], &product))
            return false;
    }
    *bytes = empty ? 0 : (uint64_t)product;
    return true;
}

/* ---- float8: one sign bit, `exponent_bits`, `mantissa_bits` (OCP 8-bit floating point) ---- */

static float f8_to_f32(uint8_t byte, int exponent_bits, int mantissa_bits, bool has_infinity) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (byte & 0x7f) >> mantissa_bits;
    int mantissa = byte & ((1 << mantissa_bits) - 1);
    int top = (1 << exponent_bits) - 1;
    float value;
    if (has_infinity && exponent == top)
        value = mantissa ? NAN : INFINITY;
    else if (!has_infinity && (byte & 0x7f) == 0x7f)
        value = NAN;
    else if (exponent == 0)
        value = ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexpf((float)(mantissa | 1 << mantissa_bits), exponent - bias - mantissa_bits);
    return byte & 0x80 ? -value : value;
}

static uint8_t f32_to_f8(float value, int exponent_bits, int mantissa_bits, bool has_infinity) {
    uint8_t sign = signbit(value) ? 0x80 : 0;
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint8_t overflow = has_infinity ? (uint8_t)(((1 << exponent_bits) - 1) << mantissa_bits) : 0x7f;
    float magnitude = fabsf(value);
    if (isnan(value)) return sign | 0x7f;
    if (isinf(value)) return sign | overflow;
    if (magnitude == 0) return sign;
    int exponent;
    frexpf(magnitude, &exponent);
    exponent -= 1;
    if (exponent < 1 - bias) exponent = 1 - bias;
    long units = lrintf(ldexpf(magnitude, mantissa_bits - exponent));
    long code = units + ((long)(exponent + bias - 1) << mantissa_bits);
    return sign | (uint8_t)(code > overflow ? overflow : code);
}

/* ---- one element through a wide type ---- */

static double load_float(ferry_dtype dtype, const void *source, size_t i) {
    switch (dtype) {
    case FERRY_F16: return f16_to_f32(((const uint16_t *)source)[i]);
    case FERRY_BF16: return bf16_to_f32(((const uint16_t *)source)[i]);
    case FERRY_F32: return ((const float *)source)[i];
    case FERRY_F64: return ((const double *)source)[i];
    case FERRY_F8_E4M3: return f8_to_f32(((const uint8_t *)source)[i], 4, 3, false);
    default: return f8_to_f32(((const uint8_t *)source)[i], 5, 2, true);
    }
}

static int64_t load_integer(ferry_dtype dtype, const void *source, size_t i) {
    switch (dtype) {
    case FERRY_BOOL: return ((const uint8_t *)source)[i] != 0;
    case FERRY_U8: return ((const uint8_t *)source)[i];
    case FERRY_I8: return ((const int8_t *)source)[i];
    case FERRY_I16: return ((const int16_t *)source)[i];
    case FERRY_I32: return ((const int32_t *)source)[i];
    default: return ((const int64_t *)source)[i];
    }
}

static void store_float(ferry_dtype dtype, void *target, size_t i, double value) {
    switch (dtype) {
    case FERRY_F16: ((uint16_t *)target)[i] = f32_to_f16((float)value); break;
    case FERRY_BF16: ((uint16_t *)target)[i] = f32_to_bf16((float)value); break;
    case FERRY_F32: ((float *)target)[i] = (float)value; break;
    case FERRY_F64: ((double *)target)[i] = value; break;
    case FERRY_F8_E4M3: ((uint8_t *)target)[i] = f32_to_f8((float)value, 4, 3, false); break;
    default: ((uint8_t *)target)[i] = f32_to_f8((float)value, 5, 2, true); break;
    }
}

static void store_integer(ferry_dtype dtype, void *target, size_t i, int64_t value) {
    switch (dtype) {
    case FERRY_BOOL: ((uint8_t *)target)[i] = value != 0; break;
    case FERRY_U8: ((uint8_t *)target)[i] = (uint8_t)value; break;
    case FERRY_I8: ((int8_t *)target)[i] = (int8_t)value; break;
    case FERRY_I16: ((int16_t *)target)[i] = (int16_t)value; break;
    case FERRY_I32: ((int32_t *)target)[i] = (int32_t)value; break;
    default: ((int64_t *)target)[i] = value; break;
    }
}

/* C leaves an out-of-range conversion undefined; saturate instead. */
static int64_t float_to_integer(ferry_dtype to, double value) {
    int64_t upper = to == FERRY_U8 ? 255 : INT64_MAX >> (64 - 8 * ferry_dtype_size(to));
    int64_t lower = to == FERRY_U8 ? 0 : -upper - 1;
    if (to == FERRY_BOOL) return value != 0;
    if (isnan(value)) return 0;
    if (value >= (double)upper) return upper;
    if (value <= (double)lower) return lower;
    return (int64_t)value;
}

CLONES static void bf16_to_f32_many(const uint16_t *source, float *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = bf16_to_f32(source[i]);
}

CLONES static void f32_to_bf16_many(const float *source, uint16_t *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = f32_to_bf16(source[i]);
}

CLONES static void f16_to_f32_many(const uint16_t *source, float *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = f16_to_f32(source[i]);
}

CLONES static void f32_to_f16_many(const float *source, uint16_t *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = f32_to_f16(source[i]);
}

CLONES static void bf16_to_f16_many(const uint16_t *source, uint16_t *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = f32_to_f16(bf16_to_f32(source[i]));
}

static void convert_aligned(ferry_dtype from, const void *source, ferry_dtype to, void *target,
                            size_t count) {
    if (from == FERRY_BF16 && to == FERRY_F32)
        bf16_to_f32_many(source, target, count);
    else if (from == FERRY_F32 && to == FERRY_BF16)
        f32_to_bf16_many(source, target, count);
    else if (from == FERRY_F16 && to == FERRY_F32)
        f16_to_f32_many(source, target, count);
    else if (from == FERRY_F32 && to == FERRY_F16)
        f32_to_f16_many(source, target, count);
    else if (from == FERRY_BF16 && to == FERRY_F16)
        bf16_to_f16_many(source, target, count);
    else if (ferry_dtype_is_float(from) && ferry_dtype_is_float(to))
        for (size_t i = 0; i < count; i++) store_float(to, target, i, load_float(from, source, i));
    else if (ferry_dtype_is_float(from))
        for (size_t i = 0; i < count; i++)
            store_integer(to, target, i, float_to_integer(to, load_float(from, source, i)));
    else if (to == FERRY_F64)
        for (size_t i = 0; i < count; i++)
            store_float(to, target, i, (double)load_integer(from, source, i));
    else if (ferry_dtype_is_float(to))
        for (size_t i = 0; i < count; i++)
            store_float(to, target, i, (float)load_integer(from, source, i));
    else
        for (size_t i = 0; i < count; i++)
            store_integer(to, target, i, load_integer(from, source, i));
}

static bool is_aligned(ferry_dtype dtype, const void *address) {
    return ((uintptr_t)address & (dtypes[dtype].size - 1)) == 0;
}

void dtype_convert(ferry_dtype from, const void *source, ferry_dtype to, void *target,
                   size_t count) {
    size_t from_size = dtypes[from].size, to_size = dtypes[to].size;
    if (from == to) {
        if (count) memcpy(target, source, count * from_size);
        return;
    }
    if (is_aligned(from, source) && is_aligned(to, target)) {
        convert_aligned(from, source, to, target, count);
        return;
    }
    /* Files put tensors at any byte: go through aligned blocks. */
    enum { BLOCK = 256 };
    int64_t in[BLOCK], out[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t length = count - i < BLOCK ? count - i : BLOCK;
        memcpy(in, (const unsigned char *)source + i * from_size, length * from_size);
        convert_aligned(from, in, to, out, length);
        memcpy((unsigned char *)target + i * to_size, out, length * to_size);
    }
}
