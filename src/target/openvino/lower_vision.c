/* Lowerings of convolutions, pooling, normalization by statistics, padding and resizing. */
#include "target/openvino/lower.h"

#include <string.h>

/* A vector of `count` equal numbers. */
static IrPort vector(Ir *ir, ferry_dtype dtype, const Sym *count, double value) {
    return ir_layer(ir, "Broadcast-3", dtype, FROM(ir_number(ir, value, dtype), ir_size(ir, count)),
                    WITH(ATTR_S("mode", "numpy")));
}

/* ---- windows ---- */

/* A weight [groups * a, b, ...] as [groups, a, b, ...]. */
static IrPort grouped_weight(Ir *ir, const Node *node, int64_t groups) {
    const Value *weight = node_tensor(node, 1);
    int64_t shape[FERRY_MAX_RANK + 1] = {groups, weight->shape[0]->value / groups};
    for (uint32_t d = 1; d < weight->rank; d++) shape[d + 1] = weight->shape[d]->value;
    return ir_layer(ir, "Reshape-1", weight->dtype,
                    FROM(ir_value(ir, weight), ir_ints(ir, shape, weight->rank + 1)),
                    WITH(ATTR_B("special_zero", false)));
}

/* A bias [C] as [1, C, 1, ...], which broadcasts over the result. */
static IrPort by_channel(Ir *ir, const Node *node, uint32_t arg) {
    const Value *out = node->outputs[0];
    int64_t shape[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < out->rank; d++) shape[d] = d == 1 ? -1 : 1;
    return ir_layer(ir, "Reshape-1", out->dtype,
                    FROM(ir_input(ir, node, arg), ir_ints(ir, shape, out->rank)),
                    WITH(ATTR_B("special_zero", false)));
}

IrPort ir_lower_convolution(Ir *ir, const Node *node) {
    static const char *const operations[2][2] = {
        {"Convolution-1", "GroupConvolution-1"},
        {"ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"}};
    int64_t stride[3], padding[3], dilation[3], extra[3], groups = node_int(node, 8);
    uint32_t count = node_list(node, 3, stride);
    bool transposed = node->args[6].boolean;
    ferry_dtype dtype = node->outputs[0]->dtype;
    node_list(node, 4, padding);
    node_list(node, 5, dilation);
    node_list(node, 7, extra);
    const Attr attrs[] = {
        ATTR_IS("strides", stride, count),     ATTR_IS("dilations", dilation, count),
        ATTR_IS("pads_begin", padding, count), ATTR_IS("pads_end", padding, count),
        ATTR_S("auto_pad", "explicit"),        ATTR_IS("output_padding", extra, count)};
    IrPort input = ir_input(ir, node, 0);
    IrPort weight = groups > 1 ? grouped_weight(ir, node, groups) : ir_input(ir, node, 1);
    IrPort port = ir_layer(ir, operations[transposed][groups > 1], dtype, FROM(input, weight),
                           attrs, transposed ? 6 : 5);
    if (!node_tensor(node, 2)) return port;
    return ir_two(ir, "Add-1", dtype, port, by_channel(ir, node, 2));
}

/* With ceil_mode the last window may reach beyond the input. Where there is no padding that is said as
 * padding behind it, which does not count: OpenVINO refuses windows larger than the input. */
static bool widen(const int64_t *kernel, const int64_t *stride, const int64_t *dilation,
                  const int64_t *padding, int64_t *after) {
    for (uint32_t i = 0; i < 2; i++) {
        int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
        if (padding[i]) return false;
        after[i] = (stride[i] < reach ? stride[i] : reach) - 1;
    }
    return true;
}

/* An average that counts the padding, but not what its last windows have beyond it: over an input that is
 * padded before, without the windows that then begin in the padding. */
static IrPort pool_padded(Ir *ir, const Node *node, const int64_t *kernel, const int64_t *stride,
                          const int64_t *padding) {
    static const int64_t none[2], ones[] = {1, 1}, axes[] = {2, 3};
    const Value *out = node->outputs[0];
    const int64_t amounts[] = {0, 0, padding[0], padding[1]};
    int64_t after[2];
    widen(kernel, stride, ones, none, after);
    IrPort sides = ir_ints(ir, amounts, 4), zero = ir_number(ir, 0, out->dtype);
    IrPort input =
        ir_layer(ir, "Pad-12", out->dtype, FROM(ir_input(ir, node, 0), sides, sides, zero),
                 WITH(ATTR_S("pad_mode", "constant")));
    IrPort pooled = ir_layer(ir, "AvgPool-14", out->dtype, FROM(input),
                             WITH(ATTR_IS("kernel", kernel, 2), ATTR_IS("strides", stride, 2),
                                  ATTR_IS("pads_begin", none, 2), ATTR_IS("pads_end", after, 2),
                                  ATTR_S("rounding_type", "floor"), ATTR_S("auto_pad", "explicit"),
                                  ATTR_B("exclude-pad", true)));
    return RESULT(ir, node, "Slice-8",
                  FROM(pooled, ir_ints(ir, none, 2), ir_shape(ir, out->shape + 2, 2),
                       ir_ints(ir, ones, 2), ir_ints(ir, axes, 2)),
                  PLAIN);
}

IrPort ir_lower_pool(Ir *ir, const Node *node) {
    bool maximum = node->op == OP_MAX_POOL;
    int64_t kernel[2], stride[2], padding[2], after[2], dilation[2] = {1, 1};
    node_list(node, 1, kernel);
    node_list(node, 2, stride);
    node_list(node, 3, padding);
    if (maximum) node_list(node, 4, dilation);
    bool ceil = node->args[maximum ? 5 : 4].boolean;
    bool widened = ceil && widen(kernel, stride, dilation, padding, after);
    if (ceil && !widened && !maximum && node->args[5].boolean) {
        return pool_padded(ir, node, kernel, stride, padding);
    }
    const Attr attrs[] = {
        ATTR_IS("kernel", kernel, 2),
        ATTR_IS("strides", stride, 2),
        ATTR_IS("pads_begin", padding, 2),
        ATTR_IS("pads_end", widened ? after : padding, 2),
        ATTR_S("rounding_type", ceil && !widened ? "ceil_torch" : "floor"),
        ATTR_S("auto_pad", "explicit"),
        maximum ? ATTR_IS("dilations", dilation, 2)
                : ATTR_B("exclude-pad", widened || !node->args[5].boolean),
        ATTR_S("index_element_type", "i64"),
        ATTR_I("axis", 0),
    };
    const ferry_dtype dtypes[] = {node->outputs[0]->dtype, FERRY_I64};
    return ir_layer_outputs(ir, node_operation(node), dtypes, maximum ? 2 : 1,
                            FROM(ir_input(ir, node, 0)), attrs, maximum ? 9 : 7);
}

/* ---- normalization ---- */

/* A weight or bias, or what stands for none. */
static IrPort affine(Ir *ir, const Node *node, uint32_t arg, double neutral) {
    const Value *input = node_tensor(node, 0);
    if (node_tensor(node, arg)) return ir_input(ir, node, arg);
    return vector(ir, input->dtype, input->shape[1], neutral);
}

IrPort ir_lower_batch_norm(Ir *ir, const Node *node) {
    return RESULT(ir, node, "BatchNormInference-5",
                  FROM(ir_input(ir, node, 0), affine(ir, node, 1, 1), affine(ir, node, 2, 0),
                       ir_input(ir, node, 3), ir_input(ir, node, 4)),
                  WITH(ATTR_F("epsilon", node->args[7].number)));
}

IrPort ir_lower_group_norm(Ir *ir, const Node *node) {
    return RESULT(
        ir, node, "GroupNormalization-12",
        FROM(ir_input(ir, node, 0), affine(ir, node, 2, 1), affine(ir, node, 3, 0)),
        WITH(ATTR_I("num_groups", node_int(node, 1)), ATTR_F("epsilon", node->args[4].number)));
}

/* ---- padding, resizing, sampling ---- */

/* The amounts before (side 0) or after (1) every dimension; the list counts from the last. */
static IrPort pad_amounts(Ir *ir, const Node *node, uint32_t side) {
    const Sym *amounts[FERRY_MAX_RANK];
    const Arg *pad = &node->args[1];
    uint32_t rank = node_tensor(node, 0)->rank, count = pad->integers.count / 2;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t i = rank - 1 - d;
        amounts[d] =
            i < count ? pad->integers.items[2 * i + side] : sym_const(&ir->program->symbols, 0);
    }
    return ir_shape(ir, amounts, rank);
}

IrPort ir_lower_pad(Ir *ir, const Node *node) {
    const char *mode = node->args[2].string;
    if (strcmp(mode, "replicate") == 0) mode = "edge";
    IrPort fill = ir_number(ir, node->args[3].number, node->outputs[0]->dtype);
    IrPort before = pad_amounts(ir, node, 0), after = pad_amounts(ir, node, 1);
    return RESULT(ir, node, "Pad-12", FROM(ir_input(ir, node, 0), before, after, fill),
                  WITH(ATTR_S("pad_mode", mode)));
}

IrPort ir_lower_upsample(Ir *ir, const Node *node) {
    static const int64_t image_axes[] = {2, 3}, no_pads[4];
    const char *mode = node_operation(node);
    bool nearest = strcmp(mode, "nearest") == 0;
    bool exact = node->op == OP_UPSAMPLE_NEAREST_EXACT;
    uint32_t scale = nearest ? 2 : 3;
    const char *coordinates = nearest && !exact                   ? "asymmetric"
                              : !nearest && node->args[2].boolean ? "align_corners"
                                                                  : "half_pixel";
    const Arg *height = &node->args[scale], *width = &node->args[scale + 1];
    bool scaled = height->kind == VALUE_FLOAT && width->kind == VALUE_FLOAT;
    IrPort target;
    if (scaled) {
        const float scales[] = {(float)height->number, (float)width->number};
        const int64_t count = 2;
        target = ir_constant(ir, FERRY_F32, 1, &count, scales, sizeof scales);
    } else {
        target = ir_shape(ir, node->args[1].integers.items, 2);
    }
    return RESULT(ir, node, "Interpolate-11",
                  FROM(ir_input(ir, node, 0), target, ir_ints(ir, image_axes, 2)),
                  WITH(ATTR_S("mode", mode), ATTR_S("coordinate_transformation_mode", coordinates),
                       ATTR_S("nearest_mode", exact ? "round_prefer_ceil" : "floor"),
                       ATTR_S("shape_calculation_mode", scaled ? "scales" : "sizes"),
                       ATTR_F("cube_coeff", node->op == OP_UPSAMPLE_BICUBIC_AA ? -0.5 : -0.75),
                       ATTR_IS("pads_begin", no_pads, 4), ATTR_IS("pads_end", no_pads, 4)));
}

IrPort ir_lower_grid_sampler(Ir *ir, const Node *node) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    return RESULT(ir, node, "GridSample-9", FROM(ir_input(ir, node, 0), ir_input(ir, node, 1)),
                  WITH(ATTR_S("mode", modes[node_int(node, 2)]),
                       ATTR_S("padding_mode", paddings[node_int(node, 3)]),
                       ATTR_B("align_corners", node->args[4].boolean)));
}
