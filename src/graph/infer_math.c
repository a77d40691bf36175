/* Type rules of arithmetic, comparisons, reductions and layers. */
#include "graph/infer_rules.h"

/* ---- element by element ---- */

ferry_status infer_unary(Infer *in) {
    same_as(in, tensor(in, 0));
    return FERRY_OK;
}

ferry_status infer_float_unary(Infer *in) {
    if (!ferry_dtype_is_float(tensor(in, 0)->dtype)) {
        return REJECT(in, "expected a floating-point tensor, found %s",
                      ferry_dtype_name(tensor(in, 0)->dtype));
    }
    return infer_unary(in);
}

ferry_status infer_binary(Infer *in) {
    const Value *a = tensor(in, 0), *b = tensor(in, 1);
    if (a->dtype != b->dtype) {
        return REJECT(in, "expected tensors of one dtype, found %s and %s",
                      ferry_dtype_name(a->dtype), ferry_dtype_name(b->dtype));
    }
    same_as(in, a);
    return infer_broadcast_into(in, &in->outputs[0], b->rank, b->shape);
}

ferry_status infer_scalar(Infer *in) {
    same_as(in, tensor(in, 0));
    if (in->args[1].kind == VALUE_FLOAT && !ferry_dtype_is_float(tensor(in, 0)->dtype)) {
        return REJECT(in, "a fractional scalar needs a floating-point tensor, found %s",
                      ferry_dtype_name(tensor(in, 0)->dtype));
    }
    return FERRY_OK;
}

ferry_status infer_scalar_pow(Infer *in) {
    same_as(in, tensor(in, 1));
    return FERRY_OK;
}

ferry_status infer_comparison(Infer *in) {
    TRY(infer_binary(in));
    in->outputs[0].dtype = FERRY_BOOL;
    return FERRY_OK;
}

ferry_status infer_comparison_scalar(Infer *in) {
    TRY(infer_scalar(in));
    in->outputs[0].dtype = FERRY_BOOL;
    return FERRY_OK;
}

ferry_status infer_to(Infer *in) {
    same_as(in, tensor(in, 0));
    in->outputs[0].dtype = in->args[1].dtype;
    return FERRY_OK;
}

ferry_status infer_where(Infer *in) {
    const Value *condition = tensor(in, 0), *a = tensor(in, 1), *b = tensor(in, 2);
    if (condition->dtype != FERRY_BOOL || a->dtype != b->dtype) {
        return REJECT(in, "expected (bool, T, T), found (%s, %s, %s)",
                      ferry_dtype_name(condition->dtype), ferry_dtype_name(a->dtype),
                      ferry_dtype_name(b->dtype));
    }
    same_as(in, a);
    TRY(infer_broadcast_into(in, &in->outputs[0], b->rank, b->shape));
    return infer_broadcast_into(in, &in->outputs[0], condition->rank, condition->shape);
}

/* ---- reduction ---- */

ferry_status infer_reduce(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *dims = &in->args[1];
    InferredType *out = &in->outputs[0];
    unsigned reduced = dims->integers.count ? 0 : (1u << self->rank) - 1;
    for (uint32_t i = 0; i < dims->integers.count; i++) {
        const Sym *sym = dims->integers.items[i];
        int64_t dim = sym->value < 0 ? sym->value + self->rank : sym->value;
        if (!sym_is_const(sym) || dim < 0 || dim >= self->rank) {
            return REJECT(in, "dimension %s is outside a tensor of rank %u", infer_text(in, sym),
                          self->rank);
        }
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

ferry_status infer_reduce_dim(Infer *in) {
    const Value *self = tensor(in, 0);
    uint32_t dim;
    TRY(infer_dimension(in, 1, self->rank, &dim));
    infer_drop_dimension(in, self, dim, in->args[2].boolean);
    if (in->op == OP_PROD && ferry_dtype_is_float(self->dtype)) return FERRY_OK;
    in->outputs[0].dtype = in->op == OP_ANY ? FERRY_BOOL : FERRY_I64;
    return FERRY_OK;
}

ferry_status infer_cumsum(Infer *in) {
    uint32_t dim;
    TRY(infer_dimension(in, 1, tensor(in, 0)->rank, &dim));
    same_as(in, tensor(in, 0));
    if (!ferry_dtype_is_float(in->outputs[0].dtype)) in->outputs[0].dtype = FERRY_I64;
    return FERRY_OK;
}

ferry_status infer_softmax(Infer *in) {
    uint32_t dim;
    TRY(infer_dimension(in, 1, tensor(in, 0)->rank, &dim));
    return infer_float_unary(in);
}

/* ---- layers ---- */

ferry_status infer_linear(Infer *in) {
    const Value *input = tensor(in, 0), *weight = tensor(in, 1);
    if (weight->rank != 2) return REJECT(in, "expected a weight of rank 2, found %u", weight->rank);
    if (input->rank == 0 || input->dtype != weight->dtype) {
        return REJECT(in, "expected an input of dtype %s, found %s",
                      ferry_dtype_name(weight->dtype), ferry_dtype_name(input->dtype));
    }
    TRY(infer_require_equal(in, "features of the input and the weight",
                            input->shape[input->rank - 1], weight->shape[1]));
    if (in->args[2].kind == VALUE_TENSOR) {
        const Value *bias = tensor(in, 2);
        if (bias->rank != 1 || bias->dtype != weight->dtype) return REJECT(in, "unsuitable bias");
        TRY(infer_require_equal(in, "features of the weight and the bias", weight->shape[0],
                                bias->shape[0]));
    }
    same_as(in, input);
    in->outputs[0].shape[input->rank - 1] = weight->shape[0];
    return FERRY_OK;
}

ferry_status infer_matmul(Infer *in) {
    const Value *a = tensor(in, 0), *b = tensor(in, 1);
    InferredType *out = &in->outputs[0];
    if (a->rank < 2 || b->rank < 2 || a->dtype != b->dtype) {
        return REJECT(in, "expected two tensors of one dtype and rank 2 or more");
    }
    TRY(infer_require_equal(in, "inner sizes", a->shape[a->rank - 1], b->shape[b->rank - 2]));
    out->dtype = a->dtype;
    out->rank = a->rank - 2;
    memcpy(out->shape, a->shape, out->rank * sizeof *out->shape);
    TRY(infer_broadcast_into(in, out, b->rank - 2, b->shape));
    out->shape[out->rank++] = a->shape[a->rank - 2];
    out->shape[out->rank++] = b->shape[b->rank - 1];
    return FERRY_OK;
}

ferry_status infer_norm(Infer *in) {
    const Value *input = tensor(in, 0);
    const Arg *shape = &in->args[1];
    uint32_t inner = shape->integers.count, tensors = in->op == OP_LAYER_NORM ? 2 : 1;
    if (inner == 0 || inner > input->rank) {
        return REJECT(in, "the normalized shape does not fit the input");
    }
    for (uint32_t d = 0; d < inner; d++) {
        TRY(infer_require_equal(in, "normalized sizes", shape->integers.items[d],
                                input->shape[input->rank - inner + d]));
    }
    for (uint32_t i = 2; i < 2 + tensors; i++) {
        if (in->args[i].kind != VALUE_TENSOR) continue;
        if (tensor(in, i)->rank != inner) return REJECT(in, "unsuitable weight or bias");
        for (uint32_t d = 0; d < inner; d++) {
            TRY(infer_require_equal(in, "sizes of the weight or bias", shape->integers.items[d],
                                    tensor(in, i)->shape[d]));
        }
    }
    return infer_float_unary(in);
}

ferry_status infer_attention(Infer *in) {
    const Value *query = tensor(in, 0), *key = tensor(in, 1), *value = tensor(in, 2);
    InferredType *out = &in->outputs[0];
    if (query->rank != 4 || key->rank != 4 || value->rank != 4) {
        return REJECT(in, "expected query, key and value of rank 4 [batch, heads, length, size]");
    }
    if (query->dtype != key->dtype || query->dtype != value->dtype) {
        return REJECT(in, "query, key and value must have one dtype");
    }
    TRY(infer_require_equal(in, "head sizes of query and key", query->shape[3], key->shape[3]));
    TRY(infer_require_equal(in, "lengths of key and value", key->shape[2], value->shape[2]));
    TRY(infer_require_equal(in, "heads of key and value", key->shape[1], value->shape[1]));
    if (!in->args[6].boolean) {
        TRY(infer_require_equal(in, "heads of query and key", query->shape[1], key->shape[1]));
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

ferry_status infer_rotary(Infer *in) {
    const Value *self = tensor(in, 0), *cosine = tensor(in, 1), *sine = tensor(in, 2);
    if (self->dtype != cosine->dtype || self->dtype != sine->dtype) {
        return REJECT(in, "expected tensors of one dtype");
    }
    return infer_unary(in);
}
