/* Statements. What they need of expressions is in expression.c. */
#include "text/template/parser.h"
#include "base/error.h"
#include "text/template/run.h"
#include "text/unicode.h"

#include <stdlib.h>

static const Token the_end = {.kind = TOKEN_END};

void parser_fail(Parser *p, ferry_status status, const char *format, ...) {
    va_list args;
    if (p->status != FERRY_OK) return;
    va_start(args, format);
    p->status = template_vfail(p->name, p->token->line, p->error, status, format, args);
    va_end(args);
    p->token = &the_end;
}

void parser_expected(Parser *p, const char *what) {
    static const char *const kinds[] = {
        "text",
        "{{",
        "}}",
        "{%",
        "%}",
        "a name",
        "a string",
        "a number",
        "a number",
        NULL,
        "the end of the template",
    };
    const Token *t = p->token;
    bool shown = t->kind == TOKEN_NAME || t->kind == TOKEN_OPERATOR;
    int length = shown ? (int)(t->length < 40 ? t->length : 40) : (int)strlen(kinds[t->kind]);
    parser_fail(p, FERRY_BAD_FORMAT, "expected %s, found %s%.*s%s", what, shown ? "\"" : "", length,
                shown ? t->text : kinds[t->kind], shown ? "\"" : "");
}

bool parser_enter(Parser *p) {
    if (++p->depth > TEMPLATE_MAX_NESTING)
        parser_fail(p, FERRY_UNSUPPORTED, "nests more than %d deep", TEMPLATE_MAX_NESTING);
    return p->status == FERRY_OK;
}

Node *parser_node(Parser *p, NodeKind kind) {
    static Node none; /* is only read after a failure */
    Node *node = ARENA_NEW(p->arena, Node);
    if (!node) {
        parser_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
        return &none;
    }
    node->kind = kind;
    node->line = p->token->line;
    return node;
}

bool parser_at(const Parser *p, TokenKind kind, const char *text) {
    if (p->token->kind != kind) return false;
    return !text ||
           (p->token->length == strlen(text) && !memcmp(p->token->text, text, strlen(text)));
}

void parser_next(Parser *p) {
    if (p->token->kind != TOKEN_END) p->token++;
}

bool parser_skip(Parser *p, TokenKind kind, const char *text) {
    bool there = parser_at(p, kind, text);
    if (there) parser_next(p);
    return there;
}

void parser_expect(Parser *p, TokenKind kind, const char *text) {
    char what[40];
    if (parser_skip(p, kind, text)) return;
    snprintf(what, sizeof what, "\"%s\"", text ? text : kind == TOKEN_BLOCK_END ? "%}" : "}}");
    parser_expected(p, what);
}

const char *parser_take_name(Parser *p) {
    if (p->token->kind != TOKEN_NAME) {
        parser_expected(p, "a name");
        return "";
    }
    const char *name = arena_string_n(p->arena, p->token->text, p->token->length);
    parser_next(p);
    return name;
}

void parser_keep(Parser *p, Node *node, NodeList *list) {
    if (list->failed) parser_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    node->count = list->count;
    node->items =
        list->count ? arena_copy(p->arena, list->items, list->count * sizeof *list->items) : NULL;
    VEC_FREE(list);
}

void parser_keep_keywords(Parser *p, Node *node, KeywordList *list) {
    if (list->failed) parser_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    node->keyword_count = list->count;
    node->keywords =
        list->count ? arena_copy(p->arena, list->items, list->count * sizeof *list->items) : NULL;
    VEC_FREE(list);
}

/* ---- statements ---- */

static const Node *parse_body(Parser *p, const char *const ends[]);

/* The rest of a block's tag, its body, and the start of the tag that ends it. */
static const Node *block_body(Parser *p, const char *const ends[]) {
    parser_skip(p, TOKEN_OPERATOR, ":");
    parser_expect(p, TOKEN_BLOCK_END, NULL);
    return parse_body(p, ends);
}

static const Node *whole_body(Parser *p, const char *end) {
    const Node *body = block_body(p, (const char *const[]){end, NULL});
    parser_next(p);
    return body;
}

static Node *parse_if(Parser *p) {
    static const char *const branches[] = {"elif", "else", "endif", NULL};
    Node *first = parser_node(p, NODE_IF), *last = first;
    for (;;) {
        last->first = parse_tuple(p, false);
        last->body = block_body(p, branches);
        if (!parser_skip(p, TOKEN_NAME, "elif")) break;
        Node *node = parser_node(p, NODE_IF);
        last->second = node;
        last = node;
    }
    if (parser_skip(p, TOKEN_NAME, "else"))
        last->other = whole_body(p, "endif");
    else
        parser_next(p);
    return first;
}

static Node *parse_for(Parser *p) {
    static const char *const branches[] = {"else", "endfor", NULL};
    Node *node = parser_node(p, NODE_FOR);
    node->first = parse_target(p, false);
    parser_expect(p, TOKEN_NAME, "in");
    node->second = parse_tuple(p, false);
    if (parser_skip(p, TOKEN_NAME, "if")) node->third = parse_expression(p);
    if (parser_at_name(p, "recursive"))
        parser_fail(p, FERRY_UNSUPPORTED, "recursive loops are not supported; use a macro");
    p->loops++;
    node->body = block_body(p, branches);
    p->loops--;
    if (parser_skip(p, TOKEN_NAME, "else"))
        node->other = whole_body(p, "endfor");
    else
        parser_next(p);
    return node;
}

static Node *parse_set(Parser *p) {
    Node *node = parser_node(p, NODE_SET);
    node->first = parse_target(p, true);
    if (parser_skip(p, TOKEN_OPERATOR, "=")) {
        node->second = parse_tuple(p, true);
        return node;
    }
    Node *captured = parser_node(p, NODE_CAPTURE);
    node->second = parse_filters(p, captured);
    captured->body = whole_body(p, "endset");
    return node;
}

static Node *parse_with(Parser *p) {
    Node *node = parser_node(p, NODE_WITH);
    NodeList list = {0};
    while (p->status == FERRY_OK && p->token->kind != TOKEN_BLOCK_END) {
        if (list.count) parser_expect(p, TOKEN_OPERATOR, ",");
        VEC_PUSH(&list, parse_target(p, false));
        parser_expect(p, TOKEN_OPERATOR, "=");
        VEC_PUSH(&list, parse_expression(p));
    }
    parser_keep(p, node, &list);
    node->body = whole_body(p, "endwith");
    return node;
}

/* (a, b=1) of a macro: names in items, the defaults of the last ones in keywords. */
static void parse_signature(Parser *p, Node *macro) {
    NodeList names = {0};
    KeywordList defaults = {0};
    parser_expect(p, TOKEN_OPERATOR, "(");
    while (p->status == FERRY_OK && !parser_at_operator(p, ")")) {
        if (names.count) parser_expect(p, TOKEN_OPERATOR, ",");
        Node *name = parser_node(p, NODE_NAME);
        name->name = parser_take_name(p);
        VEC_PUSH(&names, name);
        if (parser_skip(p, TOKEN_OPERATOR, "="))
            VEC_PUSH(&defaults, (Keyword){name->name, parse_expression(p)});
        else if (defaults.count)
            parser_fail(p, FERRY_BAD_FORMAT,
                        "the parameter %s lacks a default, which one before it has", name->name);
    }
    parser_expect(p, TOKEN_OPERATOR, ")");
    parser_keep(p, macro, &names);
    parser_keep_keywords(p, macro, &defaults);
}

static const Node *macro_body(Parser *p, const char *end) {
    unsigned loops = p->loops;
    p->loops = 0;
    const Node *body = whole_body(p, end);
    p->loops = loops;
    return body;
}

static Node *parse_macro(Parser *p) {
    Node *node = parser_node(p, NODE_MACRO);
    node->name = parser_take_name(p);
    parse_signature(p, node);
    node->body = macro_body(p, "endmacro");
    return node;
}

/* {% call(a) m(b) %}: prints m(b, caller=a macro of the body). */
static Node *parse_call_block(Parser *p) {
    Node *node = parser_node(p, NODE_OUTPUT), *caller = parser_node(p, NODE_MACRO);
    KeywordList keywords = {0};
    caller->name = "caller";
    if (parser_at_operator(p, "(")) parse_signature(p, caller);
    Node *call = parse_expression(p);
    if (call->kind != NODE_CALL)
        parser_fail(p, FERRY_BAD_FORMAT, "expected a call in {%% call %%}");
    for (size_t i = 0; p->status == FERRY_OK && i < call->keyword_count; i++)
        VEC_PUSH(&keywords, call->keywords[i]);
    VEC_PUSH(&keywords, (Keyword){"caller", caller});
    parser_keep_keywords(p, call, &keywords);
    caller->body = macro_body(p, "endcall");
    node->first = call;
    return node;
}

static Node *parse_filter_block(Parser *p) {
    Node *node = parser_node(p, NODE_OUTPUT), *captured = parser_node(p, NODE_CAPTURE);
    node->first = parse_filters(p, parse_filter(p, captured));
    captured->body = whole_body(p, "endfilter");
    return node;
}

static Node *parse_generation(Parser *p) {
    Node *node = parser_node(p, NODE_SCOPE);
    node->body = macro_body(p, "endgeneration");
    return node;
}

static Node *parse_output(Parser *p) {
    Node *node = parser_node(p, NODE_OUTPUT);
    node->first = parse_tuple(p, true);
    return node;
}

static Node *parse_jump(Parser *p, NodeKind kind) {
    if (!p->loops) parser_fail(p, FERRY_BAD_FORMAT, "break and continue stand in loops only");
    return parser_node(p, kind);
}

static Node *parse_break(Parser *p) {
    return parse_jump(p, NODE_BREAK);
}

static Node *parse_continue(Parser *p) {
    return parse_jump(p, NODE_CONTINUE);
}

static const struct {
    const char *name;
    Node *(*parse)(Parser *p); /* NULL: jinja2 has it, this has not */
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"with", parse_with},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
    {"print", NULL},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"extends", NULL},
    {"block", NULL},
    {"autoescape", NULL},
};

static Node *parse_statement(Parser *p) {
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!parser_at_name(p, statements[i].name)) continue;
        if (!statements[i].parse) {
            parser_fail(p, FERRY_UNSUPPORTED, "{%% %s %%} is not supported in chat templates",
                        statements[i].name);
            break;
        }
        parser_next(p);
        return statements[i].parse(p);
    }
    if (p->token->kind != TOKEN_NAME) parser_expected(p, "the name of a tag");
    parser_fail(p, FERRY_BAD_FORMAT, "the tag \"%.*s\" is not known, or closes nothing",
                (int)(p->token->length < 40 ? p->token->length : 40), p->token->text);
    return parser_node(p, NODE_SCOPE);
}

static bool at_end(const Parser *p, const char *const ends[]) {
    for (; ends && *ends; ends++)
        if (parser_at_name(p, *ends)) return true;
    return false;
}

/* Statements up to a tag that is one of `ends`, or, when that is NULL, to the end of the template. */
static const Node *parse_body(Parser *p, const char *const ends[]) {
    const Node *first = NULL, **last = &first;
    if (!parser_enter(p)) return NULL;
    while (p->token->kind != TOKEN_END) {
        Node *node;
        if (p->token->kind == TOKEN_DATA) {
            node = parser_node(p, NODE_DATA);
            node->value = value_text(p->token->text, p->token->length);
            parser_next(p);
        } else if (parser_skip(p, TOKEN_VARIABLE_BEGIN, NULL)) {
            node = parse_output(p);
            parser_expect(p, TOKEN_VARIABLE_END, NULL);
        } else {
            parser_expect(p, TOKEN_BLOCK_BEGIN, NULL);
            if (at_end(p, ends)) break;
            node = parse_statement(p);
            parser_expect(p, TOKEN_BLOCK_END, NULL);
        }
        if (p->status != FERRY_OK) break;
        *last = node;
        last = &node->next;
    }
    if (ends && p->token->kind == TOKEN_END && p->status == FERRY_OK)
        parser_fail(p, FERRY_BAD_FORMAT, "the template ends before {%% %s %%}",
                    ends[1] && ends[2] ? ends[2]
                    : ends[1]          ? ends[1]
                                       : ends[0]);
    p->depth--;
    return first;
}

ferry_status template_parse(TemplateName name, Arena *arena, const char *text, size_t length,
                            const Template **out, ferry_error *error) {
    const Token *tokens;
    size_t place;
    *out = NULL;
    if (!utf8_check(text, length, &place))
        return template_fail(&name, 1, error, FERRY_BAD_FORMAT, "not UTF-8 at byte %zu", place);
    TRY(template_tokens(&name, arena, text, length, &tokens, error));
    Parser p = {.name = &name, .arena = arena, .token = tokens, .error = error};
    Template *t = ARENA_NEW(arena, Template);
    if (t) {
        t->name = name;
        t->body = parse_body(&p, NULL);
        *out = t;
    }
    if (p.status == FERRY_OK && arena->failed) return error_memory(error, name.path, 0);
    return p.status;
}
