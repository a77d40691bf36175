/* Translations of indexing by tensors, of scattering, and of what makes data-dependent sizes.
 *
 * A mask that indexes becomes the coordinates of its true elements, except where it only chooses
 * between two values; sizes that depend on data are symbols with an entry in program->sources. */
#include "source/pt2/reader.h"

#include <string.h>

enum { MAX_INDICES = FERRY_MAX_RANK };

/* ---- data-dependent sizes ---- */

static bool is_bound(const Program *program, const Sym *symbol) {
    for (size_t i = 0; i < program->sources.count; i++) {
        if (program->sources.items[i].symbol == symbol) return true;
    }
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Value *value = program->inputs.items[i].value;
        for (uint32_t d = 0; d < value->rank; d++) {
            if (value->shape[d] == symbol) return true;
        }
    }
    return false;
}

const Sym *fresh_symbol(Call *c, const Sym *declared) {
    Program *program = c->b->program;
    if (declared && declared->kind == SYM_SYMBOL && !is_bound(program, declared)) return declared;
    const char *name = NULL;
    for (size_t i = program->sources.count; !name || sym_lookup(&program->symbols, name); i++) {
        name = arena_format(&program->arena, "count_%zu", i);
        if (!name) return build_const(c->b, 0);
    }
    return sym_symbol(&program->symbols, name, 0, SYM_UNBOUNDED);
}

void bind_symbol(Call *c, const Sym *symbol, Value *value, int dim) {
    if (!build_ok(c->b)) return;
    VEC_PUSH(&c->b->program->sources, ((SymSource){symbol, value, dim}));
}

static const Sym *declared_size(Call *c, uint32_t index, uint32_t dim) {
    TensorMeta meta = result_meta(c, index);
    return dim < meta.rank ? meta.sizes[dim] : NULL;
}

/* [count, rank]: where x is true. `declared` is what the file calls the count. */
static Value *coordinates(Call *c, Value *x, const Sym *declared) {
    const Sym *count = fresh_symbol(c, declared);
    x = promote_to(c, x, FERRY_BOOL);
    Value *found = build_op(c->b, OP_NONZERO, (const Arg[]){arg_tensor(x), arg_sym(count)}, 2);
    bind_symbol(c, count, found, 0);
    return found;
}

static void translate_nonzero(Call *c) {
    result_set(c, 0, coordinates(c, take_self(c), declared_size(c, 0, 0)));
}

/* where(condition): the coordinates, one tensor per dimension. */
static void translate_where_coordinates(Call *c) {
    Value *found = coordinates(c, take_tensor(c, "condition"), declared_size(c, 0, 0));
    for (uint32_t i = 0; i < result_count(c) && build_ok(c->b); i++) {
        result_set(c, i, build_select(c->b, found, 1, i));
    }
}

/* The number in a tensor. Only integers become symbols; a bool or a float feeds assertions. */
static void translate_item(Call *c) {
    Value *self = take_self(c);
    const Doc *output = doc_item(doc_get(c->node, "outputs"), 0);
    const char *name = doc_text(doc_get(doc_get(output, "as_sym_int"), "as_name"));
    const Sym *symbol = name ? map_find(&c->r->sizes, name) : NULL;
    if (!symbol || symbol->kind != SYM_SYMBOL || is_bound(c->b->program, symbol)) return;
    if (self->rank) self = build_view(c->b, self, NULL, 0);
    bind_symbol(c, symbol, promote_to(c, self, FERRY_I64), -1);
}

/* ---- indices ---- */

typedef struct Indices {
    Value *items[MAX_INDICES]; /* NULL: the whole dimension */
    uint32_t count;
    Value *mask; /* the only index, when that is a mask */
    uint32_t mask_at;
} Indices;

/* Masks become coordinates, unless the caller wants a lone one as it is. */
static bool take_indices(Call *c, Value *self, bool keep_mask, Indices *out) {
    Value *given[MAX_INDICES];
    uint32_t count = take_tensors(c, "indices", given, MAX_INDICES), tensors = 0, next = 0;
    *out = (Indices){0};
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) tensors += given[i] != NULL;
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        bool is_mask = given[i] && (given[i]->dtype == FERRY_BOOL || given[i]->dtype == FERRY_U8);
        if (is_mask && keep_mask && tensors == 1) {
            out->mask = promote_to(c, given[i], FERRY_BOOL);
            out->mask_at = next;
            return true;
        }
        uint32_t dims = is_mask ? given[i]->rank : 1;
        if (next + dims > self->rank) {
            take_fail(c, FERRY_BAD_FORMAT, "more indices than dimensions");
            return false;
        }
        if (!is_mask) {
            bool narrow = given[i] && given[i]->dtype != FERRY_I64 && given[i]->dtype != FERRY_I32;
            out->items[next++] = narrow ? promote_to(c, given[i], FERRY_I64) : given[i];
            continue;
        }
        const Sym *declared = keep_mask ? NULL : declared_size(c, 0, tensors == 1 ? next : 0);
        Value *found = coordinates(c, given[i], declared);
        for (uint32_t d = 0; d < dims; d++) out->items[next++] = build_select(c->b, found, 1, d);
    }
    while (next > 0 && !out->items[next - 1]) next--;
    out->count = next;
    return build_ok(c->b);
}

static void translate_index(Call *c) {
    Value *self = take_self(c);
    Indices indices;
    if (!take_indices(c, self, false, &indices)) return;
    const Arg args[] = {arg_tensor(self), arg_tensors(c->b, indices.items, indices.count)};
    result_set(c, 0, indices.count ? build_op(c->b, OP_INDEX, args, 2) : self);
}

/* ---- masks that choose ---- */

/* Row 0 of `rows` for the first true element of the flat mask, row 1 for the second, and so on: [mask
 * elements, ...]. A row of zeros is added, for masks that choose nothing. */
static Value *spread_rows(Call *c, Value *mask, Value *rows) {
    const Sym *flat[] = {build_const(c->b, -1)}, *one[FERRY_MAX_RANK];
    Value *order = build_cumsum(c->b, build_view(c->b, mask, flat, 1), 0);
    if (!build_ok(c->b)) return order;
    order = build_scalar(c->b, OP_ADD_SCALAR, order, -1);
    order = build_clamp(c->b, order, arg_int(c->b, 0), arg_none());
    memcpy(one, rows->shape, rows->rank * sizeof *one);
    one[0] = build_const(c->b, 1);
    Value *padding = build_full(c->b, one, rows->rank, 0, rows->dtype);
    rows = build_cat(c->b, (Value *const[]){rows, padding}, 2, 0);
    const Arg args[] = {arg_tensor(rows), arg_int(c->b, 0), arg_tensor(order)};
    return build_op(c->b, OP_INDEX_SELECT, args, 3);
}

static Value *put_or_add(Call *c, Value *self, Value *mask, Value *values) {
    if (!take_bool(c, "accumulate", false)) return build_where(c->b, mask, values, self);
    Value *nothing = build_full(c->b, NULL, 0, 0, self->dtype);
    return build_add(c->b, self, build_where(c->b, mask, values, nothing));
}

/* self[mask] = values; NULL when the mask must become coordinates. */
static Value *put_masked(Call *c, Value *self, Value *mask, uint32_t at, Value *values) {
    uint32_t rest = self->rank - at - mask->rank;
    Value *wide = mask;
    for (uint32_t d = 0; d < rest; d++) wide = build_unsqueeze(c->b, wide, -1);
    if (values->rank <= rest) return put_or_add(c, self, wide, values);
    if (at != 0 || values->rank != rest + 1) return NULL;
    if (sym_is_value(values->shape[0], 1))
        return put_or_add(c, self, wide, build_select(c->b, values, 0, 0));
    Value *rows = spread_rows(c, mask, values);
    const Sym *shape[FERRY_MAX_RANK];
    memcpy(shape, mask->shape, mask->rank * sizeof *shape);
    memcpy(shape + mask->rank, values->shape + 1, rest * sizeof *shape);
    return put_or_add(c, self, wide, build_view(c->b, rows, shape, self->rank));
}

static void translate_index_put(Call *c) {
    Value *self = take_self(c), *values = promote_to(c, take_tensor(c, "values"), self->dtype);
    Indices indices;
    bool accumulate = take_bool(c, "accumulate", false);
    if (!take_indices(c, self, true, &indices)) return;
    if (indices.mask) {
        Value *result = put_masked(c, self, indices.mask, indices.mask_at, values);
        if (result) {
            result_set(c, 0, result);
            return;
        }
        Value *found = coordinates(c, indices.mask, NULL);
        indices.count = indices.mask_at + indices.mask->rank;
        for (uint32_t d = 0; d < indices.mask->rank; d++)
            indices.items[indices.mask_at + d] = build_select(c->b, found, 1, d);
    }
    const Arg args[] = {arg_tensor(self), arg_tensors(c->b, indices.items, indices.count),
                        arg_tensor(values), arg_bool(accumulate)};
    result_set(c, 0, build_op(c->b, OP_INDEX_PUT, args, 4));
}

/* The elements of `source`, in order, where the mask is true. When the mask repeats along the last
 * dimension, which the source has too, whole rows are moved. */
static void translate_masked_scatter(Call *c) {
    Value *self = take_self(c), *mask = promote_to(c, take_tensor(c, "mask"), FERRY_BOOL);
    Value *source = promote_to(c, take_tensor(c, "source"), self->dtype);
    if (!build_ok(c->b)) return;
    uint32_t last = self->rank - 1;
    const Sym *width = self->rank ? self->shape[last] : NULL, *rows[2] = {build_const(c->b, -1)};
    bool by_rows = self->rank > 1 && mask->rank == self->rank &&
                   sym_is_value(mask->shape[last], 1) && source->rank > 0 &&
                   source->shape[source->rank - 1] == width;
    Value *wide = by_rows ? build_squeeze(c->b, mask, -1) : mask;
    wide = build_expand(c->b, wide, self->shape, by_rows ? last : self->rank);
    rows[1] = width;
    Value *chosen = spread_rows(c, wide, build_view(c->b, source, rows, by_rows ? 2 : 1));
    chosen = build_view(c->b, chosen, self->shape, self->rank);
    result_set(c, 0, build_where(c->b, mask, chosen, self));
}

/* ---- along one dimension ---- */

static Value *take_index(Call *c) {
    Value *index = take_tensor(c, "index");
    return build_ok(c->b) && index->rank == 0 ? build_unsqueeze(c->b, index, 0) : index;
}

static Value *index_copy(Call *c, Value *self, uint32_t dim, Value *index, Value *source) {
    const Arg args[] = {arg_tensor(self), arg_int(c->b, dim), arg_tensor(index),
                        arg_tensor(source)};
    return build_op(c->b, OP_INDEX_COPY, args, 4);
}

static void translate_index_copy(Call *c) {
    Value *self = take_self(c), *source = promote_to(c, take_tensor(c, "source"), self->dtype);
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    result_set(c, 0, index_copy(c, self, dim, take_index(c), source));
}

static void translate_index_fill(Call *c) {
    Value *self = take_self(c), *index = take_index(c);
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    const Sym *shape[FERRY_MAX_RANK];
    if (!build_ok(c->b)) return;
    const Arg sum[] = {arg_tensor(index), arg_sym(self->shape[dim])};
    Value *wrapped = build_op(c->b, OP_ADD_SCALAR, sum, 2);
    index = build_where(c->b, build_scalar(c->b, OP_LT_SCALAR, index, 0), wrapped, index);
    memcpy(shape, self->shape, self->rank * sizeof *shape);
    shape[dim] = index->shape[0];
    Value *value = take_is_tensor(c, "value")
                       ? promote_to(c, take_tensor(c, "value"), self->dtype)
                       : build_full(c->b, NULL, 0, take_float(c, "value", 0), self->dtype);
    result_set(c, 0, index_copy(c, self, dim, index, build_expand(c->b, value, shape, self->rank)));
}

static Value *scatter_reduce(Call *c, Value *self, uint32_t dim, Value *index, Value *source,
                             const char *how) {
    const Arg args[] = {arg_tensor(self), arg_int(c->b, dim), arg_tensor(index), arg_tensor(source),
                        arg_string(how)};
    return build_op(c->b, OP_SCATTER_REDUCE, args, 5);
}

static void translate_index_add(Call *c) {
    Value *self = take_self(c), *source = promote_to(c, take_tensor(c, "source"), self->dtype);
    Value *index = take_index(c);
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    double alpha = take_float(c, "alpha", 1);
    if (!build_ok(c->b)) return;
    if (alpha != 1) source = build_scalar(c->b, OP_MUL_SCALAR, source, alpha);
    for (uint32_t d = 0; d < dim; d++) index = build_unsqueeze(c->b, index, 0);
    for (uint32_t d = dim + 1; d < self->rank; d++) index = build_unsqueeze(c->b, index, -1);
    index = build_expand(c->b, index, source->shape, source->rank);
    result_set(c, 0, scatter_reduce(c, self, dim, index, source, "sum"));
}

/* gather with sizes broadcast, but for the chosen dimension. */
static void translate_take_along(Call *c) {
    Value *self = take_self(c), *index = take_tensor(c, "indices");
    TensorMeta meta = result_meta(c, 0);
    bool flat = !take_has(c, "dim");
    const Sym *line[] = {build_const(c->b, -1)}, *shape[FERRY_MAX_RANK];
    if (flat) self = build_view(c->b, self, line, 1), index = build_view(c->b, index, line, 1);
    uint32_t dim = flat ? 0 : take_dim(c, "dim", 0, self->rank);
    if (!build_ok(c->b) || meta.rank != self->rank) return;
    index = build_expand(c->b, index, meta.sizes, meta.rank);
    memcpy(shape, meta.sizes, meta.rank * sizeof *shape);
    shape[dim] = self->shape[dim];
    result_set(c, 0,
               build_gather(c->b, build_expand(c->b, self, shape, meta.rank), (int)dim, index));
}

/* ---- scatter ---- */

/* The source in the shape of the index: the first elements of each dimension, or a repeated number. */
static Value *scatter_source(Call *c, Value *self, Value *index) {
    const char *name = take_has(c, "src") ? "src" : "value";
    if (!take_is_tensor(c, name))
        return build_full(c->b, index->shape, index->rank, take_float(c, name, 0), self->dtype);
    Value *source = promote_to(c, take_tensor(c, name), self->dtype);
    for (uint32_t d = 0; d < index->rank && build_ok(c->b); d++) {
        if (source->rank != index->rank || source->shape[d] == index->shape[d]) continue;
        source = build_slice(c->b, source, (int)d, build_const(c->b, 0), index->shape[d]);
    }
    return source;
}

/* The mean over what was written, with or without the old element. */
static Value *scatter_mean(Call *c, Value *self, uint32_t dim, Value *index, Value *source,
                           bool include_self) {
    Value *counts = build_full(c->b, self->shape, self->rank, include_self, self->dtype);
    Value *ones = build_full(c->b, index->shape, index->rank, 1, self->dtype);
    counts = scatter_reduce(c, counts, dim, index, ones, "sum");
    counts = build_clamp(c->b, counts, arg_int(c->b, 1), arg_none());
    Value *sum = scatter_reduce(c, self, dim, index, source, "sum");
    return build_binary(c->b, ferry_dtype_is_float(self->dtype) ? OP_DIV : OP_FLOOR_DIVIDE, sum,
                        counts);
}

static Value *scatter(Call *c, Value *self, uint32_t dim, Value *index, Value *source) {
    const Arg args[] = {arg_tensor(self), arg_int(c->b, dim), arg_tensor(index),
                        arg_tensor(source)};
    return build_op(c->b, OP_SCATTER, args, 4);
}

/* What a reduction over nothing gives. */
static double identity_of(const char *how, ferry_dtype dtype) {
    bool is_float = ferry_dtype_is_float(dtype);
    if (strcmp(how, "prod") == 0) return 1;
    if (strcmp(how, "amax") == 0) return is_float ? -__builtin_inf() : -0x1p31;
    if (strcmp(how, "amin") == 0) return is_float ? __builtin_inf() : 0x1p31 - 1;
    return 0;
}

static void translate_scatter(Call *c) {
    static const char *const names[][2] = {{"add", "sum"}, {"multiply", "prod"}};
    Value *self = take_self(c), *index = take_tensor(c, "index");
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    const char *how =
        take_string(c, "reduce", strstr(c->how->target, "scatter_add") ? "sum" : NULL);
    bool include_self = take_bool(c, "include_self", true);
    if (!build_ok(c->b)) return;
    Value *source = scatter_source(c, self, index);
    for (size_t i = 0; how && i < 2; i++) {
        if (strcmp(how, names[i][0]) == 0) how = names[i][1];
    }
    if (!how) {
        result_set(c, 0, scatter(c, self, dim, index, source));
        return;
    }
    if (!include_self) {
        Value *neutral =
            build_full(c->b, index->shape, index->rank, identity_of(how, self->dtype), self->dtype);
        self = scatter(c, self, dim, index, neutral);
    }
    if (strcmp(how, "mean") == 0)
        result_set(c, 0, scatter_mean(c, self, dim, index, source, include_self));
    else
        result_set(c, 0, scatter_reduce(c, self, dim, index, source, how));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_indexing[] = {
    SIMPLE("aten.index.Tensor", translate_index),
    SIMPLE("aten.index_put.default", translate_index_put),
    SIMPLE("aten._unsafe_index.Tensor", translate_index),
    SIMPLE("aten._unsafe_index_put.default", translate_index_put),
    SIMPLE("aten.masked_scatter.default", translate_masked_scatter),
    SIMPLE("aten.index_copy.default", translate_index_copy),
    SIMPLE("aten.index_fill.int_Scalar", translate_index_fill),
    SIMPLE("aten.index_fill.int_Tensor", translate_index_fill),
    SIMPLE("aten.index_add.default", translate_index_add),
    SIMPLE("aten.take_along_dim.default", translate_take_along),
    SIMPLE("aten.scatter.src", translate_scatter),
    SIMPLE("aten.scatter.value", translate_scatter),
    SIMPLE("aten.scatter.reduce", translate_scatter),
    SIMPLE("aten.scatter.value_reduce", translate_scatter),
    SIMPLE("aten.scatter_add.default", translate_scatter),
    SIMPLE("aten.scatter_reduce.two", translate_scatter),
    SIMPLE("aten.nonzero.default", translate_nonzero),
    SIMPLE("aten.argwhere.default", translate_nonzero),
    SIMPLE("aten.where.default", translate_where_coordinates),
    SIMPLE("aten.item.default", translate_item),
    SIMPLE("aten._local_scalar_dense.default", translate_item),
    {0},
};
