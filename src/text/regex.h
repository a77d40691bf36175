/* Regular expressions of tokenizer.json. They are written in Oniguruma's Ruby syntax; what means
 * something else in PCRE2 is translated, and what cannot be is an error. */
#ifndef TEXT_REGEX_H
#define TEXT_REGEX_H

#include "base/buffer.h"
#include "text/settings.h"
#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Regex Regex;

/* Compile. NULL after a failure, which the settings keeps. */
Regex *regex_new(Settings *settings, const char *pattern);

/* The "pattern" of a component: {"Regex": "..."}, or {"String": "..."}, found as it is. */
Regex *regex_read(Settings *settings, const Doc *component);

void regex_free(Regex *regex);

/* A walk over all matches in a text, as Oniguruma's bindings for Rust walk. */
typedef struct RegexWalk {
    const Regex *regex;
    const char *text;
    size_t length, from;
    size_t last_end;   /* of the match before; SIZE_MAX: none */
    size_t begin, end; /* of the match */
    int problem;       /* PCRE2's code when matching failed */
} RegexWalk;

RegexWalk regex_walk(const Regex *regex, const char *text, size_t length);
bool regex_next(RegexWalk *walk);

/* "match limit exceeded" for a problem. */
ferry_status regex_problem(const RegexWalk *walk, const char *path, ferry_error *error);

/* Translate a pattern to PCRE2's syntax. NULL, or what is not supported. */
const char *regex_translate(const char *pattern, Buffer *out);

/* Does PCRE2 know this pattern? */
bool regex_is_known(const char *pattern);

#endif
