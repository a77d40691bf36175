/* The tokens of a Jinja template, as jinja2 cuts it in the environment of Transformers: trim_blocks and
 * lstrip_blocks, which take the newline after a block and the blanks before one. */
#ifndef TEMPLATE_TOKEN_H
#define TEMPLATE_TOKEN_H

#include "base/arena.h"
#include <ferry/status.h>
#include <stdint.h>

typedef enum TokenKind {
    TOKEN_DATA, /* text between the tags */
    TOKEN_VARIABLE_BEGIN,
    TOKEN_VARIABLE_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_STRING, /* without its quotes, unescaped */
    TOKEN_INTEGER,
    TOKEN_FLOAT,
    TOKEN_OPERATOR,
    TOKEN_END,
} TokenKind;

typedef struct Token {
    TokenKind kind;
    unsigned line;
    const char *text; /* not terminated */
    size_t length;
    int64_t integer;
    double real;
} Token;

/* Which template, for messages. */
typedef struct TemplateName {
    const char *path;
    const char
        *part; /* the place in the file that holds it, such as "chat_template"; NULL: the file */
} TemplateName;

/* "line 3: ...", with the name; returns `status`. */
ferry_status template_fail(const TemplateName *name, unsigned line, ferry_error *error,
                           ferry_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
ferry_status template_vfail(const TemplateName *name, unsigned line, ferry_error *error,
                            ferry_status status, const char *format, va_list args);

/* The tokens of a text, of well-formed UTF-8, the last one TOKEN_END; they point into the arena. */
ferry_status template_tokens(const TemplateName *name, Arena *arena, const char *text,
                             size_t length, const Token **out, ferry_error *error);

#endif
