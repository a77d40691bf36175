/* Element types: names, and conversion between any two of them. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <ferry/dtype.h>
#include <stdint.h>
#include <string.h>

/* The safetensors name ("F32"), and the type with that name or FERRY_DTYPE_NONE. */
const char *dtype_safetensors_name(ferry_dtype dtype);
ferry_dtype dtype_from_safetensors(const char *name);

/* The bytes of a dense tensor. False when `dtype` is none, a size is negative, or the product does not
 * fit 63 bits; sizes of 0 are left out of that test, so that strides of an empty tensor fit too. */
bool dtype_bytes(ferry_dtype dtype, size_t rank, const int64_t *shape, uint64_t *bytes);

/* Convert `count` elements. Floats to narrower floats round to nearest even (float8 types saturate
 * to their largest finite value only as torch does: e4m3fn gives NaN above 448, e5m2 infinity);
 * floats to integers truncate and saturate, NaN becomes 0; integers to narrower integers wrap;
 * anything to bool tests for non-zero. `from` and `to` may be equal. The regions need no alignment
 * and must not overlap. */
void dtype_convert(ferry_dtype from, const void *source, ferry_dtype to, void *target,
                   size_t count);

static inline float bf16_to_f32(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t f32_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#ifdef __FLT16_MAX__

static inline float f16_to_f32(uint16_t half) {
    _Float16 narrow;
    memcpy(&narrow, &half, sizeof narrow);
    return (float)narrow;
}

static inline uint16_t f32_to_f16(float value) {
    _Float16 narrow = (_Float16)value;
    uint16_t half;
    memcpy(&half, &narrow, sizeof half);
    return half;
}

#else /* a compiler without the type, such as Clang 14 */

static inline float f16_to_f32(uint16_t half) {
    uint32_t magnitude = half & 0x7fffu, bits;
    float value = (float)magnitude * 0x1p-24f; /* right for subnormals */
    memcpy(&bits, &value, sizeof bits);
    if (magnitude > 0x7c00u)
        bits = magnitude << 13 | 0x7fc00000u;
    else if (magnitude == 0x7c00u)
        bits = 0x7f800000u;
    else if (magnitude >= 0x400u)
        bits = (magnitude << 13) + 0x38000000u;
    bits |= (uint32_t)(half & 0x8000u) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t f32_to_f16(float value) {
    uint32_t bits, magnitude;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
    if (bits >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (bits >= 0x38800000u) {
        return (uint16_t)(sign | (bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13);
    }
    memcpy(&value, &bits, sizeof value);
    value += 0.5f; /* whose last place is the unit of float16's subnormals */
    memcpy(&magnitude, &value, sizeof magnitude);
    return (uint16_t)(sign | (magnitude - 0x3f000000u));
}

#endif

#endif
