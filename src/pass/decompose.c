/* Decompositions of higher-level operations into simpler ones, for targets that cannot take them.
 * Written once, with the builder; they serve every target. */
#include "pass/decompose.h"
#include "pass/attention.h"
#include "pass/replace.h"

#include <math.h>
#include <string.h>

static Value *tensor_arg(const Node *node, uint32_t i) {
    return node->args[i].kind == VALUE_TENSOR ? node->args[i].tensor : NULL;
}

static bool is_half(ferry_dtype dtype) {
    return dtype == FERRY_F16 || dtype == FERRY_BF16;
}

static Value *zero(Builder *b, ferry_dtype dtype) {
    return build_full(b, NULL, 0, 0, dtype);
}

/* The recipe of a weight, also of one that is transposed; NULL when the value is none. */
static const Recipe *weight_recipe(Program *program, const Value *value) {
    const Node *node = value->producer;
    if (value->recipe || !node || node->op != OP_PERMUTE) return value_fixed(value);
    const Recipe *recipe = value_fixed(node->args[0].tensor);
    int64_t dims[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < value->rank; d++) dims[d] = node->args[1].integers.items[d]->value;
    return recipe ? recipe_permute(&program->arena, recipe, dims) : NULL;
}

Value *decompose_select(Builder *b, Value *x, uint32_t dim, int64_t index) {
    Program *program = b->program;
    const Recipe *whole = weight_recipe(program, x);
    const Recipe *part = whole ? recipe_select(&program->arena, whole, dim, index) : NULL;
    if (!part) return build_select(b, x, (int)dim, index);
    return program_weight(program, VALUE_PARAMETER, x->name, part);
}

/* ---- layers ---- */

/* Every row times every matrix, and only that of the row's group counts. */
static Value *decompose_grouped_mm(Builder *b, const Node *node) {
    Value *rows = tensor_arg(node, 0), *weights = tensor_arg(node, 1), *sum = NULL;
    Value *ends = build_to(b, tensor_arg(node, 2), FERRY_I64);
    if (!sym_is_const(weights->shape[0])) return NULL;
    Value *place = build_arange(b, build_const(b, 0), rows->shape[0], FERRY_I64);
    Value *before = NULL; /* rows of earlier groups */
    for (int64_t group = 0; group < weights->shape[0]->value && build_ok(b); group++) {
        Value *until = build_binary(b, OP_LT, place, build_select(b, ends, 0, group));
        Value *mine =
            before ? build_binary(b, OP_AND, until, build_unary(b, OP_NOT, before)) : until;
        Value *matrix = build_transpose(b, decompose_select(b, weights, 0, group), 0, 1);
        Value *product = build_linear(b, rows, matrix, NULL);
        Value *factor = build_unsqueeze(b, build_to(b, mine, rows->dtype), 1);
        product = build_mul(b, product, factor);
        sum = sum ? build_add(b, sum, product) : product;
        before = until;
    }
    return sum;
}

static Value *decompose_linear(Builder *b, const Node *node) {
    Value *bias = tensor_arg(node, 2);
    Value *transposed = build_transpose(b, tensor_arg(node, 1), 0, 1);
    Value *product = build_matmul(b, tensor_arg(node, 0), transposed);
    return bias ? build_add(b, product, bias) : product;
}

/* x / sqrt(mean(x^2) + eps) * weight, in float32 for half precisions. */
static Value *decompose_rms_norm(Builder *b, const Node *node) {
    Value *input = tensor_arg(node, 0), *weight = tensor_arg(node, 2);
    ferry_dtype dtype = input->dtype;
    Value *x = is_half(dtype) ? build_to(b, input, FERRY_F32) : input;
    int dims = (int)node->args[1].integers.count;
    Value *mean = build_scalar(b, OP_POW_SCALAR, x, 2);
    for (int d = 1; d <= dims; d++) mean = build_reduce(b, OP_MEAN, mean, -d, true);
    const Arg eps[] = {arg_tensor(mean), arg_float(node->args[3].number)};
    Value *deviation = build_unary(b, OP_SQRT, build_op(b, OP_ADD_SCALAR, eps, 2));
    Value *normed = build_to(b, build_binary(b, OP_DIV, x, deviation), dtype);
    return weight ? build_mul(b, normed, weight) : normed;
}

/* The same operation on the same numbers in float32, rounded once. */
static Value *in_float32(Builder *b, const Node *node) {
    Arg args[8];
    uint32_t count = op_schema(node->op)->arg_count;
    for (uint32_t i = 0; i < count; i++) {
        args[i] = node->args[i];
        bool is_float = args[i].kind == VALUE_TENSOR && ferry_dtype_is_float(args[i].tensor->dtype);
        if (is_float) args[i].tensor = build_to(b, args[i].tensor, FERRY_F32);
    }
    return build_to(b, build_op(b, node->op, args, count), node->outputs[0]->dtype);
}

static Value *decompose_group_norm(Builder *b, const Node *node) {
    return is_half(node->outputs[0]->dtype) ? in_float32(b, node) : NULL;
}

/* (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimension. */
static Value *decompose_layer_norm(Builder *b, const Node *node) {
    if (is_half(node->outputs[0]->dtype)) return in_float32(b, node);
    Value *x = tensor_arg(node, 0), *weight = tensor_arg(node, 2), *bias = tensor_arg(node, 3);
    if (node->args[1].integers.count != 1) return NULL;
    Value *centered = build_sub(b, x, build_reduce(b, OP_MEAN, x, -1, true));
    Value *variance = build_reduce(b, OP_MEAN, build_mul(b, centered, centered), -1, true);
    const Arg eps[] = {arg_tensor(variance), arg_float(node->args[4].number)};
    Value *deviation = build_unary(b, OP_SQRT, build_op(b, OP_ADD_SCALAR, eps, 2));
    Value *result = build_binary(b, OP_DIV, centered, deviation);
    if (weight) result = build_mul(b, result, weight);
    return bias ? build_add(b, result, bias) : result;
}

/* A factor and a summand for each channel. */
static Value *decompose_batch_norm(Builder *b, const Node *node) {
    Value *x = tensor_arg(node, 0), *weight = tensor_arg(node, 1), *bias = tensor_arg(node, 2);
    const Sym *shape[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) shape[d] = build_const(b, 1);
    if (x->rank < 2) return NULL;
    shape[1] = x->shape[1];
    const Arg eps[] = {arg_tensor(tensor_arg(node, 4)), arg_float(node->args[7].number)};
    Value *factor =
        build_unary(b, OP_RECIPROCAL, build_unary(b, OP_SQRT, build_op(b, OP_ADD_SCALAR, eps, 2)));
    if (weight) factor = build_mul(b, factor, weight);
    Value *summand = build_unary(b, OP_NEG, build_mul(b, tensor_arg(node, 3), factor));
    if (bias) summand = build_add(b, summand, bias);
    Value *scaled = build_mul(b, x, build_view(b, factor, shape, x->rank));
    return build_add(b, scaled, build_view(b, summand, shape, x->rank));
}

static Value *decompose_silu(Builder *b, const Node *node) {
    Value *x = tensor_arg(node, 0);
    return build_mul(b, x, build_unary(b, OP_SIGMOID, x));
}

/* 0.5 x (1 + erf(x / sqrt 2)), or 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
static Value *decompose_gelu(Builder *b, const Node *node) {
    Value *x = tensor_arg(node, 0), *inner;
    if (strcmp(node->args[1].string, "tanh") == 0) {
        Value *cube =
            build_scalar(b, OP_MUL_SCALAR, build_scalar(b, OP_POW_SCALAR, x, 3), 0.044715);
        inner = build_scalar(b, OP_MUL_SCALAR, build_add(b, x, cube), 0.7978845608028654);
        inner = build_unary(b, OP_TANH, inner);
    } else {
        inner = build_unary(b, OP_ERF, build_scalar(b, OP_MUL_SCALAR, x, 0.7071067811865476));
    }
    Value *half = build_scalar(b, OP_MUL_SCALAR, x, 0.5);
    return build_mul(b, half, build_scalar(b, OP_ADD_SCALAR, inner, 1));
}

static Value *decompose_rsqrt(Builder *b, const Node *node) {
    return build_unary(b, OP_RECIPROCAL, build_unary(b, OP_SQRT, tensor_arg(node, 0)));
}

/* ---- attention ---- */

/* softmax(query key^T scale + mask) value. With grouped heads the queries of a group are folded into
 * its rows, [batch, groups of heads, group * length, size], so keys and values are never repeated.
 * A row that a bool mask hides entirely gives zeros. */
static Value *decompose_attention(Builder *b, const Node *node) {
    Value *query = tensor_arg(node, 0), *key = tensor_arg(node, 1), *value = tensor_arg(node, 2);
    Value *mask = tensor_arg(node, 3), *attended = NULL;
    const Sym *batch = query->shape[0], *heads = query->shape[1], *length = query->shape[2];
    const Sym *kv_heads = key->shape[1], *keys = key->shape[2];
    bool grouped = heads != kv_heads;
    SymTable *symbols = &b->program->symbols;
    const Sym *rows =
        grouped ? sym_mul(symbols, sym_floordiv(symbols, heads, kv_heads), length) : length;

    Value *scaled = build_scalar(b, OP_MUL_SCALAR, query, node->args[5].number);
    if (grouped) {
        scaled =
            build_view(b, scaled, (const Sym *const[]){batch, kv_heads, rows, query->shape[3]}, 4);
    }
    Value *scores = build_matmul(b, scaled, build_transpose(b, key, 2, 3));
    if (grouped)
        scores = build_view(b, scores, (const Sym *const[]){batch, heads, length, keys}, 4);
    if (node->args[4].boolean) mask = attention_causal_mask(b, length, keys);
    if (mask && mask->dtype == FERRY_BOOL) {
        if (!node->args[4].boolean) attended = build_reduce(b, OP_ANY, mask, -1, true);
        mask = attention_added_mask(b, mask, query->dtype);
    }
    if (mask) scores = build_add(b, scores, mask);
    Value *weights = build_softmax(b, scores, -1);
    if (grouped)
        weights = build_view(b, weights, (const Sym *const[]){batch, kv_heads, rows, keys}, 4);
    Value *context = build_matmul(b, weights, value);
    if (grouped) {
        context =
            build_view(b, context, (const Sym *const[]){batch, heads, length, value->shape[3]}, 4);
    }
    return attended ? build_where(b, attended, context, zero(b, query->dtype)) : context;
}

/* A tensor with a dimension in front of the last two, which stands for the heads of a group. */
static Value *with_group(Builder *b, Value *x, const Sym *groups, const Sym *heads) {
    const Sym *shape[] = {x->shape[0], groups, sym_floordiv(&b->program->symbols, heads, groups),
                          x->shape[2], x->shape[3]};
    return build_view(b, x, shape, 5);
}

/* The same without folding: heads are [groups, heads of a group], and products and sums broadcast over the
 * latter. Rows that a bool mask hides entirely are multiplied with 0. */
static Value *broadcast_attention(Builder *b, const Node *node) {
    Value *query = tensor_arg(node, 0), *key = tensor_arg(node, 1), *value = tensor_arg(node, 2);
    Value *mask = tensor_arg(node, 3), *attended = NULL;
    const Sym *heads = query->shape[1], *groups = key->shape[1];
    const Sym *shape[] = {query->shape[0], heads, query->shape[2], value->shape[3]};
    bool grouped = heads != groups;
    if (node->args[4].boolean) mask = attention_causal_mask(b, query->shape[2], key->shape[2]);
    if (mask && mask->dtype == FERRY_BOOL) {
        if (!node->args[4].boolean) attended = build_reduce(b, OP_ANY, mask, -1, true);
        mask = attention_added_mask(b, mask, query->dtype);
    }
    if (grouped) {
        query = with_group(b, query, groups, heads);
        key = build_unsqueeze(b, key, 2);
        value = build_unsqueeze(b, value, 2);
        bool wide = mask && mask->rank == 4 && mask->shape[1] == heads;
        if (wide)
            mask = with_group(b, mask, groups, heads);
        else if (mask && mask->rank == 4)
            mask = build_unsqueeze(b, mask, 2);
    }
    Value *scaled = build_scalar(b, OP_MUL_SCALAR, query, node->args[5].number);
    Value *scores = build_matmul(b, scaled, build_transpose(b, key, -2, -1));
    if (mask) scores = build_add(b, scores, mask);
    Value *context = build_matmul(b, build_softmax(b, scores, -1), value);
    if (grouped) context = build_view(b, context, shape, 4);
    if (!attended) return context;
    return build_mul(b, context, build_to(b, attended, query->dtype));
}

ferry_status pass_broadcast_attention(Program *program, ferry_error *error) {
    Replacements map = {0};
    ferry_status status = FERRY_OK;
    for (Node *node = program->first, *next; node && status == FERRY_OK; node = next) {
        next = node->next;
        if (node->op != OP_ATTENTION || node->outputs[0]->dtype == FERRY_F64) continue;
        Builder b = build_start(program, error);
        b.before = node;
        b.scope = node->scope;
        Value *value = broadcast_attention(&b, node);
        status = build_finish(&b);
        if (status == FERRY_OK)
            status = replace_node(program, &map, node, value, "the attention", error);
    }
    return replace_finish(program, &map, status, error);
}

/* (x1, x2) -> (-x2, x1) over the halves of the last dimension. */
static Value *rotate_halves(Builder *b, Value *x, int64_t width) {
    Value *first = build_slice_const(b, x, -1, 0, width / 2);
    Value *second = build_slice_const(b, x, -1, width / 2, width);
    return build_cat(b, (Value *const[]){build_unary(b, OP_NEG, second), first}, 2, -1);
}

/* The same over neighbouring pairs. */
static Value *rotate_pairs(Builder *b, Value *x, int64_t width) {
    const Sym *pairs[FERRY_MAX_RANK];
    memcpy(pairs, x->shape, x->rank * sizeof *pairs);
    pairs[x->rank - 1] = build_const(b, width / 2);
    pairs[x->rank] = build_const(b, 2);
    Value *columns = build_view(b, x, pairs, x->rank + 1);
    Value *first = build_slice_const(b, columns, -1, 0, 1);
    Value *second = build_slice_const(b, columns, -1, 1, 2);
    Value *swapped = build_cat(b, (Value *const[]){build_unary(b, OP_NEG, second), first}, 2, -1);
    return build_view(b, swapped, x->shape, x->rank);
}

static Value *decompose_rotary(Builder *b, const Node *node) {
    Value *self = tensor_arg(node, 0), *cosine = tensor_arg(node, 1), *sine = tensor_arg(node, 2);
    int64_t width = build_dim(b, cosine, -1)->value, size = build_dim(b, self, -1)->value;
    Value *x = width < size ? build_slice_const(b, self, -1, 0, width) : self;
    Value *rotated = node->args[3].boolean ? rotate_pairs(b, x, width) : rotate_halves(b, x, width);
    Value *result = build_add(b, build_mul(b, x, cosine), build_mul(b, rotated, sine));
    if (width == size) return result;
    Value *rest = build_slice_const(b, self, -1, width, size);
    return build_cat(b, (Value *const[]){result, rest}, 2, -1);
}

static const Decomposition decompositions[OP_COUNT] = {
    [OP_LINEAR] = decompose_linear,
    [OP_RMS_NORM] = decompose_rms_norm,
    [OP_LAYER_NORM] = decompose_layer_norm,
    [OP_GROUP_NORM] = decompose_group_norm,
    [OP_BATCH_NORM] = decompose_batch_norm,
    [OP_SILU] = decompose_silu,
    [OP_GELU] = decompose_gelu,
    [OP_RSQRT] = decompose_rsqrt,
    [OP_GROUPED_MM] = decompose_grouped_mm,
    [OP_ATTENTION] = decompose_attention,
    [OP_ROTARY_EMBEDDING] = decompose_rotary,
    [OP_CONVOLUTION] = decompose_convolution,
    [OP_UPSAMPLE_NEAREST_EXACT] = decompose_nearest_exact,
    [OP_UPSAMPLE_BICUBIC] = decompose_bicubic,
    [OP_UPSAMPLE_BILINEAR_AA] = decompose_bilinear_aa,
    [OP_UPSAMPLE_BICUBIC_AA] = decompose_bicubic_aa,
};

void decompositions_register(Registry *registry) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (!decompositions[op]) continue;
        registry_add(registry, EXTENSION_DECOMPOSITION, op_name((Op)op), &decompositions[op]);
    }
}
