/* The methods of strings. */
#include "base/vec.h"
#include "text/template/run.h"
#include "text/template/text.h"

#include <stdlib.h>

static Value text_value(Text text) {
    return value_text(text.bytes, text.length);
}

/* A method that writes its result to a buffer. */
static Value mapped(Run *r, Text text, void (*map)(Buffer *out, Text text)) {
    Buffer out = {0};
    if (!run_step(r, text.length / 8)) return value_undefined("");
    map(&out, text);
    return run_take(r, &out);
}

static Value upper(Run *r, const Args *a) {
    return mapped(r, a->self.text, text_upper);
}

static Value lower(Run *r, const Args *a) {
    return mapped(r, a->self.text, text_lower);
}

static Value capitalize(Run *r, const Args *a) {
    return mapped(r, a->self.text, text_capitalize);
}

static Value title(Run *r, const Args *a) {
    return mapped(r, a->self.text, text_title);
}

static Value strip_sides(Run *r, const Args *a, bool left, bool right) {
    bool given = a->at[0].kind != VALUE_ABSENT && a->at[0].kind != VALUE_NONE;
    Text chars = given ? argument_text(r, a->at[0], "") : (Text){0};
    return text_value(text_strip(a->self.text, given ? &chars : NULL, left, right));
}

static Value strip(Run *r, const Args *a) {
    return strip_sides(r, a, true, true);
}

static Value lstrip(Run *r, const Args *a) {
    return strip_sides(r, a, true, false);
}

static Value rstrip(Run *r, const Args *a) {
    return strip_sides(r, a, false, true);
}

static bool has_affix(Text text, Text affix, bool end) {
    if (affix.length > text.length) return false;
    const char *at = end ? text.bytes + text.length - affix.length : text.bytes;
    return affix.length == 0 || memcmp(at, affix.bytes, affix.length) == 0;
}

/* startswith and endswith take a string, or a tuple of them. */
static Value test_affix(Run *r, const Args *a, bool end) {
    List one = {&a->at[0], 1}, affixes = a->at[0].kind == VALUE_TUPLE ? a->at[0].list : one;
    for (size_t i = 0; i < affixes.count; i++) {
        if (affixes.items[i].kind == VALUE_UNDEFINED) return run_use(r, affixes.items[i]);
        if (affixes.items[i].kind != VALUE_TEXT)
            return RUN_FAIL(r, "expected a string, found %s", value_type(affixes.items[i]));
        if (has_affix(a->self.text, affixes.items[i].text, end)) return value_bool(true);
    }
    return value_bool(false);
}

static Value startswith(Run *r, const Args *a) {
    return test_affix(r, a, false);
}

static Value endswith(Run *r, const Args *a) {
    return test_affix(r, a, true);
}

static Value removeprefix(Run *r, const Args *a) {
    Text text = a->self.text, affix = argument_text(r, a->at[0], "");
    bool has = has_affix(text, affix, false);
    return has ? value_text(text.bytes + affix.length, text.length - affix.length) : a->self;
}

static Value removesuffix(Run *r, const Args *a) {
    Text text = a->self.text, affix = argument_text(r, a->at[0], "");
    return has_affix(text, affix, true) ? value_text(text.bytes, text.length - affix.length)
                                        : a->self;
}

/* ---- searching ---- */

static Value find(Run *r, const Args *a) {
    Text text = a->self.text, part = argument_text(r, a->at[0], "");
    size_t at = run_step(r, text.length / 64) ? text_find(text, part, 0) : SIZE_MAX;
    return value_integer(at == SIZE_MAX ? -1 : (int64_t)utf8_count(text.bytes, at));
}

static Value rfind(Run *r, const Args *a) {
    Text text = a->self.text, part = argument_text(r, a->at[0], "");
    size_t at = run_step(r, text.length / 8) ? text_find_last(text, part) : SIZE_MAX;
    return value_integer(at == SIZE_MAX ? -1 : (int64_t)utf8_count(text.bytes, at));
}

static Value index_of(Run *r, const Args *a) {
    Value at = find(r, a);
    return at.integer < 0 ? RUN_FAIL(r, "the string does not contain this") : at;
}

/* Where `part` stands next, at or after `from`; an empty one stands before every character. */
static size_t find_next(Run *r, Text text, Text part, size_t from) {
    return run_step(r, 1 + part.length / 64) ? text_find(text, part, from) : SIZE_MAX;
}

static Value count(Run *r, const Args *a) {
    Text text = a->self.text, part = argument_text(r, a->at[0], "");
    int64_t found = 0;
    if (part.length == 0) return value_integer((int64_t)text_count(text) + 1);
    for (size_t at = 0; (at = find_next(r, text, part, at)) != SIZE_MAX; at += part.length) found++;
    return value_integer(found);
}

static Value replace(Run *r, const Args *a) {
    Text text = a->self.text, old = argument_text(r, a->at[0], ""),
         by = argument_text(r, a->at[1], "");
    int64_t left = argument_whole(r, a->at[2], -1);
    size_t done = 0, at = 0;
    Buffer out = {0};
    while (left-- != 0 && (at = find_next(r, text, old, at)) != SIZE_MAX) {
        run_append(r, &out, text.bytes + done, at - done);
        run_append_text(r, &out, by);
        done = at + old.length;
        at = done;
        if (old.length == 0) at += at < text.length ? utf8_size(text.bytes[at]) : 1;
    }
    run_append(r, &out, text.bytes + done, text.length - done);
    return run_take(r, &out);
}

/* ---- cutting ---- */

/* Pieces in the order in which they were cut off, from the front or the back. */
typedef VEC(Value) Pieces;

static Value take_pieces(Run *r, Pieces *pieces, bool reverse) {
    Value *items = run_items(r, pieces->count);
    for (size_t i = 0; items && i < pieces->count; i++)
        items[reverse ? pieces->count - 1 - i : i] = pieces->items[i];
    Value v = value_sequence(VALUE_LIST, items, items ? pieces->count : 0);
    if (pieces->failed) run_fail(r, FERRY_OUT_OF_MEMORY, "out of memory");
    VEC_FREE(pieces);
    return v;
}

static void split_blanks(Run *r, Text text, int64_t left, Pieces *pieces) {
    while ((text = text_strip(text, NULL, true, false)).length && run_step(r, 1)) {
        size_t end = 0;
        if (left-- == 0) {
            VEC_PUSH(pieces, text_value(text));
            return;
        }
        while (end < text.length && !text_is_space(utf8_get(text.bytes + end)))
            end += utf8_size(text.bytes[end]);
        VEC_PUSH(pieces, value_text(text.bytes, end));
        text = (Text){text.bytes + end, text.length - end};
    }
}

static void rsplit_blanks(Run *r, Text text, int64_t left, Pieces *pieces) {
    while ((text = text_strip(text, NULL, false, true)).length && run_step(r, 1)) {
        size_t begin = text.length;
        if (left-- == 0) {
            VEC_PUSH(pieces, text_value(text));
            return;
        }
        while (begin > 0) {
            size_t before = utf8_before(text.bytes, begin);
            if (text_is_space(utf8_get(text.bytes + before))) break;
            begin = before;
        }
        VEC_PUSH(pieces, value_text(text.bytes + begin, text.length - begin));
        text.length = begin;
    }
}

static Value split_by(Run *r, const Args *a, bool from_end) {
    Text text = a->self.text;
    int64_t left = argument_whole(r, a->at[1], -1);
    Pieces pieces = {0};
    if (a->at[0].kind == VALUE_ABSENT || a->at[0].kind == VALUE_NONE) {
        (from_end ? rsplit_blanks : split_blanks)(r, text, left, &pieces);
        return take_pieces(r, &pieces, from_end);
    }
    Text separator = argument_text(r, a->at[0], "");
    if (separator.length == 0) return RUN_FAIL(r, "the separator of split() is empty");
    while (left-- != 0 && run_step(r, 1 + (from_end ? text.length / 64 : 0))) {
        size_t at = from_end ? text_find_last(text, separator) : text_find(text, separator, 0);
        if (at == SIZE_MAX) break;
        size_t after = at + separator.length;
        Text head = {text.bytes, at}, tail = {text.bytes + after, text.length - after};
        VEC_PUSH(&pieces, text_value(from_end ? tail : head));
        text = from_end ? head : tail;
    }
    VEC_PUSH(&pieces, text_value(text));
    return take_pieces(r, &pieces, from_end);
}

static Value split(Run *r, const Args *a) {
    return split_by(r, a, false);
}

static Value rsplit(Run *r, const Args *a) {
    return split_by(r, a, true);
}

static Value splitlines(Run *r, const Args *a) {
    Text text = a->self.text;
    bool keep = argument_truth(a->at[0], false);
    Pieces pieces = {0};
    for (size_t begin = 0; begin < text.length && run_step(r, 1);) {
        size_t end = begin, next;
        while (end < text.length && !text_is_line_end(utf8_get(text.bytes + end)))
            end += utf8_size(text.bytes[end]);
        next = end < text.length ? end + utf8_size(text.bytes[end]) : end;
        if (next < text.length && text.bytes[end] == '\r' && text.bytes[next] == '\n') next++;
        VEC_PUSH(&pieces, value_text(text.bytes + begin, (keep ? next : end) - begin));
        begin = next;
    }
    return take_pieces(r, &pieces, false);
}

static Value partition_at(Run *r, const Args *a, bool last) {
    Text text = a->self.text, by = argument_text(r, a->at[0], "");
    Value *items = run_items(r, 3);
    if (!items) return a->self;
    if (by.length == 0) return RUN_FAIL(r, "the separator of partition() is empty");
    size_t at = last ? text_find_last(text, by) : text_find(text, by, 0);
    items[0] = items[1] = items[2] = value_string("");
    if (at == SIZE_MAX) {
        items[last ? 2 : 0] = a->self;
    } else {
        items[0] = value_text(text.bytes, at);
        items[1] = text_value(by);
        items[2] = value_text(text.bytes + at + by.length, text.length - at - by.length);
    }
    return value_sequence(VALUE_TUPLE, items, 3);
}

static Value partition(Run *r, const Args *a) {
    return partition_at(r, a, false);
}

static Value rpartition(Run *r, const Args *a) {
    return partition_at(r, a, true);
}

static Value join(Run *r, const Args *a) {
    List items = value_items(r, a->at[0]);
    Buffer out = {0};
    for (size_t i = 0; !run_failed(r) && i < items.count; i++) {
        if (i) run_append_text(r, &out, a->self.text);
        if (items.items[i].kind == VALUE_TEXT)
            run_append_text(r, &out, items.items[i].text);
        else
            RUN_FAIL(r, "join() joins strings, found %s", value_type(items.items[i]));
    }
    return run_take(r, &out);
}

/* ---- questions and widths ---- */

static Value every(Text text, bool (*is)(uint32_t c)) {
    for (size_t i = 0; i < text.length; i += utf8_size(text.bytes[i]))
        if (!is(utf8_get(text.bytes + i))) return value_bool(false);
    return value_bool(text.length > 0);
}

static Value isdigit_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? every(a->self.text, text_is_decimal) : a->self;
}

static Value isalpha_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? every(a->self.text, text_is_letter) : a->self;
}

static bool is_letter_or_digit(uint32_t c) {
    return text_is_letter(c) || text_is_decimal(c);
}

static Value isalnum_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? every(a->self.text, is_letter_or_digit)
                                                 : a->self;
}

static bool is_blank(uint32_t c) {
    return text_is_space(c);
}

static Value isspace_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? every(a->self.text, is_blank) : a->self;
}

static Value islower_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? value_bool(text_is_lower(a->self.text))
                                                 : a->self;
}

static Value isupper_(Run *r, const Args *a) {
    return run_step(r, a->self.text.length / 64) ? value_bool(text_is_upper(a->self.text))
                                                 : a->self;
}

/* Filled up to a width; `left` of what is missing goes before the text. */
static Value padded(Run *r, const Args *a, int share) {
    int64_t width = argument_whole(r, a->at[0], 0), has = (int64_t)text_count(a->self.text);
    Text fill = argument_text(r, a->at[1], " ");
    if (text_count(fill) != 1) return RUN_FAIL(r, "the fill must be one character");
    int64_t missing = width > has ? width - has : 0;
    int64_t left = share == 1 ? missing / 2 + (missing & width & 1) : share == 2 ? missing : 0;
    Buffer out = {0};
    for (int64_t i = 0; i < left && !run_failed(r); i++) run_append_text(r, &out, fill);
    run_append_text(r, &out, a->self.text);
    for (int64_t i = left; i < missing && !run_failed(r); i++) run_append_text(r, &out, fill);
    return run_take(r, &out);
}

static Value ljust(Run *r, const Args *a) {
    return padded(r, a, 0);
}

static Value center(Run *r, const Args *a) {
    return padded(r, a, 1);
}

static Value rjust(Run *r, const Args *a) {
    return padded(r, a, 2);
}

const Function text_methods[] = {
    {"upper", "", upper},
    {"lower", "", lower},
    {"capitalize", "", capitalize},
    {"title", "", title},
    {"strip", "chars", strip},
    {"lstrip", "chars", lstrip},
    {"rstrip", "chars", rstrip},
    {"startswith", "prefix /", startswith},
    {"endswith", "suffix /", endswith},
    {"removeprefix", "prefix /", removeprefix},
    {"removesuffix", "suffix /", removesuffix},
    {"find", "sub /", find},
    {"rfind", "sub /", rfind},
    {"index", "sub /", index_of},
    {"count", "sub /", count},
    {"replace", "old new / count", replace},
    {"split", "sep maxsplit", split},
    {"rsplit", "sep maxsplit", rsplit},
    {"splitlines", "keepends", splitlines},
    {"partition", "sep /", partition},
    {"rpartition", "sep /", rpartition},
    {"join", "iterable /", join},
    {"format", NULL, text_format_call},
    {"isdigit", "", isdigit_},
    {"isalpha", "", isalpha_},
    {"isalnum", "", isalnum_},
    {"isspace", "", isspace_},
    {"islower", "", islower_},
    {"isupper", "", isupper_},
    {"ljust", "width / fillchar", ljust},
    {"center", "width / fillchar", center},
    {"rjust", "width / fillchar", rjust},
    {0},
};
