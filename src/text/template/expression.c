/* Expressions, with the precedence of jinja2: condition, or, and, not, comparisons, + -, ~, * / // %, **,
 * unary signs, then what follows a value: attributes, items, calls, filters, tests. */
#include "text/template/parser.h"
#include "text/template/run.h"

static Node *parse_unary(Parser *p, bool filters);

static Node *binary(Parser *p, NodeKind kind, const Node *first) {
    Node *node = parser_node(p, kind);
    node->first = first;
    return node;
}

static Node *constant(Parser *p, Value value) {
    Node *node = parser_node(p, NODE_CONSTANT);
    node->value = value;
    return node;
}

/* ---- values ---- */

static Node *parse_items(Parser *p, NodeKind kind, const char *close, bool pairs) {
    Node *node = parser_node(p, kind);
    NodeList list = {0};
    parser_next(p);
    while (p->status == FERRY_OK && !parser_at_operator(p, close)) {
        VEC_PUSH(&list, parse_expression(p));
        if (pairs) {
            parser_expect(p, TOKEN_OPERATOR, ":");
            VEC_PUSH(&list, parse_expression(p));
        }
        if (!parser_skip(p, TOKEN_OPERATOR, ",")) break;
    }
    parser_expect(p, TOKEN_OPERATOR, close);
    parser_keep(p, node, &list);
    return node;
}

/* Strings that stand side by side are one. */
static Node *parse_string(Parser *p) {
    const Token *first = p->token;
    size_t length = 0;
    for (; p->token->kind == TOKEN_STRING; parser_next(p)) length += p->token->length;
    if (first + 1 == p->token) return constant(p, value_text(first->text, first->length));
    char *text = arena_alloc(p->arena, length), *at = text;
    for (const Token *t = first; text && t < p->token; at += t->length, t++)
        if (t->length) memcpy(at, t->text, t->length);
    return constant(p, value_text(text ? text : "", text ? length : 0));
}

static Node *parse_name(Parser *p) {
    static const struct {
        const char *name;
        Value value;
    } constants[] = {
        {"true", {.kind = VALUE_BOOL, .boolean = true}},
        {"True", {.kind = VALUE_BOOL, .boolean = true}},
        {"false", {.kind = VALUE_BOOL}},
        {"False", {.kind = VALUE_BOOL}},
        {"none", {.kind = VALUE_NONE}},
        {"None", {.kind = VALUE_NONE}},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (parser_skip(p, TOKEN_NAME, constants[i].name)) return constant(p, constants[i].value);
    Node *node = parser_node(p, NODE_NAME);
    node->name = parser_take_name(p);
    return node;
}

static Node *parse_group(Parser *p) {
    parser_next(p);
    if (parser_at_operator(p, ")")) {
        parser_next(p);
        return parser_node(p, NODE_TUPLE);
    }
    Node *node = parse_tuple(p, true);
    parser_expect(p, TOKEN_OPERATOR, ")");
    return node;
}

static Node *parse_primary(Parser *p) {
    const Token *t = p->token;
    Node *node;
    if (!parser_enter(p)) return parser_node(p, NODE_CONSTANT);
    switch (t->kind) {
    case TOKEN_NAME: node = parse_name(p); break;
    case TOKEN_STRING: node = parse_string(p); break;
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
        node =
            constant(p, t->kind == TOKEN_FLOAT ? value_real(t->real) : value_integer(t->integer));
        parser_next(p);
        break;
    default:
        if (parser_at_operator(p, "(")) {
            node = parse_group(p);
        } else if (parser_at_operator(p, "[")) {
            node = parse_items(p, NODE_LIST, "]", false);
        } else if (parser_at_operator(p, "{")) {
            node = parse_items(p, NODE_DICT, "}", true);
        } else {
            parser_expected(p, "an expression");
            node = parser_node(p, NODE_CONSTANT);
        }
    }
    p->depth--;
    return node;
}

/* ---- what follows a value ---- */

/* The inside of brackets: an index, or begin:end:step. */
static Node *parse_index(Parser *p) {
    NodeList parts = {0};
    Node *first = parser_at_operator(p, ":") ? NULL : parse_expression(p);
    if (first && !parser_at_operator(p, ":")) return first;
    Node *node = parser_node(p, NODE_SLICE);
    VEC_PUSH(&parts, first);
    while (parser_skip(p, TOKEN_OPERATOR, ":")) {
        bool empty = parser_at_operator(p, ":") || parser_at_operator(p, "]");
        VEC_PUSH(&parts, empty ? NULL : parse_expression(p));
    }
    if (parts.count > 3) parser_expected(p, "\"]\"");
    parser_keep(p, node, &parts);
    return node;
}

static Node *parse_member(Parser *p, Node *object) {
    if (parser_skip(p, TOKEN_OPERATOR, "[")) {
        Node *node = binary(p, NODE_ITEM, object);
        node->second = parse_index(p);
        parser_expect(p, TOKEN_OPERATOR, "]");
        return node;
    }
    parser_next(p);
    if (p->token->kind == TOKEN_INTEGER) {
        Node *node = binary(p, NODE_ITEM, object);
        node->second = parse_primary(p);
        return node;
    }
    Node *node = binary(p, NODE_ATTRIBUTE, object);
    node->name = parser_take_name(p);
    return node;
}

void parse_arguments(Parser *p, Node *call) {
    NodeList list = {0};
    KeywordList keywords = {0};
    parser_expect(p, TOKEN_OPERATOR, "(");
    while (p->status == FERRY_OK && !parser_at_operator(p, ")")) {
        if (parser_skip(p, TOKEN_OPERATOR, "*")) {
            call->more = parse_expression(p);
        } else if (parser_skip(p, TOKEN_OPERATOR, "**")) {
            call->more_named = parse_expression(p);
        } else if (p->token->kind == TOKEN_NAME && p->token[1].kind == TOKEN_OPERATOR &&
                   text_is((Text){p->token[1].text, p->token[1].length}, "=")) {
            const char *name = parser_take_name(p);
            parser_next(p);
            VEC_PUSH(&keywords, (Keyword){name, parse_expression(p)});
        } else if (keywords.count || call->more || call->more_named) {
            parser_fail(p, FERRY_BAD_FORMAT, "an argument without a name follows one with a name");
        } else {
            VEC_PUSH(&list, parse_expression(p));
        }
        if (!parser_skip(p, TOKEN_OPERATOR, ",")) break;
    }
    parser_expect(p, TOKEN_OPERATOR, ")");
    parser_keep(p, call, &list);
    parser_keep_keywords(p, call, &keywords);
}

static Node *parse_call(Parser *p, Node *callee) {
    Node *node = binary(p, NODE_CALL, callee);
    parse_arguments(p, node);
    return node;
}

Node *parse_filter(Parser *p, Node *first) {
    Node *node = binary(p, NODE_FILTER, first);
    node->name = parser_take_name(p);
    node->function = filter_find(node->name, strlen(node->name));
    if (parser_at_operator(p, "(")) parse_arguments(p, node);
    return node;
}

Node *parse_filters(Parser *p, Node *first) {
    while (parser_skip(p, TOKEN_OPERATOR, "|")) first = parse_filter(p, first);
    return first;
}

static Node *parse_test(Parser *p, Node *first) {
    bool negated = parser_skip(p, TOKEN_NAME, "not");
    Node *node = binary(p, NODE_TEST, first);
    node->name = parser_take_name(p);
    node->function = function_find(template_tests, node->name, strlen(node->name));
    if (parser_at_name(p, "is"))
        parser_fail(p, FERRY_BAD_FORMAT, "tests cannot be chained with \"is\"");
    bool argument = p->token->kind == TOKEN_STRING || p->token->kind == TOKEN_INTEGER ||
                    p->token->kind == TOKEN_FLOAT || parser_at_operator(p, "[") ||
                    parser_at_operator(p, "{");
    if (p->token->kind == TOKEN_NAME) {
        static const char *const others[] = {"else", "or", "and", "if", "in", "not", "is"};
        argument = true;
        /* jinja2 would take `if`, `in` and `not` as names, which no one can mean. */
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (parser_at_name(p, others[i])) argument = false;
    }
    if (parser_at_operator(p, "(")) {
        parse_arguments(p, node);
    } else if (argument) {
        NodeList list = {0};
        Node *value = parse_primary(p);
        while (p->status == FERRY_OK && (parser_at_operator(p, ".") || parser_at_operator(p, "[") ||
                                         parser_at_operator(p, "(")))
            value = parser_at_operator(p, "(") ? parse_call(p, value) : parse_member(p, value);
        VEC_PUSH(&list, value);
        parser_keep(p, node, &list);
    }
    return negated ? binary(p, NODE_NOT, node) : node;
}

static Node *parse_following(Parser *p, Node *node, bool filters) {
    while (p->status == FERRY_OK) {
        if (parser_at_operator(p, ".") || parser_at_operator(p, "["))
            node = parse_member(p, node);
        else if (parser_at_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    while (filters && p->status == FERRY_OK) {
        if (parser_at_operator(p, "|"))
            node = parse_filters(p, node);
        else if (parser_skip(p, TOKEN_NAME, "is"))
            node = parse_test(p, node);
        else if (parser_at_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* ---- operators ---- */

static Node *parse_unary(Parser *p, bool filters) {
    Node *node;
    bool minus = parser_at_operator(p, "-");
    if (minus || parser_at_operator(p, "+")) {
        if (!parser_enter(p)) return parser_node(p, NODE_CONSTANT);
        parser_next(p);
        node = binary(p, minus ? NODE_NEGATE : NODE_PLUS, parse_unary(p, false));
        p->depth--;
    } else {
        node = parse_primary(p);
    }
    return parse_following(p, node, filters);
}

/* Operators that bind equally, from left to right; the tightest ones last. */
static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "//", "/", "%"}, {"**"}};
enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

static Node *parse_level(Parser *p, size_t level) {
    if (level == LEVEL_COUNT) return parse_unary(p, true);
    Node *left = parse_level(p, level + 1);
    for (;;) {
        const char *found = NULL;
        for (const char *const *name = levels[level]; *name && !found; name++)
            if (parser_skip(p, TOKEN_OPERATOR, *name)) found = *name;
        if (!found) return left;
        Node *node = binary(p, NODE_BINARY, left);
        node->name = found;
        node->second = parse_level(p, level + 1);
        left = node;
    }
}

/* The operator of a comparison that stands here, taken; NULL when there is none. */
static const char *take_comparison(Parser *p) {
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (parser_skip(p, TOKEN_OPERATOR, names[i])) return names[i];
    if (parser_skip(p, TOKEN_NAME, "in")) return "in";
    if (parser_at_name(p, "not") && p->token[1].kind == TOKEN_NAME &&
        text_is((Text){p->token[1].text, p->token[1].length}, "in")) {
        parser_next(p);
        parser_next(p);
        return "not in";
    }
    return NULL;
}

static Node *parse_comparison(Parser *p) {
    Node *first = parse_level(p, 0);
    const char *name = take_comparison(p);
    if (!name) return first;
    NodeList list = {0};
    for (; name; name = take_comparison(p)) {
        Node *operand = parser_node(p, NODE_OPERAND);
        operand->name = name;
        operand->first = parse_level(p, 0);
        VEC_PUSH(&list, operand);
    }
    Node *node = binary(p, NODE_COMPARE, first);
    parser_keep(p, node, &list);
    return node;
}

static Node *parse_not(Parser *p) {
    if (!parser_skip(p, TOKEN_NAME, "not")) return parse_comparison(p);
    if (!parser_enter(p)) return parser_node(p, NODE_CONSTANT);
    Node *node = binary(p, NODE_NOT, parse_not(p));
    p->depth--;
    return node;
}

static Node *parse_and(Parser *p) {
    Node *left = parse_not(p);
    while (parser_skip(p, TOKEN_NAME, "and")) {
        Node *node = binary(p, NODE_AND, left);
        node->second = parse_not(p);
        left = node;
    }
    return left;
}

static Node *parse_or(Parser *p) {
    Node *left = parse_and(p);
    while (parser_skip(p, TOKEN_NAME, "or")) {
        Node *node = binary(p, NODE_OR, left);
        node->second = parse_and(p);
        left = node;
    }
    return left;
}

Node *parse_expression(Parser *p) {
    if (!parser_enter(p)) return parser_node(p, NODE_CONSTANT);
    Node *node = parse_or(p);
    while (parser_skip(p, TOKEN_NAME, "if")) {
        Node *condition = binary(p, NODE_CONDITION, node);
        condition->second = parse_or(p);
        if (parser_skip(p, TOKEN_NAME, "else")) condition->third = parse_expression(p);
        node = condition;
    }
    p->depth--;
    return node;
}

/* ---- tuples without parentheses ---- */

static bool at_tuple_end(const Parser *p) {
    return p->token->kind == TOKEN_VARIABLE_END || p->token->kind == TOKEN_BLOCK_END ||
           p->token->kind == TOKEN_END || parser_at_operator(p, ")") ||
           parser_at_operator(p, "=") || parser_at_name(p, "in");
}

static Node *parse_series(Parser *p, Node *(*parse)(Parser *p)) {
    Node *first = parse(p);
    if (!parser_at_operator(p, ",")) return first;
    Node *node = parser_node(p, NODE_TUPLE);
    NodeList list = {0};
    VEC_PUSH(&list, first);
    while (parser_skip(p, TOKEN_OPERATOR, ",") && !at_tuple_end(p)) VEC_PUSH(&list, parse(p));
    parser_keep(p, node, &list);
    return node;
}

Node *parse_tuple(Parser *p, bool condition) {
    return parse_series(p, condition ? parse_expression : parse_or);
}

static Node *parse_plain_target(Parser *p) {
    if (!parser_at_operator(p, "(")) return parse_name(p);
    if (!parser_enter(p)) return parser_node(p, NODE_NAME);
    parser_next(p);
    Node *node = parse_series(p, parse_plain_target);
    parser_expect(p, TOKEN_OPERATOR, ")");
    p->depth--;
    return node;
}

static Node *parse_attribute_target(Parser *p) {
    Node *node = parse_plain_target(p);
    if (node->kind != NODE_NAME || !parser_skip(p, TOKEN_OPERATOR, ".")) return node;
    Node *attribute = binary(p, NODE_ATTRIBUTE, node);
    attribute->name = parser_take_name(p);
    return attribute;
}

Node *parse_target(Parser *p, bool attributes) {
    Node *node = parse_series(p, attributes ? parse_attribute_target : parse_plain_target);
    if (p->status == FERRY_OK && node->kind == NODE_CONSTANT)
        parser_fail(p, FERRY_BAD_FORMAT, "true, false and none cannot be assigned to");
    return node;
}
