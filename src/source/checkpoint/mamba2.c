/* The mixer of Mamba 2: heads with one decay each. */
#include "source/checkpoint/mamba.h"
#include "source/checkpoint/scan.h"

#include <math.h>

/* [batch, sequence, a * c] as [batch, sequence, a, c] */
static Value *divide(Builder *b, Value *x, int64_t a, int64_t c) {
    const Sym *shape[] = {build_dim(b, x, 0), build_dim(b, x, 1), build_const(b, a),
                          build_const(b, c)};
    return build_view(b, x, shape, 4);
}

static Value *merge(Builder *b, Value *x, int64_t size) {
    const Sym *shape[] = {build_dim(b, x, 0), build_dim(b, x, 1), build_const(b, size)};
    return build_view(b, x, shape, 3);
}

/* The steps between their limits, which the class forgets when it steps from one token to the next. */
static Value *limit(const MambaMixer *mixer, Value *steps) {
    Model *m = mixer->m;
    Builder *b = &m->b;
    if (mixer->least_step <= 0 && isinf(mixer->most_step)) return steps;
    bool continues = model_takes_cache(m);
    if (continues && sym_is_value(m->sequence, 1)) return steps;
    Arg most = isinf(mixer->most_step) ? arg_none() : arg_float(mixer->most_step);
    Value *limited = build_clamp(b, steps, arg_float(mixer->least_step), most);
    if (!continues) return limited;
    Value *length = build_scalar_tensor(b, m->sequence, FERRY_I64);
    return build_where(b, build_scalar(b, OP_EQ_SCALAR, length, 1), steps, limited);
}

/* RMS norm of x silu(gate) in each group, in float32. */
static Value *gated_norm(const MambaMixer *mixer, Value *x, Value *gate, const char *module) {
    Model *m = mixer->m;
    Builder *b = &m->b;
    gate = build_unary(b, OP_SILU, build_to(b, gate, FERRY_F32));
    x = build_mul(b, x, gate);
    if (mixer->groups > 1) x = divide(b, x, mixer->groups, mixer->inner / mixer->groups);
    x = build_rms_norm(b, x, NULL, mixer->eps);
    if (mixer->groups > 1) x = merge(b, x, mixer->inner);
    return build_mul(b, build_to(b, x, m->dtype),
                     model_vector(m, mixer->inner, "%s.norm.weight", module));
}

Value *mamba2_mixer(const MambaMixer *mixer, Value *x, CacheLayer *cache, int64_t layer,
                    const char *module) {
    Model *m = mixer->m;
    Builder *b = &m->b;
    int64_t inner = mixer->inner, heads = mixer->heads, width = mixer->width;
    int64_t shared = mixer->groups * mixer->state, convolved = inner + 2 * shared;
    const int64_t state[3] = {heads, width, mixer->state}, columns[2] = {convolved, mixer->kernel};
    const char *outer = build_scope(b, "%s.%s", m->family->base_prefix, module);
    *cache = (CacheLayer){0};
    model_find_states(m, cache, layer, columns, 3, state);

    Value *parts[3], *selection[3];
    x = model_linear(m, mixer_hide_padding(mixer, x), inner + convolved + heads, mixer->bias,
                     "%s.in_proj", module);
    build_split(b, x, (const int64_t[]){inner, convolved, heads}, 3, -1, parts);
    x = mixer_hide_padding(mixer, mixer_convolve(mixer, parts[1], cache, module));
    build_split(b, build_to(b, x, FERRY_F32), (const int64_t[]){inner, shared, shared}, 3, -1,
                selection);
    Value *steps = build_add(b, parts[2], model_vector(m, heads, "%s.dt_bias", module));
    steps = limit(mixer, build_op(b, OP_SOFTPLUS, (const Arg[]){arg_tensor(steps)}, 1));

    const ScanInputs inputs = {.x = divide(b, selection[0], heads, width),
                               .steps = build_to(b, steps, FERRY_F32),
                               .rates = mixer_rates(mixer, 1, &heads, module),
                               .in = divide(b, selection[1], mixer->groups, mixer->state),
                               .out = divide(b, selection[2], mixer->groups, mixer->state),
                               .state = cache->states[1]};
    Scan scan = scan_heads(b, &inputs);
    cache->states[1] = scan.state;

    Value *weight = build_to(b, model_vector(m, heads, "%s.D", module), FERRY_F32);
    Value *direct = build_mul(b, inputs.x, build_unsqueeze(b, weight, 1));
    Value *y = merge(b, build_add(b, scan.y, direct), inner);
    y = gated_norm(mixer, y, parts[0], module);
    y = model_linear(m, y, mixer->hidden, mixer->bias, "%s.out_proj", module);
    b->scope = outer;
    return y;
}
