/* Operators that choose elements by indices, write to chosen ones, and order them. */
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

/* By a tensor of indices of any rank. Rows of a weight are an embedding. */
static Value *gather_tensor(Import *im, Value *x, uint32_t axis, Value *index) {
    Value *indices[FERRY_MAX_RANK] = {0};
    if (x->rank == 2 && axis == 0 && x->recipe) return build_embedding(&im->b, x, index);
    indices[axis] = index;
    return import_op(im, OP_INDEX, arg_tensor(x), arg_tensors(&im->b, indices, axis + 1));
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
        Value *places = import_tensor(im, node, 1);
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

/* The coordinates that stand side by side in the last dimension of `index`, as an index list; none after
 * a failure. */
static Arg coordinates(Import *im, const Value *x, Value *index) {
    Value *columns[FERRY_MAX_RANK];
    const Sym *last = index->rank ? index->shape[index->rank - 1] : NULL;
    if (!last || !sym_is_const(last) || last->value < 1 || last->value > (int64_t)x->rank) {
        import_unsupported(im, "expected indices of 1 to %u coordinates", x->rank);
        return arg_none();
    }
    for (uint32_t d = 0; d < last->value; d++) columns[d] = build_select(&im->b, index, -1, d);
    return arg_tensors(&im->b, columns, (uint32_t)last->value);
}

void read_gather_nd(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    if (!import_ok(im) || !import_require_int(im, node, "batch_dims", 0)) return;
    Arg indices = coordinates(im, x, index);
    if (import_ok(im)) import_give(im, node, 0, import_op(im, OP_INDEX, arg_tensor(x), indices));
}

/* ---- scatter ---- */

void read_scatter_nd(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    Value *updates = import_tensor(im, node, 2);
    const char *reduction = import_string(im, node, "reduction", "none");
    bool adds = strcmp(reduction, "add") == 0;
    if (!adds && strcmp(reduction, "none") != 0) {
        import_unsupported(im, "the reduction \"%s\"", reduction);
    }
    if (!import_ok(im)) return;
    Arg indices = coordinates(im, x, index);
    if (!import_ok(im)) return;
    import_give(
        im, node, 0,
        import_op(im, OP_INDEX_PUT, arg_tensor(x), indices, arg_tensor(updates), arg_bool(adds)));
}

void read_scatter_elements(Import *im, const OnnxNode *node) {
    static const char *const names[][2] = {
        {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}};
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    Value *updates = import_tensor(im, node, 2);
    const char *reduction = import_string(im, node, "reduction", "none");
    uint32_t axis;
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", 0), x->rank, &axis)) return;
    const Arg args[] = {arg_tensor(x), arg_int(&im->b, axis), arg_tensor(index),
                        arg_tensor(updates)};
    if (strcmp(reduction, "none") == 0) {
        import_give(im, node, 0, build_op(&im->b, OP_SCATTER, args, 4));
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(reduction, names[i][0]) != 0) continue;
        import_give(im, node, 0,
                    import_op(im, OP_SCATTER_REDUCE, args[0], args[1], args[2], args[3],
                              arg_string(names[i][1])));
        return;
    }
    import_unsupported(im, "the reduction \"%s\"", reduction);
}

/* ---- order ---- */

/* How many there are is a symbol of its own. */
void read_nonzero(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    const Sym *count = import_symbol(im, 0);
    Value *places = import_op(im, OP_NONZERO, arg_tensor(x), arg_sym(count));
    if (!import_ok(im)) return;
    VEC_PUSH(&im->b.program->sources, (SymSource){count, places, 0});
    import_give(im, node, 0, build_transpose(&im->b, places, 0, 1));
}

void read_topk(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    const Known *count = import_sizes(im, node, 1);
    bool largest = import_int(im, node, "largest", 1) != 0;
    uint32_t axis;
    if (!count || !import_ok(im)) return;
    if (count->count != 1 || !count->items[0]) import_bad(im, "expected one count");
    if (!import_axis(im, import_int(im, node, "axis", -1), x->rank, &axis)) return;
    const Arg args[] = {arg_tensor(x), arg_sym(count->items[0]), arg_int(&im->b, axis),
                        arg_bool(largest)};
    const Node *made = build_node(&im->b, OP_TOPK, args, 4);
    for (uint32_t i = 0; made && i < made->output_count; i++) {
        import_give(im, node, i, made->outputs[i]);
    }
}
