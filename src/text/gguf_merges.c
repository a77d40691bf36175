/* Merges out of scores: what SentencePiece decides while it runs, told beforehand. */
#include "base/error.h"
#include "base/vec.h"
#include "text/gguf_tokenizer.h"

#include <stdlib.h>

typedef struct Merge {
    double score;
    size_t left_chars, right_chars;
    size_t token, cut; /* its bytes up to `cut`, and the rest */
} Merge;

/* The best first: a higher score, a longer left side, a longer right side, an earlier token. */
static int by_rank(const void *left, const void *right) {
    const Merge *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->left_chars != b->left_chars) return a->left_chars > b->left_chars ? -1 : 1;
    if (a->right_chars != b->right_chars) return a->right_chars > b->right_chars ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

static bool begins_char(char byte) {
    return ((unsigned char)byte & 0xc0) != 0x80;
}

ferry_status gguf_merges(const char *path, const GgufToken *tokens, size_t count, const Map *ids,
                         Buffer *out, ferry_error *error) {
    VEC(Merge) merges = {0};
    for (size_t t = 0; t < count; t++) {
        const GgufToken *token = &tokens[t];
        size_t chars = 0, before = 0;
        for (size_t i = 0; i < token->length; i++) chars += begins_char(token->text[i]);
        for (size_t cut = 1; cut < token->length && !token->shadowed; cut++) {
            if (!begins_char(token->text[cut])) continue;
            before++;
            if (!map_get(ids, token->text, cut) ||
                !map_get(ids, token->text + cut, token->length - cut))
                continue;
            VEC_PUSH(&merges, (Merge){token->score, before, chars - before, t, cut});
        }
    }
    if (merges.count) qsort(merges.items, merges.count, sizeof *merges.items, by_rank);
    for (size_t i = 0; i < merges.count; i++) {
        const Merge *merge = &merges.items[i];
        const GgufToken *token = &tokens[merge->token];
        buffer_text(out, i ? ",[" : "[");
        buffer_json_string_n(out, token->text, merge->cut);
        buffer_text(out, ",");
        buffer_json_string_n(out, token->text + merge->cut, token->length - merge->cut);
        buffer_text(out, "]");
    }
    bool failed = merges.failed;
    VEC_FREE(&merges);
    return failed ? error_memory(error, path, 0) : FERRY_OK;
}
