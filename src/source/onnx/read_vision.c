/* Convolutions, pooling, normalization by statistics, padding and resizing. */
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <math.h>
#include <string.h>

enum { MAX_SPATIAL = 3 };

/* ---- windows ---- */

/* How a window moves over the spatial dimensions. */
typedef struct Window {
    uint32_t count; /* of dimensions */
    int64_t stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
    int64_t pads[2 * MAX_SPATIAL]; /* before, then behind */
} Window;

/* An attribute of `count` numbers from 0 on; `otherwise` each when it is absent. */
static bool numbers(Import *im, const OnnxNode *node, const char *name, uint32_t count,
                    int64_t otherwise, int64_t *out) {
    const OnnxAttr *attr = import_attr(im, node, name, ONNX_INTS);
    if (attr && attr->count != count) {
        return import_bad(im, "expected %u numbers in \"%s\", found %zu", count, name, attr->count);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = attr ? (int64_t)attr->list[i] : otherwise;
        if (out[i] < 0 || out[i] > INT32_MAX) {
            return import_unsupported(im, "%lld in \"%s\"", (long long)out[i], name);
        }
    }
    return import_ok(im);
}

static bool parse_window(Import *im, const OnnxNode *node, const Value *x, Window *window) {
    const char *automatic = import_string(im, node, "auto_pad", "NOTSET");
    if (!import_ok(im)) return false;
    if (strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0) {
        return import_unsupported(im, "padding by \"%s\"", automatic);
    }
    if (x->rank < 3 || x->rank > 2 + MAX_SPATIAL) {
        return import_unsupported(im, "an input of rank %u", x->rank);
    }
    window->count = x->rank - 2;
    return numbers(im, node, "strides", window->count, 1, window->stride) &&
           numbers(im, node, "dilations", window->count, 1, window->dilation) &&
           numbers(im, node, "pads", 2 * window->count, 0, window->pads);
}

static bool is_symmetric(const Window *window) {
    return memcmp(window->pads, window->pads + window->count,
                  window->count * sizeof *window->pads) == 0;
}

/* Pad the spatial dimensions with 0; the window needs no more then. */
static Value *pad_first(Import *im, Value *x, Window *window) {
    int64_t pads[2 * MAX_SPATIAL];
    for (uint32_t i = 0; i < window->count; i++) {
        uint32_t dim = window->count - 1 - i; /* the last dimension comes first */
        pads[2 * i] = window->pads[dim];
        pads[2 * i + 1] = window->pads[window->count + dim];
    }
    memset(window->pads, 0, sizeof window->pads);
    return import_op(im, OP_PAD, arg_tensor(x), arg_ints(&im->b, pads, 2 * window->count));
}

void read_convolution(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *weight = import_tensor(im, node, 1);
    Value *bias = import_tensor(im, node, 2);
    bool transposed = strcmp(node->op_type, "ConvTranspose") == 0;
    int64_t kernel[MAX_SPATIAL], extra[MAX_SPATIAL];
    Window window;
    if (!import_ok(im) || !parse_window(im, node, x, &window)) return;
    if (!numbers(im, node, "output_padding", window.count, 0, extra)) return;
    if (!numbers(im, node, "kernel_shape", window.count, 0, kernel)) return;
    for (uint32_t i = 0; i < window.count; i++) {
        if (weight->rank != x->rank ||
            (kernel[i] && !sym_is_value(weight->shape[i + 2], kernel[i])))
            import_bad(im, "the weight differs from \"kernel_shape\"");
    }
    if (!is_symmetric(&window)) {
        if (transposed) import_unsupported(im, "different padding before and behind");
        x = pad_first(im, x, &window);
    }
    import_give(im, node, 0,
                import_op(im, OP_CONVOLUTION, arg_tensor(x), arg_tensor(weight), arg_tensor(bias),
                          arg_ints(&im->b, window.stride, window.count),
                          arg_ints(&im->b, window.pads, window.count),
                          arg_ints(&im->b, window.dilation, window.count), arg_bool(transposed),
                          arg_ints(&im->b, extra, window.count),
                          arg_int(&im->b, import_int(im, node, "group", 1))));
}

/* More padding behind than before lets one more window in, as ceil_mode does; true when that gives the
 * same number of windows. */
static bool is_ceil_mode(const Value *x, const Window *window, const int64_t *kernel) {
    for (uint32_t i = 0; i < 2; i++) {
        const Sym *sym = x->shape[i + 2];
        int64_t before = window->pads[i], behind = window->pads[i + 2], stride = window->stride[i];
        if (!sym_is_const(sym) || sym->value > INT32_MAX || stride < 1) return false;
        int64_t reach = window->dilation[i] * (kernel[i] - 1) + 1, size = sym->value;
        if (size + 2 * before < reach) return false;
        int64_t count = (size + before + behind - reach) / stride + 1;
        int64_t most = (size + 2 * before - reach + stride - 1) / stride + 1;
        if ((most - 1) * stride >= size + before) most--;
        if (count != most) return false;
    }
    return true;
}

void read_pool(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    bool maximum = node->rule->op == OP_MAX_POOL;
    bool ceil = import_int(im, node, "ceil_mode", 0) != 0;
    bool count_pads = import_int(im, node, "count_include_pad", 0) != 0;
    int64_t kernel[MAX_SPATIAL];
    Window window;
    if (!import_ok(im) || !parse_window(im, node, x, &window)) return;
    if (!numbers(im, node, "kernel_shape", window.count, 0, kernel)) return;
    if (window.count != 2) import_unsupported(im, "pooling over %u dimensions", window.count);
    bool dilated = window.dilation[0] != 1 || window.dilation[1] != 1;
    if (!maximum && dilated) import_unsupported(im, "an average of elements that lie apart");
    if (import_ok(im) && !is_symmetric(&window)) {
        if (count_pads || !is_ceil_mode(x, &window, kernel))
            import_unsupported(im, "different padding before and behind");
        ceil = true;
    }
    const Arg sizes = arg_ints(&im->b, kernel, 2), stride = arg_ints(&im->b, window.stride, 2),
              padding = arg_ints(&im->b, window.pads, 2);
    Value *pooled = maximum ? import_op(im, OP_MAX_POOL, arg_tensor(x), sizes, stride, padding,
                                        arg_ints(&im->b, window.dilation, 2), arg_bool(ceil))
                            : import_op(im, OP_AVG_POOL, arg_tensor(x), sizes, stride, padding,
                                        arg_bool(ceil), arg_bool(count_pads));
    import_give(im, node, 0, pooled);
}

/* ---- normalization ---- */

void read_batch_norm(Import *im, const OnnxNode *node) {
    Arg args[9];
    if (!import_require_int(im, node, "training_mode", 0)) return;
    for (uint32_t i = 0; i < 5; i++) args[i] = arg_tensor(import_tensor(im, node, i));
    args[5] = args[8] = arg_bool(false);
    args[6] = arg_float(0);
    args[7] = arg_float(import_float(im, node, "epsilon", (double)1e-5F));
    import_give(im, node, 0, build_op(&im->b, OP_BATCH_NORM, args, 9));
}

/* An instance is a group of one channel. */
void read_instance_norm(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *weight = import_tensor(im, node, 1);
    Value *bias = import_tensor(im, node, 2);
    double eps = import_float(im, node, "epsilon", (double)1e-5F);
    Arg groups = arg_sym(build_dim(&im->b, x, 1));
    import_give(im, node, 0,
                import_op(im, OP_GROUP_NORM, arg_tensor(x), groups, arg_tensor(weight),
                          arg_tensor(bias), arg_float(eps)));
}

/* ---- padding ---- */

/* What input 2 fills with; 0 when it is absent. */
static bool fill_value(Import *im, const OnnxNode *node, double *out) {
    Arg scalar;
    *out = 0;
    if (!import_input(node, 2)) return true;
    if (!import_scalar(im, node, 2, &scalar)) {
        return import_unsupported(im, "the value to pad with must be constant");
    }
    if (scalar.kind == VALUE_INT && !sym_is_const(scalar.integer)) {
        return import_unsupported(im, "the value to pad with must be constant");
    }
    *out = scalar.kind == VALUE_FLOAT ? scalar.number : (double)scalar.integer->value;
    return true;
}

void read_pad(Import *im, const OnnxNode *node) {
    static const char *const modes[][2] = {
        {"constant", "constant"}, {"reflect", "reflect"}, {"edge", "replicate"}};
    const char *name = import_string(im, node, "mode", "constant"), *mode = NULL;
    const Sym *pads[2 * FERRY_MAX_RANK], *zero = build_const(&im->b, 0);
    int64_t axes[FERRY_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t most = 0, axis, count;
    double fill;
    Value *x = import_tensor(im, node, 0);
    const Known *amounts = import_sizes(im, node, 1);
    if (!amounts || !fill_value(im, node, &fill)) return;
    count = x->rank;
    if (import_input(node, 3) && !import_constants(im, node, 3, axes, &count)) return;
    if (amounts->count != 2 * count) import_bad(im, "expected %u amounts", 2 * count);
    for (size_t i = 0; i < 3; i++) mode = strcmp(name, modes[i][0]) == 0 ? modes[i][1] : mode;
    if (!mode) import_unsupported(im, "padding by \"%s\"", name);
    for (uint32_t i = 0; i < 2 * FERRY_MAX_RANK; i++) pads[i] = zero;
    for (uint32_t i = 0; i < count && import_ok(im); i++) {
        const Sym *before = amounts->items[i], *behind = amounts->items[count + i];
        if (!import_axis(im, axes[i], x->rank, &axis)) return;
        if (!before || !behind) import_bad(im, "an amount is INT64_MIN");
        if (before == zero && behind == zero) continue;
        uint32_t place = 2 * (x->rank - 1 - axis); /* the last dimension comes first */
        pads[place] = before;
        pads[place + 1] = behind;
        most = place + 2 > most ? place + 2 : most;
    }
    if (most)
        x = import_op(im, OP_PAD, arg_tensor(x), arg_syms(&im->b, pads, most), arg_string(mode),
                      arg_float(fill));
    import_give(im, node, 0, x);
}

/* ---- sampling ---- */

/* The place of `name` in a list of names that stand in for numbers; false and a failure when it has
 * none. */
static bool find_name(Import *im, const char *name, const char *const *names, int64_t count,
                      int64_t kinds, int64_t *out) {
    for (*out = 0; *out < count; ++*out) {
        if (strcmp(name, names[*out]) != 0) continue;
        *out %= kinds;
        return true;
    }
    return import_unsupported(im, "there is no support for \"%s\"", name);
}

void read_grid_sample(Import *im, const OnnxNode *node) {
    static const char *const modes[] = {"linear",   "nearest", "cubic",
                                        "bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = import_string(im, node, "mode", "linear");
    const char *padding = import_string(im, node, "padding_mode", "zeros");
    Value *x = import_tensor(im, node, 0), *grid = import_tensor(im, node, 1);
    Arg corners = arg_bool(import_int(im, node, "align_corners", 0) != 0);
    int64_t kind, border;
    if (!find_name(im, mode, modes, 6, 3, &kind)) return;
    if (!find_name(im, padding, paddings, 3, 3, &border)) return;
    import_give(im, node, 0,
                import_op(im, OP_GRID_SAMPLER, arg_tensor(x), arg_tensor(grid),
                          arg_int(&im->b, kind), arg_int(&im->b, border), corners));
}
