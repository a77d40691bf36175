/* Translations of pooling: one and three dimensions become two, adaptive windows fixed ones where the
 * sizes allow it. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* The numbers of a pool, one per spatial dimension. */
typedef struct Pool {
    uint32_t count;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    bool ceil, count_pads;
} Pool;

/* One more dimension in front, for a tensor without batch. */
static Value *as_batch(Call *c, Value *x, uint32_t spatial) {
    if (!build_ok(c->b)) return x;
    if (x->rank == spatial + 1) return build_unsqueeze(c->b, x, 0);
    if (x->rank == spatial + 2) return x;
    return take_fail(c, FERRY_BAD_FORMAT, "unsuitable rank %u", x->rank);
}

/* Pool an image with the numbers at `rows` and `columns`; -1: nothing happens along that one. */
static Value *pool_image(Call *c, Value *x, Op op, const Pool *p, int rows, int columns) {
    int64_t lists[4][2];
    const int place[] = {rows, columns};
    for (int i = 0; i < 2; i++) {
        int from = place[i];
        lists[0][i] = from < 0 ? 1 : p->kernel[from];
        lists[1][i] = from < 0 ? 1 : p->stride[from];
        lists[2][i] = from < 0 ? 0 : p->padding[from];
        lists[3][i] = from < 0 ? 1 : p->dilation[from];
    }
    Arg args[6] = {arg_tensor(x), arg_ints(c->b, lists[0], 2), arg_ints(c->b, lists[1], 2),
                   arg_ints(c->b, lists[2], 2)};
    uint32_t count = 4;
    if (op == OP_MAX_POOL) args[count++] = arg_ints(c->b, lists[3], 2);
    args[count++] = arg_bool(p->ceil);
    if (op == OP_AVG_POOL) args[count++] = arg_bool(p->count_pads);
    return build_op(c->b, op, args, count);
}

/* A volume is pooled as images, then along its depth: windows are products of ranges. */
static Value *pool_volume(Call *c, Value *x, Op op, const Pool *p) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *const *in = x->shape;
    const Sym *planes[] = {in[0], sym_mul(symbols, in[1], in[2]), in[3], in[4]};
    Value *image = pool_image(c, build_view(c->b, x, planes, 4), op, p, 1, 2);
    if (!build_ok(c->b)) return image;
    const Sym *rows = image->shape[2], *columns = image->shape[3];
    const Sym *depths[] = {in[0], in[1], in[2], sym_mul(symbols, rows, columns)};
    Value *pooled = pool_image(c, build_view(c->b, image, depths, 4), op, p, 0, -1);
    if (!build_ok(c->b)) return pooled;
    const Sym *volume[] = {in[0], in[1], pooled->shape[2], rows, columns};
    return build_view(c->b, pooled, volume, 5);
}

/* Pool a tensor with batch and channels. */
static Value *pool(Call *c, Value *x, Op op, const Pool *p) {
    if (p->count == 1) {
        Value *image = pool_image(c, build_unsqueeze(c->b, x, 2), op, p, -1, 0);
        return build_squeeze(c->b, image, 2);
    }
    return p->count == 2 ? pool_image(c, x, op, p, 0, 1) : pool_volume(c, x, op, p);
}

/* The digit in the name: aten.max_pool2d.default. */
static uint32_t spatial_dimensions(const Call *c) {
    return (uint32_t)(strstr(c->how->target, "pool")[4] - '0');
}

static Pool take_pool(Call *c) {
    Pool p = {.count = spatial_dimensions(c), .ceil = take_bool(c, "ceil_mode", false)};
    take_spatial(c, "kernel_size", 1, p.count, p.kernel);
    take_spatial(c, "padding", 0, p.count, p.padding);
    take_spatial(c, "dilation", 1, p.count, p.dilation);
    int64_t given[3];
    bool has_stride = take_has(c, "stride") && take_ints(c, "stride", given, 3) > 0;
    if (has_stride)
        take_spatial(c, "stride", 1, p.count, p.stride);
    else
        memcpy(p.stride, p.kernel, sizeof p.stride);
    p.count_pads = take_bool(c, "count_include_pad", true);
    return p;
}

/* ---- maxima ---- */

/* int64 [positions * taps]: where each tap of each window looks along a dimension, in the padded
 * input. */
static Value *window_places(Call *c, const Pool *p, uint32_t i, const Sym *positions) {
    const Sym *none = build_const(c->b, 0), *flat = build_const(c->b, -1);
    Value *starts = build_arange(c->b, none, positions, FERRY_I64);
    Value *taps = build_arange(c->b, none, build_const(c->b, p->kernel[i]), FERRY_I64);
    starts = build_scalar(c->b, OP_MUL_SCALAR, starts, (double)p->stride[i]);
    taps = build_scalar(c->b, OP_MUL_SCALAR, taps, (double)p->dilation[i]);
    Value *places =
        build_add(c->b, build_unsqueeze(c->b, starts, 1), build_unsqueeze(c->b, taps, 0));
    return build_view(c->b, places, &flat, 1);
}

static Value *index_select(Call *c, Value *x, int64_t dim, Value *places) {
    const Arg args[] = {arg_tensor(x), arg_int(c->b, dim), arg_tensor(places)};
    return build_op(c->b, OP_INDEX_SELECT, args, 3);
}

/* The windows of [N, C, rows, columns] as [N, C, positions.., taps]. */
static Value *windows(Call *c, Value *x, const Pool *p, Value *rows, Value *columns,
                      const Sym *const *out) {
    x = index_select(c, index_select(c, x, 2, rows), 3, columns);
    if (!build_ok(c->b)) return x;
    const Sym *split[] = {x->shape[0], x->shape[1],
                          out[0],      build_const(c->b, p->kernel[0]),
                          out[1],      build_const(c->b, p->kernel[1])};
    x = build_permute(c->b, build_view(c->b, x, split, 6), (int64_t[]){0, 1, 2, 4, 3, 5});
    const Sym *joined[] = {split[0], split[1], out[0], out[1],
                           build_const(c->b, p->kernel[0] * p->kernel[1])};
    return build_view(c->b, x, joined, 5);
}

/* Where in its plane each maximum is. */
static Value *maximum_places(Call *c, Value *x, const Pool *p, const Sym *const *out) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *pads[4], *width = build_dim(c->b, x, 3), *one = build_const(c->b, 1);
    Value *places[2], *plane[2];
    for (uint32_t i = 0; i < 2 && build_ok(c->b); i++) {
        /* As far as the last window reaches. */
        const Sym *end =
            sym_mul(symbols, sym_sub(symbols, out[i], one), build_const(c->b, p->stride[i]));
        int64_t reach = p->dilation[i] * (p->kernel[i] - 1) + 1 - p->padding[i];
        end = sym_sub(symbols, sym_add(symbols, end, build_const(c->b, reach)), x->shape[i + 2]);
        pads[2 * (1 - i)] = build_const(c->b, p->padding[i]);
        pads[2 * (1 - i) + 1] = end;
        places[i] = window_places(c, p, i, out[i]);
        plane[i] = build_scalar(c->b, OP_ADD_SCALAR, places[i], -(double)p->padding[i]);
    }
    Value *taps =
        windows(c, make_pad(c, x, pads, 4, "constant", -INFINITY), p, places[0], places[1], out);
    const Arg rows[] = {arg_tensor(plane[0]), arg_sym(width)};
    Value *flat = build_add(c->b, build_unsqueeze(c->b, build_op(c->b, OP_MUL_SCALAR, rows, 2), 1),
                            build_unsqueeze(c->b, plane[1], 0));
    const Sym *image[] = {one, one, build_dim(c->b, flat, 0), build_dim(c->b, flat, 1)};
    flat = build_view(c->b, flat, image, 4);
    const Sym *split[] = {
        one, one, out[0], build_const(c->b, p->kernel[0]), out[1], build_const(c->b, p->kernel[1])};
    flat = build_permute(c->b, build_view(c->b, flat, split, 6), (int64_t[]){0, 1, 2, 4, 3, 5});
    if (!build_ok(c->b)) return x;
    const Sym *joined[] = {one, one, out[0], out[1], taps->shape[4]};
    flat = build_expand(c->b, build_view(c->b, flat, joined, 5), taps->shape, 5);
    Value *best = build_reduce(c->b, OP_ARGMAX, taps, -1, true);
    return build_squeeze(c->b, build_gather(c->b, flat, 4, best), 4);
}

/* Both results of a pool that also says where its maxima are. */
static void set_maxima(Call *c, Value *x, const Pool *p) {
    bool single = x->rank == p->count + 1;
    x = as_batch(c, x, p->count);
    Value *result = pool(c, x, OP_MAX_POOL, p);
    if (!build_ok(c->b)) return;
    result_set(c, 0, single ? build_squeeze(c->b, result, 0) : result);
    if (result_count(c) == 1 || p->count == 3) return;
    Pool image = *p;
    const Sym *out[2] = {build_const(c->b, 1), result->shape[result->rank - 1]};
    if (p->count == 1) {
        image = (Pool){.kernel = {1, p->kernel[0]},
                       .stride = {1, p->stride[0]},
                       .padding = {0, p->padding[0]},
                       .dilation = {1, p->dilation[0]}};
        x = build_unsqueeze(c->b, x, 2);
    } else {
        out[0] = result->shape[2];
    }
    Value *places = maximum_places(c, x, &image, out);
    if (p->count == 1) places = build_squeeze(c->b, places, 2);
    result_set(c, 1, single ? build_squeeze(c->b, places, 0) : places);
}

static void translate_max_pool(Call *c) {
    Value *x = take_tensor(c, "self");
    Pool p = take_pool(c);
    set_maxima(c, x, &p);
}

/* ---- averages ---- */

/* With a divisor of its own a window sums zeros where it reaches beyond the input. */
static Value *pad_windows(Call *c, Value *x, Pool *p, const Sym *const *out) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *pads[6];
    for (uint32_t i = 0; i < p->count; i++) {
        const Sym *one = build_const(c->b, 1), *stride = build_const(c->b, p->stride[i]);
        const Sym *end = sym_mul(symbols, sym_sub(symbols, out[i], one), stride);
        end = sym_add(symbols, end, build_const(c->b, p->kernel[i] - p->padding[i]));
        uint32_t at = 2 * (p->count - 1 - i);
        pads[at] = build_const(c->b, p->padding[i]);
        pads[at + 1] = sym_sub(symbols, end, x->shape[i + 2]);
        p->padding[i] = 0;
    }
    p->ceil = false;
    p->count_pads = true;
    return make_pad(c, x, pads, 2 * p->count, "constant", 0);
}

static void translate_avg_pool(Call *c) {
    Pool p = take_pool(c);
    Value *self = take_tensor(c, "self"), *x = as_batch(c, self, p.count);
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b)) return;
    double factor = 1;
    if (take_has(c, "divisor_override")) {
        for (uint32_t i = 0; i < p.count; i++) factor *= (double)p.kernel[i];
        factor /= (double)take_int(c, "divisor_override", 1);
        x = pad_windows(c, x, &p, meta.sizes + meta.rank - p.count);
    }
    Value *result = pool(c, x, OP_AVG_POOL, &p);
    if (factor != 1) result = build_scalar(c->b, OP_MUL_SCALAR, result, factor);
    result_set(c, 0, self->rank == p.count + 1 ? build_squeeze(c->b, result, 0) : result);
}

/* ---- adaptive windows ---- */

/* The windows are equal and lie side by side. */
static bool adaptive_windows(const Value *x, const Sym *const *out, uint32_t count, Pool *p) {
    *p = (Pool){.count = count, .dilation = {1, 1, 1}};
    for (uint32_t i = 0; i < count; i++) {
        const Sym *in = x->shape[x->rank - count + i];
        if (!sym_is_const(in) || !sym_is_const(out[i]) || out[i]->value < 1) return false;
        if (in->value % out[i]->value != 0) return false;
        p->kernel[i] = p->stride[i] = in->value / out[i]->value;
    }
    return true;
}

/* bool [out, in]: which elements window i has, from floor(i in / out) to ceil((i + 1) in / out). */
static Value *adaptive_mask(Call *c, const Sym *in, const Sym *out) {
    const Sym *none = build_const(c->b, 0);
    Value *windows_column = build_unsqueeze(c->b, build_arange(c->b, none, out, FERRY_I64), 1);
    Value *row = build_unsqueeze(c->b, build_arange(c->b, none, in, FERRY_I64), 0);
    const Arg wide[] = {arg_tensor(row), arg_sym(out)};
    Value *place = build_op(c->b, OP_MUL_SCALAR, wide, 2); /* j out */
    const Arg times[] = {arg_tensor(windows_column), arg_sym(in)};
    Value *start = build_op(c->b, OP_MUL_SCALAR, times, 2); /* i in */
    const Arg one_more[] = {arg_tensor(start), arg_sym(in)},
              next[] = {arg_tensor(place), arg_sym(out)};
    Value *before = build_binary(c->b, OP_LT, place, build_op(c->b, OP_ADD_SCALAR, one_more, 2));
    Value *after = build_binary(c->b, OP_GT, build_op(c->b, OP_ADD_SCALAR, next, 2), start);
    return build_binary(c->b, OP_AND, before, after);
}

/* Average or maximum over the adaptive windows of one dimension. */
static Value *adapt_dimension(Call *c, Value *x, int dim, const Sym *out, bool average) {
    const Sym *in = build_dim(c->b, x, dim);
    if (sym_is_value(out, 1)) {
        return build_reduce(c->b, average ? OP_MEAN : OP_AMAX, x, dim, true);
    }
    Value *mask = adaptive_mask(c, in, out), *moved = build_transpose(c->b, x, dim, -1);
    if (average) {
        Value *weight = build_to(c->b, mask, x->dtype);
        weight = build_binary(c->b, OP_DIV, weight, build_reduce(c->b, OP_SUM, weight, 1, true));
        moved = build_matmul(c->b, moved, build_transpose(c->b, weight, 0, 1));
    } else {
        Value *lowest = build_full(c->b, NULL, 0, -INFINITY, x->dtype);
        moved = build_where(c->b, mask, build_unsqueeze(c->b, moved, -2), lowest);
        moved = build_reduce(c->b, OP_AMAX, moved, -1, false);
    }
    return build_transpose(c->b, moved, dim, -1);
}

/* Where in its plane the maximum of each window is. */
static Value *adaptive_places(Call *c, Value *x, const Sym *const *out, uint32_t count) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *one = build_const(c->b, 1), *sizes[FERRY_MAX_RANK], *flat[FERRY_MAX_RANK];
    uint32_t outer = x->rank - count;
    const Sym *const *in = x->shape + outer, *area = shape_count(symbols, count, in);
    Value *mask = NULL;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t d = 0; d < count; d++) {
            sizes[d] = d == i ? out[d] : one;
            sizes[count + d] = d == i ? in[d] : one;
        }
        Value *part = build_view(c->b, adaptive_mask(c, in[i], out[i]), sizes, 2 * count);
        mask = mask ? build_binary(c->b, OP_AND, mask, part) : part;
    }
    memcpy(flat, x->shape, outer * sizeof *flat);
    for (uint32_t d = 0; d < count; d++) {
        sizes[d] = out[d];
        flat[outer + d] = one;
    }
    sizes[count] = flat[outer + count] = area;
    mask = build_view(c->b, mask, sizes, count + 1);
    x = build_view(c->b, x, flat, outer + count + 1);
    Value *lowest = build_full(c->b, NULL, 0, -INFINITY, x->dtype);
    return build_reduce(c->b, OP_ARGMAX, build_where(c->b, mask, x, lowest), -1, false);
}

static void translate_adaptive_pool(Call *c) {
    Value *x = take_tensor(c, "self");
    uint32_t count = spatial_dimensions(c);
    TensorMeta meta = result_meta(c, 0);
    bool average = strstr(c->how->target, "avg") != NULL;
    Pool p;
    if (!build_ok(c->b) || meta.rank != x->rank || meta.rank <= count) return;
    const Sym *const *out = meta.sizes + meta.rank - count;
    if (!average && adaptive_windows(x, out, count, &p)) {
        set_maxima(c, x, &p);
        return;
    }
    bool whole = true;
    for (uint32_t i = 0; i < count; i++) whole = whole && sym_is_value(out[i], 1);
    if (average && !whole && adaptive_windows(x, out, count, &p)) {
        Value *result = pool(c, as_batch(c, x, count), OP_AVG_POOL, &p);
        result_set(c, 0, x->rank == count + 1 ? build_squeeze(c->b, result, 0) : result);
        return;
    }
    if (result_count(c) > 1) result_set(c, 1, adaptive_places(c, x, out, count));
    for (uint32_t i = 0; i < count; i++)
        x = adapt_dimension(c, x, (int)(meta.rank - count + i), out[i], average);
    result_set(c, 0, x);
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_pool[] = {
    SIMPLE("aten.max_pool1d.default", translate_max_pool),
    SIMPLE("aten.max_pool2d.default", translate_max_pool),
    SIMPLE("aten.max_pool3d.default", translate_max_pool),
    SIMPLE("aten.max_pool1d_with_indices.default", translate_max_pool),
    SIMPLE("aten.max_pool2d_with_indices.default", translate_max_pool),
    SIMPLE("aten.max_pool3d_with_indices.default", translate_max_pool),
    SIMPLE("aten.avg_pool1d.default", translate_avg_pool),
    SIMPLE("aten.avg_pool2d.default", translate_avg_pool),
    SIMPLE("aten.avg_pool3d.default", translate_avg_pool),
    SIMPLE("aten.adaptive_avg_pool1d.default", translate_adaptive_pool),
    SIMPLE("aten.adaptive_avg_pool2d.default", translate_adaptive_pool),
    SIMPLE("aten.adaptive_avg_pool3d.default", translate_adaptive_pool),
    SIMPLE("aten._adaptive_avg_pool2d.default", translate_adaptive_pool),
    SIMPLE("aten._adaptive_avg_pool3d.default", translate_adaptive_pool),
    SIMPLE("aten.adaptive_max_pool1d.default", translate_adaptive_pool),
    SIMPLE("aten.adaptive_max_pool2d.default", translate_adaptive_pool),
    SIMPLE("aten.adaptive_max_pool3d.default", translate_adaptive_pool),
    {0},
};
