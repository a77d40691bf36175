/* Operators that ask for or change a shape. On numbers that are known they move those. */
#include "source/onnx/import.h"

#include <string.h>

/* ---- sizes ---- */

/* A bound of Shape, clamped to [0, rank]. */
static uint32_t shape_bound(int64_t bound, uint32_t rank) {
    if (bound < 0) bound += rank;
    return bound < 0 ? 0 : bound > (int64_t)rank ? rank : (uint32_t)bound;
}

void read_shape(Import *im, const OnnxNode *node) {
    const Value *value = import_tensor(im, node, 0);
    uint32_t start = shape_bound(import_int(im, node, "start", 0), value->rank);
    uint32_t end = shape_bound(import_int(im, node, "end", value->rank), value->rank);
    import_give_known(im, node, 0, known_of_shape(im, value, start, end > start ? end : start));
}

void read_size(Import *im, const OnnxNode *node) {
    const Value *value = import_tensor(im, node, 0);
    const Sym *count = shape_count(&im->b.program->symbols, value->rank, value->shape);
    import_give_known(im, node, 0, known_one(im, FERRY_I64, count));
}

/* ---- reshape ---- */

/* True when known numbers remain such: the target is [], [count] or [-1]. */
static bool keeps_known(const Known *known, const Known *target) {
    if (!known || target->count > 1) return false;
    if (target->count == 0) return known->count == 1;
    const Sym *size = target->items[0];
    return size && (sym_is_value(size, -1) || sym_is_value(size, known->count));
}

void read_reshape(Import *im, const OnnxNode *node) {
    bool allow_zero = import_int(im, node, "allowzero", 0) != 0;
    const Known *target = import_sizes(im, node, 1);
    const Sym *sizes[FERRY_MAX_RANK];
    uint32_t unknown = 0;
    if (!target) return;
    if (keeps_known(import_known(node, 0), target)) {
        import_give_known(im, node, 0, known_like(im, import_known(node, 0), target->count == 0));
        return;
    }
    Value *x = import_tensor(im, node, 0);
    if (target->count > FERRY_MAX_RANK) {
        import_unsupported(im, "rank %u; at most %d is supported", target->count, FERRY_MAX_RANK);
    }
    for (uint32_t d = 0; d < target->count && import_ok(im); d++) {
        sizes[d] = target->items[d];
        bool copies = sizes[d] && sym_is_value(sizes[d], 0) && !allow_zero;
        if (copies && d < x->rank)
            sizes[d] = x->shape[d];
        else if (!sizes[d] || copies || (sym_is_const(sizes[d]) && sizes[d]->value < -1))
            import_bad(im, "size %u of the target is invalid", d);
        else if (sym_is_value(sizes[d], -1) && unknown++)
            import_bad(im, "more than one size is -1");
    }
    if (import_ok(im)) import_give(im, node, 0, build_view(&im->b, x, sizes, target->count));
}

void read_flatten(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    int64_t axis = import_int(im, node, "axis", 1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > (int64_t)x->rank) {
        import_bad(im, "axis %lld is outside a tensor of rank %u", (long long)axis, x->rank);
        return;
    }
    SymTable *symbols = &im->b.program->symbols;
    const Sym *sizes[] = {shape_count(symbols, (uint32_t)axis, x->shape),
                          shape_count(symbols, x->rank - (uint32_t)axis, x->shape + axis)};
    import_give(im, node, 0, build_view(&im->b, x, sizes, 2));
}

void read_transpose(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    const OnnxAttr *perm = import_attr(im, node, "perm", ONNX_INTS);
    int64_t dims[FERRY_MAX_RANK];
    if (perm && perm->count != x->rank) {
        import_bad(im, "expected %u dimensions, found %zu", x->rank, perm->count);
    }
    for (uint32_t d = 0; d < x->rank && import_ok(im); d++) {
        dims[d] = perm ? (int64_t)perm->list[d] : (int64_t)(x->rank - 1 - d);
    }
    if (import_ok(im)) import_give(im, node, 0, build_permute(&im->b, x, dims));
}

/* ---- dimensions of size 1 ---- */

void read_unsqueeze(Import *im, const OnnxNode *node) {
    int64_t values[FERRY_MAX_RANK];
    uint32_t count;
    unsigned axes;
    bool given;
    const Known *known = import_known(node, 0);
    if (!import_constants(im, node, 1, values, &count)) return;
    uint32_t rank = known ? !known->is_scalar : import_tensor(im, node, 0)->rank;
    if (!import_ok(im)) return;
    if (rank + count > FERRY_MAX_RANK) {
        import_unsupported(im, "rank %u; at most %d is supported", rank + count, FERRY_MAX_RANK);
    }
    if (!import_ok(im) || !import_axes(im, node, 1, rank + count, &axes, &given)) return;
    if (known && rank + count <= 1) {
        import_give_known(im, node, 0, known_like(im, known, count == 0 && known->is_scalar));
        return;
    }
    Value *x = import_tensor(im, node, 0);
    for (uint32_t d = 0; d < rank + count; d++) {
        if (axes & 1u << d) x = build_unsqueeze(&im->b, x, (int)d);
    }
    import_give(im, node, 0, x);
}

/* Without axes every dimension of size 1 goes; which those are must not depend on the inputs. */
static bool ones(Import *im, const Value *x, unsigned *axes) {
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!sym_is_const(x->shape[d])) {
            return import_unsupported(im, "without axes, dimension %u must have a fixed size", d);
        }
        if (sym_is_value(x->shape[d], 1)) *axes |= 1u << d;
    }
    return true;
}

void read_squeeze(Import *im, const OnnxNode *node) {
    const Known *known = import_known(node, 0);
    unsigned axes;
    bool given;
    if (known && known->count == 1 && !known->is_scalar) {
        bool drops = import_axes(im, node, 1, 1, &axes, &given) && (axes || !given);
        if (import_ok(im)) import_give_known(im, node, 0, known_like(im, known, drops));
        return;
    }
    Value *x = import_tensor(im, node, 0);
    if (!import_ok(im) || !import_axes(im, node, 1, x->rank, &axes, &given)) return;
    if (!given && !ones(im, x, &axes)) return;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (axes & 1u << d) x = build_squeeze(&im->b, x, (int)d);
    }
    import_give(im, node, 0, x);
}

/* ---- expand ---- */

/* Both shapes are broadcast to each other. */
static bool expanded(Import *im, const Value *x, const Known *target, const Sym **sizes,
                     uint32_t rank) {
    for (uint32_t d = 0; d < rank; d++) {
        const Sym *one = build_const(&im->b, 1), *old = one, *wanted = one;
        if (d >= rank - x->rank) old = x->shape[d - (rank - x->rank)];
        if (d >= rank - target->count) wanted = target->items[d - (rank - target->count)];
        if (!wanted || (sym_is_const(wanted) && wanted->value < 0)) {
            return import_bad(im, "a size of the target is negative");
        }
        sizes[d] = sym_is_value(wanted, 1) ? old : wanted;
    }
    return true;
}

void read_expand(Import *im, const OnnxNode *node) {
    const Known *target = import_sizes(im, node, 1), *known = import_known(node, 0);
    const Sym *sizes[FERRY_MAX_RANK];
    if (!target) return;
    if (known && known->count == 1 && target->count == 1 && target->items[0] &&
        sym_is_const(target->items[0]) && target->items[0]->value >= 0 &&
        target->items[0]->value <= KNOWN_MAX_COUNT) {
        uint32_t count = (uint32_t)target->items[0]->value;
        import_give_known(im, node, 0, known_repeat(im, known, count));
        return;
    }
    Value *x = import_tensor(im, node, 0);
    uint32_t rank = target->count > x->rank ? target->count : x->rank;
    if (rank > FERRY_MAX_RANK) {
        import_unsupported(im, "rank %u; at most %d is supported", rank, FERRY_MAX_RANK);
        return;
    }
    if (import_ok(im) && expanded(im, x, target, sizes, rank)) {
        import_give(im, node, 0, build_expand(&im->b, x, sizes, rank));
    }
}

/* `count` copies of a dimension behind each other. */
static Value *repeat(Import *im, Value *x, uint32_t dim, const Sym *count) {
    const Sym *sizes[FERRY_MAX_RANK + 1];
    uint32_t rank = x->rank;
    Value *wide = build_unsqueeze(&im->b, x, (int)dim);
    if (!import_ok(im)) return wide;
    memcpy(sizes, wide->shape, wide->rank * sizeof *sizes);
    sizes[dim] = count;
    wide = build_expand(&im->b, wide, sizes, rank + 1);
    memcpy(sizes, x->shape, rank * sizeof *sizes);
    sizes[dim] = sym_mul(&im->b.program->symbols, sizes[dim], count);
    return build_view(&im->b, wide, sizes, rank);
}

void read_tile(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    const Known *repeats = import_sizes(im, node, 1);
    if (!repeats) return;
    if (repeats->count != x->rank) {
        import_bad(im, "expected %u repeats, found %u", x->rank, repeats->count);
    }
    for (uint32_t d = 0; d < repeats->count && import_ok(im); d++) {
        const Sym *count = repeats->items[d];
        if (!count || (sym_is_const(count) && count->value < 0))
            import_bad(im, "a repeat is negative");
        else if (!sym_is_value(count, 1))
            x = repeat(im, x, d, count);
    }
    import_give(im, node, 0, x);
}

/* ---- concatenation ---- */

/* True when some input is a vector of known whole numbers, as in a list of sizes. */
static bool has_sizes(const OnnxNode *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        const Known *part = import_known(node, i);
        if (known_is_integer(part) && !part->is_scalar) return true;
    }
    return false;
}

/* Vectors of numbers one after the other; NULL when they are none. Among known sizes, those that depend
 * on the data count as known, too. */
static const Known *concat_known(Import *im, const OnnxNode *node) {
    bool sizes = has_sizes(node);
    const Known *all = NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        OnnxValue *input = import_input(node, i);
        const Known *part = input ? input->known : NULL;
        if (!part && input && sizes) part = import_data_dependent(im, input);
        if (!part || part->is_scalar || (all && part->dtype != all->dtype)) return NULL;
        all = all ? known_join(im, all, part) : part;
        if (!all) return NULL;
    }
    return all;
}

void read_concat(Import *im, const OnnxNode *node) {
    const OnnxAttr *attr = import_attr(im, node, "axis", ONNX_INT);
    uint32_t axis;
    const Known *known = concat_known(im, node);
    if (!attr) import_bad(im, "the attribute \"axis\" is missing");
    if (!import_ok(im)) return;
    if (known) {
        if (import_axis(im, attr->integer, 1, &axis)) import_give_known(im, node, 0, known);
        return;
    }
    Value **parts = ARENA_ARRAY(&im->arena, Value *, node->input_count);
    if (!parts) import_memory(im);
    for (uint32_t i = 0; i < node->input_count && import_ok(im); i++) {
        parts[i] = import_tensor(im, node, i);
        if (!parts[i]) import_bad(im, "input %u is missing", i);
    }
    if (!import_ok(im) || !import_axis(im, attr->integer, parts[0]->rank, &axis)) return;
    import_give(im, node, 0, build_cat(&im->b, parts, node->input_count, (int)axis));
}
