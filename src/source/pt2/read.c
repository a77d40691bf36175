/* From the parsed archive to a Program: sizes, weights, inputs, the graph, outputs. */
#include "base/error.h"
#include "source/pt2/reader.h"
#include "source/pt2/structure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* torch traces with sizes of 2 and more, but a program without upper bound below that serves any. */
static void read_ranges(Reader *r) {
    SymTable *symbols = &r->b.program->symbols;
    const char *key;
    const Doc *range;
    DOC_EACH_MEMBER(doc_get(r->pt2->json, "range_constraints"), key, range) {
        const Doc *lower = doc_get(range, "min_val"), *upper = doc_get(range, "max_val");
        int64_t low = doc_is_integer(lower) ? doc_integer(lower) : 0;
        int64_t high = doc_is_integer(upper) ? doc_integer(upper) : SYM_UNBOUNDED;
        bool plain = *key && strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(key) &&
                     (*key < '0' || *key > '9');
        if (plain) sym_symbol(symbols, key, low > 2 ? low : 0, high > low ? high : SYM_UNBOUNDED);
    }
}

static void read_sizes(Reader *r) {
    const char *name;
    const Doc *value;
    DOC_EACH_MEMBER(doc_get(r->graph, "sym_int_values"), name, value) {
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

/* ---- weights ---- */

/* The record behind a weight: its bytes, and the file they are mapped from (NULL: inflated). */
static bool find_record(Reader *r, const char *folder, const Doc *payload, const char *fqn,
                        const unsigned char **bytes, uint64_t *size, const MappedFile **file) {
    Pt2 *pt2 = r->pt2;
    ferry_error problem;
    const char *path = doc_text(doc_get(payload, "path_name"));
    if (doc_bool(doc_get(payload, "use_pickle"))) {
        reader_fail(r, FERRY_UNSUPPORTED,
                    "the weight \"%s\" is kept as a pickle, which ferry never reads", fqn);
        return false;
    }
    const char *full =
        path ? arena_format(&pt2->arena, "%s/data/%s/%s", pt2->root, folder, path) : "";
    const ZipEntry *entry = zip_find(&pt2->zip, full);
    if (!entry) {
        reader_fail(r, FERRY_BAD_FORMAT, "the archive has no record for the weight \"%s\"", fqn);
        return false;
    }
    if (zip_bytes(&pt2->zip, entry, &pt2->arena, bytes, &problem) != FERRY_OK) {
        reader_fail(r, problem.status, "the weight \"%s\": %s", fqn, problem.message);
        return false;
    }
    *size = entry->size;
    *file = entry->deflated ? NULL : &pt2->file;
    return true;
}

/* Check that every element of a strided tensor lies in the record, and turn its sizes into numbers. */
static bool check_window(const TensorMeta *meta, uint64_t record, int64_t *shape, int64_t *strides,
                         uint64_t *offset) {
    uint64_t last, element = ferry_dtype_size(meta->dtype), count = 1;
    if (!sym_is_const(meta->offset) || meta->offset->value < 0) return false;
    last = (uint64_t)meta->offset->value;
    for (uint32_t d = 0; d < meta->rank; d++) {
        uint64_t extent;
        if (!sym_is_const(meta->sizes[d]) || !sym_is_const(meta->strides[d])) return false;
        shape[d] = meta->sizes[d]->value;
        strides[d] = meta->strides[d]->value;
        if (shape[d] < 0 || strides[d] < 0) return false;
        if (__builtin_mul_overflow(count, (uint64_t)shape[d], &count) || count > INT64_MAX)
            return false;
        if (shape[d] == 0) continue;
        if (__builtin_mul_overflow((uint64_t)shape[d] - 1, (uint64_t)strides[d], &extent))
            return false;
        if (__builtin_add_overflow(last, extent, &last)) return false;
    }
    *offset = (uint64_t)meta->offset->value * element;
    if (count == 0) return *offset <= record;
    return last < record / element;
}

static Value *read_weight(Reader *r, const char *folder, const Doc *config, const char *fqn,
                          ValueKind kind) {
    const Doc *payload = doc_get(config, fqn);
    const unsigned char *bytes;
    const MappedFile *file;
    uint64_t size, offset = 0;
    int64_t shape[FERRY_MAX_RANK], strides[FERRY_MAX_RANK];
    TensorMeta meta;
    ferry_error problem;
    Program *program = r->b.program;
    if (!payload) return reader_fail(r, FERRY_BAD_FORMAT, "the archive has no weight \"%s\"", fqn);
    if (schema_tensor(&program->symbols, doc_get(payload, "tensor_meta"), fqn, &meta, &problem)) {
        return reader_fail(r, problem.status, "the weight \"%s\": %s", fqn, problem.message);
    }
    if (!meta.dtype)
        return reader_fail(r, FERRY_UNSUPPORTED, "the weight \"%s\" has an unsupported dtype", fqn);
    if (!find_record(r, folder, payload, fqn, &bytes, &size, &file)) return &r->b.poison;
    if (!check_window(&meta, size, shape, strides, &offset)) {
        return reader_fail(r, FERRY_BAD_FORMAT,
                           "the weight \"%s\" reaches outside its record of %" PRIu64 " bytes", fqn,
                           size);
    }
    const Recipe *recipe =
        recipe_window(&program->arena, file, bytes + offset, meta.dtype, meta.rank, shape, strides);
    Value *value = program_weight(program, kind, fqn, recipe);
    return value ? value : build_fail(&r->b, FERRY_OUT_OF_MEMORY, "out of memory");
}

/* ---- inputs ---- */

/* What a constant argument or result holds, as JSON text; NULL when it is no constant. */
static const char *constant_text(Reader *r, const Doc *value) {
    static const char *const plain[] = {"as_int", "as_float", "as_string", "as_bool"};
    if (doc_get(value, "as_none")) return "null";
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const Doc *found = doc_get(value, plain[i]);
        if (!found) continue;
        Buffer text = {0};
        doc_print_scalar(&text, found);
        const char *copy = arena_string(&r->b.program->arena, buffer_string(&text));
        buffer_free(&text);
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

static void read_user_input(Reader *r, const Doc *arg, Leaves *leaves) {
    const char *name = doc_text(doc_get(doc_get(arg, "as_tensor"), "name"));
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
    reader_bind(r, name, build_input(&r->b, path, meta.dtype, meta.rank, meta.sizes));
}

static void read_input_spec(Reader *r, const Doc *spec, Leaves *leaves) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    const char *name = doc_text(doc_get(doc_get(body, "arg"), "name"));
    if (!kind) kind = "nothing";
    if (strcmp(kind, "user_input") == 0) {
        read_user_input(r, doc_get(body, "arg"), leaves);
    } else if (strcmp(kind, "constant_input") == 0) {
        const char *path = next_path(r, leaves), *text = constant_text(r, doc_get(body, "value"));
        VEC_PUSH(&r->b.program->input_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&r->b.program->arena, path),
                                text ? text : "null"});
    } else if (name && strcmp(kind, "parameter") == 0) {
        const char *fqn = doc_text(doc_get(body, "parameter_name"));
        reader_bind(r, name,
                    read_weight(r, "weights", r->pt2->weights, fqn ? fqn : "", VALUE_PARAMETER));
    } else if (name && strcmp(kind, "buffer") == 0) {
        const char *fqn = doc_text(doc_get(body, "buffer_name"));
        bool stored = fqn && doc_get(r->pt2->weights, fqn);
        reader_bind(r, name,
                    read_weight(r, stored ? "weights" : "constants",
                                stored ? r->pt2->weights : r->pt2->constants, fqn ? fqn : "",
                                VALUE_BUFFER));
    } else if (name && strcmp(kind, "tensor_constant") == 0) {
        const char *fqn = doc_text(doc_get(body, "tensor_constant_name"));
        reader_bind(r, name,
                    read_weight(r, "constants", r->pt2->constants, fqn ? fqn : "", VALUE_CONSTANT));
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "an input of kind \"%s\" is not supported", kind);
    }
}

/* ---- outputs ---- */

static void read_user_output(Reader *r, const Doc *arg, Leaves *leaves) {
    const char *name = doc_text(doc_get(doc_get(arg, "as_tensor"), "name"));
    const char *size = doc_text(doc_get(doc_get(arg, "as_sym_int"), "as_name"));
    const char *path = next_path(r, leaves), *text = constant_text(r, arg);
    Program *program = r->b.program;
    if (name) {
        build_output(&r->b, path, reader_read(r, name));
    } else if (size) {
        const Sym *sym = map_find(&r->sizes, size);
        if (sym)
            build_output(&r->b, path, build_scalar_tensor(&r->b, sym, FERRY_I64));
        else
            reader_fail(r, FERRY_BAD_FORMAT, "the size \"%s\" is not defined", size);
    } else if (text) {
        VEC_PUSH(&program->output_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&program->arena, path), text});
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "the output \"%s\" is neither a tensor nor a constant",
                    path);
    }
}

/* Mutation outputs repeat what the written tensors hold at the end; reading a name gives that anyway. */
static void read_output_spec(Reader *r, const Doc *spec, Leaves *leaves) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    if (kind && strcmp(kind, "user_output") == 0) {
        read_user_output(r, doc_get(body, "arg"), leaves);
    } else if (!kind || !strstr(kind, "mutation")) {
        reader_fail(r, FERRY_UNSUPPORTED, "an output of kind \"%s\" is not supported",
                    kind ? kind : "");
    }
}

/* ---- the whole ---- */

static void read_signature(Reader *r, const Doc *signature, Leaves *inputs, Leaves *outputs) {
    const Doc *spec;
    size_t i;
    DOC_EACH_ITEM(doc_get(signature, "input_specs"), i, spec) {
        read_input_spec(r, spec, inputs);
        if (!build_ok(&r->b)) return;
    }
    translate_graph(r);
    DOC_EACH_ITEM(doc_get(signature, "output_specs"), i, spec) {
        if (!build_ok(&r->b)) return;
        read_output_spec(r, spec, outputs);
    }
    if (inputs->next != inputs->paths.count || outputs->next != outputs->paths.count)
        reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has more leaves than the signature");
}

/* in_spec, out_spec and the names of forward's parameters, from the entry of the root module. */
static ferry_status read_structures(Reader *r, const Doc *module, Leaves *inputs, Leaves *outputs,
                                    ferry_error *error) {
    Program *program = r->b.program;
    const Doc *calls = doc_get(module, "module_call_graph");
    const Doc *call = doc_get(doc_item(calls, 0), "signature");
    const char *in_spec = doc_text(doc_get(call, "in_spec"));
    const char *out_spec = doc_text(doc_get(call, "out_spec"));
    const Doc *names = doc_get(call, "forward_arg_names");
    uint32_t count = (uint32_t)doc_count(names);
    const char **list = ARENA_ARRAY(&program->arena, const char *, count);
    if (!in_spec || !out_spec || !list) {
        return error_set(error, FERRY_BAD_FORMAT, r->pt2->path,
                         "expected in_spec and out_spec in module_call_graph");
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = doc_text(doc_item(names, i));
        list[i] = name ? name : "";
    }
    TRY(structure_arguments(&program->arena, in_spec, list, count, &program->input_tree,
                            &inputs->paths, error));
    return structure_results(&program->arena, out_spec, &program->output_tree, &outputs->paths,
                             error);
}

/* The class of the traced module, as its first node's module stack tells: "path,type;...". */
static const char *root_class(Reader *r) {
    const Doc *node;
    size_t i;
    DOC_EACH_ITEM(doc_get(r->graph, "nodes"), i, node) {
        const char *stack = doc_text(doc_get(doc_get(node, "metadata"), "nn_module_stack"));
        size_t start = stack ? strcspn(stack, ";") : 0;
        while (start > 0 && stack[start - 1] != '.') start--;
        if (start == 0) continue;
        size_t length = strspn(stack + start,
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        return arena_string_n(&r->b.program->arena, stack + start, length);
    }
    return "Module";
}

ferry_status pt2_build(Pt2 *pt2, const Registry *registry, Program *program, ferry_error *error) {
    const Doc *module = doc_get(pt2->json, "graph_module");
    Reader r = {.pt2 = pt2,
                .registry = registry,
                .b = build_start(program, error),
                .graph = doc_get(module, "graph")};
    Leaves inputs = {0}, outputs = {0};
    program->model_type = "torch.export";
    program->architecture = root_class(&r);
    ferry_status status = read_structures(&r, module, &inputs, &outputs, error);
    if (status == FERRY_OK) {
        read_ranges(&r);
        read_sizes(&r);
        read_signature(&r, doc_get(module, "signature"), &inputs, &outputs);
        status = build_finish(&r.b);
    }
    if (status == FERRY_OK) {
        program->dtype = program_float_dtype(program);
        program_sweep(program);
    }
    bool failed =
        r.bindings.failed || r.sizes.failed || inputs.paths.failed || outputs.paths.failed;
    map_free(&r.bindings);
    map_free(&r.sizes);
    VEC_FREE(&inputs.paths);
    VEC_FREE(&outputs.paths);
    return status == FERRY_OK && failed ? error_memory(error, pt2->path, 0) : status;
}
