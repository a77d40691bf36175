/* Translating the graph, node by node. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <string.h>

static const Translation *const tables[] = {
    translate_elementwise, translate_shape,  translate_create, translate_reduce,  translate_layer,
    translate_indexing,    translate_conv,   translate_pool,   translate_norm,    translate_image,
    translate_order,       translate_math,   translate_binary, translate_arrange, translate_product,
    translate_stats,       translate_slices,
};

static const Translation *find_in(const Translation *row, const char *target) {
    for (; row->target; row++) {
        if (strcmp(row->target, target) == 0) return row;
    }
    return NULL;
}

static bool is_complex(Reader *r, const Doc *arg) {
    return reader_is_complex(r, doc_text(doc_get(doc_get(arg, "as_tensor"), "name")));
}

static bool has_complex(Reader *r, const Doc *node) {
    const Doc *entry;
    size_t i;
    DOC_EACH_ITEM(doc_get(node, "outputs"), i, entry) {
        if (is_complex(r, entry)) return true;
    }
    DOC_EACH_ITEM(doc_get(node, "inputs"), i, entry) {
        if (is_complex(r, doc_get(entry, "arg"))) return true;
    }
    return false;
}

const Translation *translate_row(Reader *r, const Doc *node, const char *target) {
    if (has_complex(r, node)) {
        const Translation *row = find_in(translate_complexes, target);
        return row ? row : find_in(translate_fourier, target);
    }
    return registry_find(r->registry, EXTENSION_TRANSLATION, target);
}

void translations_register(Registry *registry) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const Translation *row = tables[i]; row->target; row++)
            registry_add(registry, EXTENSION_TRANSLATION, row->target, row);
    }
}

/* Nodes whose results are sizes, which the file's own expressions give, or that assert something. */
static bool is_bookkeeping(const char *target) {
    static const char *const ignored[] = {
        "aten.sym_size.int",
        "aten.sym_stride.int",
        "aten.sym_numel.default",
        "aten.sym_storage_offset.default",
        "aten._assert_tensor_metadata.default",
        "aten._assert_scalar.default",
        "aten.sym_constrain_range_for_size.default",
        "aten.sym_constrain_range.default",
        "aten._assert_async.msg",
        "aten.promote_types.default",
    };
    if (strncmp(target, "_operator.", 10) == 0 || strncmp(target, "torch.sym_", 10) == 0 ||
        strncmp(target, "math.", 5) == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (strcmp(target, ignored[i]) == 0) return true;
    }
    return false;
}

/* A float computed from sizes: a 0-d float32 tensor under the name of the result. */
static void translate_number(Reader *r, const Doc *node, const char *target) {
    static const struct {
        const char *target;
        Op op;
    } operations[] = {{"_operator.add", OP_ADD},
                      {"_operator.sub", OP_SUB},
                      {"_operator.mul", OP_MUL},
                      {"_operator.truediv", OP_DIV},
                      {"_operator.pow", OP_POW}};
    const Doc *output = doc_item(doc_get(node, "outputs"), 0);
    const char *name = doc_text(doc_get(doc_get(output, "as_sym_float"), "as_name"));
    Call call = {.r = r, .b = &r->b, .node = node};
    if (!name) return;
    Value *sides[2] = {&r->b.poison, &r->b.poison};
    for (int i = 0; i < 2; i++) {
        const char *side = i ? "b" : "a";
        if (!take_has(&call, side)) continue;
        Arg scalar = take_is_tensor(&call, side) ? arg_none() : take_scalar(&call, side);
        if (scalar.kind == VALUE_NONE)
            sides[i] = take_tensor(&call, side);
        else if (scalar.kind == VALUE_INT)
            sides[i] = build_scalar_tensor(&r->b, scalar.integer, FERRY_F32);
        else
            sides[i] = build_full(&r->b, NULL, 0, take_float(&call, side, 0), FERRY_F32);
    }
    if (strcmp(target, "torch.sym_float") == 0) {
        reader_bind(r, name, sides[0]);
        return;
    }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].target, target) != 0) continue;
        reader_bind(r, name, build_binary(&r->b, operations[i].op, sides[0], sides[1]));
    }
}

/* "aten.add_.Tensor" -> "aten.add.Tensor"; false when the name is not that of an in-place op. */
static bool functional_name(Reader *r, const char *target, const char **out) {
    static const char *const operators[][2] = {{"aten.__ior__.Tensor", "aten.bitwise_or.Tensor"},
                                               {"aten.__iand__.Tensor", "aten.bitwise_and.Tensor"}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(target, operators[i][0]) != 0) continue;
        *out = operators[i][1];
        return true;
    }
    const char *name = strchr(target, '.');
    const char *dot = name ? strchr(name + 1, '.') : NULL;
    if (!dot || dot[-1] != '_' || (dot - name > 2 && dot[-2] == '_')) return false;
    *out = arena_format(&r->pt2->arena, "%.*s%s", (int)(dot - target - 1), target, dot);
    return true;
}

static const char *self_name(Call *c) {
    const char *self = take_tensor_name(c, "self");
    return self ? self : take_tensor_name(c, "input");
}

/* Does result `index` share the storage of the argument? */
static bool shares_storage(Call *c, const Value *self, uint32_t index) {
    switch (c->how->alias) {
    case ALIAS_NEVER: return false;
    case ALIAS_ALWAYS: return true;
    case ALIAS_SAME_VALUE: return c->results[index] == self;
    case ALIAS_CONTIGUOUS: {
        TensorMeta meta = reader_meta(c->r, self_name(c));
        return schema_is_contiguous(&c->b->program->symbols, &meta);
    }
    }
    return false;
}

/* What was built must be what the file says it is. */
static void check_result(Call *c, uint32_t index) {
    TensorMeta meta = result_meta(c, index);
    const Value *value = c->results[index];
    if (!build_ok(c->b)) return;
    bool same = meta.dtype == value->dtype && meta.rank == value->rank;
    for (uint32_t d = 0; same && d < meta.rank; d++) {
        bool constant = sym_is_const(meta.sizes[d]) && sym_is_const(value->shape[d]);
        same = !constant || meta.sizes[d] == value->shape[d];
    }
    if (same) return;
    Buffer made = {0};
    value_print_type(&made, value);
    take_fail(c, FERRY_INTERNAL, "the translation made %s, the program says %s of rank %u",
              buffer_string(&made), ferry_dtype_name(meta.dtype), meta.rank);
    buffer_free(&made);
}

static void bind_results(Call *c, const Doc *node) {
    const char *self = self_name(c);
    Binding *base = self ? map_find(&c->r->bindings, self) : NULL;
    const Value *before = base ? base->value : NULL;
    for (uint32_t i = 0; i < result_count(c) && build_ok(c->b); i++) {
        const char *name = result_name(c, i);
        if (!name) continue;
        if (i >= c->result_count) {
            take_fail(c, FERRY_INTERNAL, "the translation made %u of %u results", c->result_count,
                      result_count(c));
            return;
        }
        check_result(c, i);
        Binding *binding = reader_bind(c->r, name, c->results[i]);
        if (!binding || !base || !shares_storage(c, before, i)) continue;
        binding->storage = base->storage;
        binding->version = base->storage->version;
        binding->base = base;
        binding->node = node;
        binding->output = i;
    }
}

/* An in-place op: compute, convert to the dtype of `self`, write. Its result is `self`. */
static void write_in_place(Call *c) {
    const char *self = self_name(c), *output = result_name(c, 0);
    Binding *base = self ? map_find(&c->r->bindings, self) : NULL;
    if (!base || c->result_count == 0) {
        take_fail(c, FERRY_BAD_FORMAT, "expected an in-place operation on a tensor");
        return;
    }
    reader_write(c->r, self, promote_to(c, c->results[0], base->value->dtype));
    if (!output || !build_ok(c->b)) return;
    Binding *binding = reader_bind(c->r, output, base->value);
    if (!binding) return;
    binding->storage = base->storage;
    binding->version = base->storage->version;
    binding->base = base;
}

/* The module that a node came from: the innermost path of its nn_module_stack. */
static const char *module_scope(Reader *r, const Doc *node) {
    const char *stack = doc_text(doc_get(doc_get(node, "metadata"), "nn_module_stack"));
    if (!stack) return "";
    const char *last = strrchr(stack, ';');
    const char *path = strchr(last ? last + 1 : stack, ',');
    if (!path) return "";
    size_t length = strcspn(path + 1, ",;");
    return arena_string_n(&r->pt2->arena, path + 1, length);
}

static void translate_node(Reader *r, const Doc *node) {
    const char *target = doc_text(doc_get(node, "target"));
    Call call = {.r = r, .b = &r->b, .node = node};
    r->node = node;
    if (!target) {
        reader_fail(r, FERRY_BAD_FORMAT, "a node without a target");
        return;
    }
    if (strncmp(target, "torch.ops.", 10) == 0) target += 10;
    if (is_bookkeeping(target)) {
        translate_number(r, node, target);
        return;
    }
    r->b.scope = module_scope(r, node);
    const char *functional = NULL;
    call.how = translate_row(r, node, target);
    if (!call.how && functional_name(r, target, &functional))
        call.how = translate_row(r, node, functional);
    if (!call.how) {
        reader_fail(r, FERRY_UNSUPPORTED, "the operation has no translation; see `ferry ops`");
        return;
    }
    call.how->translate(&call);
    if (!build_ok(&r->b)) return;
    if (functional)
        write_in_place(&call);
    else
        bind_results(&call, node);
}

void translate_graph(Reader *r) {
    const Doc *nodes = doc_get(r->graph, "nodes"), *node;
    size_t i;
    DOC_EACH_ITEM(nodes, i, node) {
        translate_node(r, node);
        if (!build_ok(&r->b)) return;
    }
    r->node = NULL;
    r->b.scope = "";
}
