/* From the parsed archive to a Program: sizes, weights, inputs, the graph, outputs. */
#include "base/error.h"
#include "source/pt2/reader.h"
#include "source/pt2/structure.h"

#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* torch traces with sizes of 2 and more and gives 2 as the bound, but such a program serves any. */
static void read_ranges(Reader *r) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    SymTable *symbols = &r->b.program->symbols;
    const char *key;
    const Doc *range;
    DOC_EACH_MEMBER(doc_get(r->pt2->json, "range_constraints"), key, range) {
        const Doc *lower = doc_get(range, "min_val"), *upper = doc_get(range, "max_val");
        int64_t low = doc_is_integer(lower) ? doc_integer(lower) : 0;
        int64_t high = doc_is_integer(upper) ? doc_integer(upper) : SYM_UNBOUNDED;
        bool plain = *key && strspn(key, word) == strlen(key) && (*key < '0' || *key > '9');
        if (plain)
            sym_symbol(symbols, key, low == 2 || low < 0 ? 0 : low,
                       high > low ? high : SYM_UNBOUNDED);
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

/* ---- the whole ---- */

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

/* What the builder and the type rules find wrong, with the file and the node. */
static void name_place(const Reader *r, ferry_error *error) {
    const char *path = r->pt2->path;
    const char *name = doc_text(doc_get(r->node, "name"));
    const char *target = doc_text(doc_get(r->node, "target"));
    ferry_error problem = *error;
    if (strstr(problem.message, path) || strstr(problem.where, path)) return;
    if (target)
        error_set(error, problem.status, problem.where, "%s: node \"%s\" (%s): %s", path,
                  name ? name : "", target, problem.message);
    else
        error_set(error, problem.status, problem.where, "%s: %s", path, problem.message);
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
    ferry_error problem;
    ferry_status status = read_structures(&r, module, &inputs, &outputs, &problem);
    if (status != FERRY_OK)
        error_set(error, status, pt2->path, "%s: %s", problem.where, problem.message);
    if (status == FERRY_OK) {
        read_ranges(&r);
        read_sizes(&r);
        signature_read(&r, doc_get(module, "signature"), &inputs, &outputs);
        status = build_finish(&r.b);
    }
    if (status == FERRY_OK) {
        program->dtype = program_float_dtype(program);
        program_sweep(program);
    }
    bool failed = r.bindings.failed || r.sizes.failed || r.places.failed || inputs.paths.failed ||
                  outputs.paths.failed;
    map_free(&r.bindings);
    map_free(&r.sizes);
    VEC_FREE(&r.places);
    VEC_FREE(&inputs.paths);
    VEC_FREE(&outputs.paths);
    if (status != FERRY_OK) name_place(&r, error);
    return status == FERRY_OK && failed ? error_memory(error, pt2->path, 0) : status;
}
