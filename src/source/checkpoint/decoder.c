/* Decoders with rotary positions: llama and its relatives.
 *
 * They differ in a dozen choices (kind of norm, biases, order of norms and residuals, gating, rotation,
 * windows, multipliers); each model type is a row of traits that names its choices, and one builder
 * reads them. */
#include "source/checkpoint/decoder.h"
#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* ---- configuration ---- */

/* Is layer i sliding when layer_types does not say so? */
static bool slides_by_default(const Decoder *d, int64_t i, int64_t first, int64_t pattern) {
    switch (d->traits->windows) {
    case WINDOW_NEVER: return false;
    case WINDOW_ALWAYS:
    case WINDOW_OPTION: return true;
    case WINDOW_SWITCH: return i >= first;
    case WINDOW_EARLY: return i < first && i % 2 == 0;
    case WINDOW_UNROTATED: return !d->rotated[i];
    case WINDOW_PATTERN: return pattern > 0 && (i + 1) % pattern != 0;
    }
    return false;
}

/* Classes that do not look at layer_types have layers of one kind; where the list is given all the
 * same, it must say so, since the cache follows it. */
static void check_layer_types(Decoder *d) {
    for (int64_t i = 0; i < d->layers; i++) {
        if (model_layer_slides(d->m, i, d->sliding[i]) == d->sliding[i]) continue;
        build_fail(&d->m->b, FERRY_UNSUPPORTED,
                   "%s: \"layer_types\" of layer %lld is not supported for model type %s",
                   d->m->config_path, (long long)i, d->m->family->model_type);
        return;
    }
}

/* Which layers see a window only. */
static void read_windows(Decoder *d) {
    Model *m = d->m;
    WindowRule rule = d->traits->windows;
    int64_t first = 0, pattern = d->traits->pattern;
    bool switched = rule >= WINDOW_OPTION && rule <= WINDOW_UNROTATED, on = rule != WINDOW_NEVER;
    if (switched) on = config_bool_or(m, "use_sliding_window", false);
    if (!on && rule != WINDOW_UNROTATED)
        config_accept(m, "sliding_window");
    else if (!config_is_null(m, "sliding_window"))
        d->window = config_size_or(m, "sliding_window", d->traits->window);
    if (!d->causal) d->window = d->window / 2 + 1;
    if (switched) first = config_int_or(m, "max_window_layers", 28);
    if (d->traits->pattern_key) pattern = config_size_or(m, d->traits->pattern_key, pattern);
    for (int64_t i = 0; i < d->layers; i++) {
        bool sliding = on && slides_by_default(d, i, first, pattern);
        if (rule >= WINDOW_SWITCH) sliding = model_layer_slides(m, i, sliding);
        d->sliding[i] = sliding && d->window > 0;
    }
    if (rule < WINDOW_SWITCH) check_layer_types(d);
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
    if (config_is_null(m, "num_key_value_heads")) kv_heads = d->heads;
    d->kv_heads = config_int_or(m, "num_key_value_heads", kv_heads);
    int64_t head_dim = d->traits->head_dim ? d->traits->head_dim : d->hidden / d->heads;
    d->head_dim = config_size_or(m, "head_dim", head_dim);
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
    if (traits->qk_norm == QK_MATRIX || traits->qk_norm == QK_OPTION)
        d->qk_norm = config_bool_or(m, "use_qk_norm", false);
    if (traits->qk_norm == QK_LIST) d->qk_norm = config_bool_or(m, "qk_layernorm", false);
    d->scale = traits->multipliers ? config_float_or(m, "attention_multiplier", 1) : head_scale;
    if (traits->query_scalar) {
        d->scale = 1 / sqrt(config_float_or(m, "query_pre_attn_scalar", traits->query_scalar));
    }
    /* The first Gemma release wrote "gelu" and meant the tanh approximation. */
    if (traits->gelu_is_tanh && !strcmp(d->activation, "gelu")) d->activation = "gelu_pytorch_tanh";
    if (traits->scales_embedding) { /* Gemma renamed the key, and wrote both for a while. */
        config_accept(m, "hidden_act");
        config_accept(m, "hidden_activation");
    }
    d->causal = !traits->both_ways || !config_bool_or(m, "use_bidirectional_attention", false);
    if (!d->causal && m->request->static_cache > 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: \"use_bidirectional_attention\" is true, and a static cache is written "
                   "in order: export with a cache that grows",
                   m->config_path);
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
    if (traits->experts) experts_read(d);
    if (traits->latent) latent_read(d);
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

/* Which keys the queries of full (0) and sliding (1) layers see. */
static void prepare_mask(Decoder *d, int kind, Value *padding, Value *packing) {
    Model *m = d->m;
    Value *mask = model_mask(m, padding, d->causal, kind ? d->window : 0);
    if (!mask && d->causal && (packing || decoder_scores(d))) mask = model_causal_mask(m, 0);
    if (packing) mask = mask ? build_binary(&m->b, OP_AND, mask, packing) : packing;
    d->mask[kind] = mask;
    d->is_causal[kind] = d->causal && model_is_causal(m, mask);
}

static void prepare_attention(Decoder *d) {
    Model *m = d->m;
    const DecoderTraits *traits = d->traits;
    m->masks_by_type = traits->windows >= WINDOW_SWITCH;
    Value *padding = model_padding_mask(m);
    Value *positions = traits->places ? decoder_positions(m) : model_positions(m);
    Value *packing = padding ? NULL : model_packing_mask(m);
    const RotarySpec spec = {
        .head_dim = d->head_dim,
        .theta = traits->theta,
        .partial = traits->partial ? traits->partial : 1,
        .whole = !traits->partial,
        .even = traits->even_rotation,
        .interleaved = traits->interleaved,
        .places = traits->places,
        .sections = {traits->sections[0], traits->sections[1], traits->sections[2]},
        .max_length = traits->max_length,
        .trained_length = traits->trained_length,
        .otherwise = traits->rope};
    RotarySpec specs[2] = {spec, spec};
    if (traits->rotary_by_type) {
        specs[0].layer_type = "full_attention";
        specs[1].layer_type = "sliding_attention";
        specs[1].theta = 10000;
        specs[1].theta_key = "rope_local_base_freq";
        specs[1].ignore_scaling = true;
    }
    bool used[2] = {false, false};
    for (int64_t i = 0; i < d->layers; i++) used[d->sliding[i]] = true;
    for (int kind = 0; kind < 2; kind++) {
        if (!used[kind]) continue;
        prepare_mask(d, kind, padding, packing);
        bool shared = kind == 1 && used[0] && !traits->rotary_by_type;
        d->rotary[kind] = shared ? d->rotary[0] : model_rotary(m, &specs[kind], positions);
    }
    if (!traits->rotary_by_type) return;
    config_accept(m, "rope_local_base_freq");
    config_accept(m, "rope_theta");
    config_accept(m, "rope_scaling");
}

Value *decoder_embedding(Model *m, int64_t hidden) {
    const int64_t shape[2] = {config_int(m, "vocab_size"), hidden};
    if (!model_has(m, "embed_tokens.weight") && config_bool_or(m, "tie_word_embeddings", true) &&
        model_has(m, DECODER_OUTPUT)) {
        return model_head_weight(m, 2, shape, DECODER_OUTPUT);
    }
    return model_weight(m, 2, shape, "embed_tokens.weight");
}

Value *decoder_scale_embedding(Model *m, Value *x, const Value *ids, int64_t hidden) {
    const DecoderTraits *traits = m->family->traits;
    if (!traits->scales_embedding || !ids) return x;
    return build_scalar(&m->b, OP_MUL_SCALAR, x, rounded(sqrt((double)hidden), m->dtype));
}

void decoder_build(Model *m) {
    Decoder d = {.m = m, .traits = m->family->traits};
    read_shape(&d);
    read_options(&d);
    if (!build_ok(&m->b)) return;
    Value *embedding = decoder_embedding(m, d.hidden), *ids;
    Value *x = model_embed_inputs(m, embedding, &ids);
    x = decoder_scale_embedding(m, x, ids, d.hidden);
    double multiplier = d.traits->multipliers ? config_float_or(m, "embedding_multiplier", 1) : 1;
    if (multiplier != 1) x = build_scalar(&m->b, OP_MUL_SCALAR, x, multiplier);
    if (!build_ok(&m->b)) return;
    prepare_attention(&d);
    for (int64_t i = 0; i < d.layers && build_ok(&m->b); i++) {
        build_scope(&m->b, "%s.layers.%lld", m->family->base_prefix, (long long)i);
        x = decoder_layer(&d, x, i);
        if (i < m->visual_layers) x = decoder_add_visual(&d, x, i);
    }
    build_scope(&m->b, "%s.norm", m->family->base_prefix);
    x = decoder_norm(&d, x, "norm");
    m->b.scope = "";
    const DecoderHead head = {.ids = ids,
                              .embedding = embedding,
                              .output_name = DECODER_OUTPUT,
                              .scale_logits = m->plain_logits ? NULL : scale_logits,
                              .cache = d.cache,
                              .layers = d.layers,
                              .experts = d.traits->experts != NULL,
                              .pads = d.traits->pads,
                              .pad = d.traits->pad};
    model_decoder_outputs(m, x, &head);
    if (m->task == TASK_CAUSAL_LM && !m->plain_logits) return;
    /* The other heads have no logits to scale. */
    config_accept(m, "final_logit_softcapping");
    config_accept(m, "logits_scaling");
    config_accept(m, "logit_scale");
}
