/* Jamba: layers of attention among layers of Mamba, layers of experts among plain ones. */
#include "source/checkpoint/decoder.h"
#include "source/checkpoint/families.h"
#include "source/checkpoint/mamba.h"

#include <math.h>

typedef struct Jamba {
    Decoder d;
    MambaMixer mixer;
    int64_t period, offset; /* layer i is attention when i % period is offset */
    bool attends;           /* some layer does */
} Jamba;

static bool is_attention(const Jamba *s, int64_t layer) {
    return layer % s->period == s->offset;
}

/* ---- configuration ---- */

static void read_attention(Jamba *s) {
    Decoder *d = &s->d;
    Model *m = d->m;
    d->heads = config_int(m, "num_attention_heads");
    int64_t kv_heads = config_is_null(m, "num_key_value_heads") ? d->heads : 8;
    d->kv_heads = config_size_or(m, "num_key_value_heads", kv_heads);
    d->head_dim = config_size_or(m, "head_dim", d->hidden / d->heads);
    s->period = config_size_or(m, "attn_layer_period", 8);
    s->offset = config_int_or(m, "attn_layer_offset", 4);
    if (d->layers > CACHE_MAX_LAYERS || d->heads % d->kv_heads != 0 || d->head_dim < 1) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: %lld layers (at most %d), %lld attention heads, %lld key/value heads "
                   "(num_key_value_heads) of size %lld do not fit together",
                   m->config_path, (long long)d->layers, CACHE_MAX_LAYERS, (long long)d->heads,
                   (long long)d->kv_heads, (long long)d->head_dim);
        d->layers = d->heads = d->kv_heads = d->head_dim = 1;
    }
    d->scale = 1 / sqrt((double)d->head_dim);
    m->counting_layer = s->offset;
    s->attends = s->offset >= 0 && s->offset < s->period && s->offset < d->layers;
}

static void read_mixer(Jamba *s) {
    const Decoder *d = &s->d;
    Model *m = d->m;
    s->mixer = (MambaMixer){.m = m,
                            .hidden = d->hidden,
                            .inner = d->hidden * config_size_or(m, "mamba_expand", 2),
                            .state = config_size_or(m, "mamba_d_state", 16),
                            .kernel = config_size_or(m, "mamba_d_conv", 4),
                            .rank = mixer_rank(m, "mamba_dt_rank", d->hidden),
                            .bias = config_bool_or(m, "mamba_proj_bias", false),
                            .convolution_bias = config_bool_or(m, "mamba_conv_bias", true),
                            .activation = d->activation,
                            .norms = MIXER_NORMS,
                            .eps = d->eps};
}

static void read_config(Jamba *s) {
    Decoder *d = &s->d;
    Model *m = d->m;
    /* Ways to compute the same, and what the class does not read. */
    static const char *const unread[] = {"use_mamba_kernels",
                                         "use_mambapy",
                                         "use_associative_scan",
                                         "num_logits_to_keep",
                                         "calc_logits_for_entire_prompt",
                                         "mamba_inner_layernorms",
                                         "n_ctx",
                                         "sliding_window"};
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) config_accept(m, unread[i]);
    d->hidden = config_int(m, "hidden_size");
    d->intermediate = config_size_or(m, "intermediate_size", 14336);
    d->layers = config_int(m, "num_hidden_layers");
    d->eps = config_float_or(m, "rms_norm_eps", 1e-6);
    d->activation = config_string_or(m, "hidden_act", "silu");
    d->residual = 1;
    d->causal = true;
    read_attention(s);
    read_mixer(s);
    Arena *arena = &m->b.program->arena;
    d->cache = ARENA_ARRAY(arena, CacheLayer, (size_t)d->layers);
    d->sliding = arena_alloc(arena, (size_t)d->layers);
    d->rotated = arena_alloc(arena, (size_t)d->layers);
    if (!d->cache || !d->sliding || !d->rotated) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (int64_t i = 0; i < d->layers; i++) d->sliding[i] = d->rotated[i] = 0;
    experts_read(d);
}

/* ---- masks ---- */

/* What the layers of Mamba take for padding: a token that `padding` [batch, keys] hides; or, where the
 * caller gives whole masks, one that does not see itself. */
static Value *mixer_padding(Model *m, Value *padding, Value *mask) {
    Builder *b = &m->b;
    if (model_masks_whole(m)) {
        const Sym *one = build_const(b, 1), *own[] = {one, one, m->sequence, one};
        const Sym *wide[] = {m->batch, one, m->sequence, one};
        Value *index = build_expand(b, build_view(b, model_slots(m), own, 4), wide, 4);
        padding = build_squeeze(b, build_squeeze(b, build_gather(b, mask, 3, index), 3), 1);
    }
    if (!padding) return NULL;
    const Sym *keys = build_dim(b, padding, 1);
    const Sym *before = sym_sub(&b->program->symbols, keys, m->sequence);
    if (!sym_is_value(before, 0)) padding = build_slice(b, padding, 1, before, keys);
    return build_unsqueeze(b, build_to(b, padding, m->dtype), 2);
}

static void prepare_masks(Jamba *s) {
    Decoder *d = &s->d;
    Model *m = d->m;
    m->masks_by_type = true;
    model_input(m, "position_ids", FERRY_I64, 2, (const Sym *const[]){m->batch, m->sequence});
    if (!s->attends) {
        s->mixer.padding = mixer_read_padding(m);
        return;
    }
    Value *padding = model_padding_mask(m);
    d->mask[0] = model_mask(m, padding, true, 0);
    d->is_causal[0] = model_is_causal(m, d->mask[0]);
    s->mixer.padding = mixer_padding(m, padding, d->mask[0]);
}

/* ---- the model ---- */

static Value *layer(Jamba *s, Value *x, int64_t index) {
    Decoder *d = &s->d;
    Builder *b = &d->m->b;
    Arena *arena = &b->program->arena;
    long long i = index;
    Value *normed = decoder_norm(d, x, arena_format(arena, "layers.%lld.input_layernorm", i));
    Value *mixed = is_attention(s, index)
                       ? decoder_attention(d, normed, index)
                       : mamba_mixer(&s->mixer, normed, &d->cache[index], index,
                                     arena_format(arena, "layers.%lld.mamba", i));
    x = build_add(b, x, mixed);
    normed = decoder_norm(d, x, arena_format(arena, "layers.%lld.pre_ff_layernorm", i));
    const char *name = arena_format(arena, "layers.%lld.feed_forward", i);
    const char *outer = build_scope(b, "%s.%s", d->m->family->base_prefix, name);
    Value *fed = d->experts->sparse[index] ? experts_layer(d, normed, index)
                                           : decoder_mlp(d, normed, d->intermediate, name);
    b->scope = outer;
    return build_add(b, x, fed);
}

static void build_jamba(Model *m) {
    Builder *b = &m->b;
    Jamba s = {.d = {.m = m, .traits = m->family->traits}};
    Decoder *d = &s.d;
    read_config(&s);
    if (!build_ok(b)) return;
    Value *table = model_matrix(m, config_int(m, "vocab_size"), d->hidden, "embed_tokens.weight");
    Value *ids, *x = model_embed_inputs(m, table, &ids);
    if (!build_ok(b)) return;
    prepare_masks(&s);
    for (int64_t i = 0; i < d->layers && build_ok(b); i++) {
        build_scope(b, "%s.layers.%lld", m->family->base_prefix, (long long)i);
        x = layer(&s, x, i);
    }
    build_scope(b, "%s.final_layernorm", m->family->base_prefix);
    x = decoder_norm(d, x, "final_layernorm");
    b->scope = "";
    const DecoderHead head = {.ids = ids,
                              .embedding = table,
                              .output_name = "lm_head.weight",
                              .cache = d->cache,
                              .layers = d->layers,
                              .experts = true,
                              .pads = true};
    model_decoder_outputs(m, x, &head);
}

static const ExpertTraits jamba_experts = {.sparse = SPARSE_PERIOD,
                                           .count_keys = {"num_local_experts", "num_experts"},
                                           .count = 16,
                                           .chosen = 2,
                                           .module = "feed_forward",
                                           .router_name = "router",
                                           .names = {"gate_proj", "up_proj", "down_proj"}};
static const DecoderTraits jamba = {.norm = NORM_RMS, .experts = &jamba_experts};

enum {
    TASKS = 1u << TASK_FEATURES | 1u << TASK_CAUSAL_LM | 1u << TASK_SEQUENCE_CLASSIFICATION,
};

const Family jamba_families[] = {
    {"jamba", "Jamba", "model", build_jamba, TASKS, &jamba, NULL},
    {0},
};
