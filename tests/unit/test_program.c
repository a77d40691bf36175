/* Programs as passes see them: what the verifier notices, replacing, sweeping, printing. */
#include "check.h"
#include "graph/build.h"

static Program *program;
static Builder builder, *b = &builder;
static ferry_error error;
static const Sym *length;
static Value *x, *weight, *product, *sum; /* sum = x * weight + x */

static int make_program(void **state) {
    (void)state;
    static const float ones[4] = {1, 1, 1, 1};
    program = program_new();
    program->architecture = "TinyForCausalLM";
    program->model_type = "tiny";
    program->dtype = FERRY_F32;
    error_clear(&error);
    builder = build_start(program, &error);
    length = sym_symbol(&program->symbols, "length", 1, 4096);
    sym_symbol(&program->symbols, "batch", 2, SYM_UNBOUNDED);
    x = build_input(b, "x", FERRY_F32, 2, (const Sym *[]){length, build_const(b, 4)});
    weight = build_constant(b, VALUE_PARAMETER, "scale.weight", FERRY_F32, 1, (int64_t[]){4}, ones);
    build_scope(b, "model.scale");
    product = build_mul(b, x, weight);
    sum = build_add(b, product, x);
    build_output(b, "logits", sum);
    assert_ok(build_finish(b), &error);
    assert_ok(program_verify(program, "building", &error), &error);
    return 0;
}

static int free_program(void **state) {
    (void)state;
    program_free(program);
    return 0;
}

/* ---- verifying ---- */

static void drop_argument(void) {
    product->producer->args[1].kind = VALUE_NONE;
}
static void change_argument(void) {
    product->producer->args[1] = arg_float(1);
}
static void lose_tensor(void) {
    product->producer->args[1].tensor = NULL;
}
static void change_order(void) {
    program_remove(program, sum->producer);
    program_insert(program, sum->producer, product->producer);
}
static void remove_node(void) {
    program_remove(program, product->producer);
}
static void drop_output(void) {
    sum->producer->output_count = 0;
}
static void change_dtype(void) {
    sum->dtype = FERRY_F16;
}
static void change_shape(void) {
    const Sym **shape = ARENA_ARRAY(&program->arena, const Sym *, 2);
    shape[0] = shape[1] = length;
    sum->shape = shape;
}
static void change_maker(void) {
    sum->producer = product->producer;
}
static void share_name(void) {
    sum->name = "mul";
}
static void make_twice(void) {
    VEC_PUSH(&program->inputs, (Port){.name = "again", .value = x});
}
static void write_a_node(void) {
    program->outputs.items[0].writes = sum;
}
static void write_another_type(void) {
    program->outputs.items[0].value = weight;
    program->outputs.items[0].writes = x;
}
static void remove_weight(void) {
    program->weights.count = 0;
}
static void lose_recipe(void) {
    weight->recipe = NULL;
}
static void change_recipe(void) {
    weight->recipe = recipe_cast(&program->arena, weight->recipe, FERRY_F16);
}
static void foreign_output(void) {
    Value *value = ARENA_NEW(&program->arena, Value);
    *value = (Value){.name = "stranger", .id = 1000};
    program->outputs.items[0].value = value;
}
static void unmade_output(void) {
    program->outputs.items[0].value =
        program_value(program, VALUE_NODE, "nobody", FERRY_F32, 0, NULL);
}
static void short_tree(void) {
    program->output_tree = tree_tuple(&program->arena, NULL, 0);
}
static void long_tree(void) {
    const Tree *leaf = tree_leaf(&program->arena);
    program->input_tree = tree_tuple(&program->arena, (const Tree *[]){leaf, leaf}, 2);
}
static void overflow(void) {
    program->symbols.overflow = true;
}

static const struct {
    void (*damage)(void);
    ferry_status status;
    const char *message;
} damages[] = {
    {drop_argument, FERRY_INTERNAL, "after the test: aten::mul.Tensor: argument \"other\""},
    {change_argument, FERRY_INTERNAL, "aten::mul.Tensor: argument \"other\" is missing or of the"},
    {lose_tensor, FERRY_INTERNAL, "aten::mul.Tensor: reads a missing tensor"},
    {change_order, FERRY_INTERNAL, "aten::add.Tensor: reads a value before it is made: mul"},
    {remove_node, FERRY_INTERNAL, "aten::add.Tensor: reads a value before it is made: mul"},
    {drop_output, FERRY_INTERNAL, "aten::add.Tensor: the number of outputs is wrong"},
    {change_dtype, FERRY_INTERNAL, "the recorded type differs from the inferred one: add"},
    {change_shape, FERRY_INTERNAL, "the recorded type differs from the inferred one: add"},
    {change_maker, FERRY_INTERNAL, "an output has another maker"},
    {share_name, FERRY_INTERNAL, "a name is not registered for its value: mul"},
    {make_twice, FERRY_INTERNAL, "a value is made twice: x"},
    {remove_weight, FERRY_INTERNAL, "reads a value before it is made: scale.weight"},
    {lose_recipe, FERRY_INTERNAL, "a weight without a recipe: scale.weight"},
    {change_recipe, FERRY_INTERNAL, "a recipe makes another type: scale.weight"},
    {foreign_output, FERRY_INTERNAL, "reads a foreign value stranger"},
    {unmade_output, FERRY_INTERNAL, "reads a value before it is made: nobody"},
    {short_tree, FERRY_INTERNAL, "the output structure has another number of leaves"},
    {write_a_node, FERRY_INTERNAL, "an output writes what is no input or state"},
    {write_another_type, FERRY_INTERNAL, "an output changes the type of x"},
    {long_tree, FERRY_INTERNAL, "the input structure has another number of leaves"},
    {overflow, FERRY_UNSUPPORTED, "does not fit 64 bits"},
};

static void a_broken_invariant_is_named(void **state) {
    for (size_t i = 0; i < COUNT(damages); i++) {
        damages[i].damage();
        assert_fails(program_verify(program, "the test", &error), damages[i].status, &error,
                     damages[i].message);
        free_program(state);
        make_program(state);
    }
}

/* ---- rewriting ---- */

static void dead_nodes_and_weights_are_swept(void **state) {
    (void)state;
    Value *dead = build_unary(
        b, OP_EXP, build_constant(b, VALUE_CONSTANT, "unused", FERRY_F32, 0, NULL, &(float){1}));
    dead = build_add(b, dead, dead);
    build_input(b, "unread", FERRY_F32, 1, &length);
    assert_ok(build_finish(b), &error);
    program_sweep(program);
    assert_ptr_equal(program->last, sum->producer);
    assert_ptr_equal(program->first, product->producer);
    assert_int_equal(program->weights.count, 1);
    assert_ptr_equal(program->weights.items[0], weight);
    assert_int_equal(program->inputs.count, 2);
    assert_ok(program_verify(program, "sweeping", &error), &error);
}

/* Until a target that has no state_dict makes persistent buffers mere ones. */
static void persistent_buffers_and_states_live_without_a_reader(void **state) {
    (void)state;
    float four[4] = {0};
    Value *count = build_constant(b, VALUE_PERSISTENT_BUFFER, "count", FERRY_F32, 0, NULL, four);
    Value *seen = build_constant(b, VALUE_BUFFER, "seen", FERRY_F32, 1, (int64_t[]){4}, four);
    value_make_state(seen);
    program_sweep(program);
    assert_int_equal(program->weights.count, 3);
    assert_ok(program_verify(program, "sweeping", &error), &error);

    program_drop_persistence(program);
    assert_int_equal(count->kind, VALUE_BUFFER);
    program_sweep(program);
    assert_int_equal(program->weights.count, 2);
    assert_ptr_equal(program->weights.items[1], seen);
}

static void a_state_is_what_it_was(void **state) {
    (void)state;
    Value *one = build_constant(b, VALUE_CONSTANT, "one", FERRY_F32, 0, NULL, &(float){1});
    assert_int_equal(value_role(weight), VALUE_PARAMETER);
    assert_int_equal(value_role(one), VALUE_CONSTANT);
    value_make_state(weight);
    value_make_state(one);
    assert_int_equal(weight->kind, VALUE_STATE);
    assert_int_equal(value_role(weight), VALUE_PARAMETER);
    assert_int_equal(value_role(one), VALUE_BUFFER);
    value_make_state(one);
    assert_int_equal(value_role(one), VALUE_BUFFER);
}

static void a_node_lives_while_one_of_its_outputs_is_read(void **state) {
    (void)state;
    Value *parts[2];
    build_split(b, sum, (int64_t[]){1, 3}, 2, 1, parts);
    build_output(b, "tail", parts[1]);
    program_sweep(program);
    assert_ptr_equal(program->last, parts[1]->producer);
    Arena scratch = {0};
    uint32_t *uses = program_uses(program, &scratch);
    assert_int_equal(uses[x->id], 2);
    assert_int_equal(uses[sum->id], 2);
    assert_int_equal(uses[parts[0]->id], 0);
    assert_int_equal(uses[parts[1]->id], 1);
    arena_free(&scratch);
}

static void replacing_follows_chains(void **state) {
    (void)state;
    b->before = sum->producer;
    Value *first = build_unary(b, OP_NEG, x), *second = build_unary(b, OP_ABS, x);
    Value *pair = build_cat(b, (Value *[]){product, first}, 2, 0);
    b->before = NULL;
    build_output(b, "pair", pair);
    build_output(b, "first", first);
    uint32_t count = program->value_count;
    Value **map = ARENA_ARRAY(&program->arena, Value *, count);
    map[product->id] = first;
    map[first->id] = second;
    Value *late = build_unary(b, OP_RELU, first);
    build_output(b, "late", late);
    program_replace(program, map, count);
    assert_ptr_equal(sum->producer->args[0].tensor, second);
    assert_ptr_equal(sum->producer->args[1].tensor, x);
    assert_ptr_equal(pair->producer->args[0].tensors.items[0], second);
    assert_ptr_equal(pair->producer->args[0].tensors.items[1], second);
    assert_ptr_equal(late->producer->args[0].tensor, second);
    assert_ptr_equal(program->outputs.items[2].value, second);
    assert_ptr_equal(program->outputs.items[3].value, late);
    program_sweep(program);
    assert_int_equal(program->weights.count, 0);
    assert_ok(program_verify(program, "replacing", &error), &error);
}

static void nodes_are_inserted_where_asked(void **state) {
    (void)state;
    b->before = program->first;
    Value *first = build_unary(b, OP_NEG, x);
    b->before = sum->producer;
    Value *middle = build_unary(b, OP_NEG, x);
    assert_ptr_equal(program->first, first->producer);
    assert_ptr_equal(first->producer->next, product->producer);
    assert_ptr_equal(middle->producer->next, sum->producer);
    assert_ptr_equal(sum->producer->previous, middle->producer);
    program_remove(program, first->producer);
    program_remove(program, middle->producer);
    program_remove(program, sum->producer);
    assert_ptr_equal(program->first, product->producer);
    assert_ptr_equal(program->last, product->producer);
}

/* ---- printing ---- */

static void a_printed_program_holds_what_a_reader_needs(void **state) {
    (void)state;
    static const char *const parts[] = {
        "program TinyForCausalLM (model type tiny, float32)\n",
        "  length in [1, 4096]\n",
        "  batch in [2, inf)\n",
        "  x: %x : float32[length, 4]\n",
        "  %scale.weight : float32[4]\n",
        "  %mul = aten::mul.Tensor(%x, %scale.weight) : float32[length, 4]  # model.scale\n",
        "  %add = aten::add.Tensor(%mul, %x) : float32[length, 4]  # model.scale\n",
        "  logits: %add : float32[length, 4]\n",
        "aten::clamp(%add, None, 1)",
        "aten::clamp(%add, 0.5, None)",
        "aten::gelu(%add, 'tanh')",
        "aten::cat([%add, %x], 0) : float32[2*length, 4]",
        "aten::view(%add, [4*length]) : float32[4*length]",
        "aten::_to_copy(%add, float16) : float16[length, 4]",
        "aten::sum.dim_IntList(%add, [1], True)",
        "%split_with_sizes, %split_with_sizes_1 = aten::split_with_sizes(%add, [1, 3], 1) : "
        "float32[length, 1], float32[length, 3]",
    };
    Value *split[2];
    build_op(b, OP_CLAMP, (const Arg[]){arg_tensor(sum), arg_none(), arg_int(b, 1)}, 3);
    build_op(b, OP_CLAMP, (const Arg[]){arg_tensor(sum), arg_float(0.5), arg_none()}, 3);
    build_gelu(b, sum, true);
    build_cat(b, (Value *[]){sum, x}, 2, 0);
    build_view(b, sum, (const Sym *[]){build_const(b, -1)}, 1);
    build_to(b, sum, FERRY_F16);
    build_reduce(b, OP_SUM, sum, -1, true);
    build_split(b, sum, (int64_t[]){1, 3}, 2, 1, split);
    assert_ok(build_finish(b), &error);
    Buffer text = {0};
    program_print(&text, program);
    for (size_t i = 0; i < COUNT(parts); i++) assert_contains(buffer_string(&text), parts[i]);
    buffer_free(&text);
}

static void every_operator_is_found_by_its_name(void **state) {
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        Op found;
        char name[64];
        assert_true(op_lookup(op_name((Op)op), &found));
        assert_int_equal(found, op);
        op_short_name((Op)op, name, sizeof name);
        assert_true(*name && *name != '_' && !strchr(name, '.') && !strchr(name, ':'));
        const OpSchema *schema = op_schema((Op)op);
        assert_true(schema->arg_count > 0 && schema->arg_count <= OP_MAX_ARGS);
        for (uint32_t i = 0; i < schema->arg_count; i++) {
            assert_contains(op_schema_text((Op)op), schema->args[i].name);
        }
    }
    Op op;
    assert_false(op_lookup("aten::no_such_thing", &op));
    op_short_name(OP_SOFTMAX, (char[4]){0}, 4);
    assert_true(op_schema(OP_SPLIT)->returns_list);
    assert_true(op_schema(OP_LINEAR)->args[2].optional);
    assert_string_equal(op_schema(OP_ATTENTION)->args[5].name, "scale");
    assert_int_equal(op_schema(OP_ATTENTION)->args[5].type, ARG_FLOAT);
}

static void trees_print_as_treespecs(void **state) {
    (void)state;
    Arena *arena = &program->arena;
    const Tree *leaf = tree_leaf(arena);
    const Tree *dict = tree_mapping(arena, "builtins.dict", (const char *[]){"a", "b\"c"},
                                    (const Tree *[]){leaf, leaf}, 2);
    const Tree *tree = tree_tuple(arena, (const Tree *[]){tree_tuple(arena, NULL, 0), dict}, 2);
    assert_int_equal(tree_leaves(tree), 2);
    Buffer text = {0};
    tree_print(&text, tree);
    static const char leaf_text[] = "{\"type\": null, \"context\": null, \"children_spec\": []}";
    char wanted[1024];
    snprintf(wanted, sizeof wanted,
             "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": ["
             "{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": []}, "
             "{\"type\": \"builtins.dict\", \"context\": \"[\\\"a\\\", \\\"b\\\\\\\"c\\\"]\", "
             "\"children_spec\": [%s, %s]}]}]",
             leaf_text, leaf_text);
    assert_string_equal(buffer_string(&text), wanted);
    buffer_free(&text);
    assert_null(tree_tuple(arena, (const Tree *[]){NULL}, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_program, free_program)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_broken_invariant_is_named),
        TEST(dead_nodes_and_weights_are_swept),
        TEST(persistent_buffers_and_states_live_without_a_reader),
        TEST(a_state_is_what_it_was),
        TEST(a_node_lives_while_one_of_its_outputs_is_read),
        TEST(replacing_follows_chains),
        TEST(nodes_are_inserted_where_asked),
        TEST(a_printed_program_holds_what_a_reader_needs),
        TEST(every_operator_is_found_by_its_name),
        TEST(trees_print_as_treespecs),
    };
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
