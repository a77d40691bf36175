/* A tokenizer: the steps that tokenizer.json describes, and what they work with. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "text/added.h"
#include "text/decoder.h"
#include "text/limits.h"
#include "text/postprocessor.h"
#include "text/pretokenizer.h"
#include <ferry/text.h>

struct ferry_tokenizer {
    Arena arena; /* everything that was read */
    const char *path;
    Normalizer *normalizer;
    PreTokenizer *pretokenizer;
    Model *model;
    PostProcessor *postprocessor;
    Decoder *decoder;
    Added added;
    Truncation truncation;
    Padding padding;
    bool trims; /* the post-processor looks at blanks */

    /* From call to call, so that nothing is allocated most of the time. */
    Work work;
    Line input;
    ModelTokens tokens;
    Post post;
    Strings strings[2];
};

/* Read the text of a tokenizer.json into a tokenizer that is all zero but for its path. */
ferry_status tokenizer_read(ferry_tokenizer *tokenizer, const void *bytes, size_t size,
                            ferry_error *error);

/* Decode ids; the text is valid until the next call. */
ferry_status tokenizer_decode(ferry_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                              bool skip_special_tokens, const Buffer **out, ferry_error *error);

#endif
