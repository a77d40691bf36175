/* Translating the graph, node by node. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <string.h>

static const Translation *const tables[] = {
    translate_elementwise, translate_shape,    translate_create,       translate_reduce,
    translate_layer,       translate_indexing, translate_conv,         translate_pool,
    translate_norm,        translate_image,    translate_order,        translate_math,
    translate_binary,      translate_arrange,  translate_product,      translate_stats,
    translate_slices,      translate_windows,  translate_permutations,
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

/* The row for a node with this target (without "torch.ops."), or NULL. Nodes with complex tensors have
 * rows of their own. */
static const Translation *translate_row(Reader *r, const Doc *node, const char *target) {
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

/* In-place operations whose functional form has another name. */
static const char *const renamed[][2] = {
    {"aten.floor_divide_.Tensor", "aten.floor_divide.default"},
    {"aten.pow_.Scalar", "aten.pow.Tensor_Scalar"},
    {"aten.pow_.Tensor", "aten.pow.Tensor_Tensor"},
    {"aten.transpose_.default", "aten.transpose.int"},
};

/* "aten.add_.Tensor" -> "aten.add.Tensor", "aten.__ior__.Tensor" -> "aten.__or__.Tensor"; false when the
 * name is not that of an in-place op. */
static bool functional_name(Reader *r, const char *target, const char **out) {
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(target, renamed[i][0]) != 0) continue;
        *out = renamed[i][1];
        return true;
    }
    if (strncmp(target, "aten.__i", 8) == 0) {
        *out = arena_format(&r->pt2->arena, "aten.__%s", target + 8);
        return true;
    }
    const char *name = strchr(target, '.');
    const char *dot = name ? strchr(name + 1, '.') : NULL;
    if (!dot || dot[-1] != '_' || (dot - name > 2 && dot[-2] == '_')) return false;
    *out = arena_format(&r->pt2->arena, "%.*s%s", (int)(dot - target - 1), target, dot);
    return true;
}

/* The tensor that result `index` is a view of, or whose place an operation in place takes. */
static const char *base_name(Call *c, uint32_t index) {
    const char *self = take_tensor_name(c, "self");
    if (!self) self = take_tensor_name(c, "input");
    if (self) return self;
    const Doc *list = doc_get(take_arg(c, "tensors"), "as_tensors");
    return doc_text(doc_get(doc_item(list, index), "name"));
}

/* Does result `index` share the storage of the argument `base`? */
static bool shares_storage(Call *c, const Binding *base, uint32_t index) {
    SymTable *symbols = &c->b->program->symbols;
    if (c->how->alias == ALIAS_NEVER || c->how->alias == ALIAS_ALWAYS)
        return c->how->alias == ALIAS_ALWAYS;
    TensorMeta from = reader_meta(c->r, base_name(c, index)), to = result_meta(c, index);
    if (c->how->alias == ALIAS_RESHAPE) /* a copy is dense */
        return schema_is_contiguous(symbols, &from) || !schema_is_contiguous(symbols, &to);
    return c->results[index] == base->value && schema_same_strides(symbols, &from, &to) &&
           !take_bool(c, "copy", false);
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
    Buffer made = {0}, declared = {0};
    const Value type = {.dtype = meta.dtype, .rank = meta.rank, .shape = meta.sizes};
    value_print_type(&made, value);
    value_print_type(&declared, &type);
    take_fail(c, FERRY_INTERNAL, "the translation made %s, the program says %s",
              buffer_string(&made), buffer_string(&declared));
    buffer_free(&made);
    buffer_free(&declared);
}

static void bind_results(Call *c) {
    for (uint32_t i = 0; i < result_count(c) && build_ok(c->b); i++) {
        const char *name = result_name(c, i), *from = base_name(c, i);
        Binding *base = from ? map_find(&c->r->bindings, from) : NULL;
        if (!name) continue;
        if (i >= c->result_count) {
            take_fail(c, FERRY_INTERNAL, "the translation made %u of %u results", c->result_count,
                      result_count(c));
            return;
        }
        check_result(c, i);
        bool shares = base && shares_storage(c, base, i);
        Binding *binding = reader_bind(c->r, name, c->results[i]);
        if (!binding || !shares) continue;
        reader_alias(c->r, binding, base);
        binding->node = c->node;
        binding->how = c->how;
        binding->output = i;
    }
}

/* An in-place op: compute, convert to the dtype of `self`, write. Its result is `self`. */
static void write_in_place(Call *c) {
    const char *self = base_name(c, 0), *output = result_name(c, 0);
    Binding *base = self ? map_find(&c->r->bindings, self) : NULL;
    if (!base || c->result_count == 0) {
        take_fail(c, FERRY_BAD_FORMAT, "expected an in-place operation on a tensor");
        return;
    }
    c->results[0] = promote_to(c, c->results[0], base->value->dtype);
    if (output) check_result(c, 0);
    c->r->fills = strncmp(c->how->target, "aten.fill.", 10) == 0 ||
                  strcmp(c->how->target, "aten.zero.default") == 0;
    reader_write(c->r, self, c->results[0]);
    c->r->fills = false;
    if (!output || !build_ok(c->b)) return;
    if (map_find(&c->r->bindings, output))
        take_fail(c, FERRY_BAD_FORMAT, "the name \"%s\" is given twice", output);
    map_put(&c->r->bindings, output, base);
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
        reader_fail(r, FERRY_UNSUPPORTED,
                    "the operation has no translation; where torch can take it apart, "
                    "run_decompositions() of the program before it is saved helps");
        return;
    }
    call.how->translate(&call);
    if (!build_ok(&r->b)) return;
    if (functional && call.how->alias == ALIAS_NEVER)
        write_in_place(&call);
    else
        bind_results(
            &call); /* of squeeze_ and the like too: a view, which its own name stands for */
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
