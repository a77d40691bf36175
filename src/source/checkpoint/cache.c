/* Caches of keys and values, and of states. */
#include "source/checkpoint/cache.h"

#include <string.h>

bool model_keeps_cache(Model *m) {
    if (m->request->component) return true;
    return m->request->use_cache && config_bool_or(m, "use_cache", true);
}

bool model_takes_cache(const Model *m) {
    return model_is_component(m, "decode") ||
           (m->request->keeps_cache && model_is_component(m, "language_model"));
}

static const char SELF_ATTENTION[] = "cache.self_attention_cache";
static const char CROSS_ATTENTION[] = "cache.cross_attention_cache";
static const char ENCODER_DECODER_CACHE[] = "transformers.cache_utils:EncoderDecoderCache";

static bool is_static(const Model *m) {
    return m->request->static_cache > 0;
}

/* ---- coming in ---- */

static const char *leaf_name(Model *m, int64_t layer, const char *leaf) {
    return arena_format(&m->b.program->arena, "%s.layers.%lld.%s", m->cache_name, (long long)layer,
                        leaf);
}

/* The leaf of the cache that comes in, an input of its own. */
static Value *input_leaf(Model *m, int64_t layer, const char *leaf, ferry_dtype dtype,
                         uint32_t rank, const Sym *const *shape) {
    const char *name = leaf_name(m, layer, leaf);
    Value *known = map_find(&m->b.program->names, name);
    return known ? known : build_input(&m->b, name, dtype, rank, shape);
}

/* The length of the cache that comes in: "past" of a dynamic one, "cache_length" of a static one,
 * under the user's name and bounds where there are any. */
static const Sym *cache_length(Model *m) {
    for (size_t i = 0; i < m->input_count; i++) {
        if (strcmp(m->inputs[i].name, "cache") == 0 && m->inputs[i].rank == 1) {
            return m->inputs[i].shape[0];
        }
    }
    SymTable *symbols = &m->b.program->symbols;
    return is_static(m) ? sym_symbol(symbols, "cache_length", 1, SYM_UNBOUNDED)
                        : sym_symbol(symbols, "past", 0, SYM_UNBOUNDED);
}

const Sym *model_key_count(Model *m) {
    if (!model_takes_cache(m)) return m->sequence;
    if (is_static(m)) return cache_length(m);
    return sym_add(&m->b.program->symbols, cache_length(m), m->sequence);
}

Value *model_slots(Model *m) {
    Builder *b = &m->b;
    if (m->slots) return m->slots;
    if (model_takes_cache(m) && is_static(m)) {
        Value *counter = input_leaf(m, m->counting_layer, "cumulative_length", FERRY_I64, 0, NULL);
        Value *range = build_arange(b, build_const(b, 0), m->sequence, FERRY_I64);
        m->slots = build_add(b, range, counter);
    } else if (model_takes_cache(m)) {
        m->slots = build_arange(b, cache_length(m), model_key_count(m), FERRY_I64);
    } else {
        m->slots = build_arange(b, build_const(b, 0), m->sequence, FERRY_I64);
    }
    return m->slots;
}

static Value *join(Model *m, Value *before, Value *added) {
    Builder *b = &m->b;
    if (!is_static(m)) return build_cat(b, (Value *const[]){before, added}, 2, 2);
    const Arg args[] = {arg_tensor(before), arg_int(b, 2), arg_tensor(model_slots(m)),
                        arg_tensor(added)};
    return build_op(b, OP_INDEX_COPY, args, 4);
}

void model_join_cache(Model *m, CacheLayer *layer, int64_t index) {
    static const char *const names[2] = {"keys", "values"};
    Builder *b = &m->b;
    if (!model_takes_cache(m)) return;
    Value **parts[2] = {&layer->keys, &layer->values};
    for (int i = 0; i < 2; i++) {
        const Sym *shape[4] = {m->batch, build_dim(b, *parts[i], 1), cache_length(m),
                               build_dim(b, *parts[i], 3)};
        layer->before[i] = input_leaf(m, index, names[i], m->dtype, 4, shape);
        *parts[i] = join(m, layer->before[i], *parts[i]);
    }
    if (is_static(m))
        layer->counter = input_leaf(m, index, "cumulative_length", FERRY_I64, 0, NULL);
    else if (layer->window > 0)
        layer->marker = input_leaf(m, index, "_sliding_window_tensor", FERRY_I64, 0, NULL);
}

static const char *const state_names[2] = {"conv_states.0", "recurrent_states.0"};

void model_find_states(Model *m, CacheLayer *layer, int64_t index, const int64_t convolution[2],
                       uint32_t rank, const int64_t *recurrent) {
    Builder *b = &m->b;
    const ferry_dtype dtypes[2] = {m->dtype, FERRY_F32};
    const uint32_t ranks[2] = {2, rank};
    const int64_t *const sizes[2] = {convolution, recurrent};
    for (int i = 0; i < 2; i++) {
        const Sym *shape[FERRY_MAX_RANK] = {m->batch};
        for (uint32_t d = 0; d < ranks[i]; d++) shape[d + 1] = build_const(b, sizes[i][d]);
        if (model_takes_cache(m))
            layer->before[i] = input_leaf(m, index, state_names[i], dtypes[i], ranks[i] + 1, shape);
        layer->states[i] =
            layer->before[i] ? layer->before[i] : build_full(b, shape, ranks[i] + 1, 0, dtypes[i]);
    }
}

void model_take_fixed_cache(Model *m, CacheLayer *layer, int64_t index, const Sym *const *shape) {
    const char *outer = m->cache_name;
    m->cache_name = CROSS_ATTENTION;
    layer->keys = layer->before[0] = input_leaf(m, index, "keys", m->dtype, 4, shape);
    layer->values = layer->before[1] = input_leaf(m, index, "values", m->dtype, 4, shape);
    if (is_static(m))
        layer->counter = input_leaf(m, index, "cumulative_length", FERRY_I64, 0, NULL);
    m->cache_name = outer;
}

/* ---- structure ---- */

/* How transformers.exporters encodes a tensor in a treespec. */
static void encode_tensor(Buffer *text, const char *name, int *leaf) {
    buffer_format(text, "\"%s\": {\"_t\": \"tensor\", \"i\": %d}, ", name, (*leaf)++);
}

/* A dictionary with one entry for each state, of which there is one. */
static void encode_item(Buffer *text, const char *name, const char *value) {
    buffer_format(text, "\"%s\": {\"_t\": \"items\", \"v\": [[0, %s]]}, ", name, value);
}

static void encode_states(Model *m, Buffer *text, const CacheLayer *layer, int *leaf) {
    Arena *arena = &m->b.program->arena;
    static const char *const dictionaries[2] = {"conv_states", "recurrent_states"};
    buffer_text(text, "{\"_t\": \"obj\", \"p\": \"transformers.cache_utils:LinearAttentionLayer\", "
                      "\"s\": {\"number_of_states\": 1, ");
    for (int i = 0; i < 2; i++) {
        encode_item(text, dictionaries[i],
                    arena_format(arena, "{\"_t\": \"tensor\", \"i\": %d}", (*leaf)++));
    }
    encode_item(text, "is_conv_states_initialized", "true");
    encode_item(text, "is_recurrent_states_initialized", "true");
    encode_item(text, "has_previous_state", "true");
    int64_t kernel = build_dim(&m->b, layer->states[0], 2)->value;
    encode_item(text, "conv_kernel_size", arena_format(arena, "%lld", (long long)kernel));
    buffer_format(text,
                  "\"device\": {\"_t\": \"device\", \"s\": \"cpu\"}, \"dtype\": {\"_t\": "
                  "\"dtype\", \"n\": \"%s\"}, \"record_past\": false}}",
                  ferry_dtype_name(layer->states[0]->dtype));
}

/* The number for a size that the structure wants as one. */
static long long example(const Sym *size) {
    return sym_is_const(size) ? size->value : 2;
}

/* And a layer of a cache, of whatever kind. */
static void encode_layer(Model *m, Buffer *text, const CacheLayer *layer, int *leaf) {
    const char *kind = is_static(m)        ? "StaticLayer"
                       : layer->window > 0 ? "DynamicSlidingWindowLayer"
                                           : "DynamicLayer";
    if (layer->states[0]) {
        encode_states(m, text, layer, leaf);
        return;
    }
    buffer_format(text, "{\"_t\": \"obj\", \"p\": \"transformers.cache_utils:%s\", \"s\": {", kind);
    encode_tensor(text, "keys", leaf);
    encode_tensor(text, "values", leaf);
    buffer_text(text, "\"is_initialized\": true, ");
    if (is_static(m)) {
        const Sym *length = build_dim(&m->b, layer->keys, 2);
        buffer_format(text, "\"max_cache_len\": %lld, ",
                      layer->fixed ? example(length) : (long long)m->request->static_cache);
        encode_tensor(text, "cumulative_length", leaf);
    } else if (layer->window > 0) {
        buffer_format(text, "\"sliding_window\": %lld, \"cumulative_length\": 0, ",
                      (long long)layer->window);
        encode_tensor(text, "_sliding_window_tensor", leaf);
        buffer_text(text, "\"record_past\": false, ");
    }
    buffer_text(text, "\"device\": {\"_t\": \"device\", \"s\": \"cpu\"}");
    if (is_static(m)) {
        buffer_format(text,
                      ", \"batch_size\": %lld, \"num_heads\": %lld, \"v_head_dim\": %lld, "
                      "\"k_head_dim\": %lld",
                      example(m->batch), (long long)build_dim(&m->b, layer->keys, 1)->value,
                      (long long)build_dim(&m->b, layer->values, 3)->value,
                      (long long)build_dim(&m->b, layer->keys, 3)->value);
    }
    buffer_text(text, "}}");
}

static const char *cache_type(Model *m) {
    return is_static(m) ? "transformers.cache_utils:StaticCache"
                        : "transformers.cache_utils:DynamicCache";
}

static void encode_cache(Model *m, Buffer *text, const CacheLayer *layers, int64_t count,
                         int *leaf) {
    buffer_format(text, "{\"_t\": \"obj\", \"p\": \"%s\", \"s\": {\"layers\": [", cache_type(m));
    for (int64_t i = 0; i < count; i++) {
        if (i) buffer_text(text, ", ");
        encode_layer(m, text, &layers[i], leaf);
    }
    buffer_text(text, "], \"layer_class_to_replicate\": null, \"offloading\": false}}");
}

/* Self attention's and cross attention's, and that the latter are there in all layers. */
static void encode_pair(Model *m, Buffer *text, const CachePair *pair, int *leaf) {
    buffer_format(text, "{\"_t\": \"obj\", \"p\": \"%s\", \"s\": {\"self_attention_cache\": ",
                  ENCODER_DECODER_CACHE);
    encode_cache(m, text, pair->self, pair->layers, leaf);
    buffer_text(text, ", \"cross_attention_cache\": ");
    encode_cache(m, text, pair->cross, pair->layers, leaf);
    buffer_text(text, ", \"is_updated\": {\"_t\": \"items\", \"v\": [");
    for (int64_t i = 0; i < pair->layers; i++)
        buffer_format(text, "%s[%lld, true]", i ? ", " : "", (long long)i);
    buffer_text(text, "]}}}");
}

/* A node of this type, with as many leaves as its encoding, which is freed, has. */
static const Tree *encoded_tree(Model *m, const char *type, Buffer *text, int leaf) {
    Arena *arena = &m->b.program->arena;
    const Tree **leaves = ARENA_ARRAY(arena, const Tree *, (size_t)leaf);
    for (int i = 0; leaves && i < leaf; i++) leaves[i] = tree_leaf(arena);
    if (text->failed) arena->failed = true;
    const Tree *tree =
        leaves ? tree_node(arena, type, buffer_string(text), leaves, (uint32_t)leaf) : NULL;
    buffer_free(text);
    return tree;
}

/* ---- going out ---- */

/* What the whole model returns of a sliding layer: the last `window - 1` entries. */
static Value *last_entries(Model *m, Value *x, int64_t window) {
    if (window <= 0 || m->request->component) return x;
    return build_slice_const(&m->b, x, 2, 1 - window, INT64_MAX);
}

/* What prefill leaves in a static cache: zeros behind the entries. */
static Value *fill_up(Model *m, Value *x) {
    Builder *b = &m->b;
    const Sym *length = build_const(b, m->request->static_cache);
    const Sym *shape[4] = {build_dim(b, x, 0), build_dim(b, x, 1),
                           sym_sub(&b->program->symbols, length, build_dim(b, x, 2)),
                           build_dim(b, x, 3)};
    Value *rest = build_full(b, shape, 4, 0, m->dtype);
    return build_cat(b, (Value *const[]){x, rest}, 2, 2);
}

static Value *leaving(Model *m, Value *x, const CacheLayer *layer) {
    if (layer->fixed) return x;
    if (!is_static(m)) return last_entries(m, x, layer->window);
    return model_takes_cache(m) ? x : fill_up(m, x);
}

/* The number of entries of a static layer. */
static Value *leaving_count(Model *m, const CacheLayer *layer) {
    Builder *b = &m->b;
    if (layer->fixed && layer->counter) return layer->counter;
    const Sym *added = layer->fixed ? build_dim(b, layer->keys, 2) : m->sequence;
    Value *count = build_scalar_tensor(b, added, FERRY_I64);
    return layer->counter ? build_add(b, layer->counter, count) : count;
}

static void output_layer(Model *m, const CacheLayer *layer, int64_t index) {
    Builder *b = &m->b;
    bool in_place = is_static(m) && model_takes_cache(m) && !layer->fixed;
    for (int i = 0; i < 2 && layer->states[0]; i++) {
        build_write(b, leaf_name(m, index, state_names[i]), layer->states[i],
                    in_place ? layer->before[i] : NULL);
    }
    if (layer->states[0]) return;
    Value *values[2] = {leaving(m, layer->keys, layer), leaving(m, layer->values, layer)};
    build_write(b, leaf_name(m, index, "keys"), values[0], in_place ? layer->before[0] : NULL);
    build_write(b, leaf_name(m, index, "values"), values[1], in_place ? layer->before[1] : NULL);
    if (is_static(m)) {
        build_write(b, leaf_name(m, index, "cumulative_length"), leaving_count(m, layer),
                    in_place ? layer->counter : NULL);
    } else if (layer->window > 0) {
        Value *marker = layer->marker ? layer->marker
                                      : build_full(b, NULL, 0, (double)layer->window, FERRY_I64);
        build_output(b, leaf_name(m, index, "_sliding_window_tensor"), marker);
    }
}

/* The order of the leaves, in which inputs are listed: these from the place `next` on. Returns the place
 * behind them. */
static size_t list_inputs(Model *m, const CacheLayer *layers, int64_t count, size_t next) {
    Program *program = m->b.program;
    for (int64_t layer = 0; layer < count; layer++) {
        const Value *const leaves[] = {layers[layer].before[0], layers[layer].before[1],
                                       layers[layer].counter, layers[layer].marker};
        for (size_t leaf = 0; leaf < 4; leaf++) {
            for (size_t i = next; leaves[leaf] && i < program->inputs.count; i++) {
                Port port = program->inputs.items[i];
                if (port.value != leaves[leaf]) continue;
                program->inputs.items[i] = program->inputs.items[next];
                program->inputs.items[next++] = port;
                break;
            }
        }
    }
    return next;
}

/* The place of the first input that is a leaf of a cache. */
static size_t first_input(const Model *m) {
    const Program *program = m->b.program;
    size_t i = 0;
    while (i < program->inputs.count && strncmp(program->inputs.items[i].name, "cache.", 6) != 0)
        i++;
    return i;
}

const Tree *model_output_cache(Model *m, const CacheLayer *layers, int64_t count) {
    Buffer text = {0};
    int leaf = 0;
    for (int64_t i = 0; i < count && build_ok(&m->b); i++) output_layer(m, &layers[i], i);
    if (!build_ok(&m->b)) return NULL;
    encode_cache(m, &text, layers, count, &leaf);
    const Tree *tree = encoded_tree(m, cache_type(m), &text, leaf);
    if (!model_takes_cache(m)) return tree;
    list_inputs(m, layers, count, first_input(m));
    return m->cache_tree = tree;
}

const Tree *model_output_cache_pair(Model *m, const CachePair *pair) {
    const CacheLayer *const parts[2] = {pair->self, pair->cross};
    const char *const names[2] = {SELF_ATTENTION, CROSS_ATTENTION};
    Buffer text = {0};
    int leaf = 0;
    for (int part = 0; part < 2; part++) {
        m->cache_name = names[part];
        for (int64_t i = 0; i < pair->layers && build_ok(&m->b); i++)
            output_layer(m, &parts[part][i], i);
    }
    if (!build_ok(&m->b)) return NULL;
    encode_pair(m, &text, pair, &leaf);
    const Tree *tree = encoded_tree(m, ENCODER_DECODER_CACHE, &text, leaf);
    if (!model_takes_cache(m)) return tree;
    size_t next = list_inputs(m, pair->self, pair->layers, first_input(m));
    list_inputs(m, pair->cross, pair->layers, next);
    return m->cache_tree = tree;
}

void model_use_cache_pair(Model *m) {
    m->cache_name = SELF_ATTENTION;
}
