/* Tests: what stands after `is`. */
#include "text/template/run.h"
#include "text/template/text.h"

static Value is_defined(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind != VALUE_UNDEFINED);
}

static Value is_undefined(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_UNDEFINED);
}

static Value is_none(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_NONE);
}

static Value is_boolean(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_BOOL);
}

static Value is_true(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_BOOL && a->self.boolean);
}

static Value is_false(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_BOOL && !a->self.boolean);
}

static Value is_integer(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_INTEGER);
}

static Value is_float(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_FLOAT);
}

static Value is_number(Run *r, const Args *a) {
    (void)r;
    return value_bool(value_is_number(a->self));
}

static Value is_string(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_TEXT);
}

static Value is_mapping(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_DICT);
}

static Value is_sequence(Run *r, const Args *a) {
    (void)r;
    ValueKind kind = a->self.kind;
    return value_bool(kind == VALUE_TEXT || kind == VALUE_DICT || kind == VALUE_UNDEFINED ||
                      (value_is_sequence(a->self) && kind != VALUE_VIEW));
}

static Value is_iterable(Run *r, const Args *a) {
    (void)r;
    ValueKind kind = a->self.kind;
    return value_bool(kind == VALUE_TEXT || kind == VALUE_DICT || kind == VALUE_UNDEFINED ||
                      kind == VALUE_ITERATOR || value_is_sequence(a->self));
}

static Value is_callable(Run *r, const Args *a) {
    (void)r;
    return value_bool(a->self.kind == VALUE_FUNCTION || a->self.kind == VALUE_MACRO);
}

static Value is_lower(Run *r, const Args *a) {
    Text text = argument_text(r, a->self, "");
    return value_bool(text_is_lower(text));
}

static Value is_upper(Run *r, const Args *a) {
    Text text = argument_text(r, a->self, "");
    return value_bool(text_is_upper(text));
}

static Value rest_is(Run *r, Value v, Value by, int64_t rest) {
    Value found = value_binary(r, "%", v, by);
    return value_bool(!run_failed(r) && value_equal(r, found, value_integer(rest)));
}

static Value is_odd(Run *r, const Args *a) {
    return rest_is(r, a->self, value_integer(2), 1);
}

static Value is_even(Run *r, const Args *a) {
    return rest_is(r, a->self, value_integer(2), 0);
}

static Value is_divisible(Run *r, const Args *a) {
    return rest_is(r, a->self, a->at[0], 0);
}

static Value is_in(Run *r, const Args *a) {
    return value_bool(value_contains(r, a->at[0], a->self));
}

static Value is_equal(Run *r, const Args *a) {
    return value_bool(value_equal(r, a->self, a->at[0]));
}

static Value is_other(Run *r, const Args *a) {
    return value_bool(!value_equal(r, a->self, a->at[0]));
}

static Value is_above(Run *r, const Args *a) {
    return value_bool(value_ordered(r, ">", a->self, a->at[0]));
}

static Value is_at_least(Run *r, const Args *a) {
    return value_bool(value_ordered(r, ">=", a->self, a->at[0]));
}

static Value is_below(Run *r, const Args *a) {
    return value_bool(value_ordered(r, "<", a->self, a->at[0]));
}

static Value is_at_most(Run *r, const Args *a) {
    return value_bool(value_ordered(r, "<=", a->self, a->at[0]));
}

static Value is_filter(Run *r, const Args *a) {
    Text name = argument_text(r, a->self, "");
    return value_bool(filter_find(name.bytes, name.length));
}

static Value is_test(Run *r, const Args *a) {
    Text name = argument_text(r, a->self, "");
    return value_bool(function_find(template_tests, name.bytes, name.length));
}

const Function template_tests[] = {
    {"defined", "", is_defined},
    {"undefined", "", is_undefined},
    {"none", "", is_none},
    {"boolean", "", is_boolean},
    {"true", "", is_true},
    {"false", "", is_false},
    {"integer", "", is_integer},
    {"float", "", is_float},
    {"number", "", is_number},
    {"string", "", is_string},
    {"mapping", "", is_mapping},
    {"sequence", "", is_sequence},
    {"iterable", "", is_iterable},
    {"callable", "", is_callable},
    {"lower", "", is_lower},
    {"upper", "", is_upper},
    {"odd", "", is_odd},
    {"even", "", is_even},
    {"divisibleby", "num /", is_divisible},
    {"in", "seq /", is_in},
    {"==", "other /", is_equal},
    {"eq", "other /", is_equal},
    {"equalto", "other /", is_equal},
    {"!=", "other /", is_other},
    {"ne", "other /", is_other},
    {">", "other /", is_above},
    {"gt", "other /", is_above},
    {"greaterthan", "other /", is_above},
    {">=", "other /", is_at_least},
    {"ge", "other /", is_at_least},
    {"<", "other /", is_below},
    {"lt", "other /", is_below},
    {"lessthan", "other /", is_below},
    {"<=", "other /", is_at_most},
    {"le", "other /", is_at_most},
    {"filter", "", is_filter},
    {"test", "", is_test},
    {0},
};
