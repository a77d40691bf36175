/* ALiBi (https://arxiv.org/abs/2108.12409): instead of positions, a bias on the scores that grows with
 * the position of the key, by a slope of its own for every head. The query's position would only add
 * a constant to each row, which softmax ignores, so it is left out. */
#include "source/checkpoint/attention.h"
#include "base/dtype.h"

#include <math.h>

/* 2^(-8/n), 2^(-16/n), ... for n heads, a power of two; the heads above such a power take every other
 * slope of twice as many. */
static void compute_slopes(int64_t heads, float *slopes) {
    int64_t power = 1;
    while (power * 2 <= heads) power *= 2;
    for (int64_t i = 0; i < heads; i++) {
        double n = (double)(i < power ? power : 2 * power);
        float base = (float)exp2(-8 / n);
        slopes[i] = powf(base, (float)(i < power ? i + 1 : 2 * (i - power) + 1));
    }
}

/* [1, heads, 1, 1] */
static Value *slope_buffer(Model *m, int64_t heads, bool rounded) {
    if (!build_ok(&m->b)) return &m->b.poison;
    float *slopes = ARENA_ARRAY(&m->b.program->arena, float, (size_t)heads);
    if (!slopes) return build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    compute_slopes(heads, slopes);
    for (int64_t i = 0; rounded && i < heads; i++) {
        unsigned char half[2];
        dtype_convert(FERRY_F32, &slopes[i], FERRY_BF16, half, 1);
        dtype_convert(FERRY_BF16, half, FERRY_F32, &slopes[i], 1);
    }
    return build_constant(&m->b, VALUE_BUFFER, "alibi_slopes", FERRY_F32, 4,
                          (const int64_t[]){1, heads, 1, 1}, slopes);
}

/* Positions [batch or 1, 1, 1, sequence]: 0, 1, 2, ... over the keys that are no padding. What padding
 * gets does not matter: it is hidden. */
static Value *key_positions(Model *m, Value *padding) {
    Builder *b = &m->b;
    Value *positions;
    if (padding) {
        positions = build_cumsum(b, build_to(b, padding, FERRY_I64), 1);
        positions = build_unsqueeze(b, build_scalar(b, OP_ADD_SCALAR, positions, -1), 1);
    } else {
        positions = build_arange(b, build_const(b, 0), model_key_count(m), FERRY_I64);
        positions = build_unsqueeze(b, build_unsqueeze(b, positions, 0), 0);
    }
    return build_to(b, build_unsqueeze(b, positions, 1), FERRY_F32);
}

/* The nearest bfloat16, as float32. */
static Value *round_to_bfloat16(Builder *b, Value *x) {
    return build_to(b, build_to(b, x, FERRY_BF16), FERRY_F32);
}

Value *model_alibi(Model *m, Value *padding, int64_t heads, bool rounded) {
    Builder *b = &m->b;
    Value *positions = key_positions(m, padding);
    if (rounded) positions = round_to_bfloat16(b, positions);
    Value *alibi = build_mul(b, positions, slope_buffer(m, heads, rounded));
    if (rounded) alibi = round_to_bfloat16(b, alibi);
    return build_to(b, alibi, m->dtype);
}
