/* Classes of characters in patterns: PCRE2 has no unions and intersections of them, and no opposites of
 * several properties in them. */
#include "text/regex_translate.h"

#include <ctype.h>
#include <string.h>

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
    const char *set = translate_posix(name, name_length);
    if (set)
        put_set(u, set, negated);
    else
        buffer_append(&u->items, t->at, length);
    t->at += length;
}

/* A class in a class. */
static void take_inner(Translation *t, Union *u, int depth) {
    Buffer inner = {0};
    translate_class(t, &inner, depth + 1);
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
    char buffer[SET_SIZE];
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
            const char *set = translate_set(t, &negated, buffer);
            if (set)
                put_set(u, set, negated);
            else
                translate_escape(t);
        } else if (*t->at == ']') {
            buffer_text(t->out, "\\]");
            t->at++;
        } else {
            translate_char(t);
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
void translate_class(Translation *t, Buffer *out, int depth) {
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
