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
#include "text/regex.h"
#include "text/unicode.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SPACE "\\p{White_Space}"
#define WORD  "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
/* Outside of classes, Oniguruma counts the superscripts and fractions of Latin-1 as parts of words. */
#define LONE_WORD WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define GRAPH     "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

enum { MAX_GROUPS = 256 };

typedef struct Translation {
    const char *at;
    Buffer *out;
    const char *problem;
    size_t atom;  /* where the last thing that can be repeated begins in `out` */
    bool counted; /* it is followed by {n,m} */
    size_t groups[MAX_GROUPS], depth;
} Translation;

static void put(Translation *t, const char *text) {
    buffer_text(t->out, text);
}

/* Copy a character as it is. */
static void take(Translation *t) {
    size_t size = utf8_size(*t->at);
    buffer_append(t->out, t->at, size);
    t->at += size;
}

/* ---- properties ---- */

enum { POSIX_NAMES = 11 }; /* the first of them are also names in brackets */

static const char *const names[][2] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"alpha", "\\p{Alphabetic}"},
    {"digit", "\\p{Nd}"},
    {"lower", "\\p{Lowercase}"},
    {"space", SPACE},
    {"upper", "\\p{Uppercase}"},
    {"word", WORD},
    {"xdigit", "0-9A-Fa-f"},
    {"punct", "\\p{P}\\p{S}"},
    {"graph", GRAPH},
    {"print", GRAPH "\\p{Zs}"},
    {"letter", "\\p{L}"},
    {"casedletter", "\\p{L&}"},
    {"uppercaseletter", "\\p{Lu}"},
    {"lowercaseletter", "\\p{Ll}"},
    {"titlecaseletter", "\\p{Lt}"},
    {"modifierletter", "\\p{Lm}"},
    {"otherletter", "\\p{Lo}"},
    {"mark", "\\p{M}"},
    {"nonspacingmark", "\\p{Mn}"},
    {"spacingmark", "\\p{Mc}"},
    {"enclosingmark", "\\p{Me}"},
    {"number", "\\p{N}"},
    {"decimalnumber", "\\p{Nd}"},
    {"letternumber", "\\p{Nl}"},
    {"othernumber", "\\p{No}"},
    {"punctuation", "\\p{P}"},
    {"connectorpunctuation", "\\p{Pc}"},
    {"dashpunctuation", "\\p{Pd}"},
    {"openpunctuation", "\\p{Ps}"},
    {"closepunctuation", "\\p{Pe}"},
    {"initialpunctuation", "\\p{Pi}"},
    {"finalpunctuation", "\\p{Pf}"},
    {"otherpunctuation", "\\p{Po}"},
    {"symbol", "\\p{S}"},
    {"mathsymbol", "\\p{Sm}"},
    {"currencysymbol", "\\p{Sc}"},
    {"modifiersymbol", "\\p{Sk}"},
    {"othersymbol", "\\p{So}"},
    {"separator", "\\p{Z}"},
    {"spaceseparator", "\\p{Zs}"},
    {"lineseparator", "\\p{Zl}"},
    {"paragraphseparator", "\\p{Zp}"},
    {"other", "\\p{C}"},
    {"control", "\\p{Cc}"},
    {"format", "\\p{Cf}"},
    {"surrogate", "\\p{Cs}"},
    {"privateuse", "\\p{Co}"},
    {"unassigned", "\\p{Cn}"},
    {"any", "\\x{0}-\\x{10ffff}"},
};

/* What stands in a class for a property; NULL when there is none of that name. */
static const char *property(const char *name, size_t length, char out[96]) {
    char plain[64];
    size_t count = 0;
    for (size_t i = 0; i < length && count < sizeof plain - 1; i++) {
        if (isalnum((unsigned char)name[i]) || name[i] == '&')
            plain[count++] = (char)tolower((unsigned char)name[i]);
    }
    plain[count] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i][0], plain) == 0) return names[i][1];
    }
    /* A script before anything else: PCRE2 takes a bare \p{Han} for the script's extensions. */
    if (length > 64) return NULL;
    for (int bare = count <= 2; bare < 2; bare++) {
        snprintf(out, 96, "\\p{%s%.*s}", bare ? "" : "sc:", (int)length, name);
        if (regex_is_known(out)) return out;
    }
    return NULL;
}

/* The set behind a backslash at `t->at`, NULL when it is no set. `*negated` says which side. */
static const char *escaped_set(Translation *t, bool *negated, char buffer[96]) {
    static const char *const sets[][2] = {
        {"s", SPACE}, {"d", "\\p{Nd}"}, {"w", WORD}, {"h", "0-9A-Fa-f"}};
    char letter = t->at[1];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (tolower((unsigned char)letter) != *sets[i][0]) continue;
        *negated = isupper((unsigned char)letter);
        t->at += 2;
        return sets[i][1];
    }
    if (tolower((unsigned char)letter) != 'p' || t->at[2] != '{') return NULL;
    const char *name = t->at + 3, *end = strchr(name, '}');
    *negated = letter == 'P';
    if (end && *name == '^') {
        *negated = !*negated;
        name++;
    }
    const char *set = end ? property(name, (size_t)(end - name), buffer) : NULL;
    if (!set) t->problem = "a property that is not known";
    t->at = end ? end + 1 : t->at + strlen(t->at);
    return set ? set : SPACE;
}

/* An escape that is no set, at `t->at`. */
static void take_escape(Translation *t) {
    if (t->at[1] == 'u') {
        size_t digits = 0;
        while (digits < 4 && isxdigit((unsigned char)t->at[2 + digits])) digits++;
        buffer_format(t->out, "\\x{%.*s}", (int)digits, t->at + 2);
        t->at += 2 + digits;
        return;
    }
    bool hexadecimal = t->at[1] == 'x' && t->at[2] == '{';
    take(t);
    if (*t->at) take(t);
    while (hexadecimal && *t->at && t->at[-1] != '}') take(t);
}

/* ---- classes ---- */

enum { MAX_NESTING = 8 };

/* A class, or a part of one: what fits into one pair of PCRE2's brackets, and what does not, as
 * alternatives. */
typedef struct Union {
    Buffer items;
    Buffer others; /* "|[^\w]|..." */
    bool negated;  /* holds a negated class */
} Union;

static void free_union(Union *u) {
    buffer_free(&u->items);
    buffer_free(&u->others);
}

/* A single property can be negated where it stands. */
static bool is_single(const char *set) {
    return strncmp(set, "\\p{", 3) == 0 && !strchr(set, '}')[1];
}

static void put_set(Union *u, const char *set, bool negated) {
    if (!negated)
        buffer_text(&u->items, set);
    else if (is_single(set))
        buffer_format(&u->items, "\\P%s", set + 2);
    else
        buffer_format(&u->others, "|[^%s]", set);
}

/* The length of [:alpha:] or [:^alpha:] at `at`, or 0. */
static size_t posix_length(const char *at) {
    if (at[0] != '[' || at[1] != ':') return 0;
    const char *p = at + 2;
    p += *p == '^';
    while (islower((unsigned char)*p)) p++;
    return p[0] == ':' && p[1] == ']' ? (size_t)(p + 2 - at) : 0;
}

static void take_posix(Translation *t, Union *u, size_t length) {
    bool negated = t->at[2] == '^';
    const char *name = t->at + 2 + negated;
    size_t name_length = length - 4 - negated;
    for (size_t i = 0; i < POSIX_NAMES; i++) {
        if (strlen(names[i][0]) == name_length && !strncmp(names[i][0], name, name_length)) {
            put_set(u, names[i][1], negated);
            t->at += length;
            return;
        }
    }
    buffer_append(&u->items, t->at, length);
    t->at += length;
}

static void take_class(Translation *t, Buffer *out, int depth);

/* A class in a class. */
static void take_inner(Translation *t, Union *u, int depth) {
    Buffer inner = {0};
    take_class(t, &inner, depth + 1);
    const char *text = buffer_string(&inner);
    if (text[0] == '[' && text[1] != '^')
        buffer_append(&u->items, text + 1, inner.length - 2);
    else
        buffer_format(&u->others, "|%s", text);
    u->negated |= text[1] == '^';
    u->items.failed |= inner.failed;
    buffer_free(&inner);
}

/* Up to the end of the class, or to "&&". */
static void take_union(Translation *t, Union *u, bool first, int depth) {
    char buffer[96];
    bool negated = false;
    Buffer *outer = t->out;
    t->out = &u->items;
    for (; *t->at && !t->problem && (*t->at != ']' || first); first = false) {
        size_t posix = posix_length(t->at);
        if (t->at[0] == '&' && t->at[1] == '&') break;
        if (posix) {
            take_posix(t, u, posix);
        } else if (*t->at == '[') {
            take_inner(t, u, depth);
        } else if (*t->at == '\\') {
            const char *set = escaped_set(t, &negated, buffer);
            if (set)
                put_set(u, set, negated);
            else
                take_escape(t);
        } else if (*t->at == ']') {
            put(t, "\\]");
            t->at++;
        } else {
            take(t);
        }
    }
    t->out = outer;
}

/* What matches one character of a union. */
static void put_union(Buffer *out, const Union *u) {
    if (!u->others.length)
        buffer_format(out, "[%s]", buffer_string(&u->items));
    else if (!u->items.length)
        buffer_format(out, "(?:%s)", buffer_string(&u->others) + 1);
    else
        buffer_format(out, "(?:[%s]%s)", buffer_string(&u->items), buffer_string(&u->others));
    out->failed |= u->items.failed || u->others.failed;
}

/* A class at `t->at`: parts joined by "&&", all of which must hold. */
static void take_class(Translation *t, Buffer *out, int depth) {
    Buffer all = {0}, last = {0};
    if (depth == MAX_NESTING) {
        t->problem = "classes nested too deeply";
        return;
    }
    t->at++;
    bool negated = *t->at == '^', simple = true;
    t->at += negated;
    for (bool first = true; first || (t->at[0] == '&' && t->at[1] == '&'); first = false) {
        Union u = {0};
        if (!first) t->at += 2;
        take_union(t, &u, first, depth);
        if (!u.items.length && !u.others.length) t->problem = "an empty class";
        /* Oniguruma takes it for more than it says. */
        if (u.negated && (u.items.length || strchr(buffer_string(&u.others) + 1, '|')))
            t->problem = "a negated class in a union of classes";
        simple = simple && first && !u.others.length;
        if (!first) buffer_format(&all, "(?=%s)", buffer_string(&last));
        last.length = 0;
        put_union(&last, &u);
        free_union(&u);
        if (t->problem) break;
    }
    buffer_text(&all, buffer_string(&last));
    const char *text = buffer_string(&all);
    if (simple && negated)
        buffer_format(out, "[^%s", text + 1);
    else if (negated)
        buffer_format(out, "(?:(?!%s)(?s:.))", text);
    else
        buffer_format(out, simple ? "%s" : "(?:%s)", text);
    if (*t->at == ']')
        t->at++;
    else if (!t->problem)
        t->problem = "a class that does not end";
    out->failed |= all.failed || last.failed;
    buffer_free(&all);
    buffer_free(&last);
}

/* ---- the rest ---- */

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
    char buffer[96];
    bool negated = false;
    const char *set = escaped_set(t, &negated, buffer);
    if (!set) {
        take_escape(t);
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
    take(t);
    if (*t->at != '?') return;
    take(t);
    size_t flags = strspn(t->at, "imx-");
    if (flags && (t->at[flags] == ':' || t->at[flags] == ')')) {
        for (; flags; flags--, t->at++) put(t, (char[]){*t->at == 'm' ? 's' : *t->at, '\0'});
    }
    if (*t->at && *t->at != ')' && *t->at != '(') take(t);
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
            take(&t);
        } else if (*t.at == ')') {
            if (t.depth) t.atom = t.groups[--t.depth];
            take(&t);
        } else if (*t.at == '(') {
            take_open(&t);
        } else {
            t.atom = out->length;
            if (*t.at == '[')
                take_class(&t, out, 0);
            else if (*t.at == '\\')
                take_set_or_escape(&t);
            else
                take(&t);
        }
    }
    return t.problem;
}
