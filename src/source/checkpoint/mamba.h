/* What the files of the state space models share. */
#ifndef SOURCE_MAMBA_H
#define SOURCE_MAMBA_H

#include "source/checkpoint/attention.h"

typedef enum MixerNorms {
    MIXER_PLAIN,
    MIXER_WEIGHTLESS, /* RMS norms on steps, in and out, without weights */
    MIXER_NORMS,      /* with dt_layernorm, b_layernorm and c_layernorm */
} MixerNorms;

/* A mixer of Mamba, which stands where attention does in a transformer. */
typedef struct MambaMixer {
    Model *m;
    int64_t hidden, inner, state, kernel;
    int64_t rank;                 /* of the projection to steps; Mamba 2 has none */
    int64_t heads, groups, width; /* of Mamba 2: heads * width = inner */
    double least_step, most_step; /* of Mamba 2 */
    bool bias, convolution_bias;
    const char *activation;
    MixerNorms norms;
    double eps;
    Value *padding; /* [batch, sequence, 1]: 0 for padding, else 1; NULL: none */
} MambaMixer;

/* x [batch, sequence, hidden], with the weights "<module>.in_proj.weight" and so on. The layer's states
 * come from the cache and go to `cache`. */
Value *mamba_mixer(const MambaMixer *mixer, Value *x, CacheLayer *cache, int64_t layer,
                   const char *module);
Value *mamba2_mixer(const MambaMixer *mixer, Value *x, CacheLayer *cache, int64_t layer,
                    const char *module);

/* Of a model without attention, whose attention_mask has the tokens of this call alone. A step of one token
 * takes none, unless prompts go through it. */
Value *mixer_read_padding(Model *m);

/* x without padding, which must not reach the states. */
Value *mixer_hide_padding(const MambaMixer *mixer, Value *x);

/* activation(convolution(x)) of each of the `channels` of x [batch, sequence, channels] along the sequence,
 * over the tokens up to each; cache->states[0] holds the last ones. */
Value *mixer_convolve(const MambaMixer *mixer, Value *x, CacheLayer *cache, const char *module);

/* -exp(<module>.A_log), float32 */
Value *mixer_rates(const MambaMixer *mixer, uint32_t rank, const int64_t *shape,
                   const char *module);

/* The rank of the steps' projection: the number at `key`, or a 16th of the hidden size when it says
 * "auto" or nothing. */
int64_t mixer_rank(Model *m, const char *key, int64_t hidden);

#endif
