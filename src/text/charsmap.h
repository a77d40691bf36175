/* The character map of SentencePiece models: a double-array trie from characters to what replaces
 * them, as it is stored in "precompiled_charsmap". */
#ifndef TEXT_CHARSMAP_H
#define TEXT_CHARSMAP_H

#include "text/line.h"
#include "text/settings.h"

typedef struct Charsmap {
    const uint32_t *units;
    size_t unit_count;
    const char *texts; /* each ends with NUL */
    size_t texts_length;
} Charsmap;

/* Decode base64 and check. */
void charsmap_read(Settings *settings, const char *base64, Charsmap *out);

/* Append the edits for a text; false when nothing changes. */
bool charsmap_edits(const Charsmap *map, const char *bytes, size_t length, Edits *edits);

#endif
