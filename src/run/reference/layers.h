/* What layers compute for a row of features, in float32 and float64; layers.inc has the bodies. */
#ifndef RUN_REFERENCE_LAYERS_H
#define RUN_REFERENCE_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

/* For each type:
 * softmax      `out` may be `x`. Of numbers that are all -infinity: NaN, as ATen, or zeros when
 *              `empty_is_zero`.
 * layer_norm   `weight` and `bias` may be NULL.
 * rms_norm     `weight` may be NULL.
 * rotate       the first `r` of `n` features; the others are copied. */
#define LAYERS_DECLARE(real, suffix)                                                               \
    void layers_softmax_##suffix(const real *x, int64_t n, bool empty_is_zero, real *out);         \
    void layers_layer_norm_##suffix(const real *x, const real *weight, const real *bias,           \
                                    double eps, int64_t n, real *out);                             \
    void layers_rms_norm_##suffix(const real *x, const real *weight, double eps, int64_t n,        \
                                  real *out);                                                      \
    void layers_rotate_##suffix(const real *x, const real *cosine, const real *sine,               \
                                bool interleaved, int64_t r, int64_t n, real *out);

LAYERS_DECLARE(float, f32)
LAYERS_DECLARE(double, f64)

#endif
