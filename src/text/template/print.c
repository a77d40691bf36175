/* Values as text: str(), repr() and json.dumps() of Python. */
#include "text/template/run.h"
#include "text/template/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest digits that read back as the same number, as Python shows it. */
static void print_real(Run *r, Buffer *out, double real) {
    char text[40], digits[40];
    int precision = 0, exponent;
    if (!isfinite(real)) {
        run_append_string(r, out, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
        return;
    }
    do snprintf(text, sizeof text, "%.*e", precision, real);
    while (strtod(text, NULL) != real && precision++ < 17);
    const char *e = strchr(text, 'e');
    exponent = atoi(e + 1);
    int count = 0;
    for (const char *c = text; c < e; c++)
        if (*c >= '0' && *c <= '9') digits[count++] = *c;
    digits[count] = '\0';
    Buffer b = {0};
    if (text[0] == '-') buffer_text(&b, "-");
    if (exponent < -4 || exponent >= 16) {
        buffer_append(&b, digits, 1);
        if (count > 1) buffer_format(&b, ".%s", digits + 1);
        buffer_format(&b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        buffer_format(&b, "0.%.*s%s", -exponent - 1, "0000", digits);
    } else if (count <= exponent + 1) {
        buffer_format(&b, "%s%.*s.0", digits, exponent + 1 - count, "0000000000000000");
    } else {
        buffer_format(&b, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    }
    run_append_text(r, out, (Text){buffer_string(&b), b.length});
    if (b.failed) run_fail(r, FERRY_OUT_OF_MEMORY, "out of memory");
    buffer_free(&b);
}

static void show_text(Run *r, Buffer *out, Text text) {
    bool has_single = memchr(text.bytes, '\'', text.length),
         has_double = memchr(text.bytes, '"', text.length);
    char quote = has_single && !has_double ? '"' : '\'';
    run_append(r, out, &quote, 1);
    for (size_t i = 0; i < text.length && !run_failed(r); i += utf8_size(text.bytes[i])) {
        uint32_t c = utf8_get(text.bytes + i);
        char escape[12] = "";
        if (c == (unsigned char)quote || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", (int)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (!text_is_printable(c))
            snprintf(escape, sizeof escape,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
        if (*escape)
            run_append_string(r, out, escape);
        else
            run_append(r, out, text.bytes + i, utf8_size(text.bytes[i]));
    }
    run_append(r, out, &quote, 1);
}

static void show_list(Run *r, Buffer *out, List list, const char *open, const char *close) {
    run_append_string(r, out, open);
    for (size_t i = 0; i < list.count && !run_failed(r); i++) {
        if (i) run_append_string(r, out, ", ");
        value_show(r, out, list.items[i]);
    }
    run_append_string(r, out, close);
}

static void show_dict(Run *r, Buffer *out, const Dict *dict) {
    run_append_string(r, out, "{");
    for (size_t i = 0; i < dict->count && !run_failed(r); i++) {
        if (i) run_append_string(r, out, ", ");
        value_show(r, out, dict->pairs[i].key);
        run_append_string(r, out, ": ");
        value_show(r, out, dict->pairs[i].value);
    }
    run_append_string(r, out, "}");
}

void value_show(Run *r, Buffer *out, Value v) {
    char text[40];
    if (!run_step(r, 1) || !run_enter(r)) return;
    switch (v.kind) {
    case VALUE_ABSENT:
    case VALUE_UNDEFINED: run_append_string(r, out, "Undefined"); break;
    case VALUE_NONE: run_append_string(r, out, "None"); break;
    case VALUE_BOOL: run_append_string(r, out, v.boolean ? "True" : "False"); break;
    case VALUE_INTEGER:
        snprintf(text, sizeof text, "%lld", (long long)v.integer);
        run_append_string(r, out, text);
        break;
    case VALUE_FLOAT: print_real(r, out, v.real); break;
    case VALUE_TEXT: show_text(r, out, v.text); break;
    case VALUE_LIST: show_list(r, out, v.list, "[", "]"); break;
    case VALUE_TUPLE: show_list(r, out, v.list, "(", v.list.count == 1 ? ",)" : ")"); break;
    case VALUE_DICT: show_dict(r, out, v.dict); break;
    default: RUN_FAIL(r, "a %s cannot be printed", value_type(v)); break;
    }
    r->depth--;
}

void value_print(Run *r, Buffer *out, Value v) {
    if (v.kind == VALUE_TEXT)
        run_append_text(r, out, v.text);
    else if (v.kind != VALUE_UNDEFINED)
        value_show(r, out, v);
}

Value value_to_text(Run *r, Value v) {
    Buffer out = {0};
    if (v.kind == VALUE_TEXT) return v;
    value_print(r, &out, v);
    return run_take(r, &out);
}

/* ---- JSON ---- */

static void json_text(Run *r, Buffer *out, Text text, bool ascii) {
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    run_append_string(r, out, "\"");
    for (size_t i = 0; i < text.length && !run_failed(r); i += utf8_size(text.bytes[i])) {
        uint32_t c = utf8_get(text.bytes + i);
        const char *simple = c && c < 0x80 ? strchr(from, (int)c) : NULL;
        char escape[16] = "";
        if (simple)
            snprintf(escape, sizeof escape, "\\%c", to[simple - from]);
        else if (c >= 0x10000 && ascii)
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                     0xdc00 + ((c - 0x10000) & 0x3ff));
        else if (c < 0x20 || (c >= 0x7f && ascii && c != 0x7f))
            snprintf(escape, sizeof escape, "\\u%04x", c);
        if (*escape)
            run_append_string(r, out, escape);
        else
            run_append(r, out, text.bytes + i, utf8_size(text.bytes[i]));
    }
    run_append_string(r, out, "\"");
}

static void json_break(Run *r, Buffer *out, const JsonStyle *style, unsigned level) {
    if (!style->indent) return;
    run_append_string(r, out, "\n");
    for (unsigned i = 0; i < level; i++) run_append_string(r, out, style->indent);
}

static void json_number(Run *r, Buffer *out, double real) {
    if (isfinite(real))
        print_real(r, out, real);
    else
        run_append_string(r, out, isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity");
}

static void json_key(Run *r, Buffer *out, Value key, const JsonStyle *style) {
    if (key.kind == VALUE_TEXT) {
        json_text(r, out, key.text, style->ascii);
    } else if (value_is_number(key) || key.kind == VALUE_NONE) {
        run_append_string(r, out, "\"");
        value_to_json(r, out, key, style, 0);
        run_append_string(r, out, "\"");
    } else {
        RUN_FAIL(r, "%s cannot be a key in JSON", value_type(key));
    }
}

static void json_list(Run *r, Buffer *out, List list, const JsonStyle *style, unsigned level) {
    run_append_string(r, out, "[");
    for (size_t i = 0; i < list.count && !run_failed(r); i++) {
        if (i) run_append_text(r, out, style->item_separator);
        json_break(r, out, style, level + 1);
        value_to_json(r, out, list.items[i], style, level + 1);
    }
    if (list.count) json_break(r, out, style, level);
    run_append_string(r, out, "]");
}

static void json_dict(Run *r, Buffer *out, const Dict *dict, const JsonStyle *style,
                      unsigned level) {
    const Pair *pairs = style->sort ? run_sorted(r, dict->pairs, dict->count, false) : dict->pairs;
    run_append_string(r, out, "{");
    for (size_t i = 0; i < dict->count && !run_failed(r); i++) {
        if (i) run_append_text(r, out, style->item_separator);
        json_break(r, out, style, level + 1);
        json_key(r, out, pairs[i].key, style);
        run_append_text(r, out, style->key_separator);
        value_to_json(r, out, pairs[i].value, style, level + 1);
    }
    if (dict->count) json_break(r, out, style, level);
    run_append_string(r, out, "}");
}

void value_to_json(Run *r, Buffer *out, Value v, const JsonStyle *style, unsigned level) {
    if (!run_step(r, 1) || !run_enter(r)) return;
    switch (v.kind) {
    case VALUE_NONE: run_append_string(r, out, "null"); break;
    case VALUE_BOOL: run_append_string(r, out, v.boolean ? "true" : "false"); break;
    case VALUE_INTEGER: value_show(r, out, v); break;
    case VALUE_FLOAT: json_number(r, out, v.real); break;
    case VALUE_TEXT: json_text(r, out, v.text, style->ascii); break;
    case VALUE_LIST:
    case VALUE_TUPLE: json_list(r, out, v.list, style, level); break;
    case VALUE_DICT: json_dict(r, out, v.dict, style, level); break;
    default: RUN_FAIL(r, "%s cannot be written as JSON", value_type(v)); break;
    }
    r->depth--;
}
