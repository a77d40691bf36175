/* Nodes of the serialized graph, and names. */
#include "base/error.h"
#include "format/scalar_type.h"
#include "target/dynamo/serialize.h"

#include <inttypes.h>
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
    if (*stem >= '0' && *stem <= '9') name[length++] = '_';
    for (; *stem && length < 200; stem++) {
        char c = *stem;
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        name[length++] = word ? c : '_';
    }
    name[length] = 0;
    const char *unique = arena_string(&s->arena, name);
    uint32_t *count = map_find(&s->taken, name);
    while (count && unique && map_find(&s->taken, unique))
        unique = arena_format(&s->arena, "%s_%u", name, ++*count);
    uint32_t *fresh = ARENA_NEW(&s->arena, uint32_t);
    if (!unique || !fresh) return "";
    map_put(&s->taken, unique, fresh);
    return unique;
}

void serialize_tensor(Serializer *s, const Value *value, bool requires_grad) {
    Buffer *out = &s->tensors;
    if (out->length) buffer_text(out, ", ");
    buffer_json_string(out, s->names[value->id]);
    buffer_text(out, ": ");
    json_tensor_meta(s, out, value, requires_grad);
}

void serialize_start(Serializer *s, const char *target) {
    if (s->nodes.length) buffer_text(&s->nodes, ", ");
    buffer_format(&s->nodes, "{\"target\": \"%s\", \"inputs\": [", target);
    s->node_count++;
}

/* ---- torch's operations ---- */

/* torch's own name of an operation: "torch.ops.aten.view.default". */
static const char *torch_target(Serializer *s, Op op) {
    static const char *const names[OP_COUNT] = {
#define TORCH_OP(op, name, argument, torch_argument) [OP_##op] = name,
#define TORCH_LIST(op)
#include "target/dynamo/torch_ops.def"
#undef TORCH_OP
#undef TORCH_LIST
    };
    const char *name = names[op] ? names[op] : strstr(op_name(op), "::") + 2;
    return arena_format(&s->arena, "torch.ops.aten.%s%s", name,
                        strchr(name, '.') ? "" : ".default");
}

/* torch's name of an argument; "": torch has no such argument. */
static const char *torch_argument(Op op, const char *name) {
    static const char *const names[OP_COUNT][2] = {
#define TORCH_OP(op, name, argument, torch_argument) [OP_##op] = {argument, torch_argument},
#define TORCH_LIST(op)
#include "target/dynamo/torch_ops.def"
#undef TORCH_OP
#undef TORCH_LIST
    };
    return names[op][0] && strcmp(names[op][0], name) == 0 ? names[op][1] : name;
}

static bool torch_returns_list(Op op) {
    static const bool lists[OP_COUNT] = {
#define TORCH_OP(op, name, argument, torch_argument)
#define TORCH_LIST(op) [OP_##op] = true,
#include "target/dynamo/torch_ops.def"
#undef TORCH_OP
#undef TORCH_LIST
    };
    return lists[op];
}

/* ---- arguments ---- */

static void json_tensor(Serializer *s, Buffer *out, const Value *value) {
    buffer_format(out, "{\"name\": \"%s\"}", s->names[value->id]);
}

static void json_tensors(Serializer *s, Buffer *out, const Arg *arg, bool optional) {
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

static void json_arg(Serializer *s, Buffer *out, const Arg *arg, ArgType type) {
    switch (arg->kind) {
    case VALUE_NONE: buffer_text(out, "{\"as_none\": true}"); break;
    case VALUE_TENSOR:
        buffer_text(out, "{\"as_tensor\": ");
        json_tensor(s, out, arg->tensor);
        buffer_text(out, "}");
        break;
    case VALUE_TENSORS: json_tensors(s, out, arg, type == ARG_OPTIONAL_TENSORS); break;
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
        buffer_json_string(out, arg->string);
        buffer_text(out, "}");
        break;
    case VALUE_DTYPE:
        buffer_format(out, "{\"as_scalar_type\": %" PRId64 "}", scalar_type_number(arg->dtype));
        break;
    }
}

/* ---- nodes ---- */

/* Absent arguments that have a default are left out; what follows them in the schema goes by name, for
 * torch counts positional arguments as it finds them. */
static void json_inputs(Serializer *s, Buffer *out, const Node *node) {
    enum { POSITIONAL = 1, KEYWORD = 2 };
    const OpSchema *schema = op_schema(node->op);
    const char *separator = "";
    bool gap = false;
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        const Arg *arg = &node->args[i];
        const OpArg *formal = &schema->args[i];
        const char *name = torch_argument(node->op, formal->name);
        bool absent = arg->kind == VALUE_NONE && formal->has_default;
        gap = gap || absent || formal->keyword;
        if (absent || !*name) continue;
        buffer_format(out, "%s{\"name\": \"%s\", \"arg\": ", separator, name);
        json_arg(s, out, arg, formal->type);
        buffer_format(out, ", \"kind\": %d}", gap ? KEYWORD : POSITIONAL);
        separator = ", ";
    }
}

static void json_outputs(Serializer *s, Buffer *out, const Node *node) {
    bool list = torch_returns_list(node->op);
    if (list) buffer_text(out, "{\"as_tensors\": [");
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i) buffer_text(out, ", ");
        if (!list) buffer_text(out, "{\"as_tensor\": ");
        json_tensor(s, out, node->outputs[i]);
        if (!list) buffer_text(out, "}");
    }
    if (list) buffer_text(out, "]}");
}

/* A node with several results has a name of its own: torch makes a getitem node for each result. */
static const char *node_name(Serializer *s, const Node *node, const char *stem) {
    if (node->output_count == 1 && !torch_returns_list(node->op))
        return s->names[node->outputs[0]->id];
    return serialize_name(s, stem);
}

void serialize_node(Serializer *s, const Node *node) {
    Buffer inputs = {0};
    char stem[64];
    strides_infer(s, node);
    op_short_name(node->op, stem, sizeof stem);
    for (uint32_t i = 0; i < node->output_count; i++) {
        s->names[node->outputs[i]->id] = serialize_name(s, stem);
        serialize_tensor(s, node->outputs[i], false);
    }
    json_inputs(s, &inputs, node); /* may append nodes that compute sizes */
    serialize_start(s, torch_target(s, node->op));
    buffer_append(&s->nodes, inputs.bytes, inputs.length);
    buffer_text(&s->nodes, "], \"outputs\": [");
    json_outputs(s, &s->nodes, node);
    buffer_format(&s->nodes,
                  "], \"metadata\": {}, \"is_hop_single_tensor_return\": null, \"name\": \"%s\"}",
                  node_name(s, node, stem));
    if (inputs.failed) s->nodes.failed = true;
    buffer_free(&inputs);
}
