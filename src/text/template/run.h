/* Running a template: what the parts of the interpreter share.
 *
 * The first failure is kept in the Run, with its line; from then on every function returns an undefined
 * value, soon. Nothing that a template does takes more than the limits allow: steps, memory, depth. */
#ifndef TEMPLATE_RUN_H
#define TEMPLATE_RUN_H

#include "text/template/node.h"
#include "text/template/template.h"

typedef struct Variable Variable;
typedef struct Scope Scope;
typedef struct Args Args;

struct Scope {
    Scope *parent;
    Variable *variables;
};

struct Loop {
    List items;
    size_t index;
};

/* A macro, with the scope that it was defined in. */
struct Macro {
    const Node *node;
    Scope *scope;
};

typedef struct Run {
    const Template *template;
    Arena arena;
    Buffer *out; /* where output goes now */
    unsigned line, depth;
    size_t steps, memory; /* what is left of the limits */
    ferry_status status;
    ferry_error *error;
} Run;

/* ---- failures and limits ---- */

/* Record a failure; returns an undefined value. */
Value run_fail(Run *r, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Messages and template do not fit together. */
#define RUN_FAIL(r, ...) run_fail(r, FERRY_INVALID_ARGUMENT, __VA_ARGS__)

static inline bool run_failed(const Run *r) {
    return r->status != FERRY_OK;
}

/* Take steps from the limit. False, and a failure, when none are left. */
bool run_step(Run *r, size_t steps);

/* One level deeper, down to a limit; leaving is `r->depth--`. */
bool run_enter(Run *r);

/* Zeroed memory; NULL, and a failure, when the limit is reached. */
void *run_alloc(Run *r, size_t count, size_t size);

/* ---- building text and lists ---- */

void run_append(Run *r, Buffer *buffer, const char *bytes, size_t length);
void run_append_text(Run *r, Buffer *buffer, Text text);
void run_append_string(Run *r, Buffer *buffer, const char *string);

/* The text of a buffer, which is freed. */
Value run_take(Run *r, Buffer *buffer);

Value run_copy(Run *r, Text text);

/* An undefined value with a reason; a function with its object. */
Value run_undefined(Run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
Value run_bound(Run *r, const struct Function *function, Value self);

/* A list of `count` items, to be filled; NULL after a failure. */
Value *run_items(Run *r, size_t count);

/* A new dict with room for `capacity` pairs. */
Value run_dict(Run *r, ValueKind kind, size_t capacity);
const Value *dict_find(Run *r, const Dict *dict, Value key);
const Value *dict_find_name(const Dict *dict, const char *name, size_t length);
/* Replaces what was there. */
void dict_set(Run *r, Dict *dict, Value key, Value value);

/* ---- values (compare.c, print.c) ---- */

bool value_equal(Run *r, Value a, Value b);

/* Below, equal or above: -1, 0, 1; 2 for NaN. A failure for values without an order. */
int value_order(Run *r, Value a, Value b);

/* "<", "<=", ">" or ">=". */
bool value_ordered(Run *r, const char *name, Value a, Value b);

/* A copy of the pairs in the order of their keys; equal ones stay in theirs. NULL after a failure. */
Pair *run_sorted(Run *r, const Pair *pairs, size_t count, bool reverse);

/* The failure of using an undefined value, with its reason. */
Value run_use(Run *r, Value undefined);

/* Python's `in`. */
bool value_contains(Run *r, Value container, Value item);

/* The items of anything that can be gone through; drains iterators. */
List value_items(Run *r, Value v);

/* Python's str() and repr(), appended. */
void value_print(Run *r, Buffer *out, Value v);
void value_show(Run *r, Buffer *out, Value v);

/* str() as a value; `v` itself when it is a text. */
Value value_to_text(Run *r, Value v);

typedef struct JsonStyle {
    const char *indent; /* NULL: on one line */
    Text item_separator, key_separator;
    bool ascii, sort;
} JsonStyle;

/* json.dumps of Python. */
void value_to_json(Run *r, Buffer *out, Value v, const JsonStyle *style, unsigned level);

/* NULL stands for an absent value. */
Value value_from_json(Run *r, const json_t *json);

/* ---- operators and members (operate.c, member.c) ---- */

Value value_binary(Run *r, const char *name, Value a, Value b);
Value value_attribute(Run *r, Value object, Text name);
Value value_item(Run *r, Value object, Value key);
Value value_slice(Run *r, Value object, Value begin, Value end, Value step);

/* text % value and text.format(...): the simple forms. */
Value text_format(Run *r, Text text, Value value);
Value text_format_call(Run *r, const Args *args);

/* An attribute path of filters: "a.b.0", or an integer. */
Value value_path(Run *r, Value object, Value path);

/* ---- functions: globals, methods, filters and tests ---- */

typedef struct NamedValue {
    const char *name;
    Value value;
} NamedValue;

typedef struct Call {
    const Value *items;
    size_t count;
    const NamedValue *named;
    size_t named_count;
} Call;

enum { FUNCTION_MAX_PARAMETERS = 5 };

/* What a function is called with: its object (or what is filtered or tested), and its arguments by
 * parameter, or, when it has no list of parameters, as they were given. */
struct Args {
    Value self;
    Value at[FUNCTION_MAX_PARAMETERS]; /* VALUE_ABSENT: not given */
    const Call *call;
};

typedef struct Function {
    const char *name;
    const char *parameters; /* names separated by blanks, those that must be given before a "/";
                               NULL: anything */
    Value (*call)(Run *r, const Args *args);
} Function;

/* A function with its object. */
struct Bound {
    const Function *function;
    Value self;
};

/* A table of functions ends with one without a name. */
const Function *function_find(const Function *table, const char *name, size_t length);

extern const Function template_filters[], template_list_filters[], template_tests[],
    template_globals[], text_methods[], dict_methods[], list_methods[], loop_methods[];

const Function *filter_find(const char *name, size_t length);

Value function_call(Run *r, const Function *function, Value self, const Call *call);
Value macro_call(Run *r, const Macro *macro, const Call *call);

/* Call a value, `what` for messages. */
Value value_call(Run *r, Value callee, const char *what, const Call *call);

/* Arguments of functions: text (str() of anything but an absent one), whole numbers, truth. */
Text argument_text(Run *r, Value v, const char *otherwise);
int64_t argument_whole(Run *r, Value v, int64_t otherwise);
bool argument_truth(Value v, bool otherwise);

/* ---- evaluation ---- */

Value run_expression(Run *r, const Node *node, Scope *scope);

/* Run statements with their output captured. */
Value run_captured(Run *r, const Node *body, Scope *scope);

Scope *scope_new(Run *r, Scope *parent);
void scope_set(Run *r, Scope *scope, const char *name, Value value);
const Value *scope_find(const Scope *scope, const char *name);

#endif
