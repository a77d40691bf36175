/* Operations element by element, and sums, that are several MLX nodes. */
#include "target/executorch/mlx.h"

static MlxTensor number(Mlx *m, const Node *node, double value) {
    return mlx_scalar(m, value, node->outputs[0]->dtype);
}

static MlxTensor arg_number(Mlx *m, const Node *node, uint32_t i) {
    return mlx_scalar_arg(m, &node->args[i], node->outputs[0]->dtype);
}

/* The last node: its result is the output. */
static void finish(Mlx *m, const Node *node, uint8_t type, MlxTensor a, MlxTensor b) {
    NODE(m, type, TENSOR(a), TENSOR(b), TENSOR(mlx_output(m, node->outputs[0])));
}

static void choose(Mlx *m, const Node *node, MlxTensor condition, MlxTensor a, MlxTensor b) {
    MlxTensor out = mlx_output(m, node->outputs[0]);
    NODE(m, MLX_WHERE, TENSOR(condition), TENSOR(a), TENSOR(b), TENSOR(out));
}

void mlx_add_relu(Mlx *m, const Node *node) {
    finish(m, node, MLX_MAXIMUM, mlx_arg(m, node, 0), number(m, node, 0));
}

void mlx_add_leaky_relu(Mlx *m, const Node *node) {
    MlxTensor x = mlx_arg(m, node, 0);
    MlxTensor below = mlx_binary(m, MLX_MULTIPLY, x, arg_number(m, node, 1));
    choose(m, node, mlx_binary(m, MLX_GREATER, x, number(m, node, 0)), x, below);
}

void mlx_add_elu(Mlx *m, const Node *node) {
    MlxTensor x = mlx_arg(m, node, 0);
    MlxTensor below =
        mlx_binary(m, MLX_MULTIPLY, mlx_unary(m, MLX_EXPM1, x), arg_number(m, node, 1));
    choose(m, node, mlx_binary(m, MLX_GREATER, x, number(m, node, 0)), x, below);
}

/* log(exp(beta x) + exp(0)) / beta, and x above the threshold. */
void mlx_add_softplus(Mlx *m, const Node *node) {
    MlxTensor x = mlx_arg(m, node, 0), beta = arg_number(m, node, 1);
    MlxTensor scaled = mlx_binary(m, MLX_MULTIPLY, x, beta);
    MlxTensor soft = mlx_binary(m, MLX_LOG_ADD_EXP, scaled, number(m, node, 0));
    MlxTensor above = mlx_binary(m, MLX_GREATER, scaled, arg_number(m, node, 2));
    choose(m, node, above, x, mlx_binary(m, MLX_DIVIDE, soft, beta));
}

/* Squares and roots have nodes of their own, which are exact. */
void mlx_add_power(Mlx *m, const Node *node) {
    static const struct {
        double exponent;
        uint8_t type;
    } nodes[] = {{2, MLX_SQUARE}, {0.5, MLX_SQRT}, {-0.5, MLX_RSQRT}, {-1, MLX_RECIPROCAL}};
    MlxTensor x = mlx_arg(m, node, 0);
    const Arg *exponent = &node->args[1];
    bool known = exponent->kind != VALUE_INT || sym_is_const(exponent->integer);
    double power = known ? node_number(node, 1) : 0;
    for (size_t i = 0; known && i < sizeof nodes / sizeof *nodes; i++) {
        if (nodes[i].exponent != power) continue;
        NODE(m, nodes[i].type, TENSOR(x), TENSOR(mlx_output(m, node->outputs[0])));
        return;
    }
    if (power == 3) {
        finish(m, node, MLX_MULTIPLY, mlx_unary(m, MLX_SQUARE, x), x);
        return;
    }
    finish(m, node, MLX_POWER, x, arg_number(m, node, 1));
}

/* Integers are divided as floats, and what is above a multiple of the divisor is not always dropped: it is
 * taken away before. */
void mlx_add_floor_divide(Mlx *m, const Node *node) {
    const Value *out = node->outputs[0];
    MlxTensor a = mlx_arg(m, node, 0), b = mlx_arg(m, node, 1);
    if (ferry_dtype_is_float(out->dtype)) {
        finish(m, node, MLX_FLOOR_DIVIDE, a, b);
        return;
    }
    MlxTensor whole = mlx_binary(m, MLX_SUBTRACT, a, mlx_binary(m, MLX_REMAINDER, a, b));
    MlxTensor quotient = mlx_binary(m, MLX_FLOOR_DIVIDE, whole, b);
    NODE(m, MLX_AS_TYPE, TENSOR(quotient), TENSOR(mlx_output(m, out)), I8(pte_dtype(out->dtype)));
}

/* "bitwise" of ATen is also that of bools. */
void mlx_add_logic(Mlx *m, const Node *node) {
    static const uint8_t types[][2] = {
        [OP_AND - OP_AND] = {MLX_BITWISE_AND, MLX_LOGICAL_AND},
        [OP_OR - OP_AND] = {MLX_BITWISE_OR, MLX_LOGICAL_OR},
        [OP_NOT - OP_AND] = {MLX_BITWISE_INVERT, MLX_LOGICAL_NOT},
    };
    const Value *out = node->outputs[0];
    uint8_t type = types[node->op - OP_AND][out->dtype == FERRY_BOOL];
    MlxTensor x = mlx_arg(m, node, 0);
    if (node->op == OP_NOT)
        NODE(m, type, TENSOR(x), TENSOR(mlx_output(m, out)));
    else
        finish(m, node, type, x, mlx_arg(m, node, 1));
}

static uint8_t total_type(Op op) {
    return op == OP_SUM ? MLX_SUM : op == OP_PROD ? MLX_PROD : MLX_CUMSUM;
}

/* Sums and products are made in the dtype of their elements, except that small ones are widened to 32 bits:
 * elements get the output's dtype before, and what was widened gets it after. */
void mlx_add_total(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *out = node->outputs[0];
    MlxTensor x = mlx_input(m, self), to = mlx_output(m, out);
    if (self->dtype != out->dtype) x = mlx_as_type(m, x, out->dtype);
    if (node->op == OP_CUMSUM) {
        NODE(m, MLX_CUMSUM, TENSOR(x), TENSOR(to), I32(node_dim(node, 1, self->rank)), BOOL(false),
             BOOL(true));
        return;
    }
    const Arg *dims = &node->args[1];
    int32_t axes[FERRY_MAX_RANK];
    bool one = dims->kind == VALUE_INT;
    uint32_t count = one ? 1 : dims->integers.count, all = count == 0;
    if (all) count = self->rank;
    for (uint32_t i = 0; i < count; i++) {
        int64_t dim = all ? i : one ? dims->integer->value : dims->integers.items[i]->value;
        axes[i] = (int32_t)(dim < 0 ? dim + self->rank : dim);
    }
    bool widened = !ferry_dtype_is_float(out->dtype) && ferry_dtype_size(out->dtype) < 4;
    MlxTensor total = widened ? mlx_temp(m) : to;
    NODE(m, total_type(node->op), TENSOR(x), TENSOR(total), mlx_numbers(m, axes, count),
         BOOL(node->args[2].boolean));
    if (widened) NODE(m, MLX_AS_TYPE, TENSOR(total), TENSOR(to), I8(pte_dtype(out->dtype)));
}
