/* "%s of %d" % (a, b) and "{} of {x}".format(a, x=b). */
#include "text/template/run.h"

#include <stdio.h>

/* The conversion `spec`, with its letter at the end, of a value. */
static void convert(Run *r, Buffer *out, const char *spec, Value v) {
    char letter = spec[strlen(spec) - 1], text[400], wide[48];
    int length;
    if (v.kind == VALUE_UNDEFINED && letter != 's' && letter != 'r') {
        run_use(r, v);
        return;
    }
    if (letter == 's' || letter == 'r') {
        if (spec[1] != letter) {
            run_fail(r, FERRY_UNSUPPORTED, "widths of strings in a format (%s) are not supported",
                     spec);
            return;
        }
        (letter == 's' ? value_print : value_show)(r, out, v);
        return;
    }
    if (!value_is_number(v)) {
        RUN_FAIL(r, "the format %s takes a number, not %s", spec, value_type(v));
        return;
    }
    snprintf(wide, sizeof wide, "%.*s%s%c", (int)strlen(spec) - 1, spec,
             strchr("dixX", letter) ? "ll" : "", letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strchr("di", letter))
        length = snprintf(text, sizeof text, wide,
                          v.kind == VALUE_FLOAT ? (long long)v.real : (long long)value_whole(v));
    else if (strchr("xX", letter))
        length = snprintf(text, sizeof text, wide, (long long)value_whole(v));
    else
        length = snprintf(text, sizeof text, wide, value_number(v));
#pragma GCC diagnostic pop
    if (length < 0 || (size_t)length >= sizeof text)
        run_fail(r, FERRY_UNSUPPORTED, "the format %s is too wide", spec);
    else
        run_append(r, out, text, (size_t)length);
}

/* The length of a conversion after its "%": flags, width, precision, letter; 0 for another one. */
static size_t spec_length(const char *at, size_t left) {
    size_t n = 0;
    while (n < left && strchr("-+ 0#", at[n]) && at[n]) n++;
    while (n < left && at[n] >= '0' && at[n] <= '9') n++;
    if (n < left && at[n] == '.') n++;
    while (n < left && at[n] >= '0' && at[n] <= '9') n++;
    return n < left && n < 16 && at[n] && strchr("sdirfFeEgGxX", at[n]) ? n + 1 : 0;
}

Value text_format(Run *r, Text text, Value value) {
    List one = {&value, 1}, values = value.kind == VALUE_TUPLE ? value.list : one;
    size_t next = 0;
    Buffer out = {0};
    for (size_t i = 0; i < text.length && !run_failed(r);) {
        size_t left = text.length - i - 1;
        if (text.bytes[i] != '%') {
            run_append(r, &out, text.bytes + i++, 1);
        } else if (left && text.bytes[i + 1] == '%') {
            run_append_string(r, &out, "%");
            i += 2;
        } else {
            char spec[20] = "%";
            size_t length = spec_length(text.bytes + i + 1, left);
            if (!length) {
                run_fail(r, FERRY_UNSUPPORTED, "a format like %%%.*s is not supported",
                         left ? 1 : 0, text.bytes + i + 1);
            } else if (next == values.count) {
                RUN_FAIL(r, "not enough values for the format");
            } else {
                memcpy(spec + 1, text.bytes + i + 1, length);
                convert(r, &out, spec, values.items[next++]);
            }
            i += length + 1;
        }
    }
    /* Python takes what has items for a dict that the format may use by name. */
    bool by_name = value.kind == VALUE_DICT || value.kind == VALUE_LIST ||
                   value.kind == VALUE_UNDEFINED || value.kind == VALUE_RANGE;
    if (next < values.count && !by_name && !run_failed(r))
        RUN_FAIL(r, "not all values are used by the format");
    return run_take(r, &out);
}

/* What a replacement field of str.format() names. */
static Value field(Run *r, const Call *call, Text name, size_t *next) {
    size_t index = 0;
    bool digits = name.length > 0 && name.length < 6;
    for (size_t i = 0; i < name.length && digits; i++) {
        digits = name.bytes[i] >= '0' && name.bytes[i] <= '9';
        if (digits) index = index * 10 + (size_t)(name.bytes[i] - '0');
    }
    if (name.length == 0) index = (*next)++;
    if (name.length == 0 || digits)
        return index < call->count ? call->items[index]
                                   : RUN_FAIL(r, "format() has no argument %zu", index);
    for (size_t i = 0; i < call->named_count; i++)
        if (text_is(name, call->named[i].name)) return call->named[i].value;
    return run_fail(r, FERRY_UNSUPPORTED, "format() cannot fill {%.*s}",
                    (int)(name.length < 40 ? name.length : 40), name.bytes);
}

Value text_format_call(Run *r, const Args *a) {
    Text text = a->self.text;
    size_t next = 0;
    Buffer out = {0};
    for (size_t i = 0; i < text.length && !run_failed(r); i++) {
        char c = text.bytes[i], after = i + 1 < text.length ? text.bytes[i + 1] : '\0';
        if (c != '{' && c != '}') {
            run_append(r, &out, &c, 1);
        } else if (after == c) {
            run_append(r, &out, &c, 1);
            i++;
        } else {
            const char *end = c == '{' ? memchr(text.bytes + i, '}', text.length - i) : NULL;
            if (!end) {
                RUN_FAIL(r, "a single %c in a format", c);
                break;
            }
            Text name = {text.bytes + i + 1, (size_t)(end - text.bytes) - i - 1};
            Value v = field(r, a->call, name, &next);
            if (!run_failed(r)) value_print(r, &out, v);
            i = (size_t)(end - text.bytes);
        }
    }
    return run_take(r, &out);
}
