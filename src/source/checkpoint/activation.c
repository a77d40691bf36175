/* The activations that a configuration can name: ACT2FN of Transformers, without those that have
 * parameters of their own. */
#include "source/checkpoint/model.h"

#include <string.h>

static Value *identity(Builder *b, Value *x) {
    (void)b;
    return x;
}

static Value *gelu(Builder *b, Value *x) {
    return build_gelu(b, x, false);
}

static Value *gelu_tanh(Builder *b, Value *x) {
    return build_gelu(b, x, true);
}

static Value *gelu_10(Builder *b, Value *x) {
    return build_clamp(b, gelu(b, x), arg_float(-10), arg_float(10));
}

static Value *quick_gelu(Builder *b, Value *x) {
    return build_mul(b, x, build_unary(b, OP_SIGMOID, build_scalar(b, OP_MUL_SCALAR, x, 1.702)));
}

static Value *silu(Builder *b, Value *x) {
    return build_unary(b, OP_SILU, x);
}

static Value *relu(Builder *b, Value *x) {
    return build_unary(b, OP_RELU, x);
}

static Value *relu2(Builder *b, Value *x) {
    return build_scalar(b, OP_POW_SCALAR, relu(b, x), 2);
}

static Value *relu6(Builder *b, Value *x) {
    return build_clamp(b, x, arg_float(0), arg_float(6));
}

static Value *leaky_relu(Builder *b, Value *x) {
    return build_op(b, OP_LEAKY_RELU, (const Arg[]){arg_tensor(x)}, 1);
}

static Value *hardswish(Builder *b, Value *x) {
    Value *gate = relu6(b, build_scalar(b, OP_ADD_SCALAR, x, 3));
    return build_scalar(b, OP_DIV_SCALAR, build_mul(b, x, gate), 6);
}

static Value *tangent(Builder *b, Value *x) {
    return build_unary(b, OP_TANH, x);
}

static Value *sigmoid(Builder *b, Value *x) {
    return build_unary(b, OP_SIGMOID, x);
}

static Value *mish(Builder *b, Value *x) {
    return build_mul(b, x, build_unary(b, OP_TANH, build_unary(b, OP_SOFTPLUS, x)));
}

static Value *sqrt_softplus(Builder *b, Value *x) {
    return build_unary(b, OP_SQRT, build_unary(b, OP_SOFTPLUS, x));
}

/* The normal distribution function with mean 0.707107 and deviation 0.282095. */
static Value *laplace(Builder *b, Value *x) {
    static const double mean = 0.707107, deviation = 0.282095, root_two = 1.4142135623730951;
    Value *z = build_scalar(b, OP_ADD_SCALAR, x, -mean);
    z = build_unary(b, OP_ERF, build_scalar(b, OP_DIV_SCALAR, z, deviation * root_two));
    return build_scalar(b, OP_MUL_SCALAR, build_scalar(b, OP_ADD_SCALAR, z, 1), 0.5);
}

static const struct {
    const char *name;
    Value *(*build)(Builder *b, Value *x);
} activations[] = {
    {"gelu", gelu},
    {"gelu_python", gelu},
    {"gelu_new", gelu_tanh},
    {"gelu_fast", gelu_tanh},
    {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_python_tanh", gelu_tanh},
    {"gelu_accurate", gelu_tanh},
    {"gelu_10", gelu_10},
    {"quick_gelu", quick_gelu},
    {"silu", silu},
    {"swish", silu},
    {"relu", relu},
    {"relu2", relu2},
    {"relu6", relu6},
    {"leaky_relu", leaky_relu},
    {"hardswish", hardswish},
    {"tanh", tangent},
    {"sigmoid", sigmoid},
    {"mish", mish},
    {"sqrtsoftplus", sqrt_softplus},
    {"laplace", laplace},
    {"linear", identity},
};

Value *model_activation(Model *m, Value *x, const char *name) {
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(activations[i].name, name) == 0) return activations[i].build(&m->b, x);
    }
    return build_fail(&m->b, FERRY_UNSUPPORTED, "%s: the activation \"%s\" is not supported",
                      m->config_path, name);
}
