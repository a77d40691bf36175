/* Calling: finding functions in tables, arguments to parameters, and the global functions. */
#define _POSIX_C_SOURCE 200809L
#include "text/template/run.h"

#include <time.h>

const Function *function_find(const Function *table, const char *name, size_t length) {
    for (; table->name; table++)
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0) return table;
    return NULL;
}

const Function *filter_find(const char *name, size_t length) {
    const Function *found = function_find(template_filters, name, length);
    return found ? found : function_find(template_list_filters, name, length);
}

/* What is given for the parameter at `index`, by place or by name. */
static Value given(const Call *call, size_t index, const char *name, size_t length, size_t *named) {
    Value v = index < call->count ? call->items[index] : (Value){.kind = VALUE_ABSENT};
    for (size_t k = 0; k < call->named_count; k++) {
        const char *found = call->named[k].name;
        if (strlen(found) != length || memcmp(found, name, length) != 0) continue;
        v = call->named[k].value;
        ++*named;
    }
    return v;
}

/* Arguments to their parameters. */
static bool bind(Run *r, const Function *f, Args *args) {
    const char *name = f->parameters, *bar = strchr(name, '/');
    size_t index = 0, named = 0;
    for (size_t length; (length = strcspn(name, " ")); name += length + (name[length] == ' ')) {
        if (*name == '/') continue;
        args->at[index] = given(args->call, index, name, length, &named);
        if (bar && name < bar && args->at[index].kind == VALUE_ABSENT) {
            RUN_FAIL(r, "%s() needs the argument %.*s", f->name, (int)length, name);
            return false;
        }
        index++;
    }
    if (args->call->count <= index && named == args->call->named_count) return true;
    RUN_FAIL(r, "%s() takes (%s), and not what it is given", f->name, f->parameters);
    return false;
}

Value function_call(Run *r, const Function *function, Value self, const Call *call) {
    Args args = {.self = self, .call = call};
    if (!run_step(r, 1) || (function->parameters && !bind(r, function, &args)))
        return value_undefined("");
    return function->call(r, &args);
}

Value value_call(Run *r, Value callee, const char *what, const Call *call) {
    if (callee.kind == VALUE_MACRO) return macro_call(r, callee.macro, call);
    if (callee.kind == VALUE_FUNCTION)
        return function_call(r, callee.bound->function, callee.bound->self, call);
    if (callee.kind == VALUE_UNDEFINED) return run_use(r, callee);
    return RUN_FAIL(r, "%s is %s, which cannot be called", what ? what : "a value",
                    value_type(callee));
}

/* ---- arguments ---- */

Text argument_text(Run *r, Value v, const char *otherwise) {
    if (v.kind == VALUE_ABSENT) return (Text){otherwise, strlen(otherwise)};
    v = value_to_text(r, v);
    return run_failed(r) ? (Text){"", 0} : v.text;
}

int64_t argument_whole(Run *r, Value v, int64_t otherwise) {
    if (v.kind == VALUE_ABSENT || v.kind == VALUE_NONE) return otherwise;
    if (value_is_whole(v)) return value_whole(v);
    RUN_FAIL(r, "expected an integer, found %s", value_type(v));
    return otherwise;
}

bool argument_truth(Value v, bool otherwise) {
    return v.kind == VALUE_ABSENT ? otherwise : value_truth(v);
}

/* ---- globals ---- */

static Value global_range(Run *r, const Args *a) {
    enum { MAX_RANGE = 100000 };
    int64_t begin = a->at[1].kind == VALUE_ABSENT ? 0 : argument_whole(r, a->at[0], 0);
    int64_t end = argument_whole(r, a->at[a->at[1].kind == VALUE_ABSENT ? 0 : 1], 0);
    int64_t step = argument_whole(r, a->at[2], 1);
    if (step == 0) return RUN_FAIL(r, "range() with a step of 0");
    __extension__ typedef __int128 Wide;
    Wide distance = step > 0 ? (Wide)end - begin : (Wide)begin - end;
    Wide size = step > 0 ? (Wide)step : -(Wide)step;
    Wide count = distance > 0 ? (distance + size - 1) / size : 0;
    if (count > MAX_RANGE) return RUN_FAIL(r, "range() of more than %d numbers", MAX_RANGE);
    Value *items = run_items(r, (size_t)count);
    if (run_failed(r)) return VALUE_NOTHING;
    for (size_t i = 0; i < (size_t)count; i++) items[i] = value_integer(begin + (int64_t)i * step);
    return value_sequence(VALUE_RANGE, items, (size_t)count);
}

/* dict(pairs or dict, a=1): also what namespace() begins with. */
static Value make_dict(Run *r, const Args *a, ValueKind kind) {
    const Call *call = a->call;
    Value v = run_dict(r, kind, call->named_count);
    if (call->count > 1)
        return RUN_FAIL(r, "expected one dict or list of pairs, found %zu", call->count);
    Value first = call->count ? call->items[0] : (Value){.kind = VALUE_TUPLE};
    if (first.kind == VALUE_DICT) {
        for (size_t i = 0; !run_failed(r) && i < first.dict->count; i++)
            dict_set(r, v.dict, first.dict->pairs[i].key, first.dict->pairs[i].value);
    } else {
        List pairs = value_items(r, first);
        for (size_t i = 0; !run_failed(r) && i < pairs.count; i++) {
            List pair = value_items(r, pairs.items[i]);
            if (pair.count != 2) return RUN_FAIL(r, "expected pairs of a key and a value");
            dict_set(r, v.dict, pair.items[0], pair.items[1]);
        }
    }
    for (size_t i = 0; !run_failed(r) && i < call->named_count; i++)
        dict_set(r, v.dict, value_string(call->named[i].name), call->named[i].value);
    return v;
}

static Value global_dict(Run *r, const Args *a) {
    return make_dict(r, a, VALUE_DICT);
}

static Value global_namespace(Run *r, const Args *a) {
    Value v = make_dict(r, a, VALUE_NAMESPACE);
    for (size_t i = 0; !run_failed(r) && i < v.dict->count; i++) {
        Value key = v.dict->pairs[i].key;
        if (key.kind == VALUE_TEXT && key.text.length && *key.text.bytes == '_')
            return RUN_FAIL(r, "names of namespaces must not begin with _");
    }
    return v;
}

static Value raise_exception(Run *r, const Args *a) {
    Text message = argument_text(r, a->at[0], "");
    return RUN_FAIL(r, "the template refuses this: %.*s", (int)message.length, message.bytes);
}

static Value strftime_now(Run *r, const Args *a) {
    char out[512];
    time_t now = time(NULL);
    struct tm local;
    Text text = argument_text(r, a->at[0], "");
    char *format = run_alloc(r, text.length + 2, 1);
    if (!format || !localtime_r(&now, &local)) return VALUE_NOTHING;
    if (text.length) memcpy(format, text.bytes, text.length);
    format[text.length] = '.'; /* so that an empty result is told from one that does not fit */
    size_t length = text.length < sizeof out / 2 ? strftime(out, sizeof out, format, &local) : 0;
    if (length == 0) return RUN_FAIL(r, "strftime_now() makes a text that is too long");
    return run_copy(r, (Text){out, length - 1});
}

const Function template_globals[] = {
    {"range", "start / stop step", global_range}, {"dict", NULL, global_dict},
    {"namespace", NULL, global_namespace},        {"raise_exception", "message /", raise_exception},
    {"strftime_now", "format /", strftime_now},   {0},
};
