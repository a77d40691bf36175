/* The layers of BART and its relatives. */
#include "source/checkpoint/bart.h"

#include <math.h>

const char *bart_name(Bart *bart, const BartStack *stack, const char *name) {
    return arena_format(&bart->m->b.program->arena, "%s.%s", stack->name, name);
}

/* A layer of a stack. */
typedef struct Layer {
    Bart *bart;
    const BartStack *stack;
    int64_t index;
    const char *name; /* "decoder.layers.0" */
} Layer;

static Value *norm(const Layer *layer, Value *x, const char *name) {
    return model_layer_norm(layer->bart->m, x, true, 1e-5, "%s.%s", layer->name, name);
}

static Value *linear(const Layer *layer, Value *x, int64_t out, const char *name) {
    return model_linear(layer->bart->m, x, out, true, "%s.%s", layer->name, name);
}

/* Queries, keys or values of a module: [batch, heads, sequence, size]. */
static Value *project(const Layer *layer, Value *x, const char *module, char which) {
    const Bart *bart = layer->bart;
    bool bias = which != 'k' || !bart->traits->no_key_bias;
    Value *rows =
        model_linear(bart->m, x, bart->width, bias, "%s.%s.%c_proj", layer->name, module, which);
    return model_split_heads(bart->m, rows, layer->stack->heads, bart->width / layer->stack->heads);
}

static Value *attend(const Layer *layer, Value *query, Value *keys, Value *values, Value *mask,
                     bool is_causal, const char *module) {
    Model *m = layer->bart->m;
    int64_t size = layer->bart->width / layer->stack->heads;
    Value *seen =
        build_attention(&m->b, query, keys, values, mask, is_causal, 1 / sqrt((double)size));
    return model_linear(m, model_merge_heads(m, seen), layer->bart->width, true, "%s.%s.out_proj",
                        layer->name, module);
}

typedef Value *(*Part)(const Layer *layer, Value *x, Value *mask);

static Value *own_attention(const Layer *layer, Value *x, Value *mask) {
    const char *module = "self_attn";
    Value *query = project(layer, x, module, 'q'), *keys = project(layer, x, module, 'k');
    return attend(layer, query, keys, project(layer, x, module, 'v'), mask, false, module);
}

static Value *cached_attention(const Layer *layer, Value *x, Value *mask) {
    const char *module = "self_attn";
    Bart *bart = layer->bart;
    Value *query = project(layer, x, module, 'q'), *keys = project(layer, x, module, 'k');
    const CacheLayer *cache =
        seq2seq_join(&bart->s, layer->index, keys, project(layer, x, module, 'v'));
    return attend(layer, query, cache->keys, cache->values, mask, model_is_causal(bart->m, mask),
                  module);
}

static Value *cross_attention(const Layer *layer, Value *x, Value *mask) {
    const char *module = "encoder_attn";
    Bart *bart = layer->bart;
    int64_t heads = layer->stack->heads;
    Value *query = project(layer, x, module, 'q'), *encoded = bart->s.encoded;
    const CacheLayer *cache = seq2seq_cross(&bart->s, layer->index, heads, bart->width / heads);
    if (!cache) {
        Value *keys = project(layer, encoded, module, 'k');
        cache = seq2seq_keep(&bart->s, layer->index, keys, project(layer, encoded, module, 'v'));
    }
    return attend(layer, query, cache->keys, cache->values, mask, false, module);
}

static Value *feed_forward(const Layer *layer, Value *x, Value *mask) {
    (void)mask;
    x = model_activation(layer->bart->m, linear(layer, x, layer->stack->inner, "fc1"),
                         layer->bart->activation);
    return linear(layer, x, layer->bart->width, "fc2");
}

/* One part with its norm and its residual. */
static Value *add_part(const Layer *layer, Value *x, Part part, Value *mask,
                       const char *norm_name) {
    Builder *b = &layer->bart->m->b;
    if (layer->bart->traits->norm_first)
        return build_add(b, x, part(layer, norm(layer, x, norm_name), mask));
    return norm(layer, build_add(b, x, part(layer, x, mask)), norm_name);
}

static Layer enter_layer(Bart *bart, const BartStack *stack, int64_t index) {
    Arena *arena = &bart->m->b.program->arena;
    const char *name = arena_format(arena, "%s.layers.%lld", stack->name, (long long)index);
    build_scope(&bart->m->b, "%s.%s", bart->m->family->base_prefix, name);
    return (Layer){bart, stack, index, name};
}

static Value *end_stack(Bart *bart, Value *x, const BartStack *stack) {
    Model *m = bart->m;
    build_scope(&m->b, "%s.%s", m->family->base_prefix, stack->name);
    if (bart->traits->norm_first)
        x = model_layer_norm(m, x, true, 1e-5, "%s.layer_norm", stack->name);
    m->b.scope = "";
    return x;
}

Value *bart_encoder_layers(Bart *bart, Value *x, Value *mask) {
    const double largest = 65504 - 1000; /* what the classes let through in float16 */
    Builder *b = &bart->m->b;
    for (int64_t i = 0; i < bart->encoder.layers && build_ok(b); i++) {
        const Layer layer = enter_layer(bart, &bart->encoder, i);
        x = add_part(&layer, x, own_attention, mask, "self_attn_layer_norm");
        x = add_part(&layer, x, feed_forward, NULL, "final_layer_norm");
        if (x->dtype == FERRY_F16) x = build_clamp(b, x, arg_float(-largest), arg_float(largest));
    }
    return end_stack(bart, x, &bart->encoder);
}

Value *bart_decoder_layers(Bart *bart, Value *x, Value *mask) {
    for (int64_t i = 0; i < bart->decoder.layers && build_ok(&bart->m->b); i++) {
        const Layer layer = enter_layer(bart, &bart->decoder, i);
        x = add_part(&layer, x, cached_attention, mask, "self_attn_layer_norm");
        x = add_part(&layer, x, cross_attention, bart->s.cross_mask, "encoder_attn_layer_norm");
        x = add_part(&layer, x, feed_forward, NULL, "final_layer_norm");
    }
    return end_stack(bart, x, &bart->decoder);
}
