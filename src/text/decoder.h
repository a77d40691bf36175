/* Decoders: from tokens back to text. */
#ifndef TEXT_DECODER_H
#define TEXT_DECODER_H

#include "base/buffer.h"
#include "base/vec.h"
#include "text/settings.h"

/* Strings, one behind the other. */
typedef struct Strings {
    Buffer bytes;
    VEC(size_t) ends;
} Strings;

void strings_free(Strings *strings);
void strings_clear(Strings *strings);
void strings_add(Strings *strings, const char *text, size_t length);

typedef struct Decoder Decoder;

/* NULL for null, and after a failure. */
Decoder *decoder_read(Settings *settings, const Doc *doc);
void decoder_free(Decoder *decoder);

/* Decode `strings[0]`, using `strings[1]`; returns which of them holds the result: concatenated, it is
 * the text. */
Strings *decoder_run(const Decoder *decoder, Strings strings[2]);

#endif
