/* Element types, named as torch names them. */
#ifndef FERRY_DTYPE_H
#define FERRY_DTYPE_H

#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ferry_dtype {
    FERRY_DTYPE_NONE,
#define FERRY_DTYPE(name, torch_name, safetensors_name, size) FERRY_##name,
#include <ferry/dtype.def>
#undef FERRY_DTYPE
    FERRY_DTYPE_COUNT
} ferry_dtype;

/* "float32"; "none" for FERRY_DTYPE_NONE. Static storage. */
FERRY_API const char *ferry_dtype_name(ferry_dtype dtype);

/* Bytes per element; 0 for FERRY_DTYPE_NONE. */
FERRY_API size_t ferry_dtype_size(ferry_dtype dtype);

/* The type called `name` in torch ("float32", "bfloat16") or FERRY_DTYPE_NONE. Also accepts the
 * short forms "f32", "f16", "bf16", "f64". */
FERRY_API ferry_dtype ferry_dtype_parse(const char *name);

/* True for float16, bfloat16, float32, float64 and the float8 types. */
FERRY_API bool ferry_dtype_is_float(ferry_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
