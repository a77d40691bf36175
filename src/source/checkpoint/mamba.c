/* State space models: mamba, falcon_mamba and mamba2. */
#include "source/checkpoint/mamba.h"
#include "source/checkpoint/families.h"

#include <math.h>
#include <string.h>

typedef struct MambaTraits {
    bool heads; /* the mixer of Mamba 2 */
    MixerNorms norms;
    const char *outputs,
        *features; /* classes of results, of the language model and the base model */
} MambaTraits;

typedef struct Mamba {
    Model *m;
    const MambaTraits *traits;
    MambaMixer mixer;
    int64_t layers;
    double eps;
    ferry_dtype residual; /* of the sum that the layers add to */
    CacheLayer *cache;
} Mamba;

/* ---- configuration ---- */

/* A bound of time_step_limit, which is [least, most]; infinity is written as {"__float__": "Infinity"}. */
static double step_limit(Model *m, size_t which, double otherwise) {
    json_t *list = config_get(m, "time_step_limit"), *limit = json_array_get(list, which);
    json_t *text = json_object_get(limit, "__float__");
    if (!list) return otherwise;
    if (json_is_number(limit)) return json_number_value(limit);
    if (text && strcmp(json_string_value(text) ? json_string_value(text) : "", "Infinity") == 0)
        return INFINITY;
    build_fail(&m->b, FERRY_BAD_FORMAT,
               "%s: expected \"time_step_limit\" to be a list of two numbers", m->config_path);
    return otherwise;
}

static void read_heads(Mamba *s) {
    Model *m = s->m;
    MambaMixer *mixer = &s->mixer;
    mixer->heads = config_size_or(m, "num_heads", 128);
    mixer->width = config_size_or(m, "head_dim", 64);
    mixer->groups = config_size_or(m, "n_groups", 8);
    mixer->least_step = step_limit(m, 0, 0);
    mixer->most_step = step_limit(m, 1, INFINITY);
    config_accept(m, "chunk_size"); /* how the class cuts; the result does not depend on it */
    config_accept(m, "time_step_rank");
    if (mixer->heads * mixer->width == mixer->inner && mixer->heads % mixer->groups == 0) return;
    build_fail(&m->b, FERRY_BAD_FORMAT,
               "%s: %lld heads of size %lld (num_heads, head_dim) in %lld groups (n_groups) do not "
               "fit %lld features (expand * hidden_size)",
               m->config_path, (long long)mixer->heads, (long long)mixer->width,
               (long long)mixer->groups, (long long)mixer->inner);
    mixer->heads = mixer->width = mixer->groups = mixer->inner = 1;
}

static void read_config(Mamba *s) {
    Model *m = s->m;
    /* Of the initialization, and of ways to compute the same. */
    static const char *const unread[] = {"rescale_prenorm_residual",
                                         "time_step_floor",
                                         "time_step_init_scheme",
                                         "time_step_max",
                                         "time_step_min",
                                         "time_step_scale",
                                         "use_associative_scan",
                                         "use_falcon_mambapy",
                                         "use_mambapy"};
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) config_accept(m, unread[i]);
    s->layers = config_int(m, "num_hidden_layers");
    s->eps = config_float_or(m, "layer_norm_epsilon", 1e-5);
    s->residual = config_bool_or(m, "residual_in_fp32", true) ? FERRY_F32 : m->dtype;
    MambaMixer *mixer = &s->mixer;
    *mixer = (MambaMixer){.m = m,
                          .hidden = config_int(m, "hidden_size"),
                          .state = config_size_or(m, "state_size", s->traits->heads ? 128 : 16),
                          .kernel = config_size_or(m, "conv_kernel", 4),
                          .bias = config_bool_or(m, "use_bias", false),
                          .convolution_bias = config_bool_or(m, "use_conv_bias", true),
                          .activation = config_string_or(m, "hidden_act", "silu"),
                          .norms = s->traits->norms,
                          .eps = s->eps};
    mixer->inner = (int64_t)(config_float_or(m, "expand", 2) * (double)mixer->hidden);
    if (s->traits->heads) {
        read_heads(s);
    } else {
        mixer->inner = config_size_or(m, "intermediate_size", mixer->inner);
        mixer->rank = mixer_rank(m, "time_step_rank", mixer->hidden);
    }
    if (mixer->norms == MIXER_WEIGHTLESS) mixer->eps = config_float_or(m, "mixer_rms_eps", 1e-6);
    if (s->layers > CACHE_MAX_LAYERS || mixer->inner < 1) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: %lld layers (at most %d) of %lld features do not fit", m->config_path,
                   (long long)s->layers, CACHE_MAX_LAYERS, (long long)mixer->inner);
        s->layers = mixer->inner = 1;
    }
    s->cache = ARENA_ARRAY(&m->b.program->arena, CacheLayer, (size_t)s->layers);
    if (!s->cache) build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
}

/* ---- the model ---- */

static Value *embedding(Mamba *s) {
    const char *name = model_has(s->m, "embedding.weight") ? "embedding" : "embeddings";
    return model_matrix(s->m, config_int(s->m, "vocab_size"), s->mixer.hidden, "%s.weight", name);
}

static Value *norm(Mamba *s, Value *x, ferry_dtype dtype, const char *name) {
    Builder *b = &s->m->b;
    Value *weight = model_vector(s->m, s->mixer.hidden, "%s.weight", name);
    return build_rms_norm(b, build_to(b, x, dtype), build_to(b, weight, dtype), s->eps);
}

static Value *block(Mamba *s, Value *x, int64_t layer) {
    Builder *b = &s->m->b;
    Arena *arena = &b->program->arena;
    const char *module = arena_format(arena, "layers.%lld.mixer", (long long)layer);
    Value *normed =
        norm(s, x, s->m->dtype, arena_format(arena, "layers.%lld.norm", (long long)layer));
    Value *mixed = s->traits->heads
                       ? mamba2_mixer(&s->mixer, normed, &s->cache[layer], layer, module)
                       : mamba_mixer(&s->mixer, normed, &s->cache[layer], layer, module);
    return build_add(b, build_to(b, x, s->residual), build_to(b, mixed, s->residual));
}

static void output(Mamba *s, Value *x, Value *table) {
    Model *m = s->m;
    Builder *b = &m->b;
    bool language = m->task == TASK_CAUSAL_LM;
    const char *const keys[2] = {language ? "logits" : "last_hidden_state", "cache"};
    const Tree *trees[2] = {NULL, NULL};
    if (language) {
        Value *weight = model_output_embedding(m, "lm_head.weight", table);
        x = build_to(b, build_linear(b, build_to(b, x, m->dtype), weight, NULL), FERRY_F32);
    }
    build_output(b, keys[0], x);
    bool keeps = model_keeps_cache(m);
    if (keeps) trees[1] = model_output_cache(m, s->cache, s->layers);
    if (!build_ok(b)) return;
    model_output_tree(m, language ? s->traits->outputs : s->traits->features, keys, trees,
                      keeps ? 2 : 1);
}

static void build_mamba(Model *m) {
    Builder *b = &m->b;
    Mamba s = {.m = m, .traits = m->family->traits};
    read_config(&s);
    if (!build_ok(b)) return;
    Value *table = embedding(&s);
    Value *x = model_embed_inputs(m, table, NULL);
    s.mixer.padding = mixer_read_padding(m);
    for (int64_t i = 0; i < s.layers && build_ok(b); i++) {
        build_scope(b, "%s.layers.%lld", m->family->base_prefix, (long long)i);
        x = block(&s, x, i);
    }
    build_scope(b, "%s.norm_f", m->family->base_prefix);
    x = norm(&s, x, s.residual, "norm_f");
    b->scope = "";
    output(&s, x, table);
}

#define RESULTS(module, class)                                                                     \
    .outputs = "transformers.models." module ".modeling_" module "." class "CausalLMOutput",       \
    .features = "transformers.models." module ".modeling_" module "." class "Output"

static const MambaTraits mamba = {RESULTS("mamba", "Mamba")};
static const MambaTraits falcon = {RESULTS("falcon_mamba", "FalconMamba"),
                                   .norms = MIXER_WEIGHTLESS};
static const MambaTraits mamba2 = {RESULTS("mamba2", "Mamba2"), .heads = true};

enum { TASKS = 1u << TASK_FEATURES | 1u << TASK_CAUSAL_LM };

const Family mamba_families[] = {
    {"mamba", "Mamba", "backbone", build_mamba, TASKS, &mamba, NULL},
    {"falcon_mamba", "FalconMamba", "backbone", build_mamba, TASKS, &falcon, NULL},
    {"mamba2", "Mamba2", "backbone", build_mamba, TASKS, &mamba2, NULL},
    {0},
};
