/* What a GGUF file says of its tokenizer, read and checked. */
#ifndef TEXT_GGUF_SOURCE_H
#define TEXT_GGUF_SOURCE_H

#include "text/gguf_tokenizer.h"

#define GGUF_SPACE "\xe2\x96\x81" /* how SentencePiece writes a blank */

typedef struct GgufSource {
    const Gguf *gguf;
    Arena arena;
    GgufToken *tokens;
    size_t count;
    Map ids;            /* text -> GgufToken */
    const GgufCut *cut; /* of a byte-level vocabulary; NULL: SentencePiece's */
    const char *architecture;
    int64_t begin, end, unknown, padding; /* special tokens; -1: none */
    bool adds_begin, adds_end, prefixes_space;
    Buffer *out; /* of the writer */
    ferry_error *error;
} GgufSource;

/* Fill a source that has its `gguf` and `error`. The arena and the map are the caller's to free, also after a
 * failure. */
ferry_status gguf_source_read(GgufSource *source);

/* UTF-8 without NUL. */
bool gguf_is_text(const char *text, size_t length);

/* "KEY: expected .., found .."; BAD_FORMAT. */
ferry_status gguf_wrong_kind(const GgufSource *source, const char *key, const char *expected);

bool gguf_is_gemma(const GgufSource *source);

#endif
