/* Opening a tokenizer, and its vocabulary. */
#include "text/tokenizer.h"
#include "base/error.h"
#include "base/file.h"
#include "text/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>

static void read_parts(ferry_tokenizer *t, Settings *settings, const Doc *doc) {
    settings->place = "tokenizer";
    if (!doc_is_object(doc_get(doc, "model")))
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "\"model\" is %s; expected an object: is this a tokenizer.json?",
                     doc_get(doc, "model") ? doc_kind(doc_get(doc, "model")) : "missing");
    const char *version = setting_text_or(settings, doc, "version", "1.0");
    if (strcmp(version, "1.0") != 0)
        setting_fail(settings, FERRY_UNSUPPORTED, "\"version\" is \"%s\"; expected \"1.0\"",
                     version);
    if (settings->status == FERRY_OK)
        t->normalizer = normalizer_read(settings, doc_get(doc, "normalizer"));
    if (settings->status == FERRY_OK)
        t->pretokenizer = pretokenizer_read(settings, doc_get(doc, "pre_tokenizer"));
    if (settings->status == FERRY_OK)
        t->postprocessor = postprocessor_read(settings, doc_get(doc, "post_processor"));
    if (settings->status == FERRY_OK) t->decoder = decoder_read(settings, doc_get(doc, "decoder"));
    if (settings->status == FERRY_OK)
        truncation_read(settings, doc_get(doc, "truncation"), &t->truncation);
    if (settings->status == FERRY_OK) padding_read(settings, doc_get(doc, "padding"), &t->padding);
    if (settings->status == FERRY_OK) t->model = model_read(settings, doc_get(doc, "model"));
    if (settings->status == FERRY_OK && t->model)
        added_read(settings, doc_get(doc, "added_tokens"), t->model, t->normalizer, &t->work,
                   &t->added);
    t->trims = postprocessor_trims(t->postprocessor);
}

ferry_status tokenizer_read(ferry_tokenizer *t, const void *bytes, size_t size,
                            ferry_error *error) {
    const Doc *doc;
    TRY(doc_parse(t->path, bytes, size, &t->arena, &doc, error));
    Settings settings = {.path = t->path, .arena = &t->arena, .error = error};
    t->work.path = t->path;
    read_parts(t, &settings, doc);
    TRY(settings.status);
    bool failed = t->arena.failed || !t->model || t->added.by_content.failed ||
                  t->added.by_id.failed || t->added.special.failed || work_failed(&t->work);
    return failed ? error_memory(error, t->path, 0) : FERRY_OK;
}

/* The text of a file that is a tokenizer.json or has a tokenizer in another form. */
static ferry_status read_bytes(ferry_tokenizer *t, const MappedFile *file, ferry_error *error) {
    if (!gguf_probe(t->path)) return tokenizer_read(t, file->bytes, file->size, error);
    Gguf gguf;
    Buffer json = {0};
    TRY(gguf_parse(t->path, file->bytes, file->size, &t->arena, &gguf, error));
    ferry_status status = gguf_tokenizer(&gguf, &json, error);
    if (status == FERRY_OK) status = tokenizer_read(t, json.bytes, json.length, error);
    buffer_free(&json);
    gguf_free(&gguf);
    return status;
}

static ferry_status read_file(ferry_tokenizer *t, const char *path, ferry_error *error) {
    bool directory = path_is_directory(path);
    t->path =
        directory ? path_join(&t->arena, path, "tokenizer.json") : arena_string(&t->arena, path);
    if (directory && !path_exists(t->path))
        return error_set(error, FERRY_NOT_FOUND, path,
                         "has no tokenizer.json; Transformers writes one with "
                         "AutoTokenizer.from_pretrained(...).save_pretrained(...)");
    MappedFile file;
    TRY(file_map(t->path, &t->arena, &file, error));
    ferry_status status = read_bytes(t, &file, error);
    file_unmap(&file);
    return status;
}

ferry_status ferry_tokenizer_open(const char *path, ferry_tokenizer **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return error_memory(error, path, sizeof *t);
    ferry_status status = read_file(t, path, error);
    if (status == FERRY_OK)
        *out = t;
    else
        ferry_tokenizer_close(t);
    return status;
}

void ferry_tokenizer_close(ferry_tokenizer *tokenizer) {
    if (!tokenizer) return;
    normalizer_free(tokenizer->normalizer);
    pretokenizer_free(tokenizer->pretokenizer);
    decoder_free(tokenizer->decoder);
    model_free(tokenizer->model);
    added_free(&tokenizer->added);
    work_free(&tokenizer->work);
    line_free(&tokenizer->input);
    VEC_FREE(&tokenizer->tokens);
    VEC_FREE(&tokenizer->post.tokens);
    VEC_FREE(&tokenizer->post.next);
    VEC_FREE(&tokenizer->post.ends);
    VEC_FREE(&tokenizer->post.next_ends);
    strings_free(&tokenizer->strings[0]);
    strings_free(&tokenizer->strings[1]);
    arena_free(&tokenizer->arena);
    free(tokenizer);
}

uint32_t ferry_tokenizer_id_limit(const ferry_tokenizer *tokenizer) {
    uint32_t model = tokenizer->model->vocab.limit, added = tokenizer->added.limit;
    return model > added ? model : added;
}

const char *ferry_tokenizer_token(const ferry_tokenizer *tokenizer, uint32_t id) {
    const AddedToken *added = added_by_id(&tokenizer->added, id);
    return added ? added->form : vocab_text(&tokenizer->model->vocab, id);
}

bool ferry_tokenizer_id(const ferry_tokenizer *tokenizer, const char *token, uint32_t *id) {
    const AddedToken *added = map_find(&tokenizer->added.by_content, token);
    *id = added ? added->id : vocab_find(&tokenizer->model->vocab, token, strlen(token));
    return *id != TRIE_NONE;
}

bool ferry_tokenizer_is_special(const ferry_tokenizer *tokenizer, uint32_t id) {
    const char *token = ferry_tokenizer_token(tokenizer, id);
    return token && map_find(&tokenizer->added.special, token);
}
