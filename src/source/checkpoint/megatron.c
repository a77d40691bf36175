/* Decoders that keep the module names of Megatron: gpt_neox, bloom, falcon. */
#include "source/checkpoint/gpt.h"

#include <math.h>

#define MEGATRON                                                                                   \
    .attention_norm = "input_layernorm", .fused = "query_key_value", .output = "dense",            \
    .mlp_norm = "post_attention_layernorm", .mlp = "mlp", .up = "dense_h_to_4h",                   \
    .down = "dense_4h_to_h", .logits = "lm_head"

/* Every head holds its query, key and value next to each other. */
static GptFused by_head(const GptDecoder *d) {
    return (GptFused){.groups = d->heads, .queries = 1, .keys = 1, .size = d->head_dim};
}

/* ---- gpt_neox ---- */

const GptTraits gpt_neox_traits = {MEGATRON,
                                   .hidden = {"hidden_size", NULL, 6144},
                                   .layers = {"num_hidden_layers", NULL, 44},
                                   .heads = {"num_attention_heads", NULL, 64},
                                   .inner = {"intermediate_size", NULL, 24576},
                                   .vocabulary = 50432,
                                   .activation_key = "hidden_act",
                                   .activation = "gelu",
                                   .eps_key = "layer_norm_eps",
                                   .embedding = "embed_in.weight",
                                   .layer = "layers",
                                   .attention = "attention",
                                   .old_logits = "embed_out",
                                   .untied = true};

void build_gpt_neox(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    d.fused = by_head(&d);
    d.qkv_bias = d.output_bias = config_bool_or(m, "attention_bias", true);
    if (config_bool_or(m, "use_parallel_residual", true)) d.order = GPT_PARALLEL;
    Value *x = gpt_embed(&d, d.hidden);
    const RotarySpec spec = {.head_dim = d.head_dim,
                             .theta = 10000,
                             .partial = 0.25,
                             .theta_key = "rotary_emb_base",
                             .partial_key = "rotary_pct"};
    d.mask[0] = model_mask(m, model_padding_mask(m), true, 0);
    d.rotary = model_rotary(m, &spec, model_positions(m));
    x = gpt_layers(&d, x);
    gpt_outputs(&d, gpt_norm(&d, x, "final_layer_norm"));
}

/* ---- bloom ---- */

static const char *const bloom_ignored[] = {"attention_softmax_in_fp32",
                                            "bias_dropout_fusion",
                                            "masked_softmax_fusion",
                                            "n_inner",
                                            "offset_alibi",
                                            "seq_length",
                                            "skip_bias_add",
                                            "skip_bias_add_qkv",
                                            NULL};

const GptTraits bloom_traits = {MEGATRON,
                                .hidden = {"hidden_size", "n_embed", 64},
                                .layers = {"n_layer", "num_hidden_layers", 2},
                                .heads = {"n_head", "num_attention_heads", 8},
                                .vocabulary = 250880,
                                .activation = "gelu_new",
                                .eps_key = "layer_norm_epsilon",
                                .ignored = bloom_ignored,
                                .embedding = "word_embeddings.weight",
                                .layer = "h",
                                .attention = "self_attention",
                                .cross_attentions = true};

void build_bloom(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    d.fused = by_head(&d);
    /* The sum over the slices of tensor parallelism forgets the biases. */
    bool slices = config_bool_or(m, "slow_but_exact", false);
    if (config_int_or(m, "pretraining_tp", 1) > 1 && slices) d.output_bias = d.down_bias = false;
    if (config_bool_or(m, "apply_residual_connection_post_layernorm", false)) {
        d.order = GPT_PRE_NORMALIZED;
    }
    Value *x = gpt_norm(&d, gpt_embed(&d, d.hidden), "word_embeddings_layernorm");
    m->masks_keys = true; /* their positions make the bias */
    Value *padding = model_padding_mask(m);
    Value *allowed = padding ? model_mask(m, padding, true, 0) : model_causal_mask(m, 0);
    d.mask[0] = model_additive_mask(m, allowed, model_alibi(m, padding, d.heads, false));
    x = gpt_layers(&d, x);
    gpt_outputs(&d, gpt_norm(&d, x, "ln_f"));
}

/* ---- falcon ---- */

static const char *const falcon_ignored[] = {"apply_residual_connection_post_layernorm", NULL};

const GptTraits falcon_traits = {MEGATRON,
                                 .hidden = {"hidden_size", "n_embed", 4544},
                                 .layers = {"num_hidden_layers", NULL, 32},
                                 .heads = {"num_attention_heads", NULL, 71},
                                 .inner = {"ffn_hidden_size", NULL, 0},
                                 .vocabulary = 65024,
                                 .activation_key = "activation",
                                 .activation = "gelu",
                                 .eps_key = "layer_norm_epsilon",
                                 .ignored = falcon_ignored,
                                 .embedding = "word_embeddings.weight",
                                 .layer = "h",
                                 .attention = "self_attention",
                                 .cross_attentions = true};

/* An option that is off when it is null. */
static bool falcon_option(Model *m, const char *key, bool otherwise) {
    return !config_is_null(m, key) && config_bool_or(m, key, otherwise);
}

/* Queries, keys and values: groups of query heads with a key/value head each (40B), one key/value
 * head for all (7B), or as many as query heads. */
static void read_falcon_heads(GptDecoder *d, bool grouped) {
    Model *m = d->m;
    int64_t kv_heads = gpt_size(m, &(GptSize){"num_kv_heads", NULL, d->heads});
    bool single = falcon_option(m, "multi_query", true) && !grouped;
    bool fits = single || (grouped ? d->heads % kv_heads == 0 : kv_heads == d->heads);
    if (!fits) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: %lld key/value heads (\"num_kv_heads\") do not suit %lld attention heads%s",
                   m->config_path, (long long)kv_heads, (long long)d->heads,
                   grouped ? "" : " without multi_query and new_decoder_architecture");
    }
    d->kv_heads = single ? 1 : kv_heads;
    d->fused = (GptFused){
        .groups = d->kv_heads, .queries = d->heads / d->kv_heads, .keys = 1, .size = d->head_dim};
    d->caches_repeated = grouped;
}

/* Which norms a layer has and what they feed. */
static void read_falcon_order(GptDecoder *d, bool grouped) {
    Model *m = d->m;
    bool parallel = falcon_option(m, "parallel_attn", true);
    int64_t norms = config_int_or(m, "num_ln_in_parallel_attn", grouped ? 2 : 1);
    if (!parallel && !grouped) return;
    d->order = GPT_PARALLEL;
    d->mlp_norm = NULL;
    if (grouped && norms == 2) {
        d->attention_norm = "ln_attn";
        d->mlp_norm = "ln_mlp";
    }
    if (!parallel || norms < 1 || norms > (grouped ? 2 : 1)) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: FalconDecoderLayer has no forward for \"parallel_attn\": %s, "
                   "\"num_ln_in_parallel_attn\": %lld, \"new_decoder_architecture\": %s",
                   m->config_path, parallel ? "true" : "false", (long long)norms,
                   grouped ? "true" : "false");
    }
}

/* The classes with heads take no position_ids but for the language model. */
static Value *falcon_positions(Model *m) {
    if (m->task == TASK_FEATURES || m->task == TASK_CAUSAL_LM) return model_positions(m);
    Value *range = build_arange(&m->b, build_const(&m->b, 0), m->sequence, FERRY_I64);
    return build_unsqueeze(&m->b, range, 0);
}

static void prepare_falcon_attention(GptDecoder *d) {
    Model *m = d->m;
    m->masks_keys = config_bool_or(m, "alibi", false);
    Value *padding = model_padding_mask(m);
    Value *positions = falcon_positions(m);
    if (config_bool_or(m, "alibi", false)) {
        Value *allowed = padding ? model_mask(m, padding, true, 0) : model_causal_mask(m, 0);
        Value *alibi = model_alibi(m, padding, d->heads, true);
        alibi = build_scalar(&m->b, OP_DIV_SCALAR, alibi, sqrt((double)d->head_dim));
        d->mask[0] = model_additive_mask(m, allowed, alibi);
        config_accept(m, "rope_parameters");
        config_accept(m, "rope_scaling");
        config_accept(m, "rope_theta");
        return;
    }
    const RotarySpec spec = {.head_dim = d->head_dim, .theta = 10000, .partial = 1};
    d->mask[0] = model_mask(m, padding, true, 0);
    d->rotary = model_rotary(m, &spec, positions);
}

void build_falcon(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    bool grouped = config_bool_or(m, "new_decoder_architecture", false);
    read_falcon_heads(&d, grouped);
    read_falcon_order(&d, grouped);
    d.qkv_bias = d.output_bias = d.up_bias = d.down_bias = config_bool_or(m, "bias", false);
    if (!build_ok(&m->b)) return;
    Value *x = gpt_embed(&d, d.hidden);
    prepare_falcon_attention(&d);
    x = gpt_layers(&d, x);
    gpt_outputs(&d, gpt_norm(&d, x, "ln_f"));
}
