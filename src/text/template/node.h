/* The syntax tree of a template. Nodes live in the template's arena. */
#ifndef TEMPLATE_NODE_H
#define TEMPLATE_NODE_H

#include "text/template/token.h"
#include "text/template/value.h"

typedef enum NodeKind {
    /* expressions */
    NODE_CONSTANT,  /* value */
    NODE_NAME,      /* name */
    NODE_LIST,      /* items */
    NODE_TUPLE,     /* items */
    NODE_DICT,      /* items: key, value, key, value */
    NODE_ATTRIBUTE, /* first.name */
    NODE_ITEM,      /* first[second] */
    NODE_SLICE,     /* items: begin, end, step; each may be NULL */
    NODE_CALL,      /* first(items), with keywords */
    NODE_FILTER,    /* first | name(items) */
    NODE_TEST,      /* first is name(items) */
    NODE_NOT,       /* first */
    NODE_NEGATE,    /* first */
    NODE_PLUS,      /* first */
    NODE_AND,       /* first, second */
    NODE_OR,        /* first, second */
    NODE_BINARY,    /* first name second */
    NODE_COMPARE,   /* first, then items, each by the operator of its NODE_OPERAND */
    NODE_OPERAND,   /* name first */
    NODE_CONDITION, /* first if second else third, which may be NULL */
    NODE_CAPTURE,   /* what body prints */
    NODE_MACRO, /* name(items), with the defaults of the last ones in keywords; body. Also a statement */
    /* statements */
    NODE_DATA,   /* value */
    NODE_OUTPUT, /* first */
    NODE_IF,     /* first: body; second, the next NODE_IF of the chain; other */
    NODE_FOR,    /* first in second, if third; body, then other */
    NODE_SET,    /* first = second */
    NODE_WITH,   /* items: target, value, target, value; body */
    NODE_SCOPE,  /* body: {% generation %} */
    NODE_BREAK,
    NODE_CONTINUE,
} NodeKind;

typedef struct Node Node;

typedef struct Keyword {
    const char *name;
    const Node *value;
} Keyword;

struct Node {
    NodeKind kind;
    unsigned line;
    const char *name;
    const struct Function *function; /* of filters and tests; NULL: not known */
    Value value;
    const Node *first, *second, *third;
    const Node **items;
    size_t count;
    const Keyword *keywords;
    size_t keyword_count;
    const Node *more, *more_named; /* *more and **more_named of a call */
    const Node *body, *other;
    const Node *next; /* in a list of statements */
};

struct Template {
    TemplateName name;
    const Node *body;
};

#endif
