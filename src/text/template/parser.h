/* Parsing: tokens to a syntax tree, by the grammar of jinja2. */
#ifndef TEMPLATE_PARSER_H
#define TEMPLATE_PARSER_H

#include "base/vec.h"
#include "text/template/node.h"

/* Statements and parentheses nest no deeper than this. */
enum { TEMPLATE_MAX_NESTING = 100 };

typedef struct Parser {
    const TemplateName *name;
    Arena *arena;
    const Token *token; /* the current one */
    ferry_error *error;
    ferry_status status; /* of the first failure; the parser stands at TOKEN_END then */
    unsigned depth, loops;
} Parser;

/* ---- for both halves ---- */

/* Record a failure at the current line, and stop. */
void parser_fail(Parser *p, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "expected ..., found ...". */
void parser_expected(Parser *p, const char *what);

/* One level deeper; false, and a failure, when that is too deep. Leaving is `p->depth--`. */
bool parser_enter(Parser *p);

Node *parser_node(Parser *p, NodeKind kind);

bool parser_at(const Parser *p, TokenKind kind, const char *text);
static inline bool parser_at_operator(const Parser *p, const char *text) {
    return parser_at(p, TOKEN_OPERATOR, text);
}
static inline bool parser_at_name(const Parser *p, const char *text) {
    return parser_at(p, TOKEN_NAME, text);
}
void parser_next(Parser *p);
bool parser_skip(Parser *p, TokenKind kind, const char *text);
void parser_expect(Parser *p, TokenKind kind, const char *text);

/* The current token as a string, which must be a name. */
const char *parser_take_name(Parser *p);

/* A list under construction. */
typedef VEC(const Node *) NodeList;
void parser_keep(Parser *p, Node *node, NodeList *list);

/* ---- expressions ---- */

Node *parse_expression(Parser *p);

/* One expression, or a tuple without parentheses; `condition`: "a if b" is one. */
Node *parse_tuple(Parser *p, bool condition);

/* What is assigned to: names, tuples of them, and, where `attributes`, namespace.name. */
Node *parse_target(Parser *p, bool attributes);

/* Filters, each after `|`, applied to `first`. */
Node *parse_filters(Parser *p, Node *first);

/* One filter, of which the name comes next. */
Node *parse_filter(Parser *p, Node *first);

/* (a, b, c=1) into the node's items and keywords. */
void parse_arguments(Parser *p, Node *call);

/* A list of keywords under construction. */
typedef VEC(Keyword) KeywordList;
void parser_keep_keywords(Parser *p, Node *node, KeywordList *list);

#endif
