/* The configuration of a GGUF file: its metadata, told with the keys of config.json. */
#include "base/error.h"
#include "source/checkpoint/gguf_config.h"

#include <math.h>
#include <string.h>

void gguf_fail(GgufConfig *c, ferry_status status, const char *format, ...) {
    va_list args;
    if (c->status != FERRY_OK) return;
    va_start(args, format);
    c->status =
        error_set(c->error, status, c->gguf->path, "%s", arena_vformat(c->arena, format, args));
    va_end(args);
}

void gguf_set(GgufConfig *c, const char *key, json_t *value) {
    if (json_object_set_new(c->json, key, value) == 0 || c->status != FERRY_OK) return;
    c->status = error_memory(c->error, c->gguf->path, 0);
}

/* ---- metadata ---- */

static const GgufValue *find(const GgufConfig *c, const char *key) {
    return gguf_value(c->gguf, arena_format(c->arena, "%s.%s", c->architecture->name, key));
}

static void wrong_kind(GgufConfig *c, const GgufValue *value, const char *expected) {
    gguf_fail(c, FERRY_BAD_FORMAT, "\"%s\": expected %s, found %s", value->key, expected,
              gguf_kind(value));
}

/* A value that is one for all layers, though it may be written once for each. */
static const GgufValue *uniform(GgufConfig *c, const GgufValue *value, GgufValue *item) {
    GgufItems items = {.array = value};
    int64_t first = 0, other;
    if (!value || value->type != GGUF_ARRAY) return value;
    for (bool begun = false; gguf_next(&items, item); begun = true) {
        if (!gguf_integer(item, &other)) return value;
        if (!begun) first = other;
        if (other == first) continue;
        gguf_fail(c, FERRY_UNSUPPORTED,
                  "\"%s\" differs from layer to layer, which is not supported", value->key);
        return NULL;
    }
    return value->count ? item : value;
}

static void take(GgufConfig *c, const char *key) {
    json_object_del(c->rest, arena_format(c->arena, "%s.%s", c->architecture->name, key));
}

bool gguf_take_integer(GgufConfig *c, const char *key, int64_t *out) {
    GgufValue item;
    const GgufValue *value = uniform(c, find(c, key), &item);
    take(c, key);
    if (!value) return false;
    if (gguf_integer(value, out)) return true;
    wrong_kind(c, value, "an integer");
    return false;
}

bool gguf_take_number(GgufConfig *c, const char *key, double *out) {
    const GgufValue *value = find(c, key);
    take(c, key);
    if (!value) return false;
    if (gguf_number(value, out) && isfinite(*out)) return true;
    wrong_kind(c, value, "a number");
    return false;
}

static const char *take_text(GgufConfig *c, const char *key) {
    const GgufValue *value = find(c, key);
    take(c, key);
    const char *text = gguf_text(value, c->arena);
    if (value && !text) wrong_kind(c, value, "a string");
    return text;
}

int64_t gguf_have(const GgufConfig *c, const char *key) {
    return json_integer_value(json_object_get(c->json, key));
}

/* A value as JSON, when it is a scalar or a string. */
static json_t *plain(GgufConfig *c, const GgufValue *value) {
    int64_t integer;
    double number;
    bool truth;
    if (gguf_integer(value, &integer)) return json_integer(integer);
    if (gguf_number(value, &number) && isfinite(number)) return json_real(number);
    if (gguf_bool(value, &truth)) return json_boolean(truth);
    const char *text = gguf_text(value, c->arena);
    json_t *string = text ? json_string(text) : NULL;
    return string ? string : json_string(gguf_kind(value));
}

/* Everything that the file says of its architecture is to be understood. */
static void collect(GgufConfig *c) {
    size_t length = strlen(c->architecture->name);
    for (size_t i = 0; i < c->gguf->value_count; i++) {
        const GgufValue *value = &c->gguf->values[i];
        if (strncmp(value->key, c->architecture->name, length) || value->key[length] != '.')
            continue;
        json_object_set_new(c->rest, value->key, plain(c, value));
    }
}

/* ---- what all architectures have ---- */

static void set_sizes(GgufConfig *c) {
    static const struct {
        const char *theirs, *ours;
    } sizes[] = {
        {"context_length", "max_position_embeddings"},   {"embedding_length", "hidden_size"},
        {"feed_forward_length", "intermediate_size"},    {"block_count", "num_hidden_layers"},
        {"attention.head_count", "num_attention_heads"},
    };
    int64_t size;
    double number;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (gguf_take_integer(c, sizes[i].theirs, &size) && size > 0)
            gguf_set(c, sizes[i].ours, json_integer(size));
        else
            gguf_fail(c, FERRY_BAD_FORMAT, "expected a positive \"%s.%s\"", c->architecture->name,
                      sizes[i].theirs);
    }
    bool grouped = gguf_take_integer(c, "attention.head_count_kv", &size);
    gguf_set(c, "num_key_value_heads",
             json_integer(grouped ? size : gguf_have(c, "num_attention_heads")));
    if (gguf_take_number(c, "attention.layer_norm_rms_epsilon", &number))
        gguf_set(c, "rms_norm_eps", json_real(number));
    /* The embedding knows better than metadata, which older files lack. */
    const GgufTensor *embedding = gguf_tensor(c->gguf, "token_embd.weight");
    if (embedding && embedding->rank == 2)
        gguf_set(c, "vocab_size", json_integer(embedding->shape[0]));
    gguf_set(c, "tie_word_embeddings", json_boolean(!gguf_tensor(c->gguf, "output.weight")));
}

/* Keys that do not change the arithmetic. */
static void skip_harmless(GgufConfig *c) {
    static const char *const keys[] = {"vocab_size", "tensor_data_layout", "pooling_type"};
    bool causal;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) take(c, keys[i]);
    if (gguf_bool(find(c, "attention.causal"), &causal) && causal) take(c, "attention.causal");
}

static void set_head(GgufConfig *c) {
    int64_t heads = gguf_have(c, "num_attention_heads"), size = 0, rotated;
    if (c->status != FERRY_OK) return;
    if (!gguf_take_integer(c, "attention.key_length", &size))
        size = gguf_have(c, "hidden_size") / heads;
    int64_t value = size;
    gguf_take_integer(c, "attention.value_length", &value);
    if (size < 1 || value != size) {
        gguf_fail(c, FERRY_UNSUPPORTED,
                  "keys of %lld features and values of %lld are not supported: expected as many",
                  (long long)size, (long long)value);
        return;
    }
    gguf_set(c, "head_dim", json_integer(size));
    if (!gguf_take_integer(c, "rope.dimension_count", &rotated) || rotated == size) return;
    gguf_set(c, "partial_rotary_factor", json_real((double)rotated / (double)size));
    if (!c->architecture->partial)
        gguf_fail(c, FERRY_UNSUPPORTED,
                  "\"%s.rope.dimension_count\": to rotate %lld of %lld features of a head is not "
                  "supported",
                  c->architecture->name, (long long)rotated, (long long)size);
}

static void set_tokens(GgufConfig *c) {
    static const struct {
        const char *theirs, *ours;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", "bos_token_id"},
        {"tokenizer.ggml.eos_token_id", "eos_token_id"},
        {"tokenizer.ggml.padding_token_id", "pad_token_id"},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        int64_t id;
        bool given = gguf_integer(gguf_value(c->gguf, ids[i].theirs), &id);
        gguf_set(c, ids[i].ours, given ? json_integer(id) : json_null());
    }
}

/* ---- rotary positions ---- */

/* The elements of a tensor of F32; NULL when there is none, and after a failure. */
static json_t *factors(GgufConfig *c, const char *name) {
    const GgufTensor *tensor = gguf_tensor(c->gguf, name);
    if (!tensor) return NULL;
    if (tensor->rank != 1 || strcmp(tensor->type, "F32") != 0 || tensor->size > 1 << 16) {
        gguf_fail(c, FERRY_BAD_FORMAT, "tensor \"%s\": expected one dimension of F32", name);
        return NULL;
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < tensor->shape[0]; i++) {
        float value;
        memcpy(&value, c->bytes + tensor->offset + (uint64_t)i * sizeof value, sizeof value);
        if (!(value > 0) || isinf(value)) {
            gguf_fail(c, FERRY_BAD_FORMAT, "tensor \"%s\": expected positive numbers", name);
            value = 1;
        }
        json_array_append_new(list, json_real((double)value));
    }
    return list;
}

/* What llama3's rope type divides the frequency of feature pair i by. */
static double llama3_factor(double theta, double share, double factor, double trained) {
    double turns = trained / (2 * 3.14159265358979323846 * pow(theta, share));
    double smooth = (turns - 1) / 3; /* low_freq_factor 1, high_freq_factor 4 */
    if (turns > 4) return 1;
    return turns < 1 ? factor : 1 / ((1 - smooth) / factor + smooth);
}

/* The parameters of the rope type llama3 that give these factors, where they are those of the released
 * models; NULL when there are none. */
static json_t *as_llama3(const json_t *list, double theta, int64_t trained) {
    size_t count = json_array_size(list);
    double factor = count ? json_real_value(json_array_get(list, count - 1)) : 0;
    for (size_t i = 0; i < count; i++) {
        double found = json_real_value(json_array_get(list, i));
        double wanted = llama3_factor(theta, (double)i / (double)count, factor, (double)trained);
        if (fabs(found - wanted) > 1e-5 * wanted) return NULL;
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", factor,
                     "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                     "original_max_position_embeddings", (json_int_t)trained);
}

/* Factors that hold at every length: as llama3, or as a longrope that has them twice. */
static json_t *fixed_factors(GgufConfig *c, double theta, int64_t trained) {
    json_t *list = factors(c, "rope_freqs.weight");
    if (!list) return NULL;
    json_t *scaling = as_llama3(list, theta, trained > 0 ? trained : 8192);
    if (!scaling) {
        scaling = json_pack("{s:s, s:O, s:O, s:f}", "rope_type", "longrope", "long_factor", list,
                            "short_factor", list, "attention_factor", 1.0);
    }
    json_decref(list);
    return scaling;
}

static json_t *long_factors(GgufConfig *c, int64_t trained, double attention) {
    json_t *beyond = factors(c, "rope_factors_long.weight");
    json_t *within = factors(c, "rope_factors_short.weight");
    json_t *scaling = NULL;
    if (beyond && within) {
        scaling = json_pack("{s:s, s:O, s:O}", "rope_type", "longrope", "long_factor", beyond,
                            "short_factor", within);
        gguf_set(c, "original_max_position_embeddings", json_integer(trained));
        if (attention > 0) json_object_set_new(scaling, "attention_factor", json_real(attention));
        if (trained < 1)
            gguf_fail(c, FERRY_BAD_FORMAT,
                      "rope factors by length need \"%s.rope.scaling.original_context_length\"",
                      c->architecture->name);
    }
    json_decref(beyond);
    json_decref(within);
    return scaling;
}

static json_t *yarn(GgufConfig *c, double factor, int64_t trained, double attention) {
    static const struct {
        const char *theirs, *ours;
    } betas[] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                 {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    json_t *scaling = json_pack("{s:s, s:f}", "rope_type", "yarn", "factor", factor);
    double number;
    if (trained > 0)
        json_object_set_new(scaling, "original_max_position_embeddings", json_integer(trained));
    for (size_t i = 0; i < sizeof betas / sizeof *betas; i++) {
        if (gguf_take_number(c, betas[i].theirs, &number))
            json_object_set_new(scaling, betas[i].ours, json_real(number));
    }
    if (attention > 0)
        json_object_set_new(scaling, "attention_factor",
                            json_real(attention * (0.1 * log(factor) + 1)));
    return scaling;
}

static void set_rotation(GgufConfig *c) {
    double theta = 10000, factor = 0, attention = 0;
    int64_t trained = 0;
    const char *type = take_text(c, "rope.scaling.type");
    gguf_take_number(c, "rope.freq_base", &theta);
    if (gguf_take_number(c, "rope.scale_linear", &factor) && !type) type = "linear";
    gguf_take_number(c, "rope.scaling.factor", &factor);
    gguf_take_integer(c, "rope.scaling.original_context_length", &trained);
    gguf_take_number(c, "rope.scaling.attn_factor", &attention);
    take(c, "rope.scaling.finetuned");
    gguf_set(c, "rope_theta", json_real(theta));
    json_t *scaling = fixed_factors(c, theta, trained);
    if (!scaling) scaling = long_factors(c, trained, attention);
    if (scaling || !type || strcmp(type, "none") == 0 || factor == 1) {
        /* nothing is left to do */
    } else if (!(factor > 0)) {
        gguf_fail(c, FERRY_BAD_FORMAT, "the rope scaling \"%s\" has no factor", type);
    } else if (strcmp(type, "linear") == 0) {
        scaling = json_pack("{s:s, s:f}", "rope_type", type, "factor", factor);
    } else if (strcmp(type, "yarn") == 0) {
        scaling = yarn(c, factor, trained, attention);
    } else {
        gguf_fail(c, FERRY_UNSUPPORTED,
                  "the rope scaling \"%s\" is not supported (expected none, linear, yarn, or "
                  "factors in rope_freqs or rope_factors_long and rope_factors_short)",
                  type);
    }
    if (scaling) gguf_set(c, "rope_scaling", scaling);
}

/* ---- the whole ---- */

static void set_all(GgufConfig *c) {
    gguf_set(c, "architectures", json_pack("[s]", c->architecture->class_name));
    gguf_set(c, "model_type", json_string(c->architecture->model_type));
    gguf_set(c, "dtype", json_string("float32"));
    collect(c);
    skip_harmless(c);
    set_sizes(c);
    set_head(c);
    set_rotation(c);
    if (c->architecture->finish && c->status == FERRY_OK) c->architecture->finish(c);
    set_tokens(c);
    json_object_update(c->json, c->rest);
}

ferry_status gguf_config(const Gguf *gguf, const GgufArchitecture *architecture,
                         const unsigned char *bytes, Arena *arena, json_t **out,
                         ferry_error *error) {
    GgufConfig config = {.gguf = gguf,
                         .architecture = architecture,
                         .bytes = bytes,
                         .json = json_object(),
                         .rest = json_object(),
                         .arena = arena,
                         .error = error};
    *out = config.json;
    if (!config.json || !config.rest) {
        config.status = error_memory(error, gguf->path, 0);
    } else {
        set_all(&config);
    }
    json_decref(config.rest);
    return config.status;
}
