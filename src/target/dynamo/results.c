/* What a program returns, and what it leaves in its inputs and weights.
 *
 * torch runs the graph, copies what is left to the targets, and returns the results: a result that names
 * what is left in a target is the target itself. So what is left must be a tensor of its own, and a result
 * must not share the memory of a target unless it is meant to be the target. Where a program's values do
 * not grant that, there is a copy. */
#include "target/dynamo/serialize.h"

/* The value whose memory `value` may share. */
static const Value *memory_of(const Value *value) {
    while (value->producer && strides_shares(value->producer))
        value = value->producer->args[0].tensor;
    return value;
}

/* The name of a copy; a node that makes it. */
static const char *copy(Serializer *s, const Value *value) {
    const char *name = serialize_name(s, "clone"), *original = s->names[value->id];
    serialize_start(s, "torch.ops.aten.clone.default");
    buffer_format(
        &s->nodes,
        "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, \"kind\": 1}, "
        "{\"name\": \"memory_format\", \"arg\": {\"as_memory_format\": 1}, \"kind\": 2}], "
        "\"outputs\": [{\"as_tensor\": {\"name\": \"%s\"}}], \"metadata\": {}, "
        "\"is_hop_single_tensor_return\": null, \"name\": \"%s\"}",
        original, name, name);
    const Sym *const *strides = s->strides[value->id];
    s->names[value->id] = name;
    s->strides[value->id] = strides_contiguous(s, value->rank, value->shape);
    serialize_tensor(s, value, false);
    s->names[value->id] = original;
    s->strides[value->id] = strides;
    return name;
}

/* The output that leaves this value in what it writes, among those before number `end`; or NULL. */
static const Port *leaves(const Serializer *s, const Value *value, size_t end) {
    for (size_t i = 0; i < end; i++) {
        const Port *port = &s->program->outputs.items[i];
        if (port->writes && port->value == value) return port;
    }
    return NULL;
}

/* The output before number `end` that writes `target`, or NULL. */
static const Port *writer(const Serializer *s, const Value *target, size_t end) {
    for (size_t i = 0; i < end; i++) {
        const Port *port = &s->program->outputs.items[i];
        if (port->writes == target) return port;
    }
    return NULL;
}

static const char *result(Serializer *s, const Port *port) {
    const Program *program = s->program;
    size_t count = program->outputs.count;
    if (port->writes) return s->left[writer(s, port->writes, count) - program->outputs.items];
    bool changes = leaves(s, port->value, count) || writer(s, memory_of(port->value), count);
    return changes ? copy(s, port->value) : s->names[port->value->id];
}

static const char *number(Serializer *s, const Port *port) {
    Buffer text = {0};
    buffer_text(&text, "{\"as_sym_int\": ");
    json_size(s, &text, port->value->producer->args[0].integer);
    buffer_text(&text, "}");
    const char *kept = arena_string(&s->arena, buffer_string(&text));
    if (text.failed) s->nodes.failed = true;
    buffer_free(&text);
    return kept;
}

static bool is_size(const Port *port) {
    const Node *node = port->value->producer;
    return port->is_number && node && node->op == OP_SCALAR_TENSOR &&
           node->args[0].kind == VALUE_INT;
}

bool results_skip(Serializer *s, const Node *node) {
    uint32_t sizes = 0;
    if (node->op != OP_SCALAR_TENSOR) return false;
    for (size_t i = 0; i < s->program->outputs.count; i++) {
        const Port *port = &s->program->outputs.items[i];
        sizes += port->value->producer == node && is_size(port);
    }
    return sizes && sizes == s->uses[node->outputs[0]->id];
}

void results_prepare(Serializer *s) {
    Program *program = s->program;
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *port = &program->outputs.items[i];
        if (!port->writes || writer(s, port->writes, i)) continue;
        bool own = memory_of(port->value)->kind == VALUE_NODE && !leaves(s, port->value, i);
        s->left[i] = own ? s->names[port->value->id] : copy(s, port->value);
    }
    for (size_t i = 0; i < program_leaf_outputs(program); i++) {
        const Port *port = &program->outputs.items[i];
        s->results[i] =
            is_size(port)
                ? number(s, port)
                : arena_format(&s->arena, "{\"as_tensor\": {\"name\": \"%s\"}}", result(s, port));
    }
}
