/* The product of groups of rows, each with a matrix of its own: the rows are split where the groups
 * end, and there is one MatMul per group. */
#include "target/onnx/lower.h"

enum { MAX_GROUPS = 1024 };

/* int64[groups + 1]: the rows of each group, and those behind the last. */
static const char *group_sizes(Onnx *o, const Node *node, int64_t groups) {
    const Value *offsets = lower_tensor(node, 2);
    const Sym *bounds = sym_const(&o->program->symbols, groups + 2),
              *sizes = sym_const(&o->program->symbols, groups + 1);
    const Attr axis = ATTR_I("axis", 0);
    const char *ends = lower_cast(o, lower_input(o, node, 2), offsets, FERRY_I64), *sides[2];
    const char *parts[] = {onnx_ints(o, (const int64_t[]){0}, 1), ends,
                           onnx_size(o, node->outputs[0]->shape[0])};
    const char *all = onnx_helper(o, "Concat", parts, 3, &axis, 1, FERRY_I64, 1, &bounds);
    for (int64_t i = 0; i < 2; i++) {
        const int64_t start = 1 - i, end = groups + 2 - i, along = 0;
        const char *inputs[] = {all, onnx_ints(o, &start, 1), onnx_ints(o, &end, 1),
                                onnx_ints(o, &along, 1)};
        sides[i] = onnx_helper(o, "Slice", inputs, 4, NULL, 0, FERRY_I64, 1, &sizes);
    }
    return onnx_helper(o, "Sub", sides, 2, NULL, 0, FERRY_I64, 1, &sizes);
}

/* Zeros [1, rows of `rest`, n]. */
static const char *zeros(Onnx *o, const char *rest, const Value *out, const Sym *rows) {
    SymTable *symbols = &o->program->symbols;
    const Attr attrs[] = {ATTR_I("start", 0), ATTR_I("end", 1)}, axis = ATTR_I("axis", 0);
    const Sym *one = sym_const(symbols, 1), *three = sym_const(symbols, 3);
    const char *parts[] = {onnx_ints(o, (const int64_t[]){1}, 1),
                           onnx_helper(o, "Shape", &rest, 1, attrs, 2, FERRY_I64, 1, &one),
                           onnx_size(o, out->shape[1])};
    const char *inputs[] = {onnx_number(o, 0, out->dtype),
                            onnx_helper(o, "Concat", parts, 3, &axis, 1, FERRY_I64, 1, &three)};
    const Sym *shape[] = {one, rows, out->shape[1]};
    return onnx_helper(o, "Expand", inputs, 2, NULL, 0, out->dtype, 3, shape);
}

void lower_grouped_mm(Onnx *o, const Node *node) {
    const Value *self = lower_tensor(node, 0), *weights = lower_tensor(node, 1),
                *out = node->outputs[0];
    SymTable *symbols = &o->program->symbols;
    const Sym *one = sym_const(symbols, 1);
    const Attr axis = ATTR_I("axis", 0), rows_axis = ATTR_I("axis", 1);
    int64_t groups = weights->shape[0]->value;
    if (!sym_is_const(weights->shape[0]) || groups > MAX_GROUPS) {
        onnx_fail(o, FERRY_UNSUPPORTED, "the number of groups must be a constant up to %d",
                  MAX_GROUPS);
        return;
    }
    const char **rows = ARENA_ARRAY(&o->arena, const char *, groups + 1);
    const char **matrices = ARENA_ARRAY(&o->arena, const char *, groups + 1);
    const Sym **sizes = ARENA_ARRAY(&o->arena, const Sym *, groups + 1);
    if (!rows || !matrices || !sizes) return;
    for (int64_t g = 0; g <= groups; g++) {
        const char *symbol =
            arena_format(&o->program->arena, "%s_rows_%lld", out->name, (long long)g);
        sizes[g] = sym_symbol(symbols, symbol, 0, SYM_UNBOUNDED);
        rows[g] =
            onnx_declare(o, "rows", self->dtype, 2, (const Sym *const[]){sizes[g], self->shape[1]});
        if (g == groups) break;
        matrices[g] = onnx_declare(o, "matrix", weights->dtype, 3,
                                   (const Sym *const[]){one, weights->shape[1], weights->shape[2]});
    }
    const char *split[] = {lower_input(o, node, 0), group_sizes(o, node, groups)};
    onnx_node(o, "Split", split, 2, rows, (uint32_t)groups + 1, &axis, 1);
    split[0] = lower_input(o, node, 1);
    const Attr even[] = {axis, ATTR_I("num_outputs", groups)};
    onnx_node(o, "Split", split, 1, matrices, (uint32_t)groups, even, 2);
    for (int64_t g = 0; g < groups; g++) {
        const char *inputs[] = {rows[g], matrices[g]};
        const Sym *shape[] = {one, sizes[g], out->shape[1]};
        matrices[g] = onnx_helper(o, "MatMul", inputs, 2, NULL, 0, out->dtype, 3, shape);
    }
    matrices[groups] = zeros(o, rows[groups], out, sizes[groups]);
    const char *joined[2];
    joined[0] = onnx_helper(o, "Concat", matrices, (uint32_t)groups + 1, &rows_axis, 1, out->dtype,
                            3, (const Sym *const[]){one, out->shape[0], out->shape[1]});
    joined[1] = onnx_ints(o, (const int64_t[]){0}, 1);
    RESULT_PLAIN(o, "Squeeze", joined);
}
