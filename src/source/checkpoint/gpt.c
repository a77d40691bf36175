/* The list of GPT-like decoders, and those that descend from GPT-2: gpt2, gpt_bigcode, gpt_neo, gptj,
 * codegen. */
#include "source/checkpoint/gpt.h"
#include "source/checkpoint/families.h"

#include <string.h>

#define GPT                                                                                        \
    .activation_key = "activation_function", .eps_key = "layer_norm_epsilon",                      \
    .embedding = "wte.weight", .layer = "h", .attention_norm = "ln_1", .mlp = "mlp",               \
    .logits = "lm_head", .token_types = true

/* Embedded tokens and, when the type has them, learned positions. */
static Value *embed_with_positions(GptDecoder *d) {
    Value *x = gpt_embed(d, d->hidden);
    int64_t rows = gpt_size(d->m, &d->traits->positions);
    return build_add(&d->m->b, x,
                     gpt_position_embedding(d, "wpe.weight", rows, model_positions(d->m)));
}

static void finish(GptDecoder *d, Value *x) {
    x = gpt_layers(d, x);
    gpt_outputs(d, gpt_norm(d, x, "ln_f"));
}

/* ---- gpt2 and gpt_bigcode ---- */

static const char *const gpt2_ignored[] = {
    "n_ctx", "n_special", "output_past", "predict_special_tokens", "reorder_and_upcast_attn", NULL};

/* Softmax is in float32 whatever these say. */
static const char *const bigcode_ignored[] = {"attention_softmax_in_fp32",
                                              "scale_attention_softmax_in_fp32",
                                              "num_key_value_heads",
                                              "inference_runner",
                                              "max_batch_size",
                                              "max_sequence_length",
                                              "n_ctx",
                                              "pad_key_length",
                                              "pre_allocate_kv_cache",
                                              "validate_runner_input",
                                              NULL};

#define GPT2                                                                                       \
    .hidden = {"n_embd", "hidden_size", 768}, .layers = {"n_layer", "num_hidden_layers", 12},      \
    .heads = {"n_head", "num_attention_heads", 12}, .inner = {"n_inner", NULL, 0},                 \
    .positions = {"n_positions", "max_position_embeddings", 1024}, .vocabulary = 50257,            \
    .attention = "attn", .fused = "c_attn", .output = "c_proj", .mlp_norm = "ln_2", .up = "c_fc",  \
    .down = "c_proj", .cross_attentions = true

static const GptTraits gpt2_traits = {GPT, GPT2, .activation = "gelu_new", .ignored = gpt2_ignored,
                                      .transposed = true};
static const GptTraits bigcode_traits = {GPT, GPT2, .activation = "gelu_pytorch_tanh",
                                         .ignored = bigcode_ignored};

static void build_gpt2(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    if (!config_bool_or(m, "scale_attn_weights", true)) d.scale = 1;
    d.divides_by_layer = config_bool_or(m, "scale_attn_by_inverse_layer_idx", false);
    config_require_bool(m, "add_cross_attention", false);
    Value *x = embed_with_positions(&d);
    d.mask[0] = model_mask(m, model_padding_mask(m), true, 0);
    finish(&d, x);
}

static void build_gpt_bigcode(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    if (!config_bool_or(m, "scale_attn_weights", true)) d.scale = 1;
    if (config_bool_or(m, "multi_query", true)) d.kv_heads = 1;
    d.fused = (GptFused){
        .groups = d.kv_heads, .queries = d.heads / d.kv_heads, .keys = 1, .size = d.head_dim};
    config_require_bool(m, "add_cross_attention", false);
    Value *x = embed_with_positions(&d);
    d.mask[0] = model_mask(m, model_padding_mask(m), true, 0);
    finish(&d, x);
}

/* ---- gpt_neo ---- */

static const char *const neo_ignored[] = {"attention_layers", "embed_dropout", "resid_dropout",
                                          NULL};

static const GptTraits neo_traits = {GPT,
                                     .hidden = {"hidden_size", NULL, 2048},
                                     .layers = {"num_layers", "num_hidden_layers", 24},
                                     .heads = {"num_heads", "num_attention_heads", 16},
                                     .inner = {"intermediate_size", NULL, 0},
                                     .positions = {"max_position_embeddings", NULL, 2048},
                                     .vocabulary = 50257,
                                     .activation = "gelu_new",
                                     .ignored = neo_ignored,
                                     .attention = "attn.attention",
                                     .output = "out_proj",
                                     .mlp_norm = "ln_2",
                                     .up = "c_fc",
                                     .down = "c_proj"};

/* One list of attention_types, such as ["global", "local"]: the kinds of the layers from `layer` on.
 * Returns the layer after them, or -1. */
static int64_t read_kinds(GptDecoder *d, const json_t *kinds, int64_t layer) {
    size_t i;
    json_t *kind;
    json_array_foreach(kinds, i, kind) {
        const char *name = json_is_string(kind) ? json_string_value(kind) : "";
        bool local = strcmp(name, "local") == 0;
        if (layer >= d->layers || (!local && strcmp(name, "global") != 0)) return -1;
        d->local[layer++] = local;
    }
    return layer;
}

/* attention_types: [[["global", "local"], 12]] repeats the inner list 12 times. True when it describes
 * all layers and no more. */
static bool read_attention_types(GptDecoder *d, const json_t *types) {
    int64_t layer = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(types, i, entry) {
        const json_t *kinds = json_array_get(entry, 0);
        int64_t times = json_array_size(kinds) ? json_integer_value(json_array_get(entry, 1)) : 0;
        for (int64_t j = 0; j < times && layer >= 0; j++) layer = read_kinds(d, kinds, layer);
        if (layer < 0) return false;
    }
    return layer == d->layers;
}

static void read_neo_layers(GptDecoder *d) {
    Model *m = d->m;
    json_t *types = config_get(m, "attention_types");
    d->local = arena_alloc(&m->b.program->arena, (size_t)d->layers);
    if (!d->local) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (int64_t i = 0; !types && i < d->layers; i++) d->local[i] = i % 2 == 1;
    if (types ? read_attention_types(d, types) : d->layers == 24) return;
    build_fail(&m->b, FERRY_BAD_FORMAT,
               "%s: expected \"attention_types\" to make %lld layers global or local",
               m->config_path, (long long)d->layers);
}

/* Attention hides keys twice, for the layer's own window and for padding, each time by adding the
 * lowest number: where both do, that is minus infinity. */
static Value *neo_mask(Model *m, Value *padding, int64_t window) {
    if (!padding && !model_masks_whole(m)) return model_mask(m, NULL, true, window);
    Value *own = model_causal_mask(m, window);
    Value *common = model_mask(m, padding, true, 0);
    return build_add(&m->b, model_additive_mask(m, own, NULL),
                     model_additive_mask(m, common, NULL));
}

static void build_gpt_neo(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    read_neo_layers(&d);
    int64_t window = gpt_size(m, &(GptSize){"window_size", NULL, 256});
    d.qkv_bias = false;
    d.scale = 1;
    if (!build_ok(&m->b)) return;
    Value *x = embed_with_positions(&d);
    Value *padding = model_padding_mask(m);
    d.mask[0] = neo_mask(m, padding, 0);
    d.mask[1] = neo_mask(m, padding, window);
    finish(&d, x);
}

/* ---- gptj and codegen ---- */

static const char *const gptj_ignored[] = {"n_ctx", "n_positions", "rotary", "scale_attn_weights",
                                           NULL};

#define GPTJ                                                                                       \
    .hidden = {"n_embd", "hidden_size", 4096}, .layers = {"n_layer", "num_hidden_layers", 28},     \
    .heads = {"n_head", "num_attention_heads", 16}, .inner = {"n_inner", NULL, 0},                 \
    .vocabulary = 50400, .activation = "gelu_new", .ignored = gptj_ignored, .attention = "attn",   \
    .output = "out_proj", .up = "fc_in", .down = "fc_out", .logits_bias = true, .untied = true

static const GptTraits gptj_traits = {GPT, GPTJ};
static const GptTraits codegen_traits = {GPT, GPTJ, .fused = "qkv_proj"};

/* One norm feeds attention and MLP; neighbouring features are rotated, in gptj with the precision of
 * the computation and in codegen with float32. */
static void build_rotating(GptDecoder *d, bool float32) {
    Model *m = d->m;
    d->order = GPT_PARALLEL;
    d->qkv_bias = d->output_bias = false;
    int64_t otherwise = config_is_null(m, "rotary_dim") ? d->hidden : 64;
    const RotarySpec spec = {.head_dim = gpt_size(m, &(GptSize){"rotary_dim", NULL, otherwise}),
                             .theta = 10000,
                             .partial = 1,
                             .interleaved = true,
                             .ignore_scaling = true,
                             .float32 = float32};
    if (spec.head_dim > d->head_dim) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: \"rotary_dim\": cannot rotate %lld of the %lld features of a head",
                   m->config_path, (long long)spec.head_dim, (long long)d->head_dim);
        return;
    }
    Value *x = gpt_embed(d, d->hidden);
    d->mask[0] = model_mask(m, model_padding_mask(m), true, 0);
    d->rotary = model_rotary(m, &spec, model_positions(m));
    finish(d, x);
}

static void build_gptj(Model *m) {
    GptDecoder d = gpt_start(m);
    if (build_ok(&m->b)) build_rotating(&d, false);
}

/* The fused projection is still laid out for the four machines that trained the model. */
enum { CODEGEN_MACHINES = 4 };

static void build_codegen(Model *m) {
    GptDecoder d = gpt_start(m);
    if (!build_ok(&m->b)) return;
    d.fused = (GptFused){.groups = CODEGEN_MACHINES,
                         .queries = 1,
                         .keys = 1,
                         .size = d.hidden / CODEGEN_MACHINES,
                         .values_first = true};
    if (d.hidden % CODEGEN_MACHINES != 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED, "%s: expected \"n_embd\" to be a multiple of %d",
                   m->config_path, CODEGEN_MACHINES);
        return;
    }
    build_rotating(&d, true);
}

/* ---- model types ---- */

enum {
    BASE = 1u << TASK_FEATURES | 1u << TASK_CAUSAL_LM,
    SEQUENCE = 1u << TASK_SEQUENCE_CLASSIFICATION,
    TOKENS = 1u << TASK_TOKEN_CLASSIFICATION,
    ANSWERS = 1u << TASK_QUESTION_ANSWERING,
    ALL = BASE | SEQUENCE | TOKENS | ANSWERS,
};

const Family gpt_families[] = {
    {"gpt2", "GPT2", "transformer", build_gpt2, ALL, &gpt2_traits, NULL},
    {"gpt_bigcode", "GPTBigCode", "transformer", build_gpt_bigcode, BASE | SEQUENCE | TOKENS,
     &bigcode_traits, NULL},
    {"gpt_neo", "GPTNeo", "transformer", build_gpt_neo, ALL, &neo_traits, NULL},
    {"gptj", "GPTJ", "transformer", build_gptj, BASE | SEQUENCE | ANSWERS, &gptj_traits, NULL},
    {"codegen", "CodeGen", "transformer", build_codegen, BASE, &codegen_traits, NULL},
    {"gpt_neox", "GPTNeoX", "gpt_neox", build_gpt_neox, ALL, &gpt_neox_traits, NULL},
    {"bloom", "Bloom", "transformer", build_bloom, ALL, &bloom_traits, NULL},
    {"falcon", "Falcon", "transformer", build_falcon, ALL, &falcon_traits, NULL},
    {"opt", "OPT", "model", build_opt, BASE | SEQUENCE | ANSWERS, &opt_traits, NULL},
    {0},
};
