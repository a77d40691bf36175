/* Strides of intermediate tensors. Views have those that ATen gives them; an operation that works
 * element by element keeps the order of its first argument of the same shape; everything else makes
 * dense, row-major tensors. */
#include "target/dynamo/serialize.h"

#include <string.h>

const Sym *const *strides_contiguous(Serializer *s, uint32_t rank, const Sym *const *shape) {
    SymTable *table = &s->program->symbols;
    const Sym **strides = ARENA_ARRAY(&s->arena, const Sym *, rank);
    const Sym *stride = sym_const(table, 1);
    for (uint32_t d = rank; strides && d-- > 0;) {
        strides[d] = stride;
        stride = sym_mul(table, stride, sym_max(table, shape[d], sym_const(table, 1)));
    }
    return strides;
}

static const Sym *const *of(const Serializer *s, const Value *value) {
    return s->strides[value->id];
}

static int64_t dim_of(const Node *node, uint32_t arg, uint32_t rank) {
    int64_t dim = node->args[arg].integer->value;
    return dim < 0 ? dim + rank : dim;
}

/* The strides of a view of `self`, or NULL when the operation is no view. */
static const Sym *const *view_strides(Serializer *s, const Node *node, const Value *self,
                                      const Value *out) {
    SymTable *table = &s->program->symbols;
    const Sym *const *from = of(s, self);
    const Sym **to = ARENA_ARRAY(&s->arena, const Sym *, out->rank);
    if (!to || !from) return NULL;
    switch (node->op) {
    case OP_PERMUTE:
        for (uint32_t d = 0; d < out->rank; d++)
            to[d] = from[node->args[1].integers.items[d]->value];
        return to;
    case OP_EXPAND:
        for (uint32_t d = 0; d < out->rank; d++) {
            uint32_t old = d - (out->rank - self->rank);
            bool fresh = d < out->rank - self->rank || self->shape[old] != out->shape[d];
            to[d] = fresh ? sym_const(table, 0) : from[old];
        }
        return to;
    case OP_SLICE:
        memcpy(to, from, out->rank * sizeof *to);
        to[dim_of(node, 1, out->rank)] =
            sym_mul(table, to[dim_of(node, 1, out->rank)], node->args[4].integer);
        return to;
    case OP_SPLIT: memcpy(to, from, out->rank * sizeof *to); return to;
    case OP_SELECT:
    case OP_SQUEEZE: {
        uint32_t dim = (uint32_t)dim_of(node, 1, self->rank);
        for (uint32_t d = 0; d < out->rank; d++) to[d] = from[d + (d >= dim)];
        return to;
    }
    case OP_UNSQUEEZE: {
        uint32_t dim = (uint32_t)dim_of(node, 1, out->rank);
        for (uint32_t d = 0; d < out->rank; d++) to[d] = d == dim ? NULL : from[d - (d > dim)];
        const Sym *one = sym_const(table, 1);
        to[dim] = dim + 1 < out->rank ? sym_mul(table, to[dim + 1], out->shape[dim + 1]) : one;
        return to;
    }
    default: return NULL;
    }
}

/* Operations that TensorIterator runs element by element. */
static bool is_elementwise(Op op) {
    return (op >= OP_ADD && op <= OP_WHERE) || op == OP_SILU;
}

void strides_infer(Serializer *s, const Node *node) {
    const Value *self = node->args[0].kind == VALUE_TENSOR ? node->args[0].tensor : NULL;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *out = node->outputs[i];
        const Sym *const *strides = self ? view_strides(s, node, self, out) : NULL;
        bool same =
            self && self->rank == out->rank && shape_equal(out->rank, self->shape, out->shape);
        bool broadcast = false;
        for (uint32_t d = 0; self && same && d < out->rank; d++) {
            broadcast |= sym_is_value(of(s, self)[d], 0);
        }
        if (!strides && is_elementwise(node->op) && same && !broadcast) strides = of(s, self);
        if (!strides) strides = strides_contiguous(s, out->rank, out->shape);
        s->strides[out->id] = strides;
    }
}
