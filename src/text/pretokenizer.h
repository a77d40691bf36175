/* Pre-tokenizers: how text is cut into the pieces that the model sees. */
#ifndef TEXT_PRETOKENIZER_H
#define TEXT_PRETOKENIZER_H

#include "text/settings.h"
#include "text/work.h"

typedef struct PreTokenizer PreTokenizer;

/* NULL for null, and after a failure. */
PreTokenizer *pretokenizer_read(Settings *settings, const Doc *doc);
void pretokenizer_free(PreTokenizer *pretokenizer);

void pretokenizer_run(const PreTokenizer *pretokenizer, Work *work);

/* How Metaspace marks the beginning of words, also as a decoder. */
typedef enum Prepend { PREPEND_FIRST, PREPEND_NEVER, PREPEND_ALWAYS } Prepend;
Prepend metaspace_prepend(Settings *settings, const Doc *doc);

#endif
