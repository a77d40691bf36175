/* The documents of the archive: the program, and where its weights are. */
#include "target/dynamo/serialize.h"

#include <inttypes.h>
#include <string.h>

/* ---- signature ---- */

/* What a constant leaf is as an argument: {"as_none": true}, {"as_int": 3}, ... */
static void json_constant(Buffer *out, const ConstantLeaf *constant) {
    const char *text = constant->json;
    bool number = *text == '-' || (*text >= '0' && *text <= '9');
    const char *kind = *text == '"'                     ? "as_string"
                       : *text == 't' || *text == 'f'   ? "as_bool"
                       : number && strpbrk(text, ".eE") ? "as_float"
                       : number                         ? "as_int"
                                                        : "as_none";
    buffer_format(out, "{\"%s\": %s}", kind, *text == 'n' ? "true" : text);
}

typedef void (*LeafWriter)(Serializer *s, Buffer *out, const Port *port,
                           const ConstantLeaf *constant);

/* Every leaf of the arguments or results in order: a port, or a constant. */
static void each_leaf(Serializer *s, Buffer *out, const Port *ports, size_t port_count,
                      const ConstantLeaf *constants, size_t constant_count, const char *separator,
                      LeafWriter write) {
    size_t port = 0, constant = 0;
    for (uint32_t leaf = 0; port < port_count || constant < constant_count; leaf++) {
        bool fixed =
            constant < constant_count && (constants[constant].leaf == leaf || port == port_count);
        buffer_text(out, separator);
        separator = ", ";
        write(s, out, fixed ? NULL : &ports[port], fixed ? &constants[constant] : NULL);
        if (fixed)
            constant++;
        else
            port++;
    }
}

static const char *weight_kind(const Value *weight) {
    switch (value_role(weight)) {
    case VALUE_PARAMETER: return "parameter";
    case VALUE_CONSTANT: return "tensor_constant";
    default: return "buffer";
    }
}

static void write_argument(Serializer *s, Buffer *out, const Port *port,
                           const ConstantLeaf *constant) {
    if (constant)
        json_constant(out, constant);
    else
        buffer_format(out, "{\"as_tensor\": {\"name\": \"%s\"}}", s->names[port->value->id]);
}

static void write_input_spec(Serializer *s, Buffer *out, const Port *port,
                             const ConstantLeaf *constant) {
    if (constant) {
        buffer_text(out, "{\"constant_input\": {\"name\": ");
        buffer_json_string(out, serialize_name(s, constant->name));
        buffer_text(out, ", \"value\": ");
        json_constant(out, constant);
        buffer_text(out, "}}");
        return;
    }
    buffer_text(out, "{\"user_input\": {\"arg\": ");
    write_argument(s, out, port, NULL);
    buffer_text(out, "}}");
}

static void write_result(Serializer *s, Buffer *out, const Port *port,
                         const ConstantLeaf *constant) {
    if (constant)
        json_constant(out, constant);
    else
        buffer_text(out, s->results[port - s->program->outputs.items]);
}

static void write_output_spec(Serializer *s, Buffer *out, const Port *port,
                              const ConstantLeaf *constant) {
    buffer_text(out, "{\"user_output\": {\"arg\": ");
    write_result(s, out, port, constant);
    buffer_text(out, "}}");
}

static void write_weight_spec(Serializer *s, Buffer *out, const Value *weight) {
    const char *kind = weight_kind(weight);
    buffer_format(out, "{\"%s\": {\"arg\": {\"name\": \"%s\"}, \"%s_name\": ", kind,
                  s->names[weight->id], kind);
    buffer_json_string(out, weight->name);
    if (strcmp(kind, "buffer") == 0)
        buffer_format(out, ", \"persistent\": %s", in_state(weight) ? "true" : "false");
    buffer_text(out, "}}");
}

static void each_weight(Serializer *s, Buffer *out, bool specs) {
    for (size_t i = 0; i < s->program->weights.count; i++) {
        const Value *weight = s->program->weights.items[i];
        if (i) buffer_text(out, ", ");
        if (specs)
            write_weight_spec(s, out, weight);
        else
            buffer_format(out, "{\"as_tensor\": {\"name\": \"%s\"}}", s->names[weight->id]);
    }
}

static void write_inputs(Serializer *s, Buffer *out, bool specs) {
    Program *program = s->program;
    each_weight(s, out, specs);
    each_leaf(s, out, program->inputs.items, program->inputs.count, program->input_constants.items,
              program->input_constants.count, program->weights.count ? ", " : "",
              specs ? write_input_spec : write_argument);
}

static void write_mutation_spec(Serializer *s, Buffer *out, size_t index) {
    const Value *target = s->program->outputs.items[index].writes;
    bool is_input = target->kind == VALUE_INPUT;
    const char *kind = is_input ? "user_input" : weight_kind(target);
    buffer_format(out, "{\"%s_mutation\": {\"arg\": {\"name\": \"%s\"}, \"%s_name\": ", kind,
                  s->left[index], kind);
    buffer_json_string(out, is_input ? s->names[target->id] : target->name);
    buffer_text(out, "}}");
}

/* Mutations come first; a leaf that is a target is in both parts. */
static void write_outputs(Serializer *s, Buffer *out, bool specs) {
    Program *program = s->program;
    const char *separator = "";
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (!s->left[i]) continue;
        buffer_text(out, separator);
        separator = ", ";
        if (specs)
            write_mutation_spec(s, out, i);
        else
            buffer_format(out, "{\"as_tensor\": {\"name\": \"%s\"}}", s->left[i]);
    }
    each_leaf(s, out, program->outputs.items, program_leaf_outputs(program),
              program->output_constants.items, program->output_constants.count, separator,
              specs ? write_output_spec : write_result);
}

/* ---- the program ---- */

static void write_ranges(Serializer *s, Buffer *out) {
    const char *separator = "";
    for (size_t i = 0; i < s->program->symbols.symbols.count; i++) {
        const Sym *symbol = s->program->symbols.symbols.items[i];
        if (!s->symbol_value[symbol->value]) continue;
        buffer_text(out, separator);
        buffer_format(out, "\"%s\": {\"min_val\": %" PRId64 ", \"max_val\": ", s->symbol_names[i],
                      symbol->lower);
        if (symbol->upper == SYM_UNBOUNDED)
            buffer_text(out, "null}");
        else
            buffer_format(out, "%" PRId64 "}", symbol->upper);
        separator = ", ";
    }
}

static void write_tree(Buffer *out, const Tree *tree) {
    Buffer text = {0};
    tree_print(&text, tree);
    buffer_json_string(out, buffer_string(&text));
    if (text.failed) out->failed = true;
    buffer_free(&text);
}

/* The path of a leaf of the arguments: a port's, or a constant's. */
static const char *leaf_path(const Program *program, uint32_t leaf) {
    uint32_t constants = 0;
    for (size_t i = 0; i < program->input_constants.count; i++) {
        const ConstantLeaf *constant = &program->input_constants.items[i];
        if (constant->leaf == leaf) return constant->name;
        constants += constant->leaf < leaf;
    }
    return leaf - constants < program->inputs.count ? program->inputs.items[leaf - constants].name
                                                    : "";
}

/* forward's parameters: the positional ones by the names of their leaves, then the keywords. Leaves that
 * were read without names ("args.0") stay without. */
static void write_names(Serializer *s, Buffer *out) {
    const Program *program = s->program;
    const Tree *positional = program->input_tree->children[0],
               *keywords = program->input_tree->children[1];
    const char *separator = "";
    uint32_t leaf = 0;
    if (positional->count && strncmp(leaf_path(program, 0), "args.", 5) == 0) {
        buffer_text(out, "null");
        return;
    }
    buffer_text(out, "[");
    for (uint32_t i = 0; i < positional->count; i++) {
        const char *path = leaf_path(program, leaf);
        leaf += tree_leaves(positional->children[i]);
        buffer_format(out, "%s\"%.*s\"", separator, (int)strcspn(path, "."), path);
        separator = ", ";
    }
    size_t length = strlen(keywords->context);
    if (length > 2) buffer_format(out, "%s%.*s", separator, (int)length - 2, keywords->context + 1);
    buffer_text(out, "]");
}

static void write_calls(Serializer *s, Buffer *out) {
    buffer_text(
        out,
        "\"module_call_graph\": [{\"fqn\": \"\", \"signature\": {\"inputs\": [], \"outputs\": [], "
        "\"in_spec\": ");
    write_tree(out, s->program->input_tree);
    buffer_text(out, ", \"out_spec\": ");
    write_tree(out, s->program->output_tree);
    buffer_text(out, ", \"forward_arg_names\": ");
    write_names(s, out);
    buffer_text(out, "}}]");
}

void document_program(Serializer *s, Buffer *out) {
    buffer_text(out, "{\"graph_module\": {\"graph\": {\"inputs\": [");
    write_inputs(s, out, false);
    buffer_text(out, "], \"outputs\": [");
    write_outputs(s, out, false);
    buffer_text(out, "], \"nodes\": [");
    buffer_append(out, s->nodes.bytes, s->nodes.length);
    buffer_text(out, "], \"tensor_values\": {");
    buffer_append(out, s->tensors.bytes, s->tensors.length);
    buffer_text(out, "}, \"sym_int_values\": {");
    buffer_append(out, s->sizes.bytes, s->sizes.length);
    buffer_text(out, "}, \"sym_bool_values\": {");
    buffer_append(out, s->bools.bytes, s->bools.length);
    buffer_text(
        out,
        "}, \"is_single_tensor_return\": false, "
        "\"custom_obj_values\": {}, \"sym_float_values\": {}}, \"signature\": {\"input_specs\": [");
    write_inputs(s, out, true);
    buffer_text(out, "], \"output_specs\": [");
    write_outputs(s, out, true);
    buffer_text(out, "]}, ");
    write_calls(s, out);
    buffer_text(out, ", \"metadata\": {}, \"treespec_namedtuple_fields\": {}}, \"opset_version\": "
                     "{\"aten\": 10}, "
                     "\"range_constraints\": {");
    write_ranges(s, out);
    buffer_text(
        out, "}, \"schema_version\": {\"major\": 8, \"minor\": 20}, \"verifiers\": [\"TRAINING\"], "
             "\"torch_version\": \"2.13.0\", \"guards_code\": []}");
}

/* ---- weights ---- */

bool in_state(const Value *weight) {
    ValueKind role = value_role(weight);
    return role == VALUE_PARAMETER || role == VALUE_PERSISTENT_BUFFER;
}

void document_weights(Serializer *s, const uint32_t *records, bool constants, Buffer *out) {
    const char *separator = "";
    buffer_text(out, "{\"config\": {");
    for (size_t i = 0; i < s->program->weights.count; i++) {
        const Value *weight = s->program->weights.items[i];
        if (in_state(weight) == constants) continue;
        buffer_text(out, separator);
        separator = ", ";
        buffer_json_string(out, weight->name);
        buffer_format(out,
                      ": {\"path_name\": \"%s_%u\", \"is_param\": %s, \"use_pickle\": false, "
                      "\"tensor_meta\": ",
                      constants ? "tensor" : "weight", records[i],
                      value_role(weight) == VALUE_PARAMETER ? "true" : "false");
        json_tensor_meta(s, out, weight, false);
        buffer_text(out, "}");
    }
    buffer_text(out, "}}");
}
