/* Characters and strings as Python sees them. */
#ifndef TEMPLATE_TEXT_H
#define TEMPLATE_TEXT_H

#include "text/template/value.h"
#include "text/unicode.h"

/* str.isspace() of a character. */
static inline bool text_is_space(uint32_t c) {
    return char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

/* Where str.splitlines() cuts. */
static inline bool text_is_line_end(uint32_t c) {
    return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

/* The value of a hexadecimal digit, 99 for anything else. */
static inline int text_digit(char c) {
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : 99;
}

static inline size_t text_count(Text text) {
    return utf8_count(text.bytes, text.length);
}

/* The bytes of characters [begin, end), which are within the text. */
Text text_part(Text text, size_t begin, size_t end);

/* Without the blanks (`chars` NULL) or any of the characters at its ends. */
Text text_strip(Text text, const Text *chars, bool left, bool right);

/* Where `part` first stands at or after byte `from`; SIZE_MAX: nowhere. */
size_t text_find(Text text, Text part, size_t from);
size_t text_find_last(Text text, Text part);

/* Case, by all of Unicode's rules that need no language. Append to a buffer. */
void text_upper(Buffer *out, Text text);
void text_lower(Buffer *out, Text text);
/* The first character in title case, the others lower. */
void text_capitalize(Buffer *out, Text text);
/* str.title(): every run of letters capitalized. */
void text_title(Buffer *out, Text text);

/* str.islower(), str.isupper(): there is a letter with case, and none with the other. */
bool text_is_lower(Text text);
bool text_is_upper(Text text);

bool text_is_printable(uint32_t c);
bool text_is_letter(uint32_t c);
bool text_is_decimal(uint32_t c); /* isdigit() is a little more */

#endif
