/* Decoding: all at once, and token by token. */
#include "base/error.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

ferry_status tokenizer_decode(ferry_tokenizer *t, const uint32_t *ids, size_t count,
                              bool skip_special_tokens, const Buffer **out, ferry_error *error) {
    Strings *strings = t->strings;
    strings_clear(&strings[0]);
    for (size_t i = 0; i < count; i++) {
        const char *token = ferry_tokenizer_token(t, ids[i]);
        if (!token || (skip_special_tokens && map_find(&t->added.special, token))) continue;
        /* Without a decoder, tokens are words. */
        if (!t->decoder && strings[0].ends.count > 0) strings_add(&strings[0], " ", 1);
        strings_add(&strings[0], token, strlen(token));
    }
    const Strings *result = decoder_run(t->decoder, strings);
    *out = &result->bytes;
    return result->bytes.failed || result->ends.failed ? error_memory(error, t->path, count)
                                                       : FERRY_OK;
}

ferry_status ferry_tokenizer_decode(ferry_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                                    bool skip_special_tokens, ferry_write write, void *context,
                                    ferry_error *error) {
    const Buffer *text;
    error_clear(error);
    TRY(tokenizer_decode(tokenizer, ids, count, skip_special_tokens, &text, error));
    write(context, buffer_string(text), text->length);
    return FERRY_OK;
}

/* ---- streams ---- */

/* What a token decodes to depends on those before it. So the last tokens are decoded again with each
 * new one, and what they gave before is left out. */
struct ferry_text_stream {
    ferry_tokenizer *tokenizer;
    bool skip_special_tokens;
    VEC(uint32_t) ids;
    size_t known; /* of the ids: those that `given` is made from */
    Buffer given; /* what they decode to, and was written already */
};

ferry_status ferry_text_stream_new(ferry_tokenizer *tokenizer, bool skip_special_tokens,
                                   ferry_text_stream **out, ferry_error *error) {
    error_clear(error);
    *out = calloc(1, sizeof **out);
    if (!*out) return error_memory(error, tokenizer->path, sizeof **out);
    (*out)->tokenizer = tokenizer;
    (*out)->skip_special_tokens = skip_special_tokens;
    return FERRY_OK;
}

void ferry_text_stream_free(ferry_text_stream *stream) {
    if (!stream) return;
    VEC_FREE(&stream->ids);
    buffer_free(&stream->given);
    free(stream);
}

/* Decode the ids from `first` on. */
static ferry_status decode_ids(ferry_text_stream *s, size_t first, const Buffer **out,
                               ferry_error *error) {
    const uint32_t *ids = s->ids.count > first ? s->ids.items + first : NULL;
    return tokenizer_decode(s->tokenizer, ids, s->ids.count - first, s->skip_special_tokens, out,
                            error);
}

/* Does the text end in a character that is not whole yet? */
static bool is_unfinished(const Buffer *text) {
    return text->length >= 3 && memcmp(text->bytes + text->length - 3, "\xef\xbf\xbd", 3) == 0;
}

/* Write what is behind what was given; `text` is what all ids decode to. */
static ferry_status write_new(ferry_text_stream *s, const Buffer *text, ferry_write write,
                              void *context, ferry_error *error) {
    size_t given = s->given.length;
    if (text->length < given || (given && memcmp(text->bytes, s->given.bytes, given) != 0)) {
        /* The new ids changed what was written: bytes that are no character spoil those before them. Let
         * the new ones stand alone. */
        TRY(decode_ids(s, s->known, &text, error));
        given = 0;
    }
    if (text->length > given) write(context, (char *)text->bytes + given, text->length - given);
    return FERRY_OK;
}

ferry_status ferry_text_stream_put(ferry_text_stream *stream, uint32_t id, ferry_write write,
                                   void *context, ferry_error *error) {
    const Buffer *text;
    error_clear(error);
    VEC_PUSH(&stream->ids, id);
    if (stream->ids.failed) return error_memory(error, stream->tokenizer->path, sizeof id);
    TRY(decode_ids(stream, 0, &text, error));
    if (text->length <= stream->given.length || is_unfinished(text)) return FERRY_OK;
    TRY(write_new(stream, text, write, context, error));
    /* Forget what was known, and know the ids since then. */
    size_t left = stream->ids.count - stream->known;
    memmove(stream->ids.items, stream->ids.items + stream->known, left * sizeof *stream->ids.items);
    stream->ids.count = stream->known = left;
    TRY(decode_ids(stream, 0, &text, error));
    stream->given.length = 0;
    buffer_append(&stream->given, buffer_string(text), text->length);
    return stream->given.failed ? error_memory(error, stream->tokenizer->path, text->length)
                                : FERRY_OK;
}

ferry_status ferry_text_stream_end(ferry_text_stream *stream, ferry_write write, void *context,
                                   ferry_error *error) {
    const Buffer *text;
    error_clear(error);
    TRY(decode_ids(stream, 0, &text, error));
    ferry_status status = write_new(stream, text, write, context, error);
    stream->ids.count = stream->known = stream->given.length = 0;
    return status;
}
