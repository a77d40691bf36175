/* Translations of slices and pieces of tensors, with the way back of a write through each. */
#include "source/pt2/reader.h"

#include <string.h>

/* ---- slices ---- */

/* Does an argument count from the end? The program was traced for one sign of it; where the range
 * leaves both open, the hint that the file keeps tells which. */
static bool counts_from_end(Call *c, const char *name, const Sym *value) {
    if (value->lower >= 0 || value->upper < 0) return value->upper < 0;
    const Doc *inner = doc_get(take_arg(c, name), "as_sym_int");
    const char *size = doc_text(doc_get(inner, "as_name"));
    const Doc *known = doc_get(c->r->graph, "sym_int_values");
    const Doc *expression = size ? doc_get(doc_get(known, size), "as_expr") : NULL;
    const Doc *hint = doc_get(doc_get(expression, "hint"), "as_int");
    return hint ? doc_integer(hint) < 0 : value->upper == 0;
}

/* A bound that counts from the end, counted from the front. */
static const Sym *from_front(Call *c, const char *name, int64_t otherwise, const Sym *size) {
    const Sym *value = take_sym(c, name, otherwise);
    if (!counts_from_end(c, name, value)) return value;
    return sym_add(&c->b->program->symbols, value, size);
}

/* Into [0, size]. What was clamped before comes out as it is. */
static const Sym *clamp(Call *c, const Sym *value, const Sym *size) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *nothing = build_const(c->b, 0);
    if (value->kind == SYM_MAX && value->count == 2 && value->operands[0] == nothing)
        value = value->operands[1];
    const Sym *end = sym_min(symbols, value, size);
    return end == size ? size : sym_max(symbols, end, nothing);
}

typedef struct Range {
    uint32_t dim;
    const Sym *start, *end;
    int64_t step;
} Range;

static Range read_range(Call *c, const Value *self) {
    Range range = {.dim = take_dim(c, "dim", 0, self->rank), .step = take_int(c, "step", 1)};
    const Sym *size = build_dim(c->b, self, (int)range.dim);
    range.start = from_front(c, "start", 0, size);
    /* The operation clamps the start itself: clamped here, expressions would grow. */
    if (range.start->lower < 0) range.start = clamp(c, range.start, size);
    range.end = from_front(c, "end", INT64_MAX, size);
    range.end = sym_is_value(range.end, INT64_MAX) ? size : clamp(c, range.end, size);
    return range;
}

static void translate_slice(Call *c) {
    Value *self = take_self(c);
    Range range = read_range(c, self);
    bool whole = sym_is_value(range.start, 0) && range.end == build_dim(c->b, self, (int)range.dim);
    if (whole && range.step == 1) {
        result_set(c, 0, self);
        return;
    }
    const Arg args[] = {arg_tensor(self), arg_int(c->b, range.dim), arg_sym(range.start),
                        arg_sym(range.end), arg_int(c->b, range.step)};
    result_set(c, 0, build_op(c->b, OP_SLICE, args, 5));
}

/* base with [start, end) of `dim` replaced by `updated`. */
static Value *replace_range(Call *c, Value *base, Value *updated, uint32_t dim, const Sym *start,
                            const Sym *end) {
    Value *parts[3];
    uint32_t count = 0;
    const Sym *size = build_dim(c->b, base, (int)dim);
    if (!sym_is_value(start, 0))
        parts[count++] =
            build_slice(c->b, base, (int)dim, build_const(c->b, 0), clamp(c, start, size));
    parts[count++] = updated;
    if (end != size) parts[count++] = build_slice(c->b, base, (int)dim, end, size);
    return count == 1 ? updated : build_cat(c->b, parts, count, (int)dim);
}

static Value *write_sliced(Call *c, Value *base, Value *updated, uint32_t index) {
    Range range = read_range(c, base);
    (void)index;
    if (!build_ok(c->b)) return base;
    if (range.step != 1) {
        const Arg places[] = {arg_sym(range.start), arg_sym(range.end), arg_int(c->b, range.step),
                              arg_dtype(FERRY_I64)};
        const Arg args[] = {arg_tensor(base), arg_int(c->b, range.dim),
                            arg_tensor(build_op(c->b, OP_ARANGE, places, 4)), arg_tensor(updated)};
        return build_op(c->b, OP_INDEX_COPY, args, 4);
    }
    return replace_range(c, base, updated, range.dim, range.start, range.end);
}

static Range read_narrow(Call *c, const Value *self) {
    Range range = {.dim = take_dim(c, "dim", 0, self->rank), .step = 1};
    range.start = from_front(c, "start", 0, build_dim(c->b, self, (int)range.dim));
    range.end = sym_add(&c->b->program->symbols, range.start, take_sym(c, "length", 0));
    return range;
}

static void translate_narrow(Call *c) {
    Value *self = take_self(c);
    Range range = read_narrow(c, self);
    result_set(c, 0, build_slice(c->b, self, (int)range.dim, range.start, range.end));
}

static Value *write_narrow(Call *c, Value *base, Value *updated, uint32_t index) {
    Range range = read_narrow(c, base);
    (void)index;
    return replace_range(c, base, updated, range.dim, range.start, range.end);
}

void translate_scatter_view(Call *c) {
    Value *self = take_self(c), *source = promote_to(c, take_tensor(c, "src"), self->dtype);
    if (build_ok(c->b)) result_set(c, 0, c->how->write_back(c, self, source, 0));
}

/* The index of a select, counted from the front. */
static const Sym *read_index(Call *c, const Value *self, uint32_t dim) {
    const Sym *index = take_sym(c, "index", 0);
    if (!sym_is_const(index) || index->value >= 0) return index;
    return sym_add(&c->b->program->symbols, index, build_dim(c->b, self, (int)dim));
}

static void translate_select(Call *c) {
    Value *self = take_self(c);
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    const Arg args[] = {arg_tensor(self), arg_int(c->b, dim), arg_sym(read_index(c, self, dim))};
    result_set(c, 0, build_op(c->b, OP_SELECT, args, 3));
}

static Value *write_selected(Call *c, Value *base, Value *updated, uint32_t position) {
    uint32_t dim = take_dim(c, "dim", 0, base->rank);
    const Sym *index = read_index(c, base, dim);
    (void)position;
    const Sym *end = sym_add(&c->b->program->symbols, index, build_const(c->b, 1));
    return replace_range(c, base, build_unsqueeze(c->b, updated, (int)dim), dim, index, end);
}

/* ---- splitting ---- */

/* The dimension that is split: hsplit, vsplit and dsplit have it in their names. */
static uint32_t split_dim(Call *c, uint32_t rank) {
    static const char *const named[] = {"aten.vsplit", "aten.hsplit", "aten.dsplit"};
    for (uint32_t d = 0; d < 3; d++) {
        if (strncmp(c->how->target, named[d], strlen(named[d])) == 0) return d < rank ? d : 0;
    }
    return take_dim(c, "dim", 0, rank);
}

/* The sizes of the pieces, as the file's types of the results give them. */
static uint32_t piece_sizes(Call *c, uint32_t dim, const Sym **sizes) {
    uint32_t count = result_count(c);
    if (count > 64) {
        take_fail(c, FERRY_UNSUPPORTED, "more than 64 pieces");
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        TensorMeta meta = result_meta(c, i);
        sizes[i] = dim < meta.rank ? meta.sizes[dim] : build_const(c->b, 1);
    }
    return count;
}

static void translate_split(Call *c) {
    Value *self = take_self(c);
    const Sym *sizes[64];
    uint32_t dim = split_dim(c, self->rank), count = piece_sizes(c, dim, sizes);
    const Arg args[] = {arg_tensor(self), arg_syms(c->b, sizes, count), arg_int(c->b, dim)};
    Node *node = build_node(c->b, OP_SPLIT, args, 3);
    for (uint32_t i = 0; node && i < count; i++) result_set(c, i, node->outputs[i]);
}

static Value *write_piece(Call *c, Value *base, Value *updated, uint32_t index) {
    const Sym *sizes[64];
    uint32_t dim = split_dim(c, base->rank), count = piece_sizes(c, dim, sizes);
    const Sym *start = build_const(c->b, 0);
    for (uint32_t i = 0; i < index && i < count; i++)
        start = sym_add(&c->b->program->symbols, start, sizes[i]);
    const Sym *end = index < count ? sym_add(&c->b->program->symbols, start, sizes[index]) : start;
    return replace_range(c, base, updated, dim, start, end);
}

static void translate_unbind(Call *c) {
    Value *self = take_self(c);
    uint32_t dim = take_dim(c, "dim", 0, self->rank), count = result_count(c);
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        result_set(c, i, build_select(c->b, self, (int)dim, i));
    }
}

static Value *write_unbound(Call *c, Value *base, Value *updated, uint32_t index) {
    uint32_t dim = take_dim(c, "dim", 0, base->rank);
    return replace_range(c, base, build_unsqueeze(c->b, updated, (int)dim), dim,
                         build_const(c->b, index), build_const(c->b, (int64_t)index + 1));
}

#define PIECES(target)                                                                             \
    { target, translate_split, OP_COUNT, ALIAS_ALWAYS, write_piece }

const Translation translate_slices[] = {
    {"aten.slice.Tensor", translate_slice, OP_COUNT, ALIAS_ALWAYS, write_sliced},
    {"aten.narrow.default", translate_narrow, OP_COUNT, ALIAS_ALWAYS, write_narrow},
    {"aten.select.int", translate_select, OP_COUNT, ALIAS_ALWAYS, write_selected},
    {"aten.slice_scatter.default", translate_scatter_view, OP_COUNT, ALIAS_NEVER, write_sliced},
    {"aten.select_scatter.default", translate_scatter_view, OP_COUNT, ALIAS_NEVER, write_selected},
    PIECES("aten.split.Tensor"),
    PIECES("aten.split.sizes"),
    PIECES("aten.split_with_sizes.default"),
    PIECES("aten.unsafe_split.Tensor"),
    PIECES("aten.unsafe_split_with_sizes.default"),
    PIECES("aten.unsafe_chunk.default"),
    PIECES("aten.chunk.default"),
    PIECES("aten.tensor_split.sections"),
    PIECES("aten.tensor_split.indices"),
    PIECES("aten.hsplit.int"),
    PIECES("aten.hsplit.array"),
    PIECES("aten.vsplit.int"),
    PIECES("aten.vsplit.array"),
    PIECES("aten.dsplit.int"),
    PIECES("aten.dsplit.array"),
    {"aten.unbind.int", translate_unbind, OP_COUNT, ALIAS_ALWAYS, write_unbound},
    {0},
};
