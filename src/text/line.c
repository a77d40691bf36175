#include "text/line.h"
#include "text/unicode.h"

#include <stdlib.h>

void line_free(Line *line) {
    free(line->bytes);
    free(line->spans);
    *line = (Line){0};
}

bool line_reserve(Line *line, size_t more) {
    if (line->failed) return false;
    if (line->capacity - line->length >= more) return true;
    size_t capacity = line->capacity ? line->capacity : 256;
    while (capacity - line->length < more) capacity *= 2;
    char *bytes = realloc(line->bytes, capacity);
    if (bytes) line->bytes = bytes;
    Span *spans = bytes ? realloc(line->spans, capacity * sizeof *spans) : NULL;
    if (!spans) {
        line->failed = true;
        return false;
    }
    line->spans = spans;
    line->capacity = capacity;
    return true;
}

void line_put_char(Line *line, uint32_t c, Span span) {
    char bytes[4];
    line_put(line, bytes, utf8_put(c, bytes), span);
}

void line_copy(Line *line, const Line *from, size_t begin, size_t end) {
    if (begin == end || !line_reserve(line, end - begin)) return;
    memcpy(line->bytes + line->length, from->bytes + begin, end - begin);
    memcpy(line->spans + line->length, from->spans + begin, (end - begin) * sizeof *from->spans);
    line->length += end - begin;
}

void line_edit(Line *line, const Line *from, size_t begin, size_t end, uint32_t origin,
               const Edits *edits) {
    size_t at = begin; /* the next character that an edit replaces */
    for (size_t i = 0; i < edits->count; i++) {
        Edit edit = edits->items[i];
        bool added = edit.change > 0 || at >= end;
        Span span = !added       ? from->spans[at]
                    : at > begin ? from->spans[at - 1]
                                 : (Span){origin, origin};
        for (int32_t n = edit.change; n <= 0 && at < end; n++) at += utf8_size(from->bytes[at]);
        line_put_char(line, edit.c, span);
    }
}
