/* A layer of the decoders with rotary positions. */
#include "source/checkpoint/decoder.h"

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

Value *decoder_norm(Decoder *d, Value *x, const char *name) {
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
    if (d->traits->qk_norm == QK_SHARED || d->traits->qk_norm == QK_OPTION) {
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

/* A score more for each head, [batch, heads, length, keys + 1], which takes its share of the attention. */
static Value *add_sinks(Decoder *d, Value *scores, int64_t layer) {
    Builder *b = &d->m->b;
    const Sym *one = build_const(b, 1);
    const Sym *by_head[] = {one, build_const(b, d->heads), one, one};
    const Sym *column[] = {build_dim(b, scores, 0), by_head[1], build_dim(b, scores, 2), one};
    Value *sinks = model_vector(d->m, d->heads, "layers.%lld.self_attn.sinks", (long long)layer);
    sinks = build_expand(b, build_view(b, sinks, by_head, 4), column, 4);
    return build_cat(b, (Value *const[]){scores, sinks}, 2, -1);
}

/* Attention that no fused operation does: with scores that are capped, cap * tanh(scores / cap), or with
 * sinks. */
static Value *scored_attention(Decoder *d, const Projections *p, Value *mask, int64_t layer) {
    Builder *b = &d->m->b;
    int64_t groups = d->heads / d->kv_heads;
    const Sym *batch = build_dim(b, p->query, 0), *length = build_dim(b, p->query, 2);
    const Sym *keys = build_dim(b, p->key, 2);
    const Sym *grouped[4] = {batch, build_const(b, d->kv_heads),
                             sym_mul(&b->program->symbols, build_const(b, groups), length),
                             build_const(b, d->head_dim)};
    const Sym *scored[4] = {batch, build_const(b, d->heads), length, keys};
    const Sym *by_group[4] = {batch, grouped[1], grouped[2], keys};
    const Sym *headed[4] = {batch, scored[1], length, grouped[3]};
    Value *query = build_view(b, p->query, grouped, 4);
    Value *scores = build_matmul(b, query, build_transpose(b, p->key, 2, 3));
    scores = build_scalar(b, OP_MUL_SCALAR, scores, d->softcap ? d->scale / d->softcap : d->scale);
    if (d->softcap)
        scores = build_scalar(b, OP_MUL_SCALAR, build_unary(b, OP_TANH, scores), d->softcap);
    scores = build_where(b, mask, build_view(b, scores, scored, 4), model_lowest(d->m));
    if (d->traits->sinks) scores = add_sinks(d, scores, layer);
    Value *weights = build_softmax(b, scores, -1);
    if (d->traits->sinks) weights = build_slice(b, weights, -1, build_const(b, 0), keys);
    Value *context = build_matmul(b, build_view(b, weights, by_group, 4), p->value);
    return build_view(b, context, headed, 4);
}

Value *decoder_attention(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    int kind = d->sliding[layer];
    if (d->traits->latent) return latent_attention(d, x, layer);
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
    CacheLayer *cache = &d->cache[layer];
    *cache = (CacheLayer){.keys = p.key, .values = p.value, .window = kind ? d->window : 0};
    model_join_cache(m, cache, layer);
    p.key = cache->keys;
    p.value = cache->values;
    Value *context = decoder_scores(d)
                         ? scored_attention(d, &p, d->mask[kind], layer)
                         : build_attention(&m->b, p.query, p.key, p.value, d->mask[kind],
                                           d->is_causal[kind], d->scale);
    Value *result = model_linear(m, model_merge_heads(m, context), d->hidden, d->output_bias,
                                 "layers.%lld.self_attn.o_proj", (long long)layer);
    m->b.scope = outer;
    return result;
}

Value *decoder_mlp(Decoder *d, Value *x, int64_t size, const char *name) {
    Model *m = d->m;
    Value *parts[2];
    if (d->traits->fused) {
        Value *both = model_linear(m, x, 2 * size, d->mlp_bias, "%s.gate_up_proj", name);
        build_split(&m->b, both, (const int64_t[]){size, size}, 2, -1, parts);
    } else {
        parts[0] = model_linear(m, x, size, d->mlp_bias, "%s.gate_proj", name);
        parts[1] = model_linear(m, x, size, d->mlp_bias, "%s.up_proj", name);
    }
    Value *inner = build_mul(&m->b, model_activation(m, parts[0], d->activation), parts[1]);
    return model_linear(m, inner, d->hidden, d->mlp_bias, "%s.down_proj", name);
}

/* c_proj(activation(c_fc(x))) */
static Value *plain_mlp(Decoder *d, Value *x, const char *name) {
    Value *inner = model_linear(d->m, x, d->intermediate, d->mlp_bias, "%s.c_fc", name);
    inner = model_activation(d->m, inner, d->activation);
    return model_linear(d->m, inner, d->hidden, d->mlp_bias, "%s.c_proj", name);
}

static Value *feed_forward(Decoder *d, Value *x, int64_t layer) {
    Builder *b = &d->m->b;
    if (d->experts && d->experts->sparse[layer]) return experts_layer(d, x, layer);
    const char *name = arena_format(&b->program->arena, "layers.%lld.mlp", (long long)layer);
    const char *outer = build_scope(b, "%s.%s", d->m->family->base_prefix, name);
    Value *result =
        d->traits->plain_mlp ? plain_mlp(d, x, name) : decoder_mlp(d, x, d->intermediate, name);
    b->scope = outer;
    return result;
}

static Value *add_residual(Decoder *d, Value *x, Value *added) {
    if (d->residual != 1) added = build_scalar(&d->m->b, OP_MUL_SCALAR, added, d->residual);
    return build_add(&d->m->b, x, added);
}

static Value *layer_norm(Decoder *d, Value *x, int64_t layer, const char *name) {
    return decoder_norm(
        d, x, arena_format(&d->m->b.program->arena, "layers.%lld.%s", (long long)layer, name));
}

Value *decoder_layer(Decoder *d, Value *x, int64_t layer) {
    Value *added;
    switch (d->block) {
    case BLOCK_PRE:
        x = add_residual(d, x,
                         decoder_attention(d, layer_norm(d, x, layer, "input_layernorm"), layer));
        added = feed_forward(d, layer_norm(d, x, layer, "post_attention_layernorm"), layer);
        return add_residual(d, x, added);
    case BLOCK_POST:
        added = layer_norm(d, decoder_attention(d, x, layer), layer, "post_attention_layernorm");
        x = build_add(&d->m->b, x, added);
        added = layer_norm(d, feed_forward(d, x, layer), layer, "post_feedforward_layernorm");
        return build_add(&d->m->b, x, added);
    case BLOCK_SANDWICH:
        added = decoder_attention(d, layer_norm(d, x, layer, "input_layernorm"), layer);
        x = build_add(&d->m->b, x, layer_norm(d, added, layer, "post_attention_layernorm"));
        added = feed_forward(d, layer_norm(d, x, layer, "pre_feedforward_layernorm"), layer);
        return build_add(&d->m->b, x, layer_norm(d, added, layer, "post_feedforward_layernorm"));
    case BLOCK_PARALLEL: {
        Value *normed = layer_norm(d, x, layer, "input_layernorm");
        added = decoder_attention(d, normed, layer);
        return build_add(&d->m->b, build_add(&d->m->b, x, added), feed_forward(d, normed, layer));
    }
    }
    return x;
}
