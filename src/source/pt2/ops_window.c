/* Translations of views that choose elements: diagonals, windows, sizes and strides; with the way back of
 * a write through each. */
#include "source/pt2/reader.h"

static Value *numbers(Call *c, const Sym *count) {
    return build_arange(c->b, build_const(c->b, 0), count, FERRY_I64);
}

static Value *plus(Call *c, Value *x, int64_t number) {
    return number ? build_scalar(c->b, OP_ADD_SCALAR, x, (double)number) : x;
}

static Value *flattened(Call *c, Value *x) {
    return build_view(c->b, x, (const Sym *const[]){build_const(c->b, -1)}, 1);
}

/* ---- diagonals ---- */

typedef struct Diagonal {
    uint32_t first, second;
    int64_t offset;
    const Sym *length;
} Diagonal;

static Diagonal read_diagonal(Call *c, const Value *self, const Sym *length) {
    Diagonal diagonal = {.first = take_dim(c, "dim1", 0, self->rank),
                         .second = take_dim(c, "dim2", 1, self->rank)};
    diagonal.offset = take_int(c, take_has(c, "diagonal") ? "diagonal" : "offset", 0);
    diagonal.length = length;
    return diagonal;
}

/* The two dimensions moved behind the others. */
static void diagonal_order(const Diagonal *diagonal, uint32_t rank, int64_t *dims) {
    uint32_t next = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (d != diagonal->first && d != diagonal->second) dims[next++] = d;
    }
    dims[next++] = diagonal->first;
    dims[next] = diagonal->second;
}

static Arg diagonal_indices(Call *c, const Diagonal *diagonal, uint32_t rank) {
    Value *items[FERRY_MAX_RANK] = {NULL}, *steps = numbers(c, diagonal->length);
    int64_t offset = diagonal->offset;
    items[rank - 2] = plus(c, steps, offset < 0 ? -offset : 0);
    items[rank - 1] = plus(c, steps, offset > 0 ? offset : 0);
    return arg_tensors(c->b, items, rank);
}

void translate_diagonal(Call *c) {
    Value *self = take_self(c);
    int64_t dims[FERRY_MAX_RANK];
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b) || self->rank < 2 || meta.rank + 1 != self->rank) return;
    Diagonal diagonal = read_diagonal(c, self, meta.sizes[meta.rank - 1]);
    diagonal_order(&diagonal, self->rank, dims);
    const Arg args[] = {arg_tensor(build_permute(c->b, self, dims)),
                        diagonal_indices(c, &diagonal, self->rank)};
    result_set(c, 0, build_op(c->b, OP_INDEX, args, 2));
}

static Value *write_diagonal(Call *c, Value *base, Value *updated, uint32_t index) {
    int64_t dims[FERRY_MAX_RANK], back[FERRY_MAX_RANK] = {0};
    (void)index;
    if (!build_ok(c->b) || base->rank < 2 || updated->rank + 1 != base->rank) return base;
    Diagonal diagonal = read_diagonal(c, base, updated->shape[updated->rank - 1]);
    diagonal_order(&diagonal, base->rank, dims);
    for (uint32_t d = 0; d < base->rank; d++) back[dims[d]] = d;
    const Arg args[] = {arg_tensor(build_permute(c->b, base, dims)),
                        diagonal_indices(c, &diagonal, base->rank), arg_tensor(updated)};
    return build_permute(c->b, build_op(c->b, OP_INDEX_PUT, args, 3), back);
}

/* ---- windows ---- */

typedef struct Windows {
    uint32_t dim;
    const Sym *count, *size;
    int64_t step;
} Windows;

/* `count` is how many windows there are along the dimension. */
static Windows read_windows(Call *c, const Value *self, const Sym *count) {
    return (Windows){.dim = take_dim(c, "dimension", 0, self->rank),
                     .count = count,
                     .size = take_sym(c, "size", 1),
                     .step = take_int(c, "step", 1)};
}

/* Where the elements of the windows are along the dimension, one window after the other. */
static Value *window_places(Call *c, const Windows *w) {
    Value *starts = build_scalar(c->b, OP_MUL_SCALAR, numbers(c, w->count), (double)w->step);
    Value *places = build_add(c->b, build_unsqueeze(c->b, starts, 1), numbers(c, w->size));
    return flattened(c, places);
}

/* Windows of `size` elements at distances of `step`: a new last dimension. */
static void translate_unfold(Call *c) {
    Value *self = take_self(c);
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b) || self->rank == 0 || meta.rank != self->rank + 1) return;
    Windows w = read_windows(c, self, meta.sizes[take_dim(c, "dimension", 0, self->rank)]);
    const Sym *wide[FERRY_MAX_RANK];
    int64_t dims[FERRY_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        wide[rank++] = d == w.dim ? w.count : self->shape[d];
        if (d == w.dim) wide[rank++] = w.size;
    }
    for (uint32_t d = 0; d < rank; d++) dims[d] = d <= w.dim ? d : d + 1;
    dims[rank - 1] = w.dim + 1;
    const Arg args[] = {arg_tensor(self), arg_int(c->b, w.dim), arg_tensor(window_places(c, &w))};
    Value *chosen = build_op(c->b, OP_INDEX_SELECT, args, 3);
    result_set(c, 0, build_permute(c->b, build_view(c->b, chosen, wide, rank), dims));
}

static Value *write_unfolded(Call *c, Value *base, Value *updated, uint32_t index) {
    (void)index;
    if (!build_ok(c->b) || updated->rank != base->rank + 1) return base;
    Windows w = read_windows(c, base, updated->shape[take_dim(c, "dimension", 0, base->rank)]);
    bool apart = sym_is_const(w.size) && w.size->value <= w.step;
    if (!apart && !sym_is_value(w.count, 1)) check_overlap(c);
    int64_t dims[FERRY_MAX_RANK];
    const Sym *narrow[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < updated->rank; d++) dims[d] = d <= w.dim ? d : (int64_t)d - 1;
    dims[w.dim + 1] = updated->rank - 1;
    for (uint32_t d = 0; d < base->rank; d++) narrow[d] = base->shape[d];
    narrow[w.dim] = sym_mul(&c->b->program->symbols, w.count, w.size);
    Value *line = build_view(c->b, build_permute(c->b, updated, dims), narrow, base->rank);
    const Arg args[] = {arg_tensor(base), arg_int(c->b, w.dim), arg_tensor(window_places(c, &w)),
                        arg_tensor(line)};
    return build_op(c->b, OP_INDEX_COPY, args, 4);
}

/* ---- sizes and strides over a dense tensor: each element by its place ---- */

typedef struct Layout {
    uint32_t rank;
    const Sym *size[FERRY_MAX_RANK], *stride[FERRY_MAX_RANK];
    const Sym *offset; /* in the argument, which may start inside its storage */
} Layout;

static bool read_layout(Call *c, Layout *out) {
    TensorMeta meta = reader_meta(c->r, take_tensor_name(c, "self"));
    out->rank = take_syms(c, "size", out->size, FERRY_MAX_RANK);
    uint32_t strides = take_syms(c, "stride", out->stride, FERRY_MAX_RANK);
    if (!build_ok(c->b)) return false;
    out->offset = build_const(c->b, 0);
    if (take_has(c, "storage_offset"))
        out->offset =
            sym_sub(&c->b->program->symbols, take_sym(c, "storage_offset", 0), meta.offset);
    if (strides != out->rank)
        take_fail(c, FERRY_BAD_FORMAT, "\"size\" and \"stride\" differ in length");
    else if (!schema_is_contiguous(&c->b->program->symbols, &meta))
        take_fail(c, FERRY_UNSUPPORTED, "as_strided of a tensor that is not contiguous");
    else if (out->offset->lower < 0)
        take_fail(c, FERRY_UNSUPPORTED, "as_strided reaches before its argument");
    return build_ok(c->b);
}

static Arg strided_places(Call *c, const Layout *layout) {
    Value *places = build_scalar_tensor(c->b, layout->offset, FERRY_I64);
    for (uint32_t d = 0; d < layout->rank; d++) {
        const Arg product[] = {arg_tensor(numbers(c, layout->size[d])), arg_sym(layout->stride[d])};
        Value *steps = build_op(c->b, OP_MUL_SCALAR, product, 2);
        places = build_add(c->b, build_unsqueeze(c->b, places, -1), steps);
    }
    return arg_tensors(c->b, &places, 1);
}

/* Are all elements in different places? Only sizes and strides that are numbers tell. */
static bool is_injective(const Layout *layout) {
    int64_t reach = 0;
    unsigned done = 0;
    for (uint32_t i = 0; i < layout->rank; i++) {
        uint32_t next = FERRY_MAX_RANK;
        for (uint32_t d = 0; d < layout->rank; d++) {
            if (!sym_is_const(layout->size[d]) || !sym_is_const(layout->stride[d])) return false;
            bool smaller =
                next == FERRY_MAX_RANK || layout->stride[d]->value < layout->stride[next]->value;
            if (!(done >> d & 1) && smaller) next = d;
        }
        int64_t size = layout->size[next]->value, stride = layout->stride[next]->value;
        if (size > 1 && stride <= reach) return false;
        if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &stride) ||
                         __builtin_add_overflow(reach, stride, &reach)))
            return false;
        done |= 1u << next;
    }
    return true;
}

static void translate_as_strided(Call *c) {
    Layout layout;
    Value *self = take_self(c);
    if (!read_layout(c, &layout)) return;
    const Arg args[] = {arg_tensor(flattened(c, self)), strided_places(c, &layout)};
    result_set(c, 0, build_op(c->b, OP_INDEX, args, 2));
}

static Value *write_strided(Call *c, Value *base, Value *updated, uint32_t index) {
    Layout layout;
    (void)index;
    if (!read_layout(c, &layout)) return base;
    if (!is_injective(&layout)) check_overlap(c);
    const Arg args[] = {arg_tensor(flattened(c, base)), strided_places(c, &layout),
                        arg_tensor(updated)};
    Value *flat = build_op(c->b, OP_INDEX_PUT, args, 3);
    return build_view(c->b, flat, base->shape, base->rank);
}

const Translation translate_windows[] = {
    {"aten.diagonal.default", translate_diagonal, OP_COUNT, ALIAS_ALWAYS, write_diagonal},
    {"aten.linalg_diagonal.default", translate_diagonal, OP_COUNT, ALIAS_ALWAYS, write_diagonal},
    {"aten.diagonal_scatter.default", translate_scatter_view, OP_COUNT, ALIAS_NEVER,
     write_diagonal},
    {"aten.unfold.default", translate_unfold, OP_COUNT, ALIAS_ALWAYS, write_unfolded},
    {"aten.as_strided.default", translate_as_strided, OP_COUNT, ALIAS_ALWAYS, write_strided},
    {"aten.as_strided_scatter.default", translate_scatter_view, OP_COUNT, ALIAS_NEVER,
     write_strided},
    {0},
};
