/* Rotary position embedding: frequencies from the configuration, cos and sin in the graph.
 *
 * The formulas are those of modeling_rope_utils.py in Transformers 5. Frequencies are computed here in
 * float32 and in the order of the operations there, since at far positions the last bit of a frequency
 * shows in the angle. They become a buffer of the program; only the types that depend on the length of
 * the input (dynamic, longrope) compute or choose them in the graph. */
#include "source/checkpoint/attention.h"

#include <math.h>
#include <string.h>

/* rope_parameters, or its older spelling, in one form. */
typedef struct RopeParameters {
    json_t *object; /* a reference; may be NULL */
    json_t *outer;  /* rope_parameters itself, around the entry of the layer type; borrowed */
    const char *type;
    double theta;
    int64_t head_dim;
    int64_t width;          /* features of a head that are rotated, */
    int64_t pairs;          /* in so many pairs; an odd width rotates one feature more */
    int64_t trained_length; /* original_max_position_embeddings */
    int64_t max_length;     /* max_position_embeddings */
} RopeParameters;

enum { MAX_WIDTH = 4096, MAX_LENGTH = 1 << 30 };

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
static void check_keys(Model *m, const RotarySpec *spec, json_t *object) {
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
        "finetuned",
        "mrope_section",
        "mrope_interleaved",
    };
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        size_t count = sizeof known / sizeof *known - (spec->places ? 0 : 2);
        bool found = json_is_null(value) || config_is_ignored(m, key);
        for (size_t i = 0; i < count; i++) found |= !strcmp(key, known[i]);
        if (found) continue;
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the rope parameter \"%s\" is not understood and may change the arithmetic; "
                   "if it does not, export with --ignore-config %s",
                   m->config_path, key, key);
    }
}

static json_t *rope_object(Model *m, const char *key) {
    json_t *object = config_get(m, key);
    if (!object || json_is_object(object)) return object;
    build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"%s\" to be an object, found %s",
               m->config_path, key, json_kind(object));
    return NULL;
}

/* The entry of one layer type, with rope_scaling laid over it. The entry names its type even when it
 * was left out, so that only "rope_type" of rope_scaling counts, not the older "type". */
static json_t *layer_type_object(const RotarySpec *spec, json_t *parameters, json_t *scaling) {
    json_t *own = json_object_get(parameters, spec->layer_type);
    json_t *object =
        json_is_object(own) ? json_copy(own) : json_pack("{s:s}", "rope_type", "default");
    if (!object || !scaling || json_object_update(object, scaling) == 0) return object;
    json_decref(object);
    return NULL;
}

/* The object with the parameters; NULL when the configuration has none. The older spelling wins. */
static void find_object(Model *m, const RotarySpec *spec, RopeParameters *rope) {
    json_t *scaling = spec->ignore_scaling ? NULL : rope_object(m, "rope_scaling");
    json_t *parameters = rope_object(m, "rope_parameters");
    rope->outer = parameters;
    if (spec->layer_type) {
        rope->object = layer_type_object(spec, parameters, scaling);
        if (!rope->object) build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    if (json_object_size(scaling) > 0) rope->outer = scaling;
    rope->object = json_incref(rope->outer);
    if (rope->object || !spec->otherwise) return;
    rope->outer = rope->object = json_loads(spec->otherwise, 0, NULL);
    if (!rope->object) build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
}

static const char *find_type(const RopeParameters *rope) {
    json_t *type = json_object_get(rope->object, "rope_type");
    if (!type) type = json_object_get(rope->object, "type");
    const char *name = json_is_string(type) ? json_string_value(type) : "default";
    /* Older Phi3 checkpoints call longrope "su" or "yarn". */
    bool lists = json_object_get(rope->object, "long_factor") != NULL;
    return lists && (!strcmp(name, "su") || !strcmp(name, "yarn")) ? "longrope" : name;
}

static void read_lengths(Model *m, const RotarySpec *spec, RopeParameters *rope) {
    static const char *const key = "original_max_position_embeddings";
    rope->max_length =
        config_size_or(m, "max_position_embeddings", spec->max_length ? spec->max_length : 2048);
    double trained = number_or(m, rope->object, key, (double)rope->max_length);
    /* Where it is outside, as in Phi3, that one wins. */
    if (!spec->layer_type && (spec->trained_length || config_has(m, key)))
        trained = (double)config_size_or(m, key, spec->trained_length);
    if (trained < 1 || trained > MAX_LENGTH) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"%s\" to be between 1 and %d, found %g",
                   m->config_path, key, MAX_LENGTH, trained);
        trained = 1;
    }
    rope->trained_length = (int64_t)trained;
}

static void read_width(Model *m, const RotarySpec *spec, RopeParameters *rope) {
    const char *key = spec->partial_key ? spec->partial_key : "partial_rotary_factor";
    double partial = config_float_or(m, key, spec->partial);
    partial = number_or(m, rope->object, "partial_rotary_factor", partial);
    rope->head_dim = spec->head_dim;
    bool whole = spec->whole && strcmp(rope->type, "default") == 0;
    if (whole || strcmp(rope->type, "proportional") == 0)
        rope->width = spec->head_dim;
    else if (partial > 0 && partial <= 1)
        rope->width = (int64_t)((double)spec->head_dim * partial);
    rope->pairs = (rope->width + 1) / 2;
    bool odd = spec->even && rope->width % 2 != 0;
    bool fits = !odd && (!spec->whole || rope->width == spec->head_dim);
    if (fits && rope->width >= 1 && rope->width <= MAX_WIDTH && 2 * rope->pairs <= spec->head_dim &&
        rope->theta > 0) {
        return;
    }
    build_fail(&m->b, FERRY_UNSUPPORTED,
               "%s: cannot rotate %lld of %lld features with rope_theta %g", m->config_path,
               (long long)rope->width, (long long)spec->head_dim, rope->theta);
    rope->width = 2;
    rope->pairs = 1;
}

static RopeParameters read_parameters(Model *m, const RotarySpec *spec) {
    RopeParameters rope = {0};
    find_object(m, spec, &rope);
    if (rope.object) check_keys(m, spec, rope.object);
    rope.type = find_type(&rope);
    if (spec->places && strcmp(rope.type, "mrope") == 0)
        rope.type = "default"; /* as it was called */
    double theta =
        config_float_or(m, spec->theta_key ? spec->theta_key : "rope_theta", spec->theta);
    rope.theta = number_or(m, rope.object, "rope_theta", theta);
    read_lengths(m, spec, &rope);
    read_width(m, spec, &rope);
    return rope;
}

/* ---- frequencies ---- */

/* What the types start from: powers[i] = theta^(2i / width); the default frequency is its inverse. */
static void default_powers(const RopeParameters *rope, float *powers) {
    for (int64_t i = 0; i < rope->pairs; i++) {
        powers[i] = powf((float)rope->theta, (float)(2 * i) / (float)rope->width);
    }
}

static double default_frequencies(Model *m, const RopeParameters *rope, float *freq) {
    (void)m;
    for (int64_t i = 0; i < rope->pairs; i++) freq[i] = 1.0f / freq[i];
    return 1;
}

static double linear_frequencies(Model *m, const RopeParameters *rope, float *freq) {
    float factor = (float)required(m, rope, "factor");
    default_frequencies(m, rope, freq);
    for (int64_t i = 0; i < rope->pairs; i++) freq[i] /= factor;
    return 1;
}

/* The first features turn as if the whole head did, the rest stand still. */
static double proportional_frequencies(Model *m, const RopeParameters *rope, float *freq) {
    float factor = (float)number_or(m, rope->object, "factor", 1);
    double share = number_or(m, rope->object, "partial_rotary_factor", 1);
    double turning = floor(share * (double)rope->head_dim / 2);
    default_frequencies(m, rope, freq);
    for (int64_t i = 0; i < rope->pairs; i++) freq[i] = (double)i < turning ? freq[i] / factor : 0;
    return 1;
}

static double llama3_frequencies(Model *m, const RopeParameters *rope, float *freq) {
    double factor = required(m, rope, "factor"), low = required(m, rope, "low_freq_factor"),
           high = required(m, rope, "high_freq_factor"), trained = (double)rope->trained_length;
    default_frequencies(m, rope, freq);
    for (int64_t i = 0; i < rope->pairs; i++) {
        float wavelength = 1.0f / freq[i] * (float)(2 * PI);
        if (wavelength > (float)(trained / low)) {
            freq[i] /= (float)factor;
        } else if (wavelength >= (float)(trained / high)) {
            float turns = 1.0f / wavelength * (float)trained;
            float smooth = (turns - (float)low) / (float)(high - low);
            freq[i] = (1 - smooth) * freq[i] / (float)factor + smooth * freq[i];
        }
    }
    return 1;
}

static double yarn_mscale(double scale, double mscale) {
    return scale <= 1 ? 1 : 0.1 * mscale * log(scale) + 1;
}

/* The factor on cos and sin. */
static double yarn_attention(Model *m, const RopeParameters *rope, double factor) {
    double given = number_or(m, rope->object, "attention_factor", NAN);
    double mscale = number_or(m, rope->object, "mscale", 0);
    double mscale_all = number_or(m, rope->object, "mscale_all_dim", 0);
    if (!isnan(given)) return given;
    if (mscale == 0 || mscale_all == 0) return yarn_mscale(factor, 1);
    return yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all);
}

static double score_factor(Model *m, const RopeParameters *rope) {
    double mscale = number_or(m, rope->object, "mscale_all_dim", 0);
    if (mscale == 0 || strcmp(rope->type, "default") == 0) return 1;
    double scale = yarn_mscale(number_or(m, rope->object, "factor", 1), mscale);
    return scale * scale;
}

/* The feature that turns `rotations` times over the trained length. */
static double yarn_feature(const RopeParameters *rope, double rotations) {
    return (double)rope->width * log((double)rope->trained_length / (rotations * 2 * PI)) /
           (2 * log(rope->theta));
}

static double yarn_frequencies(Model *m, const RopeParameters *rope, float *freq) {
    double factor = number_or(m, rope->object, "factor",
                              (double)rope->max_length / (double)rope->trained_length);
    double fast = number_or(m, rope->object, "beta_fast", 0),
           slow = number_or(m, rope->object, "beta_slow", 0);
    double low = yarn_feature(rope, fast != 0 ? fast : 32);
    double high = yarn_feature(rope, slow != 0 ? slow : 1);
    /* Transformers looks for it outside of the entry of a layer type. */
    json_t *truncate = json_object_get(rope->outer, "truncate");
    if (!truncate || json_is_true(truncate)) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < (double)(rope->width - 1) ? high : (double)(rope->width - 1);
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < rope->pairs; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        float kept = 1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
        freq[i] = 1.0f / ((float)factor * freq[i]) * (1 - kept) + 1.0f / freq[i] * kept;
    }
    return yarn_attention(m, rope, factor);
}

/* The inverses of the powers times the factors of one list. */
static void scale_by_list(Model *m, const RopeParameters *rope, const char *key,
                          const float *powers, float *out) {
    json_t *list = rope->object ? json_object_get(rope->object, key) : NULL;
    if ((int64_t)json_array_size(list) != rope->pairs) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: rope type longrope needs \"%s\" with %lld numbers, found %zu",
                   m->config_path, key, (long long)rope->pairs, json_array_size(list));
        return;
    }
    for (int64_t i = 0; i < rope->pairs; i++) {
        out[i] = 1.0f / ((float)json_number_value(json_array_get(list, (size_t)i)) * powers[i]);
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

/* What `beyond` holds where the input is longer than `limit`, else `within`. */
static Value *by_length(Model *m, Value *length, double limit, Value *beyond, Value *within) {
    return build_where(&m->b, build_scalar(&m->b, OP_GT_SCALAR, length, limit), beyond, within);
}

/* NTK scaling by the current length L > max: theta grows by
 * (factor L / max - (factor - 1))^(w / (w - 2)). */
static Value *dynamic_frequencies(Model *m, const RopeParameters *rope, Value *positions,
                                  const float *powers) {
    Builder *b = &m->b;
    float exponents[MAX_WIDTH / 2], inv_freq[MAX_WIDTH / 2];
    double factor = required(m, rope, "factor"), longest = (double)rope->max_length;
    if (rope->width <= 2) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "%s: rope type dynamic needs more than two rotated features",
                          m->config_path);
    }
    for (int64_t i = 0; i < rope->pairs; i++) {
        exponents[i] = (float)(2 * i) / (float)rope->width;
        inv_freq[i] = 1.0f / powers[i];
    }
    Value *length = current_length(m, positions);
    Value *base = build_clamp(b, length, arg_float(longest), arg_none());
    base = build_scalar(b, OP_MUL_SCALAR, base, factor);
    base = build_scalar(b, OP_DIV_SCALAR, base, longest);
    base = build_scalar(b, OP_ADD_SCALAR, base, 1 - factor);
    /* torch raises to a scalar power in float64. */
    base = build_scalar(b, OP_POW_SCALAR, build_to(b, base, FERRY_F64),
                        (double)rope->width / (double)(rope->width - 2));
    base = build_scalar(b, OP_MUL_SCALAR, build_to(b, base, FERRY_F32), rope->theta);
    Value *scaled =
        build_binary(b, OP_POW, base, frequency_buffer(m, rope, "rotary_emb.exponents", exponents));
    return by_length(m, length, longest, build_unary(b, OP_RECIPROCAL, scaled),
                     frequency_buffer(m, rope, "rotary_emb.inv_freq", inv_freq));
}

static Value *longrope_frequencies(Model *m, const RopeParameters *rope, Value *positions,
                                   const float *powers, double *attention) {
    float long_freq[MAX_WIDTH / 2], short_freq[MAX_WIDTH / 2];
    double trained = (double)rope->trained_length;
    double factor = number_or(m, rope->object, "factor", (double)rope->max_length / trained);
    *attention = number_or(m, rope->object, "attention_factor",
                           factor <= 1 ? 1 : sqrt(1 + log(factor) / log(trained)));
    scale_by_list(m, rope, "long_factor", powers, long_freq);
    scale_by_list(m, rope, "short_factor", powers, short_freq);
    if (!build_ok(&m->b)) return &m->b.poison;
    return by_length(m, current_length(m, positions), trained,
                     frequency_buffer(m, rope, "rotary_emb.long_inv_freq", long_freq),
                     frequency_buffer(m, rope, "rotary_emb.short_inv_freq", short_freq));
}

/* The types whose frequencies do not depend on the input. */
static const struct {
    const char *type;
    /* From powers to frequencies, in place; gives the factor on cos and sin. */
    double (*make)(Model *m, const RopeParameters *rope, float *freq);
} fixed_types[] = {
    {"default", default_frequencies},
    {"linear", linear_frequencies},
    {"llama3", llama3_frequencies},
    {"yarn", yarn_frequencies},
    {"proportional", proportional_frequencies},
};

/* The frequencies of one type, and the factor on cos and sin. */
static Value *frequencies(Model *m, const RopeParameters *rope, Value *positions,
                          double *attention) {
    float freq[MAX_WIDTH / 2];
    *attention = 1;
    default_powers(rope, freq);
    if (strcmp(rope->type, "dynamic") == 0) return dynamic_frequencies(m, rope, positions, freq);
    if (strcmp(rope->type, "longrope") == 0) {
        return longrope_frequencies(m, rope, positions, freq, attention);
    }
    for (size_t i = 0; i < sizeof fixed_types / sizeof *fixed_types; i++) {
        if (strcmp(rope->type, fixed_types[i].type) != 0) continue;
        *attention = fixed_types[i].make(m, rope, freq);
        return frequency_buffer(m, rope, "rotary_emb.inv_freq", freq);
    }
    return build_fail(
        &m->b, FERRY_UNSUPPORTED,
        "%s: the rope type \"%s\" is not supported (expected default, linear, dynamic, "
        "yarn, longrope, llama3 or proportional)",
        m->config_path, rope->type);
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
    if (positions->rank == 3 && (!strcmp(rope.type, "dynamic") || !strcmp(rope.type, "longrope"))) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the rope type \"%s\" is not supported where patches have three places",
                   m->config_path, rope.type);
    }
    Value *inv_freq = frequencies(m, &rope, positions, &attention);
    Value *steps = positions->rank == 3
                       ? rotary_places(m, spec, json_object_get(rope.object, "mrope_section"),
                                       rope.pairs, positions)
                       : build_unsqueeze(&m->b, build_to(&m->b, positions, FERRY_F32), -1);
    Value *angles = build_spread(&m->b, build_mul(&m->b, steps, inv_freq), spec->interleaved);
    Rotary rotary = {.cos = finish(m, OP_COS, angles, attention, dtype),
                     .sin = finish(m, OP_SIN, angles, attention, dtype),
                     .interleaved = spec->interleaved,
                     .score_factor = score_factor(m, &rope)};
    json_decref(rope.object);
    m->b.scope = outer;
    return rotary;
}
