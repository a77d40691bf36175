/* Filters on what can be gone through. Those that jinja2 writes as generators give iterators, which are
 * true, have no length, and can be gone through once. */
#include "text/template/run.h"
#include "text/template/text.h"

static Value new_iterator(Run *r, const Value *items, size_t count) {
    Iterator *iterator = run_alloc(r, 1, sizeof *iterator);
    if (!iterator) return value_undefined("");
    iterator->left = (List){items, count};
    return (Value){.kind = VALUE_ITERATOR, .iterator = iterator};
}

static Value new_list(List list) {
    return value_sequence(VALUE_LIST, list.items, list.count);
}

static Value filter_length(Run *r, const Args *a) {
    Value v = a->self;
    if (v.kind == VALUE_TEXT) return value_integer((int64_t)text_count(v.text));
    if (value_is_sequence(v)) return value_integer((int64_t)v.list.count);
    if (v.kind == VALUE_DICT) return value_integer((int64_t)v.dict->count);
    if (v.kind == VALUE_UNDEFINED) return value_integer(0);
    return RUN_FAIL(r, "%s has no length", value_type(v));
}

static Value filter_list(Run *r, const Args *a) {
    return new_list(value_items(r, a->self));
}

static Value filter_first(Run *r, const Args *a) {
    if (a->self.kind == VALUE_ITERATOR) {
        List *left = &a->self.iterator->left;
        if (!left->count) return value_undefined("the sequence is empty");
        left->count--;
        return *left->items++;
    }
    List items = value_items(r, a->self);
    return items.count ? items.items[0] : value_undefined("the sequence is empty");
}

static Value filter_last(Run *r, const Args *a) {
    if (a->self.kind == VALUE_ITERATOR)
        return RUN_FAIL(r, "a generator has no last item; make it a list");
    List items = value_items(r, a->self);
    return items.count ? items.items[items.count - 1] : value_undefined("the sequence is empty");
}

static Value filter_reverse(Run *r, const Args *a) {
    if (a->self.kind == VALUE_TEXT)
        return value_slice(r, a->self, VALUE_NOTHING, VALUE_NOTHING, value_integer(-1));
    List all = value_items(r, a->self);
    Value *items = run_items(r, all.count);
    for (size_t i = 0; items && i < all.count; i++) items[i] = all.items[all.count - 1 - i];
    return new_iterator(r, items, items ? all.count : 0);
}

static Value filter_items(Run *r, const Args *a) {
    if (a->self.kind == VALUE_UNDEFINED) return new_iterator(r, NULL, 0);
    if (a->self.kind != VALUE_DICT)
        return RUN_FAIL(r, "items takes a dict, not %s", value_type(a->self));
    Value view = function_call(r, function_find(dict_methods, "items", 5), a->self, &(Call){0});
    return new_iterator(r, view.list.items, run_failed(r) ? 0 : view.list.count);
}

static Value filter_join(Run *r, const Args *a) {
    Text by = argument_text(r, a->at[0], "");
    List items = value_items(r, a->self);
    bool attribute = a->at[1].kind != VALUE_ABSENT && a->at[1].kind != VALUE_NONE;
    Buffer out = {0};
    for (size_t i = 0; i < items.count && run_step(r, 1); i++) {
        if (i) run_append_text(r, &out, by);
        Value item = attribute ? value_path(r, items.items[i], a->at[1]) : items.items[i];
        if (!run_failed(r)) value_print(r, &out, item);
    }
    return run_take(r, &out);
}

/* ---- order ---- */

/* What a value is compared by: an attribute of it, text in lower case unless case matters. */
static Value sort_key(Run *r, Value v, Value attribute, bool case_sensitive) {
    if (attribute.kind != VALUE_ABSENT && attribute.kind != VALUE_NONE)
        v = value_path(r, v, attribute);
    if (run_failed(r) || v.kind != VALUE_TEXT || case_sensitive) return v;
    return function_call(r, function_find(text_methods, "lower", 5), v, &(Call){0});
}

/* Items with their keys; several attributes, with commas, make a list as the key. */
static Pair *keyed(Run *r, List items, Value attribute, bool case_sensitive) {
    Pair *pairs = run_alloc(r, items.count, sizeof *pairs);
    bool several =
        attribute.kind == VALUE_TEXT && text_find(attribute.text, (Text){",", 1}, 0) != SIZE_MAX;
    for (size_t i = 0; pairs && i < items.count && run_step(r, 1); i++) {
        Value key = VALUE_NOTHING;
        if (several) {
            Value by = value_string(",");
            Value names = function_call(r, function_find(text_methods, "split", 5), attribute,
                                        &(Call){.items = &by, .count = 1});
            Value *keys = run_items(r, names.list.count);
            for (size_t k = 0; !run_failed(r) && k < names.list.count; k++)
                keys[k] = sort_key(r, items.items[i], names.list.items[k], case_sensitive);
            key = value_sequence(VALUE_LIST, keys, names.list.count);
        } else {
            key = sort_key(r, items.items[i], attribute, case_sensitive);
        }
        pairs[i] = (Pair){key, items.items[i]};
    }
    return run_failed(r) ? NULL : pairs;
}

static Value values_of(Run *r, const Pair *pairs, size_t count) {
    Value *items = run_items(r, count);
    for (size_t i = 0; !run_failed(r) && i < count; i++) items[i] = pairs[i].value;
    return value_sequence(VALUE_LIST, items, count);
}

static Value filter_sort(Run *r, const Args *a) {
    List items = value_items(r, a->self);
    Pair *pairs = keyed(r, items, a->at[2], argument_truth(a->at[1], false));
    Pair *sorted =
        pairs ? run_sorted(r, pairs, items.count, argument_truth(a->at[0], false)) : NULL;
    return sorted ? values_of(r, sorted, items.count) : VALUE_NOTHING;
}

static Value filter_dictsort(Run *r, const Args *a) {
    Text by = argument_text(r, a->at[1], "key");
    if (a->self.kind != VALUE_DICT)
        return RUN_FAIL(r, "dictsort takes a dict, not %s", value_type(a->self));
    if (!text_is(by, "key") && !text_is(by, "value"))
        return RUN_FAIL(r, "dictsort sorts by key or value");
    Value view = function_call(r, function_find(dict_methods, "items", 5), a->self, &(Call){0});
    if (run_failed(r)) return view;
    Pair *pairs =
        keyed(r, view.list, value_integer(text_is(by, "value")), argument_truth(a->at[0], false));
    Pair *sorted =
        pairs ? run_sorted(r, pairs, view.list.count, argument_truth(a->at[2], false)) : NULL;
    return sorted ? values_of(r, sorted, view.list.count) : VALUE_NOTHING;
}

static Value filter_unique(Run *r, const Args *a) {
    List items = value_items(r, a->self);
    Pair *pairs = keyed(r, items, a->at[1], argument_truth(a->at[0], false));
    Value *kept = run_items(r, items.count);
    Value seen = run_dict(r, VALUE_DICT, items.count);
    size_t count = 0;
    for (size_t i = 0; !run_failed(r) && i < items.count; i++) {
        if (dict_find(r, seen.dict, pairs[i].key)) continue;
        dict_set(r, seen.dict, pairs[i].key, VALUE_NOTHING);
        kept[count++] = items.items[i];
    }
    return new_iterator(r, kept, count);
}

static Value extreme(Run *r, const Args *a, bool largest) {
    List items = value_items(r, a->self);
    Pair *pairs = keyed(r, items, a->at[1], argument_truth(a->at[0], false));
    if (run_failed(r)) return VALUE_NOTHING;
    if (!items.count) return value_undefined("the sequence is empty");
    size_t best = 0;
    for (size_t i = 1; i < items.count && !run_failed(r); i++)
        if (value_ordered(r, largest ? ">" : "<", pairs[i].key, pairs[best].key)) best = i;
    return pairs[best].value;
}

static Value filter_min(Run *r, const Args *a) {
    return extreme(r, a, false);
}

static Value filter_max(Run *r, const Args *a) {
    return extreme(r, a, true);
}

static Value filter_sum(Run *r, const Args *a) {
    List items = value_items(r, a->self);
    bool attribute = a->at[0].kind != VALUE_ABSENT && a->at[0].kind != VALUE_NONE;
    Value sum = a->at[1].kind == VALUE_ABSENT ? value_integer(0) : a->at[1];
    for (size_t i = 0; i < items.count && run_step(r, 1); i++) {
        Value item = attribute ? value_path(r, items.items[i], a->at[0]) : items.items[i];
        if (!run_failed(r)) sum = value_binary(r, "+", sum, item);
    }
    return sum;
}

/* ---- map and select ---- */

/* The function that a filter of filters or tests was told by name, with its own arguments. */
static const Function *named_function(Run *r, const Call *call, size_t at, bool test, Call *rest) {
    Value name = call->items[at];
    const Function *found = NULL;
    if (name.kind == VALUE_TEXT)
        found = test ? function_find(template_tests, name.text.bytes, name.text.length)
                     : filter_find(name.text.bytes, name.text.length);
    *rest = (Call){call->items + at + 1, call->count - at - 1, call->named, call->named_count};
    if (!found)
        run_fail(r, FERRY_UNSUPPORTED, "the %s \"%.*s\" is not supported", test ? "test" : "filter",
                 name.kind == VALUE_TEXT ? (int)name.text.length : 0,
                 name.kind == VALUE_TEXT ? name.text.bytes : "");
    return found;
}

/* map(attribute=, default=) */
static bool map_options(Run *r, const Call *call, Value *attribute, Value *otherwise) {
    for (size_t i = 0; i < call->named_count; i++) {
        if (strcmp(call->named[i].name, "attribute") == 0) {
            *attribute = call->named[i].value;
        } else if (strcmp(call->named[i].name, "default") == 0) {
            *otherwise = call->named[i].value;
        } else {
            RUN_FAIL(r, "map() has no parameter %s", call->named[i].name);
        }
    }
    if (attribute->kind == VALUE_ABSENT)
        RUN_FAIL(r, "map() needs the name of a filter, or attribute=");
    return !run_failed(r);
}

static Value filter_map(Run *r, const Args *a) {
    Value attribute = {.kind = VALUE_ABSENT}, otherwise = {.kind = VALUE_NONE};
    Call rest = {0};
    const Function *function = NULL;
    if (a->call->count)
        function = named_function(r, a->call, 0, false, &rest);
    else
        map_options(r, a->call, &attribute, &otherwise);
    List items = value_truth(a->self) ? value_items(r, a->self) : (List){0};
    Value *mapped = run_items(r, items.count);
    for (size_t i = 0; !run_failed(r) && i < items.count && run_step(r, 1); i++) {
        mapped[i] = function ? function_call(r, function, items.items[i], &rest)
                             : value_path(r, items.items[i], attribute);
        if (mapped[i].kind == VALUE_UNDEFINED && otherwise.kind != VALUE_NONE)
            mapped[i] = otherwise;
    }
    return new_iterator(r, mapped, items.count);
}

static Value choose(Run *r, const Args *a, bool attribute, bool wanted) {
    Call rest = {0};
    size_t at = attribute ? 1 : 0;
    if (a->call->count < at) return RUN_FAIL(r, "the name of an attribute is missing");
    const Function *test = a->call->count > at ? named_function(r, a->call, at, true, &rest) : NULL;
    List items = value_truth(a->self) ? value_items(r, a->self) : (List){0};
    Value *kept = run_items(r, items.count);
    size_t count = 0;
    for (size_t i = 0; !run_failed(r) && i < items.count && run_step(r, 1); i++) {
        Value v = attribute ? value_path(r, items.items[i], a->call->items[0]) : items.items[i];
        if (test && !run_failed(r)) v = function_call(r, test, v, &rest);
        if (value_truth(v) == wanted) kept[count++] = items.items[i];
    }
    return new_iterator(r, kept, count);
}

static Value filter_select(Run *r, const Args *a) {
    return choose(r, a, false, true);
}

static Value filter_reject(Run *r, const Args *a) {
    return choose(r, a, false, false);
}

static Value filter_selectattr(Run *r, const Args *a) {
    return choose(r, a, true, true);
}

static Value filter_rejectattr(Run *r, const Args *a) {
    return choose(r, a, true, false);
}

const Function template_list_filters[] = {
    {"length", "", filter_length},
    {"count", "", filter_length},
    {"list", "", filter_list},
    {"first", "", filter_first},
    {"last", "", filter_last},
    {"reverse", "", filter_reverse},
    {"items", "", filter_items},
    {"join", "d attribute", filter_join},
    {"sort", "reverse case_sensitive attribute", filter_sort},
    {"dictsort", "case_sensitive by reverse", filter_dictsort},
    {"unique", "case_sensitive attribute", filter_unique},
    {"min", "case_sensitive attribute", filter_min},
    {"max", "case_sensitive attribute", filter_max},
    {"sum", "attribute start", filter_sum},
    {"map", NULL, filter_map},
    {"select", NULL, filter_select},
    {"reject", NULL, filter_reject},
    {"selectattr", NULL, filter_selectattr},
    {"rejectattr", NULL, filter_rejectattr},
    {0},
};
