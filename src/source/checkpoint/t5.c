/* T5, mT5 and UMT5: relative positions in buckets, unscaled scores, RMS norms before every part.
 *
 * In float16 the classes keep the last projection of the feed-forward part, and so what it is added to,
 * in float32. */
#include "source/checkpoint/families.h"
#include "source/checkpoint/seq2seq.h"

#include <math.h>
#include <string.h>

typedef struct T5Traits {
    int64_t vocabulary, width, inner, layers, heads;
    const char *feed_forward;
    int64_t start; /* of the decoder, when the configuration has none; negative: it must */
    bool
        scales; /* hidden states before the projection to logits, unless the configuration says no */
    bool every_layer; /* has a table of relative positions of its own */
} T5Traits;

typedef struct T5 {
    Seq2Seq s;
    Model *m;
    const T5Traits *traits;
    int64_t vocabulary, width, size, inner, heads, layers, decoder_layers;
    int64_t buckets, reach;
    double eps;
    const char *activation;
    bool gated, scaled;
    ferry_dtype residual;
} T5;

/* ---- configuration ---- */

/* feed_forward_proj: "relu", "gated-silu"; "gated-gelu" is gelu_new. The keys that Transformers derives
 * from it and saves win. */
static void read_feed_forward(T5 *t) {
    Model *m = t->m;
    const char *whole = config_string_or(m, "feed_forward_proj", t->traits->feed_forward);
    const char *dash = strchr(whole, '-');
    t->gated = strncmp(whole, "gated-", 6) == 0;
    if (dash && (!t->gated || strchr(dash + 1, '-'))) {
        build_fail(
            &m->b, FERRY_BAD_FORMAT,
            "%s: expected \"feed_forward_proj\" to be like \"relu\" or \"gated-gelu\", found "
            "\"%s\"",
            m->config_path, whole);
    }
    t->activation = dash ? dash + 1 : whole;
    if (strcmp(whole, "gated-gelu") == 0) t->activation = "gelu_new";
    t->activation = config_string_or(m, "dense_act_fn", t->activation);
    t->gated = config_bool_or(m, "is_gated_act", t->gated);
}

static void read_config(T5 *t) {
    static const char *const ignored[] = {"n_positions", "output_past", "classifier_dropout"};
    Model *m = t->m;
    const T5Traits *traits = t->traits;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) config_accept(m, ignored[i]);
    t->vocabulary = config_size_or(m, "vocab_size", traits->vocabulary);
    t->width = seq2seq_size(m, "d_model", "hidden_size", traits->width);
    t->size = seq2seq_size(m, "d_kv", "head_dim", 64);
    t->inner = config_size_or(m, "d_ff", traits->inner);
    t->heads = seq2seq_size(m, "num_heads", "num_attention_heads", traits->heads);
    t->layers = seq2seq_size(m, "num_layers", "num_hidden_layers", traits->layers);
    t->decoder_layers =
        config_size_or(m, "num_decoder_layers", config_size_or(m, "num_layers", traits->layers));
    t->buckets = config_size_or(m, "relative_attention_num_buckets", 32);
    t->reach = config_size_or(m, "relative_attention_max_distance", 128);
    t->eps = config_float_or(m, "layer_norm_epsilon", 1e-6);
    read_feed_forward(t);
    if (traits->scales)
        t->scaled = config_bool_or(m, "scale_decoder_outputs",
                                   config_bool_or(m, "tie_word_embeddings", true));
    config_accept(m, "scale_decoder_outputs");
}

/* ---- parts of a layer ---- */

static Value *norm(T5 *t, Value *x, const char *name) {
    Builder *b = &t->m->b;
    Value *weight = model_vector(t->m, t->width, "%s.weight", name);
    if (x->dtype == t->m->dtype) return build_rms_norm(b, x, weight, t->eps);
    return build_mul(b, build_to(b, build_rms_norm(b, x, NULL, t->eps), t->m->dtype), weight);
}

static Value *linear(T5 *t, Value *x, int64_t out, const char *module, const char *name) {
    return model_linear(t->m, x, out, false, "%s.%s", module, name);
}

static Value *project(T5 *t, Value *x, const char *module, const char *name) {
    Value *rows = linear(t, x, t->heads * t->size, module, name);
    return model_split_heads(t->m, rows, t->heads, t->size);
}

static Value *attend(T5 *t, Value *query, Value *keys, Value *values, Value *mask,
                     const char *module) {
    Value *seen = build_attention(&t->m->b, query, keys, values, mask, false, 1);
    return linear(t, model_merge_heads(t->m, seen), t->width, module, "o");
}

/* x + part, in the dtype of the residual. */
static Value *add(T5 *t, Value *x, Value *part) {
    return build_add(&t->m->b, x, build_to(&t->m->b, part, t->residual));
}

static Value *feed_forward(T5 *t, Value *x, const char *module) {
    Model *m = t->m;
    Value *inner = linear(t, x, t->inner, module, t->gated ? "wi_0" : "wi");
    inner = model_activation(m, inner, t->activation);
    if (t->gated) inner = build_mul(&m->b, inner, linear(t, x, t->inner, module, "wi_1"));
    ferry_dtype outer = m->dtype;
    m->dtype = t->residual;
    Value *weight = model_matrix(m, t->width, t->inner, "%s.wo.weight", module);
    m->dtype = outer;
    return build_linear(&m->b, build_to(&m->b, inner, t->residual), weight, NULL);
}

/* ---- stacks ---- */

/* The scores' bias by distance, with what `allowed` (may be NULL) hides. */
static Value *position_bias(T5 *t, const char *stack, int64_t layer, bool both_ways,
                            Value *allowed) {
    const RelativeBuckets spec = {t->buckets, t->reach, both_ways};
    Value *table =
        model_matrix(t->m, t->buckets, t->heads,
                     "%s.block.%lld.layer.0.SelfAttention.relative_attention_bias.weight", stack,
                     (long long)layer);
    Value *bias = model_relative_bias(t->m, &spec, table);
    return allowed ? model_additive_mask(t->m, allowed, bias) : bias;
}

/* A part of a layer: its name, below the scope that is set to it. */
static const char *part_name(T5 *t, const char *stack, int64_t layer, int part, const char *name) {
    const char *prefix = arena_format(&t->m->b.program->arena, "%s.block.%lld.layer.%d", stack,
                                      (long long)layer, part);
    build_scope(&t->m->b, "%s.%s", prefix, name);
    return arena_format(&t->m->b.program->arena, "%s.%s", prefix, name);
}

static Value *norm_part(T5 *t, Value *x, const char *stack, int64_t layer, int part) {
    return norm(t, x, part_name(t, stack, layer, part, "layer_norm"));
}

static Value *end_stack(T5 *t, Value *x, const char *stack) {
    build_scope(&t->m->b, "%s.final_layer_norm", stack);
    const char *name = arena_format(&t->m->b.program->arena, "%s.final_layer_norm", stack);
    return build_to(&t->m->b, norm(t, x, name), t->m->dtype);
}

static Value *encode(T5 *t) {
    Model *m = t->m;
    Value *words = seq2seq_embedding(&t->s, "encoder", t->vocabulary, t->width);
    Value *x = build_to(&m->b, model_embed_inputs(m, words, &t->s.ids), t->residual);
    Value *allowed = model_mask(m, model_padding_mask(m), false, 0), *bias = NULL;
    for (int64_t i = 0; i < t->layers && build_ok(&m->b); i++) {
        Value *y = norm_part(t, x, "encoder", i, 0);
        const char *module = part_name(t, "encoder", i, 0, "SelfAttention");
        if (i == 0 || t->traits->every_layer) bias = position_bias(t, "encoder", i, true, allowed);
        Value *query = project(t, y, module, "q"), *keys = project(t, y, module, "k");
        x = add(t, x, attend(t, query, keys, project(t, y, module, "v"), bias, module));
        y = norm_part(t, x, "encoder", i, 1);
        x = add(t, x, feed_forward(t, y, part_name(t, "encoder", i, 1, "DenseReluDense")));
    }
    return end_stack(t, x, "encoder");
}

static Value *self_attention(T5 *t, Value *x, int64_t layer, Value *bias, const char *module) {
    Value *query = project(t, x, module, "q"), *keys = project(t, x, module, "k");
    const CacheLayer *cache = seq2seq_join(&t->s, layer, keys, project(t, x, module, "v"));
    return attend(t, query, cache->keys, cache->values, bias, module);
}

static Value *cross_attention(T5 *t, Value *x, int64_t layer, const char *module) {
    Value *query = project(t, x, module, "q"), *encoded = t->s.encoded;
    const CacheLayer *cache = seq2seq_cross(&t->s, layer, t->heads, t->size);
    if (!cache) {
        Value *keys = project(t, encoded, module, "k");
        cache = seq2seq_keep(&t->s, layer, keys, project(t, encoded, module, "v"));
    }
    return attend(t, query, cache->keys, cache->values, t->s.cross_mask, module);
}

static Value *decode(T5 *t, Value *words) {
    Model *m = t->m;
    Value *x = build_to(&m->b, seq2seq_embed_decoder(&t->s, words, NULL), t->residual);
    Value *allowed = seq2seq_decoder_mask(&t->s), *bias = NULL;
    if (model_is_causal(m, allowed)) allowed = model_causal_mask(m, 0);
    for (int64_t i = 0; i < t->decoder_layers && build_ok(&m->b); i++) {
        Value *y = norm_part(t, x, "decoder", i, 0);
        const char *module = part_name(t, "decoder", i, 0, "SelfAttention");
        if (i == 0 || t->traits->every_layer) bias = position_bias(t, "decoder", i, false, allowed);
        x = add(t, x, self_attention(t, y, i, bias, module));
        y = norm_part(t, x, "decoder", i, 1);
        x = add(t, x, cross_attention(t, y, i, part_name(t, "decoder", i, 1, "EncDecAttention")));
        y = norm_part(t, x, "decoder", i, 2);
        x = add(t, x, feed_forward(t, y, part_name(t, "decoder", i, 2, "DenseReluDense")));
    }
    return end_stack(t, x, "decoder");
}

/* ---- the whole model ---- */

static Value *logits(T5 *t, Value *hidden, Value *words) {
    Model *m = t->m;
    m->b.scope = "lm_head";
    if (t->scaled) hidden = build_scalar(&m->b, OP_MUL_SCALAR, hidden, pow((double)t->width, -0.5));
    Value *tied = seq2seq_shared_embedding(&t->s, words);
    return build_linear(&m->b, hidden, model_tied_weight(m, "lm_head.weight", tied), NULL);
}

static void build_t5(Model *m) {
    const T5Traits *traits = m->family->traits;
    T5 t = {.s = {.m = m,
                  .main_input = "input_ids",
                  .masked = true,
                  .start = traits->start,
                  .eos = 1,
                  .labels = 2},
            .m = m,
            .traits = traits,
            .residual = m->dtype == FERRY_F16 ? FERRY_F32 : m->dtype};
    t.s.encoder_outputs = "BaseModelOutputWithPastAndCrossAttentions";
    read_config(&t);
    seq2seq_start(&t.s);
    Value *encoded = seq2seq_has_encoder(&t.s) && build_ok(&m->b) ? encode(&t) : NULL;
    if (seq2seq_is_encoder(&t.s)) {
        seq2seq_output_encoder(&t.s, encoded);
        return;
    }
    if (!build_ok(&m->b)) return;
    seq2seq_enter_decoder(&t.s, encoded, NULL, t.width, t.decoder_layers);
    Value *words = seq2seq_embedding(&t.s, "decoder", t.vocabulary, t.width);
    Value *hidden = decode(&t, words);
    if (seq2seq_has_head(&t.s))
        seq2seq_output_head(&t.s, hidden);
    else
        seq2seq_outputs(&t.s, m->task == TASK_FEATURES ? hidden : logits(&t, hidden, words));
}

/* ---- model types ---- */

static const T5Traits t5 = {.vocabulary = 32128,
                            .width = 512,
                            .inner = 2048,
                            .layers = 6,
                            .heads = 8,
                            .feed_forward = "relu",
                            .start = -1,
                            .scales = true};
static const T5Traits mt5 = {.vocabulary = 250112,
                             .width = 512,
                             .inner = 1024,
                             .layers = 8,
                             .heads = 6,
                             .feed_forward = "gated-gelu"};

static const T5Traits umt5 = {.vocabulary = 250112,
                              .width = 512,
                              .inner = 1024,
                              .layers = 8,
                              .heads = 6,
                              .feed_forward = "gated-gelu",
                              .scales = true,
                              .every_layer = true};

enum {
    TASKS = 1u << TASK_FEATURES | 1u << TASK_TEXT_TO_TEXT | 1u << TASK_TEXT_ENCODING |
            1u << TASK_SEQUENCE_CLASSIFICATION | 1u << TASK_QUESTION_ANSWERING
};

const Family t5_families[] = {
    {"t5", "T5", "", build_t5, TASKS, &t5, seq2seq_components},
    {"mt5", "MT5", "", build_t5, TASKS, &mt5, seq2seq_components},
    {"umt5", "UMT5", "", build_t5, TASKS, &umt5, seq2seq_components},
    {0},
};
