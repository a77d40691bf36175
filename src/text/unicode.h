/* Characters: UTF-8, and the classes that tokenizers ask for. Properties come from utf8proc. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this well-formed UTF-8? If not, `*place` is where the first malformed sequence begins. */
bool utf8_check(const char *bytes, size_t length, size_t *place);

/* Are these bytes how a character of UTF-8 begins, with more to come? */
bool utf8_begins(const char *bytes, size_t length);

/* Bytes of the character that begins with `lead`, in well-formed text. */
static inline size_t utf8_size(char lead) {
    unsigned char byte = (unsigned char)lead;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

static inline bool utf8_is_inner(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The character at `at`, in well-formed text. */
static inline uint32_t utf8_get(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    if (b[0] < 0x80) return b[0];
    if (b[0] < 0xe0) return (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu);
    if (b[0] < 0xf0) return (b[0] & 0x0fu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
    return (b[0] & 0x07u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
}

/* Where the character that ends before `end` begins; `end` is not the start of the text. */
static inline size_t utf8_before(const char *bytes, size_t end) {
    do end--;
    while (end > 0 && utf8_is_inner(bytes[end]));
    return end;
}

/* Write a character; returns its size. */
size_t utf8_put(uint32_t c, char out[4]);

/* Characters in well-formed text. */
size_t utf8_count(const char *bytes, size_t length);

bool char_is_space(uint32_t c);       /* White_Space */
bool char_is_number(uint32_t c);      /* N */
bool char_is_punctuation(uint32_t c); /* P, or punctuation or a symbol of ASCII */
bool char_is_control(uint32_t c);     /* Cc, Cf, Co */
bool char_is_nonspacing(uint32_t c);  /* Mn */
bool char_is_mark(uint32_t c);        /* M */
bool char_is_word(uint32_t c);        /* \w of Unicode's regular expressions */
int char_combining_class(uint32_t c);

/* The lowercase form; returns its number of characters, 1 or 2. */
size_t char_lower(uint32_t c, uint32_t out[2]);

/* Normalization forms of one character: its full decomposition, at most 18 characters. */
size_t char_decompose(uint32_t c, bool compatible, uint32_t out[32]);

/* The character that `a` and `b` compose to, or 0. */
uint32_t char_compose(uint32_t a, uint32_t b);

#endif
