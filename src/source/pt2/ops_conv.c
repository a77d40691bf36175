/* Translations of convolutions: all of them become aten::convolution. */
#include "source/pt2/reader.h"

#include <string.h>

enum { MAX_SPATIAL = 3 };

/* The numbers of a convolution, one per spatial dimension. */
typedef struct Windows {
    uint32_t count;
    int64_t stride[MAX_SPATIAL], padding[MAX_SPATIAL], dilation[MAX_SPATIAL], extra[MAX_SPATIAL];
} Windows;

void take_spatial(Call *c, const char *name, int64_t otherwise, uint32_t count, int64_t *out) {
    int64_t numbers[FERRY_MAX_RANK];
    uint32_t found = take_ints(c, name, numbers, FERRY_MAX_RANK);
    if (found > 1 && found != count) {
        take_fail(c, FERRY_BAD_FORMAT, "expected %u numbers in \"%s\", found %u", count, name,
                  found);
        found = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = found == 0 ? otherwise : found == 1 ? numbers[0] : numbers[i];
        if (out[i] >= 0 && out[i] <= INT32_MAX) continue;
        take_fail(c, FERRY_BAD_FORMAT, "the argument \"%s\" is out of range", name);
        out[i] = otherwise;
    }
}

/* padding="same": half of what the window reaches over on each side. What is odd goes to the end, by
 * padding the input first. */
static Value *pad_same(Call *c, Value *input, const Value *weight, Windows *w) {
    const Sym *pads[2 * MAX_SPATIAL];
    bool uneven = false;
    for (uint32_t i = 0; i < w->count; i++) {
        const Sym *kernel = weight->shape[i + 2];
        if (!sym_is_const(kernel) || kernel->value < 1 || kernel->value > INT32_MAX) return input;
        int64_t total = w->dilation[i] * (kernel->value - 1);
        w->padding[i] = total / 2;
        uneven = uneven || total % 2;
        pads[2 * (w->count - 1 - i)] = build_const(c->b, 0);
        pads[2 * (w->count - 1 - i) + 1] = build_const(c->b, total % 2);
    }
    return uneven ? make_pad(c, input, pads, 2 * w->count, "constant", 0) : input;
}

static Value *take_padding(Call *c, Value *input, const Value *weight, Windows *w) {
    const char *word = take_string(c, "padding", NULL);
    if (word && strcmp(word, "same") == 0) return pad_same(c, input, weight, w);
    if (!word) take_spatial(c, "padding", 0, w->count, w->padding);
    return input;
}

static void translate_convolution(Call *c) {
    Value *input = take_tensor(c, "input"), *weight = take_tensor(c, "weight");
    if (!build_ok(c->b)) return;
    Windows w = {.count = weight->rank - 2};
    if (weight->rank < 3 || weight->rank > 5 || input->rank + 1 < weight->rank ||
        input->rank > weight->rank) {
        take_fail(c, FERRY_BAD_FORMAT, "unsuitable ranks %u and %u", input->rank, weight->rank);
        return;
    }
    bool single = input->rank + 1 == weight->rank;
    bool transposed =
        strstr(c->how->target, "conv_transpose") != NULL || take_bool(c, "transposed", false);
    if (single) input = build_unsqueeze(c->b, input, 0);
    take_spatial(c, "stride", 1, w.count, w.stride);
    take_spatial(c, "dilation", 1, w.count, w.dilation);
    take_spatial(c, "output_padding", 0, w.count, w.extra);
    input = take_padding(c, input, weight, &w);
    const Arg args[] = {arg_tensor(input),
                        arg_tensor(weight),
                        arg_tensor(take_optional_tensor(c, "bias")),
                        arg_ints(c->b, w.stride, w.count),
                        arg_ints(c->b, w.padding, w.count),
                        arg_ints(c->b, w.dilation, w.count),
                        arg_bool(transposed),
                        arg_ints(c->b, w.extra, w.count),
                        arg_int(c->b, take_int(c, "groups", 1))};
    Value *result = build_op(c->b, OP_CONVOLUTION, args, 9);
    result_set(c, 0, single ? build_squeeze(c->b, result, 0) : result);
}

/* ---- weights ---- */

/* The norm over all dimensions but one, whose sizes become 1. */
static Value *norm_except(Call *c, Value *v, uint32_t dim) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < v->rank; d++) {
        if (d != dim) dims[count++] = d;
    }
    const Arg args[] = {arg_tensor(build_mul(c->b, v, v)), arg_ints(c->b, dims, count),
                        arg_bool(true)};
    return build_unary(c->b, OP_SQRT, count ? build_op(c->b, OP_SUM, args, 3) : args[0].tensor);
}

/* v * (g / |v|) */
static void translate_weight_norm(Call *c) {
    Value *v = take_tensor(c, "v"), *g = take_tensor(c, "g");
    Value *norm = norm_except(c, v, take_dim(c, "dim", 0, v->rank));
    result_set(c, 0, build_mul(c->b, v, build_binary(c->b, OP_DIV, g, norm)));
    if (strstr(c->how->target, "interface")) result_set(c, 1, norm);
}

/* ---- windows as columns ---- */

/* [taps, 1, rows, columns]: each output channel of this convolution is one element of the window. */
static Value *tap_weight(Call *c, const int64_t *kernel, ferry_dtype dtype) {
    int64_t taps = kernel[0] * kernel[1];
    const Sym *shape[] = {build_const(c->b, taps), build_const(c->b, 1),
                          build_const(c->b, kernel[0]), build_const(c->b, kernel[1])};
    Value *numbers = build_arange(c->b, build_const(c->b, 0), shape[0], FERRY_I64);
    Value *identity = build_binary(c->b, OP_EQ, build_unsqueeze(c->b, numbers, 1),
                                   build_unsqueeze(c->b, numbers, 0));
    return build_view(c->b, build_to(c->b, identity, dtype), shape, 4);
}

typedef struct Columns {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} Columns;

static Columns take_columns(Call *c) {
    Columns k;
    take_spatial(c, "kernel_size", 1, 2, k.kernel);
    take_spatial(c, "stride", 1, 2, k.stride);
    take_spatial(c, "padding", 0, 2, k.padding);
    take_spatial(c, "dilation", 1, 2, k.dilation);
    return k;
}

/* The windows lie side by side: columns are a permutation of the image. */
static bool is_tiling(Call *c, const Columns *k, const Sym *const *image) {
    for (int i = 0; i < 2; i++) {
        const Sym *rest =
            sym_mod(&c->b->program->symbols, image[i], build_const(c->b, k->kernel[i]));
        if (k->kernel[i] != k->stride[i] || k->padding[i] || !sym_is_value(rest, 0)) return false;
        if (k->dilation[i] != 1 && k->kernel[i] > 1) return false;
    }
    return true;
}

static Value *convolve(Call *c, Value *x, const Columns *k, bool transposed) {
    static const int64_t none[2] = {0, 0};
    const Arg args[] = {arg_tensor(x),
                        arg_tensor(tap_weight(c, k->kernel, x->dtype)),
                        arg_none(),
                        arg_ints(c->b, k->stride, 2),
                        arg_ints(c->b, k->padding, 2),
                        arg_ints(c->b, k->dilation, 2),
                        arg_bool(transposed),
                        arg_ints(c->b, none, 2),
                        arg_int(c->b, 1)};
    return build_op(c->b, OP_CONVOLUTION, args, 9);
}

/* unfold: [N, C, H, W] -> [N, C * taps, positions] */
static void translate_im2col(Call *c) {
    Value *x = take_tensor(c, "self");
    Columns k = take_columns(c);
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b)) return;
    if (x->rank == 3) x = build_unsqueeze(c->b, x, 0);
    const Sym *const *size = x->shape;
    if (x->rank != 4) {
        take_fail(c, FERRY_BAD_FORMAT, "expected an image, found a tensor of rank %u", x->rank);
    } else if (is_tiling(c, &k, size + 2)) {
        SymTable *symbols = &c->b->program->symbols;
        const Sym *height = build_const(c->b, k.kernel[0]), *width = build_const(c->b, k.kernel[1]);
        const Sym *tiles[] = {size[0],
                              size[1],
                              sym_floordiv(symbols, size[2], height),
                              height,
                              sym_floordiv(symbols, size[3], width),
                              width};
        x = build_permute(c->b, build_view(c->b, x, tiles, 6), (int64_t[]){0, 1, 3, 5, 2, 4});
    } else {
        const Sym *planes = sym_mul(&c->b->program->symbols, size[0], size[1]);
        const Sym *image[] = {planes, build_const(c->b, 1), size[2], size[3]};
        x = convolve(c, build_view(c->b, x, image, 4), &k, false);
    }
    result_set(c, 0, build_view(c->b, x, meta.sizes, meta.rank));
}

/* fold: the sum of the columns where they belong; [N, C * taps, positions] -> [N, C, H, W] */
static void translate_col2im(Call *c) {
    Value *x = take_tensor(c, "self");
    Columns k = take_columns(c);
    TensorMeta meta = result_meta(c, 0);
    SymTable *symbols = &c->b->program->symbols;
    if (!build_ok(c->b) || meta.rank < 3) return;
    const Sym *const *image = meta.sizes + meta.rank - 2, *count[2];
    const Sym *planes = shape_count(symbols, meta.rank - 2, meta.sizes);
    for (int i = 0; i < 2; i++) {
        int64_t slack = 2 * k.padding[i] - k.dilation[i] * (k.kernel[i] - 1) - 1;
        count[i] = sym_add(symbols, image[i], build_const(c->b, slack));
        count[i] = sym_floordiv(symbols, count[i], build_const(c->b, k.stride[i]));
        count[i] = sym_add(symbols, count[i], build_const(c->b, 1));
    }
    if (is_tiling(c, &k, image)) {
        const Sym *tiles[] = {planes, build_const(c->b, k.kernel[0]),
                              build_const(c->b, k.kernel[1]), count[0], count[1]};
        x = build_permute(c->b, build_view(c->b, x, tiles, 5), (int64_t[]){0, 3, 1, 4, 2});
    } else {
        const Sym *columns[] = {planes, build_const(c->b, k.kernel[0] * k.kernel[1]), count[0],
                                count[1]};
        Columns whole = k;
        whole.padding[0] = whole.padding[1] = 0;
        x = convolve(c, build_view(c->b, x, columns, 4), &whole, true);
        if (!build_ok(c->b)) return;
        const Sym *pads[4]; /* what was padding goes, what no window reached comes */
        for (uint32_t i = 0; i < 2; i++) {
            const Sym *start = build_const(c->b, -k.padding[1 - i]);
            pads[2 * i] = start;
            pads[2 * i + 1] =
                sym_sub(symbols, sym_sub(symbols, image[1 - i], x->shape[3 - i]), start);
        }
        x = make_pad(c, x, pads, 4, "constant", 0);
    }
    result_set(c, 0, build_view(c->b, x, meta.sizes, meta.rank));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_conv[] = {
    SIMPLE("aten.conv1d.default", translate_convolution),
    SIMPLE("aten.conv1d.padding", translate_convolution),
    SIMPLE("aten.conv2d.default", translate_convolution),
    SIMPLE("aten.conv2d.padding", translate_convolution),
    SIMPLE("aten.conv3d.default", translate_convolution),
    SIMPLE("aten.conv3d.padding", translate_convolution),
    SIMPLE("aten.conv_transpose1d.default", translate_convolution),
    SIMPLE("aten.conv_transpose2d.input", translate_convolution),
    SIMPLE("aten.conv_transpose3d.input", translate_convolution),
    SIMPLE("aten.convolution.default", translate_convolution),
    SIMPLE("aten._convolution.default", translate_convolution),
    SIMPLE("aten._weight_norm.default", translate_weight_norm),
    SIMPLE("aten._weight_norm_interface.default", translate_weight_norm),
    SIMPLE("aten.im2col.default", translate_im2col),
    SIMPLE("aten.col2im.default", translate_col2im),
    {0},
};
