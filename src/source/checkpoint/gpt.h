/* What the GPT-like decoders share: one description, one layer.
 *
 * A model type is a GptTraits (names and defaults, constant) and a builder, which reads its options
 * into a GptDecoder, embeds the input, calls gpt_layers and hands the result to gpt_outputs. */
#ifndef SOURCE_GPT_H
#define SOURCE_GPT_H

#include "source/checkpoint/attention.h"

/* A size in the configuration: its key, another spelling that wins over it (NULL: none), and what it
 * is when absent. */
typedef struct GptSize {
    const char *key, *alias;
    int64_t otherwise;
} GptSize;

typedef struct GptTraits {
    GptSize hidden, layers, heads;
    GptSize inner;     /* absent and 0: four times hidden */
    GptSize positions; /* learned positions */
    int64_t vocabulary;
    const char *activation_key, *activation;
    const char *eps_key;
    const char *const *ignored; /* configuration keys that the class does not read */

    const char *embedding;      /* "wte.weight" */
    const char *layer;          /* layer i is "<layer>.i" */
    const char *attention_norm; /* within the layer, like the following */
    const char *attention;      /* the module of the next two */
    const char *fused;          /* of queries, keys, values; NULL: q_proj, k_proj, v_proj */
    const char *output;         /* of the heads */
    const char *mlp_norm;       /* NULL: the MLP reads what attention reads */
    const char *mlp;            /* the module of the next two; NULL: the layer itself */
    const char *up, *down;
    const char *logits, *old_logits; /* the projection to logits, and its older name */
    bool logits_bias;                /* of that projection */
    bool untied;                     /* tie_word_embeddings is false when absent */
    bool transposed;                 /* weights are [in, out] (Conv1D) */
    bool token_types;                /* token_type_ids are embedded like input_ids */
    bool cross_attentions;           /* as in DecoderHead */
    bool pads;                       /* pad_token_id is `pad` when absent */
    int64_t pad;
} GptTraits;

typedef enum GptOrder {
    GPT_PRE,            /* x += attn(norm(x)); x += mlp(norm(x)) */
    GPT_PRE_NORMALIZED, /* x = norm(x); x += attn(x); x = norm(x); x += mlp(x) */
    GPT_POST,           /* x = norm(x + attn(x)); x = norm(x + mlp(x)) */
    GPT_PARALLEL,       /* x += attn(norm(x)) + mlp(norm(x)) */
} GptOrder;

/* How a fused projection is laid out: `groups` times (`queries` rows of queries, then `keys` rows of
 * keys and as many of values), each row of `size` features. */
typedef struct GptFused {
    int64_t groups, queries, keys, size;
    bool values_first; /* values before keys */
} GptFused;

typedef struct GptDecoder {
    Model *m;
    const GptTraits *traits;
    int64_t hidden, layers, heads, inner, vocabulary, head_dim;
    int64_t kv_heads;
    GptFused fused;
    double eps, scale;
    const char *activation, *attention_norm, *mlp_norm;
    GptOrder order;
    bool affine; /* norms have weights */
    bool qkv_bias, output_bias, up_bias, down_bias;
    bool divides_by_layer; /* the scale of layer i is scale / (i + 1) */
    bool caches_repeated;  /* keys and values are repeated for every query head in the cache */
    Rotary rotary;         /* cos is NULL: none */
    Value *embedding, *ids;
    Value *mask[2];       /* of other layers and of local ones; NULL: causal */
    unsigned char *local; /* per layer; NULL: none */
    CacheLayer *cache;
} GptDecoder;

/* The sizes of the configuration, and for the rest what most types have: the MLP's inner size 4 *
 * hidden, biases everywhere, queries, keys and values one after the other, GPT_PRE. Check
 * build_ok(&m->b) before relying on a size. */
GptDecoder gpt_start(Model *m);

/* The size, between 1 and 2^30. */
int64_t gpt_size(Model *m, const GptSize *size);

/* input_ids embedded (d->ids and d->embedding are set), and token types when the type has them. */
Value *gpt_embed(GptDecoder *d, int64_t features);

/* A learned table of `rows` positions called `name`, at `positions` [batch or 1, sequence]. */
Value *gpt_position_embedding(GptDecoder *d, const char *name, int64_t rows, Value *positions);

/* LayerNorm called `name`, with weight and bias when d->affine. */
Value *gpt_norm(GptDecoder *d, Value *x, const char *name);

/* All layers: x [batch, sequence, hidden]. */
Value *gpt_layers(GptDecoder *d, Value *x);

/* The outputs for the task, from the normalized hidden states. */
void gpt_outputs(GptDecoder *d, Value *hidden);

/* ---- model types outside gpt.c ---- */

extern const GptTraits gpt_neox_traits, bloom_traits, falcon_traits; /* megatron.c */
void build_gpt_neox(Model *m);
void build_bloom(Model *m);
void build_falcon(Model *m);

extern const GptTraits opt_traits; /* opt.c */
void build_opt(Model *m);

#endif
