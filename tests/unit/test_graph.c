/* Programs: building, verifying, rewriting, printing. */
#include "check.h"
#include "graph/build.h"

static Program *program;
static Builder builder, *b = &builder;
static ferry_error error;
static const Sym *batch, *length;

static int make_program(void **state) {
    (void)state;
    program = program_new();
    program->architecture = "TinyForCausalLM";
    program->model_type = "tiny";
    program->dtype = FERRY_F32;
    error_clear(&error);
    builder = build_start(program, &error);
    batch = sym_symbol(&program->symbols, "batch", 1, SYM_UNBOUNDED);
    length = sym_symbol(&program->symbols, "length", 1, 4096);
    return 0;
}

static int free_program(void **state) {
    (void)state;
    program_free(program);
    return 0;
}

static Value *input(const char *name, ferry_dtype dtype, uint32_t rank, const Sym *const *shape) {
    return build_input(b, name, dtype, rank, shape);
}

/* A float32 constant of these sizes. */
static Value *constant(const char *name, uint32_t rank, const int64_t *shape) {
    static const float zeros[4096];
    return build_constant(b, VALUE_PARAMETER, name, FERRY_F32, rank, shape, zeros);
}

/* logits = linear(rms_norm(embedding(ids)), embedding weight), with a residual branch */
static Value *build_tiny(void) {
    Value *ids = input("input_ids", FERRY_I64, 2, (const Sym *[]){batch, length});
    Value *weight = constant("embed.weight", 2, (int64_t[]){32, 16});
    Value *x = build_embedding(b, weight, ids);
    const char *scope = build_scope(b, "model.layers.%d", 0);
    Value *y = build_rms_norm(b, x, constant("norm.weight", 1, (int64_t[]){16}), 1e-6);
    y = build_linear(b, y, constant("up.weight", 2, (int64_t[]){24, 16}), NULL);
    y = build_gelu(b, y, true);
    y = build_linear(b, y, constant("down.weight", 2, (int64_t[]){16, 24}), NULL);
    b->scope = scope;
    Value *logits = build_linear(b, build_add(b, x, y), weight, NULL);
    build_output(b, "logits", logits);
    return logits;
}

static void assert_type(const Value *value, const char *type) {
    Buffer buffer = {0};
    value_print_type(&buffer, value);
    assert_string_equal(buffer_string(&buffer), type);
    buffer_free(&buffer);
}

static void a_small_program_is_typed_and_verifies(void **state) {
    (void)state;
    Value *logits = build_tiny();
    assert_ok(build_finish(b), &error);
    assert_type(logits, "float32[batch, length, 32]");
    assert_ok(program_verify(program, "building", &error), &error);
    assert_int_equal(program->inputs.count, 1);
    assert_int_equal(program->weights.count, 4);
}

static void names_are_unique(void **state) {
    (void)state;
    Value *x = input("x", FERRY_F32, 1, &length);
    Value *y = input("x", FERRY_F32, 1, &length);
    Value *first = build_add(b, x, y), *second = build_add(b, x, y), *third = build_add(b, x, y);
    assert_string_equal(x->name, "x");
    assert_string_equal(y->name, "x_1");
    assert_string_equal(first->name, "add");
    assert_string_equal(second->name, "add_1");
    assert_string_equal(third->name, "add_2");
    assert_ptr_equal(map_find(&program->names, "add_1"), second);
    assert_ok(build_finish(b), &error);
}

static void arguments_left_out_take_their_defaults(void **state) {
    (void)state;
    Value *x = input("x", FERRY_F32, 1, &length);
    const Arg args[] = {arg_tensor(x)};
    Node *gelu = build_node(b, OP_GELU, args, 1);
    assert_string_equal(gelu->args[1].string, "none");
    Node *softplus = build_node(b, OP_SOFTPLUS, args, 1);
    assert_true(softplus->args[1].integer == build_const(b, 1));
    assert_true(softplus->args[2].integer == build_const(b, 20));
    Node *leaky = build_node(b, OP_LEAKY_RELU, args, 1);
    assert_true(leaky->args[1].number == 0.01);
    Node *clamp = build_node(b, OP_CLAMP, args, 1);
    assert_int_equal(clamp->args[1].kind, VALUE_NONE);
    assert_ok(build_finish(b), &error);
    assert_ok(program_verify(program, "building", &error), &error);
}

/* ---- shapes ---- */

static void sizes_broadcast_as_in_torch(void **state) {
    (void)state;
    const Sym *one = build_const(b, 1), *eight = build_const(b, 8);
    Value *x = input("x", FERRY_F32, 3, (const Sym *[]){batch, one, eight});
    Value *y = input("y", FERRY_F32, 2, (const Sym *[]){length, one});
    Value *scalar = input("s", FERRY_F32, 0, NULL);
    Value *mask = input("m", FERRY_BOOL, 4, (const Sym *[]){eight, one, one, one});
    assert_type(build_add(b, x, y), "float32[batch, length, 8]");
    assert_type(build_add(b, y, x), "float32[batch, length, 8]");
    assert_type(build_add(b, scalar, x), "float32[batch, 1, 8]");
    assert_type(build_binary(b, OP_LT, x, y), "bool[batch, length, 8]");
    assert_type(build_where(b, mask, x, scalar), "float32[8, batch, 1, 8]");
    Value *z = input("z", FERRY_F32, 4, (const Sym *[]){batch, eight, length, length});
    Value *w = input("w", FERRY_F32, 3, (const Sym *[]){one, length, eight});
    assert_type(build_matmul(b, z, w), "float32[batch, 8, length, 8]");
    assert_ok(build_finish(b), &error);
    build_add(b, x, constant("c", 1, (int64_t[]){7}));
    assert_int_equal(build_finish(b), FERRY_INVALID_ARGUMENT);
    assert_contains(error.message, "aten::add.Tensor: sizes 8 and 7 do not broadcast");
}

static void a_view_works_out_the_unknown_size(void **state) {
    (void)state;
    const Sym *unknown = build_const(b, -1), *size = build_const(b, 64);
    const Sym *total = sym_add(&program->symbols, length, build_const(b, 3));
    Value *x = input("x", FERRY_F32, 3, (const Sym *[]){batch, length, build_const(b, 512)});
    Value *y = build_view(b, x, (const Sym *[]){batch, length, unknown, size}, 4);
    assert_type(y, "float32[batch, length, 8, 64]");
    assert_type(build_view(b, x, (const Sym *[]){unknown, build_const(b, 512)}, 2),
                "float32[batch*length, 512]");
    assert_type(build_view(b, build_transpose(b, y, 1, 2), (const Sym *[]){unknown}, 1),
                "float32[512*batch*length]");
    Value *z = input("z", FERRY_F32, 3, (const Sym *[]){batch, total, build_const(b, 512)});
    assert_type(build_view(b, z, (const Sym *[]){batch, total, unknown, size}, 4),
                "float32[batch, length + 3, 8, 64]");
    assert_ok(build_finish(b), &error);
    build_view(b, x, (const Sym *[]){batch, total, build_const(b, 512)}, 3);
    assert_int_equal(build_finish(b), FERRY_INVALID_ARGUMENT);
    assert_contains(error.message, "elements before and after");
}

static void shape_operations_give_the_shapes_of_torch(void **state) {
    (void)state;
    Value *x = input("x", FERRY_F32, 3, (const Sym *[]){batch, length, build_const(b, 12)});
    Value *parts[2];
    assert_type(build_permute(b, x, (int64_t[]){2, 0, 1}), "float32[12, batch, length]");
    assert_type(build_unsqueeze(b, x, -1), "float32[batch, length, 12, 1]");
    assert_type(build_unsqueeze(b, x, 0), "float32[1, batch, length, 12]");
    assert_type(build_squeeze(b, build_unsqueeze(b, x, 1), 1), "float32[batch, length, 12]");
    assert_type(build_slice_const(b, x, -1, 2, INT64_MAX), "float32[batch, length, 10]");
    assert_type(build_slice_const(b, x, -1, -3, INT64_MAX), "float32[batch, length, 3]");
    assert_type(build_slice_const(b, x, -1, 0, 100), "float32[batch, length, 12]");
    assert_type(build_slice_const(b, x, 2, 8, 4), "float32[batch, length, 0]");
    assert_type(build_select(b, x, 1, -1), "float32[batch, 12]");
    build_split(b, x, (int64_t[]){5, 7}, 2, -1, parts);
    assert_type(parts[1], "float32[batch, length, 7]");
    assert_type(build_cat(b, (Value *[]){x, x, x}, 3, 1), "float32[batch, 3*length, 12]");
    assert_type(build_reduce(b, OP_MEAN, x, -1, true), "float32[batch, length, 1]");
    assert_type(build_reduce(b, OP_ARGMAX, x, -1, false), "int64[batch, length]");
    assert_type(build_reduce(b, OP_ANY, x, 0, false), "bool[length, 12]");
    assert_type(build_expand(b, build_reduce(b, OP_AMAX, x, 2, true),
                             (const Sym *[]){build_const(b, -1), length, build_const(b, 4)}, 3),
                "float32[batch, length, 4]");
    assert_type(build_arange(b, length, sym_add(&program->symbols, length, batch), FERRY_I64),
                "int64[batch]");
    assert_type(build_full(b, (const Sym *[]){batch}, 1, 0.5, FERRY_BF16), "bfloat16[batch]");
    assert_type(build_scalar_tensor(b, length, FERRY_I32), "int32[]");
    assert_type(build_to(b, x, FERRY_F16), "float16[batch, length, 12]");
    assert_ptr_equal(build_to(b, x, FERRY_F32), x);
    assert_ok(build_finish(b), &error);
    assert_ok(program_verify(program, "building", &error), &error);
}

/* ---- refusals ---- */

typedef void (*Attempt)(Value *x, Value *ids);

static void add_dtypes(Value *x, Value *ids) {
    build_add(b, x, ids);
}
static void exp_of_integers(Value *x, Value *ids) {
    (void)x, build_unary(b, OP_EXP, ids);
}
static void half_of_integers(Value *x, Value *ids) {
    (void)x, build_scalar(b, OP_MUL_SCALAR, ids, .5);
}
static void far_dimension(Value *x, Value *ids) {
    (void)ids, build_softmax(b, x, 3);
}
static void select_outside(Value *x, Value *ids) {
    (void)ids, build_select(b, x, 2, 8);
}
static void squeeze_many(Value *x, Value *ids) {
    (void)ids, build_squeeze(b, x, 2);
}
static void permute_twice(Value *x, Value *ids) {
    (void)ids, build_permute(b, x, (int64_t[]){0, 1, 1});
}
static void split_wrongly(Value *x, Value *ids) {
    Value *parts[2];
    (void)ids, build_split(b, x, (int64_t[]){3, 4}, 2, 2, parts);
    assert_ptr_equal(parts[1], &b->poison);
}
static void embed_floats(Value *x, Value *ids) {
    (void)ids, build_embedding(b, constant("w", 2, (int64_t[]){4, 4}), x);
}
static void linear_wrongly(Value *x, Value *ids) {
    (void)ids, build_linear(b, x, constant("w", 2, (int64_t[]){4, 9}), NULL);
}
static void linear_without_weight(Value *x, Value *ids) {
    (void)ids, build_linear(b, x, NULL, NULL);
}
static void norm_wrongly(Value *x, Value *ids) {
    (void)ids, build_rms_norm(b, x, constant("w", 1, (int64_t[]){7}), 1e-6);
}
static void cat_wrongly(Value *x, Value *ids) {
    Value *y = build_slice_const(b, x, 2, 0, 4);
    (void)ids, build_cat(b, (Value *[]){x, y}, 2, 0);
}
static void cat_nothing(Value *x, Value *ids) {
    const Arg arg = arg_tensors(b, NULL, 0);
    (void)x, (void)ids, build_op(b, OP_CAT, &arg, 1);
}
static void two_unknown_sizes(Value *x, Value *ids) {
    const Sym *unknown = build_const(b, -1);
    (void)ids, build_view(b, x, (const Sym *[]){unknown, unknown}, 2);
}
static void negative_size(Value *x, Value *ids) {
    const Sym *size = build_const(b, -2);
    (void)x, (void)ids, build_full(b, &size, 1, 0, FERRY_F32);
}
static void symbol_for_dimension(Value *x, Value *ids) {
    const Arg args[] = {arg_tensor(x), arg_syms(b, (const Sym *[]){batch, batch, batch}, 3)};
    (void)ids, build_op(b, OP_PERMUTE, args, 2);
}
static void missing_argument(Value *x, Value *ids) {
    const Arg args[] = {arg_tensor(x)};
    (void)ids, build_op(b, OP_SOFTMAX, args, 1);
}
static void wrong_argument(Value *x, Value *ids) {
    const Arg args[] = {arg_tensor(x), arg_float(1)};
    (void)ids, build_op(b, OP_SOFTMAX, args, 2);
}
static void too_large_size(Value *x, Value *ids) {
    const Sym *size = sym_mul(&program->symbols, build_const(b, INT64_MAX), length);
    size = sym_mul(&program->symbols, size, build_const(b, 2));
    (void)x, (void)ids, build_full(b, &size, 1, 0, FERRY_F32);
}
static void large_rank(Value *x, Value *ids) {
    (void)x, (void)ids;
    input("y", FERRY_F32, 9,
          (const Sym *[]){batch, batch, batch, batch, batch, batch, batch, batch, batch});
}
static void negative_constant(Value *x, Value *ids) {
    (void)x, (void)ids;
    constant("w", 1, (int64_t[]){-1});
}

static const struct {
    Attempt attempt;
    ferry_status status;
    const char *message;
} refusals[] = {
    {add_dtypes, FERRY_INVALID_ARGUMENT, "one dtype, found float32 and int64"},
    {exp_of_integers, FERRY_INVALID_ARGUMENT, "expected a floating-point tensor, found int64"},
    {half_of_integers, FERRY_INVALID_ARGUMENT, "a fractional scalar needs a floating-point tensor"},
    {far_dimension, FERRY_INVALID_ARGUMENT, "dimension 3 is outside a tensor of rank 3"},
    {select_outside, FERRY_INVALID_ARGUMENT, "index 8 is outside a dimension of 8"},
    {squeeze_many, FERRY_INVALID_ARGUMENT, "dimension 2 is not 1"},
    {permute_twice, FERRY_INVALID_ARGUMENT, "no permutation"},
    {split_wrongly, FERRY_INVALID_ARGUMENT, "7 and 8 differ"},
    {embed_floats, FERRY_INVALID_ARGUMENT, "int64 or int32 indices, found float32"},
    {linear_wrongly, FERRY_INVALID_ARGUMENT, "8 and 9 differ"},
    {linear_without_weight, FERRY_INVALID_ARGUMENT, "argument \"weight\" is missing"},
    {norm_wrongly, FERRY_INVALID_ARGUMENT, "8 and 7 differ"},
    {cat_wrongly, FERRY_INVALID_ARGUMENT, "8 and 4 differ"},
    {cat_nothing, FERRY_INVALID_ARGUMENT, "nothing to concatenate"},
    {two_unknown_sizes, FERRY_INVALID_ARGUMENT, "sizes of 0 or more, found -1"},
    {negative_size, FERRY_INVALID_ARGUMENT, "sizes of 0 or more, found -2"},
    {symbol_for_dimension, FERRY_INVALID_ARGUMENT, "no permutation"},
    {missing_argument, FERRY_INVALID_ARGUMENT, "argument \"dim\" is missing"},
    {wrong_argument, FERRY_INVALID_ARGUMENT, "argument \"dim\" is missing or of the wrong kind"},
    {too_large_size, FERRY_UNSUPPORTED, "does not fit 64 bits"},
    {large_rank, FERRY_UNSUPPORTED, "at most 8 dimensions, found 9"},
    {negative_constant, FERRY_INVALID_ARGUMENT, "unsuitable dtype or shape"},
};

static void what_an_operation_does_not_accept_is_said(void **state) {
    for (size_t i = 0; i < COUNT(refusals); i++) {
        Value *x = input("x", FERRY_F32, 3, (const Sym *[]){batch, length, build_const(b, 8)});
        Value *ids = input("ids", FERRY_I64, 2, (const Sym *[]){batch, length});
        build_scope(b, "model.part");
        refusals[i].attempt(x, ids);
        assert_fails(build_finish(b), refusals[i].status, &error, refusals[i].message);
        assert_true(error.where[0] != 0);
        free_program(state);
        make_program(state);
    }
}

static void after_a_failure_nothing_happens_and_the_first_message_stays(void **state) {
    (void)state;
    Value *x = input("x", FERRY_F32, 1, &length);
    build_scope(b, "model.layers.7");
    Value *bad = build_softmax(b, x, 5);
    assert_ptr_equal(bad, &b->poison);
    assert_false(build_ok(b));
    uint32_t values = program->value_count;
    Node *last = program->last;
    Value *more = build_add(b, bad, x);
    more = build_linear(b, more, build_gelu(b, bad, false), NULL);
    more = build_view(b, more, (const Sym *[]){build_dim(b, more, -1)}, 1);
    more = build_transpose(b, build_cat(b, (Value *[]){more, x}, 2, 0), -1, -2);
    more = build_spread(b, build_spread(b, more, true), false);
    more = build_to(b, build_attention(b, more, more, more, NULL, true, 1), FERRY_F16);
    Value *parts[2];
    build_split(b, more, (int64_t[]){1, 2}, 2, 0, parts);
    build_output(b, "more", build_rotary(b, parts[0], parts[1], more, false));
    build_fail(b, FERRY_IO, "another failure");
    constant("w", 1, (int64_t[]){1});
    input("y", FERRY_F32, 1, &length);
    assert_ptr_equal(more, &b->poison);
    assert_ptr_equal(parts[1], &b->poison);
    assert_int_equal(program->value_count, values);
    assert_ptr_equal(program->last, last);
    assert_int_equal(program->outputs.count, 0);
    assert_int_equal(build_finish(b), FERRY_INVALID_ARGUMENT);
    assert_string_equal(error.where, "model.layers.7");
    assert_contains(error.message, "dimension 5 is outside a tensor of rank 1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_program, free_program)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_small_program_is_typed_and_verifies),
        TEST(names_are_unique),
        TEST(arguments_left_out_take_their_defaults),
        TEST(sizes_broadcast_as_in_torch),
        TEST(a_view_works_out_the_unknown_size),
        TEST(shape_operations_give_the_shapes_of_torch),
        TEST(what_an_operation_does_not_accept_is_said),
        TEST(after_a_failure_nothing_happens_and_the_first_message_stays),
    };
    return cmocka_run_group_tests_name("building", tests, NULL, NULL);
}
