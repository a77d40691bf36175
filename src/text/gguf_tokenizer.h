/* The tokenizer in a GGUF file, told as tokenizer.json.
 *
 * The file has the vocabulary, with a kind and maybe a score for each token, merges of some kinds, and the
 * name of a way to cut text, which stands for patterns that only programs know. */
#ifndef TEXT_GGUF_TOKENIZER_H
#define TEXT_GGUF_TOKENIZER_H

#include "base/buffer.h"
#include "format/gguf.h"

/* Append the tokenizer.json. NOT_FOUND when the file has no tokenizer, UNSUPPORTED for one of another
 * kind, by its name. */
ferry_status gguf_tokenizer(const Gguf *gguf, Buffer *out, ferry_error *error);

/* Append the tokenizer_config.json that goes with it: the special tokens and the chat template. */
ferry_status gguf_tokenizer_config(const Gguf *gguf, Buffer *out, ferry_error *error);

/* ---- gguf_cut.c ---- */

/* How a byte-level vocabulary cuts text before its merges. */
typedef struct GgufCut {
    bool digits;             /* first, each digit by itself */
    const char *patterns[4]; /* then these, one after the other; none: the pattern of GPT-2 */
    bool nfc;                /* of text in Unicode's form NFC */
    bool ignore_merges;      /* a word that is a token is that token */
    bool begins;             /* texts begin with a special token, if the file says nothing */
} GgufCut;

/* The way of this name ("llama-bpe"); NULL when it is not known. */
const GgufCut *gguf_cut(const char *name);

/* ---- gguf_merges.c ---- */

/* A token of the vocabulary: `length` bytes of UTF-8. */
typedef struct GgufToken {
    const char *text;
    size_t length;
    int64_t kind; /* a GGUF_TOKEN_... */
    double score;
    bool shadowed; /* a later token has the same text, which stands for that */
} GgufToken;

enum {
    GGUF_TOKEN_NORMAL = 1,
    GGUF_TOKEN_UNKNOWN,
    GGUF_TOKEN_CONTROL,
    GGUF_TOKEN_USER,
    GGUF_TOKEN_UNUSED
};

/* Append the merges that a vocabulary with scores implies, the highest score first: each way in which a
 * token is two tokens. `ids` maps a text to its GgufToken. */
ferry_status gguf_merges(const char *path, const GgufToken *tokens, size_t count, const Map *ids,
                         Buffer *out, ferry_error *error);

#endif
