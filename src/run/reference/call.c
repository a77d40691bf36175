#include "run/reference/call.h"
#include "base/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool bindings_evaluate(const Bindings *bindings, const Sym *sym, int64_t *out) {
    if (sym->kind == SYM_SYMBOL && !bindings->bound[sym->value]) return false;
    for (uint32_t i = 0; i < sym->count; i++) {
        if (!bindings_evaluate(bindings, sym->operands[i], out)) return false;
    }
    return sym_evaluate(sym, bindings->values, out);
}

static const char *place(const Call *call) {
    return *call->node->scope ? call->node->scope : call->node->outputs[0]->name;
}

ferry_status call_fail(const Call *call, ferry_status status, const char *format, ...) {
    char message[sizeof call->error->message - 64];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return error_set(call->error, status, place(call), "%s: %s", op_name(call->node->op), message);
}

ferry_status call_memory(const Call *call, uint64_t bytes) {
    if (bytes == UINT64_MAX) {
        return call_fail(call, FERRY_INVALID_ARGUMENT,
                         "a result has a negative size or does not fit 64 bits");
    }
    return error_memory(call->error, place(call), bytes);
}

/* ---- arguments ---- */

bool call_is_given(const Call *call, uint32_t arg) {
    return call->node->args[arg].kind != VALUE_NONE;
}

const Tensor *call_tensor(const Call *call, uint32_t arg) {
    return call_is_given(call, arg) ? &call->values[call->node->args[arg].tensor->id] : NULL;
}

ferry_status call_evaluate(const Call *call, const Sym *sym, int64_t *out) {
    if (bindings_evaluate(call->bindings, sym, out)) return FERRY_OK;
    Buffer text = {0};
    sym_print(&text, sym);
    ferry_status status = call_fail(call, FERRY_INVALID_ARGUMENT,
                                    "the size %s has no value: no input determines it, it "
                                    "overflows, or it divides by zero",
                                    buffer_string(&text));
    buffer_free(&text);
    return status;
}

ferry_status call_integer(const Call *call, uint32_t arg, int64_t *out) {
    return call_evaluate(call, call->node->args[arg].integer, out);
}

ferry_status call_integers(const Call *call, uint32_t arg, int64_t *out, uint32_t *count) {
    const Arg *list = &call->node->args[arg];
    if (list->integers.count > FERRY_MAX_RANK) {
        return call_fail(call, FERRY_INVALID_ARGUMENT, "a list has more than %d numbers",
                         FERRY_MAX_RANK);
    }
    *count = list->integers.count;
    for (uint32_t i = 0; i < *count; i++) {
        TRY(call_evaluate(call, list->integers.items[i], &out[i]));
    }
    return FERRY_OK;
}

ferry_status call_scalar(const Call *call, uint32_t arg, Scalar *out) {
    const Arg *scalar = &call->node->args[arg];
    *out = (Scalar){.is_float = scalar->kind == VALUE_FLOAT};
    if (scalar->kind == VALUE_INT) TRY(call_integer(call, arg, &out->integer));
    if (scalar->kind == VALUE_BOOL) out->integer = scalar->boolean;
    out->number = out->is_float ? scalar->number : (double)out->integer;
    return FERRY_OK;
}

ferry_status call_dim(const Call *call, uint32_t arg, uint32_t rank, uint32_t *out) {
    int64_t dim;
    TRY(call_integer(call, arg, &dim));
    if (dim < 0) dim += rank;
    *out = (uint32_t)dim;
    if (dim >= 0 && dim < rank) return FERRY_OK;
    return call_fail(call, FERRY_INVALID_ARGUMENT, "a dimension is outside a tensor of rank %u",
                     rank);
}

/* ---- tensors ---- */

ferry_dtype call_compute_dtype(ferry_dtype dtype) {
    switch (dtype) {
    case FERRY_F16:
    case FERRY_BF16:
    case FERRY_F32: return FERRY_F32;
    case FERRY_F64: return FERRY_F64;
    case FERRY_BOOL:
    case FERRY_U8:
    case FERRY_I8:
    case FERRY_I16:
    case FERRY_I32:
    case FERRY_I64: return FERRY_I64;
    default: return FERRY_DTYPE_NONE;
    }
}

ferry_status call_reject_dtype(const Call *call, ferry_dtype dtype) {
    return call_fail(call, FERRY_UNSUPPORTED, "the reference runtime has no kernel for %s",
                     ferry_dtype_name(dtype));
}

ferry_status call_reject_shape(const Call *call) {
    return call_fail(call, FERRY_INVALID_ARGUMENT, "the sizes of this run do not fit together");
}

ferry_status call_temporary(Call *call, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            Tensor **out) {
    if (call->temporary_count == CALL_MAX_TEMPORARIES) {
        return call_fail(call, FERRY_INTERNAL, "too many temporaries");
    }
    Tensor *tensor = &call->temporaries[call->temporary_count];
    uint64_t bytes;
    *tensor = (Tensor){.dtype = dtype, .rank = rank};
    if (rank) memcpy(tensor->shape, shape, rank * sizeof *shape);
    if (!tensor_allocate(tensor, &bytes)) return call_memory(call, bytes);
    call->temporary_count++;
    *out = tensor;
    return FERRY_OK;
}

ferry_status call_convert(Call *call, const Tensor **tensor, ferry_dtype dtype) {
    const Tensor *from = *tensor;
    Tensor *to = NULL;
    if (from->dtype == dtype) return FERRY_OK;
    TRY(call_temporary(call, dtype, from->rank, from->shape, &to));
    call_copy(call, from, to);
    *tensor = to;
    return FERRY_OK;
}

ferry_status call_contiguous(Call *call, const Tensor **tensor) {
    const Tensor *from = *tensor;
    Tensor *to = NULL;
    if (tensor_is_contiguous(from)) return FERRY_OK;
    TRY(call_temporary(call, from->dtype, from->rank, from->shape, &to));
    call_copy(call, from, to);
    *tensor = to;
    return FERRY_OK;
}

/* ---- results ---- */

Tensor *call_output(const Call *call, uint32_t index) {
    return &call->values[call->node->outputs[index]->id];
}

ferry_status call_allocate(const Call *call, uint32_t index) {
    uint64_t bytes;
    return tensor_allocate(call_output(call, index), &bytes) ? FERRY_OK : call_memory(call, bytes);
}

ferry_status call_share(const Call *call, uint32_t index, const Tensor *view) {
    Tensor *output = call_output(call, index);
    int64_t size = 1;
    if (!tensor_same_shape(output, view) || output->dtype != view->dtype) {
        return call_reject_shape(call);
    }
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->shape[d] < 0 || __builtin_mul_overflow(size, view->shape[d], &size)) {
            return call_memory(call, UINT64_MAX);
        }
    }
    *output = tensor_share(view);
    return FERRY_OK;
}

ferry_status call_start(Call *call, ferry_dtype dtype, Tensor **out) {
    *out = call_output(call, 0);
    TRY(call_allocate(call, 0));
    if ((*out)->dtype == dtype) return FERRY_OK;
    return call_temporary(call, dtype, (*out)->rank, (*out)->shape, out);
}

void call_finish(const Call *call, const Tensor *computed) {
    Tensor *output = call_output(call, 0);
    if (computed != output) call_copy(call, computed, output);
}
