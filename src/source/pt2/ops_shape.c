/* Translations of views and of operations that rearrange elements, with the way back of a write
 * through each view. */
#include "source/pt2/reader.h"

#include <string.h>

/* ---- views that keep the order of elements ---- */

/* Such a view is undone by viewing as the base. */
static Value *write_reshaped(Call *c, Value *base, Value *updated, uint32_t index) {
    (void)index;
    return build_view(c->b, updated, base->shape, base->rank);
}

/* view and reshape. A size of -1 is what the file declares, which is simpler than a quotient. */
static void translate_view(Call *c) {
    const Sym *size[FERRY_MAX_RANK];
    TensorMeta meta = result_meta(c, 0);
    uint32_t rank = take_syms(c, "size", size, FERRY_MAX_RANK);
    if (rank == 0) rank = take_syms(c, "shape", size, FERRY_MAX_RANK);
    for (uint32_t d = 0; d < rank && rank == meta.rank; d++) {
        if (sym_is_value(size[d], -1)) size[d] = meta.sizes[d];
    }
    result_set(c, 0, build_view(c->b, take_self(c), size, rank));
}

static void translate_view_as(Call *c) {
    Value *other = take_tensor(c, "other");
    result_set(c, 0, build_view(c->b, take_self(c), other->shape, other->rank));
}

static void translate_flatten(Call *c) {
    Value *self = take_self(c);
    const Sym *size[FERRY_MAX_RANK];
    uint32_t first = take_dim(c, "start_dim", 0, self->rank),
             last = take_dim(c, "end_dim", -1, self->rank);
    uint32_t rank = 0;
    if (!build_ok(c->b)) return;
    if (self->rank == 0) {
        size[rank++] = build_const(c->b, 1);
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d <= first || d > last)
            size[rank++] = self->shape[d];
        else
            size[rank - 1] = sym_mul(&c->b->program->symbols, size[rank - 1], self->shape[d]);
    }
    result_set(c, 0, build_view(c->b, self, size, rank));
}

static void translate_unflatten(Call *c) {
    Value *self = take_self(c);
    const Sym *parts[FERRY_MAX_RANK], *size[FERRY_MAX_RANK];
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    uint32_t count = take_syms(c, "sizes", parts, FERRY_MAX_RANK), rank = 0;
    SymTable *symbols = &c->b->program->symbols;
    const Sym *known = build_const(c->b, 1);
    if (self->rank + count > FERRY_MAX_RANK + 1) {
        take_fail(c, FERRY_UNSUPPORTED, "the rank is above %d", FERRY_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!sym_is_value(parts[i], -1)) known = sym_mul(symbols, known, parts[i]);
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d != dim) size[rank++] = self->shape[d];
        for (uint32_t i = 0; d == dim && i < count; i++) {
            size[rank++] = sym_is_value(parts[i], -1) ? sym_floordiv(symbols, self->shape[d], known)
                                                      : parts[i];
        }
    }
    result_set(c, 0, build_view(c->b, self, size, rank));
}

/* ravel, atleast_2d and the like: the file says what becomes of the sizes. */
static void translate_declared(Call *c) {
    Value *self = take_self(c);
    TensorMeta meta = result_meta(c, 0);
    result_set(c, 0, build_view(c->b, self, meta.sizes, meta.rank));
}

static void translate_unsqueeze(Call *c) {
    Value *self = take_self(c);
    result_set(c, 0, build_unsqueeze(c->b, self, (int)take_int(c, "dim", 0)));
}

/* Every dimension in `drop` whose size is 1 goes. */
static Value *squeeze_dims(Call *c, Value *self, unsigned drop) {
    const Sym *size[FERRY_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (!(drop >> d & 1) || !sym_is_value(self->shape[d], 1)) size[rank++] = self->shape[d];
    }
    return rank == self->rank ? self : build_view(c->b, self, size, rank);
}

static void translate_squeeze(Call *c) {
    Value *self = take_self(c);
    int64_t dims[FERRY_MAX_RANK];
    unsigned drop = 0;
    uint32_t count = take_ints(c, "dim", dims, FERRY_MAX_RANK);
    for (uint32_t i = 0; i < count; i++) {
        int64_t dim = dims[i] < 0 ? dims[i] + self->rank : dims[i];
        if (dim >= 0 && dim < FERRY_MAX_RANK) drop |= 1u << dim;
    }
    if (!take_has(c, "dim")) drop = ~0u;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (drop != 1u << d || !sym_is_value(self->shape[d], 1)) continue;
        result_set(c, 0, build_squeeze(c->b, self, (int)d));
        return;
    }
    result_set(c, 0, squeeze_dims(c, self, drop));
}

/* ---- broadcasting and joining ---- */

void check_overlap(Call *c) {
    if (c->r->fills) return;
    reader_fail(c->r, FERRY_UNSUPPORTED,
                "writes through %s, which shows some elements more than once: what is left is not "
                "defined",
                c->how->target);
}

/* Elements that are shown more than once were all given one number: the first will do. */
Value *write_expanded(Call *c, Value *base, Value *updated, uint32_t index) {
    (void)index;
    if (!build_ok(c->b)) return base;
    bool repeated = false;
    while (updated->rank > base->rank && build_ok(c->b)) {
        repeated |= !sym_is_value(updated->shape[0], 1);
        updated = build_select(c->b, updated, 0, 0);
    }
    for (uint32_t d = 0; d < base->rank && build_ok(c->b); d++) {
        if (!sym_is_value(base->shape[d], 1) || sym_is_value(updated->shape[d], 1)) continue;
        repeated = true;
        updated = build_slice(c->b, updated, (int)d, build_const(c->b, 0), build_const(c->b, 1));
    }
    if (repeated) check_overlap(c);
    return updated;
}

static void translate_expand(Call *c) {
    Value *self = take_self(c);
    const Sym *size[FERRY_MAX_RANK];
    uint32_t rank = take_syms(c, "size", size, FERRY_MAX_RANK);
    for (uint32_t d = 0; d < rank && build_ok(c->b); d++) {
        bool keep = sym_is_value(size[d], -1) && d + self->rank >= rank;
        if (keep) size[d] = self->shape[d - (rank - self->rank)];
    }
    result_set(c, 0, build_expand(c->b, self, size, rank));
}

static void translate_expand_as(Call *c) {
    Value *other = take_tensor(c, "other");
    result_set(c, 0, build_expand(c->b, take_self(c), other->shape, other->rank));
}

enum { MAX_PARTS = 256 };

static bool is_legacy_empty(const Value *value) {
    return value->rank == 1 && sym_is_value(value->shape[0], 0);
}

/* cat skips one-dimensional empty tensors, whatever the rank of the others. */
static void translate_cat(Call *c) {
    Value *parts[MAX_PARTS];
    uint32_t count = take_tensors(c, "tensors", parts, MAX_PARTS), kept = 0;
    ferry_dtype dtype = result_dtype(c);
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b)) return;
    for (uint32_t i = 0; i < count; i++) {
        bool skipped = is_legacy_empty(parts[i]) && (meta.rank != 1 || count > 1);
        if (!skipped) parts[kept++] = promote_to(c, parts[i], dtype);
    }
    uint32_t dim = take_dim(c, "dim", 0, meta.rank);
    if (kept == 0)
        take_fail(c, FERRY_UNSUPPORTED, "cat of empty tensors alone");
    else
        result_set(c, 0, kept == 1 ? parts[0] : build_cat(c->b, parts, kept, (int)dim));
}

static void translate_stack(Call *c) {
    Value *parts[MAX_PARTS];
    uint32_t count = take_tensors(c, "tensors", parts, MAX_PARTS);
    TensorMeta meta = result_meta(c, 0);
    uint32_t dim = take_dim(c, "dim", 0, meta.rank);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = build_unsqueeze(c->b, promote_to(c, parts[i], meta.dtype), (int)dim);
    }
    if (count) result_set(c, 0, count == 1 ? parts[0] : build_cat(c->b, parts, count, (int)dim));
}

/* repeat, tile: [r0, r1, ..] copies along each dimension: a new dimension before it, expanded. */
static void translate_repeat(Call *c) {
    Value *x = take_self(c);
    const Sym *repeats[FERRY_MAX_RANK], *size[FERRY_MAX_RANK];
    const char *name = take_has(c, "dims") ? "dims" : "repeats";
    uint32_t rank = take_syms(c, name, repeats, FERRY_MAX_RANK);
    if (!build_ok(c->b)) return;
    if (rank < x->rank) { /* tile: the last dimensions are meant */
        memmove(repeats + x->rank - rank, repeats, rank * sizeof *repeats);
        for (uint32_t d = 0; d < x->rank - rank; d++) repeats[d] = build_const(c->b, 1);
        rank = x->rank;
    }
    for (uint32_t d = 0; d < rank; d++) {
        size[d] = d + x->rank < rank ? build_const(c->b, 1) : x->shape[d - (rank - x->rank)];
    }
    if (x->rank != rank) x = build_view(c->b, x, size, rank);
    for (uint32_t d = rank; d-- > 0 && build_ok(c->b);) {
        const Sym *wide[FERRY_MAX_RANK];
        if (sym_is_value(repeats[d], 1)) continue;
        if (sym_is_value(x->shape[d], 1)) {
            memcpy(wide, x->shape, rank * sizeof *wide);
            wide[d] = repeats[d];
            x = build_expand(c->b, x, wide, rank);
            continue;
        }
        Value *column = build_unsqueeze(c->b, x, (int)d);
        if (!build_ok(c->b)) return;
        memcpy(wide, column->shape, column->rank * sizeof *wide);
        wide[d] = repeats[d];
        column = build_expand(c->b, column, wide, column->rank);
        memcpy(wide, x->shape, rank * sizeof *wide);
        wide[d] = sym_mul(&c->b->program->symbols, wide[d], repeats[d]);
        x = build_view(c->b, column, wide, rank);
    }
    result_set(c, 0, x);
}

/* Every element `repeats` times in a row. */
static void translate_repeat_interleave(Call *c) {
    Value *x = take_self(c);
    const Sym *repeats = take_sym(c, "repeats", 1), *wide[FERRY_MAX_RANK];
    if (!take_has(c, "dim"))
        x = build_view(c->b, x, (const Sym *const[]){build_const(c->b, -1)}, 1);
    uint32_t dim = take_dim(c, "dim", 0, x->rank);
    Value *column = build_unsqueeze(c->b, x, (int)dim + 1);
    if (!build_ok(c->b)) return;
    memcpy(wide, column->shape, column->rank * sizeof *wide);
    wide[dim + 1] = repeats;
    column = build_expand(c->b, column, wide, column->rank);
    memcpy(wide, x->shape, x->rank * sizeof *wide);
    wide[dim] = sym_mul(&c->b->program->symbols, wide[dim], repeats);
    result_set(c, 0, build_view(c->b, column, wide, x->rank));
}

#define RESHAPE(target, function)                                                                  \
    { target, function, OP_COUNT, ALIAS_ALWAYS, write_reshaped }
#define DENSE_RESHAPE(target, function)                                                            \
    { target, function, OP_COUNT, ALIAS_RESHAPE, write_reshaped }
#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define EXPANSION(target, function)                                                                \
    { target, function, OP_COUNT, ALIAS_ALWAYS, write_expanded }

const Translation translate_shape[] = {
    RESHAPE("aten.view.default", translate_view),
    RESHAPE("aten._unsafe_view.default", translate_view),
    DENSE_RESHAPE("aten.reshape.default", translate_view),
    DENSE_RESHAPE("aten.reshape_as.default", translate_view_as),
    RESHAPE("aten.view_as.default", translate_view_as),
    DENSE_RESHAPE("aten.flatten.using_ints", translate_flatten),
    DENSE_RESHAPE("aten.ravel.default", translate_declared),
    RESHAPE("aten.atleast_1d.default", translate_declared),
    RESHAPE("aten.atleast_2d.default", translate_declared),
    RESHAPE("aten.atleast_3d.default", translate_declared),
    RESHAPE("aten.unflatten.int", translate_unflatten),
    RESHAPE("aten.unsqueeze.default", translate_unsqueeze),
    RESHAPE("aten.squeeze.dim", translate_squeeze),
    RESHAPE("aten.squeeze.dims", translate_squeeze),
    RESHAPE("aten.squeeze.default", translate_squeeze),
    EXPANSION("aten.expand.default", translate_expand),
    EXPANSION("aten.expand_as.default", translate_expand_as),
    EXPANSION("aten.broadcast_to.default", translate_expand),
    SIMPLE("aten.cat.default", translate_cat),
    SIMPLE("aten.concat.default", translate_cat),
    SIMPLE("aten.stack.default", translate_stack),
    SIMPLE("aten.repeat.default", translate_repeat),
    SIMPLE("aten.tile.default", translate_repeat),
    SIMPLE("aten.repeat_interleave.self_int", translate_repeat_interleave),
    {0},
};
