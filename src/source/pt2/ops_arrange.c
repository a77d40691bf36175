/* Translations of triangles, diagonals, windows and other rearrangements. */
#include "source/pt2/reader.h"

#include <string.h>

static Value *numbers(Call *c, const Sym *count) {
    return build_arange(c->b, build_const(c->b, 0), count, FERRY_I64);
}

static Value *plus(Call *c, Value *x, const Sym *sym) {
    if (sym_is_value(sym, 0)) return x;
    return build_op(c->b, OP_ADD_SCALAR, (const Arg[]){arg_tensor(x), arg_sym(sym)}, 2);
}

static Value *select_along(Call *c, Value *x, uint32_t dim, Value *index) {
    const Arg args[] = {arg_tensor(x), arg_int(c->b, dim), arg_tensor(index)};
    return build_op(c->b, OP_INDEX_SELECT, args, 3);
}

/* ---- triangles and diagonals ---- */

/* bool [rows, columns]: how column j compares with row i + offset. */
static Value *compare_places(Call *c, Op op, const Sym *rows, const Sym *columns, int64_t offset) {
    Value *down = build_unsqueeze(c->b, plus(c, numbers(c, rows), build_const(c->b, offset)), 1);
    return build_binary(c->b, op, build_unsqueeze(c->b, numbers(c, columns), 0), down);
}

static void translate_triangle(Call *c) {
    Value *self = take_self(c);
    bool lower = strcmp(c->how->target, "aten.tril.default") == 0;
    if (!build_ok(c->b) || self->rank < 2) return;
    Value *kept = compare_places(c, lower ? OP_LE : OP_GE, self->shape[self->rank - 2],
                                 self->shape[self->rank - 1], take_int(c, "diagonal", 0));
    Value *zero = build_full(c->b, NULL, 0, 0, self->dtype);
    result_set(c, 0, build_where(c->b, kept, self, zero));
}

static void translate_eye(Call *c) {
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b) || meta.rank != 2) return;
    Value *equal = compare_places(c, OP_EQ, meta.sizes[0], meta.sizes[1], 0);
    result_set(c, 0, promote_to(c, equal, meta.dtype));
}

/* A vector on the diagonal of a matrix of zeros. */
static void translate_diag_embed(Call *c) {
    Value *self = take_self(c);
    TensorMeta meta = result_meta(c, 0);
    int64_t offset = take_int(c, take_has(c, "diagonal") ? "diagonal" : "offset", 0);
    if (!build_ok(c->b) || meta.rank < 2) return;
    if (take_int(c, "dim1", -2) != -2 || take_int(c, "dim2", -1) != -1) {
        take_fail(c, FERRY_UNSUPPORTED, "only the last two dimensions are supported");
        return;
    }
    const Sym *rows = meta.sizes[meta.rank - 2], *columns = meta.sizes[meta.rank - 1];
    Value *here = compare_places(c, OP_EQ, rows, columns, offset);
    const Sym *length = build_dim(c->b, self, -1);
    Value *place = plus(c, numbers(c, columns), build_const(c->b, offset > 0 ? -offset : 0));
    const Sym *last = sym_sub(&c->b->program->symbols, length, build_const(c->b, 1));
    place = build_clamp(c->b, place, arg_int(c->b, 0), arg_sym(last));
    Value *spread = select_along(c, self, self->rank - 1, place);
    Value *zero = build_full(c->b, NULL, 0, 0, self->dtype);
    result_set(c, 0, build_where(c->b, here, build_unsqueeze(c->b, spread, -2), zero));
}

static void translate_diag(Call *c) {
    if (take_self(c)->rank == 1)
        translate_diag_embed(c);
    else
        translate_diagonal(c);
}

/* ---- order of elements ---- */

/* (size - 1) - [0, size) */
static void translate_flip(Call *c) {
    Value *x = take_self(c);
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = take_ints(c, "dims", dims, FERRY_MAX_RANK);
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        int64_t dim = dims[i] < 0 ? dims[i] + x->rank : dims[i];
        const Sym *size = build_dim(c->b, x, (int)dim);
        const Sym *last = sym_sub(&c->b->program->symbols, size, build_const(c->b, 1));
        Value *index = plus(c, build_unary(c->b, OP_NEG, numbers(c, size)), last);
        x = select_along(c, x, (uint32_t)dim, index);
    }
    result_set(c, 0, x);
}

/* The last `shift` elements come first. */
static Value *roll(Call *c, Value *x, int dim, const Sym *shift) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *size = build_dim(c->b, x, dim);
    const Sym *zero = build_const(c->b, 0), *cut = sym_sub(symbols, size, shift);
    if (sym_is_const(size) && size->value > 0)
        cut = sym_mod(symbols, cut, size);
    else if (sym_is_const(shift) && shift->value < 0)
        cut = sym_sub(symbols, zero, shift);
    if (sym_is_value(shift, 0) || sym_is_value(cut, 0)) return x;
    Value *parts[] = {build_slice(c->b, x, dim, cut, size), build_slice(c->b, x, dim, zero, cut)};
    return build_cat(c->b, parts, 2, dim);
}

static void translate_roll(Call *c) {
    Value *self = take_self(c), *x = self;
    const Sym *shifts[FERRY_MAX_RANK];
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = take_syms(c, "shifts", shifts, FERRY_MAX_RANK);
    uint32_t named = take_ints(c, "dims", dims, FERRY_MAX_RANK);
    if (!build_ok(c->b)) return;
    if (named == 0) {
        x = build_view(c->b, x, (const Sym *const[]){build_const(c->b, -1)}, 1);
        x = roll(c, x, 0, shifts[0]);
        result_set(c, 0, build_view(c->b, x, self->shape, self->rank));
        return;
    }
    for (uint32_t i = 0; i < count && i < named; i++) x = roll(c, x, (int)dims[i], shifts[i]);
    result_set(c, 0, x);
}

/* ---- broadcasting ---- */

enum { MAX_TENSORS = 64 };

static void translate_broadcast_tensors(Call *c) {
    Value *tensors[MAX_TENSORS];
    uint32_t count = take_tensors(c, "tensors", tensors, MAX_TENSORS);
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        TensorMeta meta = result_meta(c, i);
        result_set(c, i, build_expand(c->b, tensors[i], meta.sizes, meta.rank));
    }
}

/* Coordinates of a grid: tensor i varies along dimension i; with "xy" the first two change places. */
static void translate_meshgrid(Call *c) {
    Value *tensors[FERRY_MAX_RANK];
    uint32_t count = take_tensors(c, "tensors", tensors, FERRY_MAX_RANK);
    bool swapped = strcmp(take_string(c, "indexing", "ij"), "xy") == 0;
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        TensorMeta meta = result_meta(c, i);
        const Sym *shape[FERRY_MAX_RANK];
        uint32_t place = swapped && count > 1 && i < 2 ? 1 - i : i;
        for (uint32_t d = 0; d < count; d++) shape[d] = build_const(c->b, 1);
        shape[place] = build_const(c->b, -1);
        Value *column = build_view(c->b, tensors[i], shape, count);
        result_set(c, i, build_expand(c->b, column, meta.sizes, meta.rank));
    }
}

/* An argument of linspace as a 0-d tensor. */
static Value *take_bound(Call *c, const char *name, ferry_dtype dtype) {
    if (take_is_tensor(c, name)) return promote_to(c, take_tensor(c, name), dtype);
    return build_full(c->b, NULL, 0, take_float(c, name, 0), dtype);
}

/* start + i (end - start) / (steps - 1) */
static void translate_linspace(Call *c) {
    TensorMeta meta = result_meta(c, 0);
    int64_t steps = take_int(c, "steps", 1);
    if (!build_ok(c->b)) return;
    ferry_dtype compute = ferry_dtype_is_float(meta.dtype) ? meta.dtype : FERRY_F32;
    Value *start = take_bound(c, "start", compute), *end = take_bound(c, "end", compute);
    Value *places = build_arange(c->b, build_const(c->b, 0), build_const(c->b, steps), compute);
    Value *length = build_sub(c->b, end, start);
    if (steps > 2) length = build_scalar(c->b, OP_DIV_SCALAR, length, (double)steps - 1);
    Value *x = build_add(c->b, start, build_mul(c->b, places, length));
    result_set(c, 0, promote_to(c, x, meta.dtype));
}

/* Element i of a dimension repeats[i] times: its place is where the running total passes it. The
 * length is data-dependent. */
static void translate_repeat_interleave(Call *c) {
    bool lone = !take_is_tensor(c, "self");
    Value *repeats = promote_to(c, take_tensor(c, "repeats"), FERRY_I64);
    Value *self = lone ? NULL : take_self(c);
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b)) return;
    if (self && !take_has(c, "dim"))
        self = build_view(c->b, self, (const Sym *const[]){build_const(c->b, -1)}, 1);
    uint32_t dim = self ? take_dim(c, "dim", 0, self->rank) : 0;
    Value *ends = build_cumsum(c->b, repeats, 0);
    const Sym *total = fresh_symbol(c, meta.sizes[dim]);
    bind_symbol(c, total, build_reduce(c->b, OP_AMAX, ends, 0, false), -1);
    Value *passed = build_binary(c->b, OP_LE, build_unsqueeze(c->b, ends, 0),
                                 build_unsqueeze(c->b, numbers(c, total), 1));
    Value *place = build_reduce(c->b, OP_SUM, promote_to(c, passed, FERRY_I64), 1, false);
    result_set(c, 0, self ? select_along(c, self, dim, place) : place);
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define READ_ONLY_VIEW(target, function)                                                           \
    { target, function, OP_COUNT, ALIAS_ALWAYS, NULL }

const Translation translate_arrange[] = {
    SIMPLE("aten.tril.default", translate_triangle),
    SIMPLE("aten.triu.default", translate_triangle),
    SIMPLE("aten.eye.default", translate_eye),
    SIMPLE("aten.eye.m", translate_eye),
    SIMPLE("aten.diag_embed.default", translate_diag_embed),
    SIMPLE("aten.diag.default", translate_diag),
    SIMPLE("aten.flip.default", translate_flip),
    SIMPLE("aten.roll.default", translate_roll),
    {"aten.broadcast_tensors.default", translate_broadcast_tensors, OP_COUNT, ALIAS_ALWAYS,
     write_expanded},
    READ_ONLY_VIEW("aten.meshgrid.indexing", translate_meshgrid),
    READ_ONLY_VIEW("aten.meshgrid.default", translate_meshgrid),
    SIMPLE("aten.linspace.default", translate_linspace),
    SIMPLE("aten.repeat_interleave.Tensor", translate_repeat_interleave),
    SIMPLE("aten.repeat_interleave.self_Tensor", translate_repeat_interleave),
    {0},
};
