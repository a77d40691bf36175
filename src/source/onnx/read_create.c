/* Operators that make tensors out of numbers, and Identity. */
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <string.h>

void read_identity(Import *im, const OnnxNode *node) {
    (void)im;
    import_give_same(node, import_input(node, 0));
}

/* ---- constants ---- */

/* Output 0 is a constant made of numbers in the attribute. */
static void give_numbers(Import *im, const OnnxNode *node, ferry_dtype dtype, uint32_t rank,
                         const uint64_t *values, size_t count) {
    const int64_t shape = (int64_t)count;
    size_t size = ferry_dtype_size(dtype);
    unsigned char *bytes = arena_array(&im->b.program->arena, count, size);
    OnnxValue *value = ARENA_NEW(&im->arena, OnnxValue);
    if (!bytes || !value) {
        import_memory(im);
        return;
    }
    for (size_t i = 0; i < count; i++) memcpy(bytes + i * size, &values[i], size);
    value->recipe = recipe_bytes(&im->b.program->arena, bytes, dtype, rank, &shape);
    value->name = node->output_count ? node->outputs[0].text : "";
    if (!value->recipe) {
        import_memory(im);
        return;
    }
    value->known = known_of_recipe(im, value->recipe);
    import_give_same(node, value);
}

void read_constant(Import *im, const OnnxNode *node) {
    const OnnxAttr *attr = node->attr_count == 1 ? &node->attrs[0] : NULL;
    if (!attr || !import_attr(im, node, attr->name, attr->kind)) {
        import_bad(im, "expected one attribute, found %u", node->attr_count);
    } else if (strcmp(attr->name, "value") == 0 && attr->kind == ONNX_TENSOR) {
        OnnxValue *value = import_parse_tensor(im, attr->tensor);
        if (value && node->output_count) value->name = node->outputs[0].text;
        import_give_same(node, value);
    } else if (strcmp(attr->name, "value_int") == 0 && attr->kind == ONNX_INT) {
        const uint64_t bits = (uint64_t)attr->integer;
        give_numbers(im, node, FERRY_I64, 0, &bits, 1);
    } else if (strcmp(attr->name, "value_float") == 0 && attr->kind == ONNX_FLOAT) {
        uint64_t bits = 0;
        const float number = (float)attr->number;
        memcpy(&bits, &number, sizeof number);
        give_numbers(im, node, FERRY_F32, 0, &bits, 1);
    } else if (strcmp(attr->name, "value_ints") == 0 && attr->kind == ONNX_INTS) {
        give_numbers(im, node, FERRY_I64, 1, attr->list, attr->count);
    } else if (strcmp(attr->name, "value_floats") == 0 && attr->kind == ONNX_FLOATS) {
        give_numbers(im, node, FERRY_F32, 1, attr->list, attr->count);
    } else {
        import_bad(im, "the attribute \"%s\" has type %d", attr->name, (int)attr->kind);
    }
}

/* The element that fills the tensor: 0 of float32, or that of the attribute. */
static OnnxValue *fill_value(Import *im, const OnnxNode *node) {
    static const float zero = 0;
    const OnnxAttr *attr = import_attr(im, node, "value", ONNX_TENSOR);
    if (attr) {
        OnnxValue *value = import_parse_tensor(im, attr->tensor);
        if (!value) return NULL;
        if (recipe_count(value->recipe) == 1) {
            Arena *arena = &im->b.program->arena;
            value->recipe = recipe_view(arena, value->recipe, 0, NULL);
            value->known = value->recipe ? known_of_recipe(im, value->recipe) : NULL;
            return value;
        }
        import_bad(im, "expected a value of one element");
        return NULL;
    }
    OnnxValue *value = ARENA_NEW(&im->arena, OnnxValue);
    if (!value) return import_memory(im), NULL;
    value->recipe = recipe_bytes(&im->b.program->arena, &zero, FERRY_F32, 0, NULL);
    return value;
}

void read_constant_of_shape(Import *im, const OnnxNode *node) {
    const Known *shape = import_sizes(im, node, 0);
    OnnxValue *value = shape ? fill_value(im, node) : NULL;
    if (!value || !value->recipe) {
        import_memory(im);
        return;
    }
    value->name = "fill";
    const Sym *size = shape->count == 1 ? shape->items[0] : NULL;
    if (value->known && size && sym_is_const(size) && size->value >= 0 &&
        size->value <= KNOWN_MAX_COUNT) {
        import_give_known(im, node, 0, known_repeat(im, value->known, (uint32_t)size->value));
        return;
    }
    for (uint32_t d = 0; d < shape->count; d++) {
        const Sym *item = shape->items[d];
        if (!item || (sym_is_const(item) && item->value < 0)) import_bad(im, "a size is negative");
    }
    if (shape->count > FERRY_MAX_RANK) {
        import_unsupported(im, "rank %u; at most %d is supported", shape->count, FERRY_MAX_RANK);
    }
    Value *one = known_tensor(im, value);
    import_give(im, node, 0, build_expand(&im->b, one, shape->items, shape->count));
}

/* ---- ranges ---- */

/* A whole number; NULL and a failure when it is none. */
static const Sym *range_bound(Import *im, const OnnxNode *node, uint32_t i) {
    const Known *known = import_known(node, i);
    if (!known) known = import_sizes(im, node, i);
    if (known && known->count == 1 && known->items[0]) return known->items[0];
    import_unsupported(im, "input %u (\"%s\") must be one whole number", i, node->inputs[i].text);
    return NULL;
}

/* The numbers of a short constant range; NULL when it is none. */
static const Known *range_known(Import *im, ferry_dtype dtype, const Sym *start, const Sym *end,
                                int64_t step) {
    int64_t distance;
    if (dtype != FERRY_I64 || !sym_is_const(start) || !sym_is_const(end)) return NULL;
    if (__builtin_sub_overflow(end->value, start->value, &distance)) return NULL;
    int64_t count = distance > 0 ? (distance - 1) / step + 1 : 0;
    if (count > KNOWN_MAX_COUNT) return NULL;
    Known *known = known_make(im, dtype, false, (uint32_t)count);
    for (int64_t i = 0; known && i < count; i++) {
        known->items[i] = build_const(&im->b, start->value + i * step);
    }
    return known;
}

void read_range(Import *im, const OnnxNode *node) {
    const Sym *start = range_bound(im, node, 0), *end = range_bound(im, node, 1);
    const Sym *step = range_bound(im, node, 2);
    if (!start || !end || !step) return;
    ferry_dtype dtype = import_known(node, 0)->dtype;
    if (dtype != import_known(node, 1)->dtype || dtype != import_known(node, 2)->dtype) {
        import_bad(im, "start, limit and delta have different dtypes");
        return;
    }
    if (!sym_is_const(step) || step->value < 1) {
        import_unsupported(im, "the step must be a positive constant");
        return;
    }
    const Known *known = range_known(im, dtype, start, end, step->value);
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    if (sym_is_const(start) && sym_is_const(end) && end->value < start->value) end = start;
    import_give(
        im, node, 0,
        import_op(im, OP_ARANGE, arg_sym(start), arg_sym(end), arg_sym(step), arg_dtype(dtype)));
}

/* ---- triangles ---- */

/* The elements at column >= row + k, or at column <= row + k; 0 elsewhere. */
void read_trilu(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0);
    bool upper = import_int(im, node, "upper", 1) != 0;
    const Sym *zero = build_const(b, 0), *offset = zero;
    const Known *k = import_input(node, 1) ? import_sizes(im, node, 1) : NULL;
    if (k && k->count == 1 && k->items[0])
        offset = k->items[0];
    else if (import_input(node, 1))
        import_bad(im, "expected one number as the diagonal");
    if (import_ok(im) && x->rank < 2) import_bad(im, "expected rank 2 or more, found %u", x->rank);
    if (!import_ok(im)) return;
    Value *rows = build_arange(b, zero, x->shape[x->rank - 2], FERRY_I64);
    Value *columns = build_arange(b, zero, x->shape[x->rank - 1], FERRY_I64);
    rows = build_add(b, build_unsqueeze(b, rows, 1), build_scalar_tensor(b, offset, FERRY_I64));
    Value *kept = build_binary(b, upper ? OP_GE : OP_LE, columns, rows);
    if (x->dtype == FERRY_BOOL)
        import_give(im, node, 0, build_binary(b, OP_AND, x, kept));
    else
        import_give(im, node, 0, build_where(b, kept, x, build_full(b, NULL, 0, 0, x->dtype)));
}
