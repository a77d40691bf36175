/* A growing run of bytes, for text and for serialized records.
 * A failed allocation sets `failed`, which stays set; later appends do nothing. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Buffer {
    unsigned char *bytes; /* always followed by one zero byte once anything was appended */
    size_t length;
    size_t capacity;
    bool failed;
} Buffer;

/* A buffer that is all zero is ready for use. */
void buffer_free(Buffer *buffer);
void buffer_append(Buffer *buffer, const void *bytes, size_t length);
void buffer_text(Buffer *buffer, const char *text);
void buffer_format(Buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string literal of UTF-8 text. */
void buffer_json_string(Buffer *buffer, const char *text);
void buffer_json_string_n(Buffer *buffer, const char *text, size_t length);

/* The content as a string; "" when empty. Valid until the next append. */
const char *buffer_string(const Buffer *buffer);

#endif
