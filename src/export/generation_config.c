/* generation_config.json: a table of the keys that are understood, and a note for those that would change
 * what is generated and are not. */
#include "base/error.h"
#include "export/export.h"

#include <stddef.h>
#include <string.h>

void ferry_generate_config_init(ferry_generate_config *config) {
    *config = (ferry_generate_config){.size = sizeof *config,
                                      .max_length = 20,
                                      .temperature = 1,
                                      .top_k = 50,
                                      .top_p = 1,
                                      .repetition_penalty = 1,
                                      .num_beams = 1,
                                      .length_penalty = 1,
                                      .pad_token_id = -1,
                                      .decoder_start_token_id = -1,
                                      .forced_bos_token_id = -1,
                                      .forced_eos_token_id = -1};
    ferry_run_config_init(&config->run);
}

/* ---- keys ---- */

typedef enum KeyKind {
    KEY_INT,
    KEY_REAL,
    KEY_BOOL,
    KEY_TOKEN,  /* one token, or the first of a list */
    KEY_TOKENS, /* one token or a list, with their count at `count` */
} KeyKind;

#define AT(field) offsetof(ferry_generate_config, field)

static const struct {
    const char *name;
    KeyKind kind;
    size_t place, count;
} keys[] = {
    {"max_new_tokens", KEY_INT, AT(max_new_tokens), 0},
    {"max_length", KEY_INT, AT(max_length), 0},
    {"min_length", KEY_INT, AT(min_length), 0},
    {"min_new_tokens", KEY_INT, AT(min_new_tokens), 0},
    {"do_sample", KEY_BOOL, AT(do_sample), 0},
    {"temperature", KEY_REAL, AT(temperature), 0},
    {"top_k", KEY_INT, AT(top_k), 0},
    {"top_p", KEY_REAL, AT(top_p), 0},
    {"min_p", KEY_REAL, AT(min_p), 0},
    {"repetition_penalty", KEY_REAL, AT(repetition_penalty), 0},
    {"no_repeat_ngram_size", KEY_INT, AT(no_repeat_ngram_size), 0},
    {"num_beams", KEY_INT, AT(num_beams), 0},
    {"length_penalty", KEY_REAL, AT(length_penalty), 0},
    {"early_stopping", KEY_BOOL, AT(early_stopping), 0},
    {"pad_token_id", KEY_TOKEN, AT(pad_token_id), 0},
    {"decoder_start_token_id", KEY_TOKEN, AT(decoder_start_token_id), 0},
    {"forced_bos_token_id", KEY_TOKEN, AT(forced_bos_token_id), 0},
    {"forced_eos_token_id", KEY_TOKEN, AT(forced_eos_token_id), 0},
    {"eos_token_id", KEY_TOKENS, AT(eos_token_ids), AT(eos_token_count)},
    {"suppress_tokens", KEY_TOKENS, AT(suppress_tokens), AT(suppress_token_count)},
    {"begin_suppress_tokens", KEY_TOKENS, AT(begin_suppress_tokens),
     AT(begin_suppress_token_count)},
};

/* Keys that change what is generated, and the value with which they do not; "null" always is one. */
static const struct {
    const char *name, *off;
} unsupported[] = {
    {"typical_p", "1.0"},
    {"top_h", "null"},
    {"epsilon_cutoff", "0.0"},
    {"eta_cutoff", "0.0"},
    {"encoder_repetition_penalty", "1.0"},
    {"encoder_no_repeat_ngram_size", "0"},
    {"bad_words_ids", "null"},
    {"sequence_bias", "null"},
    {"exponential_decay_length_penalty", "null"},
    {"guidance_scale", "1.0"},
    {"watermarking_config", "null"},
    {"remove_invalid_values", "false"},
    {"renormalize_logits", "false"},
    {"stop_strings", "null"},
    {"max_time", "null"},
    {"num_return_sequences", "1"},
    {"penalty_alpha", "null"},
    {"dola_layers", "null"},
};

static const char *const expected_kinds[] = {"expected an integer", "expected a number",
                                             "expected true or false", "expected a token id",
                                             "expected token ids"};

/* ---- reading ---- */

static bool read_tokens(Arena *arena, const json_t *value, const int64_t **out, size_t *count) {
    bool list = json_is_array(value);
    size_t length = list ? json_array_size(value) : 1;
    int64_t *tokens = ARENA_ARRAY(arena, int64_t, length + 1);
    for (size_t i = 0; tokens && i < length; i++) {
        const json_t *token = list ? json_array_get(value, i) : value;
        if (!json_is_integer(token)) return false;
        tokens[i] = json_integer_value(token);
    }
    *out = tokens;
    *count = tokens ? length : 0;
    return true;
}

static bool read_key(Arena *arena, const json_t *value, size_t index, void *config) {
    char *place = (char *)config + keys[index].place;
    const int64_t *tokens;
    size_t count;
    switch (keys[index].kind) {
    case KEY_INT:
        if (json_is_integer(value)) *(int64_t *)(void *)place = json_integer_value(value);
        return json_is_integer(value);
    case KEY_REAL:
        if (json_is_number(value)) *(double *)(void *)place = json_number_value(value);
        return json_is_number(value);
    case KEY_BOOL: *(bool *)place = json_is_true(value); return true;
    case KEY_TOKEN:
        if (!read_tokens(arena, value, &tokens, &count)) return false;
        if (count) *(int64_t *)(void *)place = tokens[0];
        return true;
    case KEY_TOKENS:
        return read_tokens(arena, value, (const int64_t **)(void *)place,
                           (size_t *)(void *)((char *)config + keys[index].count));
    }
    return false;
}

static void note_unsupported(const json_t *json, const char *path,
                             const ferry_generate_config *config, Arena *arena) {
    for (size_t i = 0; config->note && i < sizeof unsupported / sizeof *unsupported; i++) {
        json_t *value = json_object_get(json, unsupported[i].name);
        json_t *off = json_loads(unsupported[i].off, JSON_DECODE_ANY, NULL);
        bool same = json_is_number(value) && json_is_number(off)
                        ? json_number_value(value) == json_number_value(off)
                        : json_equal(value, off) != 0;
        json_decref(off);
        if (!value || json_is_null(value) || same) continue;
        config->note(config->note_context,
                     arena_format(arena, "%s: \"%s\" is not supported and has no effect", path,
                                  unsupported[i].name));
    }
}

/* The token of a key of generation_config.json, or that of `name` in one of its tables. */
static int64_t token_of(const json_t *json, const char *key, const char *name) {
    const json_t *value = json_object_get(json, key);
    if (name) value = json_object_get(value, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* What Whisper is told to do: the language and the task, where it knows several, and to leave out times. */
static ferry_status read_speech(const json_t *json, const char *path, Arena *arena,
                                ferry_generate_config *config, ferry_error *error) {
    int64_t *prompt = ARENA_ARRAY(arena, int64_t, 4);
    int64_t timeless = token_of(json, "no_timestamps_token_id", NULL);
    if (!prompt) return error_memory(error, path, 0);
    if (timeless < 0 || config->decoder_start_token_id < 0) return FERRY_OK;
    prompt[config->decoder_prompt_count++] = config->decoder_start_token_id;
    if (json_is_true(json_object_get(json, "is_multilingual"))) {
        const char *language = config->language ? config->language : "en";
        int64_t spoken = token_of(json, "lang_to_id", arena_format(arena, "<|%s|>", language));
        int64_t task = token_of(json, "task_to_id", config->translate ? "translate" : "transcribe");
        if (spoken < 0 || task < 0) {
            return error_set(error, FERRY_INVALID_ARGUMENT, path,
                             "the model does not know the language \"%s\" (expected a code such as "
                             "\"en\" or \"fr\")",
                             language);
        }
        prompt[config->decoder_prompt_count++] = spoken;
        prompt[config->decoder_prompt_count++] = task;
    }
    prompt[config->decoder_prompt_count++] = timeless;
    config->decoder_prompt = prompt;
    return FERRY_OK;
}

ferry_status ferry_generate_config_load(ferry_exported *exported, ferry_generate_config *config,
                                        ferry_error *error) {
    error_clear(error);
    Arena *arena = &exported->manifest.arena;
    if (!exported->directory) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "generation_config.json",
                         "save the export first");
    }
    const char *path = path_join(arena, exported->directory, "generation_config.json");
    json_t *json;
    if (!path_exists(path)) path = path_join(arena, exported->directory, "config.json");
    if (!path_exists(path)) return FERRY_OK;
    TRY(json_read_object(path, &json, error));
    ferry_status status = FERRY_OK;
    for (size_t i = 0; status == FERRY_OK && i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(json, keys[i].name);
        if (!value || json_is_null(value) || read_key(arena, value, i, config)) continue;
        status = error_set(error, FERRY_BAD_FORMAT, path, "\"%s\": %s, found %s", keys[i].name,
                           expected_kinds[keys[i].kind], json_kind(value));
    }
    if (status == FERRY_OK) status = read_speech(json, path, arena, config, error);
    if (status == FERRY_OK) note_unsupported(json, path, config, arena);
    json_decref(json);
    return status;
}
