/* Symbolic integers: their values, and that no simplification changes them. */
#include "check.h"
#include "graph/sym.h"

static Arena arena;
static SymTable table;
static const Sym *symbols[4];

static int make_table(void **state) {
    (void)state;
    sym_table_init(&table, &arena);
    symbols[0] = sym_symbol(&table, "a", 0, SYM_UNBOUNDED);
    symbols[1] = sym_symbol(&table, "b", 1, 64);
    symbols[2] = sym_symbol(&table, "c", 2, 1024);
    symbols[3] = sym_symbol(&table, "any", INT64_MIN, SYM_UNBOUNDED);
    return 0;
}

static int free_table(void **state) {
    (void)state;
    sym_table_free(&table);
    arena_free(&arena);
    return 0;
}

static bool evaluate(const char *text, const int64_t *values, int64_t *out) {
    const Sym *sym;
    ferry_error error = {0};
    assert_ok(sym_parse(&table, text, false, &sym, &error), &error);
    return sym_evaluate(sym, values, out);
}

static void evaluation_agrees_with_arithmetic(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t wanted;
    } cases[] = {
        {"a + 2*b - 3", 4},    {"a*b*c", 30},       {"a**3", 27},        {"a - c", -2},
        {"c//b", 2},           {"(a - c)//b", -1},  {"Mod(c, a)", 2},    {"Mod(a - c, a)", 1},
        {"Mod(c, a - c)", -1}, {"Max(a, b, c)", 5}, {"Min(a, b, c)", 2}, {"any", -10},
        {"any//3", -4},        {"Mod(any, 3)", 2},
    };
    const int64_t values[] = {3, 2, 5, -10};
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t found;
        assert_true(evaluate(cases[i].text, values, &found));
        if (found != cases[i].wanted) fail_msg("%s: %lld", cases[i].text, (long long)found);
    }
}

static void evaluation_notices_overflow_and_division_by_zero(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value; /* of a */
        bool works;
    } cases[] = {
        {"a + 1", INT64_MAX, false},  {"a + 1", INT64_MAX - 1, true},
        {"2*a", INT64_MAX / 2, true}, {"2*a", INT64_MAX / 2 + 1, false},
        {"1//a", 0, false},           {"Mod(1, a)", 0, false},
        {"any//a", -1, false},        {"Mod(any, a)", -1, false},
        {"any//a", 3, true},          {"Mod(any, a)", 3, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t values[] = {cases[i].value, 1, 1, INT64_MIN};
        int64_t found;
        if (evaluate(cases[i].text, values, &found) != cases[i].works) {
            fail_msg("%s at %lld", cases[i].text, (long long)cases[i].value);
        }
    }
}

/* ---- random expressions, beside the values that plain arithmetic gives them ---- */

enum { POINTS = 6 };

static const int64_t points[POINTS][4] = {{0, 1, 2, -3},     {1, 64, 1024, 0},   {7, 3, 5, 11},
                                          {64, 8, 16, -100}, {1000, 33, 999, 1}, {2, 2, 2, 2}};

typedef struct Pair {
    const Sym *sym;
    int64_t values[POINTS];
    bool valid[POINTS]; /* false: a divisor was 0, or the number is large */
} Pair;

static int64_t divide(int64_t x, int64_t y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t modulo(int64_t x, int64_t y) {
    return x - y * divide(x, y);
}

static Pair combine(int operation, const Pair *left, const Pair *right) {
    static const Sym *(*const functions[])(SymTable *, const Sym *, const Sym *) = {
        sym_add, sym_sub, sym_mul, sym_min, sym_max, sym_floordiv, sym_mod};
    Pair result = {.sym = functions[operation](&table, left->sym, right->sym)};
    for (int p = 0; p < POINTS; p++) {
        int64_t x = left->values[p], y = right->values[p], value = 0;
        result.valid[p] = left->valid[p] && right->valid[p] && (operation < 5 || y != 0);
        if (!result.valid[p]) continue;
        switch (operation) {
        case 0: value = x + y; break;
        case 1: value = x - y; break;
        case 2: value = x * y; break;
        case 3: value = x < y ? x : y; break;
        case 4: value = x > y ? x : y; break;
        case 5: value = divide(x, y); break;
        default: value = modulo(x, y); break;
        }
        result.values[p] = value;
        result.valid[p] = value > -1000000 && value < 1000000;
    }
    return result;
}

static void check_pair(const Pair *pair) {
    for (int p = 0; p < POINTS; p++) {
        int64_t found;
        if (!pair->valid[p]) continue;
        assert_true(sym_evaluate(pair->sym, points[p], &found));
        assert_int_equal(found, pair->values[p]);
        assert_true(found >= pair->sym->lower && found <= pair->sym->upper);
    }
}

static void simplified_expressions_keep_their_values(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 3000; round++) {
        Pair pairs[12];
        for (int i = 0; i < 5; i++) {
            int64_t constant = round % 9 - 4;
            pairs[i].sym = i < 4 ? symbols[i] : sym_const(&table, constant);
            for (int p = 0; p < POINTS; p++) {
                pairs[i].values[p] = i < 4 ? points[p][i] : constant;
                pairs[i].valid[p] = true;
            }
        }
        table.overflow = false;
        for (int i = 5; i < 12; i++) {
            random = random * 1664525 + 1013904223;
            pairs[i] = combine((int)(random >> 24) % 7, &pairs[(random >> 8) % (unsigned)i],
                               &pairs[(random >> 16) % (unsigned)i]);
            if (table.overflow) break;
            check_pair(&pairs[i]);
        }
    }
    table.overflow = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_agrees_with_arithmetic),
        cmocka_unit_test(evaluation_notices_overflow_and_division_by_zero),
        cmocka_unit_test(simplified_expressions_keep_their_values),
    };
    return cmocka_run_group_tests_name("symbolic values", tests, make_table, free_table);
}
