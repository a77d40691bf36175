/* Models: from a piece of text to tokens. */
#ifndef TEXT_MODEL_H
#define TEXT_MODEL_H

#include "base/vec.h"
#include "text/vocab.h"

/* A token of a piece. */
typedef struct Token {
    uint32_t id;
    uint32_t begin, end; /* bytes of the piece that it stands for */
    bool is_text;        /* what it is called is that text, not the vocabulary's token */
} Token;

typedef VEC(Token) ModelTokens;

typedef struct Model Model;

struct Model {
    Vocab vocab;
    /* Append the tokens of a piece, which is not empty. False when there is no token for something, and
     * none for the unknown; `missing` says what the vocabulary lacks. */
    bool (*tokenize)(Model *model, const char *text, size_t length, ModelTokens *out);
    void (*free)(Model *model);
    const char *missing;
};

/* NULL after a failure, which the settings keeps. */
Model *model_read(Settings *settings, const Doc *doc);
void model_free(Model *model);

Model *bpe_read(Settings *settings, const Doc *doc);
Model *unigram_read(Settings *settings, const Doc *doc);
Model *wordpiece_read(Settings *settings, const Doc *doc);
Model *wordlevel_read(Settings *settings, const Doc *doc);

#endif
