/* Translations of padding, resizing, sampling and of moving channels into pixels. */
#include "source/pt2/reader.h"

#include <string.h>

enum { MAX_PADS = 2 * FERRY_MAX_RANK };

/* ---- padding ---- */

/* A negative number of constant size crops; only the constant mode takes it together with others. */
static Value *crop(Call *c, Value *x, const Sym **pads, uint32_t count) {
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        if (!sym_is_const(pads[i]) || pads[i]->value >= 0) continue;
        int dim = (int)(x->rank - 1 - i / 2);
        const Sym *amount = build_const(c->b, -pads[i]->value), *size = build_dim(c->b, x, dim);
        const Sym *end = sym_sub(&c->b->program->symbols, size, amount);
        x = i % 2 ? build_slice(c->b, x, dim, build_const(c->b, 0), end)
                  : build_slice(c->b, x, dim, amount, size);
        pads[i] = build_const(c->b, 0);
    }
    return x;
}

/* The end before the beginning and the beginning after the end, one dimension after the other. */
static Value *pad_circular(Call *c, Value *x, const Sym *const *pads, uint32_t count) {
    for (uint32_t i = 0; i < count && build_ok(c->b); i += 2) {
        int dim = (int)(x->rank - 1 - i / 2);
        const Sym *size = build_dim(c->b, x, dim), *none = build_const(c->b, 0);
        Value *parts[3];
        uint32_t parts_count = 0;
        if (!sym_is_value(pads[i], 0)) {
            const Sym *start = sym_sub(&c->b->program->symbols, size, pads[i]);
            parts[parts_count++] = build_slice(c->b, x, dim, start, size);
        }
        parts[parts_count++] = x;
        if (!sym_is_value(pads[i + 1], 0))
            parts[parts_count++] = build_slice(c->b, x, dim, none, pads[i + 1]);
        if (parts_count > 1) x = build_cat(c->b, parts, parts_count, dim);
    }
    return x;
}

Value *make_pad(Call *c, Value *x, const Sym *const *pads, uint32_t count, const char *mode,
                double value) {
    const Sym *rest[MAX_PADS];
    bool nothing = true;
    if (!build_ok(c->b)) return x;
    if (count > 2 * x->rank || count % 2) {
        return take_fail(c, FERRY_BAD_FORMAT, "%u numbers do not pad a tensor of rank %u", count,
                         x->rank);
    }
    memcpy(rest, pads, count * sizeof *rest);
    if (strcmp(mode, "constant") != 0) x = crop(c, x, rest, count);
    for (uint32_t i = 0; i < count; i++) nothing = nothing && sym_is_value(rest[i], 0);
    if (nothing) return x;
    if (strcmp(mode, "circular") == 0) return pad_circular(c, x, rest, count);
    const Arg args[] = {arg_tensor(x), arg_syms(c->b, rest, count), arg_string(mode),
                        arg_float(value)};
    return build_op(c->b, OP_PAD, args, 4);
}

/* pad, constant_pad_nd, reflection_pad and replication_pad */
static void translate_pad(Call *c) {
    Value *x = take_tensor(c, "self");
    const Sym *pads[MAX_PADS];
    const char *target = c->how->target, *mode = "constant";
    uint32_t count = take_syms(c, take_has(c, "pad") ? "pad" : "padding", pads, MAX_PADS);
    if (strstr(target, "aten.reflection"))
        mode = "reflect";
    else if (strstr(target, "aten.replication"))
        mode = "replicate";
    mode = arena_string(&c->b->program->arena, take_string(c, "mode", mode));
    result_set(c, 0, make_pad(c, x, pads, count, mode, take_float(c, "value", 0)));
}

/* ---- resizing ---- */

/* Scale factors: a list, or one argument for each dimension. Those that are not given stay 0. */
static void take_scales(Call *c, uint32_t count, double *scales) {
    static const char *const names[] = {"scales_d", "scales_h", "scales_w"};
    const Doc *list = doc_get(take_arg(c, "scale_factors"), "as_floats");
    for (uint32_t i = 0; i < count; i++) {
        scales[i] = take_float(c, count == 1 ? "scales" : names[i + 3 - count], 0);
        if (list) scales[i] = doc_number(doc_item(list, i));
    }
}

static Arg scale_arg(double scale) {
    return scale > 0 ? arg_float(scale) : arg_none();
}

/* Resize the last two dimensions. */
static Value *resize(Call *c, Value *x, const Sym *const *size, const double *scales) {
    Arg args[5] = {arg_tensor(x), arg_syms(c->b, size, 2)};
    uint32_t count = 2;
    if (op_schema(c->how->op)->arg_count == 5)
        args[count++] = arg_bool(take_bool(c, "align_corners", false));
    args[count++] = scale_arg(scales[0]);
    args[count++] = scale_arg(scales[1]);
    return build_op(c->b, c->how->op, args, count);
}

/* Volumes are resized as images, then along their depth. */
static Value *resize_volume(Call *c, Value *x, const Sym *const *out, const double *scales) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *const *in = x->shape;
    const Sym *planes[] = {in[0], sym_mul(symbols, in[1], in[2]), in[3], in[4]};
    x = resize(c, build_view(c->b, x, planes, 4), out + 1, scales + 1);
    const Sym *area = sym_mul(symbols, out[1], out[2]);
    const Sym *columns[] = {in[0], in[1], in[2], area}, *size[] = {out[0], area};
    x = resize(c, build_view(c->b, x, columns, 4), size, (double[]){scales[0], 1});
    const Sym *volume[] = {in[0], in[1], out[0], out[1], out[2]};
    return build_view(c->b, x, volume, 5);
}

static void translate_upsample(Call *c) {
    Value *x = take_is_tensor(c, "input") ? take_tensor(c, "input") : take_tensor(c, "self");
    TensorMeta meta = result_meta(c, 0);
    double scales[3] = {0};
    if (!build_ok(c->b)) return;
    if (x->rank < 3 || x->rank > 5 || meta.rank != x->rank) {
        take_fail(c, FERRY_BAD_FORMAT, "expected a tensor of rank 3 to 5, found %u", x->rank);
        return;
    }
    take_scales(c, x->rank - 2, scales);
    if (x->rank == 3) {
        const Sym *size[] = {build_const(c->b, 1), meta.sizes[2]};
        x = resize(c, build_unsqueeze(c->b, x, 2), size, (double[]){1, scales[0]});
        x = build_squeeze(c->b, x, 2);
    } else if (x->rank == 4) {
        x = resize(c, x, meta.sizes + 2, scales);
    } else {
        x = resize_volume(c, x, meta.sizes + 2, scales);
    }
    result_set(c, 0, x);
}

static void translate_grid_sampler(Call *c) {
    Value *input = take_tensor(c, "input");
    if (build_ok(c->b) && input->rank == 5) {
        take_fail(c, FERRY_UNSUPPORTED, "expected images [N, C, H, W], found volumes of rank 5");
        return;
    }
    const Arg args[] = {arg_tensor(input), arg_tensor(take_tensor(c, "grid")),
                        arg_int(c->b, take_int(c, "interpolation_mode", 0)),
                        arg_int(c->b, take_int(c, "padding_mode", 0)),
                        arg_bool(take_bool(c, "align_corners", false))};
    result_set(c, 0, build_op(c->b, OP_GRID_SAMPLER, args, 5));
}

/* ---- channels and pixels ---- */

/* Split dimensions of [..., C, H, W] as `parts` says, permute, and merge to the declared result. */
static void rearrange(Call *c, Value *x, const Sym *const *parts, uint32_t count,
                      const int64_t *order) {
    const Sym *sizes[FERRY_MAX_RANK];
    int64_t dims[FERRY_MAX_RANK];
    TensorMeta meta = result_meta(c, 0);
    uint32_t outer = x->rank - 3;
    if (outer + count > FERRY_MAX_RANK) {
        take_fail(c, FERRY_UNSUPPORTED, "the rank is above %d", FERRY_MAX_RANK);
        return;
    }
    for (uint32_t d = 0; d < outer; d++) {
        sizes[d] = x->shape[d];
        dims[d] = d;
    }
    for (uint32_t d = 0; d < count; d++) {
        sizes[outer + d] = parts[d];
        dims[outer + d] = outer + order[d];
    }
    x = build_permute(c->b, build_view(c->b, x, sizes, outer + count), dims);
    result_set(c, 0, build_view(c->b, x, meta.sizes, meta.rank));
}

static Value *take_image(Call *c) {
    Value *x = take_tensor(c, "self");
    if (build_ok(c->b) && x->rank < 3)
        take_fail(c, FERRY_BAD_FORMAT, "expected a rank of 3 or more, found %u", x->rank);
    return x;
}

static void translate_pixel_shuffle(Call *c) {
    Value *x = take_image(c);
    if (!build_ok(c->b)) return;
    const Sym *r = build_const(c->b, take_int(c, "upscale_factor", 1)), *const *size = x->shape;
    size += x->rank - 3;
    SymTable *symbols = &c->b->program->symbols;
    const Sym *channels = sym_floordiv(symbols, size[0], sym_mul(symbols, r, r));
    const Sym *parts[] = {channels, r, r, size[1], size[2]};
    rearrange(c, x, parts, 5, (int64_t[]){0, 3, 1, 4, 2});
}

static void translate_pixel_unshuffle(Call *c) {
    Value *x = take_image(c);
    if (!build_ok(c->b)) return;
    const Sym *r = build_const(c->b, take_int(c, "downscale_factor", 1)), *const *size = x->shape;
    size += x->rank - 3;
    SymTable *symbols = &c->b->program->symbols;
    const Sym *parts[] = {size[0], sym_floordiv(symbols, size[1], r), r,
                          sym_floordiv(symbols, size[2], r), r};
    rearrange(c, x, parts, 5, (int64_t[]){0, 2, 4, 1, 3});
}

/* [N, groups, C / groups, ...] with the two in the middle exchanged */
static void translate_channel_shuffle(Call *c) {
    Value *x = take_image(c);
    if (!build_ok(c->b)) return;
    const Sym *groups = build_const(c->b, take_int(c, "groups", 1)), *sizes[FERRY_MAX_RANK + 1];
    if (x->rank == FERRY_MAX_RANK) {
        take_fail(c, FERRY_UNSUPPORTED, "the rank is above %d", FERRY_MAX_RANK - 1);
        return;
    }
    sizes[0] = x->shape[0];
    sizes[1] = groups;
    sizes[2] = sym_floordiv(&c->b->program->symbols, x->shape[1], groups);
    memcpy(sizes + 3, x->shape + 2, (x->rank - 2) * sizeof *sizes);
    Value *split = build_transpose(c->b, build_view(c->b, x, sizes, x->rank + 1), 1, 2);
    result_set(c, 0, build_view(c->b, split, x->shape, x->rank));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define UPSAMPLE(name, op)                                                                         \
    {"aten." name ".default", translate_upsample, op, ALIAS_NEVER, NULL}, {                        \
        "aten." name ".vec", translate_upsample, op, ALIAS_NEVER, NULL                             \
    }

const Translation translate_image[] = {
    SIMPLE("aten.pad.default", translate_pad),
    SIMPLE("aten.constant_pad_nd.default", translate_pad),
    SIMPLE("aten.reflection_pad1d.default", translate_pad),
    SIMPLE("aten.reflection_pad2d.default", translate_pad),
    SIMPLE("aten.reflection_pad3d.default", translate_pad),
    SIMPLE("aten.replication_pad1d.default", translate_pad),
    SIMPLE("aten.replication_pad2d.default", translate_pad),
    SIMPLE("aten.replication_pad3d.default", translate_pad),
    UPSAMPLE("upsample_nearest1d", OP_UPSAMPLE_NEAREST),
    UPSAMPLE("upsample_nearest2d", OP_UPSAMPLE_NEAREST),
    UPSAMPLE("upsample_nearest3d", OP_UPSAMPLE_NEAREST),
    UPSAMPLE("_upsample_nearest_exact1d", OP_UPSAMPLE_NEAREST_EXACT),
    UPSAMPLE("_upsample_nearest_exact2d", OP_UPSAMPLE_NEAREST_EXACT),
    UPSAMPLE("_upsample_nearest_exact3d", OP_UPSAMPLE_NEAREST_EXACT),
    UPSAMPLE("upsample_linear1d", OP_UPSAMPLE_BILINEAR),
    UPSAMPLE("upsample_bilinear2d", OP_UPSAMPLE_BILINEAR),
    UPSAMPLE("upsample_trilinear3d", OP_UPSAMPLE_BILINEAR),
    UPSAMPLE("upsample_bicubic2d", OP_UPSAMPLE_BICUBIC),
    UPSAMPLE("_upsample_bilinear2d_aa", OP_UPSAMPLE_BILINEAR_AA),
    UPSAMPLE("_upsample_bicubic2d_aa", OP_UPSAMPLE_BICUBIC_AA),
    SIMPLE("aten.grid_sampler.default", translate_grid_sampler),
    SIMPLE("aten.grid_sampler_2d.default", translate_grid_sampler),
    SIMPLE("aten.pixel_shuffle.default", translate_pixel_shuffle),
    SIMPLE("aten.pixel_unshuffle.default", translate_pixel_unshuffle),
    SIMPLE("aten.channel_shuffle.default", translate_channel_shuffle),
    SIMPLE("aten.native_channel_shuffle.default", translate_channel_shuffle),
    {0},
};
