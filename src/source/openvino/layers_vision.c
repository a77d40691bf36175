/* Convolutions, pooling, padding and resizing: told as ONNX has them. */
#include "source/openvino/reader.h"

#include <string.h>

enum { MAX_SPATIAL = 3 };

/* ---- windows ---- */

/* "pads_begin" and "pads_end" as the one list "pads"; without them there is none. */
static void set_pads(Import *im, const OnnxNode *node, Retold *retold) {
    int64_t pads[2 * MAX_SPATIAL];
    const OnnxAttr *before = import_attr(im, node, "pads_begin", ONNX_INTS);
    const OnnxAttr *behind = import_attr(im, node, "pads_end", ONNX_INTS);
    if (!before && !behind) return;
    if (!before || !behind || before->count != behind->count || before->count > MAX_SPATIAL) {
        import_bad(im, "expected \"pads_begin\" and \"pads_end\" of up to %d numbers each",
                   MAX_SPATIAL);
        return;
    }
    size_t count = before->count;
    for (size_t i = 0; i < count; i++) {
        pads[i] = (int64_t)before->list[i];
        pads[count + i] = (int64_t)behind->list[i];
    }
    reader_set_ints(im, retold, "pads", pads, 2 * count);
}

/* A weight of groups [G, a, b, ...] as [G a, b, ...]. */
static OnnxValue *join_groups(Import *im, const OnnxNode *node, int64_t *groups) {
    Value *weight = import_tensor(im, node, 1);
    if (!import_ok(im)) return NULL;
    if (weight->rank < 4 || !sym_is_const(weight->shape[0])) {
        import_bad(im, "expected a weight with groups, found rank %u", weight->rank);
        return NULL;
    }
    const Sym *shape[FERRY_MAX_RANK];
    memcpy(shape, weight->shape + 1, (weight->rank - 1) * sizeof *shape);
    shape[0] = sym_mul(&im->b.program->symbols, weight->shape[0], shape[0]);
    *groups = weight->shape[0]->value;
    OnnxValue *joined = ARENA_NEW(&im->arena, OnnxValue);
    if (!joined) return import_memory(im), NULL;
    joined->value = build_view(&im->b, weight, shape, weight->rank - 1);
    joined->name = joined->value->name;
    return joined;
}

void net_read_convolution(Import *im, const OnnxNode *node) {
    Retold retold;
    const char *type = node->rule->type;
    bool grouped = strncmp(type, "Group", 5) == 0, transposed = strstr(type, "Backprop") != NULL;
    int64_t groups = 1;
    reader_retell(node, "01", &retold);
    retold.node.op_type = transposed ? "ConvTranspose" : "Conv";
    set_pads(im, node, &retold);
    if (grouped) {
        OnnxValue *joined = join_groups(im, node, &groups);
        if (joined) reader_replace(&retold, 1, joined);
    }
    reader_set_int(&retold, "group", groups);
    if (import_ok(im)) read_convolution(im, &retold.node);
}

/* The number at place `i` of a list; `otherwise` when it has none. */
static int64_t item(const OnnxAttr *list, size_t i, int64_t otherwise) {
    return list && i < list->count ? (int64_t)list->list[i] : otherwise;
}

/* Padding behind the input alone, as much as lets every window in that begins inside: what ceil_mode is
 * without padding, for any size. */
static bool is_ceil_mode(Import *im, const OnnxNode *node, const OnnxAttr *kernel) {
    const OnnxAttr *before = import_attr(im, node, "pads_begin", ONNX_INTS);
    const OnnxAttr *behind = import_attr(im, node, "pads_end", ONNX_INTS);
    const OnnxAttr *strides = import_attr(im, node, "strides", ONNX_INTS);
    const OnnxAttr *dilations = import_attr(im, node, "dilations", ONNX_INTS);
    bool any = false;
    for (size_t i = 0; i < kernel->count; i++) {
        int64_t stride = item(strides, i, 1), size = item(kernel, i, 1), reach;
        if (__builtin_mul_overflow(item(dilations, i, 1), size - 1, &reach)) return false;
        int64_t least = stride < reach + 1 ? stride - 1 : reach;
        if (item(before, i, 0) != 0 || item(behind, i, 0) != least) return false;
        any |= least != 0;
    }
    return any;
}

void net_read_pool(Import *im, const OnnxNode *node) {
    Retold retold;
    const OnnxAttr *kernel = import_attr(im, node, "kernel", ONNX_INTS);
    const char *rounding = import_string(im, node, "rounding_type", "floor");
    bool ceil = strcmp(rounding, "ceil_torch") == 0;
    bool count_pads = !import_int(im, node, "exclude-pad", 1);
    if (!ceil && strcmp(rounding, "floor") != 0)
        import_unsupported(im, "rounding by \"%s\"", rounding);
    if (!kernel) import_bad(im, "the attribute \"kernel\" is missing");
    if (!import_ok(im)) return;
    reader_retell(node, "0", &retold);
    reader_set_ints(im, &retold, "kernel_shape", (const int64_t *)kernel->list, kernel->count);
    reader_set_int(&retold, "count_include_pad", count_pads);
    bool widened = !ceil && !count_pads && is_ceil_mode(im, node, kernel);
    if (!widened) set_pads(im, node, &retold);
    reader_set_int(&retold, "ceil_mode", ceil || widened);
    if (import_ok(im)) read_pool(im, &retold.node);
}

/* ---- padding and resizing ---- */

void net_read_pad(Import *im, const OnnxNode *node) {
    Retold retold;
    const Known *before = import_sizes(im, node, 1), *behind = import_sizes(im, node, 2);
    OnnxValue *pads = ARENA_NEW(&im->arena, OnnxValue);
    if (!before || !behind) return;
    if (!pads) import_memory(im);
    if (before->dtype != behind->dtype) import_bad(im, "the amounts have different types");
    if (!import_ok(im)) return;
    *pads = (OnnxValue){.name = "pads", .known = known_join(im, before, behind)};
    if (!pads->known) {
        import_unsupported(im, "more than %d amounts", KNOWN_MAX_COUNT);
        return;
    }
    reader_retell(node, "003", &retold);
    reader_replace(&retold, 1, pads);
    reader_set_string(&retold, "mode", import_string(im, node, "pad_mode", "constant"));
    read_pad(im, &retold.node);
}

/* What the modes of Interpolate are in PyTorch. */
static const struct {
    const char *mode, *coordinates, *nearest; /* NULL: any */
    double coefficient;                       /* of cubic modes; 0: any */
    Op op;
} forms[] = {
    {"nearest", "asymmetric", "floor", 0, OP_UPSAMPLE_NEAREST},
    {"nearest", "half_pixel", "round_prefer_ceil", 0, OP_UPSAMPLE_NEAREST_EXACT},
    {"linear_onnx", "half_pixel", NULL, 0, OP_UPSAMPLE_BILINEAR},
    {"linear_onnx", "align_corners", NULL, 0, OP_UPSAMPLE_BILINEAR},
    {"cubic", "half_pixel", NULL, -0.75, OP_UPSAMPLE_BICUBIC},
    {"cubic", "align_corners", NULL, -0.75, OP_UPSAMPLE_BICUBIC},
    {"bilinear_pillow", "half_pixel", NULL, 0, OP_UPSAMPLE_BILINEAR_AA},
    {"bicubic_pillow", "half_pixel", NULL, -0.5, OP_UPSAMPLE_BICUBIC_AA},
};

static bool fits(const char *wanted, const char *found) {
    return !wanted || strcmp(wanted, found) == 0;
}

static bool has_pads(Import *im, const OnnxNode *node, const char *name) {
    const OnnxAttr *pads = import_attr(im, node, name, ONNX_INTS);
    bool any = false;
    for (size_t i = 0; pads && i < pads->count; i++) any |= pads->list[i] != 0;
    return any;
}

/* Input 1 has sizes or factors, input 2 their dimensions. */
static bool retell_sizes(Import *im, const OnnxNode *node, Retold *retold) {
    int64_t axes[FERRY_MAX_RANK];
    uint32_t count;
    bool scales = strcmp(import_string(im, node, "shape_calculation_mode", ""), "scales") == 0;
    reader_retell(node, "0000", retold);
    reader_replace(retold, 1, NULL);
    reader_replace(retold, 2, scales ? import_input(node, 1) : NULL);
    reader_replace(retold, 3, scales ? NULL : import_input(node, 1));
    if (!import_input(node, 2)) return true;
    if (!import_constants(im, node, 2, axes, &count)) return false;
    reader_set_ints(im, retold, "axes", axes, count);
    return true;
}

void net_read_interpolate(Import *im, const OnnxNode *node) {
    Retold retold;
    const char *mode = import_string(im, node, "mode", "");
    const char *coordinates = import_string(im, node, "coordinate_transformation_mode", "");
    const char *nearest = import_string(im, node, "nearest_mode", "");
    double coefficient = import_float(im, node, "cube_coeff", -0.75);
    const Sym *sizes[2];
    if (has_pads(im, node, "pads_begin") || has_pads(im, node, "pads_end"))
        import_unsupported(im, "padding before the interpolation");
    for (size_t i = 0; import_ok(im) && i < sizeof forms / sizeof *forms; i++) {
        bool matches = fits(forms[i].mode, mode) && fits(forms[i].coordinates, coordinates) &&
                       fits(forms[i].nearest, nearest) &&
                       (forms[i].coefficient == 0 || forms[i].coefficient == coefficient);
        if (!matches) continue;
        if (!retell_sizes(im, node, &retold)) return;
        import_resize(im, &retold.node, forms[i].op, sizes,
                      strcmp(coordinates, "align_corners") == 0);
        return;
    }
    import_unsupported(im, "this form of interpolation (%s, %s, %s)", mode, coordinates, nearest);
}
