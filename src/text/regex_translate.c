/* From Oniguruma's Ruby syntax to PCRE2's. The same in both: most of it. Different:
 *
 *   \s \d \w \h \b and their opposites     Unicode properties that PCRE2 defines otherwise
 *   \p{Han}, \p{Letter}, \p{^L}            scripts, long names of categories, negation
 *   [[:alpha:]]                            Unicode properties
 *   [a[b]], [a&&b]                         unions and intersections of classes
 *   X{1,3}+                                repeats the repetition; possessive in PCRE2
 *   X{,3}                                  X{0,3}
 *   (?m)                                   (?s)
 *   \u0041                                 \x{0041}
 */
#include "text/regex_translate.h"
#include "text/unicode.h"

#include <ctype.h>
#include <string.h>

/* Outside of classes, Oniguruma counts the superscripts and fractions of Latin-1 as parts of words. */
#define LONE_WORD REGEX_WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

static void put(Translation *t, const char *text) {
    buffer_text(t->out, text);
}

static void take_set_or_escape(Translation *t) {
    if (t->at[1] == 'X') t->problem = "\\X, which PCRE2 defines otherwise";
    static const char *const known[][2] = {
        {"\\w", "[" LONE_WORD "]"},
        {"\\W", "[^" LONE_WORD "]"},
        {"\\b",
         "(?:(?<=[" LONE_WORD "])(?![" LONE_WORD "])|(?<![" LONE_WORD "])(?=[" LONE_WORD "]))"},
        {"\\B",
         "(?:(?<=[" LONE_WORD "])(?=[" LONE_WORD "])|(?<![" LONE_WORD "])(?![" LONE_WORD "]))"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(t->at, known[i][0], 2) != 0) continue;
        put(t, known[i][1]);
        t->at += 2;
        return;
    }
    char buffer[SET_SIZE];
    bool negated = false;
    const char *set = translate_set(t, &negated, buffer);
    if (!set) {
        translate_escape(t);
    } else {
        put(t, negated ? "[^" : "[");
        put(t, set);
        put(t, "]");
    }
}

/* "(" and what belongs to it: (?:, (?<name>, (?i-m:, ... */
static void take_open(Translation *t) {
    if (t->depth == MAX_GROUPS) {
        t->problem = "groups nested too deeply";
        return;
    }
    t->groups[t->depth++] = t->out->length;
    translate_char(t);
    if (*t->at != '?') return;
    translate_char(t);
    size_t flags = strspn(t->at, "imx-");
    if (flags && (t->at[flags] == ':' || t->at[flags] == ')')) {
        for (; flags; flags--, t->at++) put(t, (char[]){*t->at == 'm' ? 's' : *t->at, '\0'});
    }
    if (*t->at && *t->at != ')' && *t->at != '(') translate_char(t);
}

/* {n}, {n,}, {,m} or {n,m} at `t->at`; its length, or 0. */
static size_t counted_length(const char *at) {
    const char *p = at + 1;
    while (isdigit((unsigned char)*p)) p++;
    bool digits = p > at + 1;
    if (*p == ',') {
        p++;
        while (isdigit((unsigned char)*p)) {
            p++;
            digits = true;
        }
    }
    return *p == '}' && digits ? (size_t)(p + 1 - at) : 0;
}

static void take_counted(Translation *t, size_t length) {
    put(t, t->at[1] == ',' ? "{0" : "{");
    buffer_append(t->out, t->at + 1, length - 1);
    t->at += length;
    t->counted = true;
}

/* X{1,3}+: repeat the repetition. */
static void take_repeated(Translation *t) {
    Buffer tail = {0};
    buffer_append(&tail, t->out->bytes + t->atom, t->out->length - t->atom);
    t->out->length = t->atom;
    buffer_format(t->out, "(?:%s)+", buffer_string(&tail));
    t->out->failed |= tail.failed;
    buffer_free(&tail);
    t->at++;
}

const char *regex_translate(const char *pattern, Buffer *out) {
    Translation t = {.at = pattern, .out = out};
    while (*t.at && !t.problem && !out->failed) {
        bool counted = t.counted;
        t.counted = false;
        size_t length = *t.at == '{' ? counted_length(t.at) : 0;
        if (length) {
            take_counted(&t, length);
        } else if (*t.at == '+' && counted) {
            take_repeated(&t);
        } else if (strchr("?*+|^$", *t.at)) {
            translate_char(&t);
        } else if (*t.at == ')') {
            if (t.depth) t.atom = t.groups[--t.depth];
            translate_char(&t);
        } else if (*t.at == '(') {
            take_open(&t);
        } else {
            t.atom = out->length;
            if (*t.at == '[')
                translate_class(&t, out, 0);
            else if (*t.at == '\\')
                take_set_or_escape(&t);
            else
                translate_char(&t);
        }
    }
    return t.problem;
}
