/* Operators with two operands, and sorting. */
#include "text/template/run.h"
#include "text/template/text.h"

#include <math.h>

static Value no_operator(Run *r, const char *name, Value a, Value b) {
    if (a.kind == VALUE_UNDEFINED) return run_use(r, a);
    if (b.kind == VALUE_UNDEFINED) return run_use(r, b);
    return RUN_FAIL(r, "%s %s %s is not defined", value_type(a), name, value_type(b));
}

static Value too_large(Run *r) {
    return run_fail(r, FERRY_UNSUPPORTED, "an integer does not fit 64 bits");
}

static Value divide_by_zero(Run *r) {
    return RUN_FAIL(r, "division by zero");
}

static Value join_lists(Run *r, Value a, Value b) {
    Value *items = run_items(r, a.list.count + b.list.count);
    if (!items) return a;
    if (a.list.count) memcpy(items, a.list.items, a.list.count * sizeof *items);
    if (b.list.count) memcpy(items + a.list.count, b.list.items, b.list.count * sizeof *items);
    return value_sequence(a.kind, items, a.list.count + b.list.count);
}

static Value join_texts(Run *r, Text a, Text b) {
    char *text = run_alloc(r, a.length + b.length, 1);
    if (!text) return value_undefined("");
    if (a.length) memcpy(text, a.bytes, a.length);
    if (b.length) memcpy(text + a.length, b.bytes, b.length);
    return value_text(text, a.length + b.length);
}

static Value add(Run *r, Value a, Value b) {
    int64_t sum;
    if (value_is_whole(a) && value_is_whole(b))
        return __builtin_add_overflow(value_whole(a), value_whole(b), &sum) ? too_large(r)
                                                                            : value_integer(sum);
    if (value_is_number(a) && value_is_number(b))
        return value_real(value_number(a) + value_number(b));
    if (a.kind == VALUE_TEXT && b.kind == VALUE_TEXT) return join_texts(r, a.text, b.text);
    if ((a.kind == VALUE_LIST || a.kind == VALUE_TUPLE) && a.kind == b.kind)
        return join_lists(r, a, b);
    return no_operator(r, "+", a, b);
}

static Value subtract(Run *r, Value a, Value b) {
    int64_t difference;
    if (value_is_whole(a) && value_is_whole(b))
        return __builtin_sub_overflow(value_whole(a), value_whole(b), &difference)
                   ? too_large(r)
                   : value_integer(difference);
    if (value_is_number(a) && value_is_number(b))
        return value_real(value_number(a) - value_number(b));
    return no_operator(r, "-", a, b);
}

/* A text or a list, `times` times. */
static Value repeat(Run *r, Value v, int64_t times) {
    size_t length = v.kind == VALUE_TEXT ? v.text.length : v.list.count, all;
    size_t size = v.kind == VALUE_TEXT ? 1 : sizeof(Value);
    const char *from = v.kind == VALUE_TEXT ? v.text.bytes : (const char *)v.list.items;
    if (times < 0 || length == 0) times = 0;
    if (__builtin_mul_overflow(length, (size_t)times, &all)) all = SIZE_MAX;
    char *to = run_alloc(r, all, size);
    if (!to) return v;
    for (int64_t i = 0; i < times; i++) memcpy(to + (size_t)i * length * size, from, length * size);
    return v.kind == VALUE_TEXT ? value_text(to, all)
                                : value_sequence(v.kind, (const Value *)(void *)to, all);
}

static bool can_repeat(Value v) {
    return v.kind == VALUE_TEXT || v.kind == VALUE_LIST || v.kind == VALUE_TUPLE;
}

static Value multiply(Run *r, Value a, Value b) {
    int64_t product;
    if (value_is_whole(a) && value_is_whole(b))
        return __builtin_mul_overflow(value_whole(a), value_whole(b), &product)
                   ? too_large(r)
                   : value_integer(product);
    if (value_is_number(a) && value_is_number(b))
        return value_real(value_number(a) * value_number(b));
    if (can_repeat(a) && value_is_whole(b)) return repeat(r, a, value_whole(b));
    if (can_repeat(b) && value_is_whole(a)) return repeat(r, b, value_whole(a));
    return no_operator(r, "*", a, b);
}

static Value divide(Run *r, Value a, Value b) {
    if (!value_is_number(a) || !value_is_number(b)) return no_operator(r, "/", a, b);
    if (value_number(b) == 0) return divide_by_zero(r);
    return value_real(value_number(a) / value_number(b));
}

/* Python rounds quotients down, and remainders have the sign of the divisor. */
static double remainder_of(double a, double b) {
    double rest = fmod(a, b);
    if (rest == 0) return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static Value floor_divide(Run *r, Value a, Value b) {
    if (!value_is_number(a) || !value_is_number(b)) return no_operator(r, "//", a, b);
    if (value_number(b) == 0) return divide_by_zero(r);
    if (!value_is_whole(a) || !value_is_whole(b)) {
        double x = value_number(a), y = value_number(b);
        double quotient = (x - remainder_of(x, y)) / y, whole = floor(quotient);
        return value_real(quotient - whole > 0.5 ? whole + 1 : whole);
    }
    int64_t x = value_whole(a), y = value_whole(b);
    if (x == INT64_MIN && y == -1) return too_large(r);
    return value_integer(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

static Value modulo(Run *r, Value a, Value b) {
    if (a.kind == VALUE_TEXT) return text_format(r, a.text, b);
    if (!value_is_number(a) || !value_is_number(b)) return no_operator(r, "%", a, b);
    if (value_number(b) == 0) return divide_by_zero(r);
    if (!value_is_whole(a) || !value_is_whole(b))
        return value_real(remainder_of(value_number(a), value_number(b)));
    int64_t x = value_whole(a), y = value_whole(b);
    int64_t rest = y == -1 ? 0 : x % y;
    return value_integer(rest && (rest < 0) != (y < 0) ? rest + y : rest);
}

static Value power(Run *r, Value a, Value b) {
    if (!value_is_number(a) || !value_is_number(b)) return no_operator(r, "**", a, b);
    if (value_is_whole(a) && value_is_whole(b) && value_whole(b) >= 0) {
        int64_t result = 1, base = value_whole(a);
        for (int64_t left = value_whole(b); left > 0; left >>= 1) {
            if ((left & 1) && __builtin_mul_overflow(result, base, &result)) return too_large(r);
            if (left > 1 && __builtin_mul_overflow(base, base, &base)) return too_large(r);
        }
        return value_integer(result);
    }
    double x = value_number(a), y = value_number(b);
    if (x == 0 && y < 0) return divide_by_zero(r);
    if (x < 0 && floor(y) != y) return run_fail(r, FERRY_UNSUPPORTED, "a complex number");
    return value_real(pow(x, y));
}

static Value concatenate(Run *r, Value a, Value b) {
    Value left = value_to_text(r, a), right = value_to_text(r, b);
    return run_failed(r) ? left : join_texts(r, left.text, right.text);
}

Value value_binary(Run *r, const char *name, Value a, Value b) {
    static const struct {
        const char *name;
        Value (*operate)(Run *r, Value a, Value b);
    } operators[] = {
        {"+", add},           {"-", subtract}, {"*", multiply}, {"/", divide},
        {"//", floor_divide}, {"%", modulo},   {"**", power},   {"~", concatenate},
    };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].name, name) == 0) return operators[i].operate(r, a, b);
    return run_fail(r, FERRY_INTERNAL, "no operator %s", name);
}

/* ---- sorting ---- */

static void merge(Run *r, const Pair *from, Pair *to, size_t begin, size_t middle, size_t end,
                  bool reverse) {
    size_t a = begin, b = middle;
    for (size_t i = begin; i < end; i++) {
        bool left = b == end;
        if (!left && a < middle) {
            int order = value_order(r, from[a].key, from[b].key);
            left = order == 2 || (reverse ? order >= 0 : order <= 0);
        }
        to[i] = left ? from[a++] : from[b++];
    }
}

Pair *run_sorted(Run *r, const Pair *pairs, size_t count, bool reverse) {
    Pair *from = run_alloc(r, count, sizeof *from), *to = run_alloc(r, count, sizeof *to);
    if (!from || !to) return NULL;
    if (count) memcpy(from, pairs, count * sizeof *from);
    for (size_t width = 1; width < count && !run_failed(r); width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = begin + width < count ? begin + width : count;
            size_t end = begin + 2 * width < count ? begin + 2 * width : count;
            merge(r, from, to, begin, middle, end, reverse);
        }
        Pair *other = from;
        from = to;
        to = other;
    }
    return run_failed(r) ? NULL : from;
}
