/* Operators that choose elements. */
#include "source/onnx/import.h"

#include <string.h>

/* ---- gather ---- */

/* Numbers by known indices; NULL when that is not known, and after a failure. */
static const Known *gather_known(Import *im, const OnnxNode *node) {
    const Known *known = import_known(node, 0), *index = import_known(node, 1);
    int64_t places[KNOWN_MAX_COUNT];
    uint32_t place;
    if (!known || known->is_scalar || !known_is_integer(index)) return NULL;
    if (!known_constants(index, places)) return NULL;
    Known *result = known_make(im, known->dtype, index->is_scalar, index->count);
    for (uint32_t i = 0; i < index->count && result; i++) {
        if (!import_axis(im, places[i], known->count, &place)) return NULL;
        result->items[i] = known->items[place];
    }
    return result;
}

/* By a tensor of indices of any rank. */
static Value *gather_tensor(Import *im, Value *x, uint32_t axis, Value *index) {
    Builder *b = &im->b;
    const Sym *shape[2 * FERRY_MAX_RANK];
    uint32_t rank = 0;
    if (x->rank == 2 && axis == 0) return build_embedding(b, x, index);
    if (x->rank - 1 + index->rank > FERRY_MAX_RANK) {
        return import_unsupported(im, "the rank is above %d", FERRY_MAX_RANK), &b->poison;
    }
    for (uint32_t d = 0; d < axis; d++) shape[rank++] = x->shape[d];
    for (uint32_t d = 0; d < index->rank; d++) shape[rank++] = index->shape[d];
    for (uint32_t d = axis + 1; d < x->rank; d++) shape[rank++] = x->shape[d];
    const Sym *count = shape_count(&b->program->symbols, index->rank, index->shape);
    Value *flat = index->rank == 1 ? index : build_view(b, index, &count, 1);
    Value *chosen =
        import_op(im, OP_INDEX_SELECT, arg_tensor(x), arg_int(b, axis), arg_tensor(flat));
    return index->rank == 1 ? chosen : build_view(b, chosen, shape, rank);
}

/* Constant indices, made to count from the front. */
static Value *constant_index(Import *im, const Known *index, const Sym *size) {
    int64_t places[KNOWN_MAX_COUNT];
    const int64_t shape = index->count;
    if (index->is_scalar || !sym_is_const(size) || !known_constants(index, places)) return NULL;
    for (uint32_t i = 0; i < index->count; i++) {
        if (places[i] < 0) places[i] += size->value;
    }
    return build_constant(&im->b, VALUE_CONSTANT, "index", FERRY_I64, 1, &shape, places);
}

void read_gather(Import *im, const OnnxNode *node) {
    int64_t axis_attr = import_int(im, node, "axis", 0);
    uint32_t axis;
    const Known *known = gather_known(im, node), *index = import_known(node, 1);
    if (!import_ok(im)) return;
    if (known) {
        if (import_axis(im, axis_attr, 1, &axis)) import_give_known(im, node, 0, known);
        return;
    }
    Value *x = import_tensor(im, node, 0), *chosen = NULL;
    if (!import_ok(im) || !import_axis(im, axis_attr, x->rank, &axis)) return;
    if (known_is_integer(index) && index->is_scalar && index->items[0]) {
        Arg place = arg_sym(index->items[0]);
        chosen = import_op(im, OP_SELECT, arg_tensor(x), arg_int(&im->b, axis), place);
    } else {
        Value *places = known_is_integer(index) ? constant_index(im, index, x->shape[axis]) : NULL;
        if (!places) places = import_tensor(im, node, 1);
        if (import_ok(im)) chosen = gather_tensor(im, x, axis, places);
    }
    import_give(im, node, 0, chosen);
}

void read_gather_elements(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    uint32_t axis;
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", 0), x->rank, &axis)) return;
    import_give(im, node, 0, build_gather(&im->b, x, (int)axis, index));
}

/* One row of a table per vector of `width` coordinates: the vectors become numbers of rows. A negative
 * coordinate counts from the end; one outside its dimension makes a number that no row has. */
static Value *row_numbers(Import *im, const Value *x, Value *index, uint32_t width) {
    Builder *b = &im->b;
    Value *row = NULL, *valid = NULL;
    for (uint32_t d = 0; d < width; d++) {
        Value *size = build_scalar_tensor(b, x->shape[d], FERRY_I64);
        Value *place = build_select(b, index, -1, d);
        Value *negative = build_scalar(b, OP_LT_SCALAR, place, 0);
        place = build_where(b, negative, build_add(b, place, size), place);
        Value *inside = build_binary(b, OP_AND, build_scalar(b, OP_GE_SCALAR, place, 0),
                                     build_binary(b, OP_LT, place, size));
        row = row ? build_add(b, build_mul(b, row, size), place) : place;
        valid = valid ? build_binary(b, OP_AND, valid, inside) : inside;
    }
    const Sym *rows = shape_count(&b->program->symbols, width, x->shape);
    return build_where(b, valid, row, build_scalar_tensor(b, rows, FERRY_I64));
}

void read_gather_nd(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    const Sym *table[FERRY_MAX_RANK], *shape[2 * FERRY_MAX_RANK];
    if (!import_ok(im) || !import_require_int(im, node, "batch_dims", 0)) return;
    const Sym *last = index->rank ? index->shape[index->rank - 1] : build_const(b, 0);
    if (!sym_is_const(last) || last->value < 1 || last->value > (int64_t)x->rank ||
        index->dtype != FERRY_I64) {
        import_unsupported(im, "expected int64 indices of 1 to %u coordinates", x->rank);
        return;
    }
    uint32_t width = (uint32_t)last->value, inner = x->rank - width, outer = index->rank - 1;
    if (outer + inner > FERRY_MAX_RANK) {
        import_unsupported(im, "the rank is above %d", FERRY_MAX_RANK);
        return;
    }
    table[0] = shape_count(&b->program->symbols, width, x->shape);
    if (inner) memcpy(table + 1, x->shape + width, inner * sizeof *table);
    memcpy(shape, index->shape, outer * sizeof *shape);
    if (inner) memcpy(shape + outer, x->shape + width, inner * sizeof *shape);
    const Sym *count = shape_count(&b->program->symbols, outer, index->shape);
    Value *rows = build_view(b, row_numbers(im, x, index, width), &count, 1);
    Value *chosen = import_op(im, OP_INDEX_SELECT, arg_tensor(build_view(b, x, table, inner + 1)),
                              arg_int(b, 0), arg_tensor(rows));
    import_give(im, node, 0, build_view(b, chosen, shape, outer + inner));
}

/* ---- slices ---- */

/* The bounds of one dimension; NULL stands for INT64_MIN, before the first element. */
static Value *slice(Import *im, Value *x, uint32_t axis, const Sym *start, const Sym *end,
                    int64_t step) {
    Builder *b = &im->b;
    if (!start) start = build_const(b, 0);
    if (!end) end = build_const(b, 0);
    return import_op(im, OP_SLICE, arg_tensor(x), arg_int(b, axis), arg_sym(start), arg_sym(end),
                     arg_int(b, step));
}

/* A constant bound in a vector of `count` numbers. */
static uint32_t clamp_bound(const Sym *bound, uint32_t count) {
    int64_t value = bound ? bound->value : INT64_MIN;
    if (value < 0) value = value < -(int64_t)count ? 0 : value + count;
    return value > (int64_t)count ? count : (uint32_t)value;
}

/* Known numbers between constant bounds; NULL when they are none. */
static const Known *slice_known(Import *im, const OnnxNode *node, const Known *starts,
                                const Known *ends) {
    const Known *known = import_known(node, 0);
    if (!known || known->is_scalar || starts->count != 1) return NULL;
    const Sym *start = starts->items[0], *end = ends->items[0];
    if ((start && !sym_is_const(start)) || (end && !sym_is_const(end))) return NULL;
    uint32_t first = clamp_bound(start, known->count), last = clamp_bound(end, known->count);
    return known_slice(im, known, first, last > first ? last - first : 0);
}

void read_slice(Import *im, const OnnxNode *node) {
    int64_t axes[FERRY_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t steps[FERRY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    const Known *starts = import_sizes(im, node, 1), *ends = import_sizes(im, node, 2);
    if (!starts || !ends) return;
    uint32_t axis_count = starts->count, step_count = starts->count, axis, seen = 0;
    if (import_input(node, 3) && !import_constants(im, node, 3, axes, &axis_count)) return;
    if (import_input(node, 4) && !import_constants(im, node, 4, steps, &step_count)) return;
    if (starts->count > FERRY_MAX_RANK || starts->count != ends->count ||
        starts->count != axis_count || starts->count != step_count) {
        import_bad(im, "starts, ends, axes and steps differ in their number");
        return;
    }
    const Known *known = steps[0] == 1 ? slice_known(im, node, starts, ends) : NULL;
    if (known) {
        if (import_axis(im, axes[0], 1, &axis)) import_give_known(im, node, 0, known);
        return;
    }
    Value *x = import_tensor(im, node, 0);
    for (uint32_t i = 0; i < starts->count && import_ok(im); i++) {
        if (!import_axis(im, axes[i], x->rank, &axis)) return;
        if (seen & 1u << axis) import_bad(im, "axis %u is given twice", axis);
        if (steps[i] < 1) import_unsupported(im, "the step %lld", (long long)steps[i]);
        seen |= 1u << axis;
        x = slice(im, x, axis, starts->items[i], ends->items[i], steps[i]);
    }
    import_give(im, node, 0, x);
}

/* ---- split ---- */

enum { MAX_PARTS = 64 };

/* Equal parts of a dimension, of which the last may be smaller. */
static bool equal_parts(Import *im, const OnnxNode *node, const Sym *size, const Sym **parts) {
    int64_t count = import_int(im, node, "num_outputs", node->output_count);
    if (count != node->output_count)
        return import_bad(im, "expected %lld outputs", (long long)count);
    if (!sym_is_const(size)) {
        return import_unsupported(im, "without sizes, the dimension must have a fixed size");
    }
    int64_t part = size->value / count + (size->value % count != 0), rest = size->value;
    for (int64_t i = 0; i < count; i++) {
        parts[i] = build_const(&im->b, part < rest ? part : rest);
        rest -= part < rest ? part : rest;
    }
    return true;
}

/* The parts of known numbers; false when they are none. */
static bool split_known(Import *im, const OnnxNode *node, const Sym *const *parts) {
    const Known *known = import_known(node, 0);
    uint32_t position = 0;
    if (!known || known->is_scalar) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Sym *part = parts[i];
        if (!part || !sym_is_const(part) || part->value < 0) return false;
        if (part->value > (int64_t)(known->count - position)) return false;
        position += (uint32_t)part->value;
    }
    position = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t count = (uint32_t)parts[i]->value;
        import_give_known(im, node, i, known_slice(im, known, position, count));
        position += count;
    }
    return true;
}

void read_split(Import *im, const OnnxNode *node) {
    const Sym *parts[MAX_PARTS];
    uint32_t axis;
    Value *x = import_tensor(im, node, 0);
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", 0), x->rank, &axis)) return;
    if (node->output_count < 1 || node->output_count > MAX_PARTS) {
        import_unsupported(im, "expected 1 to %d outputs, found %u", MAX_PARTS, node->output_count);
        return;
    }
    if (import_input(node, 1)) {
        const Known *sizes = import_sizes(im, node, 1);
        if (sizes && sizes->count != node->output_count) {
            import_bad(im, "expected %u outputs, found %u", sizes->count, node->output_count);
        }
        for (uint32_t i = 0; import_ok(im) && i < node->output_count; i++) {
            parts[i] = sizes->items[i];
            if (!parts[i]) import_bad(im, "size %u is negative", i);
        }
    } else {
        equal_parts(im, node, x->shape[axis], parts);
    }
    if (!import_ok(im) || split_known(im, node, parts)) return;
    const Arg args[] = {arg_tensor(x), arg_syms(&im->b, parts, node->output_count),
                        arg_int(&im->b, axis)};
    const Node *made = build_node(&im->b, OP_SPLIT, args, 3);
    for (uint32_t i = 0; made && i < node->output_count; i++) {
        import_give(im, node, i, made->outputs[i]);
    }
}
