/* The reference runtime: indexing by tensors, scattering, ordering, routed products, and the functions
 * of numbers that came with them. */
#include "reference.h"

static Arg indices(Fixture *f, Value *first, Value *second, Value *third) {
    Value *items[] = {first, second, third};
    return arg_tensors(&f->b, items, third ? 3 : second ? 2 : 1);
}

/* [2, 3, 2]: 0 to 11 */
static Value *dozen(Fixture *f) {
    return given(f, FERRY_F32, DIMS(2, 3, 2), NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

static void test_index(void **state) {
    Fixture *f = *state;
    Value *x = dozen(f), *rows = given(f, FERRY_I64, DIMS(2), NUMBERS(-1, 0));
    Value *columns = given(f, FERRY_I32, DIMS(3, 1), NUMBERS(2, -3, 1));
    Value *last = given(f, FERRY_I64, DIMS(2), NUMBERS(1, -2));
    expect(f, RUN_OP(f, OP_INDEX, arg_tensor(x), indices(f, rows, NULL, NULL)), 0,
           NUMBERS(6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5));
    /* [3, 2, 2]: neighbours stay in place */
    expect(f, RUN_OP(f, OP_INDEX, arg_tensor(x), indices(f, rows, columns, NULL)), 0,
           NUMBERS(10, 11, 4, 5, 6, 7, 0, 1, 8, 9, 2, 3));
    /* [2, 3]: those that are apart come first */
    expect(f, RUN_OP(f, OP_INDEX, arg_tensor(x), indices(f, rows, NULL, last)), 0,
           NUMBERS(7, 9, 11, 0, 2, 4));
    expect(f, RUN_OP(f, OP_INDEX, arg_tensor(x), indices(f, NULL, rows, last)), 0,
           NUMBERS(5, 0, 11, 6));
    check(f);
}

static void test_index_of_views(void **state) {
    Fixture *f = *state;
    Value *x = build_transpose(&f->b, dozen(f), 0, 2);
    Value *rows = given(f, FERRY_I64, DIMS(2), NUMBERS(1, 1));
    Value *written = given(f, FERRY_F32, DIMS(2), NUMBERS(50, 60));
    expect(f, RUN_OP(f, OP_INDEX, arg_tensor(x), indices(f, rows, NULL, NULL)), 0,
           NUMBERS(1, 7, 3, 9, 5, 11, 1, 7, 3, 9, 5, 11));
    expect(
        f,
        RUN_OP(f, OP_INDEX_PUT, arg_tensor(x), indices(f, NULL, NULL, rows), arg_tensor(written)),
        0, NUMBERS(0, 60, 2, 60, 4, 60, 1, 60, 3, 60, 5, 60));
    check(f);
}

static void test_index_put(void **state) {
    Fixture *f = *state;
    Value *x = dozen(f), *rows = given(f, FERRY_I64, DIMS(2), NUMBERS(-1, 0));
    Value *columns = given(f, FERRY_I64, DIMS(2), NUMBERS(1, 2));
    Value *twice = given(f, FERRY_I64, DIMS(3), NUMBERS(0, 1, 0));
    Value *values = given(f, FERRY_F32, DIMS(2, 1), NUMBERS(20, 30));
    Value *counts = given(f, FERRY_I64, DIMS(2), NUMBERS(5, 6));
    Value *more = given(f, FERRY_I64, DIMS(3), NUMBERS(1, 10, 100));
    expect(
        f,
        RUN_OP(f, OP_INDEX_PUT, arg_tensor(x), indices(f, rows, columns, NULL), arg_tensor(values)),
        0, NUMBERS(0, 1, 2, 3, 30, 30, 6, 7, 20, 20, 10, 11));
    expect(f,
           RUN_OP(f, OP_INDEX_PUT, arg_tensor(counts), indices(f, twice, NULL, NULL),
                  arg_tensor(more), arg_bool(true)),
           0, NUMBERS(106, 16));
    check(f);
}

static void test_scatter(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_F32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    Value *index = given(f, FERRY_I64, DIMS(2, 2), NUMBERS(2, 2, 0, 1));
    Value *source = given(f, FERRY_F32, DIMS(2, 2), NUMBERS(10, 20, -30, 0.5));
    static const struct {
        const char *how;
        double numbers[6];
    } cases[] = {{"sum", {1, 2, 33, -26, 5.5, 6}},
                 {"prod", {1, 2, 600, -120, 2.5, 6}},
                 {"amax", {1, 2, 20, 4, 5, 6}},
                 {"amin", {1, 2, 3, -30, 0.5, 6}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(f,
               RUN_OP(f, OP_SCATTER_REDUCE, arg_tensor(x), arg_int(b, 1), arg_tensor(index),
                      arg_tensor(source), arg_string(cases[i].how)),
               0, 6, cases[i].numbers);
    }
    expect(
        f,
        RUN_OP(f, OP_SCATTER, arg_tensor(x), arg_int(b, -1), arg_tensor(index), arg_tensor(source)),
        0, NUMBERS(1, 2, 20, -30, 0.5, 6));
    Value *places = given(f, FERRY_I32, DIMS(2), NUMBERS(2, 0));
    expect(f,
           RUN_OP(f, OP_INDEX_COPY, arg_tensor(x), arg_int(b, 1), arg_tensor(places),
                  arg_tensor(source)),
           0, NUMBERS(20, 2, 10, 0.5, 5, -30));
    check(f);
}

/* The number of what is not zero is known only then; what follows has it as its size. */
static void test_nonzero(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(2, 3), NUMBERS(0, 2, 0, NAN, 0, -1));
    const Sym *count = sym_symbol(&f->program->symbols, "u0", 0, SYM_UNBOUNDED);
    Value *found = RUN_OP(f, OP_NONZERO, arg_tensor(x), arg_sym(count));
    VEC_PUSH(&f->program->sources, ((SymSource){count, found, 0}));
    expect(f, found, 0, NUMBERS(0, 1, 1, 0, 1, 2));
    expect(f, build_scalar_tensor(&f->b, count, FERRY_I64), 0, NUMBERS(3));
    expect(f, build_arange(&f->b, build_const(&f->b, 0), count, FERRY_I64), 0, NUMBERS(0, 1, 2));
    check(f);
}

/* A size that an input holds. */
static void test_size_from_a_value(void **state) {
    Fixture *f = *state;
    const Sym *count = sym_symbol(&f->program->symbols, "u0", 0, SYM_UNBOUNDED);
    Value *number = scalar_input(f, FERRY_I64, 2);
    VEC_PUSH(&f->program->sources, ((SymSource){count, number, -1}));
    expect(f, build_arange(&f->b, build_const(&f->b, 0), count, FERRY_I64), 0, NUMBERS(0, 1));
    check(f);
}

static void test_topk(void **state) {
    Fixture *f = *state;
    Builder *b = &f->b;
    Value *x = given(f, FERRY_F32, DIMS(2, 4), NUMBERS(3, NAN, 7, 3, -1, 5, 5, 0));
    Value *bytes = given(f, FERRY_U8, DIMS(3), NUMBERS(200, 7, 100));
    const Arg most[] = {arg_tensor(x), arg_int(b, 3), arg_int(b, 1), arg_bool(true)};
    const Arg least[] = {arg_tensor(x), arg_int(b, 4), arg_int(b, -1), arg_bool(false)};
    const Arg down[] = {arg_tensor(x), arg_int(b, 1), arg_int(b, 0), arg_bool(true)};
    const Arg few[] = {arg_tensor(bytes), arg_int(b, 2)};
    Node *node = build_node(b, OP_TOPK, most, 4);
    expect(f, node->outputs[0], 0, NUMBERS(NAN, 7, 3, 5, 5, 0));
    expect(f, node->outputs[1], 0, NUMBERS(1, 2, 0, 1, 2, 3));
    node = build_node(b, OP_TOPK, least, 4);
    expect(f, node->outputs[0], 0, NUMBERS(3, 3, 7, NAN, -1, 0, 5, 5));
    expect(f, node->outputs[1], 0, NUMBERS(0, 3, 2, 1, 0, 3, 1, 2));
    node = build_node(b, OP_TOPK, down, 4);
    expect(f, node->outputs[1], 0, NUMBERS(0, 0, 0, 0));
    node = build_node(b, OP_TOPK, few, 2);
    expect(f, node->outputs[0], 0, NUMBERS(200, 100));
    check(f);
}

static void test_grouped_product(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(4, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    Value *matrices = given(f, FERRY_F32, DIMS(3, 2, 1), NUMBERS(1, 0, 9, 9, 0, 1));
    Value *ends = given(f, FERRY_I32, DIMS(3), NUMBERS(1, 1, 3));
    expect(f, RUN_OP(f, OP_GROUPED_MM, arg_tensor(x), arg_tensor(matrices), arg_tensor(ends)), 0,
           NUMBERS(1, 4, 6, 0));
    check(f);
}

static void test_division(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_I64, DIMS(5), NUMBERS(7, -7, 7, -7, 4));
    Value *y = given(f, FERRY_I64, DIMS(5), NUMBERS(2, 2, -2, -2, 0));
    Value *u = given(f, FERRY_F32, DIMS(3), NUMBERS(5.5, -5.5, -4));
    Value *v = given(f, FERRY_F32, DIMS(3), NUMBERS(-2, 2, 2));
    expect(f, build_binary(&f->b, OP_FLOOR_DIVIDE, x, y), 0, NUMBERS(3, -4, -4, 3, 0));
    expect(f, build_binary(&f->b, OP_REMAINDER, x, y), 0, NUMBERS(1, 1, -1, -1, 0));
    expect(f, build_binary(&f->b, OP_FMOD, x, y), 0, NUMBERS(1, -1, 1, -1, 0));
    expect(f, build_binary(&f->b, OP_FLOOR_DIVIDE, u, v), 0, NUMBERS(-3, -3, -2));
    expect(f, build_binary(&f->b, OP_REMAINDER, u, v), 0, NUMBERS(-0.5, 0.5, 0));
    expect(f, build_binary(&f->b, OP_FMOD, u, v), 0, NUMBERS(1.5, -1.5, 0));
    check(f);
}

static void test_rounding(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(4), NUMBERS(-1.5, 0.5, 2.5, 0));
    Value *n = given(f, FERRY_I64, DIMS(2, 2), NUMBERS(-4, 3, 2, 5));
    expect(f, build_unary(&f->b, OP_FLOOR, x), 0, NUMBERS(-2, 0, 2, 0));
    expect(f, build_unary(&f->b, OP_CEIL, x), 0, NUMBERS(-1, 1, 3, 0));
    expect(f, build_unary(&f->b, OP_ROUND, x), 0, NUMBERS(-2, 0, 2, 0));
    expect(f, build_unary(&f->b, OP_SIGN, x), 0, NUMBERS(-1, 1, 1, 0));
    expect(f, build_unary(&f->b, OP_ATAN, x), 1e-6,
           NUMBERS(-0.98279372, 0.46364761, 1.19028995, 0));
    expect(f, build_unary(&f->b, OP_SIGN, n), 0, NUMBERS(-1, 1, 1, 1));
    expect(f, build_reduce(&f->b, OP_PROD, n, 1, false), 0, NUMBERS(-12, 10));
    expect(f, build_reduce(&f->b, OP_PROD, x, 0, true), 0, NUMBERS(0));
    check(f);
}

/* ---- errors ---- */

static void test_index_range(void **state) {
    Fixture *f = *state;
    Value *rows = given(f, FERRY_I64, DIMS(1), NUMBERS(-3));
    build_scope(&f->b, "model.rows");
    build_output(&f->b, "y",
                 RUN_OP(f, OP_INDEX, arg_tensor(dozen(f)), indices(f, rows, NULL, NULL)));
    check_fails(f, FERRY_INVALID_ARGUMENT, "model.rows",
                "aten::index.Tensor: index -3 is outside a dimension of size 2");
}

static void test_scatter_range(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(2), NUMBERS(1, 2));
    Value *index = given(f, FERRY_I64, DIMS(1), NUMBERS(2));
    Value *source = given(f, FERRY_F32, DIMS(1), NUMBERS(1));
    build_output(&f->b, "y",
                 RUN_OP(f, OP_SCATTER, arg_tensor(x), arg_int(&f->b, 0), arg_tensor(index),
                        arg_tensor(source)));
    check_fails(f, FERRY_INVALID_ARGUMENT, "",
                "aten::scatter.src: index 2 is outside a dimension of size 2");
}

static void test_group_range(void **state) {
    Fixture *f = *state;
    Value *x = given(f, FERRY_F32, DIMS(2, 1), NUMBERS(1, 2));
    Value *matrices = given(f, FERRY_F32, DIMS(2, 1, 1), NUMBERS(1, 1));
    Value *ends = given(f, FERRY_I64, DIMS(2), NUMBERS(2, 1));
    build_output(&f->b, "y",
                 RUN_OP(f, OP_GROUPED_MM, arg_tensor(x), arg_tensor(matrices), arg_tensor(ends)));
    check_fails(f, FERRY_INVALID_ARGUMENT, "", "group 1 ends at row 1, after 2 of 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_index),       TEST(test_index_of_views),  TEST(test_index_put),
        TEST(test_scatter),     TEST(test_nonzero),         TEST(test_size_from_a_value),
        TEST(test_topk),        TEST(test_grouped_product), TEST(test_division),
        TEST(test_rounding),    TEST(test_index_range),     TEST(test_scatter_range),
        TEST(test_group_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
