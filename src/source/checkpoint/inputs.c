/* The inputs of a program: which ones, of which shapes, in which order; and its outputs. */
#include "source/checkpoint/cache.h"
#include "source/checkpoint/families.h"

#include <string.h>

/* ---- names ---- */

/* Is this the input `stem` of the part that reads tokens: "input_ids", or "decoder_input_ids"? */
static bool is_input(const Model *m, const char *name, const char *stem) {
    size_t length = strlen(m->input_prefix);
    return strncmp(name, m->input_prefix, length) == 0 && strcmp(name + length, stem) == 0;
}

static const char *input_name(Model *m, const char *stem) {
    return arena_format(&m->b.program->arena, "%s%s", m->input_prefix, stem);
}

/* Is the input called `name` the keyword, or a leaf of it: "attention_mask.full_attention"? */
static bool is_leaf_of(const char *name, const char *keyword) {
    size_t length = strlen(keyword);
    return strncmp(name, keyword, length) == 0 && (!name[length] || name[length] == '.');
}

/* ---- what is asked for ---- */

bool model_is_component(const Model *m, const char *name) {
    return m->request->component && strcmp(m->request->component, name) == 0;
}

/* A step of generation on one token, unless it is to take several. */
static bool takes_one_token(const Model *m) {
    return model_is_component(m, "decode") && !m->request->multi_token;
}

/* A prompt's tokens fit a static cache. */
static void limit_to_cache(Model *m) {
    int64_t length = m->request->static_cache;
    bool prefill = model_is_component(m, "prefill") || model_is_component(m, "language_model");
    if (!prefill || length <= 0 || m->sequence->kind != SYM_SYMBOL) return;
    if (m->sequence->upper > length) sym_narrow(&m->b.program->symbols, m->sequence, length);
}

void model_name_dimensions(Model *m) {
    for (size_t i = 0; i < m->input_count; i++) {
        const InputRequest *input = &m->inputs[i];
        bool main_input =
            is_input(m, input->name, "input_ids") || is_input(m, input->name, "inputs_embeds");
        if (!main_input || input->rank < 2) continue;
        m->batch = input->shape[0];
        m->sequence = input->shape[1];
    }
    SymTable *symbols = &m->b.program->symbols;
    if (!m->batch) m->batch = sym_symbol(symbols, "batch", 1, SYM_UNBOUNDED);
    if (takes_one_token(m))
        m->sequence = sym_const(symbols, 1);
    else if (!m->sequence)
        m->sequence = sym_symbol(symbols, input_name(m, "sequence"), 1, SYM_UNBOUNDED);
    limit_to_cache(m);
}

static size_t string_count(const char *const *strings) {
    size_t count = 0;
    while (strings[count]) count++;
    return count;
}

/* In a component, the shapes of other inputs follow from that of the main one, and of the cache; and what
 * is asked for may concern another component. */
static void adjust_request(const Model *m, InputRequest *input) {
    if (is_input(m, input->name, "attention_mask") || is_input(m, input->name, "position_ids")) {
        input->rank = 0;
        input->optional = true;
    }
    if (is_input(m, input->name, "input_ids") && input->rank == 2 && takes_one_token(m)) {
        input->shape[1] = sym_const(&m->b.program->symbols, 1);
    }
}

void model_merge_inputs(Model *m, const char *const *names, bool optional) {
    size_t count = 0;
    bool component = m->request->component != NULL;
    if (!component && !m->request->default_inputs) names += string_count(names);
    m->inputs =
        ARENA_ARRAY(&m->b.program->arena, InputRequest, string_count(names) + m->named_count + 1);
    if (!m->inputs) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (; *names; names++)
        m->inputs[count++] = (InputRequest){.name = *names, .optional = optional};
    if (model_takes_cache(m)) m->inputs[count++] = (InputRequest){.name = "cache"};
    for (size_t i = 0; i < m->named_count; i++) {
        size_t place = 0;
        while (place < count && strcmp(m->inputs[place].name, m->named[i].name) != 0) place++;
        if (place == count) count++;
        m->inputs[place] = m->named[i];
        if (!component) continue;
        adjust_request(m, &m->inputs[place]);
        m->inputs[place].optional = true; /* it may be for other components */
    }
    m->input_count = count;
}

void model_default_inputs(Model *m, const char *const *names) {
    model_merge_inputs(m, names, false);
    if (!m->request->component || !m->inputs) return;
    /* what is named besides is for other components, unless it is a leaf of one of these */
    size_t count = string_count(names) + model_takes_cache(m), kept = count;
    for (size_t i = count; i < m->input_count; i++) {
        bool own = false;
        for (size_t j = 0; j < count; j++) own |= is_leaf_of(m->inputs[i].name, m->inputs[j].name);
        if (own) m->inputs[kept++] = m->inputs[i];
    }
    m->input_count = kept;
}

/* ---- inputs and outputs ---- */

Value *model_input(Model *m, const char *name, ferry_dtype dtype, uint32_t rank,
                   const Sym *const *shape) {
    for (size_t i = 0; i < m->input_count; i++) {
        InputRequest *request = &m->inputs[i];
        if (strcmp(request->name, name) != 0) continue;
        if (request->rank && request->rank != rank) {
            return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                              "the input \"%s\" has %u dimensions, expected %u", name,
                              request->rank, rank);
        }
        Value *known = map_find(&m->b.program->names, name);
        if (known && known->kind == VALUE_INPUT) return known;
        if (request->dtype && !ferry_dtype_is_float(dtype)) dtype = request->dtype;
        return build_input(&m->b, name, dtype, rank, request->rank ? request->shape : shape);
    }
    return NULL;
}

Value *model_input_leaf(Model *m, const char *name, const char *leaf, ferry_dtype dtype,
                        uint32_t rank, const Sym *const *shape) {
    const char *full = arena_format(&m->b.program->arena, "%s.%s", name, leaf);
    bool asked = false;
    for (size_t i = 0; i < m->input_count; i++) {
        const InputRequest *input = &m->inputs[i];
        asked |= strcmp(input->name, name) == 0;
        if (strcmp(input->name, full) == 0 && input->rank == rank) shape = input->shape;
    }
    return asked ? build_input(&m->b, full, dtype, rank, shape) : NULL;
}

static Value *as_int64(Model *m, Value *x) {
    return x ? build_to(&m->b, x, FERRY_I64) : NULL;
}

Value *model_embed_inputs(Model *m, Value *table, Value **ids) {
    const Sym *shape[3] = {m->batch, m->sequence, build_dim(&m->b, table, 1)};
    const char *prefix = m->input_prefix;
    Value *input_ids = model_input(m, input_name(m, "input_ids"), FERRY_I64, 2, shape);
    Value *embeds = model_input(m, input_name(m, "inputs_embeds"), m->dtype, 3, shape);
    if (input_ids && embeds) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                          "expected either %sinput_ids or %sinputs_embeds as an input, found both",
                          prefix, prefix);
    }
    if (!input_ids && !embeds) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                          "expected %sinput_ids or %sinputs_embeds among the inputs", prefix,
                          prefix);
    }
    Value *given = input_ids ? input_ids : embeds;
    m->batch = build_dim(&m->b, given, 0);
    m->sequence = build_dim(&m->b, given, 1);
    if (ids) *ids = as_int64(m, input_ids);
    return input_ids ? build_embedding(&m->b, table, input_ids) : embeds;
}

Value *model_positions(Model *m) {
    Value *given = model_input(m, input_name(m, "position_ids"), FERRY_I64, 2,
                               (const Sym *const[]){m->batch, m->sequence});
    if (given) return as_int64(m, given);
    return build_unsqueeze(&m->b, model_slots(m), 0);
}

bool model_masks_whole(const Model *m) {
    bool fixed = model_takes_cache(m) && m->request->static_cache > 0;
    return m->masks_given || (fixed && !m->masks_keys);
}

Value *model_padding_mask(Model *m) {
    if (model_masks_whole(m)) return NULL;
    return model_mask_input(m, input_name(m, "attention_mask"), model_key_count(m));
}

Value *model_mask_input(Model *m, const char *name, const Sym *keys) {
    Value *given = model_input(m, name, FERRY_I64, 2, (const Sym *const[]){m->batch, keys});
    if (!given) return NULL;
    return given->dtype == FERRY_BOOL ? given : build_scalar(&m->b, OP_NE_SCALAR, given, 0);
}

void model_output_tree(Model *m, const char *type, const char *const *keys,
                       const Tree *const *trees, uint32_t count) {
    Arena *arena = &m->b.program->arena;
    const Tree *children[16];
    for (uint32_t i = 0; i < count; i++) children[i] = trees[i] ? trees[i] : tree_leaf(arena);
    bool whole = strchr(type, '.') != NULL;
    const char *full = whole ? type : arena_format(arena, "transformers.modeling_outputs.%s", type);
    m->b.program->output_tree = tree_mapping(arena, full, keys, children, count);
}

void model_output_one(Model *m, const char *type, const char *key, Value *value) {
    build_output(&m->b, key, value);
    model_output_tree(m, type, &key, (const Tree *const[]){NULL}, 1);
}

/* ---- order ---- */

enum { MAX_KEYWORDS = 72 };

/* The structure of a keyword whose inputs, from `first` on, are `count` in number. */
static const Tree *keyword_tree(Model *m, const char *keyword, size_t first, size_t count) {
    Arena *arena = &m->b.program->arena;
    const Port *ports = m->b.program->inputs.items + first;
    if (strcmp(keyword, "cache") == 0) return m->cache_tree;
    if (count == 1 && strcmp(ports->name, keyword) == 0) return tree_leaf(arena);
    const Tree **leaves = ARENA_ARRAY(arena, const Tree *, count);
    const char **keys = ARENA_ARRAY(arena, const char *, count);
    if (!leaves || !keys) return NULL;
    for (size_t i = 0; i < count; i++) {
        keys[i] = ports[i].name + strlen(keyword) + 1;
        leaves[i] = tree_leaf(arena);
    }
    if (strcmp(keys[0], "0") == 0)
        return tree_node(arena, "builtins.list", "null", leaves, (uint32_t)count);
    bool encoded = strcmp(keyword, "encoder_outputs") == 0;
    const char *type = encoded ? m->encoder_outputs : "builtins.dict";
    return tree_mapping(arena, type, keys, leaves, (uint32_t)count);
}

void model_order_inputs(Model *m) {
    Program *program = m->b.program;
    const Tree *trees[MAX_KEYWORDS];
    const char *names[MAX_KEYWORDS];
    uint32_t keywords = 0;
    size_t next = 0;
    for (size_t i = 0; i < m->input_count && i < MAX_KEYWORDS && build_ok(&m->b); i++) {
        const char *keyword = m->inputs[i].name;
        size_t first = next;
        for (size_t j = next; j < program->inputs.count; j++) {
            Port port = program->inputs.items[j];
            if (!is_leaf_of(port.name, keyword)) continue;
            for (size_t k = j; k > next; k--)
                program->inputs.items[k] = program->inputs.items[k - 1];
            program->inputs.items[next++] = port;
        }
        if (next == first && m->inputs[i].optional) continue;
        if (next == first) {
            build_fail(&m->b, FERRY_INVALID_ARGUMENT, "%s does not take the input \"%s\"",
                       program->architecture, keyword);
            return;
        }
        names[keywords] = keyword;
        trees[keywords++] = keyword_tree(m, keyword, first, next - first);
    }
    const Tree *pair[2] = {
        tree_tuple(&program->arena, NULL, 0),
        tree_mapping(&program->arena, "builtins.dict", names, trees, keywords),
    };
    program->input_tree = tree_tuple(&program->arena, pair, 2);
}
