#include "text/charsmap.h"
#include "text/unicode.h"

#include <utf8proc.h>

/* Digits of base64; 64 for anything else. */
static unsigned digit(char c) {
    if (c >= 'A' && c <= 'Z') return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z') return (unsigned)(c - 'a') + 26;
    if (c >= '0' && c <= '9') return (unsigned)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Bytes in the arena; NULL when the text is not base64. */
static unsigned char *decode_base64(Arena *arena, const char *text, size_t *length) {
    size_t size = strlen(text), count = 0;
    if (size % 4) return NULL;
    while (size > 0 && text[size - 1] == '=') size--;
    unsigned char *bytes = arena_alloc(arena, size / 4 * 3 + 4);
    if (!bytes) return NULL;
    uint32_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned value = digit(text[i]);
        if (value == 64) return NULL;
        bits = bits << 6 | value;
        if (i % 4 == 0) continue;
        bytes[count++] = (unsigned char)(bits >> (6 - i % 4 * 2));
    }
    *length = count;
    return bytes;
}

void charsmap_read(Settings *settings, const char *base64, Charsmap *out) {
    size_t length = 0;
    unsigned char *bytes = decode_base64(settings->arena, base64, &length);
    *out = (Charsmap){0};
    if (!bytes) {
        setting_fail(settings, FERRY_BAD_FORMAT, "\"precompiled_charsmap\" is not base64");
        return;
    }
    uint32_t size = length < 4 ? UINT32_MAX
                               : (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
                                     (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    size_t place;
    if (length < 4 || size % 4 || size > length - 4 || size == 0 ||
        !utf8_check((char *)bytes + 4 + size, length - 4 - size, &place)) {
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "\"precompiled_charsmap\" is damaged: %zu bytes that announce a trie of %u",
                     length, size);
        return;
    }
    uint32_t *units = ARENA_ARRAY(settings->arena, uint32_t, size / 4);
    if (!units) return;
    for (size_t i = 0; i < size / 4; i++) {
        const unsigned char *b = bytes + 4 + 4 * i;
        units[i] =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    *out = (Charsmap){units, size / 4, (char *)bytes + 4 + size, length - 4 - size};
}

/* A unit of the double array (Darts-clone): its label, whether a value follows, where it leads. */
static uint32_t unit_offset(uint32_t unit) {
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* What replaces the shortest prefix of the text that the map knows; NULL when there is none. */
static const char *replacement(const Charsmap *map, const char *text, size_t length) {
    uint32_t at = unit_offset(map->units[0]);
    for (size_t i = 0; i < length && text[i]; i++) {
        at ^= (unsigned char)text[i];
        if (at >= map->unit_count) return NULL;
        uint32_t unit = map->units[at];
        if ((unit & (1u << 31 | 0xff)) != (unsigned char)text[i]) return NULL;
        at ^= unit_offset(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->unit_count) return NULL;
        uint32_t value = map->units[at] & ~(1u << 31);
        bool whole = value < map->texts_length && !utf8_is_inner(map->texts[value]);
        return whole ? map->texts + value : NULL;
    }
    return NULL;
}

static void replace(Edits *edits, const char *old, size_t length, const char *new) {
    int32_t removed = (int32_t)utf8_count(old, length), added = 0;
    for (; *new; new += utf8_size(*new), added++)
        VEC_PUSH(edits, (Edit){utf8_get(new), added >= removed});
    if (added < removed && edits->count > 0)
        edits->items[edits->count - 1].change += added - removed;
}

bool charsmap_edits(const Charsmap *map, const char *bytes, size_t length, Edits *edits) {
    bool changed = false;
    for (size_t begin = 0, end; begin < length; begin = end) {
        /* A grapheme. */
        utf8proc_int32_t state = 0;
        end = begin + utf8_size(bytes[begin]);
        utf8proc_int32_t last = (utf8proc_int32_t)utf8_get(bytes + begin);
        while (end < length) {
            utf8proc_int32_t next = (utf8proc_int32_t)utf8_get(bytes + end);
            if (utf8proc_grapheme_break_stateful(last, next, &state)) break;
            end += utf8_size(bytes[end]);
            last = next;
        }
        const char *whole = end - begin < 6 ? replacement(map, bytes + begin, end - begin) : NULL;
        if (whole) {
            replace(edits, bytes + begin, end - begin, whole);
            changed = true;
            continue;
        }
        for (size_t i = begin, next; i < end; i = next) {
            next = i + utf8_size(bytes[i]);
            const char *one = replacement(map, bytes + i, next - i);
            if (one)
                replace(edits, bytes + i, next - i, one);
            else
                VEC_PUSH(edits, (Edit){utf8_get(bytes + i), 0});
            changed |= one != NULL;
        }
    }
    return changed;
}
