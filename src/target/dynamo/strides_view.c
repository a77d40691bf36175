/* Strides of views, as ATen's view operations give them. */
#include "target/dynamo/serialize.h"

#include <string.h>

static int64_t dim_of(const Node *node, uint32_t arg, uint32_t rank) {
    int64_t dim = node->args[arg].integer->value;
    return dim < 0 ? dim + rank : dim;
}

static bool equal(const Serializer *s, const Sym *a, const Sym *b) {
    return a == b || symbols_sample(s, a) == symbols_sample(s, b);
}

/* A reshape is a view where every run of dimensions that are adjacent in memory is divided into whole
 * new dimensions, from the last to the first (at::detail::computeStride). */
static const Sym *const *reshape(Serializer *s, const Value *self, const Value *out) {
    SymTable *table = &s->program->symbols;
    const Sym *const *from = s->strides[self->id], *one = sym_const(table, 1);
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, out->rank);
    const Sym *run = one, *done = one;
    if (!to || self->rank == 0) return NULL;
    const Sym *stride = from[self->rank - 1];
    uint32_t next = out->rank;
    for (uint32_t d = self->rank; d-- > 0;) {
        run = sym_mul(table, run, self->shape[d]);
        bool adjacent = d > 0 && (sym_is_value(self->shape[d - 1], 1) ||
                                  equal(s, from[d - 1], sym_mul(table, run, stride)));
        if (adjacent) continue;
        while (next > 0 && (symbols_sample(s, done) < symbols_sample(s, run) ||
                            sym_is_value(out->shape[next - 1], 1))) {
            to[--next] = sym_mul(table, done, stride);
            done = sym_mul(table, done, out->shape[next]);
        }
        if (!equal(s, done, run)) return NULL;
        if (d > 0) stride = from[d - 1];
        run = done = one;
    }
    return next == 0 ? to : NULL;
}

static const Sym *const *expand(Serializer *s, const Value *self, const Value *out) {
    const Sym *const *from = s->strides[self->id];
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, out->rank);
    uint32_t fresh = out->rank - self->rank;
    for (uint32_t d = 0; to && d < out->rank; d++) {
        bool repeats = d < fresh ||
                       (sym_is_value(self->shape[d - fresh], 1) && !sym_is_value(out->shape[d], 1));
        to[d] = repeats ? sym_const(&s->program->symbols, 0) : from[d - fresh];
    }
    return to;
}

static const Sym *const *permute(Serializer *s, const Node *node, const Value *self) {
    const Sym *const *from = s->strides[self->id];
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, self->rank);
    for (uint32_t d = 0; to && d < self->rank; d++) {
        int64_t dim = node->args[1].integers.items[d]->value;
        to[d] = from[dim < 0 ? dim + self->rank : dim];
    }
    return to;
}

/* The strides of `self` without dimension `dim`. */
static const Sym *const *drop(Serializer *s, const Value *self, uint32_t dim, uint32_t rank) {
    const Sym *const *from = s->strides[self->id];
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, rank);
    for (uint32_t d = 0; to && d < rank; d++) to[d] = from[d + (d >= dim && rank < self->rank)];
    return to;
}

static const Sym *const *unsqueeze(Serializer *s, const Value *self, const Value *out,
                                   uint32_t dim) {
    SymTable *table = &s->program->symbols;
    const Sym *const *from = s->strides[self->id];
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, out->rank);
    for (uint32_t d = 0; to && d < out->rank; d++) {
        if (d != dim)
            to[d] = from[d - (d > dim)];
        else
            to[d] = dim < self->rank ? sym_mul(table, from[dim], self->shape[dim])
                                     : sym_const(table, 1);
    }
    return to;
}

static const Sym *const *slice(Serializer *s, const Node *node, const Value *self) {
    const Sym **to = arena_copy(&s->arena, s->strides[self->id], self->rank * sizeof *to);
    int64_t dim = dim_of(node, 1, self->rank);
    if (to) to[dim] = sym_mul(&s->program->symbols, to[dim], node->args[4].integer);
    return to;
}

bool strides_shares(const Node *node) {
    static const Op views[] = {OP_VIEW,  OP_PERMUTE, OP_EXPAND,  OP_SLICE,
                               OP_SPLIT, OP_SELECT,  OP_SQUEEZE, OP_UNSQUEEZE};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (node->op == views[i]) return true;
    }
    return false;
}

const Sym *const *strides_view(Serializer *s, const Node *node, const Value *self,
                               const Value *out) {
    switch (node->op) {
    case OP_VIEW: return reshape(s, self, out);
    case OP_PERMUTE: return permute(s, node, self);
    case OP_EXPAND: return expand(s, self, out);
    case OP_SLICE: return slice(s, node, self);
    case OP_SPLIT: return s->strides[self->id];
    case OP_SELECT:
    case OP_SQUEEZE: return drop(s, self, (uint32_t)dim_of(node, 1, self->rank), out->rank);
    case OP_UNSQUEEZE: return unsqueeze(s, self, out, (uint32_t)dim_of(node, 1, out->rank));
    default: return NULL;
    }
}
