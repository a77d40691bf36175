/* What the type rules share. Rules are named by the table in infer.c; each reads the arguments of its
 * operation, whose kinds are checked before, and fills in->outputs. */
#ifndef GRAPH_INFER_RULES_H
#define GRAPH_INFER_RULES_H

#include "base/error.h"
#include "graph/infer.h"

#include <string.h>

typedef struct Infer {
    Program *program;
    Op op;
    const Arg *args;
    InferredType *outputs; /* outputs[0] is all zero at first */
    uint32_t count;        /* of outputs; 1 unless the rule says otherwise */
    ferry_error *error;
} Infer;

typedef ferry_status (*InferRule)(Infer *in);

#define REJECT(in, ...)                                                                            \
    error_set((in)->error, FERRY_INVALID_ARGUMENT, op_name((in)->op), __VA_ARGS__)

static inline const Sym *constant(Infer *in, int64_t value) {
    return sym_const(&in->program->symbols, value);
}

static inline const Value *tensor(const Infer *in, uint32_t arg) {
    return in->args[arg].tensor;
}

/* Output 0 is of the type of `value`. */
static inline void same_as(Infer *in, const Value *value) {
    InferredType *out = &in->outputs[0];
    out->dtype = value->dtype;
    out->rank = value->rank;
    memcpy(out->shape, value->shape, value->rank * sizeof *value->shape);
}

/* A dimension argument, possibly negative, for a tensor of `rank` dimensions. */
ferry_status infer_dimension(Infer *in, uint32_t arg, uint32_t rank, uint32_t *out);

/* Output 0 is `self` without dimension `dim`, or with 1 there. */
void infer_drop_dimension(Infer *in, const Value *self, uint32_t dim, bool keep);

/* Broadcast a shape into that of `out`. */
ferry_status infer_broadcast_into(Infer *in, InferredType *out, uint32_t rank,
                                  const Sym *const *shape);

/* The text of an expression, for messages. */
const char *infer_text(Infer *in, const Sym *sym);

/* Rejects two sizes that cannot be the same number. */
ferry_status infer_require_equal(Infer *in, const char *what, const Sym *a, const Sym *b);

/* Rejects a list argument with constants below 0 or with more than FERRY_MAX_RANK sizes. */
ferry_status infer_require_sizes(Infer *in, uint32_t arg);

/* Reject indices that are neither int64 nor int32. */
ferry_status infer_require_index(Infer *in, const Value *index);

/* The rules. */
ferry_status infer_unary(Infer *in);
ferry_status infer_float_unary(Infer *in);
ferry_status infer_binary(Infer *in);
ferry_status infer_scalar(Infer *in);
ferry_status infer_scalar_pow(Infer *in);
ferry_status infer_comparison(Infer *in);
ferry_status infer_comparison_scalar(Infer *in);
ferry_status infer_to(Infer *in);
ferry_status infer_where(Infer *in);
ferry_status infer_view(Infer *in);
ferry_status infer_permute(Infer *in);
ferry_status infer_unsqueeze(Infer *in);
ferry_status infer_squeeze(Infer *in);
ferry_status infer_select(Infer *in);
ferry_status infer_expand(Infer *in);
ferry_status infer_cat(Infer *in);
ferry_status infer_slice(Infer *in);
ferry_status infer_split(Infer *in);
ferry_status infer_embedding(Infer *in);
ferry_status infer_index_select(Infer *in);
ferry_status infer_gather(Infer *in);
ferry_status infer_index(Infer *in);
ferry_status infer_index_put(Infer *in);
ferry_status infer_index_copy(Infer *in);
ferry_status infer_scatter(Infer *in);
ferry_status infer_nonzero(Infer *in);
ferry_status infer_topk(Infer *in);
ferry_status infer_grouped_mm(Infer *in);
ferry_status infer_reduce(Infer *in);
ferry_status infer_reduce_dim(Infer *in);
ferry_status infer_cumsum(Infer *in);
ferry_status infer_softmax(Infer *in);
ferry_status infer_arange(Infer *in);
ferry_status infer_full(Infer *in);
ferry_status infer_scalar_tensor(Infer *in);
ferry_status infer_linear(Infer *in);
ferry_status infer_matmul(Infer *in);
ferry_status infer_norm(Infer *in);
ferry_status infer_attention(Infer *in);
ferry_status infer_rotary(Infer *in);

/* infer_vision.c */
ferry_status infer_convolution(Infer *in);
ferry_status infer_pool(Infer *in);
ferry_status infer_batch_norm(Infer *in);
ferry_status infer_group_norm(Infer *in);
ferry_status infer_pad(Infer *in);
ferry_status infer_upsample(Infer *in);
ferry_status infer_grid_sampler(Infer *in);

#endif
