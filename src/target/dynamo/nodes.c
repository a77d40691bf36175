/* Nodes of the serialized graph, the nodes that compute symbolic sizes, and names. */
#include "base/error.h"
#include "format/scalar_type.h"
#include "target/dynamo/serialize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

ferry_status serialize_fail(Serializer *s, const char *format, ...) {
    if (s->status != FERRY_OK) return s->status;
    va_list args;
    va_start(args, format);
    s->status = error_set(s->error, FERRY_UNSUPPORTED, s->program->architecture, "%s",
                          arena_vformat(&s->arena, format, args));
    va_end(args);
    return s->status;
}

const char *serialize_name(Serializer *s, const char *stem) {
    char name[256];
    size_t length = 0;
    for (; stem[length] && length < 200; length++) {
        char c = stem[length];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        name[length] = word ? c : '_';
    }
    name[length] = 0;
    const char *unique = arena_string(&s->arena, name);
    for (uint32_t i = 1; map_find(&s->taken, unique); i++) {
        unique = arena_format(&s->arena, "%s_%u", name, i);
    }
    map_put(&s->taken, unique, s);
    return unique;
}

/* ---- json text ---- */

void json_text(Buffer *out, const char *text) {
    buffer_text(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buffer_format(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            buffer_format(out, "\\u%04x", *text);
        else
            buffer_append(out, text, 1);
    }
    buffer_text(out, "\"");
}

/* SymPy's srepr. */
static void print_srepr(Buffer *out, const Sym *sym) {
    static const char *const names[] = {
        [SYM_SUM] = "Add", [SYM_PRODUCT] = "Mul", [SYM_FLOORDIV] = "FloorDiv",
        [SYM_MOD] = "Mod", [SYM_MIN] = "Min",     [SYM_MAX] = "Max",
    };
    if (sym->kind == SYM_CONST) {
        buffer_format(out, "Integer(%" PRId64 ")", sym->value);
        return;
    }
    if (sym->kind == SYM_SYMBOL) {
        bool unbacked = sym->name[0] == 'u' && sym->name[1] >= '0' && sym->name[1] <= '9';
        buffer_format(out, "Symbol('%s', %sinteger=True)", sym->name,
                      unbacked ? "" : "positive=True, ");
        return;
    }
    bool neutral = sym->kind == SYM_PRODUCT ? sym->value == 1 : sym->value == 0;
    buffer_format(out, "%s(", names[sym->kind]);
    if (!neutral) buffer_format(out, "Integer(%" PRId64 ")", sym->value);
    for (uint32_t i = 0; i < sym->count; i++) {
        if (i || !neutral) buffer_text(out, ", ");
        print_srepr(out, sym->operands[i]);
    }
    buffer_text(out, ")");
}

void json_sym(Buffer *out, const Sym *sym) {
    if (sym_is_const(sym)) {
        buffer_format(out, "{\"as_int\": %" PRId64 "}", sym->value);
        return;
    }
    Buffer text = {0};
    print_srepr(&text, sym);
    buffer_text(out, "{\"as_expr\": {\"expr_str\": ");
    json_text(out, buffer_string(&text));
    buffer_text(out, ", \"hint\": null}}");
    if (text.failed) out->failed = true;
    buffer_free(&text);
}

static void json_syms(Buffer *out, uint32_t count, const Sym *const *items) {
    buffer_text(out, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buffer_text(out, ", ");
        json_sym(out, items[i]);
    }
    buffer_text(out, "]");
}

void json_tensor_meta(Serializer *s, Buffer *out, ferry_dtype dtype, uint32_t rank,
                      const Sym *const *sizes, const Sym *const *strides, bool requires_grad) {
    (void)s;
    buffer_format(out, "{\"dtype\": %" PRId64 ", \"sizes\": ", scalar_type_number(dtype));
    json_syms(out, rank, sizes);
    buffer_format(out,
                  ", \"requires_grad\": %s, \"device\": {\"type\": \"cpu\", \"index\": null}, "
                  "\"strides\": ",
                  requires_grad ? "true" : "false");
    json_syms(out, rank, strides);
    buffer_text(out, ", \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}");
}

void serialize_tensor(Serializer *s, const Value *value, bool requires_grad) {
    Buffer *out = &s->tensors;
    if (out->length) buffer_text(out, ", ");
    json_text(out, s->names[value->id]);
    buffer_text(out, ": ");
    json_tensor_meta(s, out, value->dtype, value->rank, value->shape, s->strides[value->id],
                     requires_grad);
}

/* ---- sizes ---- */

static void start_node(Serializer *s, const char *target) {
    if (s->nodes.length) buffer_text(&s->nodes, ", ");
    buffer_format(&s->nodes, "{\"target\": \"%s\", \"inputs\": [", target);
    s->node_count++;
}

static void end_size_node(Serializer *s, const Sym *sym, const char *name) {
    buffer_format(&s->nodes,
                  "], \"outputs\": [{\"as_sym_int\": {\"as_name\": \"%s\"}}], \"metadata\": {}, "
                  "\"is_hop_single_tensor_return\": null, \"name\": \"%s\"}",
                  name, name);
    if (s->sizes.length) buffer_text(&s->sizes, ", ");
    buffer_format(&s->sizes, "\"%s\": ", name);
    json_sym(&s->sizes, sym);
}

static const char *size_name(Serializer *s, const Sym *sym);

/* {"as_name": ...} or {"as_int": ...} */
static void json_size(Serializer *s, Buffer *out, const Sym *sym) {
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
    start_node(s, dim < 0 ? "torch.ops.aten.item.default" : "torch.ops.aten.sym_size.int");
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

/* One step of arithmetic on sizes: `text` is the first operand, `right` the second. */
static const char *arithmetic(Serializer *s, const Sym *result, SymKind kind, const char *text,
                              const Sym *right) {
    static const char *const targets[] = {
        [SYM_SUM] = "_operator.add",           [SYM_PRODUCT] = "_operator.mul",
        [SYM_FLOORDIV] = "_operator.floordiv", [SYM_MOD] = "_operator.mod",
        [SYM_MIN] = "torch.sym_min",           [SYM_MAX] = "torch.sym_max",
    };
    static const char *const stems[] = {
        [SYM_SUM] = "add", [SYM_PRODUCT] = "mul", [SYM_FLOORDIV] = "floordiv",
        [SYM_MOD] = "mod", [SYM_MIN] = "sym_min", [SYM_MAX] = "sym_max",
    };
    Buffer second = {0};
    json_size(s, &second, right);
    const char *name = serialize_name(s, stems[kind]);
    start_node(s, targets[kind]);
    buffer_format(
        &s->nodes,
        "{\"name\": \"a\", \"arg\": {\"as_sym_int\": %s}, \"kind\": 1}, {\"name\": \"b\", \"arg\": "
        "{\"as_sym_int\": %s}, \"kind\": 1}",
        text, buffer_string(&second));
    end_size_node(s, result, name);
    buffer_free(&second);
    return name;
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
        if (sym->kind == SYM_SUM)
            so_far = sym_add(table, so_far, right);
        else if (sym->kind == SYM_PRODUCT)
            so_far = sym_mul(table, so_far, right);
        else if (sym->kind == SYM_MIN)
            so_far = sym_min(table, so_far, right);
        else if (sym->kind == SYM_MAX)
            so_far = sym_max(table, so_far, right);
        else
            so_far = sym;
        name = arithmetic(s, so_far, sym->kind, buffer_string(&first), right);
        first.length = 0;
        buffer_format(&first, "{\"as_name\": \"%s\"}", name);
    }
    buffer_free(&first);
    return remember(s, sym, name);
}

/* ---- arguments ---- */

static void json_number(Buffer *out, double number) {
    if (isnan(number))
        buffer_text(out, "\"NaN\"");
    else if (isinf(number))
        buffer_text(out, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else if (number == floor(number) && fabs(number) < 1e15)
        buffer_format(out, "%.1f", number);
    else
        buffer_format(out, "%.17g", number);
}

static void json_tensor(Serializer *s, Buffer *out, const Value *value) {
    if (value) buffer_format(out, "{\"name\": \"%s\"}", s->names[value->id]);
}

static void json_tensors(Serializer *s, Buffer *out, const Arg *arg) {
    bool optional = false;
    for (uint32_t i = 0; i < arg->tensors.count; i++) optional |= !arg->tensors.items[i];
    buffer_format(out, "{\"%s\": [", optional ? "as_optional_tensors" : "as_tensors");
    for (uint32_t i = 0; i < arg->tensors.count; i++) {
        const Value *item = arg->tensors.items[i];
        if (i) buffer_text(out, ", ");
        if (optional && !item)
            buffer_text(out, "{\"as_none\": true}");
        else if (optional)
            buffer_format(out, "{\"as_tensor\": {\"name\": \"%s\"}}", s->names[item->id]);
        else
            json_tensor(s, out, item);
    }
    buffer_text(out, "]}");
}

static void json_ints(Serializer *s, Buffer *out, const Arg *arg) {
    bool constant = true;
    for (uint32_t i = 0; i < arg->integers.count; i++)
        constant = constant && sym_is_const(arg->integers.items[i]);
    buffer_text(out, constant ? "{\"as_ints\": [" : "{\"as_sym_ints\": [");
    for (uint32_t i = 0; i < arg->integers.count; i++) {
        if (i) buffer_text(out, ", ");
        if (constant)
            buffer_format(out, "%" PRId64, arg->integers.items[i]->value);
        else
            json_size(s, out, arg->integers.items[i]);
    }
    buffer_text(out, "]}");
}

static void json_arg(Serializer *s, Buffer *out, const Arg *arg) {
    switch (arg->kind) {
    case VALUE_NONE: buffer_text(out, "{\"as_none\": true}"); break;
    case VALUE_TENSOR:
        buffer_text(out, "{\"as_tensor\": ");
        json_tensor(s, out, arg->tensor);
        buffer_text(out, "}");
        break;
    case VALUE_TENSORS: json_tensors(s, out, arg); break;
    case VALUE_INT:
        if (sym_is_const(arg->integer)) {
            buffer_format(out, "{\"as_int\": %" PRId64 "}", arg->integer->value);
        } else {
            buffer_text(out, "{\"as_sym_int\": ");
            json_size(s, out, arg->integer);
            buffer_text(out, "}");
        }
        break;
    case VALUE_INTS: json_ints(s, out, arg); break;
    case VALUE_FLOAT:
        buffer_text(out, "{\"as_float\": ");
        json_number(out, arg->number);
        buffer_text(out, "}");
        break;
    case VALUE_BOOL:
        buffer_format(out, "{\"as_bool\": %s}", arg->boolean ? "true" : "false");
        break;
    case VALUE_STRING:
        buffer_text(out, "{\"as_string\": ");
        json_text(out, arg->string);
        buffer_text(out, "}");
        break;
    case VALUE_DTYPE:
        buffer_format(out, "{\"as_scalar_type\": %" PRId64 "}", scalar_type_number(arg->dtype));
        break;
    }
}

/* ---- nodes ---- */

/* torch's own name of an operation: "torch.ops.aten.view.default". A program's `view` may need a copy,
 * which only reshape makes. */
static const char *torch_target(Serializer *s, Op op) {
    const char *name = strstr(op_name(op), "::") + 2;
    if (op == OP_VIEW) name = "reshape";
    return arena_format(&s->arena, "torch.ops.aten.%s%s", name,
                        strchr(name, '.') ? "" : ".default");
}

/* Arguments whose names differ from the schema's. */
static const char *torch_argument(Op op, const char *name) {
    return op == OP_VIEW && strcmp(name, "size") == 0 ? "shape" : name;
}

/* Absent optional arguments are left out, like torch's own defaults. */
static void json_inputs(Serializer *s, Buffer *out, const Node *node) {
    const OpSchema *schema = op_schema(node->op);
    const char *separator = "";
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        const Arg *arg = &node->args[i];
        if (arg->kind == VALUE_NONE) continue;
        bool keyword = arg->kind == VALUE_DTYPE || strcmp(schema->args[i].name, "scale") == 0 ||
                       strcmp(schema->args[i].name, "enable_gqa") == 0 ||
                       strcmp(schema->args[i].name, "approximate") == 0;
        buffer_format(out, "%s{\"name\": \"%s\", \"arg\": ", separator,
                      torch_argument(node->op, schema->args[i].name));
        json_arg(s, out, arg);
        buffer_format(out, ", \"kind\": %d}", keyword ? 2 : 1);
        separator = ", ";
    }
}

static void json_outputs(Serializer *s, Buffer *out, const Node *node) {
    bool list = op_schema(node->op)->returns_list;
    if (list) buffer_text(out, "{\"as_tensors\": [");
    for (uint32_t i = 0; i < node->output_count; i++) {
        const char *name = s->names[node->outputs[i]->id];
        if (i) buffer_text(out, ", ");
        buffer_format(out, list ? "{\"name\": \"%s\"}" : "{\"as_tensor\": {\"name\": \"%s\"}}",
                      name);
    }
    if (list) buffer_text(out, "]}");
}

void serialize_node(Serializer *s, const Node *node) {
    Buffer inputs = {0};
    strides_infer(s, node);
    for (uint32_t i = 0; i < node->output_count; i++) {
        s->names[node->outputs[i]->id] = serialize_name(s, node->outputs[i]->name);
        serialize_tensor(s, node->outputs[i], false);
    }
    json_inputs(s, &inputs, node); /* may append nodes that compute sizes */
    start_node(s, torch_target(s, node->op));
    buffer_append(&s->nodes, inputs.bytes, inputs.length);
    buffer_text(&s->nodes, "], \"outputs\": [");
    json_outputs(s, &s->nodes, node);
    buffer_format(&s->nodes,
                  "], \"metadata\": {}, \"is_hop_single_tensor_return\": null, \"name\": \"%s\"}",
                  s->names[node->outputs[0]->id]);
    if (inputs.failed) s->nodes.failed = true;
    buffer_free(&inputs);
}
