#include "text/gguf_source.h"
#include "base/error.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 22 };

static bool flag(const GgufSource *s, const char *key, bool otherwise) {
    gguf_bool(gguf_value(s->gguf, key), &otherwise);
    return otherwise;
}

/* The token that a key names. */
static int64_t special(const GgufSource *s, const char *key) {
    int64_t id;
    if (!gguf_integer(gguf_value(s->gguf, key), &id)) return -1;
    return id >= 0 && (size_t)id < s->count ? id : -1;
}

ferry_status gguf_wrong_kind(const GgufSource *s, const char *key, const char *expected) {
    return error_set(s->error, FERRY_BAD_FORMAT, s->gguf->path, "\"%s\": expected %s, found %s",
                     key, expected, gguf_kind(gguf_value(s->gguf, key)));
}

/* A list with an entry for each token; absent where it is optional. */
static ferry_status check_list(const GgufSource *s, const char *key, const GgufValue **out) {
    *out = gguf_value(s->gguf, key);
    if (!*out || ((*out)->type == GGUF_ARRAY && (*out)->count == s->count)) return FERRY_OK;
    return error_set(s->error, FERRY_BAD_FORMAT, s->gguf->path,
                     "\"%s\": expected an array of %zu items, one for each token, found %s of %llu",
                     key, s->count, gguf_kind(*out), (unsigned long long)(*out)->count);
}

bool gguf_is_text(const char *text, size_t length) {
    size_t place;
    return !memchr(text, 0, length) && utf8_check(text, length, &place);
}

static ferry_status read_texts(GgufSource *s) {
    static const char key[] = "tokenizer.ggml.tokens";
    GgufItems items = {.array = gguf_value(s->gguf, key)};
    GgufValue item;
    bool strings = items.array && items.array->type == GGUF_ARRAY &&
                   items.array->item == GGUF_STRING && items.array->count <= MAX_TOKENS;
    if (!strings) return gguf_wrong_kind(s, key, "an array of up to 4194304 strings");
    s->tokens = ARENA_ARRAY(&s->arena, GgufToken, items.array->count);
    if (!s->tokens) return error_memory(s->error, s->gguf->path, 0);
    while (gguf_next(&items, &item)) {
        GgufToken *token = &s->tokens[s->count];
        *token = (GgufToken){
            .text = (const char *)item.bytes, .length = item.count, .kind = GGUF_TOKEN_NORMAL};
        if (!gguf_is_text(token->text, token->length)) {
            return error_set(s->error, FERRY_UNSUPPORTED, s->gguf->path,
                             "\"%s\"[%zu] has a NUL or is not UTF-8, which is not supported", key,
                             s->count);
        }
        s->count++;
    }
    return FERRY_OK;
}

static ferry_status read_tokens(GgufSource *s) {
    const GgufValue *kinds, *scores;
    GgufValue item;
    TRY(read_texts(s));
    TRY(check_list(s, "tokenizer.ggml.token_type", &kinds));
    TRY(check_list(s, "tokenizer.ggml.scores", &scores));
    GgufItems items = {.array = kinds};
    for (size_t i = 0; gguf_next(&items, &item); i++) gguf_integer(&item, &s->tokens[i].kind);
    items = (GgufItems){.array = scores};
    for (size_t i = 0; gguf_next(&items, &item); i++) {
        if (!gguf_number(&item, &s->tokens[i].score) || isnan(s->tokens[i].score))
            return gguf_wrong_kind(s, "tokenizer.ggml.scores", "numbers");
    }
    return FERRY_OK;
}

/* Gemma's files have blanks in the tokens that are nothing else, and scores that are no ranks: the order of
 * the tokens is. */
static ferry_status respell(GgufSource *s) {
    for (size_t i = 0; i < s->count; i++) {
        GgufToken *token = &s->tokens[i];
        token->score = -(double)i;
        size_t blanks = 0;
        while (blanks < token->length && token->text[blanks] == ' ') blanks++;
        if (blanks == 0 || blanks < token->length) continue;
        char *text = arena_alloc(&s->arena, blanks * strlen(GGUF_SPACE) + 1);
        if (!text) return error_memory(s->error, s->gguf->path, 0);
        for (size_t j = 0; j < blanks; j++)
            memcpy(text + j * strlen(GGUF_SPACE), GGUF_SPACE, strlen(GGUF_SPACE));
        *token =
            (GgufToken){text, blanks * strlen(GGUF_SPACE), GGUF_TOKEN_NORMAL, token->score, false};
    }
    return FERRY_OK;
}

bool gguf_is_gemma(const GgufSource *s) {
    return strncmp(s->architecture, "gemma", 5) == 0;
}

static ferry_status index_tokens(GgufSource *s) {
    for (size_t i = 0; i < s->count; i++) {
        GgufToken *token = &s->tokens[i], *twin = map_get(&s->ids, token->text, token->length);
        if (twin) twin->shadowed = true;
        map_set(&s->ids, token->text, token->length, token);
    }
    return s->ids.failed ? error_memory(s->error, s->gguf->path, 0) : FERRY_OK;
}

/* Which kind of tokenizer it is. */
static ferry_status read_kind(GgufSource *s) {
    const char *model = gguf_text(gguf_value(s->gguf, "tokenizer.ggml.model"), &s->arena);
    const char *cut = gguf_text(gguf_value(s->gguf, "tokenizer.ggml.pre"), &s->arena);
    s->architecture = gguf_text(gguf_value(s->gguf, "general.architecture"), &s->arena);
    if (!s->architecture) s->architecture = "";
    if (!model) {
        return error_set(s->error, FERRY_NOT_FOUND, s->gguf->path,
                         "the file has no tokenizer (\"tokenizer.ggml.model\")");
    }
    if (strcmp(model, "llama") == 0) return FERRY_OK;
    if (strcmp(model, "gpt2") != 0) {
        return error_set(s->error, FERRY_UNSUPPORTED, s->gguf->path,
                         "the tokenizer \"%s\" is not supported (expected gpt2 or llama): take the "
                         "model's tokenizer.json",
                         model);
    }
    s->cut = cut ? gguf_cut(cut) : NULL;
    if (s->cut) return FERRY_OK;
    return error_set(s->error, FERRY_UNSUPPORTED, s->gguf->path,
                     "the pre-tokenizer \"%s\" is not known: how text is to be cut cannot be told; "
                     "take the model's tokenizer.json",
                     cut ? cut : "");
}

ferry_status gguf_source_read(GgufSource *s) {
    TRY(read_kind(s));
    TRY(read_tokens(s));
    if (!s->cut && gguf_is_gemma(s)) TRY(respell(s));
    TRY(index_tokens(s));
    s->begin = special(s, "tokenizer.ggml.bos_token_id");
    s->end = special(s, "tokenizer.ggml.eos_token_id");
    s->unknown = special(s, "tokenizer.ggml.unknown_token_id");
    s->padding = special(s, "tokenizer.ggml.padding_token_id");
    bool begins = s->cut ? s->cut->begins : true;
    s->adds_begin = flag(s, "tokenizer.ggml.add_bos_token", begins) && s->begin >= 0;
    s->adds_end = flag(s, "tokenizer.ggml.add_eos_token", false) && s->end >= 0;
    s->prefixes_space = flag(s, "tokenizer.ggml.add_space_prefix", true) && !gguf_is_gemma(s);
    return FERRY_OK;
}
