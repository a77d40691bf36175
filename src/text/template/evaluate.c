/* Expressions. */
#include "text/template/run.h"

/* What arguments of calls are kept in while they are evaluated. */
typedef struct Arguments {
    Call call;
    Value *items;
    NamedValue *named;
} Arguments;

static Value evaluate_name(Run *r, const Node *node, Scope *scope) {
    const Value *found = scope_find(scope, node->name);
    if (found) return *found;
    const Function *function = function_find(template_globals, node->name, strlen(node->name));
    return function ? run_bound(r, function, VALUE_NOTHING)
                    : run_undefined(r, "'%s' is undefined", node->name);
}

static Value evaluate_sequence(Run *r, const Node *node, Scope *scope) {
    Value *items = run_items(r, node->count);
    for (size_t i = 0; !run_failed(r) && i < node->count; i++)
        items[i] = run_expression(r, node->items[i], scope);
    return value_sequence(node->kind == NODE_LIST ? VALUE_LIST : VALUE_TUPLE, items, node->count);
}

static Value evaluate_dict(Run *r, const Node *node, Scope *scope) {
    Value v = run_dict(r, VALUE_DICT, node->count / 2);
    for (size_t i = 0; !run_failed(r) && i + 1 < node->count; i += 2) {
        Value key = run_expression(r, node->items[i], scope);
        dict_set(r, v.dict, key, run_expression(r, node->items[i + 1], scope));
    }
    return v;
}

static Value evaluate_item(Run *r, const Node *node, Scope *scope) {
    Value object = run_expression(r, node->first, scope);
    const Node *key = node->second;
    if (key->kind != NODE_SLICE) {
        Value index = run_expression(r, key, scope);
        return run_failed(r) ? index : value_item(r, object, index);
    }
    Value parts[3] = {VALUE_NOTHING, VALUE_NOTHING, VALUE_NOTHING};
    for (size_t i = 0; i < key->count; i++)
        if (key->items[i]) parts[i] = run_expression(r, key->items[i], scope);
    return run_failed(r) ? object : value_slice(r, object, parts[0], parts[1], parts[2]);
}

/* What *more adds to the places. */
static void add_more(Run *r, Arguments *a, List more) {
    size_t count = a->call.count;
    Value *items = run_items(r, count + more.count);
    if (!items) return;
    if (count) memcpy(items, a->items, count * sizeof *items);
    if (more.count) memcpy(items + count, more.items, more.count * sizeof *items);
    a->call.items = items;
    a->call.count = count + more.count;
}

static void add_more_named(Run *r, Arguments *a, Value more) {
    size_t count = a->call.named_count;
    if (more.kind != VALUE_DICT) {
        RUN_FAIL(r, "expected a dict after **, found %s", value_type(more));
        return;
    }
    NamedValue *named = run_alloc(r, count + more.dict->count, sizeof *named);
    if (!named) return;
    if (count) memcpy(named, a->named, count * sizeof *named);
    for (size_t i = 0; !run_failed(r) && i < more.dict->count; i++) {
        Pair pair = more.dict->pairs[i];
        if (pair.key.kind != VALUE_TEXT) {
            RUN_FAIL(r, "the names of arguments must be strings");
            return;
        }
        named[count++] = (NamedValue){
            arena_string_n(&r->arena, pair.key.text.bytes, pair.key.text.length), pair.value};
    }
    a->call.named = named;
    a->call.named_count = count;
}

static Call evaluate_arguments(Run *r, const Node *node, Scope *scope) {
    Arguments a = {.items = run_items(r, node->count),
                   .named = run_alloc(r, node->keyword_count, sizeof(NamedValue))};
    a.call = (Call){a.items, node->count, a.named, node->keyword_count};
    for (size_t i = 0; !run_failed(r) && i < node->count; i++)
        a.items[i] = run_expression(r, node->items[i], scope);
    for (size_t i = 0; !run_failed(r) && i < node->keyword_count; i++) {
        const Keyword *keyword = &node->keywords[i];
        a.named[i] = (NamedValue){keyword->name, run_expression(r, keyword->value, scope)};
    }
    if (node->more && !run_failed(r))
        add_more(r, &a, value_items(r, run_expression(r, node->more, scope)));
    if (node->more_named && !run_failed(r))
        add_more_named(r, &a, run_expression(r, node->more_named, scope));
    return a.call;
}

static Value evaluate_call(Run *r, const Node *node, Scope *scope) {
    Value callee = run_expression(r, node->first, scope);
    if (run_failed(r)) return callee;
    Call call = evaluate_arguments(r, node, scope);
    if (run_failed(r)) return callee;
    r->line = node->line;
    return value_call(r, callee, node->first->name, &call);
}

/* A filter or a test. */
static Value evaluate_function(Run *r, const Node *node, Scope *scope) {
    Value first = run_expression(r, node->first, scope);
    Call call = evaluate_arguments(r, node, scope);
    if (run_failed(r)) return first;
    r->line = node->line;
    if (!node->function)
        return run_fail(r, FERRY_UNSUPPORTED, "the %s \"%s\" is not supported",
                        node->kind == NODE_FILTER ? "filter" : "test", node->name);
    return function_call(r, node->function, first, &call);
}

static bool compare(Run *r, const char *name, Value a, Value b) {
    if (strcmp(name, "==") == 0) return value_equal(r, a, b);
    if (strcmp(name, "!=") == 0) return !value_equal(r, a, b);
    if (strcmp(name, "in") == 0) return value_contains(r, b, a);
    if (strcmp(name, "not in") == 0) return !value_contains(r, b, a);
    return value_ordered(r, name, a, b);
}

static Value evaluate_comparison(Run *r, const Node *node, Scope *scope) {
    Value left = run_expression(r, node->first, scope);
    for (size_t i = 0; !run_failed(r) && i < node->count; i++) {
        Value right = run_expression(r, node->items[i]->first, scope);
        if (run_failed(r) || !compare(r, node->items[i]->name, left, right))
            return value_bool(false);
        left = right;
    }
    return value_bool(true);
}

static Value evaluate_condition(Run *r, const Node *node, Scope *scope) {
    bool holds = value_truth(run_expression(r, node->second, scope));
    if (run_failed(r)) return VALUE_NOTHING;
    if (holds) return run_expression(r, node->first, scope);
    if (node->third) return run_expression(r, node->third, scope);
    return value_undefined(
        "the inline if-expression evaluated to false and no else section was defined");
}

static Value evaluate_sign(Run *r, const Node *node, Scope *scope) {
    Value v = run_expression(r, node->first, scope);
    if (run_failed(r)) return v;
    return node->kind == NODE_PLUS ? value_binary(r, "+", value_integer(0), v)
           : v.kind == VALUE_FLOAT ? value_real(-v.real)
                                   : value_binary(r, "-", value_integer(0), v);
}

static Value evaluate_macro(Run *r, const Node *node, Scope *scope) {
    Macro *macro = run_alloc(r, 1, sizeof *macro);
    if (!macro) return value_undefined("");
    *macro = (Macro){node, scope};
    return (Value){.kind = VALUE_MACRO, .macro = macro};
}

static Value evaluate(Run *r, const Node *node, Scope *scope) {
    Value v;
    switch (node->kind) {
    case NODE_CONSTANT: return node->value;
    case NODE_NAME: return evaluate_name(r, node, scope);
    case NODE_LIST:
    case NODE_TUPLE: return evaluate_sequence(r, node, scope);
    case NODE_DICT: return evaluate_dict(r, node, scope);
    case NODE_ATTRIBUTE:
        v = run_expression(r, node->first, scope);
        return run_failed(r) ? v : value_attribute(r, v, (Text){node->name, strlen(node->name)});
    case NODE_ITEM: return evaluate_item(r, node, scope);
    case NODE_CALL: return evaluate_call(r, node, scope);
    case NODE_FILTER:
    case NODE_TEST: return evaluate_function(r, node, scope);
    case NODE_NOT: return value_bool(!value_truth(run_expression(r, node->first, scope)));
    case NODE_NEGATE:
    case NODE_PLUS: return evaluate_sign(r, node, scope);
    case NODE_AND:
    case NODE_OR:
        v = run_expression(r, node->first, scope);
        return run_failed(r) || value_truth(v) == (node->kind == NODE_OR)
                   ? v
                   : run_expression(r, node->second, scope);
    case NODE_BINARY:
        v = run_expression(r, node->first, scope);
        if (!run_failed(r)) {
            Value second = run_expression(r, node->second, scope);
            if (!run_failed(r)) return value_binary(r, node->name, v, second);
        }
        return v;
    case NODE_COMPARE: return evaluate_comparison(r, node, scope);
    case NODE_CONDITION: return evaluate_condition(r, node, scope);
    case NODE_CAPTURE: return run_captured(r, node->body, scope_new(r, scope));
    case NODE_MACRO: return evaluate_macro(r, node, scope);
    default: return run_fail(r, FERRY_INTERNAL, "not an expression");
    }
}

Value run_expression(Run *r, const Node *node, Scope *scope) {
    if (!run_step(r, 1) || !run_enter(r)) return value_undefined("");
    r->line = node->line;
    Value v = evaluate(r, node, scope);
    r->depth--;
    return v;
}
