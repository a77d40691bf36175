#include "text/template/token.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "text/template/text.h"
#include "text/unicode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Lexer {
    const TemplateName *name;
    Arena *arena;
    ferry_error *error;
    ferry_status status;
    const char *text;
    size_t length, at;
    unsigned line;
    VEC(Token) tokens;
    VEC(char) open; /* the closing brackets that are due */
} Lexer;

ferry_status template_vfail(const TemplateName *name, unsigned line, ferry_error *error,
                            ferry_status status, const char *format, va_list args) {
    char message[sizeof error->message];
    vsnprintf(message, sizeof message, format, args);
    if (name->part)
        return error_set(error, status, name->path, "line %u of %s: %s", line, name->part, message);
    return error_set(error, status, name->path, "line %u: %s", line, message);
}

ferry_status template_fail(const TemplateName *name, unsigned line, ferry_error *error,
                           ferry_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    template_vfail(name, line, error, status, format, args);
    va_end(args);
    return status;
}

#define FAIL(l, ...)                                                                               \
    ((l)->status = template_fail((l)->name, (l)->line, (l)->error, FERRY_BAD_FORMAT, __VA_ARGS__))

static bool starts(const Lexer *l, size_t at, const char *with) {
    size_t length = strlen(with);
    return at <= l->length && l->length - at >= length && memcmp(l->text + at, with, length) == 0;
}

static Token *push(Lexer *l, TokenKind kind, const char *text, size_t length) {
    VEC_PUSH(&l->tokens, (Token){.kind = kind, .line = l->line, .text = text, .length = length});
    return l->tokens.failed ? NULL : &l->tokens.items[l->tokens.count - 1];
}

/* Go to `to`, counting lines. */
static void advance(Lexer *l, size_t to) {
    for (; l->at < to; l->at++) l->line += l->text[l->at] == '\n';
}

static size_t skip_space(const Lexer *l, size_t at) {
    while (at < l->length && text_is_space(utf8_get(l->text + at))) at += utf8_size(l->text[at]);
    return at;
}

/* Where the text from the current place to `end` stops, when a tag with this sign follows. */
static size_t data_end(const Lexer *l, size_t end, char sign, bool variable, bool line_starting) {
    if (sign == '-') {
        while (end > l->at) {
            size_t before = utf8_before(l->text, end);
            if (!text_is_space(utf8_get(l->text + before))) break;
            end = before;
        }
        return end;
    }
    if (sign == '+' || variable) return end;
    size_t start = end;
    while (start > l->at) {
        size_t before = utf8_before(l->text, start);
        if (l->text[before] == '\n' || !text_is_space(utf8_get(l->text + before))) break;
        start = before;
    }
    bool at_line = start > l->at ? l->text[start - 1] == '\n' : line_starting;
    return at_line ? start : end;
}

/* The end of a tag `close` at `at`, with its sign and the blanks that it takes; 0 when there is none. */
static size_t tag_end(const Lexer *l, size_t at, const char *close) {
    char signs[2] = {at < l->length ? l->text[at] : '\0', '\0'};
    bool variable = strcmp(close, "}}") == 0;
    if (*signs == '-' && starts(l, at + 1, close)) return skip_space(l, at + 1 + strlen(close));
    if (*signs == '+' && !variable && starts(l, at + 1, close)) return at + 1 + strlen(close);
    if (!starts(l, at, close)) return 0;
    at += strlen(close);
    return !variable && at < l->length && l->text[at] == '\n' ? at + 1 : at;
}

/* {% NAME %} at `at`; `*inner` is where the tag's end mark begins. 0 when it is something else. */
static size_t named_block(const Lexer *l, size_t at, const char *name, size_t *inner) {
    if (!starts(l, at, "{%")) return 0;
    at += 2;
    if (at < l->length && (l->text[at] == '-' || l->text[at] == '+')) at++;
    at = skip_space(l, at);
    if (!starts(l, at, name)) return 0;
    *inner = skip_space(l, at + strlen(name));
    return tag_end(l, *inner, "%}");
}

static void lex_raw(Lexer *l, size_t inner) {
    /* The tag that opens it takes blanks for "-" only. */
    bool dash = l->text[inner] == '-';
    advance(l, dash ? skip_space(l, inner + 3) : inner + 2);
    bool line_starting = l->text[l->at - 1] == '\n';
    for (size_t at = l->at; at < l->length; at++) {
        size_t end = named_block(l, at, "endraw", &inner);
        if (!end) continue;
        size_t stop = data_end(l, at, l->text[at + 2], false, line_starting);
        if (stop > l->at) push(l, TOKEN_DATA, l->text + l->at, stop - l->at);
        advance(l, end);
        return;
    }
    FAIL(l, "{%% raw %%} has no {%% endraw %%}");
}

static void lex_comment(Lexer *l) {
    for (size_t at = l->at; at < l->length; at++) {
        size_t end = tag_end(l, at, "#}");
        if (!end) continue;
        advance(l, end);
        return;
    }
    FAIL(l, "a comment {# has no #}");
}

/* ---- inside of tags ---- */

static bool is_digit(const Lexer *l, size_t at) {
    return at < l->length && l->text[at] >= '0' && l->text[at] <= '9';
}

static size_t digits(const Lexer *l, size_t at) {
    while (is_digit(l, at) || (at < l->length && l->text[at] == '_' && is_digit(l, at + 1))) at++;
    return at;
}

static void lex_number(Lexer *l) {
    size_t start = l->at, end = digits(l, start);
    int base = 10;
    bool real = false;
    char letter = end < l->length ? l->text[end] | 32 : 0;
    if (end == start + 1 && l->text[start] == '0' &&
        (letter == 'x' || letter == 'o' || letter == 'b')) {
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
        start = ++end;
        while (end < l->length && (text_digit(l->text[end]) < base || l->text[end] == '_')) end++;
    } else if (start == 0 || l->text[start - 1] != '.') {
        if (end < l->length && l->text[end] == '.' && is_digit(l, end + 1)) {
            end = digits(l, end + 1);
            real = true;
        }
        if (end < l->length && (l->text[end] | 32) == 'e') {
            size_t from = end + 1;
            if (from < l->length && (l->text[from] == '+' || l->text[from] == '-')) from++;
            if (is_digit(l, from)) {
                end = digits(l, from);
                real = true;
            }
        }
    }
    char digits_only[400];
    size_t count = 0;
    for (size_t i = start; i < end && count < sizeof digits_only - 1; i++)
        if (l->text[i] != '_') digits_only[count++] = l->text[i];
    digits_only[count] = '\0';
    Token *token = push(l, real ? TOKEN_FLOAT : TOKEN_INTEGER, l->text + l->at, end - l->at);
    if (!token) return;
    errno = 0;
    if (real)
        token->real = strtod(digits_only, NULL);
    else
        token->integer = strtoll(digits_only, NULL, base);
    if (count == 0 || count == sizeof digits_only - 1 || (!real && errno))
        FAIL(l, "the number %.40s does not fit 64 bits", digits_only);
    advance(l, end);
}

/* Hexadecimal digits of an escape into `out`; returns how many characters it took, 0 for a bad one. */
static size_t unescape_code(const char *text, size_t left, size_t count, Buffer *out) {
    uint32_t code = 0;
    if (left < count) return 0;
    for (size_t i = 0; i < count; i++) {
        int digit = text_digit(text[i]);
        if (digit > 15) return 0;
        code = code << 4 | (uint32_t)digit;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
    char bytes[4];
    buffer_append(out, bytes, utf8_put(code, bytes));
    return count;
}

/* What stands for `text`, after a backslash; returns how many characters it took, 0 for a bad one. */
static size_t unescape(const char *text, size_t left, Buffer *out) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *simple = strchr(from, *text);
    size_t taken;
    char c = *text;
    if (simple) {
        buffer_append(out, to + (simple - from), 1);
        return 1;
    }
    if (c == '\n') return 1;
    if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        for (taken = 0; taken < 3 && taken < left && text[taken] >= '0' && text[taken] <= '7';
             taken++)
            code = code * 8 + (uint32_t)(text[taken] - '0');
        char bytes[4];
        buffer_append(out, bytes, utf8_put(code, bytes));
        return taken;
    }
    size_t count = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c == 'N') return 0;
    if (count) {
        taken = unescape_code(text + 1, left - 1, count, out);
        return taken ? taken + 1 : 0;
    }
    buffer_append(out, "\\", 1);
    buffer_append(out, text, 1);
    return 1;
}

static void lex_string(Lexer *l) {
    char quote = l->text[l->at];
    size_t end = l->at + 1;
    bool escaped = false;
    while (end < l->length && l->text[end] != quote) {
        escaped |= l->text[end] == '\\';
        end += l->text[end] == '\\' ? 2 : 1;
    }
    if (end >= l->length) {
        FAIL(l, "a string %c has no end", quote);
        return;
    }
    const char *text = l->text + l->at + 1;
    size_t length = end - l->at - 1;
    if (escaped) {
        Buffer out = {0};
        for (size_t i = 0; i < length && l->status == FERRY_OK;) {
            if (text[i] != '\\') {
                buffer_append(&out, text + i++, 1);
                continue;
            }
            size_t taken = unescape(text + i + 1, length - i - 1, &out);
            if (!taken) FAIL(l, "the escape \\%c in a string is not understood", text[i + 1]);
            i += taken + 1;
        }
        length = out.length;
        text = arena_copy(l->arena, out.length ? out.bytes : (const void *)"", length);
        if (out.failed) l->arena->failed = true;
        buffer_free(&out);
    }
    push(l, TOKEN_STRING, text, length);
    advance(l, end + 1);
}

static void lex_operator(Lexer *l) {
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!starts(l, l->at, operators[i])) continue;
        char c = *operators[i];
        if (c == '(' || c == '[' || c == '{') VEC_PUSH(&l->open, c == '(' ? ')' : (char)(c + 2));
        if (c == ')' || c == ']' || c == '}') {
            if (l->open.count == 0 || l->open.items[--l->open.count] != c) {
                FAIL(l, "'%c' closes nothing", c);
                return;
            }
        }
        push(l, TOKEN_OPERATOR, operators[i], strlen(operators[i]));
        advance(l, l->at + strlen(operators[i]));
        return;
    }
    FAIL(l, "unexpected character '%.*s'", (int)utf8_size(l->text[l->at]), l->text + l->at);
}

static size_t name_end(const Lexer *l, size_t at) {
    while (at < l->length && char_is_word(utf8_get(l->text + at))) at += utf8_size(l->text[at]);
    return at;
}

static void lex_tag(Lexer *l, const char *close, TokenKind end_kind) {
    while (l->status == FERRY_OK && l->at < l->length) {
        size_t end = l->open.count ? 0 : tag_end(l, l->at, close);
        if (end) {
            push(l, end_kind, l->text + l->at, 0);
            advance(l, end);
            return;
        }
        size_t word = name_end(l, l->at);
        if (skip_space(l, l->at) > l->at) {
            advance(l, skip_space(l, l->at));
        } else if (is_digit(l, l->at)) {
            lex_number(l);
        } else if (word > l->at) {
            push(l, TOKEN_NAME, l->text + l->at, word - l->at);
            advance(l, word);
        } else if (l->text[l->at] == '\'' || l->text[l->at] == '"') {
            lex_string(l);
        } else {
            lex_operator(l);
        }
    }
}

/* ---- the whole ---- */

static void lex(Lexer *l) {
    while (l->status == FERRY_OK && l->at < l->length) {
        bool line_starting = l->at == 0 || l->text[l->at - 1] == '\n';
        size_t tag = l->at;
        while (tag + 1 < l->length &&
               !(l->text[tag] == '{' && strchr("{%#", l->text[tag + 1]) && l->text[tag + 1]))
            tag++;
        if (tag + 1 >= l->length) {
            push(l, TOKEN_DATA, l->text + l->at, l->length - l->at);
            break;
        }
        char kind = l->text[tag + 1], sign = tag + 2 < l->length ? l->text[tag + 2] : '\0';
        size_t inner, stop = data_end(l, tag, sign, kind == '{', line_starting);
        if (stop > l->at) push(l, TOKEN_DATA, l->text + l->at, stop - l->at);
        advance(l, tag);
        if (kind == '%' && named_block(l, tag, "raw", &inner) && l->text[inner] != '+') {
            lex_raw(l, inner);
            continue;
        }
        advance(l, tag + (sign == '-' || sign == '+' ? 3 : 2));
        if (kind == '#') {
            lex_comment(l);
        } else {
            push(l, kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_VARIABLE_BEGIN, l->text + tag, 0);
            lex_tag(l, kind == '%' ? "%}" : "}}",
                    kind == '%' ? TOKEN_BLOCK_END : TOKEN_VARIABLE_END);
        }
    }
    push(l, TOKEN_END, l->text + l->length, 0);
}

/* With "\n" for every end of a line, and without the last one. */
static char *normalize(Arena *arena, const char *text, size_t *length) {
    char *out = arena_alloc(arena, *length + 1);
    size_t count = 0;
    for (size_t i = 0; out && i < *length; i++) {
        if (text[i] == '\r' && i + 1 < *length && text[i + 1] == '\n') continue;
        out[count++] = text[i] == '\r' ? '\n' : text[i];
    }
    *length = count - (count > 0 && out[count - 1] == '\n');
    return out;
}

ferry_status template_tokens(const TemplateName *name, Arena *arena, const char *text,
                             size_t length, const Token **out, ferry_error *error) {
    Lexer l = {.name = name, .arena = arena, .error = error, .length = length, .line = 1};
    l.text = normalize(arena, text, &l.length);
    if (l.text) lex(&l);
    *out = l.status == FERRY_OK && l.text && !l.tokens.failed
               ? arena_copy(arena, l.tokens.items, l.tokens.count * sizeof(Token))
               : NULL;
    bool failed = l.tokens.failed || l.open.failed || arena->failed;
    VEC_FREE(&l.tokens);
    VEC_FREE(&l.open);
    if (l.status != FERRY_OK) return l.status;
    return failed ? error_memory(error, name->path, 0) : FERRY_OK;
}
