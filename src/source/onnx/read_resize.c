/* Resize, in the forms that interpolation in PyTorch takes: two-dimensional, by sizes or by factors. */
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <math.h>
#include <string.h>

/* ---- what is computed ---- */

typedef struct Resize {
    const char *mode, *coordinates, *nearest;
    bool antialias, exclude_outside;
    double coefficient; /* of cubic interpolation */
} Resize;

static Resize parse(Import *im, const OnnxNode *node) {
    return (Resize){
        .mode = import_string(im, node, "mode", "nearest"),
        .coordinates = import_string(im, node, "coordinate_transformation_mode", "half_pixel"),
        .nearest = import_string(im, node, "nearest_mode", "round_prefer_floor"),
        .antialias = import_int(im, node, "antialias", 0) != 0,
        .exclude_outside = import_int(im, node, "exclude_outside", 0) != 0,
        .coefficient = import_float(im, node, "cubic_coeff_a", -0.75),
    };
}

static bool is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

/* The operation; OP_COUNT when there is none. */
static Op find_op(const Resize *resize) {
    bool plain = !resize->antialias && !resize->exclude_outside;
    if (is(resize->mode, "nearest") && plain) {
        if (is(resize->coordinates, "asymmetric") && is(resize->nearest, "floor")) {
            return OP_UPSAMPLE_NEAREST;
        }
        bool exact = is(resize->nearest, "round_prefer_ceil");
        return is(resize->coordinates, "half_pixel") && exact ? OP_UPSAMPLE_NEAREST_EXACT
                                                              : OP_COUNT;
    }
    bool centred =
        is(resize->coordinates, "half_pixel") || is(resize->coordinates, "pytorch_half_pixel");
    if (!centred && !is(resize->coordinates, "align_corners")) return OP_COUNT;
    if (is(resize->mode, "linear") && plain) return OP_UPSAMPLE_BILINEAR;
    if (!is(resize->mode, "cubic")) return OP_COUNT;
    if (plain && resize->coefficient == -0.75) return OP_UPSAMPLE_BICUBIC;
    bool wide = resize->antialias && resize->exclude_outside && resize->coefficient == -0.5;
    return wide ? OP_UPSAMPLE_BICUBIC_AA : OP_COUNT;
}

/* ---- to what size ---- */

/* Which of the numbers of an input are those of height and width: from 0 when "axes" says so, from 2
 * when there is one per dimension. */
static bool first_number(Import *im, const OnnxNode *node, size_t count, size_t *out) {
    const OnnxAttr *axes = import_attr(im, node, "axes", ONNX_INTS);
    *out = axes ? 0 : 2;
    bool last = !axes || (axes->count == 2 && (axes->list[0] == 2 || axes->list[0] == -2ULL) &&
                          (axes->list[1] == 3 || axes->list[1] == -1ULL));
    if (last && count == *out + 2) return import_ok(im);
    return import_unsupported(im, "expected the last two of four dimensions to be resized");
}

/* floor(size * factor) */
static const Sym *scaled(Import *im, const Sym *size, double factor) {
    SymTable *symbols = &im->b.program->symbols;
    double inverse = 1 / factor;
    bool small = factor > 1.0 / INT32_MAX && factor < INT32_MAX;
    if (small && factor == floor(factor)) {
        return sym_mul(symbols, size, sym_const(symbols, (int64_t)factor));
    }
    if (small && inverse == floor(inverse)) {
        return sym_floordiv(symbols, size, sym_const(symbols, (int64_t)inverse));
    }
    if (small && sym_is_const(size) && size->value >= 0 && size->value <= INT32_MAX) {
        return sym_const(symbols, (int64_t)floor((double)size->value * factor));
    }
    import_unsupported(im, "the factor %g of a size that is not fixed", factor);
    return size;
}

/* Sizes from constant factors. */
static bool by_factors(Import *im, const OnnxNode *node, const Value *x, const Sym **sizes,
                       Arg *factors) {
    const Recipe *recipe = import_input(node, 2)->recipe;
    float values[4];
    size_t first, count = recipe && recipe->rank == 1 ? (size_t)recipe->shape[0] : 0;
    if (!recipe || recipe->dtype != FERRY_F32 || count > 4) {
        return import_unsupported(im, "expected constant factors");
    }
    recipe_read(recipe, 0, count, values);
    if (!first_number(im, node, count, &first)) return false;
    for (size_t i = 0; i < first; i++) {
        if (values[i] != 1.0F) return import_unsupported(im, "batches or channels are resized");
    }
    for (size_t i = 0; i < 2; i++) {
        double factor = (double)values[first + i];
        sizes[i] = scaled(im, x->shape[i + 2], factor);
        factors[i] = arg_float(factor);
    }
    return import_ok(im);
}

static bool by_sizes(Import *im, const OnnxNode *node, const Value *x, const Sym **sizes) {
    const Known *known = import_sizes(im, node, 3);
    size_t first;
    if (!known || !first_number(im, node, known->count, &first)) return false;
    for (size_t i = 0; i < first; i++) {
        if (known->items[i] == x->shape[i]) continue;
        return import_unsupported(im, "batches or channels are resized");
    }
    for (size_t i = 0; i < 2; i++) {
        sizes[i] = known->items[first + i];
        if (!sizes[i]) return import_bad(im, "a size is negative");
    }
    return true;
}

/* PyTorch's half pixels differ from ONNX's name for them where the result is one pixel. */
static bool is_one_pixel(const Resize *resize, const Sym *size) {
    return is(resize->coordinates, "pytorch_half_pixel") &&
           (!sym_is_const(size) ? size->lower <= 1 : size->value == 1);
}

void import_resize(Import *im, const OnnxNode *node, Op op, const Sym **sizes, bool corners) {
    Value *x = import_tensor(im, node, 0);
    Arg factors[2] = {arg_none(), arg_none()};
    if (!import_ok(im)) return;
    const OnnxValue *scales = import_input(node, 2);
    bool has_factors = scales && scales->recipe && recipe_count(scales->recipe) > 0;
    if (x->rank != 4 || (!has_factors && !import_input(node, 3))) {
        import_unsupported(im, "this form of interpolation (neither sizes nor factors), or rank %u",
                           x->rank);
        return;
    }
    if (!(has_factors ? by_factors(im, node, x, sizes, factors) : by_sizes(im, node, x, sizes)))
        return;
    const Arg size = arg_syms(&im->b, sizes, 2);
    bool nearest = op == OP_UPSAMPLE_NEAREST || op == OP_UPSAMPLE_NEAREST_EXACT;
    import_give(im, node, 0,
                nearest ? import_op(im, op, arg_tensor(x), size, factors[0], factors[1])
                        : import_op(im, op, arg_tensor(x), size, arg_bool(corners), factors[0],
                                    factors[1]));
}

void read_resize(Import *im, const OnnxNode *node) {
    const Resize resize = parse(im, node);
    const Op op = find_op(&resize);
    const Sym *sizes[2];
    if (!import_ok(im)) return;
    if (op == OP_COUNT) {
        import_unsupported(im, "this form of interpolation (%s, %s, %s)", resize.mode,
                           resize.coordinates, resize.nearest);
        return;
    }
    import_resize(im, node, op, sizes, is(resize.coordinates, "align_corners"));
    if (!import_ok(im)) return;
    if (op != OP_UPSAMPLE_NEAREST &&
        (is_one_pixel(&resize, sizes[0]) || is_one_pixel(&resize, sizes[1])))
        import_unsupported(im, "\"pytorch_half_pixel\" where the result may be one pixel");
}
