/* The parts of GPT-like decoders that all model types share. */
#include "source/checkpoint/gpt.h"

#include <math.h>

/* ---- configuration ---- */

int64_t gpt_size(Model *m, const GptSize *size) {
    bool given = config_has(m, size->key);
    if (size->alias && config_has(m, size->alias)) return config_int(m, size->alias);
    return given ? config_int(m, size->key) : size->otherwise;
}

static void check_shape(GptDecoder *d) {
    if (d->layers <= CACHE_MAX_LAYERS && d->hidden % d->heads == 0) return;
    build_fail(&d->m->b, FERRY_BAD_FORMAT,
               "%s: %lld layers (at most %d) of %lld features in %lld attention heads do not fit "
               "together",
               d->m->config_path, (long long)d->layers, CACHE_MAX_LAYERS, (long long)d->hidden,
               (long long)d->heads);
    d->layers = d->heads = 1;
}

GptDecoder gpt_start(Model *m) {
    const GptTraits *traits = m->family->traits;
    GptDecoder d = {.m = m,
                    .traits = traits,
                    .hidden = gpt_size(m, &traits->hidden),
                    .layers = gpt_size(m, &traits->layers),
                    .heads = gpt_size(m, &traits->heads),
                    .vocabulary = gpt_size(m, &(GptSize){"vocab_size", NULL, traits->vocabulary}),
                    .eps = 1e-5,
                    .activation = traits->activation,
                    .attention_norm = traits->attention_norm,
                    .mlp_norm = traits->mlp_norm,
                    .affine = true,
                    .qkv_bias = true,
                    .output_bias = true,
                    .up_bias = true,
                    .down_bias = true};
    check_shape(&d);
    d.inner = traits->inner.key ? gpt_size(m, &traits->inner) : 0;
    if (!d.inner) d.inner = 4 * d.hidden;
    d.head_dim = d.hidden / d.heads;
    d.kv_heads = d.heads;
    d.fused = (GptFused){.groups = 1, .queries = d.heads, .keys = d.heads, .size = d.head_dim};
    d.scale = 1 / sqrt((double)d.head_dim);
    if (traits->eps_key) d.eps = config_float_or(m, traits->eps_key, d.eps);
    if (traits->activation_key) {
        d.activation = config_string_or(m, traits->activation_key, d.activation);
    }
    for (const char *const *key = traits->ignored; key && *key; key++) config_accept(m, *key);
    d.cache = ARENA_ARRAY(&m->b.program->arena, CacheLayer, (size_t)d.layers);
    if (!d.cache) build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    return d;
}

/* ---- embeddings ---- */

Value *gpt_embed(GptDecoder *d, int64_t features) {
    Model *m = d->m;
    d->embedding = model_matrix(m, d->vocabulary, features, "%s", d->traits->embedding);
    Value *x = model_embed_inputs(m, d->embedding, &d->ids);
    if (!d->traits->token_types) return x;
    Value *types =
        model_input(m, "token_type_ids", FERRY_I64, 2, (const Sym *const[]){m->batch, m->sequence});
    if (!types) return x;
    return build_add(&m->b, x, build_embedding(&m->b, d->embedding, types));
}

Value *gpt_position_embedding(GptDecoder *d, const char *name, int64_t rows, Value *positions) {
    Value *table = model_matrix(d->m, rows, d->hidden, "%s", name);
    return build_embedding(&d->m->b, table, positions);
}

/* ---- parts of a layer ---- */

/* The name of a part of a layer. */
static const char *member(const GptDecoder *d, int64_t layer, const char *name) {
    return arena_format(&d->m->b.program->arena, "%s.%lld.%s", d->traits->layer, (long long)layer,
                        name);
}

/* The name of a part of a part. */
static const char *within(const GptDecoder *d, const char *module, const char *name) {
    return arena_format(&d->m->b.program->arena, "%s.%s", module, name);
}

Value *gpt_norm(GptDecoder *d, Value *x, const char *name) {
    if (!d->affine) return build_layer_norm(&d->m->b, x, NULL, NULL, d->eps);
    return model_layer_norm(d->m, x, true, d->eps, "%s", name);
}

static Value *linear(GptDecoder *d, Value *x, int64_t out, bool bias, const char *name) {
    Builder *b = &d->m->b;
    if (!d->traits->transposed) return model_linear(d->m, x, out, bias, "%s", name);
    Value *weight = model_matrix(d->m, build_dim(b, x, -1)->value, out, "%s.weight", name);
    x = build_matmul(b, x, weight);
    return bias ? build_add(b, x, model_vector(d->m, out, "%s.bias", name)) : x;
}

typedef struct Projections {
    Value *query, *key, *value; /* [batch, heads, sequence, size] */
} Projections;

static Projections split_fused(GptDecoder *d, Value *x) {
    Builder *b = &d->m->b;
    const GptFused *fused = &d->fused;
    int64_t rows[3] = {fused->queries, fused->keys, fused->keys};
    const Sym *shape[5] = {build_dim(b, x, 0), build_dim(b, x, 1), build_const(b, fused->groups),
                           build_const(b, fused->queries + 2 * fused->keys),
                           build_const(b, fused->size)};
    Value *parts[3];
    if (fused->groups == 1) {
        for (int i = 0; i < 3; i++) rows[i] *= fused->size;
        build_split(b, x, rows, 3, -1, parts);
    } else {
        build_split(b, build_view(b, x, shape, 5), rows, 3, 3, parts);
    }
    int key = fused->values_first ? 2 : 1;
    return (Projections){model_split_heads(d->m, parts[0], d->heads, d->head_dim),
                         model_split_heads(d->m, parts[key], d->kv_heads, d->head_dim),
                         model_split_heads(d->m, parts[3 - key], d->kv_heads, d->head_dim)};
}

static Projections project(GptDecoder *d, Value *x, const char *module) {
    static const char *const names[3] = {"q_proj", "k_proj", "v_proj"};
    const GptFused *fused = &d->fused;
    if (d->traits->fused) {
        const char *name = within(d, module, d->traits->fused);
        int64_t width = fused->groups * (fused->queries + 2 * fused->keys) * fused->size;
        return split_fused(d, linear(d, x, width, d->qkv_bias, name));
    }
    Value *parts[3];
    for (int i = 0; i < 3; i++) {
        int64_t heads = i == 0 ? d->heads : d->kv_heads;
        Value *part = linear(d, x, heads * d->head_dim, d->qkv_bias, within(d, module, names[i]));
        parts[i] = model_split_heads(d->m, part, heads, d->head_dim);
    }
    return (Projections){parts[0], parts[1], parts[2]};
}

static Value *rotate(GptDecoder *d, Value *x) {
    Builder *b = &d->m->b;
    const Rotary *rotary = &d->rotary;
    if (!rotary->cos) return x;
    x = build_to(b, x, rotary->cos->dtype);
    return build_to(b, build_rotary(b, x, rotary->cos, rotary->sin, rotary->interleaved),
                    d->m->dtype);
}

/* [batch, kv heads, sequence, size] with every head repeated for its query heads. */
static Value *repeat_heads(GptDecoder *d, Value *x) {
    Builder *b = &d->m->b;
    const Sym *batch = build_dim(b, x, 0), *length = build_dim(b, x, 2);
    const Sym *size = build_const(b, d->head_dim);
    const Sym *wide[5] = {batch, build_const(b, d->kv_heads),
                          build_const(b, d->heads / d->kv_heads), length, size};
    const Sym *flat[4] = {batch, build_const(b, d->heads), length, size};
    return build_view(b, build_expand(b, build_unsqueeze(b, x, 2), wide, 5), flat, 4);
}

static Value *attention(GptDecoder *d, Value *x, int64_t layer) {
    Builder *b = &d->m->b;
    const char *module = member(d, layer, d->traits->attention);
    const char *outer = build_scope(b, "%s.%s", d->m->family->base_prefix, module);
    Projections p = project(d, x, module);
    p.query = rotate(d, p.query);
    p.key = rotate(d, p.key);
    CacheLayer *cache = &d->cache[layer];
    *cache = (CacheLayer){.keys = p.key, .values = p.value};
    if (d->caches_repeated && d->kv_heads != d->heads) {
        cache->keys = repeat_heads(d, p.key);
        cache->values = repeat_heads(d, p.value);
    }
    model_join_cache(d->m, cache, layer);
    if (model_takes_cache(d->m)) p = (Projections){p.query, cache->keys, cache->values};
    double scale = d->divides_by_layer ? d->scale / (double)(layer + 1) : d->scale;
    Value *mask = d->mask[d->local && d->local[layer]];
    x = build_attention(b, p.query, p.key, p.value, mask, model_is_causal(d->m, mask), scale);
    x = linear(d, model_merge_heads(d->m, x), d->hidden, d->output_bias,
               within(d, module, d->traits->output));
    b->scope = outer;
    return x;
}

static Value *mlp(GptDecoder *d, Value *x, int64_t layer) {
    Builder *b = &d->m->b;
    const GptTraits *traits = d->traits;
    const char *up = member(d, layer, traits->up), *down = member(d, layer, traits->down);
    const char *outer = b->scope;
    if (traits->mlp) {
        const char *module = member(d, layer, traits->mlp);
        build_scope(b, "%s.%s", d->m->family->base_prefix, module);
        up = within(d, module, traits->up);
        down = within(d, module, traits->down);
    }
    x = linear(d, x, d->inner, d->up_bias, up);
    x = model_activation(d->m, x, d->activation);
    x = linear(d, x, d->hidden, d->down_bias, down);
    b->scope = outer;
    return x;
}

/* ---- the whole model ---- */

static Value *apply_layer(GptDecoder *d, Value *x, int64_t layer) {
    Builder *b = &d->m->b;
    const char *first = member(d, layer, d->attention_norm);
    const char *second = d->mlp_norm ? member(d, layer, d->mlp_norm) : NULL;
    switch (d->order) {
    case GPT_PRE:
        x = build_add(b, attention(d, gpt_norm(d, x, first), layer), x);
        return build_add(b, x, mlp(d, gpt_norm(d, x, second), layer));
    case GPT_PRE_NORMALIZED:
        x = gpt_norm(d, x, first);
        x = gpt_norm(d, build_add(b, x, attention(d, x, layer)), second);
        return build_add(b, x, mlp(d, x, layer));
    case GPT_POST:
        x = gpt_norm(d, build_add(b, x, attention(d, x, layer)), first);
        return gpt_norm(d, build_add(b, x, mlp(d, x, layer)), second);
    case GPT_PARALLEL: {
        Value *normed = gpt_norm(d, x, first);
        Value *attended = attention(d, normed, layer);
        Value *fed = mlp(d, second ? gpt_norm(d, x, second) : normed, layer);
        return build_add(b, build_add(b, fed, attended), x);
    }
    }
    return x;
}

Value *gpt_layers(GptDecoder *d, Value *x) {
    Builder *b = &d->m->b;
    for (int64_t i = 0; i < d->layers && build_ok(b); i++) {
        const char *outer =
            build_scope(b, "%s.%s.%lld", d->m->family->base_prefix, d->traits->layer, (long long)i);
        x = apply_layer(d, x, i);
        b->scope = outer;
    }
    return x;
}

void gpt_outputs(GptDecoder *d, Value *hidden) {
    Model *m = d->m;
    const GptTraits *traits = d->traits;
    Arena *arena = &m->b.program->arena;
    const char *name = traits->logits;
    bool tied = config_bool_or(m, "tie_word_embeddings", !traits->untied);
    if (traits->old_logits && model_has(m, "%s.weight", traits->old_logits)) {
        name = traits->old_logits;
    }
    if (m->task == TASK_CAUSAL_LM && !tied && !model_has(m, "%s.weight", name)) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: the weight \"%s.weight\" is in none of the files, and "
                   "\"tie_word_embeddings\" is not true",
                   m->checkpoint->directory, name);
    }
    const DecoderHead head = {
        .ids = d->ids,
        .embedding = d->embedding,
        .output_name = arena_format(arena, "%s.weight", name),
        .output_bias = traits->logits_bias ? arena_format(arena, "%s.bias", name) : NULL,
        .cache = d->cache,
        .layers = d->layers,
        .token_classifier = "classifier",
        .cross_attentions = traits->cross_attentions,
        .pads = traits->pads,
        .pad = traits->pad,
    };
    m->b.scope = "";
    model_decoder_outputs(m, hidden, &head);
}
