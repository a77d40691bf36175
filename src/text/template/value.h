/* The values of a template: Python's, as far as templates need them. They are immutable but for
 * namespaces and iterators, and live in the arena of the run (or of the template, for constants). */
#ifndef TEMPLATE_VALUE_H
#define TEMPLATE_VALUE_H

#include "base/buffer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum ValueKind {
    VALUE_ABSENT,    /* an argument that was not given */
    VALUE_UNDEFINED, /* text: why */
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INTEGER,
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_RANGE,
    VALUE_VIEW, /* of a dict's keys, values or items */
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_ITERATOR,
    VALUE_LOOP,
    VALUE_FUNCTION, /* a global, or a method with its object */
    VALUE_MACRO,
} ValueKind;

typedef struct Value Value;
typedef struct Pair Pair;
typedef struct Text Text;
typedef struct Dict Dict;
typedef struct Iterator Iterator;
typedef struct Loop Loop;
typedef struct Bound Bound;
typedef struct Macro Macro;

/* Well-formed UTF-8, not terminated. */
struct Text {
    const char *bytes;
    size_t length;
};

typedef struct List {
    const Value *items;
    size_t count;
} List;

struct Value {
    ValueKind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        Text text;
        List list;  /* lists, tuples, ranges, views */
        Dict *dict; /* dicts, namespaces */
        Iterator *iterator;
        const Loop *loop;
        const Bound *bound;
        const Macro *macro;
    };
};

struct Pair {
    Value key, value;
};

struct Dict {
    Pair *pairs;
    size_t count, capacity;
};

struct Iterator {
    List left;
};

#define VALUE_NOTHING ((Value){.kind = VALUE_NONE})

static inline Value value_bool(bool boolean) {
    return (Value){.kind = VALUE_BOOL, .boolean = boolean};
}
static inline Value value_integer(int64_t integer) {
    return (Value){.kind = VALUE_INTEGER, .integer = integer};
}
static inline Value value_real(double real) {
    return (Value){.kind = VALUE_FLOAT, .real = real};
}
static inline Value value_text(const char *bytes, size_t length) {
    return (Value){.kind = VALUE_TEXT, .text = {bytes, length}};
}
static inline Value value_string(const char *string) {
    return value_text(string, strlen(string));
}
static inline Value value_undefined(const char *why) {
    return (Value){.kind = VALUE_UNDEFINED, .text = {why, strlen(why)}};
}
static inline Value value_sequence(ValueKind kind, const Value *items, size_t count) {
    return (Value){.kind = kind, .list = {items, count}};
}

static inline bool value_is_sequence(Value v) {
    return v.kind >= VALUE_LIST && v.kind <= VALUE_VIEW;
}
/* bool counts as a number, as in Python. */
static inline bool value_is_whole(Value v) {
    return v.kind == VALUE_BOOL || v.kind == VALUE_INTEGER;
}
static inline bool value_is_number(Value v) {
    return value_is_whole(v) || v.kind == VALUE_FLOAT;
}
static inline int64_t value_whole(Value v) {
    return v.kind == VALUE_BOOL ? v.boolean : v.integer;
}
static inline double value_number(Value v) {
    return v.kind == VALUE_FLOAT ? v.real : (double)value_whole(v);
}
static inline bool text_is(Text text, const char *string) {
    return text.length == strlen(string) && memcmp(text.bytes, string, text.length) == 0;
}

/* Python's bool(). */
bool value_truth(Value v);

/* "str", "dict", ... as Python calls the type. */
const char *value_type(Value v);

#endif
