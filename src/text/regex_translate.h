/* What the parts of the translation of patterns share; regex_translate.c says what is translated. */
#ifndef TEXT_REGEX_TRANSLATE_H
#define TEXT_REGEX_TRANSLATE_H

#include "text/regex.h"

/* \w in a class. */
#define REGEX_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

enum { MAX_GROUPS = 256 };

typedef struct Translation {
    const char *at; /* in the pattern */
    Buffer *out;
    const char *problem; /* what is not supported */
    size_t atom;         /* where the last thing that can be repeated begins in `out` */
    bool counted;        /* it is followed by {n,m} */
    size_t groups[MAX_GROUPS], depth;
} Translation;

enum { SET_SIZE = 96 };

/* Copy a character as it is. */
void translate_char(Translation *t);

/* An escape that is no set. */
void translate_escape(Translation *t);

/* A class: what matches one character of it. */
void translate_class(Translation *t, Buffer *out, int depth);

/* What stands in a class for the set that the escape here means, such as \s; NULL when it means none.
 * `*negated`: all characters but those. */
const char *translate_set(Translation *t, bool *negated, char buffer[SET_SIZE]);

/* The same for the name in [:alpha:]; NULL when PCRE2 means the same by it. */
const char *translate_posix(const char *name, size_t length);

#endif
