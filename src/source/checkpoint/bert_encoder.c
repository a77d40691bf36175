/* Embeddings and layers of BERT and its relatives. */
#include "source/checkpoint/bert.h"

#include <math.h>
#include <stdlib.h>

/* ---- embeddings ---- */

/* The embedding matrix. A file may hold it under the name of the decoder that is tied to it. */
static Value *load_words(Bert *bert) {
    Model *m = bert->m;
    const char *name = "embeddings.word_embeddings.weight";
    const char *decoder =
        arena_format(&m->b.program->arena, "%s.weight", bert->traits->prediction.decoder);
    const int64_t shape[2] = {bert->vocabulary, bert->embedding};
    bool tied = config_bool_or(m, "tie_word_embeddings", true);
    if (tied && !model_has(m, "%s", name) && model_has(m, "%s", decoder)) {
        return model_head_weight(m, 2, shape, decoder);
    }
    return model_weight(m, 2, shape, "%s", name);
}

/* padding + 1, padding + 2, ... for tokens, `padding` itself for padding. */
static Value *positions_after_padding(Bert *bert, Value *ids) {
    Builder *b = &bert->m->b;
    SymTable *symbols = &b->program->symbols;
    int64_t padding = bert->traits->padding;
    if (!bert->traits->fixed_padding) {
        padding = config_int_or(bert->m, "pad_token_id", padding);
        if (config_is_null(bert->m, "pad_token_id")) {
            return build_fail(b, FERRY_BAD_FORMAT,
                              "%s: positions start after \"pad_token_id\", which is null",
                              bert->m->config_path);
        }
    }
    if (!ids) {
        const Sym *first = build_const(b, padding + 1);
        const Sym *end = sym_add(symbols, bert->m->sequence, first);
        return build_unsqueeze(b, build_arange(b, first, end, FERRY_I64), 0);
    }
    Value *is_token = build_to(b, build_scalar(b, OP_NE_SCALAR, ids, (double)padding), FERRY_I64);
    Value *count = build_mul(b, build_cumsum(b, is_token, 1), is_token);
    return build_scalar(b, OP_ADD_SCALAR, count, (double)padding);
}

static Value *position_embeddings(Bert *bert, Value *ids) {
    Model *m = bert->m;
    int64_t length = config_size_or(m, "max_position_embeddings", 512);
    Value *table =
        model_matrix(m, length, bert->embedding, "embeddings.position_embeddings.weight");
    const Sym *const shape[2] = {m->batch, m->sequence};
    bool given = model_input(m, "position_ids", FERRY_I64, 2, shape) != NULL;
    Value *positions = bert->traits->skips_padding && !given ? positions_after_padding(bert, ids)
                                                             : model_positions(m);
    return build_embedding(&m->b, table, positions);
}

static Value *segment_embeddings(Bert *bert) {
    Model *m = bert->m;
    int64_t segments = config_size_or(m, "type_vocab_size", 2);
    Value *table =
        model_matrix(m, segments, bert->embedding, "embeddings.token_type_embeddings.weight");
    const Sym *const shape[2] = {m->batch, m->sequence};
    Value *given = model_input(m, "token_type_ids", FERRY_I64, 2, shape);
    if (!given) return build_select(&m->b, table, 0, 0);
    return build_embedding(&m->b, table, build_to(&m->b, given, FERRY_I64));
}

static Value *embed(Bert *bert) {
    Model *m = bert->m;
    const BertTraits *traits = bert->traits;
    const char *outer = build_scope(&m->b, "%s.embeddings", m->family->base_prefix);
    Value *ids = NULL;
    bert->words = load_words(bert);
    Value *x = model_embed_inputs(m, bert->words, &ids);
    if (traits->segments) x = build_add(&m->b, x, segment_embeddings(bert));
    x = build_add(&m->b, x, position_embeddings(bert, ids));
    x = model_layer_norm(m, x, true, bert->eps, "embeddings.LayerNorm");
    if (traits->projection && (traits->always_projects || bert->embedding != bert->hidden)) {
        build_scope(&m->b, "%s.%s", m->family->base_prefix, traits->projection);
        x = model_linear(m, x, bert->hidden, true, "%s", traits->projection);
    }
    m->b.scope = outer;
    return x;
}

/* ---- relative positions ---- */

/* Of the class, whatever relative_attention_num_buckets says. */
static const RelativeBuckets buckets = {.buckets = 32, .reach = 128, .both_ways = true};

/* What is added to the scores, [1, heads, sequence, sequence]. */
static Value *relative_bias(Bert *bert) {
    Model *m = bert->m;
    int64_t rows = config_size_or(m, "relative_attention_num_buckets", buckets.buckets);
    if (rows < buckets.buckets) {
        build_fail(
            &m->b, FERRY_BAD_FORMAT,
            "%s: expected \"relative_attention_num_buckets\" to be at least %lld, found %lld",
            m->config_path, (long long)buckets.buckets, (long long)rows);
    }
    const char *outer = build_scope(&m->b, "%s.encoder", m->family->base_prefix);
    Value *table = model_matrix(m, rows, bert->heads, "encoder.relative_attention_bias.weight");
    Value *bias = model_relative_bias(m, &buckets, table);
    m->b.scope = outer;
    return bias;
}

/* ---- layers ---- */

static Value *attend(Bert *bert, Value *x, Value *mask, const char *layer) {
    Model *m = bert->m;
    const BertLayerNames *names = bert->traits->layer;
    const char *const parts[3] = {names->query, names->key, names->value};
    int64_t size = bert->hidden / bert->heads;
    Value *heads[3];
    for (int i = 0; i < 3; i++) {
        Value *rows = model_linear(m, x, bert->hidden, true, "%s.%s", layer, parts[i]);
        heads[i] = model_split_heads(m, rows, bert->heads, size);
    }
    Value *seen =
        build_attention(&m->b, heads[0], heads[1], heads[2], mask, false, 1 / sqrt((double)size));
    return model_linear(m, model_merge_heads(m, seen), bert->hidden, true, "%s.%s", layer,
                        names->attention_output);
}

static Value *add_and_norm(Bert *bert, Value *x, Value *residual, const char *layer,
                           const char *norm) {
    Value *sum = build_add(&bert->m->b, x, residual);
    return model_layer_norm(bert->m, sum, true, bert->eps, "%s.%s", layer, norm);
}

static Value *build_layer(Bert *bert, Value *x, Value *mask, const char *layer) {
    Model *m = bert->m;
    const BertLayerNames *names = bert->traits->layer;
    const char *outer = build_scope(&m->b, "%s.%s.attention", m->family->base_prefix, layer);
    x = add_and_norm(bert, attend(bert, x, mask, layer), x, layer, names->attention_norm);
    build_scope(&m->b, "%s.%s", m->family->base_prefix, layer);
    Value *wide = model_linear(m, x, bert->intermediate, true, "%s.%s", layer, names->up);
    wide = model_activation(m, wide, bert->activation);
    Value *narrow = model_linear(m, wide, bert->hidden, true, "%s.%s", layer, names->down);
    x = add_and_norm(bert, narrow, x, layer, names->output_norm);
    m->b.scope = outer;
    return x;
}

/* The name of inner layer j at depth i. Depths are spread evenly over the groups. */
static const char *layer_name(Bert *bert, int64_t i, int64_t j) {
    Arena *arena = &bert->m->b.program->arena;
    const BertTraits *traits = bert->traits;
    if (!traits->shared_layers) return arena_format(arena, "%s.%lld", traits->layers, (long long)i);
    int64_t group = (int64_t)((double)i / ((double)bert->layers / (double)bert->groups));
    return arena_format(arena, "%s.%lld.%s.%lld", traits->layers, (long long)group,
                        traits->shared_layers, (long long)j);
}

Value *bert_encode(Bert *bert) {
    Model *m = bert->m;
    const char *outer = build_scope(&m->b, "%s", m->family->base_prefix);
    Value *x = embed(bert);
    Value *mask = model_mask(m, model_padding_mask(m), false, 0);
    if (bert->traits->relative_bias) {
        Value *bias = relative_bias(bert);
        mask = mask ? build_where(&m->b, mask, bias, model_lowest(m)) : bias;
    }
    for (int64_t i = 0; i < bert->layers; i++) {
        for (int64_t j = 0; j < bert->group_layers; j++) {
            x = build_layer(bert, x, mask, layer_name(bert, i, j));
        }
    }
    m->b.scope = outer;
    return x;
}
