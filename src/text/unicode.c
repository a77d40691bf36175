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

/* The tables that tokenizers were made with are of Unicode 8.0 (categories) and 9.0 (normalization): a
 * character that came later has no category there, and no decomposition. To be like them, newer tables
 * must be asked about older characters only. */

static const uint32_t in_unicode8[] = {
#include "text/unicode8.def"
};

static const uint32_t new_in_unicode9[] = {
    0x8b6,   0x8be,   0x8d4,   0x8e3,   0xc80,   0xc81,   0xd4f,   0xd50,   0xd54,   0xd57,
    0xd58,   0xd5f,   0xd76,   0xd79,   0x1c80,  0x1c89,  0x1dfb,  0x1dfc,  0x23fb,  0x23ff,
    0x2e43,  0x2e45,  0xa7ae,  0xa7af,  0xa8c5,  0xa8c6,  0x1018d, 0x1018f, 0x104b0, 0x104d4,
    0x104d8, 0x104fc, 0x1123e, 0x1123f, 0x11400, 0x1145a, 0x1145b, 0x1145c, 0x1145d, 0x1145e,
    0x11660, 0x1166d, 0x11c00, 0x11c09, 0x11c0a, 0x11c37, 0x11c38, 0x11c46, 0x11c50, 0x11c6d,
    0x11c70, 0x11c90, 0x11c92, 0x11ca8, 0x11ca9, 0x11cb7, 0x16fe0, 0x16fe1, 0x17000, 0x187ed,
    0x18800, 0x18af3, 0x1e000, 0x1e007, 0x1e008, 0x1e019, 0x1e01b, 0x1e022, 0x1e023, 0x1e025,
    0x1e026, 0x1e02b, 0x1e900, 0x1e94b, 0x1e950, 0x1e95a, 0x1e95e, 0x1e960, 0x1f19b, 0x1f1ad,
    0x1f23b, 0x1f23c, 0x1f57a, 0x1f57b, 0x1f5a4, 0x1f5a5, 0x1f6d1, 0x1f6d3, 0x1f6f4, 0x1f6f7,
    0x1f919, 0x1f91f, 0x1f920, 0x1f928, 0x1f930, 0x1f931, 0x1f933, 0x1f93f, 0x1f940, 0x1f94c,
    0x1f950, 0x1f95f, 0x1f985, 0x1f992,
};

/* Is `c` in the ranges that begin and end at these places? */
static bool is_within(uint32_t c, const uint32_t *ends, size_t count) {
    size_t low = 0, high = count; /* how many places are not above `c` */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ends[middle] <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2 == 1;
}

#define IS_WITHIN(c, ends) is_within(c, ends, sizeof(ends) / sizeof *(ends))

static utf8proc_category_t category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

/* Characters that have another category since. */
static const struct {
    uint32_t c;
    int until; /* the last version with the old one */
    utf8proc_category_t category;
} changed[] = {
    {0x166d, 11, UTF8PROC_CATEGORY_PO}, {0x1734, 13, UTF8PROC_CATEGORY_MN},
    {0x1885, 8, UTF8PROC_CATEGORY_LO},  {0x1886, 8, UTF8PROC_CATEGORY_LO},
    {0x1cf2, 11, UTF8PROC_CATEGORY_MC}, {0x1cf3, 11, UTF8PROC_CATEGORY_MC},
    {0xa9bd, 10, UTF8PROC_CATEGORY_MC}, {0x111c9, 10, UTF8PROC_CATEGORY_PO},
};

/* The category in a version of Unicode, 8 or 9. */
static utf8proc_category_t category_in(int version, uint32_t c) {
    if (c < 0x80) return category(c);
    if (!IS_WITHIN(c, in_unicode8) && (version < 9 || !IS_WITHIN(c, new_in_unicode9)))
        return UTF8PROC_CATEGORY_CN;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        if (changed[i].c == c && version <= changed[i].until) return changed[i].category;
    }
    return category(c);
}

static bool is_in_unicode9(uint32_t c) {
    return c < 0x300 || IS_WITHIN(c, in_unicode8) || IS_WITHIN(c, new_in_unicode9);
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
    utf8proc_category_t is = category_in(8, c);
    return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO;
}

bool char_is_control(uint32_t c) {
    utf8proc_category_t is = category_in(8, c);
    return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CF || is == UTF8PROC_CATEGORY_CO;
}

bool char_is_nonspacing(uint32_t c) {
    return category_in(8, c) == UTF8PROC_CATEGORY_MN;
}

bool char_is_mark(uint32_t c) {
    utf8proc_category_t is = category_in(9, c);
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
    if (c < 0x300 || !is_in_unicode9(c)) return 0;
    return utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
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
    if (!is_in_unicode9(c)) {
        out[0] = c;
        return 1;
    }
    int boundary = 0, options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c, (utf8proc_int32_t *)out,
                                                     32, (utf8proc_option_t)options, &boundary);
    return count < 0 ? 0 : (size_t)count;
}

uint32_t char_compose(uint32_t a, uint32_t b) {
    if (!is_in_unicode9(a) || !is_in_unicode9(b)) return 0;
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    utf8proc_ssize_t count = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return count == 1 ? (uint32_t)pair[0] : 0;
}
