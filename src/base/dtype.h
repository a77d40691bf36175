/* Element types: names, and conversion between any two of them. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <ferry/dtype.h>
#include <stdint.h>
#include <string.h>

/* The safetensors name ("F32"), and the type with that name or FERRY_DTYPE_NONE. */
const char *dtype_safetensors_name(ferry_dtype dtype);
ferry_dtype dtype_from_safetensors(const char *name);

/* Convert `count` elements. Floats to narrower floats round to nearest even (float8 types saturate
 * to their largest finite value only as torch does: e4m3fn gives NaN above 448, e5m2 infinity);
 * floats to integers truncate; anything to bool tests for non-zero. `from` and `to` may be equal.
 * The regions must not overlap. */
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

#endif
