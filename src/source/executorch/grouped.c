/* Products of groups of rows: the target makes slices of the rows where the groups end, a product of each
 * slice with the matrix of its group, and rows of zeros behind the last end. What is taken together here
 * has the rows of the whole, which the sizes of its parts do not tell. */
#include "source/executorch/reader.h"

/* The rows of a product's left side, and where they end. */
typedef struct Group {
    Value *rows, *matrix;
    const Sym *start, *end;
} Group;

static const Node *made_by(const Value *value, Op op) {
    return value->producer && value->producer->op == op ? value->producer : NULL;
}

static bool read_group(const Value *part, Group *out) {
    const Node *product = made_by(part, OP_MATMUL);
    const Node *slice = product ? made_by(product->args[0].tensor, OP_SLICE) : NULL;
    if (!slice || !sym_is_value(slice->args[1].integer, 0) ||
        !sym_is_value(slice->args[4].integer, 1))
        return false;
    *out = (Group){slice->args[0].tensor, product->args[1].tensor, slice->args[2].integer,
                   slice->args[3].integer};
    return out->rows->rank == 2 && out->matrix->rank == 2;
}

/* The tensor of ends of which `end` is number `index`; NULL: none. */
static Value *offsets_of(const Reader *r, const Sym *end, uint32_t index) {
    const Program *program = r->b.program;
    for (size_t i = 0; i < program->sources.count; i++) {
        const SymSource *source = &program->sources.items[i];
        if (source->symbol != end || source->dim != -1) continue;
        const Node *select = made_by(source->value, OP_SELECT);
        bool matches = select && select->args[0].tensor->rank == 1 &&
                       sym_is_value(select->args[1].integer, 0) &&
                       sym_is_value(select->args[2].integer, index);
        return matches ? select->args[0].tensor : NULL;
    }
    return NULL;
}

/* The matrices in one tensor; that which they were selected from where it is there. */
static Value *join(Reader *r, Value *const *matrices, uint32_t count) {
    Value *whole = NULL;
    for (uint32_t g = 0; g < count; g++) {
        const Node *select = made_by(matrices[g], OP_SELECT);
        bool matches = select && sym_is_value(select->args[1].integer, 0) &&
                       sym_is_value(select->args[2].integer, g) &&
                       (g == 0 || select->args[0].tensor == whole);
        if (g == 0 && matches) whole = select->args[0].tensor;
        if (!matches) whole = NULL;
        if (!whole) break;
    }
    if (whole && sym_is_value(whole->shape[0], count)) return whole;
    Value **parts = ARENA_ARRAY(&r->arena, Value *, count);
    for (uint32_t g = 0; parts && g < count; g++) {
        parts[g] = build_unsqueeze(&r->b, matrices[g], 0);
    }
    return parts ? build_cat(&r->b, parts, count, 0) : NULL;
}

Value *pte_read_grouped(Reader *r, Value *const *parts, uint32_t count) {
    Value **matrices = ARENA_ARRAY(&r->arena, Value *, count);
    const Sym *end = build_const(&r->b, 0);
    Value *rows = NULL, *offsets = NULL;
    if (!matrices || count < 2 || !reader_ok(r)) return NULL;
    const Node *rest = made_by(parts[count - 1], OP_FULL);
    if (!rest || !reader_ok(r)) return NULL;
    for (uint32_t g = 0; g + 1 < count; g++) {
        Group group;
        if (!read_group(parts[g], &group) || group.start != end) return NULL;
        Value *ends = offsets_of(r, group.end, g);
        if (!ends || (g && (ends != offsets || group.rows != rows))) return NULL;
        rows = group.rows, offsets = ends, end = group.end, matrices[g] = group.matrix;
    }
    if (!sym_is_value(offsets->shape[0], count - 1)) return NULL;
    const Sym *behind = sym_sub(&r->b.program->symbols, rows->shape[0], end);
    if (rest->args[0].integers.count != 2 || rest->args[0].integers.items[0] != behind) return NULL;
    const Arg *fill = &rest->args[1];
    bool zero = fill->kind == VALUE_FLOAT
                    ? fill->number == 0
                    : fill->kind == VALUE_INT && sym_is_value(fill->integer, 0);
    Value *weights = zero ? join(r, matrices, count - 1) : NULL;
    if (!weights) return NULL;
    const Arg args[] = {arg_tensor(rows), arg_tensor(weights), arg_tensor(offsets)};
    return build_op(&r->b, OP_GROUPED_MM, args, 3);
}
