/* DeepSeek's attention: keys and values are made of a few compressed features per token, which are what
 * the cache keeps, and of a rotated part of the key that all heads share. */
#include "source/checkpoint/decoder.h"

#include <math.h>

/* The norms inside have this epsilon whatever the configuration says. */
#define INNER_EPS 1e-6

void latent_read(Decoder *d) {
    Model *m = d->m;
    Latent *latent = &d->latent;
    if (!config_is_null(m, "q_lora_rank"))
        latent->query_rank = config_size_or(m, "q_lora_rank", 1536);
    latent->rank = config_size_or(m, "kv_lora_rank", 512);
    latent->rotated = config_size_or(m, "qk_rope_head_dim", 64);
    latent->plain = config_size_or(m, "qk_nope_head_dim", 128);
    latent->value = config_size_or(m, "v_head_dim", 128);
    latent->pairs = config_bool_or(m, "rope_interleave", true);
    config_accept(m, "qk_head_dim"); /* the sum of two of these, whatever it says */
    d->head_dim = latent->rotated;
    d->scale = 1 / sqrt((double)(latent->plain + latent->rotated));
    if (d->kv_heads != d->heads) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: expected as many \"num_key_value_heads\" as \"num_attention_heads\", %lld, "
                   "found %lld",
                   m->config_path, (long long)d->heads, (long long)d->kv_heads);
    }
    if (latent->rotated % 2 != 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: expected \"qk_rope_head_dim\" to be even, found %lld", m->config_path,
                   (long long)latent->rotated);
        latent->rotated = 2;
    }
}

static Value *inner_norm(Decoder *d, Value *x, int64_t size, const char *name, const char *which) {
    Value *weight = model_vector(d->m, size, "%s.%s.weight", name, which);
    return build_rms_norm(&d->m->b, x, weight, INNER_EPS);
}

/* Neighbouring pairs of features as two halves: (x0, x1, x2, x3, ..) -> (x0, x2, .., x1, x3, ..). */
static Value *part_pairs(Builder *b, Value *x) {
    const Sym *shape[] = {x->shape[0], x->shape[1], x->shape[2],
                          build_const(b, build_dim(b, x, -1)->value / 2), build_const(b, 2)};
    return build_view(b, build_transpose(b, build_view(b, x, shape, 5), 3, 4), x->shape, 4);
}

static Value *rotate(Decoder *d, Value *x) {
    Builder *b = &d->m->b;
    if (!build_ok(b)) return &b->poison;
    if (d->latent.pairs) x = part_pairs(b, x);
    return build_rotary(b, x, d->rotary[0].cos, d->rotary[0].sin, false);
}

/* [batch, heads, sequence, plain + rotated] */
static Value *make_queries(Decoder *d, Value *x, const char *name) {
    Model *m = d->m;
    const Latent *latent = &d->latent;
    const int64_t sizes[] = {latent->plain, latent->rotated};
    int64_t size = latent->plain + latent->rotated;
    Value *parts[2];
    if (latent->query_rank) {
        x = model_linear(m, x, latent->query_rank, d->qkv_bias, "%s.q_a_proj", name);
        x = inner_norm(d, x, latent->query_rank, name, "q_a_layernorm");
    }
    const char *last = latent->query_rank ? "q_b_proj" : "q_proj";
    x = model_linear(m, x, d->heads * size, false, "%s.%s", name, last);
    build_split(&m->b, model_split_heads(m, x, d->heads, size), sizes, 2, -1, parts);
    parts[1] = rotate(d, parts[1]);
    return build_cat(&m->b, parts, 2, -1);
}

/* What the cache keeps, as keys and values of one head: the compressed features, and the rotated part. */
static CacheLayer compress(Decoder *d, Value *x, const char *name) {
    Model *m = d->m;
    const Latent *latent = &d->latent;
    const int64_t sizes[] = {latent->rank, latent->rotated};
    Value *parts[2];
    x = model_linear(m, x, latent->rank + latent->rotated, d->qkv_bias, "%s.kv_a_proj_with_mqa",
                     name);
    build_split(&m->b, x, sizes, 2, -1, parts);
    Value *normed = inner_norm(d, parts[0], latent->rank, name, "kv_a_layernorm");
    return (CacheLayer){.keys = build_unsqueeze(&m->b, normed, 1),
                        .values = rotate(d, build_unsqueeze(&m->b, parts[1], 1))};
}

Value *latent_attention(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    Builder *b = &m->b;
    const Latent *latent = &d->latent;
    const char *name = arena_format(&b->program->arena, "layers.%lld.self_attn", (long long)layer);
    const char *outer = build_scope(b, "%s.%s", m->family->base_prefix, name);
    CacheLayer *cache = &d->cache[layer];
    Value *query = make_queries(d, x, name), *parts[2];
    *cache = compress(d, x, name);
    model_join_cache(m, cache, layer);
    const int64_t sizes[] = {latent->plain, latent->value};
    Value *both =
        model_linear(m, build_squeeze(b, cache->keys, 1),
                     d->heads * (latent->plain + latent->value), false, "%s.kv_b_proj", name);
    both = model_split_heads(m, both, d->heads, latent->plain + latent->value);
    build_split(b, both, sizes, 2, -1, parts);
    const Sym *shape[] = {build_dim(b, both, 0), build_const(b, d->heads), build_dim(b, both, 2),
                          build_const(b, latent->rotated)};
    Value *shared = build_expand(b, cache->values, shape, 4);
    Value *key = build_cat(b, (Value *const[]){parts[0], shared}, 2, -1);
    Value *context = build_attention(b, query, key, parts[1], d->mask[0], d->is_causal[0],
                                     d->scale * d->rotary[0].score_factor);
    Value *result = model_linear(m, model_merge_heads(m, context), d->hidden, d->output_bias,
                                 "%s.o_proj", name);
    b->scope = outer;
    return result;
}
