/* From the parsed archive to a Program: sizes, weights, inputs, the graph, outputs. */
#include "base/error.h"
#include "source/pt2/reader.h"
#include "source/pt2/structure.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* torch traces with sizes of 2 and more and gives 2 as the bound, but such a program serves any. */
static void read_ranges(Reader *r) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    SymTable *symbols = &r->b.program->symbols;
    const char *key;
    json_t *range;
    json_object_foreach(json_object_get(r->pt2->json, "range_constraints"), key, range) {
        json_t *lower = json_object_get(range, "min_val"),
               *upper = json_object_get(range, "max_val");
        int64_t low = json_is_integer(lower) ? json_integer_value(lower) : 0;
        int64_t high = json_is_integer(upper) ? json_integer_value(upper) : SYM_UNBOUNDED;
        bool plain = *key && strspn(key, word) == strlen(key) && (*key < '0' || *key > '9');
        if (plain)
            sym_symbol(symbols, key, low == 2 || low < 0 ? 0 : low,
                       high > low ? high : SYM_UNBOUNDED);
    }
}

static void read_sizes(Reader *r) {
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(r->graph, "sym_int_values"), name, value) {
        const Sym *sym;
        ferry_error problem;
        ferry_status status = schema_sym(&r->b.program->symbols, value, &sym, &problem);
        if (status != FERRY_OK) {
            reader_fail(r, status, "size \"%s\": %s", name, problem.message);
            return;
        }
        map_put(&r->sizes, name, (void *)(uintptr_t)sym);
    }
}

/* ---- inputs ---- */

/* What a constant argument or result holds, as JSON text; NULL when it is no constant. */
static const char *constant_text(Reader *r, json_t *value) {
    static const char *const plain[] = {"as_int", "as_float", "as_string", "as_bool"};
    if (json_object_get(value, "as_none")) return "null";
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        json_t *found = json_object_get(value, plain[i]);
        if (!found) continue;
        char *text = json_dumps(found, JSON_ENCODE_ANY);
        const char *copy = text ? arena_string(&r->b.program->arena, text) : "null";
        free(text);
        return copy;
    }
    return NULL;
}

typedef struct Leaves {
    Paths paths;
    uint32_t next;
} Leaves;

static const char *next_path(Reader *r, Leaves *leaves) {
    if (leaves->next < leaves->paths.count) return leaves->paths.items[leaves->next++];
    reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has fewer leaves than the signature");
    return "";
}

/* Bind an input or weight, and remember what it was. */
static void give(Reader *r, const char *name, Value *value) {
    Binding *binding = reader_bind(r, name, value);
    if (binding) VEC_PUSH(&r->given, ((Given){binding, value}));
}

static void read_user_input(Reader *r, json_t *arg, Leaves *leaves) {
    const char *name =
        json_string_value(json_object_get(json_object_get(arg, "as_tensor"), "name"));
    const char *path = next_path(r, leaves);
    Program *program = r->b.program;
    if (!name) {
        const char *text = constant_text(r, arg);
        if (!text) {
            reader_fail(r, FERRY_UNSUPPORTED, "the input \"%s\" is neither a tensor nor a constant",
                        path);
            return;
        }
        VEC_PUSH(&program->input_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&program->arena, path), text});
        return;
    }
    TensorMeta meta = reader_meta(r, name);
    if (!meta.dtype)
        reader_fail(r, FERRY_UNSUPPORTED, "the input \"%s\" has an unsupported dtype", path);
    give(r, name, build_input(&r->b, path, meta.dtype, meta.rank, meta.sizes));
}

/* False when it is no weight. Whether a buffer is persistent shows in where it is kept. */
static bool read_weight(Reader *r, const char *kind, json_t *body, Value **out) {
    static const struct {
        const char *kind, *name;
        ValueKind value;
    } weights[] = {{"parameter", "parameter_name", VALUE_PARAMETER},
                   {"buffer", "buffer_name", VALUE_BUFFER},
                   {"tensor_constant", "tensor_constant_name", VALUE_CONSTANT}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        if (strcmp(weights[i].kind, kind) != 0) continue;
        const char *name = json_string_value(json_object_get(body, weights[i].name));
        const char *fqn = name ? name : "";
        bool is_state = weights[i].value == VALUE_BUFFER && json_object_get(r->pt2->weights, fqn);
        *out = reader_weight(r, fqn, is_state ? VALUE_STATE : weights[i].value);
        return true;
    }
    return false;
}

static void read_input_spec(Reader *r, json_t *spec, Leaves *leaves) {
    Value *weight;
    const char *kind = json_object_iter_key(json_object_iter(spec));
    json_t *body = json_object_iter_value(json_object_iter(spec));
    const char *name = json_string_value(json_object_get(json_object_get(body, "arg"), "name"));
    if (!kind) kind = "nothing";
    if (strcmp(kind, "user_input") == 0) {
        read_user_input(r, json_object_get(body, "arg"), leaves);
    } else if (strcmp(kind, "constant_input") == 0) {
        const char *path = next_path(r, leaves),
                   *text = constant_text(r, json_object_get(body, "value"));
        VEC_PUSH(&r->b.program->input_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&r->b.program->arena, path),
                                text ? text : "null"});
    } else if (name && read_weight(r, kind, body, &weight)) {
        give(r, name, weight);
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "an input of kind \"%s\" is not supported", kind);
    }
}

/* ---- outputs ---- */

static void add_output(Reader *r, Port port) {
    if (build_ok(&r->b)) VEC_PUSH(&r->b.program->outputs, port);
}

static void read_user_output(Reader *r, json_t *arg, Leaves *leaves) {
    const char *name =
        json_string_value(json_object_get(json_object_get(arg, "as_tensor"), "name"));
    const char *size =
        json_string_value(json_object_get(json_object_get(arg, "as_sym_int"), "as_name"));
    Program *program = r->b.program;
    const char *path = arena_string(&program->arena, next_path(r, leaves));
    const char *text = constant_text(r, arg);
    const Sym *sym = size ? map_find(&r->sizes, size) : NULL;
    if (sym && sym_is_const(sym)) text = arena_format(&program->arena, "%" PRId64, sym->value);
    if (name) {
        Value *value = reader_read(r, name);
        add_output(r, (Port){.name = path, .value = value, .target = mutation_target(r, name)});
    } else if (sym && !text) {
        Value *value = build_scalar_tensor(&r->b, sym, FERRY_I64);
        add_output(r, (Port){.name = path, .value = value, .is_number = true});
    } else if (size && !sym) {
        reader_fail(r, FERRY_BAD_FORMAT, "the size \"%s\" is not defined", size);
    } else if (text) {
        VEC_PUSH(&program->output_constants, (ConstantLeaf){leaves->next - 1, path, text});
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "the output \"%s\" is neither a tensor nor a constant",
                    path);
    }
}

/* ---- the whole ---- */

static void read_signature(Reader *r, json_t *signature, Leaves *inputs, Leaves *outputs) {
    json_t *specs = json_object_get(signature, "output_specs"), *spec;
    size_t i;
    json_array_foreach(json_object_get(signature, "input_specs"), i, spec) {
        read_input_spec(r, spec, inputs);
        if (!build_ok(&r->b)) return;
    }
    translate_graph(r);
    json_array_foreach(specs, i, spec) {
        const char *kind = json_object_iter_key(json_object_iter(spec));
        if (!json_object_get(spec, "user_output"))
            mutation_read(r, kind ? kind : "", json_object_get(spec, kind ? kind : ""));
        if (!build_ok(&r->b)) return;
    }
    mutation_record(r);
    json_array_foreach(specs, i, spec) {
        json_t *output = json_object_get(spec, "user_output");
        if (output) read_user_output(r, json_object_get(output, "arg"), outputs);
        if (!build_ok(&r->b)) return;
    }
    if (inputs->next != inputs->paths.count || outputs->next != outputs->paths.count)
        reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has more leaves than the signature");
}

/* in_spec, out_spec and the names of forward's parameters, from the entry of the root module. */
static ferry_status read_structures(Reader *r, json_t *module, Leaves *inputs, Leaves *outputs,
                                    ferry_error *error) {
    Program *program = r->b.program;
    json_t *calls = json_object_get(module, "module_call_graph");
    json_t *call = json_object_get(json_array_get(calls, 0), "signature");
    const char *in_spec = json_string_value(json_object_get(call, "in_spec"));
    const char *out_spec = json_string_value(json_object_get(call, "out_spec"));
    json_t *names = json_object_get(call, "forward_arg_names");
    uint32_t count = (uint32_t)json_array_size(names);
    const char **list = ARENA_ARRAY(&program->arena, const char *, count);
    if (!in_spec || !out_spec || !list) {
        return error_set(error, FERRY_BAD_FORMAT, r->pt2->path,
                         "expected in_spec and out_spec in module_call_graph");
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        list[i] = name ? name : "";
    }
    TRY(structure_arguments(&program->arena, in_spec, list, count, &program->input_tree,
                            &inputs->paths, error));
    return structure_results(&program->arena, out_spec, &program->output_tree, &outputs->paths,
                             error);
}

/* The class of the traced module, as its first node's module stack tells: "path,type;...". */
static const char *root_class(Reader *r) {
    json_t *node;
    size_t i;
    json_array_foreach(json_object_get(r->graph, "nodes"), i, node) {
        const char *stack = json_string_value(
            json_object_get(json_object_get(node, "metadata"), "nn_module_stack"));
        size_t start = stack ? strcspn(stack, ";") : 0;
        while (start > 0 && stack[start - 1] != '.') start--;
        if (start == 0) continue;
        size_t length = strspn(stack + start,
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        return arena_string_n(&r->b.program->arena, stack + start, length);
    }
    return "Module";
}

ferry_status pt2_build(Pt2 *pt2, Program *program, ferry_error *error) {
    json_t *module = json_object_get(pt2->json, "graph_module");
    Reader r = {
        .pt2 = pt2, .b = build_start(program, error), .graph = json_object_get(module, "graph")};
    Leaves inputs = {0}, outputs = {0};
    program->model_type = "torch.export";
    program->architecture = root_class(&r);
    ferry_status status = read_structures(&r, module, &inputs, &outputs, error);
    if (status == FERRY_OK) {
        read_ranges(&r);
        read_sizes(&r);
        read_signature(&r, json_object_get(module, "signature"), &inputs, &outputs);
        status = build_finish(&r.b);
    }
    if (status == FERRY_OK) {
        program->dtype = program_float_dtype(program);
        program_sweep(program);
    }
    bool failed = r.bindings.failed || r.sizes.failed || r.given.failed || inputs.paths.failed ||
                  outputs.paths.failed;
    map_free(&r.bindings);
    map_free(&r.sizes);
    VEC_FREE(&r.given);
    VEC_FREE(&inputs.paths);
    VEC_FREE(&outputs.paths);
    return status == FERRY_OK && failed ? error_memory(error, pt2->path, 0) : status;
}
