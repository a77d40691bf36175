/* Lowerings of convolutions, pooling, normalization by statistics, padding and resizing. */
#include "base/dtype.h"
#include "target/onnx/lower.h"

#include <string.h>

/* A list argument; returns how many constants it has. */
static uint32_t list_of(const Node *node, uint32_t arg, int64_t *out) {
    const Arg *list = &node->args[arg];
    for (uint32_t i = 0; i < list->integers.count; i++) out[i] = list->integers.items[i]->value;
    return list->integers.count;
}

/* A vector of `count` equal numbers. */
static const char *vector(Onnx *o, ferry_dtype dtype, const Sym *count, double value) {
    const char *inputs[] = {onnx_number(o, value, dtype), onnx_size(o, count)};
    return onnx_helper(o, "Expand", inputs, 2, NULL, 0, dtype, 1, &count);
}

/* ---- windows ---- */

/* Padding before and after, which are the same. */
static Attr pads_attr(int64_t *pads, const int64_t *padding, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) pads[i] = pads[count + i] = padding[i];
    return ATTR_IS("pads", pads, 2 * (size_t)count);
}

void lower_convolution(Onnx *o, const Node *node) {
    const Value *weight = lower_tensor(node, 1);
    int64_t kernel[3], stride[3], padding[3], dilation[3], extra[3], pads[6];
    uint32_t count = list_of(node, 3, stride);
    list_of(node, 4, padding);
    list_of(node, 5, dilation);
    list_of(node, 7, extra);
    for (uint32_t i = 0; i < count; i++) kernel[i] = weight->shape[i + 2]->value;
    bool transposed = node->args[6].boolean;
    const Attr attrs[] = {
        ATTR_IS("kernel_shape", kernel, count), ATTR_IS("strides", stride, count),
        pads_attr(pads, padding, count),        ATTR_IS("dilations", dilation, count),
        ATTR_I("group", lower_int(node, 8)),    ATTR_IS("output_padding", extra, count)};
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1),
                            lower_input(o, node, 2)};
    onnx_result(o, transposed ? "ConvTranspose" : "Conv", inputs, inputs[2] ? 3 : 2, attrs,
                transposed ? 6 : 5);
}

/* With ceil_mode the last window may reach beyond the padding. Where sizes are known that is more
 * padding, which runtimes agree on better. False when they are not, or when padding counts. */
static bool widen_pads(const Node *node, const int64_t *kernel, const int64_t *stride,
                       const int64_t *dilation, int64_t *pads) {
    const Value *in = lower_tensor(node, 0), *out = node->outputs[0];
    for (uint32_t i = 0; i < 2; i++) {
        const Sym *size = in->shape[i + 2], *count = out->shape[i + 2];
        if (!sym_is_const(size) || !sym_is_const(count)) return false;
        int64_t reach = (count->value - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1;
        int64_t after = reach - size->value - pads[i];
        if (after > pads[i + 2]) pads[i + 2] = after;
    }
    return true;
}

void lower_pool(Onnx *o, const Node *node) {
    bool maximum = node->op == OP_MAX_POOL;
    int64_t kernel[2], stride[2], padding[2], dilation[2] = {1, 1}, pads[4];
    list_of(node, 1, kernel);
    list_of(node, 2, stride);
    list_of(node, 3, padding);
    if (maximum) list_of(node, 4, dilation);
    bool ceil = node->args[maximum ? 5 : 4].boolean;
    bool count_pads = !maximum && node->args[5].boolean && (padding[0] || padding[1]);
    Attr attrs[6] = {ATTR_IS("kernel_shape", kernel, 2), ATTR_IS("strides", stride, 2),
                     pads_attr(pads, padding, 2)};
    uint32_t count = 3;
    if (ceil && !count_pads) ceil = !widen_pads(node, kernel, stride, dilation, pads);
    if (maximum) attrs[count++] = ATTR_IS("dilations", dilation, 2);
    if (count_pads) attrs[count++] = ATTR_I("count_include_pad", 1);
    if (ceil) attrs[count++] = ATTR_I("ceil_mode", 1);
    const char *inputs[] = {lower_input(o, node, 0)};
    onnx_result(o, lower_op_type(node), inputs, 1, attrs, count);
}

/* ---- normalization ---- */

void lower_batch_norm(Onnx *o, const Node *node) {
    const Value *input = lower_tensor(node, 0);
    const char *inputs[5];
    for (uint32_t i = 0; i < 5; i++) inputs[i] = lower_input(o, node, i);
    if (!inputs[1]) inputs[1] = vector(o, input->dtype, input->shape[1], 1);
    if (!inputs[2]) inputs[2] = vector(o, input->dtype, input->shape[1], 0);
    const Attr attrs[] = {ATTR_F("epsilon", node->args[7].number)};
    RESULT(o, "BatchNormalization", inputs, attrs);
}

/* A node of two inputs that has the type of the node's result; the last one is the result. */
static const char *step(Onnx *o, const char *op_type, const char *a, const char *b, bool last) {
    const Value *out = o->node->outputs[0];
    const char *inputs[] = {a, b};
    if (!last)
        return onnx_helper(o, op_type, inputs, 2, NULL, 0, out->dtype, out->rank, out->shape);
    RESULT_PLAIN(o, op_type, inputs);
    return NULL;
}

/* A weight or bias [C] as [C, 1, ...], which broadcasts over the result. */
static const char *by_channel(Onnx *o, const Node *node, uint32_t arg) {
    const Value *out = node->outputs[0];
    int64_t sizes[FERRY_MAX_RANK];
    const Sym *shape[FERRY_MAX_RANK];
    uint32_t rank = out->rank - 1;
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = d ? 1 : -1;
        shape[d] = d ? sym_const(&o->program->symbols, 1) : out->shape[1];
    }
    const char *inputs[] = {lower_input(o, node, arg), onnx_ints(o, sizes, rank)};
    return onnx_helper(o, "Reshape", inputs, 2, NULL, 0, out->dtype, rank, shape);
}

/* Groups are instances whose channels are longer. */
void lower_group_norm(Onnx *o, const Node *node) {
    const Value *input = lower_tensor(node, 0);
    SymTable *symbols = &o->program->symbols;
    const Sym *groups = node->args[1].integer, *rank = sym_const(symbols, input->rank);
    const Attr epsilon = ATTR_F("epsilon", node->args[4].number);
    const Sym *all = shape_count(symbols, input->rank - 1, input->shape + 1);
    const Sym *shape[] = {input->shape[0], groups, sym_floordiv(symbols, all, groups)};
    const int64_t sizes[] = {0, groups->value, -1};
    const char *x = lower_input(o, node, 0), *split[] = {x, onnx_ints(o, sizes, 3)};
    const char *inputs[] = {onnx_helper(o, "Reshape", split, 2, NULL, 0, input->dtype, 3, shape),
                            vector(o, input->dtype, groups, 1), vector(o, input->dtype, groups, 0)};
    const char *result =
        onnx_helper(o, "InstanceNormalization", inputs, 3, &epsilon, 1, input->dtype, 3, shape);
    const char *size = onnx_helper(o, "Shape", &x, 1, NULL, 0, FERRY_I64, 1, &rank);
    bool weight = lower_tensor(node, 2), bias = lower_tensor(node, 3);
    result = step(o, "Reshape", result, size, !weight && !bias);
    if (weight) result = step(o, "Mul", result, by_channel(o, node, 2), !bias);
    if (bias) step(o, "Add", result, by_channel(o, node, 3), true);
}

/* ---- padding, resizing, sampling ---- */

/* The amounts before, then those after, of the dimensions that are padded. */
static const char *pad_amounts(Onnx *o, const Arg *pad, uint32_t count) {
    const Sym *halves[2][FERRY_MAX_RANK];
    int64_t amounts[2 * FERRY_MAX_RANK];
    bool constant = true;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const Sym *amount = halves[i % 2][i / 2] = pad->integers.items[i];
        amounts[i % 2 * count + i / 2] = amount->value;
        constant = constant && sym_is_const(amount);
    }
    if (constant) return onnx_ints(o, amounts, 2 * (size_t)count);
    const char *inputs[] = {onnx_shape(o, halves[0], count), onnx_shape(o, halves[1], count)};
    const Attr axis = ATTR_I("axis", 0);
    const Sym *length = sym_const(&o->program->symbols, 2 * (int64_t)count);
    return onnx_helper(o, "Concat", inputs, 2, &axis, 1, FERRY_I64, 1, &length);
}

void lower_pad(Onnx *o, const Node *node) {
    const Value *input = lower_tensor(node, 0);
    const char *mode = node->args[2].string, *fill = NULL;
    int64_t axes[FERRY_MAX_RANK];
    uint32_t count = node->args[1].integers.count / 2;
    for (uint32_t i = 0; i < count; i++) axes[i] = (int64_t)input->rank - 1 - i;
    if (strcmp(mode, "constant") == 0) fill = onnx_number(o, node->args[3].number, input->dtype);
    if (strcmp(mode, "replicate") == 0) mode = "edge";
    const char *inputs[] = {lower_input(o, node, 0), pad_amounts(o, &node->args[1], count), fill,
                            onnx_ints(o, axes, count)};
    const Attr attrs[] = {ATTR_S("mode", mode)};
    RESULT(o, "Pad", inputs, attrs);
}

void lower_upsample(Onnx *o, const Node *node) {
    static const int64_t image_axes[] = {2, 3};
    const char *mode = lower_op_type(node);
    bool nearest = strcmp(mode, "nearest") == 0;
    bool exact = node->op == OP_UPSAMPLE_NEAREST_EXACT;
    bool antialias = node->op == OP_UPSAMPLE_BICUBIC_AA;
    uint32_t scale = nearest ? 2 : 3;
    const char *coordinates = nearest && !exact                   ? "asymmetric"
                              : !nearest && node->args[2].boolean ? "align_corners"
                                                                  : "half_pixel";
    Attr attrs[7] = {ATTR_S("mode", mode), ATTR_S("coordinate_transformation_mode", coordinates),
                     ATTR_IS("axes", image_axes, 2)};
    uint32_t count = 3;
    if (nearest) attrs[count++] = ATTR_S("nearest_mode", exact ? "round_prefer_ceil" : "floor");
    if (strcmp(mode, "cubic") == 0)
        attrs[count++] = ATTR_F("cubic_coeff_a", antialias ? -0.5 : -0.75);
    if (antialias) attrs[count++] = ATTR_I("antialias", 1);
    if (antialias) attrs[count++] = ATTR_I("exclude_outside", 1);
    const char *inputs[] = {lower_input(o, node, 0), NULL, NULL, NULL};
    const Arg *height = &node->args[scale], *width = &node->args[scale + 1];
    bool scaled = height->kind == VALUE_FLOAT && width->kind == VALUE_FLOAT;
    if (scaled) {
        const float scales[] = {(float)height->number, (float)width->number};
        const int64_t shape = 2;
        inputs[2] = onnx_constant(o, FERRY_F32, 1, &shape, scales, sizeof scales);
    } else {
        inputs[3] = onnx_shape(o, node->args[1].integers.items, 2);
    }
    onnx_result(o, "Resize", inputs, scaled ? 3 : 4, attrs, count);
}

void lower_grid_sampler(Onnx *o, const Node *node) {
    /* "bilinear" and "bicubic" became "linear" and "cubic" in opset 20. */
    static const char *const modes[][3] = {{"bilinear", "nearest", "bicubic"},
                                           {"linear", "nearest", "cubic"}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const Attr attrs[] = {ATTR_S("mode", modes[o->options->opset >= 20][lower_int(node, 2)]),
                          ATTR_S("padding_mode", paddings[lower_int(node, 3)]),
                          ATTR_I("align_corners", node->args[4].boolean)};
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    RESULT(o, "GridSample", inputs, attrs);
}
