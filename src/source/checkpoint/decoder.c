/* Decoders with rotary positions: llama and its relatives.
 *
 * They differ in a dozen choices (kind of norm, biases, order of norms and residuals, gating, rotation,
 * windows, multipliers); each model type is a row of traits that names its choices, and one builder
 * reads them. */
#include "source/checkpoint/attention.h"
#include "source/checkpoint/families.h"
#include "base/dtype.h"

#include <math.h>
#include <string.h>

typedef enum NormKind {
    NORM_RMS,          /* x / rms(x) * w */
    NORM_RMS_PLUS_ONE, /* x / rms(x) * (1 + w), in float32 */
    NORM_LAYER,        /* LayerNorm with weight and bias */
    NORM_LAYER_SCALE,  /* LayerNorm with weight alone */
} NormKind;

typedef enum QkNorm {
    QK_NONE,
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
    WINDOW_ALWAYS,    /* every layer, when sliding_window is set */
    WINDOW_SWITCH,    /* use_sliding_window; layer_types, or layers from max_window_layers on */
    WINDOW_UNROTATED, /* use_sliding_window; layer_types, or the layers that do not rotate */
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
    double theta, partial;
    bool interleaved;
    WindowRule windows;
    int64_t window;           /* default of sliding_window */
    int64_t pattern;          /* WINDOW_PATTERN: every n-th layer is full */
    double softcap_attention; /* default of attn_logit_softcapping; 0: the class ignores the key */
    double softcap_logits;    /* default of final_logit_softcapping; 0: off */
    double query_scalar;      /* default of query_pre_attn_scalar; 0: the class has no such key */
    double logit_scale;       /* default of logit_scale; 0: the class has no such key */
    bool multipliers;         /* Granite's factors on embedding, attention, residuals and logits */
    bool parallel_option;     /* use_parallel_residual makes the block parallel */
    bool skips_rotation;      /* no_rope_layers, or every no_rope_layer_interval-th layer */
    bool rotary_by_type;      /* sliding layers have rope parameters of their own */
} DecoderTraits;

typedef struct Decoder {
    Model *m;
    const DecoderTraits *traits;
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim;
    double eps, scale, softcap;
    double residual; /* multiplier of what a block adds */
    bool qkv_bias, output_bias, mlp_bias, qk_norm;
    BlockKind block;
    const char *activation;
    int64_t window;
    unsigned char *sliding, *rotated; /* per layer */
    Rotary rotary[2];                 /* of full and of sliding layers */
    Value *mask[2];
    bool is_causal[2];
    CacheLayer *cache;
} Decoder;

/* ---- configuration ---- */

static bool layer_type_is_sliding(Model *m, const json_t *type) {
    const char *name = json_string_value(type);
    if (name && strcmp(name, "sliding_attention") == 0) return true;
    if (!name || strcmp(name, "full_attention") != 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the layer type \"%s\" is not supported (expected full_attention or "
                   "sliding_attention)",
                   m->config_path, name ? name : json_kind(type));
    }
    return false;
}

/* Is layer i sliding when layer_types does not say so? */
static bool slides_by_default(const Decoder *d, int64_t i, int64_t first, int64_t pattern) {
    switch (d->traits->windows) {
    case WINDOW_NEVER: return false;
    case WINDOW_ALWAYS: return true;
    case WINDOW_SWITCH: return i >= first;
    case WINDOW_UNROTATED: return !d->rotated[i];
    case WINDOW_PATTERN: return pattern > 0 && (i + 1) % pattern != 0;
    }
    return false;
}

/* Which layers see a window only. */
static void read_windows(Decoder *d) {
    Model *m = d->m;
    WindowRule rule = d->traits->windows;
    int64_t first = 0, pattern = 0;
    if (rule == WINDOW_NEVER) return;
    d->window = config_is_null(m, "sliding_window")
                    ? 0
                    : config_int_or(m, "sliding_window", d->traits->window);
    if (rule == WINDOW_SWITCH || rule == WINDOW_UNROTATED) {
        if (!config_bool_or(m, "use_sliding_window", false)) d->window = 0;
    }
    if (rule == WINDOW_SWITCH) first = config_int_or(m, "max_window_layers", 28);
    if (rule == WINDOW_UNROTATED) config_accept(m, "max_window_layers");
    if (rule == WINDOW_PATTERN)
        pattern = config_int_or(m, "sliding_window_pattern", d->traits->pattern);
    json_t *types = rule == WINDOW_ALWAYS ? NULL : config_get(m, "layer_types");
    if (types && json_array_size(types) < (size_t)d->layers) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: \"layer_types\" has %zu entries for %lld layers",
                   m->config_path, json_array_size(types), (long long)d->layers);
        return;
    }
    for (int64_t i = 0; i < d->layers; i++) {
        bool sliding = types ? layer_type_is_sliding(m, json_array_get(types, (size_t)i))
                             : slides_by_default(d, i, first, pattern);
        d->sliding[i] = sliding && d->window > 0;
    }
}

/* Which layers rotate. */
static void read_rotated_layers(Decoder *d) {
    memset(d->rotated, 1, (size_t)d->layers);
    if (!d->traits->skips_rotation) return;
    json_t *list = config_get(d->m, "no_rope_layers");
    int64_t interval = config_int_or(d->m, "no_rope_layer_interval", 4);
    for (int64_t i = 0; i < d->layers; i++) {
        json_t *entry = json_array_get(list, (size_t)i);
        if (entry)
            d->rotated[i] = json_is_true(entry) || json_integer_value(entry) != 0;
        else if (interval > 0)
            d->rotated[i] = (i + 1) % interval != 0;
    }
}

static double softcap(Model *m, const char *key, double otherwise) {
    return config_is_null(m, key) ? 0 : config_float_or(m, key, otherwise);
}

static void read_shape(Decoder *d) {
    Model *m = d->m;
    d->hidden = config_int(m, "hidden_size");
    d->intermediate = config_int(m, "intermediate_size");
    d->layers = config_int(m, "num_hidden_layers");
    d->heads = config_int(m, "num_attention_heads");
    int64_t kv_heads = d->traits->kv_heads ? d->traits->kv_heads : d->heads;
    d->kv_heads = config_int_or(m, "num_key_value_heads", kv_heads);
    int64_t head_dim = d->traits->head_dim ? d->traits->head_dim : d->hidden / d->heads;
    d->head_dim = config_int_or(m, "head_dim", head_dim);
    if (d->layers > CACHE_MAX_LAYERS || d->kv_heads < 1 || d->heads % d->kv_heads != 0 ||
        d->head_dim < 1) {
        build_fail(
            &m->b, FERRY_BAD_FORMAT,
            "%s: %lld layers, %lld attention heads, %lld key/value heads of size %lld do not "
            "fit together",
            m->config_path, (long long)d->layers, (long long)d->heads, (long long)d->kv_heads,
            (long long)d->head_dim);
        d->layers = d->kv_heads = d->heads = 1;
    }
}

static void read_options(Decoder *d) {
    Model *m = d->m;
    const DecoderTraits *traits = d->traits;
    double head_scale = 1 / sqrt((double)d->head_dim);
    d->eps = config_float_or(m, traits->eps_key, traits->eps);
    d->activation = config_string_or(m, traits->activation_key, traits->activation);
    d->qkv_bias =
        traits->bias_key ? config_bool_or(m, traits->bias_key, traits->bias) : traits->bias;
    d->output_bias = traits->output_bias && d->qkv_bias;
    d->mlp_bias = traits->mlp_bias_key && config_bool_or(m, traits->mlp_bias_key, traits->bias);
    d->block = traits->block;
    if (traits->parallel_option && config_bool_or(m, "use_parallel_residual", false)) {
        d->block = BLOCK_PARALLEL;
    }
    d->qk_norm = traits->qk_norm == QK_SHARED || traits->qk_norm == QK_PROJECTION;
    if (traits->qk_norm == QK_MATRIX) d->qk_norm = config_bool_or(m, "use_qk_norm", false);
    if (traits->qk_norm == QK_LIST) d->qk_norm = config_bool_or(m, "qk_layernorm", false);
    d->scale = traits->multipliers ? config_float_or(m, "attention_multiplier", 1) : head_scale;
    if (traits->query_scalar) {
        d->scale = 1 / sqrt(config_float_or(m, "query_pre_attn_scalar", traits->query_scalar));
    }
    if (traits->scales_embedding) {
        config_require_bool(m, "use_bidirectional_attention", false);
        /* The first Gemma release wrote "gelu" and meant the tanh approximation. */
        if (strcmp(d->activation, "gelu") == 0) d->activation = "gelu_pytorch_tanh";
    }
    if (traits->softcap_attention) {
        d->softcap = softcap(m, "attn_logit_softcapping", traits->softcap_attention);
    }
    if (traits->query_scalar) config_accept(m, "attn_logit_softcapping");
    d->residual = traits->multipliers ? config_float_or(m, "residual_multiplier", 1) : 1;
    d->sliding = arena_alloc(&m->b.program->arena, (size_t)d->layers);
    d->rotated = arena_alloc(&m->b.program->arena, (size_t)d->layers);
    d->cache = ARENA_ARRAY(&m->b.program->arena, CacheLayer, (size_t)d->layers);
    if (!d->sliding || !d->rotated || !d->cache) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    read_rotated_layers(d);
    read_windows(d);
}

/* ---- parts of a layer ---- */

/* Normalize with the kind of norm of this model; `weight` is given for norms inside attention. */
static Value *apply_norm(Decoder *d, Value *x, Value *weight, Value *bias) {
    Builder *b = &d->m->b;
    switch (d->traits->norm) {
    case NORM_RMS: return build_rms_norm(b, x, weight, d->eps);
    case NORM_RMS_PLUS_ONE: {
        Value *factor = build_scalar(b, OP_ADD_SCALAR, build_to(b, weight, FERRY_F32), 1);
        Value *result = build_rms_norm(b, build_to(b, x, FERRY_F32), factor, d->eps);
        return build_to(b, result, d->m->dtype);
    }
    default: return build_layer_norm(b, x, weight, bias, d->eps);
    }
}

static Value *norm(Decoder *d, Value *x, const char *name) {
    Value *weight = model_vector(d->m, d->hidden, "%s.weight", name);
    bool has_bias = d->traits->norm == NORM_LAYER;
    return apply_norm(d, x, weight,
                      has_bias ? model_vector(d->m, d->hidden, "%s.bias", name) : NULL);
}

/* The weights [heads, 1, size] of a LayerNorm per head. */
static Value *per_head_weight(Decoder *d, int64_t layer, const char *which, int64_t heads) {
    Builder *b = &d->m->b;
    if (d->traits->qk_norm == QK_MATRIX) {
        Value *matrix =
            model_matrix(d->m, heads, d->head_dim, "layers.%lld.self_attn.%s_norm.weight",
                         (long long)layer, which);
        return build_unsqueeze(b, matrix, 1);
    }
    Value **rows = ARENA_ARRAY(&b->program->arena, Value *, (size_t)heads);
    if (!rows) return build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory");
    for (int64_t h = 0; h < heads; h++) {
        Value *row =
            model_vector(d->m, d->head_dim, "layers.%lld.self_attn.%s_layernorm.norms.%lld.weight",
                         (long long)layer, which, (long long)h);
        rows[h] = build_unsqueeze(b, build_unsqueeze(b, row, 0), 0);
    }
    return build_cat(b, rows, (uint32_t)heads, 0);
}

/* Norms of queries or keys; `x` is [batch, heads, sequence, size]. */
static Value *norm_heads(Decoder *d, Value *x, int64_t layer, const char *which, int64_t heads) {
    if (!d->qk_norm || d->traits->qk_norm == QK_PROJECTION) return x;
    if (d->traits->qk_norm == QK_SHARED) {
        Value *weight = model_vector(d->m, d->head_dim, "layers.%lld.self_attn.%s_norm.weight",
                                     (long long)layer, which);
        return apply_norm(d, x, weight, NULL);
    }
    Value *normed = build_layer_norm(&d->m->b, x, NULL, NULL, d->eps);
    return build_mul(&d->m->b, normed, per_head_weight(d, layer, which, heads));
}

typedef struct Projections {
    Value *query, *key, *value; /* [batch, heads, sequence, size] */
} Projections;

/* One separate projection, with the norm that goes over all of it. */
static Value *project(Decoder *d, Value *x, int64_t layer, const char *which, int64_t heads) {
    int64_t width = heads * d->head_dim;
    Value *result = model_linear(d->m, x, width, d->qkv_bias, "layers.%lld.self_attn.%s_proj",
                                 (long long)layer, which);
    if (d->traits->qk_norm == QK_PROJECTION && *which != 'v') {
        Value *weight = model_vector(d->m, width, "layers.%lld.self_attn.%s_norm.weight",
                                     (long long)layer, which);
        result = apply_norm(d, result, weight, NULL);
    }
    return model_split_heads(d->m, result, heads, d->head_dim);
}

static Projections project_all(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    if (!d->traits->fused) {
        return (Projections){project(d, x, layer, "q", d->heads),
                             project(d, x, layer, "k", d->kv_heads),
                             project(d, x, layer, "v", d->kv_heads)};
    }
    const int64_t sizes[3] = {d->heads * d->head_dim, d->kv_heads * d->head_dim,
                              d->kv_heads * d->head_dim};
    Value *all = model_linear(m, x, sizes[0] + sizes[1] + sizes[2], d->qkv_bias,
                              "layers.%lld.self_attn.qkv_proj", (long long)layer);
    Value *parts[3];
    build_split(&m->b, all, sizes, 3, -1, parts);
    return (Projections){model_split_heads(m, parts[0], d->heads, d->head_dim),
                         model_split_heads(m, parts[1], d->kv_heads, d->head_dim),
                         model_split_heads(m, parts[2], d->kv_heads, d->head_dim)};
}

/* Attention whose scores are capped: cap * tanh(scores / cap), which no fused operation does. */
static Value *capped_attention(Decoder *d, const Projections *p, Value *mask) {
    Builder *b = &d->m->b;
    int64_t groups = d->heads / d->kv_heads;
    const Sym *batch = build_dim(b, p->query, 0), *length = build_dim(b, p->query, 2);
    const Sym *grouped[4] = {batch, build_const(b, d->kv_heads),
                             sym_mul(&b->program->symbols, build_const(b, groups), length),
                             build_const(b, d->head_dim)};
    const Sym *scored[4] = {batch, build_const(b, d->heads), length, length};
    const Sym *by_group[4] = {batch, grouped[1], grouped[2], length};
    const Sym *headed[4] = {batch, scored[1], length, grouped[3]};
    Value *query = build_view(b, p->query, grouped, 4);
    Value *scores = build_matmul(b, query, build_transpose(b, p->key, 2, 3));
    scores = build_scalar(b, OP_MUL_SCALAR, scores, d->scale / d->softcap);
    scores = build_scalar(b, OP_MUL_SCALAR, build_unary(b, OP_TANH, scores), d->softcap);
    scores = build_view(b, scores, scored, 4);
    Value *lowest = build_full(
        b, NULL, 0, d->m->dtype == FERRY_F16 ? -65504.0 : -3.3895313892515355e38, d->m->dtype);
    Value *weights = build_softmax(b, build_where(b, mask, scores, lowest), -1);
    Value *context = build_matmul(b, build_view(b, weights, by_group, 4), p->value);
    return build_view(b, context, headed, 4);
}

static Value *attention(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    int kind = d->sliding[layer];
    const char *outer =
        build_scope(&m->b, "%s.layers.%lld.self_attn", m->family->base_prefix, (long long)layer);
    Projections p = project_all(d, x, layer);
    p.query = norm_heads(d, p.query, layer, "q", d->heads);
    p.key = norm_heads(d, p.key, layer, "k", d->kv_heads);
    if (d->rotated[layer]) {
        const Rotary *rotary = &d->rotary[kind];
        p.query = build_rotary(&m->b, p.query, rotary->cos, rotary->sin, rotary->interleaved);
        p.key = build_rotary(&m->b, p.key, rotary->cos, rotary->sin, rotary->interleaved);
    }
    d->cache[layer] = (CacheLayer){p.key, p.value, kind ? d->window : 0};
    Value *context = d->softcap ? capped_attention(d, &p, d->mask[kind])
                                : build_attention(&m->b, p.query, p.key, p.value, d->mask[kind],
                                                  d->is_causal[kind], d->scale);
    Value *result = model_linear(m, model_merge_heads(m, context), d->hidden, d->output_bias,
                                 "layers.%lld.self_attn.o_proj", (long long)layer);
    m->b.scope = outer;
    return result;
}

static Value *mlp(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    Builder *b = &m->b;
    long long i = layer;
    const char *outer = build_scope(b, "%s.layers.%lld.mlp", m->family->base_prefix, i);
    Value *inner;
    const char *down = "down_proj";
    if (d->traits->plain_mlp) {
        down = "c_proj";
        inner = model_linear(m, x, d->intermediate, d->mlp_bias, "layers.%lld.mlp.c_fc", i);
        inner = model_activation(m, inner, d->activation);
    } else {
        Value *parts[2];
        if (d->traits->fused) {
            const int64_t sizes[2] = {d->intermediate, d->intermediate};
            Value *both = model_linear(m, x, 2 * d->intermediate, d->mlp_bias,
                                       "layers.%lld.mlp.gate_up_proj", i);
            build_split(b, both, sizes, 2, -1, parts);
        } else {
            parts[0] =
                model_linear(m, x, d->intermediate, d->mlp_bias, "layers.%lld.mlp.gate_proj", i);
            parts[1] =
                model_linear(m, x, d->intermediate, d->mlp_bias, "layers.%lld.mlp.up_proj", i);
        }
        inner = build_mul(b, model_activation(m, parts[0], d->activation), parts[1]);
    }
    Value *result = model_linear(m, inner, d->hidden, d->mlp_bias, "layers.%lld.mlp.%s", i, down);
    b->scope = outer;
    return result;
}

static Value *add_residual(Decoder *d, Value *x, Value *added) {
    if (d->residual != 1) added = build_scalar(&d->m->b, OP_MUL_SCALAR, added, d->residual);
    return build_add(&d->m->b, x, added);
}

static Value *layer_norm(Decoder *d, Value *x, int64_t layer, const char *name) {
    return norm(d, x,
                arena_format(&d->m->b.program->arena, "layers.%lld.%s", (long long)layer, name));
}

static Value *decoder_layer(Decoder *d, Value *x, int64_t layer) {
    Value *added;
    switch (d->block) {
    case BLOCK_PRE:
        x = add_residual(d, x, attention(d, layer_norm(d, x, layer, "input_layernorm"), layer));
        added = mlp(d, layer_norm(d, x, layer, "post_attention_layernorm"), layer);
        return add_residual(d, x, added);
    case BLOCK_POST:
        added = layer_norm(d, attention(d, x, layer), layer, "post_attention_layernorm");
        x = build_add(&d->m->b, x, added);
        added = layer_norm(d, mlp(d, x, layer), layer, "post_feedforward_layernorm");
        return build_add(&d->m->b, x, added);
    case BLOCK_SANDWICH:
        added = attention(d, layer_norm(d, x, layer, "input_layernorm"), layer);
        x = build_add(&d->m->b, x, layer_norm(d, added, layer, "post_attention_layernorm"));
        added = mlp(d, layer_norm(d, x, layer, "pre_feedforward_layernorm"), layer);
        return build_add(&d->m->b, x, layer_norm(d, added, layer, "post_feedforward_layernorm"));
    case BLOCK_PARALLEL: {
        Value *normed = layer_norm(d, x, layer, "input_layernorm");
        added = attention(d, normed, layer);
        return build_add(&d->m->b, build_add(&d->m->b, x, added), mlp(d, normed, layer));
    }
    }
    return x;
}

/* ---- the whole model ---- */

/* A factor rounded to the dtype of the computation, as a torch buffer of that dtype holds it. */
static double rounded(double factor, ferry_dtype dtype) {
    unsigned char bytes[8];
    dtype_convert(FERRY_F64, &factor, dtype, bytes, 1);
    dtype_convert(dtype, bytes, FERRY_F64, &factor, 1);
    return factor;
}

static Value *scale_logits(Model *m, Value *logits) {
    const DecoderTraits *traits = m->family->traits;
    double cap =
        traits->query_scalar ? softcap(m, "final_logit_softcapping", traits->softcap_logits) : 0;
    double divisor = traits->multipliers ? config_float_or(m, "logits_scaling", 1) : 1;
    double factor =
        traits->logit_scale ? config_float_or(m, "logit_scale", traits->logit_scale) : 1;
    if (divisor != 1) logits = build_scalar(&m->b, OP_DIV_SCALAR, logits, divisor);
    if (factor != 1) logits = build_scalar(&m->b, OP_MUL_SCALAR, logits, factor);
    if (cap == 0) return logits;
    logits = build_unary(&m->b, OP_TANH, build_scalar(&m->b, OP_DIV_SCALAR, logits, cap));
    return build_scalar(&m->b, OP_MUL_SCALAR, logits, cap);
}

static void prepare_attention(Decoder *d) {
    Model *m = d->m;
    Value *padding = model_padding_mask(m);
    Value *positions = model_positions(m);
    const RotarySpec specs[2] = {
        {.layer_type = "full_attention",
         .head_dim = d->head_dim,
         .theta = d->traits->theta,
         .partial = d->traits->partial,
         .interleaved = d->traits->interleaved},
        {.layer_type = "sliding_attention",
         .head_dim = d->head_dim,
         .theta = 10000,
         .partial = d->traits->partial,
         .theta_key = "rope_local_base_freq",
         .ignore_scaling = true},
    };
    bool used[2] = {false, false};
    for (int64_t i = 0; i < d->layers; i++) used[d->sliding[i]] = true;
    for (int kind = 0; kind < 2; kind++) {
        if (!used[kind]) continue;
        d->mask[kind] = model_mask(m, padding, true, kind ? d->window : 0);
        if (!d->mask[kind] && d->softcap) d->mask[kind] = model_causal_mask(m);
        d->is_causal[kind] = !d->mask[kind];
        bool shared = kind == 1 && used[0] && !d->traits->rotary_by_type;
        const RotarySpec *spec = &specs[d->traits->rotary_by_type ? kind : 0];
        d->rotary[kind] = shared ? d->rotary[0] : model_rotary(m, spec, positions);
    }
    if (!d->traits->rotary_by_type) return;
    config_accept(m, "rope_local_base_freq");
    config_accept(m, "rope_theta");
    config_accept(m, "rope_scaling");
}

static void build_decoder(Model *m) {
    Decoder d = {.m = m, .traits = m->family->traits};
    read_shape(&d);
    read_options(&d);
    if (!build_ok(&m->b)) return;
    int64_t vocabulary = config_int(m, "vocab_size");
    Value *embedding = model_matrix(m, vocabulary, d.hidden, "embed_tokens.weight");
    Value *ids;
    Value *x = model_embed_inputs(m, embedding, &ids);
    if (d.traits->scales_embedding && ids) {
        x = build_scalar(&m->b, OP_MUL_SCALAR, x, rounded(sqrt((double)d.hidden), m->dtype));
    }
    double multiplier = d.traits->multipliers ? config_float_or(m, "embedding_multiplier", 1) : 1;
    if (multiplier != 1) x = build_scalar(&m->b, OP_MUL_SCALAR, x, multiplier);
    if (!build_ok(&m->b)) return;
    prepare_attention(&d);
    for (int64_t i = 0; i < d.layers && build_ok(&m->b); i++) {
        build_scope(&m->b, "%s.layers.%lld", m->family->base_prefix, (long long)i);
        x = decoder_layer(&d, x, i);
    }
    build_scope(&m->b, "%s.norm", m->family->base_prefix);
    x = norm(&d, x, "norm");
    m->b.scope = "";
    const DecoderHead head = {.ids = ids,
                              .embedding = embedding,
                              .output_name = "lm_head.weight",
                              .scale_logits = scale_logits,
                              .cache = d.cache,
                              .layers = d.layers};
    model_decoder_outputs(m, x, &head);
    if (m->task == TASK_CAUSAL_LM) return;
    /* The other heads have no logits to scale. */
    config_accept(m, "final_logit_softcapping");
    config_accept(m, "logits_scaling");
    config_accept(m, "logit_scale");
}

/* ---- model types ---- */

#define LLAMA_LIKE_ACT                                                                             \
    .activation_key = "hidden_act", .activation = "silu", .eps_key = "rms_norm_eps", .eps = 1e-6,  \
    .partial = 1
#define LLAMA_LIKE LLAMA_LIKE_ACT, .theta = 10000

static const DecoderTraits llama = {LLAMA_LIKE, .bias_key = "attention_bias", .output_bias = true,
                                    .mlp_bias_key = "mlp_bias"};
static const DecoderTraits granite = {LLAMA_LIKE, .bias_key = "attention_bias", .output_bias = true,
                                      .mlp_bias_key = "mlp_bias", .multipliers = true};
static const DecoderTraits mistral = {LLAMA_LIKE, .kv_heads = 8, .windows = WINDOW_ALWAYS,
                                      .window = 4096};
static const DecoderTraits qwen2 = {LLAMA_LIKE, .bias = true, .kv_heads = 0,
                                    .windows = WINDOW_SWITCH, .window = 4096};
static const DecoderTraits qwen3 = {
    LLAMA_LIKE,      .bias_key = "attention_bias", .output_bias = true, .qk_norm = QK_SHARED,
    .head_dim = 128, .windows = WINDOW_SWITCH,     .window = 4096};
static const DecoderTraits smollm3 = {LLAMA_LIKE_ACT,
                                      .theta = 2000000,
                                      .bias_key = "attention_bias",
                                      .output_bias = true,
                                      .mlp_bias_key = "mlp_bias",
                                      .kv_heads = 4,
                                      .windows = WINDOW_UNROTATED,
                                      .skips_rotation = true};
static const DecoderTraits phi3 = {LLAMA_LIKE, .fused = true, .windows = WINDOW_ALWAYS};
static const DecoderTraits olmo2 = {LLAMA_LIKE, .bias_key = "attention_bias", .output_bias = true,
                                    .qk_norm = QK_PROJECTION, .block = BLOCK_POST};

#define GEMMA_LIKE                                                                                 \
    .activation = "gelu_pytorch_tanh", .norm = NORM_RMS_PLUS_ONE, .eps_key = "rms_norm_eps",       \
    .eps = 1e-6, .bias_key = "attention_bias", .output_bias = true, .scales_embedding = true,      \
    .head_dim = 256, .partial = 1

static const DecoderTraits gemma = {GEMMA_LIKE, .activation_key = "hidden_act", .theta = 10000};
static const DecoderTraits gemma2 = {GEMMA_LIKE,
                                     .activation_key = "hidden_activation",
                                     .theta = 10000,
                                     .kv_heads = 4,
                                     .block = BLOCK_SANDWICH,
                                     .windows = WINDOW_PATTERN,
                                     .window = 4096,
                                     .pattern = 2,
                                     .softcap_attention = 50,
                                     .softcap_logits = 30,
                                     .query_scalar = 256};
static const DecoderTraits gemma3 = {GEMMA_LIKE,
                                     .activation_key = "hidden_activation",
                                     .theta = 1000000,
                                     .kv_heads = 4,
                                     .block = BLOCK_SANDWICH,
                                     .qk_norm = QK_SHARED,
                                     .windows = WINDOW_PATTERN,
                                     .window = 4096,
                                     .pattern = 6,
                                     .query_scalar = 256,
                                     .rotary_by_type = true};
static const DecoderTraits starcoder2 = {.activation_key = "hidden_act",
                                         .activation = "gelu_pytorch_tanh",
                                         .norm = NORM_LAYER,
                                         .eps_key = "norm_epsilon",
                                         .eps = 1e-5,
                                         .bias_key = "use_bias",
                                         .bias = true,
                                         .output_bias = true,
                                         .mlp_bias_key = "use_bias",
                                         .plain_mlp = true,
                                         .kv_heads = 2,
                                         .theta = 10000,
                                         .partial = 1,
                                         .windows = WINDOW_ALWAYS};
static const DecoderTraits stablelm = {.activation_key = "hidden_act",
                                       .activation = "silu",
                                       .norm = NORM_LAYER,
                                       .eps_key = "layer_norm_eps",
                                       .eps = 1e-5,
                                       .bias_key = "use_qkv_bias",
                                       .qk_norm = QK_LIST,
                                       .theta = 10000,
                                       .partial = 0.25,
                                       .parallel_option = true};
static const DecoderTraits cohere = {.activation_key = "hidden_act",
                                     .activation = "silu",
                                     .norm = NORM_LAYER_SCALE,
                                     .eps_key = "layer_norm_eps",
                                     .eps = 1e-5,
                                     .bias_key = "attention_bias",
                                     .output_bias = true,
                                     .qk_norm = QK_MATRIX,
                                     .block = BLOCK_PARALLEL,
                                     .theta = 500000,
                                     .partial = 1,
                                     .interleaved = true,
                                     .logit_scale = 0.0625};

enum {
    BASE = 1u << TASK_FEATURES | 1u << TASK_CAUSAL_LM,
    SEQUENCE = 1u << TASK_SEQUENCE_CLASSIFICATION,
    TOKENS = 1u << TASK_TOKEN_CLASSIFICATION,
    ANSWERS = 1u << TASK_QUESTION_ANSWERING,
};

const Family decoder_families[] = {
    {"llama", "Llama", "model", build_decoder, BASE | SEQUENCE | TOKENS | ANSWERS, &llama},
    {"mistral", "Mistral", "model", build_decoder, BASE | SEQUENCE | TOKENS | ANSWERS, &mistral},
    {"qwen2", "Qwen2", "model", build_decoder, BASE | SEQUENCE | TOKENS | ANSWERS, &qwen2},
    {"qwen3", "Qwen3", "model", build_decoder, BASE | SEQUENCE | TOKENS | ANSWERS, &qwen3},
    {"smollm3", "SmolLM3", "model", build_decoder, BASE | SEQUENCE | TOKENS | ANSWERS, &smollm3},
    {"gemma", "Gemma", "model", build_decoder, BASE | SEQUENCE | TOKENS, &gemma},
    {"gemma2", "Gemma2", "model", build_decoder, BASE | SEQUENCE | TOKENS, &gemma2},
    {"gemma3_text", "Gemma3", "model", build_decoder, BASE, &gemma3},
    {"phi3", "Phi3", "model", build_decoder, BASE | SEQUENCE | TOKENS, &phi3},
    {"olmo2", "Olmo2", "model", build_decoder, BASE | SEQUENCE, &olmo2},
    {"granite", "Granite", "model", build_decoder, BASE, &granite},
    {"starcoder2", "Starcoder2", "model", build_decoder, BASE | SEQUENCE | TOKENS, &starcoder2},
    {"stablelm", "StableLm", "model", build_decoder, BASE | SEQUENCE | TOKENS, &stablelm},
    {"cohere", "Cohere", "model", build_decoder, BASE, &cohere},
    {0},
};
