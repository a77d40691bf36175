/* Symbolic integers: canonical forms, ranges, text. */
#include "check.h"
#include "graph/sym.h"

static Arena arena;
static SymTable table;
static const Sym *a, *b, *c, *any; /* a, b, c >= 0; any: unbounded on both sides */

static int make_table(void **state) {
    (void)state;
    sym_table_init(&table, &arena);
    a = sym_symbol(&table, "a", 0, SYM_UNBOUNDED);
    b = sym_symbol(&table, "b", 1, 64);
    c = sym_symbol(&table, "c", 2, 1024);
    any = sym_symbol(&table, "any", INT64_MIN, SYM_UNBOUNDED);
    return 0;
}

static int free_table(void **state) {
    (void)state;
    sym_table_free(&table);
    arena_free(&arena);
    return 0;
}

static const Sym *number(int64_t value) {
    return sym_const(&table, value);
}

/* The expression written as `text`. */
static const Sym *parsed(const char *text) {
    const Sym *sym;
    ferry_error error = {0};
    if (sym_parse(&table, text, false, &sym, &error) != FERRY_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    return sym;
}

static void assert_prints(const Sym *sym, const char *wanted) {
    Buffer buffer = {0};
    sym_print(&buffer, sym);
    assert_string_equal(buffer_string(&buffer), wanted);
    assert_ptr_equal(parsed(wanted), sym);
    buffer_free(&buffer);
}

/* ---- canonical forms ---- */

static void equal_expressions_are_one_object(void **state) {
    (void)state;
    static const char *const equal[][2] = {
        {"(a+b)*c", "a*c+b*c"},
        {"(a+b)*(a-b)", "a*a-b**2"},
        {"a+b+c", "c+(b+a)"},
        {"a*b*c", "c*b*a"},
        {"a+a+a", "3*a"},
        {"a-a", "0"},
        {"2*a+3-2*a", "3"},
        {"0*a", "0"},
        {"a+0", "a"},
        {"1*a", "a"},
        {"-(a-b)", "b-a"},
        {"--a", "a"},
        {"(a+1)**3", "a**3+3*a**2+3*a+1"},
        {"a**0", "1"},
        {"a//1", "a"},
        {"a//(-1)", "-a"},
        {"(4*a+8*b)//4", "a+2*b"},
        {"(4*a+8*b)//(-4)", "-a-2*b"},
        {"(a*b*c)//b", "a*c"},
        {"(6*a*b)//(2*b)", "3*a"},
        {"(a*c+b*c)//c", "a+b"},
        {"(a*b+b)//(a+1)", "b"},
        {"(8*a+8*b)//(a+b)", "8"},
        {"(512*a*b+512*a*c)//(8*b+8*c)", "64*a"},
        {"(a+1)//(a+1)", "1"},
        {"0//a", "0"},
        {"b//65", "0"},
        {"(a//2)+(a//2)", "2*(a//2)"},
        {"(a-4)//4+1", "a//4"},
        {"(a-10)//5", "a//5-2"},
        {"(a-3)//2", "(a+1)//2-2"},
        {"(2*a+1)//2", "a"},
        {"(8*a+2*b+5)//4", "2*a+1+(2*b+1)//4"},
        {"Mod(8-b, 8)", "Mod(-b, 8)"},
        {"Mod(8*a, 4)", "0"},
        {"Mod(8*a+16, 8)", "0"},
        {"Mod(a*b, b)", "0"},
        {"Mod(a, 1)", "0"},
        {"Mod(a, -1)", "0"},
        {"Mod(b, 65)", "b"},
        {"PythonMod(a, 8)", "Mod(a, 8)"},
        {"FloorDiv(a, 8)", "a//8"},
        {"Max(a, b)", "Max(b, a)"},
        {"Max(a, Max(b, a))", "Max(a, b)"},
        {"Max(a, b, 3)", "Max(3, Max(a, b))"},
        {"Max(c, 1)", "c"},
        {"Max(c, 2)", "c"},
        {"Max(a, -1)", "a"},
        {"Min(b, 64)", "b"},
        {"Min(b, 100)", "b"},
        {"Max(b, 100)", "100"},
        {"Min(a, 0)", "0"},
        {"Min(a, 9223372036854775807)", "a"},
        {"Min(c, Max(a, 0))", "Min(a, c)"},
        {"Min(a, Max(a, b))", "a"},
        {"Max(any, Min(any, a))", "any"},
        {"Min(any, Max(-3, Min(any, a)), Max(any, a))", "Min(any, Max(-3, Min(a, any)))"},
        {"Max(Min(a, b), Min(a, b, c))", "Min(a, b)"},
        {"Min(any, any + 1)", "any"},
        {"Max(a*b, 2*a*b)", "2*a*b"},
        {"Max(0, 2*a*b - Min(a*b, 2*a*b))", "a*b"},
        {"Min(a//2, a//2 + b)", "a//2"},
        {"7//2", "3"},
        {"-7//2", "-4"},
        {"7//-2", "-4"},
        {"Mod(-7, 2)", "1"},
        {"Mod(7, -2)", "-1"},
        {"Mod(-9223372036854775807, 3)", "2"},
        {"-9223372036854775807//-1", "9223372036854775807"},
    };
    for (size_t i = 0; i < COUNT(equal); i++) {
        const Sym *left = parsed(equal[i][0]), *right = parsed(equal[i][1]);
        if (left != right) fail_msg("%s is not %s", equal[i][0], equal[i][1]);
    }
    assert_false(table.overflow);
}

static void different_expressions_are_kept_apart(void **state) {
    (void)state;
    static const char *const different[][2] = {
        {"-a**2", "(-a)**2"},
        {"a+1", "a"},
        {"a*b", "a+b"},
        {"a//2", "a//3"},
        {"(a+1)//2", "a//2"},
        {"Mod(a, 2)", "a"},
        {"Max(a, b)", "Min(a, b)"},
        {"Max(c, 3)", "c"},
        {"Min(b, 63)", "b"},
        {"Min(any, 2*any)", "any"},
        {"Min(a, Max(b, c))", "a"},
        {"Min(any, Max(0, Min(any, a)))", "Max(0, Min(any, a))"},
        {"Mod(b, 64)", "b"},
        {"b//64", "0"},
        {"Max(9223372036854775807 - a, 5)", "9223372036854775807 - a"},
        {"(2*a+b)//2", "a"},
        {"(3*a)//2", "a"},
        {"(a*b+c)//b", "a+c"},
        {"Max(Mod(any, -3), -2)", "-2"},
    };
    for (size_t i = 0; i < COUNT(different); i++) {
        if (parsed(different[i][0]) == parsed(different[i][1])) {
            fail_msg("%s is taken for %s", different[i][0], different[i][1]);
        }
    }
}

static void the_view_of_a_hidden_state_has_constant_heads(void **state) {
    (void)state;
    /* [b, a, 512] as [b, a, -1, 64], and after a cache of c as [b, a + c, -1, 64] */
    const Sym *count = sym_mul(&table, number(512), sym_mul(&table, a, b));
    const Sym *known = sym_mul(&table, number(64), sym_mul(&table, b, a));
    assert_ptr_equal(sym_floordiv(&table, count, known), number(8));
    const Sym *total = sym_add(&table, a, c);
    count = sym_mul(&table, number(512), sym_mul(&table, total, b));
    known = sym_mul(&table, number(64), sym_mul(&table, b, total));
    assert_ptr_equal(sym_floordiv(&table, count, known), number(8));
}

static void a_symbol_keeps_its_first_range(void **state) {
    (void)state;
    assert_ptr_equal(sym_symbol(&table, "b", 5, 6), b);
    assert_int_equal(b->lower, 1);
    assert_ptr_equal(sym_lookup(&table, "c"), c);
    assert_null(sym_lookup(&table, "unheard of"));
}

/* ---- ranges ---- */

static void ranges_follow_from_the_symbols(void **state) {
    (void)state;
    const int64_t low = INT64_MIN, high = INT64_MAX;
    const struct {
        const char *text;
        int64_t lower, upper;
    } cases[] = {
        {"7", 7, 7},
        {"a + 1", 1, high},
        {"b + c", 3, 1088},
        {"b - c", -1023, 62},
        {"-a", low, 0},
        {"a - b", -64, high},
        {"2*b*c", 4, 131072},
        {"-2*b", -128, -2},
        {"any*b", low, high},
        {"a*b", 0, high},
        {"b//3", 0, 21},
        {"c//7", 0, 146},
        {"(b - c)//10", -103, 6},
        {"a//b", 0, high},
        {"any//2", low, high},
        {"Mod(a, 8)", 0, 7},
        {"Mod(a, b)", 0, 63},
        {"Mod(a, -3)", -2, 0},
        {"Mod(any, b - 3)", -1, 60},
        {"Max(a, b)", 1, high},
        {"Min(b, c)", 1, 64},
        {"Max(b, 8)", 8, 64},
        {"9223372036854775807 - b", high - 64, high},
        {"9223372036854775807 - a", low, high},
        {"9223372036854775807*a - 5*a", 0, high},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Sym *sym = parsed(cases[i].text);
        if (sym->lower != cases[i].lower || sym->upper != cases[i].upper) {
            fail_msg("%s: [%lld, %lld]", cases[i].text, (long long)sym->lower,
                     (long long)sym->upper);
        }
    }
}

/* ---- text ---- */

static void expressions_print_as_torch_export_writes_them(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-5",
        "a",
        "a + 1",
        "a - 1",
        "2*a",
        "-a",
        "2*a + 1",
        "a*b",
        "a + b",
        "a - b",
        "b - a",
        "3*a*b + 2*c - 7",
        "a**2",
        "a**3*b",
        "-a**2",
        "((a//2))",
        "(((a + 1)//2))",
        "(((a + 3)//4)) + 1",
        "((a//b))",
        "((a//(b + c)))",
        "((1//a))",
        "((-1//a))",
        "((a//-2))",
        "(((-a)//2))",
        "(((a*b)//4))",
        "Mod(a, 8)",
        "2*Mod(a, 8) + 1",
        "Mod(a, 8)**2",
        "((a//2))**2",
        "Max(a, b)",
        "Min(a, b + 1)",
        "Min(a, b, c - 9)",
        "-((a//2))",
        "-9223372036854775807",
        "a - 9223372036854775807",
        "-9223372036854775807*a",
        "a + b - 9223372036854775807*c",
    };
    for (size_t i = 0; i < COUNT(texts); i++) assert_prints(parsed(texts[i]), texts[i]);
}

static void texts_of_torch_export_are_read(void **state) {
    (void)state;
    const Sym *s0, *sym;
    ferry_error error;
    assert_fails(sym_parse(&table, "s0 + 1", false, &sym, &error), FERRY_BAD_FORMAT, &error,
                 "unknown symbol");
    assert_ok(sym_parse(&table, "s0", true, &s0, &error), &error);
    assert_ptr_equal(sym_lookup(&table, "s0"), s0);
    assert_int_equal(s0->lower, 0);
    assert_true(s0->upper == SYM_UNBOUNDED);
    assert_ptr_equal(parsed("s0 + 1"), sym_add(&table, s0, number(1)));
    assert_ptr_equal(parsed("2*s0"), sym_mul(&table, number(2), s0));
    assert_ptr_equal(parsed("((s0//2))"), sym_floordiv(&table, s0, number(2)));
    assert_ptr_equal(parsed("Mod(s0, 8)"), sym_mod(&table, s0, number(8)));
    assert_ptr_equal(parsed("Max(1, s0)"), sym_max(&table, s0, number(1)));
    assert_ptr_equal(parsed("  Min( s0 ,16 )\n"), sym_min(&table, s0, number(16)));
    assert_ptr_equal(parsed("s0*(s0 + 1)"), parsed("s0**2 + s0"));
    assert_ptr_equal(parsed("2*s0//3"), sym_floordiv(&table, parsed("2*s0"), number(3)));
    assert_ptr_equal(parsed("-s0//3"), sym_floordiv(&table, parsed("-s0"), number(3)));
}

static void bad_texts_are_refused_and_the_reason_is_said(void **state) {
    (void)state;
    static char deep[3001], many[4001], wide[8192];
    memset(deep, '(', sizeof deep - 1);
    memset(many, '-', sizeof many - 1);
    for (int i = 0; i < 4095; i++) memcpy(wide + 2 * i, "+a", 2);
    wide[0] = ' ';
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected a number"},
        {"  ", "expected a number"},
        {"a +", "expected a number"},
        {"a b", "unexpected text"},
        {"a % 2", "unexpected text"},
        {"a / 2", "unexpected text"},
        {"1.5", "unexpected text"},
        {"(a", "expected ')'"},
        {"a)", "unexpected text"},
        {"nobody", "unknown symbol at column 7"},
        {"Sqrt(a)", "unknown function"},
        {"Mod(a)", "wrong number of arguments"},
        {"Mod(a, 2, 3)", "wrong number of arguments"},
        {"Max(a, b", "expected ')'"},
        {"a**-1", "expected an exponent"},
        {"a**b", "expected an exponent"},
        {"a**1000", "expected an exponent"},
        {"a//0", "a divisor is 0"},
        {"Mod(a, a - a)", "a divisor is 0"},
        {"9223372036854775808", "does not fit 64 bits"},
        {"9223372036854775807 + 1", "does not fit 64 bits"},
        {"-9223372036854775807 - 1", "does not fit 64 bits"},
        {"9223372036854775807*a + 2*a", "does not fit 64 bits"},
        {"(4294967296*a)*(4294967296*b)", "does not fit 64 bits"},
        {"(a + b + c)**40", "too complex"},
        {"(((a + b)**9//2 + a)**9//2 + a)**9", "too complex"},
        {deep, "nested too deeply"},
        {many, "nested too deeply"},
        {wide, "too long"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Sym *sym = NULL;
        ferry_error error = {0};
        ferry_status status = sym_parse(&table, cases[i].text, false, &sym, &error);
        if (status != FERRY_BAD_FORMAT || !strstr(error.message, cases[i].message)) {
            fail_msg("%.40s: %s", cases[i].text, error.message);
        }
        assert_non_null(sym);
        assert_false(table.overflow);
    }
}

static void an_overflow_in_a_program_is_remembered(void **state) {
    (void)state;
    const Sym *large = sym_mul(&table, number(INT64_MAX), a);
    assert_false(table.overflow);
    sym_add(&table, large, a);
    assert_true(table.overflow);
    const Sym *sym;
    assert_int_equal(sym_parse(&table, "a + 1", false, &sym, NULL), FERRY_OK);
    assert_true(table.overflow);
    table.overflow = false;
    sym_const(&table, INT64_MIN);
    assert_true(table.overflow);
    table.overflow = false;
    sym_floordiv(&table, a, number(0));
    assert_true(table.overflow);
    table.overflow = false;
    const Sym *sum = number(0);
    for (int i = 0; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof name, "many%d", i);
        sum = sym_add(&table, sum, sym_symbol(&table, name, 0, 1));
    }
    assert_true(table.overflow);
    table.overflow = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_expressions_are_one_object),
        cmocka_unit_test(different_expressions_are_kept_apart),
        cmocka_unit_test(the_view_of_a_hidden_state_has_constant_heads),
        cmocka_unit_test(a_symbol_keeps_its_first_range),
        cmocka_unit_test(ranges_follow_from_the_symbols),
        cmocka_unit_test(expressions_print_as_torch_export_writes_them),
        cmocka_unit_test(texts_of_torch_export_are_read),
        cmocka_unit_test(bad_texts_are_refused_and_the_reason_is_said),
        cmocka_unit_test(an_overflow_in_a_program_is_remembered),
    };
    return cmocka_run_group_tests_name("sym", tests, make_table, free_table);
}
