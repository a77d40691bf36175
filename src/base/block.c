/* The formats of ggml, a function each that decodes one group of 32 elements. Products of a scale and a
 * quant are exact in float32, but for Q6_K, where nothing is added to them: contraction changes nothing. */
#include "base/block.h"
#include "base/clones.h"
#include "base/dtype.h"

#define GROUP_OF static inline __attribute__((always_inline)) void

static inline float load_f16(const unsigned char *bytes) {
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return f16_to_f32(half);
}

static inline uint32_t load_u32(const unsigned char *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* ---- blocks of one group ---- */

GROUP_OF group_q4_0(const unsigned char *block, uint64_t group, float *out) {
    float d = load_f16(block);
    (void)group;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((block[2 + i] & 15) - 8);
        out[i + 16] = d * (float)((block[2 + i] >> 4) - 8);
    }
}

GROUP_OF group_q4_1(const unsigned char *block, uint64_t group, float *out) {
    float d = load_f16(block), m = load_f16(block + 2);
    (void)group;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(block[4 + i] & 15) + m;
        out[i + 16] = d * (float)(block[4 + i] >> 4) + m;
    }
}

/* The fifth bits of all elements are in a word of their own. */
GROUP_OF group_q5_0(const unsigned char *block, uint64_t group, float *out) {
    float d = load_f16(block);
    uint32_t high = load_u32(block + 2);
    (void)group;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((int)((block[6 + i] & 15u) | (high >> i & 1) << 4) - 16);
        out[i + 16] =
            d * (float)((int)((unsigned)block[6 + i] >> 4 | (high >> (i + 16) & 1) << 4) - 16);
    }
}

GROUP_OF group_q5_1(const unsigned char *block, uint64_t group, float *out) {
    float d = load_f16(block), m = load_f16(block + 2);
    uint32_t high = load_u32(block + 4);
    (void)group;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(int)((block[8 + i] & 15u) | (high >> i & 1) << 4) + m;
        out[i + 16] =
            d * (float)(int)((unsigned)block[8 + i] >> 4 | (high >> (i + 16) & 1) << 4) + m;
    }
}

GROUP_OF group_q8_0(const unsigned char *block, uint64_t group, float *out) {
    float d = load_f16(block);
    (void)group;
    for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)block[2 + i];
}

/* ---- blocks of eight groups ---- */

/* Two bits an element; each 16 elements have a scale and a minimum of 4 bits. */
GROUP_OF group_q2_k(const unsigned char *block, uint64_t group, float *out) {
    const unsigned char *scales = block + 2 * group, *quants = block + 16 + group / 4 * 32;
    float d = load_f16(block + 80), m = load_f16(block + 82);
    int shift = 2 * (int)(group % 4);
    for (int half = 0; half < 2; half++) {
        float scale = d * (float)(scales[half] & 15), least = m * (float)(scales[half] >> 4);
        for (int i = 16 * half; i < 16 * half + 16; i++)
            out[i] = scale * (float)(quants[i] >> shift & 3) - least;
    }
}

/* The signed 6-bit scale number `i` of the 16 in a Q3_K block. */
static inline int scale_q3_k(const unsigned char *scales, uint64_t i) {
    int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
    int high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
    return (low | high << 4) - 32;
}

/* The third bit of an element is set where nothing is subtracted. */
GROUP_OF group_q3_k(const unsigned char *block, uint64_t group, float *out) {
    const unsigned char *quants = block + 32 + group / 4 * 32;
    float d = load_f16(block + 108);
    int shift = 2 * (int)(group % 4);
    for (int half = 0; half < 2; half++) {
        float scale = d * (float)scale_q3_k(block + 96, 2 * group + (uint64_t)half);
        for (int i = 16 * half; i < 16 * half + 16; i++)
            out[i] = scale * (float)((quants[i] >> shift & 3) - (block[i] >> group & 1 ? 0 : 4));
    }
}

/* The 6-bit scale and minimum of a group in a Q4_K or Q5_K block. */
static inline void scales_k(const unsigned char *scales, uint64_t group, int *scale, int *least) {
    if (group < 4) {
        *scale = scales[group] & 63;
        *least = scales[group + 4] & 63;
    } else {
        *scale = (scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4;
        *least = scales[group + 4] >> 4 | (scales[group] >> 6) << 4;
    }
}

GROUP_OF group_q4_k(const unsigned char *block, uint64_t group, float *out) {
    const unsigned char *quants = block + 16 + group / 2 * 32;
    int factor, offset, shift = 4 * (int)(group % 2);
    scales_k(block + 4, group, &factor, &offset);
    float scale = load_f16(block) * (float)factor, least = load_f16(block + 2) * (float)offset;
    for (int i = 0; i < 32; i++) out[i] = scale * (float)(quants[i] >> shift & 15) - least;
}

GROUP_OF group_q5_k(const unsigned char *block, uint64_t group, float *out) {
    const unsigned char *high = block + 16, *quants = block + 48 + group / 2 * 32;
    int factor, offset, shift = 4 * (int)(group % 2), bit = (int)group;
    scales_k(block + 4, group, &factor, &offset);
    float scale = load_f16(block) * (float)factor, least = load_f16(block + 2) * (float)offset;
    for (int i = 0; i < 32; i++) {
        int quant = (quants[i] >> shift & 15) | (high[i] >> bit & 1) << 4;
        out[i] = scale * (float)quant - least;
    }
}

GROUP_OF group_q6_k(const unsigned char *block, uint64_t group, float *out) {
    const unsigned char *low = block + group / 4 * 64 + group % 2 * 32;
    const unsigned char *high = block + 128 + group / 4 * 32;
    float d = load_f16(block + 208);
    int low_shift = 4 * (int)(group % 4 / 2), high_shift = 2 * (int)(group % 4);
    for (int half = 0; half < 2; half++) {
        float scale = d * (float)(int8_t)block[192 + 2 * group + (uint64_t)half];
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            int quant = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
            out[i] = scale * (float)(quant - 32);
        }
    }
}

GROUP_OF group_q8_k(const unsigned char *block, uint64_t group, float *out) {
    float d;
    memcpy(&d, block, sizeof d);
    for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)block[4 + 32 * group + (uint64_t)i];
}

/* ---- the formats ---- */

#define FORMATS(FORMAT)                                                                            \
    FORMAT(2, q4_0, "Q4_0", 1, 18)                                                                 \
    FORMAT(3, q4_1, "Q4_1", 1, 20)                                                                 \
    FORMAT(6, q5_0, "Q5_0", 1, 22)                                                                 \
    FORMAT(7, q5_1, "Q5_1", 1, 24)                                                                 \
    FORMAT(8, q8_0, "Q8_0", 1, 34)                                                                 \
    FORMAT(10, q2_k, "Q2_K", 8, 84)                                                                \
    FORMAT(11, q3_k, "Q3_K", 8, 110)                                                               \
    FORMAT(12, q4_k, "Q4_K", 8, 144)                                                               \
    FORMAT(13, q5_k, "Q5_K", 8, 176)                                                               \
    FORMAT(14, q6_k, "Q6_K", 8, 210)                                                               \
    FORMAT(15, q8_k, "Q8_K", 8, 292)

#define DECODE(type, function, name, groups, bytes)                                                \
    CLONES static void decode_##function(const unsigned char *blocks, uint64_t first,              \
                                         uint64_t count, float *out) {                             \
        for (uint64_t i = first; i < first + count; i++, out += BLOCK_GROUP)                       \
            group_##function(blocks + i / groups * bytes, i % groups, out);                        \
    }
FORMATS(DECODE)
#undef DECODE

const BlockFormat *block_format(uint32_t ggml_type) {
    static const BlockFormat formats[] = {
#define FORMAT(type, function, name, groups, bytes)                                                \
    [type] = {name, groups * BLOCK_GROUP, bytes, decode_##function},
        FORMATS(FORMAT)
#undef FORMAT
    };
    bool known = ggml_type < sizeof formats / sizeof *formats && formats[ggml_type].name;
    return known ? &formats[ggml_type] : NULL;
}

void block_decode(const BlockFormat *format, const unsigned char *blocks, uint64_t first,
                  uint64_t count, float *out) {
    float group[BLOCK_GROUP];
    while (count > 0) {
        uint64_t within = first % BLOCK_GROUP, run = count / BLOCK_GROUP * BLOCK_GROUP;
        if (within == 0 && run > 0) {
            format->decode(blocks, first / BLOCK_GROUP, run / BLOCK_GROUP, out);
        } else {
            run = BLOCK_GROUP - within < count ? BLOCK_GROUP - within : count;
            format->decode(blocks, first / BLOCK_GROUP, 1, group);
            memcpy(out, group + within, run * sizeof *out);
        }
        first += run;
        count -= run;
        out += run;
    }
}
