/* Attributes, items, slices, and the methods of dicts and lists. */
#include "text/template/run.h"
#include "text/template/text.h"

/* ---- what a loop knows ---- */

static Value loop_attribute(Run *r, const Loop *loop, Text name) {
    size_t index = loop->index, count = loop->items.count;
    if (text_is(name, "index")) return value_integer((int64_t)index + 1);
    if (text_is(name, "index0")) return value_integer((int64_t)index);
    if (text_is(name, "revindex")) return value_integer((int64_t)(count - index));
    if (text_is(name, "revindex0")) return value_integer((int64_t)(count - index - 1));
    if (text_is(name, "first")) return value_bool(index == 0);
    if (text_is(name, "last")) return value_bool(index + 1 == count);
    if (text_is(name, "length")) return value_integer((int64_t)count);
    if (text_is(name, "depth")) return value_integer(1);
    if (text_is(name, "depth0")) return value_integer(0);
    if (text_is(name, "previtem"))
        return index ? loop->items.items[index - 1] : value_undefined("there is no previous item");
    if (text_is(name, "nextitem"))
        return index + 1 < count ? loop->items.items[index + 1]
                                 : value_undefined("there is no next item");
    const Function *method = function_find(loop_methods, name.bytes, name.length);
    return method ? run_bound(r, method, (Value){.kind = VALUE_LOOP, .loop = loop})
                  : run_fail(r, FERRY_UNSUPPORTED, "loop.%.*s is not supported", (int)name.length,
                             name.bytes);
}

static Value loop_cycle(Run *r, const Args *a) {
    if (a->call->count == 0) return RUN_FAIL(r, "loop.cycle() needs items");
    return a->call->items[a->self.loop->index % a->call->count];
}

const Function loop_methods[] = {
    {"cycle", NULL, loop_cycle},
    {0},
};

/* ---- methods of dicts and lists ---- */

static Value make_view(Run *r, const Dict *dict, bool keys, bool values) {
    Value *items = run_items(r, dict->count);
    for (size_t i = 0; !run_failed(r) && i < dict->count; i++) {
        const Pair *pair = &dict->pairs[i];
        Value *both = keys && values ? run_items(r, 2) : NULL;
        if (both) {
            both[0] = pair->key;
            both[1] = pair->value;
        }
        items[i] = both ? value_sequence(VALUE_TUPLE, both, 2) : keys ? pair->key : pair->value;
    }
    return value_sequence(VALUE_VIEW, items, dict->count);
}

static Value dict_keys(Run *r, const Args *a) {
    return make_view(r, a->self.dict, true, false);
}

static Value dict_values(Run *r, const Args *a) {
    return make_view(r, a->self.dict, false, true);
}

static Value dict_items(Run *r, const Args *a) {
    return make_view(r, a->self.dict, true, true);
}

static Value dict_get(Run *r, const Args *a) {
    const Value *found = dict_find(r, a->self.dict, a->at[0]);
    return found ? *found : a->at[1].kind == VALUE_ABSENT ? VALUE_NOTHING : a->at[1];
}

static Value copy(Run *r, const Args *a) {
    (void)r;
    return a->self;
}

const Function dict_methods[] = {
    {"keys", "", dict_keys},   {"values", "", dict_values},
    {"items", "", dict_items}, {"get", "key / default", dict_get},
    {"copy", "", copy},        {0},
};

static Value list_count(Run *r, const Args *a) {
    int64_t count = 0;
    for (size_t i = 0; i < a->self.list.count; i++)
        count += value_equal(r, a->self.list.items[i], a->at[0]);
    return value_integer(count);
}

static Value list_index(Run *r, const Args *a) {
    for (size_t i = 0; i < a->self.list.count && !run_failed(r); i++)
        if (value_equal(r, a->self.list.items[i], a->at[0])) return value_integer((int64_t)i);
    return RUN_FAIL(r, "the value is not in the list");
}

const Function list_methods[] = {
    {"count", "value /", list_count},
    {"index", "value /", list_index},
    {"copy", "", copy},
    {0},
};

static const Function *find_method(Value object, Text name) {
    const Function *table = object.kind == VALUE_TEXT                                 ? text_methods
                            : object.kind == VALUE_DICT                               ? dict_methods
                            : object.kind == VALUE_LIST || object.kind == VALUE_TUPLE ? list_methods
                                                                                      : NULL;
    return table ? function_find(table, name.bytes, name.length) : NULL;
}

/* ---- attributes and items ---- */

static Value no_attribute(Run *r, Value object, Text name) {
    static const char *const changing[] = {"append",  "extend", "insert", "pop",
                                           "remove",  "clear",  "update", "setdefault",
                                           "popitem", "sort",   "reverse"};
    if (object.kind == VALUE_UNDEFINED) return run_use(r, object);
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if ((object.kind == VALUE_DICT || object.kind == VALUE_LIST) && text_is(name, changing[i]))
            return run_undefined(r, "%s.%s() would change the object, which templates must not do",
                                 value_type(object), changing[i]);
    return run_undefined(r, "'%s object' has no attribute '%.*s'", value_type(object),
                         (int)(name.length < 100 ? name.length : 100), name.bytes);
}

Value value_attribute(Run *r, Value object, Text name) {
    const Value *found = NULL;
    if (object.kind == VALUE_LOOP) return loop_attribute(r, object.loop, name);
    const Function *method = find_method(object, name);
    if (method) return run_bound(r, method, object);
    if (object.kind == VALUE_DICT || object.kind == VALUE_NAMESPACE)
        found = dict_find_name(object.dict, name.bytes, name.length);
    if (object.kind == VALUE_MACRO && text_is(name, "name"))
        return value_string(object.macro->node->name);
    return found ? *found : no_attribute(r, object, name);
}

/* The place of an index, counted from the end when it is negative; false when there is none. */
static bool find_place(int64_t index, size_t count, size_t *place) {
    if (index < 0) index += (int64_t)count;
    *place = (size_t)index;
    return index >= 0 && (size_t)index < count;
}

static Value no_item(Run *r, Value object, Value key) {
    if (object.kind == VALUE_UNDEFINED) return run_use(r, object);
    if (value_is_whole(key))
        return run_undefined(r, "'%s object' has no item %lld", value_type(object),
                             (long long)value_whole(key));
    return run_undefined(r, "'%s object' has no such item", value_type(object));
}

Value value_item(Run *r, Value object, Value key) {
    size_t place;
    if (object.kind == VALUE_DICT) {
        const Value *found = dict_find(r, object.dict, key);
        if (found) return *found;
    }
    if (key.kind == VALUE_TEXT) return value_attribute(r, object, key.text);
    if (value_is_whole(key)) {
        if (value_is_sequence(object) && object.kind != VALUE_VIEW &&
            find_place(value_whole(key), object.list.count, &place))
            return object.list.items[place];
        if (object.kind == VALUE_TEXT && run_step(r, object.text.length / 64) &&
            find_place(value_whole(key), text_count(object.text), &place)) {
            Text part = text_part(object.text, place, place + 1);
            return value_text(part.bytes, part.length);
        }
    }
    return no_item(r, object, key);
}

Value value_path(Run *r, Value object, Value path) {
    if (path.kind != VALUE_TEXT) return value_item(r, object, path);
    Text left = path.text;
    for (;;) {
        size_t dot = text_find(left, (Text){".", 1}, 0),
               length = dot == SIZE_MAX ? left.length : dot;
        int64_t index = 0;
        bool digits = length > 0 && length < 18;
        for (size_t i = 0; i < length && digits; i++) {
            digits = left.bytes[i] >= '0' && left.bytes[i] <= '9';
            if (digits) index = index * 10 + left.bytes[i] - '0';
        }
        object =
            value_item(r, object, digits ? value_integer(index) : value_text(left.bytes, length));
        if (dot == SIZE_MAX || run_failed(r)) return object;
        left = (Text){left.bytes + dot + 1, left.length - dot - 1};
    }
}

/* ---- slices ---- */

/* An end of a slice, which may lie outside, within [low, high]. */
static int64_t slice_end(Run *r, Value v, int64_t count, int64_t low, int64_t high,
                         int64_t otherwise) {
    if (v.kind == VALUE_NONE) return otherwise;
    if (!value_is_whole(v)) {
        RUN_FAIL(r, "the ends of a slice must be integers, not %s", value_type(v));
        return 0;
    }
    int64_t at = value_whole(v);
    if (at < 0) at += count;
    return at < low ? low : at > high ? high : at;
}

Value value_slice(Run *r, Value object, Value begin, Value end, Value step) {
    bool is_text = object.kind == VALUE_TEXT;
    if (!is_text && (!value_is_sequence(object) || object.kind == VALUE_VIEW)) {
        if (object.kind == VALUE_UNDEFINED) return run_use(r, object);
        return RUN_FAIL(r, "%s cannot be sliced", value_type(object));
    }
    int64_t stride = step.kind == VALUE_NONE ? 1 : value_is_whole(step) ? value_whole(step) : 0;
    if (stride == 0) return RUN_FAIL(r, "the step of a slice must be an integer, and not 0");
    if (stride < -(int64_t)1e15) stride = -(int64_t)1e15;
    if (stride > (int64_t)1e15) stride = (int64_t)1e15;
    int64_t count = (int64_t)(is_text ? text_count(object.text) : object.list.count);
    int64_t low = stride < 0 ? -1 : 0, high = stride < 0 ? count - 1 : count;
    int64_t from = slice_end(r, begin, count, low, high, stride < 0 ? high : low);
    int64_t to = slice_end(r, end, count, low, high, stride < 0 ? low : high);
    if (run_failed(r)) return object;
    int64_t distance = stride < 0 ? from - to : to - from, size = stride < 0 ? -stride : stride;
    size_t taken = distance > 0 ? (size_t)((distance + size - 1) / size) : 0;
    if (is_text && stride == 1) {
        Text part = taken ? text_part(object.text, (size_t)from, (size_t)to) : (Text){"", 0};
        return run_step(r, object.text.length / 64) ? value_text(part.bytes, part.length) : object;
    }
    List all = value_items(r, object);
    if (stride == 1 && !run_failed(r))
        return value_sequence(object.kind, taken ? all.items + from : NULL, taken);
    Value *items = run_items(r, taken);
    if (run_failed(r)) return object;
    for (size_t i = 0; i < taken; i++) items[i] = all.items[from + (int64_t)i * stride];
    if (!is_text) return value_sequence(object.kind, items, taken);
    Buffer out = {0};
    for (size_t i = 0; i < taken; i++) run_append_text(r, &out, items[i].text);
    return run_take(r, &out);
}
