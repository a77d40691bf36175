/* The table of type rules, and what they share. */
#include "graph/infer_rules.h"

ferry_status infer_dimension(Infer *in, uint32_t arg, uint32_t rank, uint32_t *out) {
    const Sym *sym = in->args[arg].integer;
    int64_t dim = sym->value < 0 ? sym->value + rank : sym->value;
    *out = 0;
    if (!sym_is_const(sym) || dim < 0 || dim >= rank) {
        return REJECT(in, "dimension %s is outside a tensor of rank %u", infer_text(in, sym), rank);
    }
    *out = (uint32_t)dim;
    return FERRY_OK;
}

void infer_drop_dimension(Infer *in, const Value *self, uint32_t dim, bool keep) {
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

const Sym *infer_broadcast(const Sym *a, const Sym *b) {
    if (a == b || sym_is_value(b, 1)) return a;
    if (sym_is_value(a, 1)) return b;
    if (sym_is_const(a) && sym_is_const(b)) return NULL;
    return sym_is_const(b) ? b : a;
}

ferry_status infer_broadcast_into(Infer *in, InferredType *out, uint32_t rank,
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

/* False when the two cannot be the same number, by their ranges. */
static bool can_be_equal(Infer *in, const Sym *a, const Sym *b) {
    SymTable *table = &in->program->symbols;
    if (a == b || table->overflow) return true;
    const Sym *difference = sym_sub(table, a, b);
    bool known = !table->overflow && (difference->lower > 0 || difference->upper < 0);
    table->overflow = false;
    return !known;
}

const char *infer_text(Infer *in, const Sym *sym) {
    Buffer buffer = {0};
    sym_print(&buffer, sym);
    const char *text = arena_string(&in->program->arena, buffer_string(&buffer));
    buffer_free(&buffer);
    return text;
}

ferry_status infer_require_equal(Infer *in, const char *what, const Sym *a, const Sym *b) {
    if (can_be_equal(in, a, b)) return FERRY_OK;
    return REJECT(in, "%s: %s and %s differ", what, infer_text(in, a), infer_text(in, b));
}

ferry_status infer_require_sizes(Infer *in, uint32_t arg) {
    const Arg *sizes = &in->args[arg];
    if (sizes->integers.count > FERRY_MAX_RANK) {
        return REJECT(in, "expected at most %d sizes, found %u", FERRY_MAX_RANK,
                      sizes->integers.count);
    }
    for (uint32_t d = 0; d < sizes->integers.count; d++) {
        const Sym *size = sizes->integers.items[d];
        if (sym_is_const(size) && size->value < 0) {
            return REJECT(in, "expected sizes of 0 or more, found %s", infer_text(in, size));
        }
    }
    return FERRY_OK;
}

static const InferRule rules[OP_COUNT] = {
    [OP_ADD] = infer_binary,
    [OP_SUB] = infer_binary,
    [OP_MUL] = infer_binary,
    [OP_DIV] = infer_binary,
    [OP_MAXIMUM] = infer_binary,
    [OP_MINIMUM] = infer_binary,
    [OP_POW] = infer_binary,
    [OP_FLOOR_DIVIDE] = infer_binary,
    [OP_REMAINDER] = infer_binary,
    [OP_FMOD] = infer_binary,
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
    [OP_ATAN] = infer_float_unary,
    [OP_FLOOR] = infer_float_unary,
    [OP_CEIL] = infer_float_unary,
    [OP_ROUND] = infer_float_unary,
    [OP_SIGN] = infer_unary,
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
    [OP_INDEX] = infer_index,
    [OP_INDEX_PUT] = infer_index_put,
    [OP_INDEX_COPY] = infer_index_copy,
    [OP_SCATTER] = infer_scatter,
    [OP_SCATTER_REDUCE] = infer_scatter,
    [OP_NONZERO] = infer_nonzero,
    [OP_TOPK] = infer_topk,
    [OP_SUM] = infer_reduce,
    [OP_MEAN] = infer_reduce,
    [OP_AMAX] = infer_reduce,
    [OP_AMIN] = infer_reduce,
    [OP_ANY] = infer_reduce_dim,
    [OP_PROD] = infer_reduce_dim,
    [OP_ARGMAX] = infer_reduce_dim,
    [OP_CUMSUM] = infer_cumsum,
    [OP_SOFTMAX] = infer_softmax,
    [OP_ARANGE] = infer_arange,
    [OP_FULL] = infer_full,
    [OP_SCALAR_TENSOR] = infer_scalar_tensor,
    [OP_LINEAR] = infer_linear,
    [OP_MATMUL] = infer_matmul,
    [OP_GROUPED_MM] = infer_grouped_mm,
    [OP_LAYER_NORM] = infer_norm,
    [OP_RMS_NORM] = infer_norm,
    [OP_ATTENTION] = infer_attention,
    [OP_ROTARY_EMBEDDING] = infer_rotary,
    [OP_CONVOLUTION] = infer_convolution,
    [OP_MAX_POOL] = infer_pool,
    [OP_AVG_POOL] = infer_pool,
    [OP_BATCH_NORM] = infer_batch_norm,
    [OP_GROUP_NORM] = infer_group_norm,
    [OP_PAD] = infer_pad,
    [OP_UPSAMPLE_NEAREST] = infer_upsample,
    [OP_UPSAMPLE_NEAREST_EXACT] = infer_upsample,
    [OP_UPSAMPLE_BILINEAR] = infer_upsample,
    [OP_UPSAMPLE_BICUBIC] = infer_upsample,
    [OP_UPSAMPLE_BILINEAR_AA] = infer_upsample,
    [OP_UPSAMPLE_BICUBIC_AA] = infer_upsample,
    [OP_GRID_SAMPLER] = infer_grid_sampler,
};

static bool tensors_fit(const Arg *arg) {
    if (arg->kind != VALUE_TENSORS) return false;
    for (uint32_t i = 0; i < arg->tensors.count; i++) {
        if (!arg->tensors.items[i]) return false;
    }
    return true;
}

static bool arg_fits(const OpArg *formal, const Arg *arg) {
    ArgKind kind = arg->kind;
    if (kind == VALUE_NONE) return formal->optional;
    switch (formal->type) {
    case ARG_TENSOR: return kind == VALUE_TENSOR && arg->tensor;
    case ARG_TENSORS: return tensors_fit(arg);
    case ARG_OPTIONAL_TENSORS: return kind == VALUE_TENSORS;
    case ARG_INT: return kind == VALUE_INT;
    case ARG_INTS: return kind == VALUE_INTS;
    case ARG_FLOAT: return kind == VALUE_FLOAT;
    case ARG_BOOL: return kind == VALUE_BOOL;
    case ARG_SCALAR: return kind == VALUE_INT || kind == VALUE_FLOAT || kind == VALUE_BOOL;
    case ARG_STRING: return kind == VALUE_STRING;
    case ARG_DTYPE: return kind == VALUE_DTYPE && arg->dtype != FERRY_DTYPE_NONE;
    }
    return false;
}

ferry_status infer_types(Program *program, Op op, const Arg *args, InferredType *outputs,
                         uint32_t *output_count, ferry_error *error) {
    Infer in = {
        .program = program, .op = op, .args = args, .outputs = outputs, .count = 1, .error = error};
    if (!rules[op]) return error_set(error, FERRY_INTERNAL, op_name(op), "no type rule");
    outputs[0] = (InferredType){0};
    const OpSchema *schema = op_schema(op);
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        const OpArg *formal = &schema->args[i];
        if (arg_fits(formal, &args[i])) continue;
        return REJECT(&in, "argument \"%s\" is missing or of the wrong kind", formal->name);
    }
    TRY(rules[op](&in));
    *output_count = in.count;
    return FERRY_OK;
}
