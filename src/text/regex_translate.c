/* From Oniguruma's Ruby syntax to PCRE2's. The same in both: most of it. Different:
 *
 *   \s \d \w \h and their opposites        Unicode properties that PCRE2 defines otherwise
 *   \p{Han}, \p{Letter}, \p{^L}            scripts, long names of categories, negation
 *   [[:alpha:]]                            Unicode properties
 *   [a[b]]                                 classes in classes: the union
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

static const char *const names[][2] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"alpha", "\\p{Alphabetic}"},
    {"digit", "\\p{Nd}"},
    {"lower", "\\p{Lowercase}"},
    {"space", SPACE},
    {"upper", "\\p{Uppercase}"},
    {"word", WORD},
    {"xdigit", "0-9A-Fa-f"},
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
    static const char *const forms[] = {"\\p{sc:%s}", "\\p{%s}"};
    for (size_t i = count > 2 ? 0 : 1; i < 2; i++) {
        snprintf(out, 96, i ? "\\p{%s}" : forms[0], plain);
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

/* A single property can be negated where it stands. */
static bool is_single(const char *set) {
    return *set == '\\' && strchr(set, '}') && !strchr(set, '}')[1];
}

static void put_negated_single(Translation *t, const char *set) {
    put(t, "\\P");
    put(t, set + 2);
}

/* A set in a class. The opposite of several properties cannot stand there; it is kept in `*without`. */
static void put_set(Translation *t, const char *set, bool negated, const char **without) {
    if (!negated)
        put(t, set);
    else if (is_single(set))
        put_negated_single(t, set);
    else if (*without && *without != set)
        t->problem = "two negated sets in one class";
    else
        *without = set;
}

static void take_posix(Translation *t, const char **without) {
    const char *name = t->at + 2, *end = strstr(name, ":]");
    bool negated = *name == '^';
    name += negated;
    for (size_t i = 0; i < 8; i++) {
        if (strncmp(names[i][0], name, (size_t)(end - name)) == 0 &&
            names[i][0][end - name] == '\0') {
            put_set(t, names[i][1], negated, without);
            t->at = end + 2;
            return;
        }
    }
    buffer_append(t->out, t->at, (size_t)(end + 2 - t->at));
    t->at = end + 2;
}

static bool is_posix(const char *at) {
    if (at[0] != '[' || at[1] != ':') return false;
    const char *p = at + 2;
    p += *p == '^';
    while (islower((unsigned char)*p)) p++;
    return p[0] == ':' && p[1] == ']';
}

/* The items of a class up to its end; `t->at` is behind the bracket. */
static void take_items(Translation *t, const char **without, int depth) {
    char buffer[96];
    bool first = true, negated = false;
    for (; *t->at && !t->problem && (*t->at != ']' || first); first = false) {
        if (is_posix(t->at)) {
            take_posix(t, without);
        } else if (*t->at == '[') {
            t->at++;
            if (*t->at == '^' || depth == 8) t->problem = "a negated class in a class";
            take_items(t, without, depth + 1);
        } else if (t->at[0] == '&' && t->at[1] == '&') {
            t->problem = "an intersection of classes";
        } else if (*t->at == '\\') {
            const char *set = escaped_set(t, &negated, buffer);
            if (set)
                put_set(t, set, negated, without);
            else
                take_escape(t);
        } else if (*t->at == ']') {
            put(t, "\\]");
            t->at++;
        } else {
            take(t);
        }
    }
    if (*t->at)
        t->at++;
    else if (!t->problem)
        t->problem = "a class that does not end";
}

static void take_class(Translation *t) {
    size_t start = t->out->length;
    const char *without = NULL;
    t->at++;
    bool negated = *t->at == '^';
    t->at += negated;
    put(t, negated ? "[^" : "[");
    size_t items = t->out->length;
    take_items(t, &without, 0);
    bool empty = t->out->length == items;
    put(t, "]");
    if (!without || t->out->failed) return;
    /* [a\W] is (?:[a]|[^\w]), and [^a\W] is (?:(?![a])[\w]). */
    Buffer rest = {0};
    buffer_append(&rest, t->out->bytes + items, t->out->length - items);
    t->out->length = start;
    if (empty)
        buffer_format(t->out, "[%s%s]", negated ? "" : "^", without);
    else if (negated)
        buffer_format(t->out, "(?:(?![%s)[%s])", buffer_string(&rest), without);
    else
        buffer_format(t->out, "(?:[%s|[^%s])", buffer_string(&rest), without);
    t->out->failed |= rest.failed;
    buffer_free(&rest);
}

/* ---- the rest ---- */

static void take_set_or_escape(Translation *t) {
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
                take_class(&t);
            else if (*t.at == '\\')
                take_set_or_escape(&t);
            else
                take(&t);
        }
    }
    return t.problem;
}
