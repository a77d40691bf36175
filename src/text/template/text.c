#include "text/template/text.h"

#include <utf8proc.h>

Text text_part(Text text, size_t begin, size_t end) {
    size_t at = 0, from;
    for (size_t i = 0; i < begin; i++) at += utf8_size(text.bytes[at]);
    from = at;
    for (size_t i = begin; i < end; i++) at += utf8_size(text.bytes[at]);
    return (Text){text.bytes + from, at - from};
}

static bool is_stripped(const Text *chars, const char *at) {
    if (!chars) return text_is_space(utf8_get(at));
    return text_find(*chars, (Text){at, utf8_size(*at)}, 0) != SIZE_MAX;
}

Text text_strip(Text text, const Text *chars, bool left, bool right) {
    while (left && text.length && is_stripped(chars, text.bytes)) {
        size_t size = utf8_size(*text.bytes);
        text.bytes += size;
        text.length -= size;
    }
    while (right && text.length) {
        size_t last = utf8_before(text.bytes, text.length);
        if (!is_stripped(chars, text.bytes + last)) break;
        text.length = last;
    }
    return text;
}

size_t text_find(Text text, Text part, size_t from) {
    if (part.length == 0) return from <= text.length ? from : SIZE_MAX;
    while (from < text.length && text.length - from >= part.length) {
        const char *at =
            memchr(text.bytes + from, *part.bytes, text.length - from - part.length + 1);
        if (!at) return SIZE_MAX;
        from = (size_t)(at - text.bytes);
        if (memcmp(at, part.bytes, part.length) == 0) return from;
        from++;
    }
    return SIZE_MAX;
}

size_t text_find_last(Text text, Text part) {
    if (part.length > text.length) return SIZE_MAX;
    for (size_t at = text.length - part.length + 1; at-- > 0;)
        if (memcmp(text.bytes + at, part.bytes, part.length) == 0) return at;
    return SIZE_MAX;
}

/* ---- case ---- */

static utf8proc_category_t category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

bool text_is_printable(uint32_t c) {
    utf8proc_category_t is = category(c);
    return c == ' ' || (is != UTF8PROC_CATEGORY_CN && is < UTF8PROC_CATEGORY_ZS);
}

bool text_is_letter(uint32_t c) {
    utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_LO;
}

bool text_is_decimal(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_ND;
}

static bool is_upper_letter(uint32_t c) {
    return utf8proc_isupper((utf8proc_int32_t)c);
}

static bool is_lower_letter(uint32_t c) {
    return utf8proc_islower((utf8proc_int32_t)c);
}

static bool is_cased(uint32_t c) {
    return is_upper_letter(c) || is_lower_letter(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

static void put(Buffer *out, uint32_t c) {
    char bytes[4];
    buffer_append(out, bytes, utf8_put(c, bytes));
}

/* The characters that a small letter folds to, when they are several: what is "ss" when folded is "SS"
 * as a capital. 0: it has a capital of its own. */
static size_t folded(uint32_t c, utf8proc_int32_t out[4]) {
    int boundary = 0;
    if (c < 0x80 || category(c) == UTF8PROC_CATEGORY_LU) return 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)c, out, 4, UTF8PROC_CASEFOLD, &boundary);
    return count > 1 && count <= 4 ? (size_t)count : 0;
}

static void put_upper(Buffer *out, uint32_t c) {
    utf8proc_int32_t parts[4];
    size_t count = folded(c, parts);
    if (!count) put(out, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c));
    for (size_t i = 0; i < count; i++) put(out, (uint32_t)utf8proc_toupper(parts[i]));
}

static void put_title(Buffer *out, uint32_t c) {
    /* Those that are several characters, and not the folded ones with a capital. */
    static const struct {
        uint32_t c, title[3];
    } several[] = {
        {0x00df, {0x0053, 0x0073}}, {0x0149, {0x02bc, 0x004e}},         {0x1fb2, {0x1fba, 0x0345}},
        {0x1fb4, {0x0386, 0x0345}}, {0x1fb7, {0x0391, 0x0342, 0x0345}}, {0x1fc2, {0x1fca, 0x0345}},
        {0x1fc4, {0x0389, 0x0345}}, {0x1fc7, {0x0397, 0x0342, 0x0345}}, {0x1ff2, {0x1ffa, 0x0345}},
        {0x1ff4, {0x038f, 0x0345}}, {0x1ff7, {0x03a9, 0x0342, 0x0345}},
    };
    utf8proc_int32_t parts[4];
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        if (several[i].c != c) continue;
        for (size_t k = 0; k < 3 && several[i].title[k]; k++) put(out, several[i].title[k]);
        return;
    }
    uint32_t title = (uint32_t)utf8proc_totitle((utf8proc_int32_t)c);
    size_t count = title == c && category(c) != UTF8PROC_CATEGORY_LT ? folded(c, parts) : 0;
    put(out, count ? (uint32_t)utf8proc_totitle(parts[0]) : title);
    for (size_t i = 1; i < count; i++) put(out, (uint32_t)parts[i]);
}

/* Does not matter where a word ends: marks, modifiers, punctuation within words. */
static bool is_ignorable(uint32_t c) {
    utf8proc_category_t is = category(c);
    return is == UTF8PROC_CATEGORY_MN || is == UTF8PROC_CATEGORY_ME || is == UTF8PROC_CATEGORY_CF ||
           is == UTF8PROC_CATEGORY_LM || is == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' ||
           c == ':' || c == 0xb7 || c == 0x387 || c == 0x2018 || c == 0x2019 || c == 0x2024 ||
           c == 0x2027;
}

/* A capital sigma becomes another small letter at the end of a word. */
static bool is_final(Text text, size_t at) {
    size_t i = at;
    bool before = false;
    while (i > 0) {
        i = utf8_before(text.bytes, i);
        uint32_t c = utf8_get(text.bytes + i);
        if (is_ignorable(c)) continue;
        before = is_cased(c);
        break;
    }
    for (i = at + 2; before && i < text.length; i += utf8_size(text.bytes[i])) {
        uint32_t c = utf8_get(text.bytes + i);
        if (!is_ignorable(c)) return !is_cased(c);
    }
    return before;
}

static void put_lower(Buffer *out, Text text, size_t at) {
    uint32_t lower[2], c = utf8_get(text.bytes + at);
    if (c == 0x3a3) {
        put(out, is_final(text, at) ? 0x3c2 : 0x3c3);
        return;
    }
    size_t count = char_lower(c, lower);
    for (size_t i = 0; i < count; i++) put(out, lower[i]);
}

#define EACH_CHARACTER(text, at)                                                                   \
    (size_t at = 0; at < (text).length; at += utf8_size((text).bytes[at]))

void text_upper(Buffer *out, Text text) {
    for
        EACH_CHARACTER(text, i) put_upper(out, utf8_get(text.bytes + i));
}

void text_lower(Buffer *out, Text text) {
    for
        EACH_CHARACTER(text, i) put_lower(out, text, i);
}

void text_capitalize(Buffer *out, Text text) {
    for
        EACH_CHARACTER(text, i) {
            if (i == 0)
                put_title(out, utf8_get(text.bytes));
            else
                put_lower(out, text, i);
        }
}

void text_title(Buffer *out, Text text) {
    bool inside = false;
    for
        EACH_CHARACTER(text, i) {
            uint32_t c = utf8_get(text.bytes + i);
            if (inside)
                put_lower(out, text, i);
            else
                put_title(out, c);
            inside = is_cased(c);
        }
}

bool text_is_lower(Text text) {
    bool found = false;
    for
        EACH_CHARACTER(text, i) {
            uint32_t c = utf8_get(text.bytes + i);
            if (is_upper_letter(c) || category(c) == UTF8PROC_CATEGORY_LT) return false;
            found |= is_lower_letter(c);
        }
    return found;
}

bool text_is_upper(Text text) {
    bool found = false;
    for
        EACH_CHARACTER(text, i) {
            uint32_t c = utf8_get(text.bytes + i);
            if (is_lower_letter(c) || category(c) == UTF8PROC_CATEGORY_LT) return false;
            found |= is_upper_letter(c);
        }
    return found;
}
