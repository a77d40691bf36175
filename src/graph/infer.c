/* Shape and dtype rules, one small function per kind of operation, named by a table. */
#include "graph/infer.h"
#include "base/error.h"

#include <string.h>

typedef struct Infer {
    Program *program;
    Op op;
    const Arg *args;
    InferredType *outputs;
    uint32_t count;
    ferry_error *error;
} Infer;

typedef ferry_status (*InferRule)(Infer *in);

#define REJECT(in, ...)                                                                            \
    error_set((in)->error, FERRY_INVALID_ARGUMENT, op_name((in)->op), __VA_ARGS__)

static const Sym *constant(Infer *in, int64_t value) {
    return sym_const(&in->program->symbols, value);
}

static const Value *tensor(const Infer *in, uint32_t arg) {
    return in->args[arg].tensor;
}

static void same_as(Infer *in, const Value *value) {
    InferredType *out = &in->outputs[0];
    out->dtype = value->dtype;
    out->rank = value->rank;
    memcpy(out->shape, value->shape, value->rank * sizeof *value->shape);
}

/* A dimension argument, possibly negative, for a tensor of `rank` dimensions. */
static ferry_status dimension(Infer *in, uint32_t arg, uint32_t rank, uint32_t *out) {
    const Sym *sym = in->args[arg].integer;
    int64_t dim = sym->value < 0 ? sym->value + rank : sym->value;
    *out = 0;
    if (!sym_is_const(sym) || dim < 0 || dim >= rank) {
        return REJECT(in, "dimension %lld is outside a tensor of rank %u", (long long)sym->value,
                      rank);
    }
    *out = (uint32_t)dim;
    return FERRY_OK;
}

const Sym *infer_broadcast(const Sym *a, const Sym *b) {
    if (a == b || sym_is_value(b, 1)) return a;
    if (sym_is_value(a, 1)) return b;
    if (sym_is_const(a) && sym_is_const(b)) return NULL;
    return sym_is_const(b) ? b : a;
}

/* Merge the shape of `value` into that of the output. */
static ferry_status broadcast_into(Infer *in, InferredType *out, uint32_t rank,
                                   const Sym *const *shape) {
    const Sym *merged[FERRY_MAX_RANK];
    uint32_t wide = rank > out->rank ? rank : out->rank;
    for (uint32_t d = 0; d < wide; d++) {
        const Sym *a = d < wide - out->rank ? NULL : out->shape[d - (wide - out->rank)];
        const Sym *b = d < wide - rank ? NULL : shape[d - (wide - rank)];
        merged[d] = a && b ? infer_broadcast(a, b) : a ? a : b;
        if (merged[d]) continue;
        return REJECT(in, "sizes %lld and %lld do not broadcast at dimension %u",
                      (long long)a->value, (long long)b->value, d);
    }
    memcpy(out->shape, merged, wide * sizeof *merged);
    out->rank = wide;
    return FERRY_OK;
}

static ferry_status infer_unary(Infer *in) {
    same_as(in, tensor(in, 0));
    return FERRY_OK;
}

static ferry_status infer_float_unary(Infer *in) {
    if (!ferry_dtype_is_float(tensor(in, 0)->dtype)) {
        return REJECT(in, "expected a floating-point tensor, found %s",
                      ferry_dtype_name(tensor(in, 0)->dtype));
    }
    return infer_unary(in);
}

static ferry_status infer_binary(Infer *in) {
    const Value *a = tensor(in, 0), *b = tensor(in, 1);
    if (a->dtype != b->dtype) {
        return REJECT(in, "expected tensors of one dtype, found %s and %s",
                      ferry_dtype_name(a->dtype), ferry_dtype_name(b->dtype));
    }
    same_as(in, a);
    return broadcast_into(in, &in->outputs[0], b->rank, b->shape);
}

static ferry_status infer_scalar(Infer *in) {
    same_as(in, tensor(in, 0));
    if (in->args[1].kind == VALUE_FLOAT && !ferry_dtype_is_float(tensor(in, 0)->dtype)) {
        return REJECT(in, "a fractional scalar needs a floating-point tensor, found %s",
                      ferry_dtype_name(tensor(in, 0)->dtype));
    }
    return FERRY_OK;
}

static ferry_status infer_scalar_pow(Infer *in) {
    same_as(in, tensor(in, 1));
    return FERRY_OK;
}

static ferry_status infer_comparison(Infer *in) {
    TRY(infer_binary(in));
    in->outputs[0].dtype = FERRY_BOOL;
    return FERRY_OK;
}

static ferry_status infer_comparison_scalar(Infer *in) {
    TRY(infer_scalar(in));
    in->outputs[0].dtype = FERRY_BOOL;
    return FERRY_OK;
}

static ferry_status infer_to(Infer *in) {
    same_as(in, tensor(in, 0));
    in->outputs[0].dtype = in->args[1].dtype;
    return FERRY_OK;
}

static ferry_status infer_where(Infer *in) {
    const Value *condition = tensor(in, 0), *a = tensor(in, 1), *b = tensor(in, 2);
    if (condition->dtype != FERRY_BOOL || a->dtype != b->dtype) {
        return REJECT(in, "expected (bool, T, T), found (%s, %s, %s)",
                      ferry_dtype_name(condition->dtype), ferry_dtype_name(a->dtype),
                      ferry_dtype_name(b->dtype));
    }
    same_as(in, a);
    TRY(broadcast_into(in, &in->outputs[0], b->rank, b->shape));
    return broadcast_into(in, &in->outputs[0], condition->rank, condition->shape);
}

/* ---- shape ---- */

static ferry_status infer_view(Infer *in) {
    const Value *self = tensor(in, 0);
    InferredType *out = &in->outputs[0];
    const Arg *size = &in->args[1];
    SymTable *table = &in->program->symbols;
    if (size->integers.count > FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    const Sym *from = shape_count(table, self->rank, self->shape);
    const Sym *to = shape_count(table, size->integers.count, size->integers.items);
    if (from != to && sym_is_const(from) && sym_is_const(to)) {
        return REJECT(in, "cannot view %lld elements as %lld", (long long)from->value,
                      (long long)to->value);
    }
    out->dtype = self->dtype;
    out->rank = size->integers.count;
    memcpy(out->shape, size->integers.items, out->rank * sizeof *out->shape);
    return FERRY_OK;
}

static ferry_status infer_permute(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *dims = &in->args[1];
    unsigned seen = 0;
    if (dims->integers.count != self->rank) {
        return REJECT(in, "expected %u dimensions, found %u", self->rank, dims->integers.count);
    }
    in->outputs[0].dtype = self->dtype;
    in->outputs[0].rank = self->rank;
    for (uint32_t d = 0; d < self->rank; d++) {
        int64_t dim = dims->integers.items[d]->value;
        if (dim < 0 || dim >= self->rank || seen & 1u << dim) {
            return REJECT(in, "the dimensions are no permutation");
        }
        seen |= 1u << dim;
        in->outputs[0].shape[d] = self->shape[dim];
    }
    return FERRY_OK;
}

static ferry_status infer_unsqueeze(Infer *in) {
    const Value *self = tensor(in, 0);
    InferredType *out = &in->outputs[0];
    uint32_t dim;
    if (self->rank == FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    TRY(dimension(in, 1, self->rank + 1, &dim));
    out->dtype = self->dtype;
    out->rank = self->rank + 1;
    for (uint32_t d = 0; d < out->rank; d++) {
        out->shape[d] = d == dim ? constant(in, 1) : self->shape[d - (d > dim)];
    }
    return FERRY_OK;
}

/* The shape of `self` without dimension `dim`, or with 1 there. */
static void drop_dimension(Infer *in, const Value *self, uint32_t dim, bool keep) {
    InferredType *out = &in->outputs[0];
    out->rank = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d != dim)
            out->shape[out->rank++] = self->shape[d];
        else if (keep)
            out->shape[out->rank++] = constant(in, 1);
    }
    out->dtype = self->dtype;
}

static ferry_status infer_squeeze(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(dimension(in, 1, self->rank, &dim));
    if (!sym_is_value(self->shape[dim], 1)) return REJECT(in, "dimension %u is not 1", dim);
    drop_dimension(in, self, dim, false);
    return FERRY_OK;
}

static ferry_status infer_select(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(dimension(in, 1, self->rank, &dim));
    drop_dimension(in, self, dim, false);
    return FERRY_OK;
}

static ferry_status infer_expand(Infer *in) {
    const Value *self = tensor(in, 0);
    InferredType *out = &in->outputs[0];
    const Arg *size = &in->args[1];
    if (size->integers.count > FERRY_MAX_RANK || size->integers.count < self->rank) {
        return REJECT(in, "cannot expand a tensor of rank %u to rank %u", self->rank,
                      size->integers.count);
    }
    out->dtype = self->dtype;
    out->rank = size->integers.count;
    for (uint32_t d = 0; d < out->rank; d++) {
        const Sym *old =
            d < out->rank - self->rank ? NULL : self->shape[d - (out->rank - self->rank)];
        const Sym *wanted = size->integers.items[d];
        out->shape[d] = old && sym_is_value(wanted, -1) ? old : wanted;
        if (old && sym_is_const(old) && sym_is_const(out->shape[d]) && old->value != 1 &&
            old != out->shape[d]) {
            return REJECT(in, "cannot expand size %lld to %lld", (long long)old->value,
                          (long long)out->shape[d]->value);
        }
    }
    return FERRY_OK;
}

static ferry_status infer_cat(Infer *in) {
    const Arg *tensors = &in->args[0];
    if (tensors->tensors.count == 0) return REJECT(in, "nothing to concatenate");
    const Value *first = tensors->tensors.items[0];
    InferredType *out = &in->outputs[0];
    uint32_t dim;
    TRY(dimension(in, 1, first->rank, &dim));
    same_as(in, first);
    for (uint32_t i = 1; i < tensors->tensors.count; i++) {
        const Value *part = tensors->tensors.items[i];
        if (part->rank != first->rank || part->dtype != first->dtype) {
            return REJECT(in, "tensor %u differs from the first in rank or dtype", i);
        }
        out->shape[dim] = sym_add(&in->program->symbols, out->shape[dim], part->shape[dim]);
    }
    return FERRY_OK;
}

/* A slice bound as ATen reads it: negative counts from the end, then clamped to [0, size]. */
static const Sym *slice_bound(Infer *in, const Sym *bound, const Sym *size) {
    SymTable *table = &in->program->symbols;
    if (sym_is_const(bound) && bound->value == INT64_MAX) return size;
    if (sym_is_const(bound) && bound->value < 0) {
        return sym_max(table, sym_add(table, bound, size), sym_const(table, 0));
    }
    return sym_min(table, bound, size);
}

static ferry_status infer_slice(Infer *in) {
    const Value *self = tensor(in, 0);
    SymTable *table = &in->program->symbols;
    uint32_t dim;
    TRY(dimension(in, 1, self->rank, &dim));
    const Sym *step = in->args[4].integer;
    if (!sym_is_const(step) || step->value < 1) return REJECT(in, "the step must be positive");
    same_as(in, self);
    const Sym *start = slice_bound(in, in->args[2].integer, self->shape[dim]);
    const Sym *end = slice_bound(in, in->args[3].integer, self->shape[dim]);
    const Sym *length =
        sym_add(table, sym_sub(table, end, start), sym_sub(table, step, constant(in, 1)));
    length = sym_floordiv(table, length, step);
    in->outputs[0].shape[dim] = sym_max(table, length, constant(in, 0));
    return FERRY_OK;
}

static ferry_status infer_split(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *sizes = &in->args[1];
    uint32_t dim;
    TRY(dimension(in, 2, self->rank, &dim));
    if (sizes->integers.count > INFER_MAX_OUTPUTS) {
        return REJECT(in, "more than %d outputs", INFER_MAX_OUTPUTS);
    }
    const Sym *total = constant(in, 0);
    for (uint32_t i = 0; i < sizes->integers.count; i++) {
        InferredType *out = &in->outputs[i];
        out->dtype = self->dtype;
        out->rank = self->rank;
        memcpy(out->shape, self->shape, self->rank * sizeof *self->shape);
        out->shape[dim] = sizes->integers.items[i];
        total = sym_add(&in->program->symbols, total, sizes->integers.items[i]);
    }
    if (total != self->shape[dim] && sym_is_const(total) && sym_is_const(self->shape[dim])) {
        return REJECT(in, "the sizes add up to %lld, the dimension has %lld",
                      (long long)total->value, (long long)self->shape[dim]->value);
    }
    in->count = sizes->integers.count;
    return FERRY_OK;
}

/* ---- selection ---- */

static ferry_status require_index(Infer *in, const Value *index) {
    if (index->dtype == FERRY_I64 || index->dtype == FERRY_I32) return FERRY_OK;
    return REJECT(in, "expected int64 or int32 indices, found %s", ferry_dtype_name(index->dtype));
}

static ferry_status infer_embedding(Infer *in) {
    const Value *weight = tensor(in, 0), *indices = tensor(in, 1);
    TRY(require_index(in, indices));
    if (weight->rank != 2) return REJECT(in, "expected a weight of rank 2, found %u", weight->rank);
    if (indices->rank == FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    same_as(in, indices);
    in->outputs[0].dtype = weight->dtype;
    in->outputs[0].shape[in->outputs[0].rank++] = weight->shape[1];
    return FERRY_OK;
}

static ferry_status infer_index_select(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2);
    uint32_t dim;
    TRY(require_index(in, index));
    TRY(dimension(in, 1, self->rank, &dim));
    if (index->rank != 1) return REJECT(in, "expected indices of rank 1, found %u", index->rank);
    same_as(in, self);
    in->outputs[0].shape[dim] = index->shape[0];
    return FERRY_OK;
}

static ferry_status infer_gather(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2);
    uint32_t dim;
    TRY(require_index(in, index));
    TRY(dimension(in, 1, self->rank, &dim));
    if (index->rank != self->rank) {
        return REJECT(in, "expected indices of rank %u, found %u", self->rank, index->rank);
    }
    same_as(in, index);
    in->outputs[0].dtype = self->dtype;
    return FERRY_OK;
}

/* ---- reduction ---- */

static ferry_status infer_reduce(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *dims = &in->args[1];
    InferredType *out = &in->outputs[0];
    unsigned reduced = dims->integers.count ? 0 : (1u << self->rank) - 1;
    for (uint32_t i = 0; i < dims->integers.count; i++) {
        int64_t dim = dims->integers.items[i]->value;
        if (dim < 0) dim += self->rank;
        if (dim < 0 || dim >= self->rank) return REJECT(in, "a dimension is out of range");
        reduced |= 1u << dim;
    }
    out->dtype = self->dtype;
    if (in->op == OP_SUM && !ferry_dtype_is_float(self->dtype)) out->dtype = FERRY_I64;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (!(reduced & 1u << d))
            out->shape[out->rank++] = self->shape[d];
        else if (in->args[2].boolean)
            out->shape[out->rank++] = constant(in, 1);
    }
    return FERRY_OK;
}

static ferry_status infer_reduce_dim(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(dimension(in, 1, self->rank, &dim));
    drop_dimension(in, self, dim, in->args[2].boolean);
    in->outputs[0].dtype = in->op == OP_ANY ? FERRY_BOOL : FERRY_I64;
    return FERRY_OK;
}

static ferry_status infer_cumsum(Infer *in) {
    uint32_t dim;
    TRY(dimension(in, 1, tensor(in, 0)->rank, &dim));
    same_as(in, tensor(in, 0));
    if (!ferry_dtype_is_float(in->outputs[0].dtype)) in->outputs[0].dtype = FERRY_I64;
    return FERRY_OK;
}

static ferry_status infer_softmax(Infer *in) {
    uint32_t dim;
    TRY(dimension(in, 1, tensor(in, 0)->rank, &dim));
    return infer_float_unary(in);
}

/* ---- creation ---- */

static ferry_status infer_arange(Infer *in) {
    SymTable *table = &in->program->symbols;
    const Sym *step = in->args[2].integer;
    if (!sym_is_const(step) || step->value < 1) return REJECT(in, "the step must be positive");
    const Sym *length = sym_sub(table, in->args[1].integer, in->args[0].integer);
    length = sym_add(table, length, sym_sub(table, step, constant(in, 1)));
    in->outputs[0] = (InferredType){.dtype = in->args[3].dtype, .rank = 1};
    in->outputs[0].shape[0] = sym_floordiv(table, length, step);
    return FERRY_OK;
}

static ferry_status infer_full(Infer *in) {
    const Arg *size = &in->args[0];
    InferredType *out = &in->outputs[0];
    if (size->integers.count > FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    out->dtype = in->args[2].dtype;
    out->rank = size->integers.count;
    memcpy(out->shape, size->integers.items, out->rank * sizeof *out->shape);
    return FERRY_OK;
}

static ferry_status infer_scalar_tensor(Infer *in) {
    in->outputs[0] = (InferredType){.dtype = in->args[1].dtype};
    return FERRY_OK;
}

/* ---- layers ---- */

/* Rejects two sizes that are different constants. */
static ferry_status require_equal(Infer *in, const char *what, const Sym *a, const Sym *b) {
    if (a == b || !sym_is_const(a) || !sym_is_const(b)) return FERRY_OK;
    return REJECT(in, "%s: %lld and %lld differ", what, (long long)a->value, (long long)b->value);
}

static ferry_status infer_linear(Infer *in) {
    const Value *input = tensor(in, 0), *weight = tensor(in, 1);
    if (weight->rank != 2) return REJECT(in, "expected a weight of rank 2, found %u", weight->rank);
    if (input->rank == 0 || input->dtype != weight->dtype) {
        return REJECT(in, "expected an input of dtype %s, found %s",
                      ferry_dtype_name(weight->dtype), ferry_dtype_name(input->dtype));
    }
    TRY(require_equal(in, "features of the input and the weight", input->shape[input->rank - 1],
                      weight->shape[1]));
    if (in->args[2].kind == VALUE_TENSOR) {
        const Value *bias = tensor(in, 2);
        if (bias->rank != 1 || bias->dtype != weight->dtype) return REJECT(in, "unsuitable bias");
        TRY(require_equal(in, "features of the weight and the bias", weight->shape[0],
                          bias->shape[0]));
    }
    same_as(in, input);
    in->outputs[0].shape[input->rank - 1] = weight->shape[0];
    return FERRY_OK;
}

static ferry_status infer_matmul(Infer *in) {
    const Value *a = tensor(in, 0), *b = tensor(in, 1);
    InferredType *out = &in->outputs[0];
    if (a->rank < 2 || b->rank < 2 || a->dtype != b->dtype) {
        return REJECT(in, "expected two tensors of one dtype and rank 2 or more");
    }
    TRY(require_equal(in, "inner sizes", a->shape[a->rank - 1], b->shape[b->rank - 2]));
    out->dtype = a->dtype;
    out->rank = a->rank - 2;
    memcpy(out->shape, a->shape, out->rank * sizeof *out->shape);
    TRY(broadcast_into(in, out, b->rank - 2, b->shape));
    out->shape[out->rank++] = a->shape[a->rank - 2];
    out->shape[out->rank++] = b->shape[b->rank - 1];
    return FERRY_OK;
}

static ferry_status infer_norm(Infer *in) {
    const Value *input = tensor(in, 0);
    const Arg *shape = &in->args[1];
    uint32_t outer = input->rank - shape->integers.count;
    if (shape->integers.count == 0 || shape->integers.count > input->rank) {
        return REJECT(in, "the normalized shape does not fit the input");
    }
    for (uint32_t d = 0; d < shape->integers.count; d++) {
        TRY(require_equal(in, "normalized sizes", shape->integers.items[d],
                          input->shape[outer + d]));
    }
    return infer_float_unary(in);
}

static ferry_status infer_attention(Infer *in) {
    const Value *query = tensor(in, 0), *key = tensor(in, 1), *value = tensor(in, 2);
    InferredType *out = &in->outputs[0];
    if (query->rank != 4 || key->rank != 4 || value->rank != 4) {
        return REJECT(in, "expected query, key and value of rank 4 [batch, heads, length, size]");
    }
    if (query->dtype != key->dtype || query->dtype != value->dtype) {
        return REJECT(in, "query, key and value must have one dtype");
    }
    TRY(require_equal(in, "head sizes of query and key", query->shape[3], key->shape[3]));
    TRY(require_equal(in, "lengths of key and value", key->shape[2], value->shape[2]));
    TRY(require_equal(in, "heads of key and value", key->shape[1], value->shape[1]));
    if (!in->args[6].boolean) {
        TRY(require_equal(in, "heads of query and key", query->shape[1], key->shape[1]));
    } else if (!sym_is_const(query->shape[1]) || !sym_is_const(key->shape[1]) ||
               key->shape[1]->value < 1 || query->shape[1]->value % key->shape[1]->value != 0) {
        return REJECT(in, "with enable_gqa the query heads must be a multiple of the key heads");
    }
    if (in->args[3].kind == VALUE_TENSOR && tensor(in, 3)->dtype != FERRY_BOOL &&
        tensor(in, 3)->dtype != query->dtype) {
        return REJECT(in, "expected a mask of dtype bool or %s, found %s",
                      ferry_dtype_name(query->dtype), ferry_dtype_name(tensor(in, 3)->dtype));
    }
    same_as(in, query);
    out->shape[3] = value->shape[3];
    return FERRY_OK;
}

static ferry_status infer_rotary(Infer *in) {
    const Value *self = tensor(in, 0), *cosine = tensor(in, 1), *sine = tensor(in, 2);
    if (self->dtype != cosine->dtype || self->dtype != sine->dtype) {
        return REJECT(in, "expected tensors of one dtype");
    }
    return infer_unary(in);
}

static const InferRule rules[OP_COUNT] = {
    [OP_ADD] = infer_binary,
    [OP_SUB] = infer_binary,
    [OP_MUL] = infer_binary,
    [OP_DIV] = infer_binary,
    [OP_MAXIMUM] = infer_binary,
    [OP_MINIMUM] = infer_binary,
    [OP_ADD_SCALAR] = infer_scalar,
    [OP_MUL_SCALAR] = infer_scalar,
    [OP_DIV_SCALAR] = infer_scalar,
    [OP_POW_SCALAR] = infer_scalar,
    [OP_SCALAR_POW] = infer_scalar_pow,
    [OP_CLAMP] = infer_unary,
    [OP_NEG] = infer_unary,
    [OP_ABS] = infer_unary,
    [OP_EXP] = infer_float_unary,
    [OP_LOG] = infer_float_unary,
    [OP_SQRT] = infer_float_unary,
    [OP_RSQRT] = infer_float_unary,
    [OP_RECIPROCAL] = infer_float_unary,
    [OP_COS] = infer_float_unary,
    [OP_SIN] = infer_float_unary,
    [OP_TANH] = infer_float_unary,
    [OP_SIGMOID] = infer_float_unary,
    [OP_ERF] = infer_float_unary,
    [OP_RELU] = infer_unary,
    [OP_SILU] = infer_float_unary,
    [OP_GELU] = infer_float_unary,
    [OP_SOFTPLUS] = infer_float_unary,
    [OP_ELU] = infer_float_unary,
    [OP_LEAKY_RELU] = infer_float_unary,
    [OP_TO] = infer_to,
    [OP_EQ] = infer_comparison,
    [OP_NE] = infer_comparison,
    [OP_LT] = infer_comparison,
    [OP_LE] = infer_comparison,
    [OP_GT] = infer_comparison,
    [OP_GE] = infer_comparison,
    [OP_EQ_SCALAR] = infer_comparison_scalar,
    [OP_NE_SCALAR] = infer_comparison_scalar,
    [OP_LT_SCALAR] = infer_comparison_scalar,
    [OP_LE_SCALAR] = infer_comparison_scalar,
    [OP_GT_SCALAR] = infer_comparison_scalar,
    [OP_GE_SCALAR] = infer_comparison_scalar,
    [OP_AND] = infer_binary,
    [OP_OR] = infer_binary,
    [OP_NOT] = infer_unary,
    [OP_WHERE] = infer_where,
    [OP_VIEW] = infer_view,
    [OP_PERMUTE] = infer_permute,
    [OP_UNSQUEEZE] = infer_unsqueeze,
    [OP_SQUEEZE] = infer_squeeze,
    [OP_EXPAND] = infer_expand,
    [OP_CAT] = infer_cat,
    [OP_SLICE] = infer_slice,
    [OP_SELECT] = infer_select,
    [OP_SPLIT] = infer_split,
    [OP_EMBEDDING] = infer_embedding,
    [OP_INDEX_SELECT] = infer_index_select,
    [OP_GATHER] = infer_gather,
    [OP_SUM] = infer_reduce,
    [OP_MEAN] = infer_reduce,
    [OP_AMAX] = infer_reduce,
    [OP_AMIN] = infer_reduce,
    [OP_ANY] = infer_reduce_dim,
    [OP_ARGMAX] = infer_reduce_dim,
    [OP_CUMSUM] = infer_cumsum,
    [OP_SOFTMAX] = infer_softmax,
    [OP_ARANGE] = infer_arange,
    [OP_FULL] = infer_full,
    [OP_SCALAR_TENSOR] = infer_scalar_tensor,
    [OP_LINEAR] = infer_linear,
    [OP_MATMUL] = infer_matmul,
    [OP_LAYER_NORM] = infer_norm,
    [OP_RMS_NORM] = infer_norm,
    [OP_ATTENTION] = infer_attention,
    [OP_ROTARY_EMBEDDING] = infer_rotary,
};

ferry_status infer_types(Program *program, Op op, const Arg *args, InferredType *outputs,
                         uint32_t *output_count, ferry_error *error) {
    Infer in = {
        .program = program, .op = op, .args = args, .outputs = outputs, .count = 1, .error = error};
    if (!rules[op]) return error_set(error, FERRY_INTERNAL, op_name(op), "no type rule");
    outputs[0] = (InferredType){0};
    TRY(rules[op](&in));
    *output_count = in.count;
    return FERRY_OK;
}
