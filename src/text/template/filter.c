/* Filters on single values: text, numbers, JSON. */
#include "text/template/run.h"
#include "text/template/text.h"

#include <math.h>
#include <stdlib.h>

/* The string method of the same meaning, on str() of the value. */
static Value by_method(Run *r, const Args *a, const char *name) {
    Value text = value_to_text(r, a->self);
    if (run_failed(r)) return text;
    return function_call(r, function_find(text_methods, name, strlen(name)), text, a->call);
}

static Value filter_upper(Run *r, const Args *a) {
    return by_method(r, a, "upper");
}

static Value filter_lower(Run *r, const Args *a) {
    return by_method(r, a, "lower");
}

static Value filter_capitalize(Run *r, const Args *a) {
    return by_method(r, a, "capitalize");
}

static Value filter_trim(Run *r, const Args *a) {
    return by_method(r, a, "strip");
}

static Value filter_replace(Run *r, const Args *a) {
    return by_method(r, a, "replace");
}

static Value filter_format(Run *r, const Args *a) {
    Value text = value_to_text(r, a->self);
    if (run_failed(r)) return text;
    if (a->call->named_count)
        return run_fail(r, FERRY_UNSUPPORTED, "format with named values is not supported");
    return text_format(r, text.text, value_sequence(VALUE_TUPLE, a->call->items, a->call->count));
}

/* Words begin after blanks, hyphens and opening brackets; unlike str.title(), not after apostrophes. */
static Value filter_title(Run *r, const Args *a) {
    Value v = value_to_text(r, a->self);
    Buffer out = {0};
    if (run_failed(r)) return v;
    for (size_t i = 0; i < v.text.length;) {
        size_t end = i;
        bool between = false;
        for (; end < v.text.length; end += utf8_size(v.text.bytes[end])) {
            uint32_t c = utf8_get(v.text.bytes + end);
            bool is = text_is_space(c) || (c < 0x80 && strchr("-({[<", (int)c) && c);
            if (end == i) between = is;
            if (is != between) break;
        }
        Text word = {v.text.bytes + i, end - i};
        size_t first = utf8_size(*word.bytes);
        text_upper(&out, (Text){word.bytes, first});
        text_lower(&out, (Text){word.bytes + first, word.length - first});
        i = end;
    }
    return run_step(r, v.text.length / 8) ? run_take(r, &out) : (buffer_free(&out), v);
}

static Value filter_string(Run *r, const Args *a) {
    return value_to_text(r, a->self);
}

static Value filter_safe(Run *r, const Args *a) {
    return value_to_text(r, a->self);
}

static Value filter_escape(Run *r, const Args *a) {
    static const struct {
        char c;
        const char *by;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    Value v = value_to_text(r, a->self);
    Buffer out = {0};
    for (size_t i = 0; !run_failed(r) && i < v.text.length; i++) {
        const char *by = NULL;
        for (size_t k = 0; k < sizeof escapes / sizeof *escapes; k++)
            if (escapes[k].c == v.text.bytes[i]) by = escapes[k].by;
        if (by)
            run_append_string(r, &out, by);
        else
            run_append(r, &out, v.text.bytes + i, 1);
    }
    return run_take(r, &out);
}

static Value filter_default(Run *r, const Args *a) {
    (void)r;
    bool replaced = a->self.kind == VALUE_UNDEFINED ||
                    (argument_truth(a->at[1], false) && !value_truth(a->self));
    return !replaced ? a->self : a->at[0].kind == VALUE_ABSENT ? value_string("") : a->at[0];
}

static Value filter_indent(Run *r, const Args *a) {
    Value v = a->self;
    if (v.kind == VALUE_UNDEFINED) return run_use(r, v);
    if (v.kind != VALUE_TEXT) return RUN_FAIL(r, "indent takes a string, not %s", value_type(v));
    bool first = argument_truth(a->at[1], false), blank = argument_truth(a->at[2], false);
    Text by = {0};
    Buffer out = {0};
    if (a->at[0].kind == VALUE_TEXT) by = a->at[0].text;
    int64_t width = a->at[0].kind == VALUE_TEXT ? 0 : argument_whole(r, a->at[0], 4);
    if (a->at[0].kind != VALUE_TEXT) {
        char *spaces = run_alloc(r, width > 0 ? (size_t)width : 0, 1);
        if (!spaces) return v;
        memset(spaces, ' ', width > 0 ? (size_t)width : 0);
        by = (Text){spaces, width > 0 ? (size_t)width : 0};
    }
    if (run_failed(r)) return v;
    for (size_t begin = 0, line = 0; begin <= v.text.length && run_step(r, 1); line++) {
        size_t end = begin, next;
        while (end < v.text.length && !text_is_line_end(utf8_get(v.text.bytes + end)))
            end += utf8_size(v.text.bytes[end]);
        next = end < v.text.length ? end + utf8_size(v.text.bytes[end]) : end + 1;
        if (next < v.text.length && v.text.bytes[end] == '\r' && v.text.bytes[next] == '\n') next++;
        if (line) run_append_string(r, &out, "\n");
        if (line ? blank || end > begin : first) run_append_text(r, &out, by);
        run_append(r, &out, v.text.bytes + begin, end - begin);
        begin = next;
    }
    return run_take(r, &out);
}

/* ---- numbers ---- */

/* What float() makes of a text; false when it is none. */
static bool read_real(Text text, double *out) {
    char copy[128], *end;
    size_t count = 0;
    text = text_strip(text, NULL, true, true);
    if (text.length == 0 || text.length >= sizeof copy) return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] == '\0' || strchr("xXpP(", text.bytes[i])) return false;
        if (text.bytes[i] != '_') copy[count++] = text.bytes[i];
    }
    copy[count] = '\0';
    *out = strtod(copy, &end);
    return end != copy && *end == '\0';
}

/* What int() makes of a text in a base. */
static bool read_whole(Text text, int64_t base, int64_t *out) {
    char copy[80], *end;
    size_t count = 0;
    text = text_strip(text, NULL, true, true);
    if (text.length == 0 || text.length >= sizeof copy || base < 2 || base > 36) return false;
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] != '_') copy[count++] = text.bytes[i];
    copy[count] = '\0';
    *out = strtoll(copy, &end, (int)base);
    return end != copy && *end == '\0' && *out != INT64_MAX && *out != INT64_MIN;
}

static Value filter_float(Run *r, const Args *a) {
    double real;
    if (a->self.kind == VALUE_UNDEFINED) return run_use(r, a->self);
    if (value_is_number(a->self)) return value_real(value_number(a->self));
    if (a->self.kind == VALUE_TEXT && read_real(a->self.text, &real)) return value_real(real);
    return a->at[0].kind == VALUE_ABSENT ? value_real(0) : a->at[0];
}

static Value filter_int(Run *r, const Args *a) {
    int64_t whole;
    double real = NAN;
    if (a->self.kind == VALUE_UNDEFINED) return run_use(r, a->self);
    if (value_is_whole(a->self)) return value_integer(value_whole(a->self));
    if (a->self.kind == VALUE_FLOAT) real = a->self.real;
    if (a->self.kind == VALUE_TEXT) {
        if (read_whole(a->self.text, argument_whole(r, a->at[1], 10), &whole))
            return value_integer(whole);
        if (!read_real(a->self.text, &real)) real = NAN;
    }
    if (fabs(real) < 9e18) return value_integer((int64_t)real);
    if (isfinite(real)) return run_fail(r, FERRY_UNSUPPORTED, "an integer does not fit 64 bits");
    return a->at[0].kind == VALUE_ABSENT ? value_integer(0) : a->at[0];
}

static Value filter_abs(Run *r, const Args *a) {
    if (a->self.kind == VALUE_FLOAT) return value_real(fabs(a->self.real));
    if (!value_is_whole(a->self))
        return RUN_FAIL(r, "abs takes a number, not %s", value_type(a->self));
    int64_t whole = value_whole(a->self);
    return whole < 0 ? value_binary(r, "-", value_integer(0), a->self) : value_integer(whole);
}

static Value filter_round(Run *r, const Args *a) {
    if (!value_is_number(a->self))
        return RUN_FAIL(r, "round takes a number, not %s", value_type(a->self));
    int64_t digits = argument_whole(r, a->at[0], 0);
    Text method = argument_text(r, a->at[1], "common");
    double value = value_number(a->self), scale = pow(10, (double)digits);
    if (text_is(method, "ceil")) return value_real(ceil(value * scale) / scale);
    if (text_is(method, "floor")) return value_real(floor(value * scale) / scale);
    if (!text_is(method, "common")) return RUN_FAIL(r, "round knows common, ceil and floor");
    if (digits < 0 || digits > 15)
        return run_fail(r, FERRY_UNSUPPORTED, "round to %lld digits is not supported",
                        (long long)digits);
    if (value_is_whole(a->self)) return value_integer(value_whole(a->self));
    char text[400]; /* rounds the exact decimal value, half to even, as Python does */
    snprintf(text, sizeof text, "%.*f", (int)digits, value);
    return value_real(strtod(text, NULL));
}

/* ---- JSON ---- */

static Value filter_tojson(Run *r, const Args *a) {
    JsonStyle style = {.ascii = argument_truth(a->at[0], false),
                       .sort = argument_truth(a->at[3], false)};
    Value indent = a->at[1];
    if (indent.kind == VALUE_TEXT) {
        style.indent = arena_string_n(&r->arena, indent.text.bytes, indent.text.length);
    } else if (indent.kind != VALUE_ABSENT && indent.kind != VALUE_NONE) {
        int64_t width = argument_whole(r, indent, 0);
        if (width > 64) return RUN_FAIL(r, "tojson with an indent of more than 64");
        char *spaces = run_alloc(r, 65, 1);
        if (!spaces) return indent;
        memset(spaces, ' ', width > 0 ? (size_t)width : 0);
        style.indent = spaces;
    }
    style.item_separator = style.indent ? (Text){",", 1} : (Text){", ", 2};
    style.key_separator = (Text){": ", 2};
    if (a->at[2].kind != VALUE_ABSENT && a->at[2].kind != VALUE_NONE) {
        List both = value_items(r, a->at[2]);
        if (both.count != 2) return RUN_FAIL(r, "separators of tojson are two strings");
        style.item_separator = argument_text(r, both.items[0], "");
        style.key_separator = argument_text(r, both.items[1], "");
    }
    Buffer out = {0};
    value_to_json(r, &out, a->self, &style, 0);
    return run_take(r, &out);
}

const Function template_filters[] = {
    {"upper", "", filter_upper},
    {"lower", "", filter_lower},
    {"capitalize", "", filter_capitalize},
    {"title", "", filter_title},
    {"trim", "chars", filter_trim},
    {"replace", "old new / count", filter_replace},
    {"format", NULL, filter_format},
    {"string", "", filter_string},
    {"safe", "", filter_safe},
    {"escape", "", filter_escape},
    {"e", "", filter_escape},
    {"default", "default_value boolean", filter_default},
    {"d", "default_value boolean", filter_default},
    {"indent", "width first blank", filter_indent},
    {"float", "default", filter_float},
    {"int", "default base", filter_int},
    {"abs", "", filter_abs},
    {"round", "precision method", filter_round},
    {"tojson", "ensure_ascii indent separators sort_keys", filter_tojson},
    {0},
};
