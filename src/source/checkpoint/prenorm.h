/* The layer that most encoders of images and audio are stacks of: norm, attention, residual; norm,
 * feed-forward, residual. Names are those of weights below the layer, without ".weight". */
#ifndef SOURCE_PRENORM_H
#define SOURCE_PRENORM_H

#include "source/checkpoint/attention.h"

typedef struct PreNormNames {
    const char *layers; /* the list of layers */
    const char *query, *key, *value, *output;
    const char *attention_norm, *mlp_norm;
    const char *up, *down;
    const char *gate_up, *gate_down;         /* of the gated feed-forward, where the class has it */
    const char *attention_scale, *mlp_scale; /* vectors on what is added to the residual; or NULL */
} PreNormNames;

typedef struct PreNorm {
    Model *m;
    const PreNormNames *names;
    const char *scope; /* of the model, in the names of modules */
    int64_t hidden, intermediate, heads, layers;
    double eps;
    const char *activation;
    bool query_bias, key_bias, value_bias;
    bool gated;  /* the feed-forward is SwiGLU: one projection to gate and up */
    bool clamps; /* to the range of float16, when the computation is in it */
    Value *mask;
    bool causal;
} PreNorm;

/* hidden_size, num_attention_heads, num_hidden_layers, intermediate_size, hidden_act and
 * layer_norm_eps, and the defaults that the class has. */
typedef struct PreNormDefaults {
    int64_t hidden, intermediate, heads, layers;
    double eps;
    const char *activation;
} PreNormDefaults;

PreNorm prenorm_config(Model *m, const PreNormNames *names, const PreNormDefaults *defaults);

/* x [batch, length, hidden] after layer `i`. */
Value *prenorm_layer(const PreNorm *encoder, Value *x, int64_t i);

/* up, activation, down: the feed-forward with the weights "<name>.<up>" and "<name>.<down>". */
Value *prenorm_mlp(const PreNorm *encoder, Value *x, const char *name);

#endif
