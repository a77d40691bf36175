/* Sets of characters in patterns: \s and the like, properties, names in brackets. */
#include "text/regex_translate.h"
#include "text/unicode.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SPACE "\\p{White_Space}"
#define GRAPH "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

enum { POSIX_NAMES = 11 }; /* the first of them are also names in brackets */

static const char *const names[][2] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"alpha", "\\p{Alphabetic}"},
    {"digit", "\\p{Nd}"},
    {"lower", "\\p{Lowercase}"},
    {"space", SPACE},
    {"upper", "\\p{Uppercase}"},
    {"word", REGEX_WORD},
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

const char *translate_posix(const char *name, size_t length) {
    for (size_t i = 0; i < POSIX_NAMES; i++) {
        if (strlen(names[i][0]) == length && strncmp(names[i][0], name, length) == 0)
            return names[i][1];
    }
    return NULL;
}

/* What stands in a class for a property; NULL when there is none of that name. */
static const char *property(const char *name, size_t length, char out[SET_SIZE]) {
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
        snprintf(out, SET_SIZE, "\\p{%s%.*s}", bare ? "" : "sc:", (int)length, name);
        if (regex_is_known(out)) return out;
    }
    return NULL;
}

const char *translate_set(Translation *t, bool *negated, char buffer[SET_SIZE]) {
    static const char *const sets[][2] = {
        {"s", SPACE}, {"d", "\\p{Nd}"}, {"w", REGEX_WORD}, {"h", "0-9A-Fa-f"}};
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

void translate_escape(Translation *t) {
    if (t->at[1] == 'u') {
        size_t digits = 0;
        while (digits < 4 && isxdigit((unsigned char)t->at[2 + digits])) digits++;
        buffer_format(t->out, "\\x{%.*s}", (int)digits, t->at + 2);
        t->at += 2 + digits;
        return;
    }
    bool hexadecimal = t->at[1] == 'x' && t->at[2] == '{';
    translate_char(t);
    if (*t->at) translate_char(t);
    while (hexadecimal && *t->at && t->at[-1] != '}') translate_char(t);
}

void translate_char(Translation *t) {
    size_t size = utf8_size(*t->at);
    buffer_append(t->out, t->at, size);
    t->at += size;
}
