/* A line: text that remembers, for every byte, which bytes of the input it came from. */
#ifndef TEXT_LINE_H
#define TEXT_LINE_H

#include "base/vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes [begin, end) of the input. */
typedef struct Span {
    uint32_t begin, end;
} Span;

typedef struct Line {
    char *bytes; /* well-formed UTF-8 */
    Span *spans; /* one per byte */
    size_t length, capacity;
    bool failed; /* an allocation; stays set */
} Line;

void line_free(Line *line);

/* Room for `more` bytes; false when there is none. */
bool line_reserve(Line *line, size_t more);

/* Append bytes that all came from `span`. */
static inline void line_put(Line *line, const char *bytes, size_t length, Span span) {
    if (line->capacity - line->length < length && !line_reserve(line, length)) return;
    memcpy(line->bytes + line->length, bytes, length);
    for (size_t i = 0; i < length; i++) line->spans[line->length + i] = span;
    line->length += length;
}

void line_put_char(Line *line, uint32_t c, Span span);

/* Append bytes [begin, end) of another line. */
void line_copy(Line *line, const Line *from, size_t begin, size_t end);

/* One character of a text that is rewritten: what becomes of the characters that it is made from.
 * change > 0: added, comes from where the character before came from;
 * change <= 0: takes the place of a character, and of -change characters after it. */
typedef struct Edit {
    uint32_t c;
    int32_t change;
} Edit;

typedef struct Edits {
    Edit *items;
    size_t count, capacity;
    bool failed;
} Edits;

/* Append bytes [begin, end) of `from`, whose text begins at `origin` of the input, after edits. */
void line_edit(Line *line, const Line *from, size_t begin, size_t end, uint32_t origin,
               const Edits *edits);

#endif
