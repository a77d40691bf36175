/* What export.json says of a program, in the schema of transformers.exporters. What only ferry knows is under
 * "ferry" in the metadata, which other readers skip. */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

static json_t *text_of_tree(const Tree *tree) {
    Buffer text = {0};
    tree_print(&text, tree);
    json_t *json = text.failed ? NULL : json_string(buffer_string(&text));
    buffer_free(&text);
    return json;
}

static json_t *text_of_size(const Sym *size) {
    Buffer text = {0};
    sym_print(&text, size);
    json_t *json = text.failed ? NULL : json_string(buffer_string(&text));
    buffer_free(&text);
    return json;
}

/* A size to stand for a symbolic one, where the schema wants a number: as a tracer's sample has it. */
static int64_t sample_size(const Sym *size, int64_t wanted) {
    if (sym_is_const(size)) return size->value;
    int64_t sample = wanted < size->lower ? size->lower : wanted;
    return sample > size->upper ? size->upper : sample;
}

static json_t *describe_input(const Value *value) {
    static const int64_t samples[FERRY_MAX_RANK] = {2, 8, 8, 8, 8, 8, 8, 8};
    json_t *shape = json_array();
    for (uint32_t d = 0; d < value->rank; d++) {
        json_array_append_new(shape, json_integer(sample_size(value->shape[d], samples[d])));
    }
    return json_pack("{s:i, s:o, s:s}", "rank", (int)value->rank, "shape", shape, "dtype",
                     ferry_dtype_name(value->dtype));
}

/* May the output be computed in the memory of the input of its name? When it is nothing but that, or that with
 * some rows replaced, and nothing else reads what they were before. */
static bool is_in_place(const Port *port, const uint32_t *uses) {
    const Node *node = port->value->producer;
    if (port->value->kind == VALUE_INPUT) return true; /* handed through */
    if (!port->writes || !node || (node->op != OP_INDEX_COPY && node->op != OP_INDEX_PUT)) {
        return false;
    }
    return node->args[0].tensor == port->writes && uses[port->writes->id] == 1;
}

static json_t *describe_port(const char *name, const Value *value, const char *writes) {
    json_t *shape = json_array();
    for (uint32_t d = 0; d < value->rank; d++) {
        json_array_append_new(shape, text_of_size(value->shape[d]));
    }
    return json_pack("{s:s, s:s, s:o, s:s*}", "name", name, "dtype", ferry_dtype_name(value->dtype),
                     "shape", shape, "writes", writes);
}

static bool is_dynamic(const Program *program) {
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Value *value = program->inputs.items[i].value;
        for (uint32_t d = 0; d < value->rank; d++) {
            if (!sym_is_const(value->shape[d])) return true;
        }
    }
    return false;
}

/* The fields of the exporter's configuration class, as it would have been given. */
static json_t *describe_config(const Program *program, const ExportTarget *target,
                               const ferry_export_config *config) {
    json_t *fields = json_pack("{s:b, s:n, s:s}", "dynamic", is_dynamic(program), "dynamic_shapes",
                               "export_format", target->name);
    if (strcmp(target->name, "onnx") == 0) {
        json_object_set_new(fields, "opset_version", json_integer(config->opset));
        json_object_set_new(fields, "optimize", json_true());
        json_object_set_new(fields, "ort_fusions", json_null());
    }
    if (strcmp(target->name, "openvino") == 0) {
        json_object_set_new(fields, "compress_to_fp16", json_boolean(config->compress_to_fp16));
        json_object_set_new(fields, "stateful", json_boolean(!config->stateless));
    }
    if (strcmp(target->name, "executorch") == 0) {
        json_object_set_new(fields, "backend",
                            json_string(config->backend ? config->backend : "xnnpack"));
        json_object_set_new(fields, "alloc_graph_input", json_boolean(!config->unplanned_inputs));
        json_object_set_new(fields, "alloc_graph_output", json_boolean(!config->unplanned_outputs));
        json_object_set_new(fields, "alloc_mutable_buffers",
                            json_boolean(!config->unplanned_buffers));
    }
    json_object_set_new(fields, "prefer_deferred_runtime_asserts_over_guards",
                        json_boolean(config->deferred_asserts));
    json_object_set_new(fields, "strict", json_false());
    return fields;
}

static json_t *describe_ranges(const Program *program) {
    json_t *ranges = json_object();
    for (size_t i = 0; i < program->symbols.symbols.count; i++) {
        const Sym *symbol = program->symbols.symbols.items[i];
        json_t *upper = symbol->upper == SYM_UNBOUNDED ? json_null() : json_integer(symbol->upper);
        json_object_set_new(ranges, symbol->name,
                            json_pack("[I, o]", (json_int_t)symbol->lower, upper));
    }
    return ranges;
}

/* What the target calls an input or a state. */
static const char *place_name(Program *program, const ExportTarget *target, const Value *value) {
    for (size_t i = 0; i < program->inputs.count; i++) {
        if (program->inputs.items[i].value == value) return target->input_name(program, i);
    }
    return value->name;
}

static json_t *describe_states(const Program *program) {
    json_t *states = json_array();
    for (size_t i = 0; i < program->states.count; i++) {
        const State *state = &program->states.items[i];
        json_array_append_new(states, describe_port(state->name, state->before, NULL));
    }
    return states;
}

static json_t *constant_value(const ConstantLeaf *constant) {
    return json_loads(constant->json, JSON_DECODE_ANY, NULL);
}

/* [index among the leaves, value] of each. */
static json_t *describe_constants(const ConstantLeaves *constants) {
    json_t *list = json_array();
    for (size_t i = 0; i < constants->count; i++) {
        const ConstantLeaf *constant = &constants->items[i];
        json_array_append_new(list,
                              json_pack("[i, o]", (int)constant->leaf, constant_value(constant)));
    }
    return list;
}

/* What only ferry knows: symbolic shapes by the names of the graph, ranges, how weights are kept. */
static json_t *describe_ferry(Program *program, const ExportTarget *target,
                              const ferry_export_config *config) {
    json_t *inputs = json_array(), *outputs = json_array();
    Arena scratch = {0};
    const uint32_t *uses = program_uses(program, &scratch);
    for (size_t i = 0; i < program->inputs.count; i++) {
        json_array_append_new(inputs, describe_port(target->input_name(program, i),
                                                    program->inputs.items[i].value, NULL));
    }
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *port = &program->outputs.items[i];
        const char *writes = port->writes ? place_name(program, target, port->writes) : NULL;
        json_t *entry = describe_port(target->output_name(program, i), port->value, writes);
        if (uses && is_in_place(port, uses)) json_object_set_new(entry, "in_place", json_true());
        json_array_append_new(outputs, entry);
    }
    arena_free(&scratch);
    bool link = config->weights == FERRY_WEIGHTS_LINK;
    json_t *description =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "model_type", program->model_type, "weights",
                  link ? "link" : "copy", "version", ferry_version(), "ranges",
                  describe_ranges(program), "inputs", inputs, "outputs", outputs);
    if (program->states.count) {
        json_object_set_new(description, "states", describe_states(program));
    }
    if (config->static_cache) {
        json_object_set_new(description, "static_cache", json_integer(config->static_cache));
    }
    if (strcmp(target->name, "executorch") == 0) {
        json_object_set_new(description, "constants",
                            describe_constants(&program->input_constants));
    }
    return description;
}

/* Where a walk over the leaves of the arguments stands. */
typedef struct Cursor {
    const Program *program;
    uint32_t leaf, port, constant;
    json_t *constants; /* keyword -> value */
} Cursor;

static void skip_leaves(Cursor *cursor, uint32_t count) {
    const Program *program = cursor->program;
    for (uint32_t i = 0; i < count; i++, cursor->leaf++) {
        bool constant = cursor->constant < program->input_constants.count &&
                        program->input_constants.items[cursor->constant].leaf == cursor->leaf;
        if (constant)
            cursor->constant++;
        else
            cursor->port++;
    }
}

/* A keyword whose value is a tensor or a constant. */
static json_t *describe_leaf(Cursor *cursor, const char *key) {
    static const char *const kinds[] = {"NoneType", "bool", "int", "float", "str"};
    const Program *program = cursor->program;
    uint32_t port = cursor->port, constant = cursor->constant;
    skip_leaves(cursor, 1);
    if (cursor->port > port && port < program->inputs.count) {
        return describe_input(program->inputs.items[port].value);
    }
    json_t *value = constant_value(&program->input_constants.items[constant]);
    int kind = json_is_null(value)      ? 0
               : json_is_boolean(value) ? 1
               : json_is_integer(value) ? 2
               : json_is_real(value)    ? 3
                                        : 4;
    json_object_set_new(cursor->constants, key, value);
    return json_pack("{s:s}", "container", kinds[kind]);
}

/* A nested keyword: its entries when it is a dict or a ModelOutput, else the name of its class. */
static json_t *describe_keyword(Cursor *cursor, const Tree *tree, const char *key) {
    static const char outputs[] = "transformers.modeling_outputs.";
    if (!tree->type) return describe_leaf(cursor, key);
    const char *name = tree->type + strlen(tree->type);
    while (name > tree->type && name[-1] != '.' && name[-1] != ':') name--;
    if (strcmp(tree->type, "builtins.dict") && strncmp(tree->type, outputs, sizeof outputs - 1)) {
        skip_leaves(cursor, tree_leaves(tree));
        return json_pack("{s:s}", "container", name);
    }
    json_t *keys = json_loads(tree->context, 0, NULL), *leaves = json_object();
    for (uint32_t i = 0; i < tree->count; i++) {
        const char *entry = json_string_value(json_array_get(keys, i));
        json_object_set_new(leaves, entry ? entry : "",
                            describe_keyword(cursor, tree->children[i], key));
    }
    json_decref(keys);
    return json_pack("{s:o}", "leaves", leaves);
}

/* Every keyword of the call; positional arguments go by the names of their leaves. */
static json_t *describe_keywords(const Program *program, json_t *constants) {
    Cursor cursor = {.program = program, .constants = constants};
    json_t *kwargs = json_object();
    const Tree *positional = program->input_tree->children[0],
               *keywords = program->input_tree->children[1];
    json_t *keys = json_loads(keywords->context, 0, NULL);
    for (uint32_t i = 0; i < positional->count; i++) {
        const char *path =
            cursor.port < program->inputs.count ? program->inputs.items[cursor.port].name : "";
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        json_object_set_new(kwargs, name, describe_keyword(&cursor, positional->children[i], name));
    }
    for (uint32_t i = 0; i < keywords->count; i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (!key) key = "";
        json_object_set_new(kwargs, key, describe_keyword(&cursor, keywords->children[i], key));
    }
    json_decref(keys);
    return kwargs;
}

json_t *manifest_describe(Program *program, const ExportTarget *target,
                          const ferry_export_config *config) {
    json_t *constants = json_object();
    json_t *kwargs = describe_keywords(program, constants);
    return json_pack("{s:s, s:{s:s}, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "architecture",
                     program->architecture, "packages", "ferry", ferry_version(), "export_config",
                     describe_config(program, target, config), "export_dtype",
                     ferry_dtype_name(program->dtype), "export_device", "cpu", "kwargs", kwargs,
                     "in_spec", text_of_tree(program->input_tree), "out_spec",
                     text_of_tree(program->output_tree), "in_constants", constants, "out_constants",
                     describe_constants(&program->output_constants), "ferry",
                     describe_ferry(program, target, config));
}
