/* ModernBERT: pre-norm layers with rotary positions and gated feed-forwards; most layers see a
 * window only. */
#include "source/checkpoint/bert.h"

#include <math.h>
#include <string.h>

typedef enum LayerKind { LAYER_FULL, LAYER_SLIDING, LAYER_KINDS } LayerKind;

typedef struct ModernBert {
    Model *m;
    int64_t vocabulary, hidden, intermediate, layers, heads;
    int64_t period; /* every so many layers one is full, when layer_types does not say it */
    double eps;
    bool norm_bias, attention_bias, mlp_bias;
    const char *activation;
    Value *words;
    Value *padding; /* [batch, sequence], may be NULL */
    bool used[LAYER_KINDS];
    Rotary rotary[LAYER_KINDS];
    Value *mask[LAYER_KINDS];
} ModernBert;

/* ---- configuration ---- */

static void accept_unused(Model *m) {
    static const char *const unused[] = {
        "deterministic_flash_attn", "layer_norm_eps", /* norm_eps is the one that counts */
        "reference_compile",        "repad_logits_with_grad",
        "sparse_prediction", /* concerns training */
        "sparse_pred_ignore_index",
    };
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) config_accept(m, unused[i]);
}

static ModernBert read_config(Model *m) {
    ModernBert bert = {
        .m = m,
        .vocabulary = config_int(m, "vocab_size"),
        .hidden = config_size_or(m, "hidden_size", 768),
        .intermediate = config_size_or(m, "intermediate_size", 1152),
        .layers = config_size_or(m, "num_hidden_layers", 22),
        .heads = config_size_or(m, "num_attention_heads", 12),
        .period = config_size_or(m, "global_attn_every_n_layers", 3),
        .eps = config_float_or(m, "norm_eps", 1e-5),
        .norm_bias = config_bool_or(m, "norm_bias", false),
        .attention_bias = config_bool_or(m, "attention_bias", false),
        .mlp_bias = config_bool_or(m, "mlp_bias", false),
        .activation = config_string_or(m, "hidden_activation", "gelu"),
    };
    config_require_string(m, "position_embedding_type", "absolute");
    config_require_bool(m, "is_decoder", false);
    accept_unused(m);
    if (bert.hidden % bert.heads != 0) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"hidden_size\" to be a multiple of \"num_attention_heads\", %lld",
                   m->config_path, (long long)bert.heads);
    }
    return bert;
}

static LayerKind layer_kind(const ModernBert *bert, int64_t layer) {
    return model_layer_slides(bert->m, layer, layer % bert->period != 0) ? LAYER_SLIDING
                                                                         : LAYER_FULL;
}

/* Masks and rotations of the kinds of layers that occur. */
static void prepare_layers(ModernBert *bert) {
    Model *m = bert->m;
    const RotarySpec specs[LAYER_KINDS] = {
        [LAYER_FULL] = {.layer_type = "full_attention",
                        .theta = 160000,
                        .theta_key = "global_rope_theta"},
        [LAYER_SLIDING] = {.layer_type = "sliding_attention",
                           .theta = 10000,
                           .theta_key = "local_rope_theta"},
    };
    int64_t reach = config_size_or(m, "local_attention", 128) / 2;
    const int64_t windows[LAYER_KINDS] = {[LAYER_SLIDING] = reach + 1};
    Value *positions = model_positions(m);
    bert->padding = model_padding_mask(m);
    for (int64_t i = 0; i < bert->layers; i++) bert->used[layer_kind(bert, i)] = true;
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        config_accept(m, specs[kind].theta_key);
        if (!bert->used[kind]) continue;
        RotarySpec spec = specs[kind];
        spec.head_dim = bert->hidden / bert->heads;
        spec.partial = 1;
        bert->rotary[kind] = model_rotary(m, &spec, positions);
        bert->mask[kind] = model_mask(m, bert->padding, false, windows[kind]);
    }
}

/* ---- layers ---- */

static Value *attend(ModernBert *bert, Value *x, int64_t layer) {
    Model *m = bert->m;
    Builder *b = &m->b;
    LayerKind kind = layer_kind(bert, layer);
    const Rotary *rotary = &bert->rotary[kind];
    const int64_t sizes[3] = {bert->hidden, bert->hidden, bert->hidden};
    int64_t size = bert->hidden / bert->heads;
    Value *parts[3];
    Value *fused = model_linear(m, x, 3 * bert->hidden, bert->attention_bias,
                                "layers.%lld.attn.Wqkv", (long long)layer);
    build_split(b, fused, sizes, 3, -1, parts);
    for (int i = 0; i < 3; i++) parts[i] = model_split_heads(m, parts[i], bert->heads, size);
    Value *query = build_rotary(b, parts[0], rotary->cos, rotary->sin, rotary->interleaved);
    Value *key = build_rotary(b, parts[1], rotary->cos, rotary->sin, rotary->interleaved);
    Value *seen =
        build_attention(b, query, key, parts[2], bert->mask[kind], false, 1 / sqrt((double)size));
    return model_linear(m, model_merge_heads(m, seen), bert->hidden, bert->attention_bias,
                        "layers.%lld.attn.Wo", (long long)layer);
}

static Value *feed_forward(ModernBert *bert, Value *x, int64_t layer) {
    Model *m = bert->m;
    const int64_t sizes[2] = {bert->intermediate, bert->intermediate};
    Value *parts[2];
    Value *fused = model_linear(m, x, 2 * bert->intermediate, bert->mlp_bias, "layers.%lld.mlp.Wi",
                                (long long)layer);
    build_split(&m->b, fused, sizes, 2, -1, parts);
    Value *gated = build_mul(&m->b, model_activation(m, parts[0], bert->activation), parts[1]);
    return model_linear(m, gated, bert->hidden, bert->mlp_bias, "layers.%lld.mlp.Wo",
                        (long long)layer);
}

static Value *build_layer(ModernBert *bert, Value *x, int64_t layer) {
    Model *m = bert->m;
    const char *prefix = m->family->base_prefix;
    const char *outer = build_scope(&m->b, "%s.layers.%lld.attn", prefix, (long long)layer);
    Value *normed = x;
    if (layer > 0) { /* the embedding is normalized already */
        normed = model_layer_norm(m, x, bert->norm_bias, bert->eps, "layers.%lld.attn_norm",
                                  (long long)layer);
    }
    x = build_add(&m->b, x, attend(bert, normed, layer));
    build_scope(&m->b, "%s.layers.%lld.mlp", prefix, (long long)layer);
    normed = model_layer_norm(m, x, bert->norm_bias, bert->eps, "layers.%lld.mlp_norm",
                              (long long)layer);
    x = build_add(&m->b, x, feed_forward(bert, normed, layer));
    m->b.scope = outer;
    return x;
}

static Value *encode(ModernBert *bert) {
    Model *m = bert->m;
    const char *outer = build_scope(&m->b, "%s.embeddings", m->family->base_prefix);
    bert->words =
        model_matrix(m, bert->vocabulary, bert->hidden, "embeddings.tok_embeddings.weight");
    Value *x = model_embed_inputs(m, bert->words, NULL);
    x = model_layer_norm(m, x, bert->norm_bias, bert->eps, "embeddings.norm");
    build_scope(&m->b, "%s", m->family->base_prefix);
    prepare_layers(bert);
    for (int64_t i = 0; i < bert->layers; i++) x = build_layer(bert, x, i);
    build_scope(&m->b, "%s.final_norm", m->family->base_prefix);
    x = model_layer_norm(m, x, bert->norm_bias, bert->eps, "final_norm");
    m->b.scope = outer;
    return x;
}

/* ---- heads ---- */

/* The dense layer, activation and norm that all heads share. */
static Value *predict(ModernBert *bert, Value *x) {
    Model *m = bert->m;
    const char *outer = build_scope(&m->b, "head");
    x = model_head_linear(m, x, bert->hidden, config_bool_or(m, "classifier_bias", false),
                          "head.dense");
    x = model_activation(m, x, config_string_or(m, "classifier_activation", "gelu"));
    x = model_head_layer_norm(m, x, bert->norm_bias, bert->eps, "head.norm");
    m->b.scope = outer;
    return x;
}

/* One vector per sequence: its first, or the mean of those that are not padding. */
static Value *pool(ModernBert *bert, Value *x) {
    Model *m = bert->m;
    Builder *b = &m->b;
    const char *pooling = config_string_or(m, "classifier_pooling", "cls");
    if (strcmp(pooling, "cls") == 0) return build_select(b, x, 1, 0);
    if (strcmp(pooling, "mean") != 0) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "%s: expected \"classifier_pooling\" to be cls or mean, found \"%s\"",
                          m->config_path, pooling);
    }
    if (!bert->padding) return build_reduce(b, OP_MEAN, x, 1, false);
    Value *kept = build_to(b, bert->padding, m->dtype);
    Value *sum = build_reduce(b, OP_SUM, build_mul(b, x, build_unsqueeze(b, kept, -1)), 1, false);
    return build_binary(b, OP_DIV, sum, build_reduce(b, OP_SUM, kept, 1, true));
}

static Value *decode(ModernBert *bert, Value *x) {
    Model *m = bert->m;
    bool has_bias = config_bool_or(m, "decoder_bias", true);
    Value *weight = model_output_embedding(m, "decoder.weight", bert->words);
    Value *bias = has_bias ? model_head_weight(m, 1, &bert->vocabulary, "decoder.bias") : NULL;
    return build_linear(&m->b, x, weight, bias);
}

static Value *classify(ModernBert *bert, Value *x, int64_t labels) {
    return model_head_linear(bert->m, predict(bert, x), labels, true, "classifier");
}

/* Keys of heads other than the one that is built. */
static void accept_head_keys(Model *m) {
    static const char *const keys[] = {"classifier_activation", "classifier_bias",
                                       "classifier_pooling", "decoder_bias"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) config_accept(m, keys[i]);
}

void modernbert_build(Model *m) {
    ModernBert bert = read_config(m);
    Value *hidden = encode(&bert);
    accept_head_keys(m);
    switch (m->task) {
    case TASK_MASKED_LM:
        model_output_one(m, "MaskedLMOutput", "logits", decode(&bert, predict(&bert, hidden)));
        break;
    case TASK_SEQUENCE_CLASSIFICATION:
        model_output_one(m, "SequenceClassifierOutput", "logits",
                         classify(&bert, pool(&bert, hidden), config_labels(m)));
        break;
    case TASK_TOKEN_CLASSIFICATION:
        model_output_one(m, "TokenClassifierOutput", "logits",
                         classify(&bert, hidden, config_labels(m)));
        break;
    case TASK_QUESTION_ANSWERING: model_output_answers(m, classify(&bert, hidden, 2)); break;
    default: model_output_one(m, "BaseModelOutput", "last_hidden_state", hidden); break;
    }
}
