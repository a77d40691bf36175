/* Rotary position embedding: frequencies from the configuration, cos and sin in the graph.
 *
 * The formulas are those of modeling_rope_utils.py in Transformers 5. Frequencies are computed here in
 * float32, as torch does, and become a buffer of the program; only the types that depend on the
 * length of the input (dynamic, longrope) compute them in the graph. */
#include "source/checkpoint/attention.h"

#include <math.h>
#include <string.h>

/* rope_parameters, or its older spelling, in one form. */
typedef struct RopeParameters {
    json_t *object; /* may be NULL */
    const char *type;
    double theta;
    int64_t width;          /* features of a head that are rotated, */
    int64_t pairs;          /* in so many pairs; an odd width rotates one feature more */
    int64_t trained_length; /* original_max_position_embeddings */
    int64_t max_length;     /* max_position_embeddings */
} RopeParameters;

enum { MAX_WIDTH = 4096 };

static const double PI = 3.14159265358979323846;

static double number_or(Model *m, json_t *object, const char *key, double otherwise) {
    json_t *value = object ? json_object_get(object, key) : NULL;
    if (!value || json_is_null(value)) return otherwise;
    if (!json_is_number(value)) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"%s\" of the rope parameters to be a number", m->config_path,
                   key);
    }
    return json_number_value(value);
}

static double required(Model *m, const RopeParameters *rope, const char *key) {
    double value = number_or(m, rope->object, key, NAN);
    if (isnan(value)) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: rope type \"%s\" needs the key \"%s\"",
                   m->config_path, rope->type, key);
    }
    return isnan(value) ? 1 : value;
}

/* Every key of the object must be one that some rope type reads. */
static void check_keys(Model *m, json_t *object) {
    static const char *const known[] = {
        "rope_type",
        "type",
        "rope_theta",
        "factor",
        "partial_rotary_factor",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "truncate",
        "short_factor",
        "long_factor",
        "short_mscale",
        "long_mscale",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    };
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        bool found = json_is_null(value);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= !strcmp(key, known[i]);
        if (found) continue;
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the rope parameter \"%s\" is not understood and may change the arithmetic",
                   m->config_path, key);
    }
}

/* Does the object hold one object per layer type? */
static bool is_nested(json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (json_is_object(value)) return true;
    }
    return false;
}

/* The object with the parameters of this layer type; NULL when the configuration has none. */
static json_t *find_object(Model *m, const RotarySpec *spec) {
    json_t *parameters = config_get(m, "rope_parameters");
    json_t *scaling = config_get(m, "rope_scaling");
    /* Where both are present Transformers takes the older spelling. */
    json_t *object = scaling && !spec->ignore_scaling ? scaling : parameters;
    if (!object) return NULL;
    if (!json_is_object(object)) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected the rope parameters to be an object, found %s", m->config_path,
                   json_kind(object));
        return NULL;
    }
    if (!spec->layer_type || !is_nested(object)) return object;
    json_t *own = json_object_get(object, spec->layer_type);
    return json_is_object(own) ? own : NULL;
}

static RopeParameters read_parameters(Model *m, const RotarySpec *spec) {
    RopeParameters rope = {.object = find_object(m, spec), .type = "default"};
    double theta =
        spec->ignore_scaling ? spec->theta : config_float_or(m, "rope_theta", spec->theta);
    double partial = config_float_or(m, "partial_rotary_factor", spec->partial);
    if (spec->theta_key) theta = config_float_or(m, spec->theta_key, theta);
    if (spec->partial_key) partial = config_float_or(m, spec->partial_key, partial);
    if (rope.object) {
        check_keys(m, rope.object);
        json_t *type = json_object_get(rope.object, "rope_type");
        if (!type) type = json_object_get(rope.object, "type");
        if (json_is_string(type)) rope.type = json_string_value(type);
        /* Older Phi3 checkpoints call longrope "su" or "yarn". */
        bool lists = json_object_get(rope.object, "long_factor") != NULL;
        if (lists && (!strcmp(rope.type, "su") || !strcmp(rope.type, "yarn")))
            rope.type = "longrope";
    }
    rope.theta = number_or(m, rope.object, "rope_theta", theta);
    partial = number_or(m, rope.object, "partial_rotary_factor", partial);
    if (partial > 0 && partial <= 1) rope.width = (int64_t)((double)spec->head_dim * partial);
    rope.pairs = (rope.width + 1) / 2;
    rope.max_length = config_int_or(m, "max_position_embeddings", 2048);
    rope.trained_length = (int64_t)number_or(m, rope.object, "original_max_position_embeddings",
                                             (double)rope.max_length);
    /* Phi3 keeps it outside, and that one wins. */
    rope.trained_length = config_int_or(m, "original_max_position_embeddings", rope.trained_length);
    if (rope.width < 1 || rope.width > MAX_WIDTH || 2 * rope.pairs > spec->head_dim ||
        rope.theta <= 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: cannot rotate %lld of %lld features with rope_theta %g", m->config_path,
                   (long long)rope.width, (long long)spec->head_dim, rope.theta);
        rope.pairs = 1;
    }
    return rope;
}

/* ---- frequencies ---- */

/* theta^(-i/width) for i = 0, 2, 4, ... */
static void default_frequencies(const RopeParameters *rope, float *inv_freq) {
    for (int64_t i = 0; i < rope->pairs; i++) {
        inv_freq[i] = 1.0f / powf((float)rope->theta, (float)(2 * i) / (float)rope->width);
    }
}

static double linear_frequencies(Model *m, const RopeParameters *rope, float *inv_freq) {
    float factor = (float)required(m, rope, "factor");
    for (int64_t i = 0; i < rope->pairs; i++) inv_freq[i] /= factor;
    return 1;
}

static double llama3_frequencies(Model *m, const RopeParameters *rope, float *inv_freq) {
    float factor = (float)required(m, rope, "factor");
    float low = (float)required(m, rope, "low_freq_factor");
    float high = (float)required(m, rope, "high_freq_factor");
    float trained = (float)rope->trained_length;
    for (int64_t i = 0; i < rope->pairs; i++) {
        float wavelength = 2 * (float)PI / inv_freq[i];
        if (wavelength > trained / low) {
            inv_freq[i] /= factor;
        } else if (wavelength >= trained / high) {
            float smooth = (trained / wavelength - low) / (high - low);
            inv_freq[i] = (1 - smooth) * inv_freq[i] / factor + smooth * inv_freq[i];
        }
    }
    return 1;
}

static double yarn_mscale(double scale, double mscale) {
    return scale <= 1 ? 1 : 0.1 * mscale * log(scale) + 1;
}

/* The feature that turns `rotations` times over the trained length. */
static double yarn_feature(const RopeParameters *rope, double rotations) {
    return (double)rope->width * log((double)rope->trained_length / (rotations * 2 * PI)) /
           (2 * log(rope->theta));
}

static double yarn_frequencies(Model *m, const RopeParameters *rope, float *inv_freq) {
    double factor = number_or(m, rope->object, "factor",
                              (double)rope->max_length / (double)rope->trained_length);
    double mscale = number_or(m, rope->object, "mscale", 0);
    double mscale_all = number_or(m, rope->object, "mscale_all_dim", 0);
    double attention = number_or(m, rope->object, "attention_factor", NAN);
    double fast = number_or(m, rope->object, "beta_fast", 32),
           slow = number_or(m, rope->object, "beta_slow", 1);
    json_t *truncate = json_object_get(rope->object, "truncate");
    if (isnan(attention)) {
        attention = mscale != 0 && mscale_all != 0
                        ? yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all)
                        : yarn_mscale(factor, 1);
    }
    double low = yarn_feature(rope, fast), high = yarn_feature(rope, slow);
    if (!json_is_false(truncate)) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < (double)(rope->width - 1) ? high : (double)(rope->width - 1);
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < rope->pairs; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        inv_freq[i] = inv_freq[i] / (float)factor * ramp + inv_freq[i] * (1 - ramp);
    }
    return attention;
}

/* inv_freq divided by the factors of one list. */
static void divide_by_list(Model *m, const RopeParameters *rope, const char *key,
                           const float *inv_freq, float *out) {
    json_t *list = rope->object ? json_object_get(rope->object, key) : NULL;
    if ((int64_t)json_array_size(list) != rope->pairs) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: rope type longrope needs \"%s\" with %lld numbers, found %zu",
                   m->config_path, key, (long long)rope->pairs, json_array_size(list));
        return;
    }
    for (int64_t i = 0; i < rope->pairs; i++) {
        out[i] = inv_freq[i] / (float)json_number_value(json_array_get(list, (size_t)i));
    }
}

/* ---- in the graph ---- */

static Value *frequency_buffer(Model *m, const RopeParameters *rope, const char *name,
                               const float *values) {
    return build_constant(&m->b, VALUE_BUFFER, name, FERRY_F32, 1, (const int64_t[]){rope->pairs},
                          values);
}

/* The length of the input as a 0-d float: the largest position and one. */
static Value *current_length(Model *m, Value *positions) {
    if (map_find(&m->b.program->names, "position_ids")) {
        Value *longest = build_reduce(&m->b, OP_AMAX, positions, 1, false);
        longest = build_reduce(&m->b, OP_AMAX, longest, 0, false);
        return build_to(&m->b, build_scalar(&m->b, OP_ADD_SCALAR, longest, 1), FERRY_F32);
    }
    return build_scalar_tensor(&m->b, m->sequence, FERRY_F32);
}

/* NTK scaling by the current length L: theta grows by (factor L / max - (factor - 1))^(w / (w - 2)),
 * so feature i is multiplied by that base to the power of -(i / (w - 2)). */
static Value *dynamic_frequencies(Model *m, const RopeParameters *rope, Value *positions,
                                  const float *inv_freq) {
    Builder *b = &m->b;
    float exponents[MAX_WIDTH / 2];
    double factor = required(m, rope, "factor"), longest = (double)rope->max_length;
    if (rope->width <= 2) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "%s: rope type dynamic needs more than two rotated features",
                          m->config_path);
    }
    for (int64_t i = 0; i < rope->pairs; i++) {
        exponents[i] = -(float)(2 * i) / (float)(rope->width - 2);
    }
    Value *length = current_length(m, positions);
    Value *at_least =
        build_op(b, OP_CLAMP, (const Arg[]){arg_tensor(length), arg_float(longest)}, 2);
    Value *base = build_scalar(b, OP_MUL_SCALAR, at_least, factor / longest);
    base = build_scalar(b, OP_ADD_SCALAR, base, 1 - factor);
    Value *powers = frequency_buffer(m, rope, "rotary_emb.ntk_exponents", exponents);
    Value *scale = build_unary(b, OP_EXP, build_mul(b, build_unary(b, OP_LOG, base), powers));
    return build_mul(b, frequency_buffer(m, rope, "rotary_emb.inv_freq", inv_freq), scale);
}

static Value *longrope_frequencies(Model *m, const RopeParameters *rope, Value *positions,
                                   const float *inv_freq, double *attention) {
    float long_freq[MAX_WIDTH / 2], short_freq[MAX_WIDTH / 2];
    double trained = (double)rope->trained_length;
    double factor = number_or(m, rope->object, "factor", (double)rope->max_length / trained);
    *attention = number_or(m, rope->object, "attention_factor",
                           factor <= 1 ? 1 : sqrt(1 + log(factor) / log(trained)));
    divide_by_list(m, rope, "long_factor", inv_freq, long_freq);
    divide_by_list(m, rope, "short_factor", inv_freq, short_freq);
    if (!build_ok(&m->b)) return &m->b.poison;
    Value *is_long = build_scalar(&m->b, OP_GT_SCALAR, current_length(m, positions), trained);
    return build_where(&m->b, is_long,
                       frequency_buffer(m, rope, "rotary_emb.long_inv_freq", long_freq),
                       frequency_buffer(m, rope, "rotary_emb.short_inv_freq", short_freq));
}

static const struct {
    const char *type;
    double (*scale)(Model *m, const RopeParameters *rope,
                    float *inv_freq); /* gives the attention factor */
} fixed_types[] = {
    {"default", NULL},
    {"linear", linear_frequencies},
    {"llama3", llama3_frequencies},
    {"yarn", yarn_frequencies},
};

/* The frequencies of one type, and the factor on cos and sin. */
static Value *frequencies(Model *m, const RopeParameters *rope, Value *positions,
                          double *attention) {
    float inv_freq[MAX_WIDTH / 2];
    *attention = 1;
    default_frequencies(rope, inv_freq);
    if (strcmp(rope->type, "dynamic") == 0)
        return dynamic_frequencies(m, rope, positions, inv_freq);
    if (strcmp(rope->type, "longrope") == 0) {
        return longrope_frequencies(m, rope, positions, inv_freq, attention);
    }
    for (size_t i = 0; i < sizeof fixed_types / sizeof *fixed_types; i++) {
        if (strcmp(rope->type, fixed_types[i].type) != 0) continue;
        if (fixed_types[i].scale) *attention = fixed_types[i].scale(m, rope, inv_freq);
        return frequency_buffer(m, rope, "rotary_emb.inv_freq", inv_freq);
    }
    return build_fail(
        &m->b, FERRY_UNSUPPORTED,
        "%s: the rope type \"%s\" is not supported (expected default, linear, dynamic, "
        "yarn, longrope or llama3)",
        m->config_path, rope->type);
}

/* [.., r/2] -> [.., r]: the whole list twice, or every element twice. */
static Value *spread(Model *m, Value *angles, bool interleaved) {
    if (!interleaved) return build_cat(&m->b, (Value *const[]){angles, angles}, 2, -1);
    Value *column = build_unsqueeze(&m->b, angles, -1);
    Value *pairs = build_cat(&m->b, (Value *const[]){column, column}, 2, -1);
    const Sym *size[3] = {build_dim(&m->b, angles, 0), build_dim(&m->b, angles, 1),
                          build_const(&m->b, -1)};
    return build_view(&m->b, pairs, size, 3);
}

static Value *finish(Model *m, Op op, Value *angles, double attention, ferry_dtype dtype) {
    Value *result = build_unary(&m->b, op, angles);
    if (attention != 1) result = build_scalar(&m->b, OP_MUL_SCALAR, result, attention);
    return build_unsqueeze(&m->b, build_to(&m->b, result, dtype), 1);
}

Rotary model_rotary(Model *m, const RotarySpec *spec, Value *positions) {
    const char *outer = build_scope(&m->b, "%s.rotary_emb", m->family->base_prefix);
    ferry_dtype dtype = spec->float32 ? FERRY_F32 : m->dtype;
    double attention = 1;
    RopeParameters rope = read_parameters(m, spec);
    Value *inv_freq = frequencies(m, &rope, positions, &attention);
    Value *steps = build_unsqueeze(&m->b, build_to(&m->b, positions, FERRY_F32), -1);
    Value *angles = spread(m, build_mul(&m->b, steps, inv_freq), spec->interleaved);
    Rotary rotary = {.cos = finish(m, OP_COS, angles, attention, dtype),
                     .sin = finish(m, OP_SIN, angles, attention, dtype),
                     .interleaved = spec->interleaved};
    m->b.scope = outer;
    return rotary;
}
