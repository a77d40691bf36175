/* Pre-norm layers. */
#include "source/checkpoint/prenorm.h"

#include <math.h>

enum { MAX_LAYERS = 1024 };

PreNorm prenorm_config(Model *m, const PreNormNames *names, const PreNormDefaults *defaults) {
    PreNorm encoder = {
        .m = m,
        .names = names,
        .hidden = config_size_or(m, "hidden_size", defaults->hidden),
        .heads = config_size_or(m, "num_attention_heads", defaults->heads),
        .layers = config_size_or(m, "num_hidden_layers", defaults->layers),
        .eps = config_float_or(m, "layer_norm_eps", defaults->eps),
        .activation = config_string_or(m, "hidden_act", defaults->activation),
        .query_bias = true,
        .key_bias = true,
        .value_bias = true,
    };
    if (defaults->intermediate)
        encoder.intermediate = config_size_or(m, "intermediate_size", defaults->intermediate);
    if (encoder.layers > MAX_LAYERS) {
        build_fail(&m->b, FERRY_UNSUPPORTED, "%s: %lld layers are more than the supported %d",
                   m->config_path, (long long)encoder.layers, MAX_LAYERS);
        encoder.layers = 1;
    }
    if (encoder.hidden % encoder.heads != 0) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"hidden_size\" to be a multiple of \"num_attention_heads\", %lld",
                   m->config_path, (long long)encoder.heads);
    }
    return encoder;
}

static Value *attend(const PreNorm *encoder, Value *x, const char *layer) {
    Model *m = encoder->m;
    const PreNormNames *names = encoder->names;
    const char *const parts[3] = {names->query, names->key, names->value};
    const bool biases[3] = {encoder->query_bias, encoder->key_bias, encoder->value_bias};
    int64_t size = encoder->hidden / encoder->heads;
    Value *heads[3];
    for (int i = 0; i < 3; i++) {
        Value *rows = model_linear(m, x, encoder->hidden, biases[i], "%s.%s", layer, parts[i]);
        heads[i] = model_split_heads(m, rows, encoder->heads, size);
    }
    Value *seen = build_attention(&m->b, heads[0], heads[1], heads[2], encoder->mask,
                                  encoder->causal, 1 / sqrt((double)size));
    return model_linear(m, model_merge_heads(m, seen), encoder->hidden, true, "%s.%s", layer,
                        names->output);
}

Value *prenorm_mlp(const PreNorm *encoder, Value *x, const char *name) {
    Model *m = encoder->m;
    const PreNormNames *names = encoder->names;
    Value *wide = model_linear(m, x, encoder->intermediate, true, "%s.%s", name, names->up);
    wide = model_activation(m, wide, encoder->activation);
    return model_linear(m, wide, encoder->hidden, true, "%s.%s", name, names->down);
}

/* silu(gate) * up from one projection to both. */
static Value *gated_mlp(const PreNorm *encoder, Value *x, const char *name) {
    Model *m = encoder->m;
    const int64_t sizes[2] = {encoder->intermediate, encoder->intermediate};
    Value *halves[2];
    Value *both =
        model_linear(m, x, 2 * encoder->intermediate, true, "%s.%s", name, encoder->names->gate_up);
    build_split(&m->b, both, sizes, 2, -1, halves);
    Value *wide = build_mul(&m->b, model_activation(m, halves[0], "silu"), halves[1]);
    return model_linear(m, wide, encoder->hidden, true, "%s.%s", name, encoder->names->gate_down);
}

/* What is added to the residual, times a vector where the class has one. */
static Value *scale(const PreNorm *encoder, Value *x, const char *layer, const char *name) {
    Model *m = encoder->m;
    if (!name) return x;
    return build_mul(&m->b, x, model_vector(m, encoder->hidden, "%s.%s", layer, name));
}

Value *prenorm_layer(const PreNorm *encoder, Value *x, int64_t i) {
    Model *m = encoder->m;
    const PreNormNames *names = encoder->names;
    const char *layer = arena_format(&m->b.program->arena, "%s.%lld", names->layers, (long long)i);
    const char *outer = build_scope(&m->b, "%s.%s", encoder->scope, layer);
    Value *y = model_layer_norm(m, x, true, encoder->eps, "%s.%s", layer, names->attention_norm);
    y = attend(encoder, y, layer);
    x = build_add(&m->b, x, scale(encoder, y, layer, names->attention_scale));
    y = model_layer_norm(m, x, true, encoder->eps, "%s.%s", layer, names->mlp_norm);
    y = encoder->gated ? gated_mlp(encoder, y, layer) : prenorm_mlp(encoder, y, layer);
    x = build_add(&m->b, x, scale(encoder, y, layer, names->mlp_scale));
    if (encoder->clamps && m->dtype == FERRY_F16)
        x = build_clamp(&m->b, x, arg_float(-64504), arg_float(64504));
    m->b.scope = outer;
    return x;
}
