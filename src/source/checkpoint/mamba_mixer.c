/* The mixer of Mamba, and what it shares with that of Mamba 2. */
#include "source/checkpoint/mamba.h"
#include "source/checkpoint/scan.h"

#include <string.h>

int64_t mixer_rank(Model *m, const char *key, int64_t hidden) {
    const char *word = json_string_value(config_get(m, key));
    if (!config_has(m, key) || (word && strcmp(word, "auto") == 0)) return (hidden + 15) / 16;
    return config_int(m, key);
}

Value *mixer_read_padding(Model *m) {
    const ModelRequest *request = m->request;
    if (model_takes_cache(m) && !request->multi_token && !request->keeps_cache) return NULL;
    const Sym *shape[] = {m->batch, m->sequence};
    Value *given = model_input(m, "attention_mask", FERRY_I64, 2, shape);
    return given ? build_unsqueeze(&m->b, build_to(&m->b, given, m->dtype), 2) : NULL;
}

Value *mixer_hide_padding(const MambaMixer *mixer, Value *x) {
    return mixer->padding ? build_mul(&mixer->m->b, x, mixer->padding) : x;
}

Value *mixer_rates(const MambaMixer *mixer, uint32_t rank, const int64_t *shape,
                   const char *module) {
    Builder *b = &mixer->m->b;
    Value *log = build_to(b, model_weight(mixer->m, rank, shape, "%s.A_log", module), FERRY_F32);
    return build_unary(b, OP_NEG, build_unary(b, OP_EXP, log));
}

Value *mixer_convolve(const MambaMixer *mixer, Value *x, CacheLayer *cache, const char *module) {
    Model *m = mixer->m;
    Builder *b = &m->b;
    int64_t channels = build_dim(b, x, 2)->value, kernel = mixer->kernel;
    Value *weight =
        model_weight(m, 3, (const int64_t[]){channels, 1, kernel}, "%s.conv1d.weight", module);
    Value *bias =
        mixer->convolution_bias ? model_vector(m, channels, "%s.conv1d.bias", module) : NULL;
    Value *columns =
        build_cat(b, (Value *const[]){cache->states[0], build_transpose(b, x, 1, 2)}, 2, 2);
    const int64_t one = 1, none = 0;
    const Arg args[] = {arg_tensor(build_slice_const(b, columns, 2, 1, INT64_MAX)),
                        arg_tensor(weight),
                        arg_tensor(bias),
                        arg_ints(b, &one, 1),
                        arg_ints(b, &none, 1),
                        arg_ints(b, &one, 1),
                        arg_bool(false),
                        arg_ints(b, &none, 1),
                        arg_int(b, channels)};
    Value *result = build_op(b, OP_CONVOLUTION, args, 9);
    cache->states[0] = build_slice_const(b, columns, 2, -kernel, INT64_MAX);
    return model_activation(m, build_transpose(b, result, 1, 2), mixer->activation);
}

/* The norm of a part of the selection, `name` [..]: in float32, as the classes do. */
static Value *norm(const MambaMixer *mixer, Value *x, const char *module, const char *name) {
    Model *m = mixer->m;
    if (mixer->norms == MIXER_PLAIN) return x;
    Value *weight = NULL;
    if (mixer->norms == MIXER_NORMS)
        weight =
            model_vector(m, build_dim(&m->b, x, -1)->value, "%s.%s_layernorm.weight", module, name);
    return build_rms_norm(&m->b, x, weight, mixer->eps);
}

static Value *single(Builder *b, Value *x) {
    return build_to(b, x, FERRY_F32);
}

Value *mamba_mixer(const MambaMixer *mixer, Value *x, CacheLayer *cache, int64_t layer,
                   const char *module) {
    Model *m = mixer->m;
    Builder *b = &m->b;
    int64_t inner = mixer->inner, state = mixer->state, rank = mixer->rank;
    const int64_t rates[2] = {inner, state}, columns[2] = {inner, mixer->kernel};
    const char *outer = build_scope(b, "%s.%s", m->family->base_prefix, module);
    *cache = (CacheLayer){0};
    model_find_states(m, cache, layer, columns, 2, rates);

    Value *both[2], *parts[3];
    x = model_linear(m, mixer_hide_padding(mixer, x), 2 * inner, mixer->bias, "%s.in_proj", module);
    build_split(b, x, (const int64_t[]){inner, inner}, 2, -1, both);
    x = mixer_hide_padding(mixer, mixer_convolve(mixer, both[0], cache, module));

    Value *selection = model_linear(m, x, rank + 2 * state, false, "%s.x_proj", module);
    build_split(b, selection, (const int64_t[]){rank, state, state}, 3, -1, parts);
    Value *steps = norm(mixer, parts[0], module, "dt");
    steps = model_linear(m, steps, inner, true, "%s.dt_proj", module);
    steps = build_op(b, OP_SOFTPLUS, (const Arg[]){arg_tensor(steps)}, 1);
    const ScanInputs inputs = {.x = single(b, x),
                               .steps = single(b, steps),
                               .rates = mixer_rates(mixer, 2, rates, module),
                               .in = single(b, norm(mixer, parts[1], module, "b")),
                               .out = single(b, norm(mixer, parts[2], module, "c")),
                               .state = cache->states[1]};
    Scan scan = scan_channels(b, &inputs);
    cache->states[1] = scan.state;

    Value *direct = build_mul(b, inputs.x, single(b, model_vector(m, inner, "%s.D", module)));
    Value *gate = single(b, build_unary(b, OP_SILU, both[1]));
    Value *y = build_to(b, build_mul(b, build_add(b, scan.y, direct), gate), m->dtype);
    y = model_linear(m, y, mixer->hidden, mixer->bias, "%s.out_proj", module);
    b->scope = outer;
    return y;
}
