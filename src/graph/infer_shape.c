/* Type rules of what moves, selects or makes elements. */
#include "graph/infer_rules.h"

/* ---- shape ---- */

ferry_status infer_view(Infer *in) {
    const Value *self = tensor(in, 0);
    InferredType *out = &in->outputs[0];
    const Arg *size = &in->args[1];
    SymTable *table = &in->program->symbols;
    TRY(infer_require_sizes(in, 1));
    /* Counts that are too complex to compare are left to the run. */
    bool overflow = table->overflow;
    const Sym *from = shape_count(table, self->rank, self->shape);
    const Sym *to = shape_count(table, size->integers.count, size->integers.items);
    if (!table->overflow) TRY(infer_require_equal(in, "elements before and after", from, to));
    table->overflow = overflow;
    out->dtype = self->dtype;
    out->rank = size->integers.count;
    memcpy(out->shape, size->integers.items, out->rank * sizeof *out->shape);
    return FERRY_OK;
}

ferry_status infer_permute(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *dims = &in->args[1];
    unsigned seen = 0;
    if (dims->integers.count != self->rank) {
        return REJECT(in, "expected %u dimensions, found %u", self->rank, dims->integers.count);
    }
    in->outputs[0].dtype = self->dtype;
    in->outputs[0].rank = self->rank;
    for (uint32_t d = 0; d < self->rank; d++) {
        const Sym *sym = dims->integers.items[d];
        int64_t dim = sym->value;
        if (!sym_is_const(sym) || dim < 0 || dim >= self->rank || seen & 1u << dim) {
            return REJECT(in, "the dimensions are no permutation");
        }
        seen |= 1u << dim;
        in->outputs[0].shape[d] = self->shape[dim];
    }
    return FERRY_OK;
}

ferry_status infer_unsqueeze(Infer *in) {
    const Value *self = tensor(in, 0);
    InferredType *out = &in->outputs[0];
    uint32_t dim;
    if (self->rank == FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    TRY(infer_dimension(in, 1, self->rank + 1, &dim));
    out->dtype = self->dtype;
    out->rank = self->rank + 1;
    for (uint32_t d = 0; d < out->rank; d++) {
        out->shape[d] = d == dim ? constant(in, 1) : self->shape[d - (d > dim)];
    }
    return FERRY_OK;
}

ferry_status infer_squeeze(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(infer_dimension(in, 1, self->rank, &dim));
    if (!sym_is_value(self->shape[dim], 1)) return REJECT(in, "dimension %u is not 1", dim);
    infer_drop_dimension(in, self, dim, false);
    return FERRY_OK;
}

ferry_status infer_select(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(infer_dimension(in, 1, self->rank, &dim));
    const Sym *index = in->args[2].integer, *size = self->shape[dim];
    if (sym_is_const(index) && sym_is_const(size) &&
        (index->value >= size->value || index->value < -size->value)) {
        return REJECT(in, "index %s is outside a dimension of %s", infer_text(in, index),
                      infer_text(in, size));
    }
    infer_drop_dimension(in, self, dim, false);
    return FERRY_OK;
}

ferry_status infer_expand(Infer *in) {
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
        if (sym_is_const(out->shape[d]) && out->shape[d]->value < 0) {
            return REJECT(in, "expected sizes of 0 or more, found %s", infer_text(in, wanted));
        }
        if (old && sym_is_const(old) && sym_is_const(out->shape[d]) && old->value != 1 &&
            old != out->shape[d]) {
            return REJECT(in, "cannot expand size %lld to %lld", (long long)old->value,
                          (long long)out->shape[d]->value);
        }
    }
    return FERRY_OK;
}

ferry_status infer_cat(Infer *in) {
    const Arg *tensors = &in->args[0];
    if (tensors->tensors.count == 0) return REJECT(in, "nothing to concatenate");
    const Value *first = tensors->tensors.items[0];
    InferredType *out = &in->outputs[0];
    uint32_t dim;
    TRY(infer_dimension(in, 1, first->rank, &dim));
    same_as(in, first);
    for (uint32_t i = 1; i < tensors->tensors.count; i++) {
        const Value *part = tensors->tensors.items[i];
        if (part->rank != first->rank || part->dtype != first->dtype) {
            return REJECT(in, "tensor %u differs from the first in rank or dtype", i);
        }
        for (uint32_t d = 0; d < first->rank; d++) {
            if (d == dim) continue;
            TRY(infer_require_equal(in, "sizes beside the concatenated dimension", first->shape[d],
                                    part->shape[d]));
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

ferry_status infer_slice(Infer *in) {
    const Value *self = tensor(in, 0);
    SymTable *table = &in->program->symbols;
    uint32_t dim;
    TRY(infer_dimension(in, 1, self->rank, &dim));
    const Sym *step = in->args[4].integer;
    if (!sym_is_const(step) || step->value < 1) return REJECT(in, "the step must be positive");
    same_as(in, self);
    const Sym *first = in->args[2].integer, *last = in->args[3].integer;
    bool to_end = sym_is_value(last, INT64_MAX);
    if (to_end && sym_is_const(first) && first->value < 0 && step->value == 1) {
        /* The last n entries, as many as there are. */
        in->outputs[0].shape[dim] = sym_min(table, constant(in, -first->value), self->shape[dim]);
        return FERRY_OK;
    }
    const Sym *end = slice_bound(in, last, self->shape[dim]);
    /* Beyond the end of the dimension a start gives a negative length, which is clamped anyway. */
    bool plain = end == self->shape[dim] && first->lower >= 0;
    const Sym *start = plain ? first : slice_bound(in, first, self->shape[dim]);
    const Sym *length =
        sym_add(table, sym_sub(table, end, start), sym_sub(table, step, constant(in, 1)));
    length = sym_floordiv(table, length, step);
    in->outputs[0].shape[dim] = sym_max(table, length, constant(in, 0));
    return FERRY_OK;
}

ferry_status infer_split(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *sizes = &in->args[1];
    uint32_t dim;
    TRY(infer_dimension(in, 2, self->rank, &dim));
    if (sizes->integers.count < 1 || sizes->integers.count > INFER_MAX_OUTPUTS) {
        return REJECT(in, "expected 1 to %d outputs, found %u", INFER_MAX_OUTPUTS,
                      sizes->integers.count);
    }
    const Sym *total = constant(in, 0);
    for (uint32_t i = 0; i < sizes->integers.count; i++) {
        InferredType *out = &in->outputs[i];
        out->dtype = self->dtype;
        out->rank = self->rank;
        memcpy(out->shape, self->shape, self->rank * sizeof *self->shape);
        out->shape[dim] = sizes->integers.items[i];
        if (sym_is_const(out->shape[dim]) && out->shape[dim]->value < 0) {
            return REJECT(in, "expected sizes of 0 or more, found %s",
                          infer_text(in, out->shape[dim]));
        }
        total = sym_add(&in->program->symbols, total, sizes->integers.items[i]);
    }
    TRY(infer_require_equal(in, "the sum of the parts and the dimension", total, self->shape[dim]));
    in->count = sizes->integers.count;
    return FERRY_OK;
}

/* ---- selection ---- */

ferry_status infer_embedding(Infer *in) {
    const Value *weight = tensor(in, 0), *indices = tensor(in, 1);
    TRY(infer_require_index(in, indices));
    if (weight->rank != 2) return REJECT(in, "expected a weight of rank 2, found %u", weight->rank);
    if (indices->rank == FERRY_MAX_RANK) return REJECT(in, "the rank is above 8");
    same_as(in, indices);
    in->outputs[0].dtype = weight->dtype;
    in->outputs[0].shape[in->outputs[0].rank++] = weight->shape[1];
    return FERRY_OK;
}

ferry_status infer_index_select(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2);
    uint32_t dim;
    TRY(infer_require_index(in, index));
    TRY(infer_dimension(in, 1, self->rank, &dim));
    if (index->rank != 1) return REJECT(in, "expected indices of rank 1, found %u", index->rank);
    same_as(in, self);
    in->outputs[0].shape[dim] = index->shape[0];
    return FERRY_OK;
}

ferry_status infer_gather(Infer *in) {
    const Value *self = tensor(in, 0), *index = tensor(in, 2);
    uint32_t dim;
    TRY(infer_require_index(in, index));
    TRY(infer_dimension(in, 1, self->rank, &dim));
    if (index->rank != self->rank) {
        return REJECT(in, "expected indices of rank %u, found %u", self->rank, index->rank);
    }
    same_as(in, index);
    in->outputs[0].dtype = self->dtype;
    return FERRY_OK;
}

/* ---- creation ---- */

ferry_status infer_arange(Infer *in) {
    SymTable *table = &in->program->symbols;
    const Sym *step = in->args[2].integer;
    if (!sym_is_const(step) || step->value < 1) return REJECT(in, "the step must be positive");
    const Sym *length = sym_sub(table, in->args[1].integer, in->args[0].integer);
    length = sym_add(table, length, sym_sub(table, step, constant(in, 1)));
    in->outputs[0] = (InferredType){.dtype = in->args[3].dtype, .rank = 1};
    length = sym_floordiv(table, length, step);
    if (sym_is_const(length) && length->value < 0) return REJECT(in, "the end is before the start");
    in->outputs[0].shape[0] = length;
    return FERRY_OK;
}

ferry_status infer_full(Infer *in) {
    const Arg *size = &in->args[0];
    InferredType *out = &in->outputs[0];
    TRY(infer_require_sizes(in, 0));
    out->dtype = in->args[2].dtype;
    out->rank = size->integers.count;
    memcpy(out->shape, size->integers.items, out->rank * sizeof *out->shape);
    return FERRY_OK;
}

ferry_status infer_scalar_tensor(Infer *in) {
    in->outputs[0] = (InferredType){.dtype = in->args[1].dtype};
    return FERRY_OK;
}
