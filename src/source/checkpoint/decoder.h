/* What the files of the rotary decoders share: the traits of a model type, and the model at hand. */
#ifndef SOURCE_DECODER_H
#define SOURCE_DECODER_H

#include "source/checkpoint/attention.h"
#include "source/checkpoint/experts.h"

typedef enum NormKind {
    NORM_RMS,          /* x / rms(x) * w */
    NORM_RMS_PLUS_ONE, /* x / rms(x) * (1 + w), in float32 */
    NORM_LAYER,        /* LayerNorm with weight and bias */
    NORM_LAYER_SCALE,  /* LayerNorm with weight alone */
} NormKind;

typedef enum QkNorm {
    QK_NONE,
    QK_OPTION,     /* the same as the next, when use_qk_norm */
    QK_SHARED,     /* one norm of head size for all heads: q_norm.weight [size] */
    QK_PROJECTION, /* one norm over the whole projection: q_norm.weight [heads * size] */
    QK_MATRIX,     /* LayerNorm per head: q_norm.weight [heads, size], when use_qk_norm */
    QK_LIST,       /* LayerNorm per head: q_layernorm.norms.N.weight [size], when qk_layernorm */
} QkNorm;

typedef enum BlockKind {
    BLOCK_PRE,      /* x += attn(norm(x)); x += mlp(norm(x)) */
    BLOCK_POST,     /* x += norm(attn(x)); x += norm(mlp(x)) */
    BLOCK_SANDWICH, /* x += norm(attn(norm(x))); x += norm(mlp(norm(x))) */
    BLOCK_PARALLEL, /* x += attn(norm(x)) + mlp(norm(x)) */
} BlockKind;

typedef enum WindowRule {
    WINDOW_NEVER,
    WINDOW_ALWAYS, /* every layer, when sliding_window is set */
    WINDOW_OPTION, /* every layer, with use_sliding_window */
    WINDOW_SWITCH, /* use_sliding_window; layer_types, or layers from max_window_layers on */
    WINDOW_EARLY, /* use_sliding_window; layer_types, or every other of the first max_window_layers */
    WINDOW_UNROTATED, /* layer_types, or with use_sliding_window the layers that do not rotate */
    WINDOW_PATTERN,   /* layer_types, or all but every n-th layer */
} WindowRule;

typedef struct DecoderTraits {
    const char *activation_key, *activation;
    NormKind norm;
    const char *eps_key;
    double eps;
    const char *bias_key; /* biases of q, k, v; NULL: `bias` decides */
    bool bias;
    bool output_bias;         /* o_proj follows the biases of q, k, v */
    const char *mlp_bias_key; /* NULL: none */
    QkNorm qk_norm;
    BlockKind block;
    bool fused;            /* qkv_proj and gate_up_proj */
    bool plain_mlp;        /* c_fc, activation, c_proj */
    bool scales_embedding; /* by sqrt(hidden_size) */
    int64_t head_dim;      /* default; 0: hidden_size / heads */
    int64_t kv_heads;      /* default; 0: as many as heads */
    int64_t max_length;    /* default of max_position_embeddings */
    double theta;
    const char *rope; /* rope_parameters, as JSON, of a configuration that has none; NULL: plain */
    double partial;   /* default share of the head that rotates; 0: the whole head, always */
    int64_t trained_length; /* default of original_max_position_embeddings; 0: none */
    bool even_rotation;     /* an odd number of rotated features is not supported */
    bool interleaved;
    PlaceKind places;    /* tokens have a place in time, height and width */
    int64_t sections[3]; /* default of mrope_section */
    bool pads;           /* the default of pad_token_id is `pad`, else null */
    int64_t pad;
    WindowRule windows;
    int64_t window;           /* default of sliding_window */
    int64_t pattern;          /* WINDOW_PATTERN: every n-th layer is full */
    const char *pattern_key;  /* the key for n; NULL: none */
    double softcap_attention; /* default of attn_logit_softcapping; 0: the class ignores the key */
    double softcap_logits;    /* default of final_logit_softcapping; 0: off */
    double query_scalar;      /* default of query_pre_attn_scalar; 0: the class has no such key */
    double logit_scale;       /* default of logit_scale; 0: the class has no such key */
    bool multipliers;         /* Granite's factors on embedding, attention, residuals and logits */
    bool parallel_option;     /* use_parallel_residual makes the block parallel */
    bool skips_rotation;      /* no_rope_layers, or every no_rope_layer_interval-th layer */
    bool rotary_by_type;      /* sliding layers have rope parameters of their own */
    bool gelu_is_tanh;        /* the activation "gelu" means the tanh approximation */
    bool both_ways;           /* use_bidirectional_attention lets queries see later keys */
    const ExpertTraits *experts; /* NULL: none */
    bool latent;                 /* DeepSeek's attention over compressed keys and values */
    bool sinks;                  /* each head has a score more, which no key gets */
} DecoderTraits;

/* Sizes of DeepSeek's attention. */
typedef struct Latent {
    int64_t query_rank;            /* of the compressed queries; 0: they are not */
    int64_t rank;                  /* of the compressed keys and values */
    int64_t plain, rotated, value; /* features of a head: of queries and keys, and of values */
    bool pairs;                    /* neighbouring features rotate, and become halves */
} Latent;

typedef struct Decoder {
    Model *m;
    const DecoderTraits *traits;
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim;
    double eps, scale, softcap;
    double residual; /* multiplier of what a block adds */
    bool qkv_bias, output_bias, mlp_bias, qk_norm, causal;
    BlockKind block;
    const char *activation;
    int64_t window;
    unsigned char *sliding, *rotated; /* per layer */
    Rotary rotary[2];                 /* of full and of sliding layers */
    Value *mask[2];
    bool is_causal[2];
    Value *visual; /* int64 [batch, sequence]: which feature of an image stands there; 0: none */
    CacheLayer *cache;
    Experts *experts; /* NULL: none */
    Latent latent;
} Decoder;

/* The program of a model type, whose family has its traits. */
void decoder_build(Model *m);

/* Is attention built of its parts, because no fused operation does it? */
static inline bool decoder_scores(const Decoder *d) {
    return d->softcap || d->traits->sinks;
}

/* Scale what `ids` (NULL: there are none) were embedded as, where the model does. */
Value *decoder_scale_embedding(Model *m, Value *x, const Value *ids, int64_t hidden);

/* The input embedding [vocabulary, hidden], which a tied checkpoint may hold under the name of the output
 * embedding, DECODER_OUTPUT. */
Value *decoder_embedding(Model *m, int64_t hidden);

#define DECODER_OUTPUT "lm_head.weight"

/* The model types that are only found inside multimodal ones. */
extern const Family decoder_parts[];

/* places.c. Three places of every token [3, batch, sequence], of position_ids [4, batch, sequence], whose
 * first is that of text and not looked at; without it, [1, sequence]: all three are the same. */
Value *decoder_positions(Model *m);

/* x with the features of images that this layer adds: deepstack_visual_embeds.N [patches, hidden] where
 * visual_pos_masks [batch, sequence] is true, in order. */
Value *decoder_add_visual(Decoder *d, Value *x, int64_t layer);

/* One layer: attention and the feed-forward part with their norms and residuals. */
Value *decoder_layer(Decoder *d, Value *x, int64_t layer);

/* Attention with the layer's weights, "layers.N.self_attn.q_proj.weight" and so on. */
Value *decoder_attention(Decoder *d, Value *x, int64_t layer);

/* latent.c: DeepSeek's attention, and what the configuration says of it. */
void latent_read(Decoder *d);
Value *latent_attention(Decoder *d, Value *x, int64_t layer);

/* down(activation(gate(x)) * up(x)) with the projections "<name>.gate_proj" and so on, `size` features
 * inside. */
Value *decoder_mlp(Decoder *d, Value *x, int64_t size, const char *name);

/* The norm of this model type over the hidden features, with the base model's weights "<name>.weight"
 * and "<name>.bias". */
Value *decoder_norm(Decoder *d, Value *x, const char *name);

#endif
