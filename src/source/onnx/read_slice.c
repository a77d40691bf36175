/* Operators that take stretches of a dimension. On numbers that are known they move those. */
#include "source/onnx/import.h"

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
