/* Constants: those in the weights, and those that layers make of other small constants.
 *
 * Where the weights are a checkpoint's own file, the numbers of the graph have no place there, and
 * OpenVINO's target makes them of shapes: ShapeOf an empty Const is a vector of whole numbers, and
 * differences, products and powers of these are all others. */
#include "base/dtype.h"
#include "source/openvino/reader.h"

#include <math.h>
#include <string.h>

enum { MAX_BYTES = 1 << 16 };

/* ---- constants in the weights ---- */

static OnnxValue *make_value(Import *im, const char *name, const Recipe *recipe) {
    OnnxValue *value = ARENA_NEW(&im->arena, OnnxValue);
    if (!recipe || !value) return import_memory(im), NULL;
    *value = (OnnxValue){.name = name, .recipe = recipe, .known = known_of_recipe(im, recipe)};
    return value;
}

/* Does the constant fit a tensor? One without elements may not: then its shape is ShapeOf's to read. */
static bool is_tensor(Import *im, const NetConstant *constant) {
    uint64_t bytes;
    ferry_dtype dtype = net_dtype(constant->type);
    bool fits = constant->rank <= FERRY_MAX_RANK && dtype &&
                dtype_bytes(dtype, constant->rank, constant->shape, &bytes);
    bool is_empty = false;
    for (uint32_t d = 0; d < constant->rank; d++) is_empty |= constant->shape[d] == 0;
    if (fits || is_empty) return fits;
    return import_unsupported(im, "the element type \"%s\" or rank %u (at most %d)", constant->type,
                              constant->rank, FERRY_MAX_RANK);
}

static const Recipe *constant_recipe(Reader *reader, const NetConstant *constant) {
    Arena *arena = &reader->im.b.program->arena;
    ferry_dtype dtype = net_dtype(constant->type);
    if (constant->size == 0) {
        return recipe_bytes(arena, "", dtype, constant->rank, constant->shape);
    }
    const Recipe *recipe = recipe_file(arena, reader->net.weights, constant->offset, dtype,
                                       constant->rank, constant->shape);
    return recipe && dtype == FERRY_BOOL ? import_bools(&reader->im, recipe) : recipe;
}

void reader_constant(Reader *reader, NetLayer *layer) {
    Import *im = &reader->im;
    OnnxNode node = {.name = layer->name, .op_type = "Const"};
    NetConstant constant;
    im->node = &node;
    layer->values = ARENA_ARRAY(&im->arena, OnnxValue *, 1);
    if (!layer->values) import_memory(im);
    if (import_ok(im) && net_constant(&reader->net, layer, &constant) != FERRY_OK) {
        im->b.status = im->problem.status;
        im->told = true;
    }
    if (import_ok(im) && is_tensor(im, &constant)) {
        layer->values[0] = make_value(im, layer->name, constant_recipe(reader, &constant));
    }
    im->node = NULL;
}

/* ---- constants that are computed ---- */

/* A small constant that is input `i`; NULL when it is none. */
static const Recipe *small(const OnnxNode *node, uint32_t i) {
    const OnnxValue *input = import_input(node, i);
    const Recipe *recipe = input ? input->recipe : NULL;
    return recipe && recipe_bytes_size(recipe) <= MAX_BYTES ? recipe : NULL;
}

static bool give(Import *im, const OnnxNode *node, const Recipe *recipe) {
    node->outputs[0].value = make_value(im, node->outputs[0].text, recipe);
    return true;
}

static bool give_bytes(Import *im, const OnnxNode *node, const void *bytes, ferry_dtype dtype,
                       uint32_t rank, const int64_t *shape) {
    return give(im, node, recipe_bytes(&im->b.program->arena, bytes, dtype, rank, shape));
}

/* The elements in another dtype, in the program's arena. */
static void *elements(Import *im, const Recipe *recipe, ferry_dtype dtype) {
    uint64_t count = recipe_count(recipe);
    void *bytes = arena_alloc(&im->arena, recipe_bytes_size(recipe));
    void *result = arena_array(&im->b.program->arena, count, ferry_dtype_size(dtype));
    if (!bytes || !result) return import_memory(im), NULL;
    recipe_read(recipe, 0, count, bytes);
    dtype_convert(recipe->dtype, bytes, dtype, result, count);
    return result;
}

/* The shape of a constant, which may have any rank. */
static bool fold_shape(Reader *reader, const NetLayer *layer, const OnnxNode *node) {
    const NetLayer *from = layer->inputs[0].from;
    NetConstant constant = {0};
    const int64_t type = import_int(&reader->im, node, "output_type", FERRY_I64);
    const Recipe *recipe = small(node, 0);
    if (type != FERRY_I64) return false;
    if (strcmp(from->type, "Const") == 0) {
        if (net_constant(&reader->net, from, &constant) != FERRY_OK) return false;
    } else if (recipe) {
        constant.rank = recipe->rank;
        constant.shape = (int64_t *)(uintptr_t)recipe->shape;
    } else {
        return false;
    }
    const int64_t rank = constant.rank;
    const void *copy = arena_copy(&reader->im.b.program->arena, constant.shape,
                                  constant.rank * sizeof *constant.shape);
    if (!copy) return import_memory(&reader->im);
    return give_bytes(&reader->im, node, copy, FERRY_I64, 1, &rank);
}

/* A stretch of a vector; the masks say that it begins or ends with it. */
static bool fold_stretch(Reader *reader, const OnnxNode *node) {
    Import *im = &reader->im;
    const Recipe *recipe = small(node, 0);
    int64_t bounds[3];
    uint32_t count;
    if (!recipe || recipe->rank != 1) return false;
    for (uint32_t i = 0; i < 3; i++) {
        int64_t values[FERRY_MAX_RANK];
        if (!small(node, i + 1)) return false;
        if (!import_constants(im, node, i + 1, values, &count)) return true;
        if (count != 1) return false;
        bounds[i] = values[0];
    }
    const OnnxAttr *begin = import_attr(im, node, "begin_mask", ONNX_INTS);
    const OnnxAttr *end = import_attr(im, node, "end_mask", ONNX_INTS);
    int64_t size = recipe->shape[0];
    bool from_begin = begin && begin->count && begin->list[0];
    bool to_end = end && end->count && end->list[0];
    int64_t first = from_begin ? 0 : bounds[0], last = to_end ? size : bounds[1];
    if (bounds[2] != 1 || first < 0 || first > last || last > size) return false;
    return give(im, node, recipe_slice(&im->b.program->arena, recipe, 0, first, last));
}

static bool fold_view(Reader *reader, const OnnxNode *node) {
    Import *im = &reader->im;
    const Recipe *recipe = small(node, 0);
    int64_t shape[FERRY_MAX_RANK], count = 1;
    uint32_t rank = 0;
    if (!recipe) return false;
    if (node->input_count == 1) { /* Squeeze: all dimensions of size 1 go */
        for (uint32_t d = 0; d < recipe->rank; d++) {
            if (recipe->shape[d] != 1) shape[rank++] = recipe->shape[d];
        }
    } else {
        if (!small(node, 1)) return false;
        if (!import_constants(im, node, 1, shape, &rank)) return true;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] < 1 || __builtin_mul_overflow(count, shape[d], &count)) return false;
    }
    if ((uint64_t)count != recipe_count(recipe)) return false;
    const Recipe *view = recipe_view(&im->b.program->arena, recipe, rank, shape);
    return view && give(im, node, view);
}

/* Wider types are conversions of the recipe, whatever its size: weights stay where they are. */
static bool fold_convert(Reader *reader, const OnnxNode *node) {
    Import *im = &reader->im;
    const OnnxValue *input = import_input(node, 0);
    ferry_dtype dtype = (ferry_dtype)import_int(im, node, "destination_type", 0);
    if (!input || !input->recipe || !dtype) return false;
    const Recipe *wide = recipe_cast(&im->b.program->arena, input->recipe, dtype);
    const Recipe *recipe = small(node, 0);
    if (wide && ferry_dtype_is_float(input->recipe->dtype)) {
        node->outputs[0].text = input->name;
        return give(im, node, wide);
    }
    if (!recipe || recipe_count(recipe) > MAX_BYTES / sizeof(int64_t)) return false;
    void *bytes = elements(im, recipe, dtype);
    return bytes && give_bytes(im, node, bytes, dtype, recipe->rank, recipe->shape);
}

static bool combine_integers(const int64_t *a, const int64_t *b, size_t step_a, size_t step_b,
                             int64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (__builtin_sub_overflow(a[i * step_a], b[i * step_b], &out[i])) return false;
    }
    return true;
}

static void combine_floats(bool power, const double *a, const double *b, size_t step_a,
                           size_t step_b, double *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double x = a[i * step_a], y = b[i * step_b];
        out[i] = power ? pow(x, y) : x * y;
    }
}

/* Differences of whole numbers, products and powers of others: vectors, where one number meets all. */
static bool fold_binary(Reader *reader, const OnnxNode *node) {
    Import *im = &reader->im;
    const Recipe *a = small(node, 0), *b = small(node, 1);
    Op op = node->rule->op;
    if (!a || !b || a->dtype != b->dtype || a->rank > 1 || b->rank > 1) return false;
    size_t count_a = recipe_count(a), count_b = recipe_count(b);
    bool integers = op == OP_SUB && a->dtype == FERRY_I64;
    bool floats = op != OP_SUB && (a->dtype == FERRY_F32 || a->dtype == FERRY_F64);
    if ((!integers && !floats) || (count_a != count_b && count_a != 1 && count_b != 1))
        return false;
    const Recipe *longer = count_a == 1 ? b : a;
    size_t count = recipe_count(longer), step_a = count_a != 1, step_b = count_b != 1;
    ferry_dtype dtype = integers ? FERRY_I64 : FERRY_F64;
    void *x = elements(im, a, dtype), *y = elements(im, b, dtype);
    void *result = arena_array(&im->arena, count, 8);
    void *out = arena_array(&im->b.program->arena, count, ferry_dtype_size(a->dtype));
    if (!x || !y || !result || !out) return import_memory(im);
    if (floats)
        combine_floats(op != OP_MUL, x, y, step_a, step_b, result, count);
    else if (!combine_integers(x, y, step_a, step_b, result, count))
        return false;
    dtype_convert(dtype, result, a->dtype, out, count);
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    const int64_t shape = (int64_t)count;
    return give_bytes(im, node, out, a->dtype, rank, &shape);
}

bool reader_fold(Reader *reader, const NetLayer *layer, const OnnxNode *node) {
    const char *type = layer->type;
    if (layer->input_count < 1 || layer->output_count != 1) return false;
    if (strcmp(type, "ShapeOf") == 0) return fold_shape(reader, layer, node);
    if (strcmp(type, "StridedSlice") == 0) return fold_stretch(reader, node);
    if (strcmp(type, "Convert") == 0) return fold_convert(reader, node);
    if (strcmp(type, "Reshape") == 0) return fold_view(reader, node);
    if (strcmp(type, "Squeeze") == 0) return layer->input_count == 1 && fold_view(reader, node);
    bool folds = strcmp(type, "Subtract") == 0 || strcmp(type, "Multiply") == 0 ||
                 strcmp(type, "Power") == 0;
    return folds && layer->input_count == 2 && fold_binary(reader, node);
}
