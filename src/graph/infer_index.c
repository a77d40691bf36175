/* Type rules of indexing by tensors, scattering and ordering. */
#include "graph/infer_rules.h"

ferry_status infer_require_index(Infer *in, const Value *index) {
    if (index->dtype == FERRY_I64 || index->dtype == FERRY_I32) return FERRY_OK;
    return REJECT(in, "expected int64 or int32 indices, found %s", ferry_dtype_name(index->dtype));
}

/* The broadcast shape of the index tensors, in `shape`; the set of indexed dimensions in `dims`. */
static ferry_status index_shape(Infer *in, InferredType *shape, unsigned *dims) {
    const Arg *indices = &in->args[1];
    *shape = (InferredType){.dtype = FERRY_I64};
    *dims = 0;
    if (indices->tensors.count > tensor(in, 0)->rank) {
        return REJECT(in, "%u indices for a tensor of rank %u", indices->tensors.count,
                      tensor(in, 0)->rank);
    }
    for (uint32_t i = 0; i < indices->tensors.count; i++) {
        const Value *index = indices->tensors.items[i];
        if (!index) continue;
        TRY(infer_require_index(in, index));
        TRY(infer_broadcast_into(in, shape, index->rank, index->shape));
        *dims |= 1u << i;
    }
    return *dims ? FERRY_OK : REJECT(in, "expected at least one index tensor");
}

uint32_t infer_index_place(unsigned dims) {
    uint32_t first = (uint32_t)__builtin_ctz(dims);
    unsigned run = dims >> first;
    return run & (run + 1) ? 0 : first; /* not neighbours: the new dimensions come first */
}

/* The dimensions of the index stand where the indexed ones were, or in front when those are apart. */
static ferry_status indexed_type(Infer *in, InferredType *out) {
    const Value *self = tensor(in, 0);
    InferredType index;
    unsigned dims;
    TRY(index_shape(in, &index, &dims));
    uint32_t place = infer_index_place(dims), kept = 0;
    const Sym *rest[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < self->rank; d++) {
        if (!(dims >> d & 1)) rest[kept++] = self->shape[d];
    }
    if (kept + index.rank > FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    *out = (InferredType){.dtype = self->dtype, .rank = kept + index.rank};
    memcpy(out->shape, rest, place * sizeof *rest);
    memcpy(out->shape + place, index.shape, index.rank * sizeof *rest);
    memcpy(out->shape + place + index.rank, rest + place, (kept - place) * sizeof *rest);
    return FERRY_OK;
}

ferry_status infer_index(Infer *in) {
    return indexed_type(in, &in->outputs[0]);
}

static ferry_status require_dtype(Infer *in, const Value *source) {
    if (source->dtype == tensor(in, 0)->dtype) return FERRY_OK;
    return REJECT(in, "expected a source of dtype %s, found %s",
                  ferry_dtype_name(tensor(in, 0)->dtype), ferry_dtype_name(source->dtype));
}

ferry_status infer_index_put(Infer *in) {
    InferredType chosen;
    const Value *values = tensor(in, 2);
    TRY(indexed_type(in, &chosen));
    TRY(require_dtype(in, values));
    uint32_t rank = chosen.rank;
    TRY(infer_broadcast_into(in, &chosen, values->rank, values->shape));
    if (chosen.rank != rank) return REJECT(in, "the values have more dimensions than the place");
    same_as(in, tensor(in, 0));
    return FERRY_OK;
}

ferry_status infer_index_copy(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2), *source = tensor(in, 3);
    uint32_t dim;
    TRY(infer_require_index(in, index));
    TRY(require_dtype(in, source));
    TRY(infer_dimension(in, 1, self->rank, &dim));
    if (index->rank != 1 || source->rank != self->rank) {
        return REJECT(in, "expected indices of rank 1 and a source of rank %u", self->rank);
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        const Sym *expected = d == dim ? index->shape[0] : self->shape[d];
        TRY(infer_require_equal(in, "sizes of the source", expected, source->shape[d]));
    }
    same_as(in, self);
    return FERRY_OK;
}

ferry_status infer_scatter(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2), *source = tensor(in, 3);
    uint32_t dim;
    TRY(infer_require_index(in, index));
    TRY(require_dtype(in, source));
    TRY(infer_dimension(in, 1, self->rank, &dim));
    if (index->rank != self->rank || source->rank != self->rank) {
        return REJECT(in, "expected indices and a source of rank %u", self->rank);
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        TRY(infer_require_equal(in, "sizes of indices and source", index->shape[d],
                                source->shape[d]));
    }
    if (in->op == OP_SCATTER_REDUCE) {
        static const char *const known[] = {"sum", "prod", "amax", "amin"};
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            found = found || strcmp(in->args[4].string, known[i]) == 0;
        }
        if (!found) return REJECT(in, "unknown reduction \"%s\"", in->args[4].string);
    }
    same_as(in, self);
    return FERRY_OK;
}

ferry_status infer_nonzero(Infer *in) {
    InferredType *out = &in->outputs[0];
    *out = (InferredType){.dtype = FERRY_I64, .rank = 2};
    out->shape[0] = in->args[1].integer;
    out->shape[1] = constant(in, tensor(in, 0)->rank);
    return FERRY_OK;
}

ferry_status infer_topk(Infer *in) {
    const Value *self = tensor(in, 0);
    const Sym *count = in->args[1].integer;
    uint32_t dim;
    TRY(infer_dimension(in, 2, self->rank, &dim));
    if (sym_is_const(count) && sym_is_const(self->shape[dim]) &&
        (count->value < 0 || count->value > self->shape[dim]->value)) {
        return REJECT(in, "%s of %s elements", infer_text(in, count),
                      infer_text(in, self->shape[dim]));
    }
    same_as(in, self);
    in->outputs[0].shape[dim] = count;
    in->outputs[1] = in->outputs[0];
    in->outputs[1].dtype = FERRY_I64;
    in->count = 2;
    return FERRY_OK;
}

ferry_status infer_grouped_mm(Infer *in) {
    const Value *self = tensor(in, 0), *weights = tensor(in, 1), *offsets = tensor(in, 2);
    if (self->rank != 2 || weights->rank != 3 || offsets->rank != 1) {
        return REJECT(in, "expected [rows, k], [groups, k, n] and [groups]");
    }
    TRY(require_dtype(in, weights));
    TRY(infer_require_index(in, offsets));
    TRY(infer_require_equal(in, "inner sizes", self->shape[1], weights->shape[1]));
    TRY(infer_require_equal(in, "groups", weights->shape[0], offsets->shape[0]));
    same_as(in, self);
    in->outputs[0].shape[1] = weights->shape[2];
    return FERRY_OK;
}
