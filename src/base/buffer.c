#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(Buffer *buffer) {
    free(buffer->bytes);
    *buffer = (Buffer){0};
}

/* Room for `extra` more bytes and the terminating zero. */
static bool buffer_reserve(Buffer *buffer, size_t extra) {
    if (buffer->failed) return false;
    size_t needed;
    if (__builtin_add_overflow(buffer->length, extra + 1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity) return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity < needed) capacity += capacity / 2;
    unsigned char *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void buffer_append(Buffer *buffer, const void *bytes, size_t length) {
    if (!buffer_reserve(buffer, length)) return;
    if (length) memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = 0;
}

void buffer_text(Buffer *buffer, const char *text) {
    buffer_append(buffer, text, strlen(text));
}

void buffer_format(Buffer *buffer, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && buffer_reserve(buffer, (size_t)length)) {
        vsnprintf((char *)buffer->bytes + buffer->length, (size_t)length + 1, format, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

const char *buffer_string(const Buffer *buffer) {
    return buffer->length ? (const char *)buffer->bytes : "";
}

void buffer_json_string_n(Buffer *buffer, const char *text, size_t length) {
    buffer_text(buffer, "\"");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            buffer_format(buffer, "\\%c", text[i]);
        else if ((unsigned char)text[i] < 0x20)
            buffer_format(buffer, "\\u%04x", text[i]);
        else
            buffer_append(buffer, text + i, 1);
    }
    buffer_text(buffer, "\"");
}

void buffer_json_string(Buffer *buffer, const char *text) {
    buffer_json_string_n(buffer, text, strlen(text));
}
