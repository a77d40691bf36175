/* Truth, equality, order, membership, and dicts. */
#include "text/template/value.h"
#include "text/template/run.h"
#include "text/template/text.h"

bool value_truth(Value v) {
    switch (v.kind) {
    case VALUE_ABSENT:
    case VALUE_UNDEFINED:
    case VALUE_NONE: return false;
    case VALUE_BOOL: return v.boolean;
    case VALUE_INTEGER: return v.integer != 0;
    case VALUE_FLOAT: return v.real != 0;
    case VALUE_TEXT: return v.text.length > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_RANGE:
    case VALUE_VIEW: return v.list.count > 0;
    case VALUE_DICT: return v.dict->count > 0;
    default: return true;
    }
}

const char *value_type(Value v) {
    static const char *const names[] = {
        [VALUE_ABSENT] = "nothing",
        [VALUE_UNDEFINED] = "Undefined",
        [VALUE_NONE] = "NoneType",
        [VALUE_BOOL] = "bool",
        [VALUE_INTEGER] = "int",
        [VALUE_FLOAT] = "float",
        [VALUE_TEXT] = "str",
        [VALUE_LIST] = "list",
        [VALUE_TUPLE] = "tuple",
        [VALUE_RANGE] = "range",
        [VALUE_VIEW] = "view of a dict",
        [VALUE_DICT] = "dict",
        [VALUE_NAMESPACE] = "namespace",
        [VALUE_ITERATOR] = "generator",
        [VALUE_LOOP] = "loop",
        [VALUE_FUNCTION] = "function",
        [VALUE_MACRO] = "macro",
    };
    return names[v.kind];
}

static bool text_equal(Run *r, Text a, Text b) {
    return a.length == b.length && run_step(r, a.length / 64) &&
           (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static bool lists_equal(Run *r, List a, List b) {
    if (a.count != b.count) return false;
    for (size_t i = 0; i < a.count; i++)
        if (!value_equal(r, a.items[i], b.items[i])) return false;
    return true;
}

static bool dicts_equal(Run *r, const Dict *a, const Dict *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const Value *other = dict_find(r, b, a->pairs[i].key);
        if (!other || !value_equal(r, a->pairs[i].value, *other)) return false;
    }
    return true;
}

static bool values_equal(Run *r, Value a, Value b) {
    if (value_is_whole(a) && value_is_whole(b)) return value_whole(a) == value_whole(b);
    if (value_is_number(a) && value_is_number(b)) return value_number(a) == value_number(b);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE: return true;
    case VALUE_TEXT: return text_equal(r, a.text, b.text);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_RANGE:
    case VALUE_VIEW: return lists_equal(r, a.list, b.list);
    case VALUE_DICT: return dicts_equal(r, a.dict, b.dict);
    default: return a.dict == b.dict; /* the same object */
    }
}

bool value_equal(Run *r, Value a, Value b) {
    if (!run_step(r, 1) || !run_enter(r)) return false;
    bool equal = values_equal(r, a, b);
    r->depth--;
    return equal && !run_failed(r);
}

static int text_order(Text a, Text b) {
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.bytes, b.bytes, common) : 0;
    if (order) return order < 0 ? -1 : 1;
    return (a.length > b.length) - (a.length < b.length);
}

/* The first items that differ decide, then the counts. */
static int lists_order(Run *r, List a, List b) {
    for (size_t i = 0; i < a.count && i < b.count; i++) {
        if (value_equal(r, a.items[i], b.items[i])) continue;
        return run_failed(r) ? 0 : value_order(r, a.items[i], b.items[i]);
    }
    return (a.count > b.count) - (a.count < b.count);
}

int value_order(Run *r, Value a, Value b) {
    int order = 0;
    if (!run_step(r, 1) || !run_enter(r)) return 0;
    if (value_is_whole(a) && value_is_whole(b)) {
        order = (value_whole(a) > value_whole(b)) - (value_whole(a) < value_whole(b));
    } else if (value_is_number(a) && value_is_number(b)) {
        double x = value_number(a), y = value_number(b);
        order = x != x || y != y ? 2 : (x > y) - (x < y);
    } else if (a.kind == VALUE_TEXT && b.kind == VALUE_TEXT) {
        order = text_order(a.text, b.text);
    } else if (a.kind == b.kind && (a.kind == VALUE_LIST || a.kind == VALUE_TUPLE)) {
        order = lists_order(r, a.list, b.list);
    } else if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED) {
        run_use(r, a.kind == VALUE_UNDEFINED ? a : b);
    } else {
        RUN_FAIL(r, "%s and %s have no order", value_type(a), value_type(b));
    }
    r->depth--;
    return order;
}

bool value_ordered(Run *r, const char *name, Value a, Value b) {
    int order = value_order(r, a, b);
    if (order == 2) return false;
    return (*name == '<' ? order < 0 : order > 0) || (name[1] == '=' && order == 0);
}

bool value_contains(Run *r, Value container, Value item) {
    if (container.kind == VALUE_TEXT) {
        if (item.kind == VALUE_TEXT)
            return run_step(r, container.text.length / 64) &&
                   text_find(container.text, item.text, 0) != SIZE_MAX;
        RUN_FAIL(r, "a string can contain strings only, not %s", value_type(item));
        return false;
    }
    if (container.kind == VALUE_DICT) return dict_find(r, container.dict, item) != NULL;
    if (container.kind == VALUE_ITERATOR) {
        List *left = &container.iterator->left;
        while (left->count && !run_failed(r)) {
            left->count--;
            if (value_equal(r, *left->items++, item)) return true;
        }
        return false;
    }
    List items = value_items(r, container);
    for (size_t i = 0; !run_failed(r) && i < items.count; i++)
        if (value_equal(r, items.items[i], item)) return true;
    return false;
}

List value_items(Run *r, Value v) {
    List items = {0};
    if (run_failed(r)) return items;
    if (value_is_sequence(v)) return v.list;
    if (v.kind == VALUE_TEXT) {
        size_t count = text_count(v.text), at = 0;
        Value *characters = run_items(r, count);
        for (size_t i = 0; characters && i < count; i++) {
            size_t size = utf8_size(v.text.bytes[at]);
            characters[i] = value_text(v.text.bytes + at, size);
            at += size;
        }
        items = (List){characters, characters ? count : 0};
    } else if (v.kind == VALUE_DICT) {
        Value *keys = run_items(r, v.dict->count);
        for (size_t i = 0; keys && i < v.dict->count; i++) keys[i] = v.dict->pairs[i].key;
        items = (List){keys, keys ? v.dict->count : 0};
    } else if (v.kind == VALUE_ITERATOR) {
        items = v.iterator->left;
        v.iterator->left = (List){0};
    } else if (v.kind != VALUE_UNDEFINED) {
        RUN_FAIL(r, "%s cannot be gone through", value_type(v));
    }
    return items;
}

/* ---- dicts ---- */

Value run_dict(Run *r, ValueKind kind, size_t capacity) {
    Dict *dict = run_alloc(r, 1, sizeof *dict);
    if (!dict) return value_undefined("");
    dict->pairs = run_alloc(r, capacity, sizeof *dict->pairs);
    dict->capacity = dict->pairs ? capacity : 0;
    return (Value){.kind = kind, .dict = dict};
}

static bool is_key(Value v) {
    if (v.kind == VALUE_TUPLE) {
        for (size_t i = 0; i < v.list.count; i++)
            if (!is_key(v.list.items[i])) return false;
        return true;
    }
    return v.kind != VALUE_LIST && v.kind != VALUE_DICT && v.kind != VALUE_VIEW;
}

const Value *dict_find(Run *r, const Dict *dict, Value key) {
    if (key.kind == VALUE_TEXT && run_step(r, dict->count / 8))
        return dict_find_name(dict, key.text.bytes, key.text.length);
    if (!is_key(key)) {
        RUN_FAIL(r, "%s cannot be a key of a dict", value_type(key));
        return NULL;
    }
    for (size_t i = 0; i < dict->count && !run_failed(r); i++)
        if (value_equal(r, dict->pairs[i].key, key)) return &dict->pairs[i].value;
    return NULL;
}

const Value *dict_find_name(const Dict *dict, const char *name, size_t length) {
    for (size_t i = 0; i < dict->count; i++) {
        Value key = dict->pairs[i].key;
        if (key.kind == VALUE_TEXT && key.text.length == length &&
            (length == 0 || memcmp(key.text.bytes, name, length) == 0))
            return &dict->pairs[i].value;
    }
    return NULL;
}

void dict_set(Run *r, Dict *dict, Value key, Value value) {
    const Value *found = run_failed(r) ? NULL : dict_find(r, dict, key);
    if (run_failed(r)) return;
    if (found) {
        *(Value *)found = value;
        return;
    }
    if (dict->count == dict->capacity) {
        size_t capacity = dict->capacity * 2 + 4;
        Pair *pairs = run_alloc(r, capacity, sizeof *pairs);
        if (!pairs) return;
        if (dict->count) memcpy(pairs, dict->pairs, dict->count * sizeof *pairs);
        dict->pairs = pairs;
        dict->capacity = capacity;
    }
    dict->pairs[dict->count++] = (Pair){key, value};
}

/* ---- from JSON ---- */

static Value list_from_json(Run *r, const json_t *json) {
    size_t count = json_array_size(json);
    Value *items = run_items(r, count);
    for (size_t i = 0; !run_failed(r) && i < count; i++)
        items[i] = value_from_json(r, json_array_get(json, i));
    return value_sequence(VALUE_LIST, items, count);
}

static Value dict_from_json(Run *r, const json_t *json) {
    Value v = run_dict(r, VALUE_DICT, json_object_size(json));
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)json, name, item) {
        if (run_failed(r)) break;
        v.dict->pairs[v.dict->count++] = (Pair){value_string(name), value_from_json(r, item)};
    }
    return v;
}

Value value_from_json(Run *r, const json_t *json) {
    Value v = VALUE_NOTHING;
    if (!json) return (Value){.kind = VALUE_ABSENT};
    if (!run_step(r, 1) || !run_enter(r)) return v;
    switch (json_typeof(json)) {
    case JSON_OBJECT: v = dict_from_json(r, json); break;
    case JSON_ARRAY: v = list_from_json(r, json); break;
    case JSON_STRING: v = value_text(json_string_value(json), json_string_length(json)); break;
    case JSON_INTEGER: v = value_integer(json_integer_value(json)); break;
    case JSON_REAL: v = value_real(json_real_value(json)); break;
    case JSON_TRUE:
    case JSON_FALSE: v = value_bool(json_is_true(json)); break;
    case JSON_NULL: break;
    }
    r->depth--;
    return v;
}
