/* Positions, masks, caches and heads that decoders (and some encoders) share. */
#ifndef SOURCE_ATTENTION_H
#define SOURCE_ATTENTION_H

#include "source/checkpoint/cache.h"

/* ---- rotary position embedding ---- */

/* The places of a patch in time, height and width, which share the rotated pairs of features. */
typedef enum PlaceKind {
    PLACE_ONE,      /* tokens have one position */
    PLACE_SECTIONS, /* the first pairs turn with time, the next with height, the last with width */
    PLACE_INTERLEAVED, /* time, height and width in turn, as far as the sections go; then time */
} PlaceKind;

typedef struct RotarySpec {
    const char
        *layer_type; /* the entry of rope_parameters, which is nested then; NULL: it is not */
    int64_t head_dim;
    double theta;            /* default when the configuration has none */
    double partial;          /* default share of the head that is rotated */
    bool interleaved;        /* cos and sin for neighbouring pairs instead of halves */
    bool whole;              /* heads rotate whole, and the default type ignores the share */
    bool even;               /* an odd number of rotated features is refused */
    const char *theta_key;   /* theta at the top level; NULL: rope_theta */
    const char *partial_key; /* the share at the top level; NULL: partial_rotary_factor */
    int64_t max_length;      /* default of max_position_embeddings; 0: 2048 */
    int64_t
        trained_length;  /* default of original_max_position_embeddings at the top level; 0: none */
    bool ignore_scaling; /* rope_scaling concerns another layer type */
    const char
        *otherwise;   /* the parameters, as JSON, of a configuration that has none; may be NULL */
    bool float32;     /* cos and sin are float32 whatever the dtype of the computation */
    PlaceKind places; /* how the features share the three places of a patch */
    int64_t sections[3]; /* default of mrope_section: pairs that turn with each place */
} RotarySpec;

typedef struct Rotary {
    Value *cos, *sin; /* [batch or 1, 1, sequence, rotated] in the dtype of the computation */
    bool interleaved;
    double
        score_factor; /* what mscale_all_dim makes of the scores, in the models that look at it */
} Rotary;

/* cos and sin at `positions` [batch or 1, sequence], or, with three places, [3, batch, sequence], from rope_parameters or from the older spelling
 * rope_theta / rope_scaling; types default, linear, dynamic, yarn, longrope, llama3, proportional
 * (formulas of modeling_rope_utils.py). An unknown type is an error. */
Rotary model_rotary(Model *m, const RotarySpec *spec, Value *positions);

/* places.c: which of the three `positions` [3, batch, sequence] each of the `pairs` turns with: float32
 * [batch, sequence, pairs]. `sections` is mrope_section, or NULL. */
Value *rotary_places(Model *m, const RotarySpec *spec, json_t *sections, int64_t pairs,
                     Value *positions);

/* ---- masks ---- */

/* May query i see key j? bool [batch or 1, 1, sequence or 1, keys], or NULL when nothing is hidden. `padding` is model_padding_mask (may be NULL); `window` > 0 hides keys `window` or more
 * positions away (before the query only, when causal). A causal mask without padding and window is
 * NULL too: use is_causal then. */
Value *model_mask(Model *m, Value *padding, bool causal, int64_t window);

/* An additive mask: `bias` (NULL: 0) where `allowed`, elsewhere the lowest number. Unlike a bool mask
 * it lets a row that may see nothing see all keys alike, as eager attention does. */
Value *model_additive_mask(Model *m, Value *allowed, Value *bias);

/* The ALiBi bias [batch or 1, heads, 1, sequence] of the keys that `padding` (may be NULL) keeps, in the
 * dtype of the computation; rounded to bfloat16 on the way when `rounded`. */
Value *model_alibi(Model *m, Value *padding, int64_t heads, bool rounded);

/* A finite number, 0-d, so low that it hides a key as a score or in an additive mask. */
Value *model_lowest(Model *m);

/* Does the configuration's layer_types make this a sliding layer? `otherwise`: the answer when it has
 * no such list. */
bool model_layer_slides(Model *m, int64_t layer, bool otherwise);

/* Is attention with this mask (may be NULL) to be marked as causal? Not in a step on a cache: there the
 * first query is not the first position. */
bool model_is_causal(const Model *m, const Value *mask);

/* The causal mask alone, with a window when `window` > 0: bool [1, 1, sequence, keys]. */
Value *model_causal_mask(Model *m, int64_t window);

/* Are query i and key j of the same sequence, where rows of the batch may hold several? bool
 * [batch or 1, 1, sequence, sequence], or NULL when they cannot. A row is packed when position_ids is
 * an input, attention_mask is not, and no cache is kept: a sequence begins where a position does not
 * follow the one before. */
Value *model_packing_mask(Model *m);

/* ---- relative positions ---- */

typedef struct RelativeBuckets {
    int64_t buckets;
    int64_t reach;  /* farther keys share a bucket */
    bool both_ways; /* keys after the query have half of the buckets, else none */
} RelativeBuckets;

/* What is added to the scores, [1, heads, sequence, keys], from `table` [buckets or more, heads]. */
Value *model_relative_bias(Model *m, const RelativeBuckets *spec, Value *table);

/* ---- heads of attention ---- */

/* [batch, sequence, heads * size] -> [batch, heads, sequence, size], and back. */
Value *model_split_heads(Model *m, Value *x, int64_t heads, int64_t size);
Value *model_merge_heads(Model *m, Value *x);

/* ---- heads of models ---- */

/* The outputs of a decoder for m->task, from the normalized hidden states. `embedding` is the input
 * embedding, `scale_logits` (may be NULL) is applied to the logits of ForCausalLM. Cache layers are
 * added where the class returns them, and use_cache is not false. */
typedef struct DecoderHead {
    Value *ids; /* may be NULL */
    Value *embedding;
    const char *output_name; /* "lm_head.weight" */
    const char *output_bias; /* "lm_head.bias" or NULL */
    Value *(*scale_logits)(Model *m, Value *logits);
    const CacheLayer *cache;
    int64_t layers;
    const char *token_classifier; /* NULL: "score" */
    bool cross_attentions;        /* the outputs are ...AndCrossAttentions, without any */
    bool experts;                 /* the outputs are Moe... */
    bool pads;                    /* pad_token_id is `pad` when the key is absent; else null */
    int64_t pad;
} DecoderHead;

/* start_logits and end_logits from the logits [batch, sequence, 2]. */
void model_output_answers(Model *m, Value *logits);

void model_decoder_outputs(Model *m, Value *hidden, const DecoderHead *head);

#endif
