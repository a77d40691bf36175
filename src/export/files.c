/* The files that go with an export: what says how the model is called, and how text gets in and out. Copies
 * of those that are beside the source, or what a GGUF file says of them. */
#include "base/error.h"
#include "export/export.h"
#include "text/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const copied[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
};
_Static_assert(sizeof copied / sizeof *copied + 4 <= SAVE_MAX_FILES, "a save has too few files");

static bool same_file(const char *a, const char *b) {
    struct stat left, right;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

static ferry_status write_file(Save *save, const char *name, const void *bytes, size_t size) {
    ferry_status status;
    OutputFile *file = save_open(save, name, 0, &status);
    return file ? output_write(file, 0, bytes, size, save->error) : status;
}

/* Copy a file from beside the source, where there is one, unless it is there already. */
static ferry_status copy_file(Save *save, const char *name) {
    const char *from = path_join(&save->arena, save->exported->model->directory, name);
    const char *to = path_join(&save->arena, save->directory, name);
    if (!path_exists(from) || same_file(from, to)) return FERRY_OK;
    MappedFile source;
    TRY(file_map(from, &save->arena, &source, save->error));
    ferry_status status = write_file(save, name, source.bytes, source.size);
    file_unmap(&source);
    return status;
}

/* ---- of a GGUF file ---- */

static ferry_status write_json(Save *save, const char *name, const json_t *json) {
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    if (!text) return error_memory(save->error, name, 0);
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the terminating zero */
    ferry_status status = write_file(save, name, text, length + 1);
    free(text);
    return status;
}

/* The tokens that end a text: one, or a list. */
static json_t *end_tokens(const Checkpoint *checkpoint) {
    static const char *const others[] = {"tokenizer.ggml.eot_token_id",
                                         "tokenizer.ggml.eom_token_id"};
    json_t *first = json_object_get(checkpoint->config, "eos_token_id"), *list = json_array();
    if (json_is_integer(first)) json_array_append(list, first);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        int64_t id;
        if (!gguf_integer(gguf_value(checkpoint->gguf, others[i]), &id)) continue;
        if (id != json_integer_value(first)) json_array_append_new(list, json_integer(id));
    }
    if (json_array_size(list) > 1) return list;
    json_decref(list);
    return json_incref(first);
}

static ferry_status write_generation(Save *save, const Checkpoint *checkpoint) {
    static const char *const keys[] = {"bos_token_id", "pad_token_id"};
    json_t *json = json_pack("{s:o}", "eos_token_id", end_tokens(checkpoint));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *id = json_object_get(checkpoint->config, keys[i]);
        if (json_is_integer(id)) json_object_set(json, keys[i], id);
    }
    ferry_status status = write_json(save, "generation_config.json", json);
    json_decref(json);
    return status;
}

typedef ferry_status (*Convert)(const Gguf *gguf, Buffer *out, ferry_error *error);

static ferry_status write_converted(Save *save, const Gguf *gguf, const char *name,
                                    Convert convert) {
    Buffer text = {0};
    ferry_status status = convert(gguf, &text, save->error);
    if (status == FERRY_OK) status = write_file(save, name, text.bytes, text.length);
    buffer_free(&text);
    return status;
}

/* A tokenizer of a kind that ferry does not know keeps nobody from exporting the model. */
static ferry_status write_tokenizer(Save *save, const Gguf *gguf) {
    const ferry_export_config *config = &save->exported->config;
    ferry_status status = write_converted(save, gguf, "tokenizer.json", gguf_tokenizer);
    if (status != FERRY_UNSUPPORTED && status != FERRY_NOT_FOUND) {
        TRY(status);
        return write_converted(save, gguf, "tokenizer_config.json", gguf_tokenizer_config);
    }
    if (config->note) {
        config->note(config->note_context,
                     arena_format(&save->arena, "without a tokenizer.json: %s",
                                  save->error ? save->error->message : ""));
    }
    error_clear(save->error);
    return FERRY_OK;
}

ferry_status files_write(Save *save) {
    const Checkpoint *checkpoint = save->exported->model->checkpoint;
    if (!checkpoint || !checkpoint->gguf) {
        for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) TRY(copy_file(save, copied[i]));
        return FERRY_OK;
    }
    TRY(write_json(save, "config.json", checkpoint->config));
    TRY(write_generation(save, checkpoint));
    return write_tokenizer(save, checkpoint->gguf);
}
