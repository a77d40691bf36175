/* Nodes that compute symbolic sizes when the program runs, and nodes that check them. */
#include "target/dynamo/serialize.h"

#include <inttypes.h>

static void end_node(Serializer *s, const char *kind, const char *name) {
    buffer_format(&s->nodes,
                  "], \"outputs\": [{\"%s\": {\"as_name\": \"%s\"}}], \"metadata\": {}, "
                  "\"is_hop_single_tensor_return\": null, \"name\": \"%s\"}",
                  kind, name, name);
}

static void end_size_node(Serializer *s, const Sym *sym, const char *name) {
    end_node(s, "as_sym_int", name);
    if (s->sizes.length) buffer_text(&s->sizes, ", ");
    buffer_format(&s->sizes, "\"%s\": ", name);
    json_sym(s, &s->sizes, sym);
}

static const char *size_name(Serializer *s, const Sym *sym);

void json_size(Serializer *s, Buffer *out, const Sym *sym) {
    if (sym_is_const(sym))
        buffer_format(out, "{\"as_int\": %" PRId64 "}", sym->value);
    else
        buffer_format(out, "{\"as_name\": \"%s\"}", size_name(s, sym));
}

static const char *remember(Serializer *s, const Sym *sym, const char *name) {
    const Sym **key = arena_copy(&s->arena, &sym, sizeof sym);
    if (key) map_set(&s->size_names, key, sizeof sym, (void *)(uintptr_t)name);
    return name;
}

static const char *symbol_name(Serializer *s, const Sym *sym) {
    const Value *value = s->symbol_value[sym->value];
    int dim = s->symbol_dim[sym->value];
    if (!value) {
        serialize_fail(s, "no input has the size \"%s\"", sym->name);
        return "";
    }
    const char *name = serialize_name(s, dim < 0 ? "item" : "sym_size_int");
    serialize_start(s, dim < 0 ? "torch.ops.aten.item.default" : "torch.ops.aten.sym_size.int");
    buffer_format(&s->nodes,
                  "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, \"kind\": 1}",
                  s->names[value->id]);
    if (dim >= 0) {
        buffer_format(&s->nodes, ", {\"name\": \"dim\", \"arg\": {\"as_int\": %d}, \"kind\": 1}",
                      dim);
    }
    end_size_node(s, sym, name);
    return remember(s, sym, name);
}

/* ---- arithmetic ---- */

/* `left` and `right` are the contents of "as_sym_int". */
static void start_operator(Serializer *s, const char *target, const char *left, const char *right) {
    serialize_start(s, target);
    buffer_format(
        &s->nodes,
        "{\"name\": \"a\", \"arg\": {\"as_sym_int\": %s}, \"kind\": 1}, {\"name\": \"b\", \"arg\": "
        "{\"as_sym_int\": %s}, \"kind\": 1}",
        left, right);
}

/* One step of arithmetic on sizes: `left` is the first operand, `right` the second. */
static const char *arithmetic(Serializer *s, const Sym *result, SymKind kind, const char *left,
                              const Sym *right) {
    static const struct {
        const char *target, *stem;
    } steps[] = {
        [SYM_SUM] = {"_operator.add", "add"},
        [SYM_PRODUCT] = {"_operator.mul", "mul"},
        [SYM_FLOORDIV] = {"_operator.floordiv", "floordiv"},
        [SYM_MOD] = {"_operator.mod", "mod"},
        [SYM_MIN] = {"torch.sym_min", "sym_min"},
        [SYM_MAX] = {"torch.sym_max", "sym_max"},
    };
    Buffer second = {0};
    json_size(s, &second, right);
    const char *name = serialize_name(s, steps[kind].stem);
    start_operator(s, steps[kind].target, left, buffer_string(&second));
    end_size_node(s, result, name);
    buffer_free(&second);
    return name;
}

static const Sym *combine(SymTable *table, const Sym *whole, const Sym *so_far, const Sym *right) {
    switch (whole->kind) {
    case SYM_SUM: return sym_add(table, so_far, right);
    case SYM_PRODUCT: return sym_mul(table, so_far, right);
    case SYM_MIN: return sym_min(table, so_far, right);
    case SYM_MAX: return sym_max(table, so_far, right);
    default: return whole;
    }
}

static const char *size_name(Serializer *s, const Sym *sym) {
    const char *known = map_get(&s->size_names, &sym, sizeof sym);
    SymTable *table = &s->program->symbols;
    if (known) return known;
    if (sym->kind == SYM_SYMBOL) return symbol_name(s, sym);
    Buffer first = {0};
    json_size(s, &first, sym->operands[0]);
    const Sym *so_far = sym->operands[0];
    const char *name = "";
    bool has_number =
        (sym->kind == SYM_SUM && sym->value != 0) || (sym->kind == SYM_PRODUCT && sym->value != 1);
    for (uint32_t i = 1; i < sym->count + has_number; i++) {
        const Sym *right = i < sym->count ? sym->operands[i] : sym_const(table, sym->value);
        so_far = combine(table, sym, so_far, right);
        name = arithmetic(s, so_far, sym->kind, buffer_string(&first), right);
        first.length = 0;
        buffer_format(&first, "{\"as_name\": \"%s\"}", name);
    }
    buffer_free(&first);
    return remember(s, sym, name);
}

/* ---- runtime assertions ---- */

/* Two nodes: the comparison of a size with its bound, and the assertion of it. */
static void assert_bound(Serializer *s, const Sym *symbol, bool is_upper) {
    const char *relation = is_upper ? "<=" : ">=";
    int64_t bound = is_upper ? symbol->upper : symbol->lower;
    const char *name = serialize_name(s, is_upper ? "le" : "ge");
    const char *size = arena_format(&s->arena, "{\"as_name\": \"%s\"}", size_name(s, symbol));
    start_operator(s, is_upper ? "_operator.le" : "_operator.ge", size,
                   arena_format(&s->arena, "{\"as_int\": %" PRId64 "}", bound));
    end_node(s, "as_sym_bool", name);
    buffer_format(&s->bools,
                  "%s\"%s\": {\"as_expr\": {\"expr_str\": \"%s(Symbol('%s', positive=True, "
                  "integer=True), Integer(%" PRId64 "))\", \"hint\": null}}",
                  s->bools.length ? ", " : "", name, is_upper ? "LessThan" : "GreaterThan",
                  s->symbol_names[symbol->value], bound);
    serialize_start(s, "torch.ops.aten._assert_scalar.default");
    buffer_format(&s->nodes,
                  "{\"name\": \"self\", \"arg\": {\"as_sym_bool\": {\"as_name\": \"%s\"}}, "
                  "\"kind\": 1}, {\"name\": \"assert_msg\", \"arg\": {\"as_string\": \"Runtime "
                  "assertion failed for expression %s %s %" PRId64
                  " on node '%s'\"}, \"kind\": 1}], "
                  "\"outputs\": [], \"metadata\": {}, \"is_hop_single_tensor_return\": null, "
                  "\"name\": \"%s\"}",
                  name, s->symbol_names[symbol->value], relation, bound, name,
                  serialize_name(s, "_assert_scalar_default"));
}

void sizes_assert_bounds(Serializer *s) {
    for (size_t i = 0; i < s->program->symbols.symbols.count; i++) {
        const Sym *symbol = s->program->symbols.symbols.items[i];
        if (!s->symbol_value[i] || s->symbol_value[i]->kind != VALUE_INPUT) continue;
        if (symbol->lower > 1) assert_bound(s, symbol, false);
        if (symbol->upper != SYM_UNBOUNDED) assert_bound(s, symbol, true);
    }
}
