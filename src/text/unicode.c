#include "text/unicode.h"

#include <utf8proc.h>

/* How many bytes at `b`, of `length`, are a well-formed character: 0, or, when only its beginning is
 * there, -1. */
static int char_bytes(const unsigned char *b, size_t length) {
    if (b[0] < 0x80) return 1;
    int size = b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf5 ? 4 : 0;
    for (int k = 1; k < size; k++) {
        if ((size_t)k == length) return -1;
        unsigned char low = 0x80, high = 0xbf;
        if (k == 1 && b[0] == 0xe0) low = 0xa0;  /* overlong */
        if (k == 1 && b[0] == 0xed) high = 0x9f; /* surrogates */
        if (k == 1 && b[0] == 0xf0) low = 0x90;  /* overlong */
        if (k == 1 && b[0] == 0xf4) high = 0x8f; /* above U+10FFFF */
        if (b[k] < low || b[k] > high) return 0;
    }
    return size;
}

bool utf8_check(const char *bytes, size_t length, size_t *place) {
    const unsigned char *b = (const unsigned char *)bytes;
    for (size_t i = 0; i < length;) {
        int size = char_bytes(b + i, length - i);
        *place = i;
        if (size <= 0) return false;
        i += (size_t)size;
    }
    return true;
}

bool utf8_begins(const char *bytes, size_t length) {
    return length > 0 && char_bytes((const unsigned char *)bytes, length) < 0;
}

size_t utf8_put(uint32_t c, char out[4]) {
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}

size_t utf8_count(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += !utf8_is_inner(bytes[i]);
    return count;
}

bool char_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static utf8proc_category_t category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

bool char_is_number(uint32_t c) {
    utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_ND && is <= UTF8PROC_CATEGORY_NO;
}

bool char_is_punctuation(uint32_t c) {
    if (c < 0x80) {
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    }
    utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO;
}

bool char_is_control(uint32_t c) {
    utf8proc_category_t is = category(c);
    return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CF || is == UTF8PROC_CATEGORY_CO;
}

bool char_is_nonspacing(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_MN;
}

bool char_is_mark(uint32_t c) {
    utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_MN && is <= UTF8PROC_CATEGORY_ME;
}

bool char_is_word(uint32_t c) {
    if (c < 0x80) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    }
    utf8proc_category_t is = category(c);
    /* L and M, decimal and letter numbers, connectors, joiners, and letters in circles and squares. */
    return (is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_NL) ||
           is == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d ||
           (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

int char_combining_class(uint32_t c) {
    return c < 0x300 ? 0 : utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

size_t char_lower(uint32_t c, uint32_t out[2]) {
    if (c < 0x80) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c == 0x130) { /* the only character whose lowercase is two, whatever stands around it */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

size_t char_decompose(uint32_t c, bool compatible, uint32_t out[32]) {
    int boundary = 0, options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c, (utf8proc_int32_t *)out,
                                                     32, (utf8proc_option_t)options, &boundary);
    return count < 0 ? 0 : (size_t)count;
}

uint32_t char_compose(uint32_t a, uint32_t b) {
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    utf8proc_ssize_t count = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return count == 1 ? (uint32_t)pair[0] : 0;
}
