#include "text/special_tokens.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "text/gguf_tokenizer.h"

/* A token: its text, or an object that holds it. */
static void add_token(json_t *tokens, const char *name, const json_t *json) {
    const json_t *text = json_is_object(json) ? json_object_get(json, "content") : json;
    if (json_is_string(text))
        json_object_set_new(tokens, name, json_string(json_string_value(text)));
}

static void add_tokens(json_t *tokens, const json_t *config) {
    static const char *const groups[] = {"extra_special_tokens", "model_specific_special_tokens"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)config, name, value) {
        if (text_ends_with(name, "_token")) add_token(tokens, name, value);
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        json_t *group = json_object_get(config, groups[i]);
        if (json_is_object(group))
            json_object_foreach(group, name, value) add_token(tokens, name, value);
    }
}

static ferry_status read_file(Arena *arena, const char *directory, const char *name, json_t **out,
                              ferry_error *error) {
    const char *path = path_join(arena, directory, name);
    return path_exists(path) ? json_read_texts(path, out, error) : FERRY_OK;
}

/* What a GGUF file has of it. */
static ferry_status read_gguf(Arena *arena, const char *path, json_t **out, ferry_error *error) {
    MappedFile file;
    Gguf gguf;
    Buffer text = {0};
    TRY(file_map(path, arena, &file, error));
    ferry_status status = gguf_parse(path, file.bytes, file.size, arena, &gguf, error);
    if (status == FERRY_OK) {
        status = gguf_tokenizer_config(&gguf, &text, error);
        gguf_free(&gguf);
    }
    if (status == FERRY_OK) status = json_parse(path, text.bytes, text.length, out, error);
    buffer_free(&text);
    file_unmap(&file);
    return status;
}

ferry_status special_tokens_read(const char *directory, json_t **tokens, json_t **config,
                                 ferry_error *error) {
    Arena arena = {0};
    json_t *map = NULL;
    *tokens = json_object();
    *config = NULL;
    ferry_status status = gguf_probe(directory) ? read_gguf(&arena, directory, config, error)
                                                : read_file(&arena, directory,
                                                            "tokenizer_config.json", config, error);
    if (status == FERRY_OK && !json_object_get(*config, "added_tokens_decoder"))
        status = read_file(&arena, directory, "special_tokens_map.json", &map, error);
    if (status == FERRY_OK) {
        add_tokens(*tokens, *config);
        add_tokens(*tokens, map);
    }
    if (status == FERRY_OK && (!*tokens || arena.failed))
        status = error_memory(error, directory, 0);
    json_decref(map);
    arena_free(&arena);
    return status;
}
