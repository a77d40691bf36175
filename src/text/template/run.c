/* Statements, scopes, macros, and the limits of a run. */
#include "text/template/run.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Expressions, statements and macros in each other. */
enum { MAX_DEPTH = 600 };

struct Variable {
    const char *name;
    Value value;
    Variable *next;
};

typedef enum Flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } Flow;

static Flow run_body(Run *r, const Node *body, Scope *scope);

/* ---- failures and limits ---- */

Value run_fail(Run *r, ferry_status status, const char *format, ...) {
    va_list args;
    if (!run_failed(r)) {
        va_start(args, format);
        r->status = template_vfail(&r->template->name, r->line, r->error, status, format, args);
        va_end(args);
    }
    return value_undefined("");
}

Value run_use(Run *r, Value undefined) {
    return RUN_FAIL(r, "%.*s", (int)undefined.text.length, undefined.text.bytes);
}

bool run_step(Run *r, size_t steps) {
    if (run_failed(r)) return false;
    if (steps > r->steps) {
        run_fail(r, FERRY_UNSUPPORTED, "the template takes too many steps");
        return false;
    }
    r->steps -= steps;
    return true;
}

bool run_enter(Run *r) {
    if (++r->depth > MAX_DEPTH)
        run_fail(r, FERRY_UNSUPPORTED, "the template calls or nests more than %d deep", MAX_DEPTH);
    return !run_failed(r);
}

static bool take_memory(Run *r, size_t bytes) {
    if (run_failed(r)) return false;
    if (bytes > r->memory) {
        run_fail(r, FERRY_UNSUPPORTED, "the template takes too much memory");
        return false;
    }
    r->memory -= bytes;
    return true;
}

void *run_alloc(Run *r, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    if (!take_memory(r, bytes)) return NULL;
    void *memory = arena_alloc(&r->arena, bytes);
    if (!memory) run_fail(r, FERRY_OUT_OF_MEMORY, "out of memory");
    return memory;
}

void run_append(Run *r, Buffer *buffer, const char *bytes, size_t length) {
    if (length && take_memory(r, length)) buffer_append(buffer, bytes, length);
    if (buffer->failed) run_fail(r, FERRY_OUT_OF_MEMORY, "out of memory");
}

void run_append_text(Run *r, Buffer *buffer, Text text) {
    run_append(r, buffer, text.bytes, text.length);
}

void run_append_string(Run *r, Buffer *buffer, const char *string) {
    run_append(r, buffer, string, strlen(string));
}

Value run_copy(Run *r, Text text) {
    char *copy = run_alloc(r, text.length, 1);
    if (copy && text.length) memcpy(copy, text.bytes, text.length);
    return copy ? value_text(copy, text.length) : value_undefined("");
}

Value run_take(Run *r, Buffer *buffer) {
    Value v = run_copy(r, (Text){buffer_string(buffer), buffer->length});
    buffer_free(buffer);
    return v;
}

Value run_undefined(Run *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *why = arena_vformat(&r->arena, format, args);
    va_end(args);
    take_memory(r, strlen(why));
    return value_undefined(why);
}

Value run_bound(Run *r, const Function *function, Value self) {
    Bound *bound = run_alloc(r, 1, sizeof *bound);
    if (!bound) return value_undefined("");
    *bound = (Bound){function, self};
    return (Value){.kind = VALUE_FUNCTION, .bound = bound};
}

Value *run_items(Run *r, size_t count) {
    return run_alloc(r, count, sizeof(Value));
}

/* ---- scopes ---- */

Scope *scope_new(Run *r, Scope *parent) {
    static Scope none; /* stays empty: nothing is set after a failure */
    Scope *scope = run_alloc(r, 1, sizeof *scope);
    if (!scope) return &none;
    scope->parent = parent;
    return scope;
}

void scope_set(Run *r, Scope *scope, const char *name, Value value) {
    if (run_failed(r)) return;
    for (Variable *v = scope->variables; v; v = v->next) {
        if (strcmp(v->name, name) != 0) continue;
        v->value = value;
        return;
    }
    Variable *v = run_alloc(r, 1, sizeof *v);
    if (!v) return;
    *v = (Variable){name, value, scope->variables};
    scope->variables = v;
}

const Value *scope_find(const Scope *scope, const char *name) {
    for (; scope; scope = scope->parent)
        for (const Variable *v = scope->variables; v; v = v->next)
            if (strcmp(v->name, name) == 0) return &v->value;
    return NULL;
}

/* ---- assignment ---- */

static void assign_attribute(Run *r, const Node *target, Scope *scope, Value value) {
    const Value *object = scope_find(scope, target->first->name);
    if (!object || object->kind != VALUE_NAMESPACE)
        RUN_FAIL(r, "cannot set %s.%s: %s is not a namespace", target->first->name, target->name,
                 target->first->name);
    else if (*target->name == '_')
        RUN_FAIL(r, "cannot set %s.%s: names of namespaces must not begin with _",
                 target->first->name, target->name);
    else
        dict_set(r, object->dict, value_string(target->name), value);
}

static void assign(Run *r, const Node *target, Scope *scope, Value value) {
    if (target->kind == NODE_NAME) {
        scope_set(r, scope, target->name, value);
    } else if (target->kind == NODE_ATTRIBUTE) {
        assign_attribute(r, target, scope, value);
    } else {
        List items = value_items(r, value);
        if (!run_failed(r) && items.count != target->count)
            RUN_FAIL(r, "expected %zu values to unpack, found %zu", target->count, items.count);
        for (size_t i = 0; !run_failed(r) && i < target->count; i++)
            assign(r, target->items[i], scope, items.items[i]);
    }
}

Value run_captured(Run *r, const Node *body, Scope *scope) {
    Buffer captured = {0}, *outer = r->out;
    r->out = &captured;
    run_body(r, body, scope);
    r->out = outer;
    return run_take(r, &captured);
}

/* ---- macros ---- */

/* The value of the parameter at `i` of a macro: given by place or name, or by default. */
static Value macro_argument(Run *r, const Macro *macro, size_t i, const Call *call, Scope *scope) {
    const Node *node = macro->node;
    const char *name = node->items[i]->name;
    if (i < call->count) return call->items[i];
    for (size_t k = 0; k < call->named_count; k++)
        if (strcmp(call->named[k].name, name) == 0) return call->named[k].value;
    for (size_t k = 0; k < node->keyword_count; k++)
        if (strcmp(node->keywords[k].name, name) == 0)
            return run_expression(r, node->keywords[k].value, scope);
    return value_undefined("parameter was not provided");
}

static bool is_parameter(const Node *macro, const char *name) {
    for (size_t i = 0; i < macro->count; i++)
        if (strcmp(macro->items[i]->name, name) == 0) return true;
    return strcmp(name, "caller") == 0;
}

Value macro_call(Run *r, const Macro *macro, const Call *call) {
    if (call->count > macro->node->count)
        return RUN_FAIL(r, "the macro %s takes %zu arguments, not %zu", macro->node->name,
                        macro->node->count, call->count);
    Scope *scope = scope_new(r, macro->scope);
    for (size_t k = 0; k < call->named_count; k++) {
        const char *name = call->named[k].name;
        if (!is_parameter(macro->node, name))
            return RUN_FAIL(r, "the macro %s has no parameter %s", macro->node->name, name);
        if (strcmp(name, "caller") == 0) scope_set(r, scope, "caller", call->named[k].value);
    }
    for (size_t i = 0; i < macro->node->count; i++)
        scope_set(r, scope, macro->node->items[i]->name, macro_argument(r, macro, i, call, scope));
    if (!run_enter(r)) return value_undefined("");
    unsigned line = r->line;
    Value result = run_captured(r, macro->node->body, scope);
    if (!run_failed(r)) r->line = line;
    r->depth--;
    return result;
}

/* ---- statements ---- */

static void run_output(Run *r, const Node *node, Scope *scope) {
    Value v = run_expression(r, node->first, scope);
    if (run_failed(r)) return;
    if (v.kind == VALUE_TEXT)
        run_append_text(r, r->out, v.text);
    else
        value_print(r, r->out, v);
}

/* The items that a loop goes through: those that its condition lets pass. */
static List loop_items(Run *r, const Node *node, Scope *scope) {
    List all = value_items(r, run_expression(r, node->second, scope));
    if (!node->third || run_failed(r)) return all;
    Value *kept = run_items(r, all.count);
    size_t count = 0;
    for (size_t i = 0; !run_failed(r) && i < all.count; i++) {
        Scope *inner = scope_new(r, scope);
        assign(r, node->first, inner, all.items[i]);
        if (value_truth(run_expression(r, node->third, inner)) && !run_failed(r))
            kept[count++] = all.items[i];
    }
    return (List){kept, count};
}

static Flow run_for(Run *r, const Node *node, Scope *scope) {
    List items = loop_items(r, node, scope);
    if (run_failed(r)) return FLOW_ON;
    if (items.count == 0) return run_body(r, node->other, scope_new(r, scope));
    Loop *loop = run_alloc(r, 1, sizeof *loop);
    if (!loop) return FLOW_ON;
    loop->items = items;
    for (size_t i = 0; !run_failed(r) && i < items.count; i++) {
        Scope *inner = scope_new(r, scope);
        loop->index = i;
        scope_set(r, inner, "loop", (Value){.kind = VALUE_LOOP, .loop = loop});
        assign(r, node->first, inner, items.items[i]);
        if (run_body(r, node->body, inner) == FLOW_BREAK) break;
    }
    return FLOW_ON;
}

static Flow run_if(Run *r, const Node *node, Scope *scope) {
    for (;; node = node->second) {
        r->line = node->line;
        bool holds = value_truth(run_expression(r, node->first, scope));
        if (run_failed(r)) return FLOW_ON;
        if (holds) return run_body(r, node->body, scope);
        if (!node->second) return run_body(r, node->other, scope);
    }
}

static Flow run_with(Run *r, const Node *node, Scope *scope) {
    Scope *inner = scope_new(r, scope);
    for (size_t i = 0; i + 1 < node->count; i += 2)
        assign(r, node->items[i], inner, run_expression(r, node->items[i + 1], scope));
    return run_body(r, node->body, inner);
}

static Flow run_statement(Run *r, const Node *node, Scope *scope) {
    switch (node->kind) {
    case NODE_DATA: run_append_text(r, r->out, node->value.text); break;
    case NODE_OUTPUT: run_output(r, node, scope); break;
    case NODE_IF: return run_if(r, node, scope);
    case NODE_FOR: return run_for(r, node, scope);
    case NODE_SET: assign(r, node->first, scope, run_expression(r, node->second, scope)); break;
    case NODE_WITH: return run_with(r, node, scope);
    case NODE_MACRO: scope_set(r, scope, node->name, run_expression(r, node, scope)); break;
    case NODE_SCOPE: return run_body(r, node->body, scope_new(r, scope));
    case NODE_BREAK: return FLOW_BREAK;
    case NODE_CONTINUE: return FLOW_CONTINUE;
    default: run_fail(r, FERRY_INTERNAL, "not a statement"); break;
    }
    return FLOW_ON;
}

static Flow run_body(Run *r, const Node *body, Scope *scope) {
    Flow flow = FLOW_ON;
    if (!body || !run_enter(r)) return FLOW_ON;
    for (; body && flow == FLOW_ON && run_step(r, 1); body = body->next) {
        r->line = body->line;
        flow = run_statement(r, body, scope);
    }
    r->depth--;
    return flow;
}

ferry_status template_render(const Template *template, const json_t *variables,
                             TemplateLimits limits, Buffer *out, ferry_error *error) {
    Run r = {.template = template,
             .out = out,
             .line = 1,
             .steps = limits.steps,
             .memory = limits.memory,
             .error = error};
    Scope *scope = scope_new(&r, NULL);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)variables, name, value)
        scope_set(&r, scope, name, value_from_json(&r, value));
    run_body(&r, template->body, scope_new(&r, scope));
    if (out->failed && r.status == FERRY_OK) run_fail(&r, FERRY_OUT_OF_MEMORY, "out of memory");
    arena_free(&r.arena);
    return r.status;
}
