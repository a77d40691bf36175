/* The ExecuTorch writer from inside: bounds of sizes, the memory plan, and files that are damaged. */
#include "check.h"
#include "graph/build.h"
#include "target/executorch/bounds.h"
#include "target/executorch/executorch.h"
#include "target/executorch/kernels.h"

static ferry_error error;
static char directory[256], path[512];

static int make_scratch(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/model.pte", directory);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

/* ---- bounds ---- */

static int64_t upper_of(Program *program, const char *text) {
    Arena arena = {0};
    Bounds bounds;
    const Sym *sym;
    assert_ok(sym_parse(&program->symbols, text, false, &sym, &error), &error);
    assert_true(bounds_init(&bounds, program, &arena, (Floors){0}));
    int64_t upper = bounds_upper(&bounds, sym);
    map_free(&bounds.known);
    arena_free(&arena);
    return upper;
}

static void an_expression_is_bounded_by_its_symbols(void **state) {
    (void)state;
    Program *program = program_new();
    sym_symbol(&program->symbols, "s", 1, 10);
    sym_symbol(&program->symbols, "t", 2, 7);
    assert_int_equal(upper_of(program, "s"), 10);
    assert_int_equal(upper_of(program, "2*s + 3*t - 4"), 37);
    assert_int_equal(upper_of(program, "s - t"), 8);
    assert_int_equal(upper_of(program, "s*t"), 70);
    assert_int_equal(upper_of(program, "((s + 5)//t)"), 7);
    assert_int_equal(upper_of(program, "Mod(s, 4)"), 3);
    assert_int_equal(upper_of(program, "Min(s, t)"), 7);
    assert_int_equal(upper_of(program, "Max(s, t)"), 10);
    assert_int_equal(upper_of(program, "t - s - 20"), 0);
    program_free(program);
}

static Value *input(Builder *b, const char *name, const Sym *first, int64_t second) {
    const Sym *shape[] = {first, build_const(b, second)};
    return build_input(b, name, FERRY_F32, 2, shape);
}

static void a_size_without_a_bound_gets_one(void **state) {
    (void)state;
    const char *caps;
    Program *program = program_new();
    Builder b = build_start(program, &error);
    const Sym *batch = sym_symbol(&program->symbols, "batch", 1, SYM_UNBOUNDED);
    const Sym *known = sym_symbol(&program->symbols, "known", 1, 3);
    Value *x = input(&b, "x", batch, 4), *y = input(&b, "y", known, 4);
    build_output(&b, "double", build_add(&b, x, x));
    build_output(&b, "square", build_mul(&b, y, y));
    assert_ok(build_finish(&b), &error);
    assert_ok(executorch_bound(program, &caps, &error), &error);
    assert_string_equal(caps, "batch <= 1024");
    assert_int_equal(batch->upper, 1024);
    assert_int_equal(known->upper, 3);
    program_free(program);
}

static void batches_shrink_before_other_sizes(void **state) {
    (void)state;
    Floors floors = {1024, 1024};
    while (floors.first > 8) {
        assert_true(bounds_shrink(&floors));
        assert_int_equal(floors.other, 1024);
    }
    while (floors.other > 64) {
        assert_true(bounds_shrink(&floors));
        assert_int_equal(floors.first, 8);
    }
    while (bounds_shrink(&floors)) continue;
    assert_true(floors.first == 4 && floors.other == 4);
}

static void no_bound_at_all_is_an_error(void **state) {
    (void)state;
    ExecutorchSizes sizes;
    const ExecutorchOptions options = {0};
    Program *program = program_new();
    OutputFile file;
    Builder b = build_start(program, &error);
    const Sym *s = sym_symbol(&program->symbols, "s", 1, INT32_MAX - 1);
    const Sym *shape[] = {s, s, s};
    Value *x = build_input(&b, "x", FERRY_F32, 3, shape);
    build_output(&b, "y", build_add(&b, x, x));
    assert_ok(build_finish(&b), &error);
    assert_ok(output_open(&file, path, 0, &error), &error);
    assert_fails(executorch_write(program, &options, &file, &sizes, &error), FERRY_UNSUPPORTED,
                 &error, "bound");
    output_discard(&file);
    program_free(program);
}

/* ---- the file ---- */

/* A chain of additions of one size; the bytes of the file are in `arena`. */
static MappedFile write_chain(int length, ExecutorchSizes *sizes, Arena *arena) {
    const ExecutorchOptions options = {0};
    Program *program = program_new();
    OutputFile file;
    MappedFile mapped;
    Builder b = build_start(program, &error);
    Value *x = input(&b, "x", build_const(&b, 8), 32);
    for (int i = 0; i < length; i++) x = build_add(&b, x, x);
    build_output(&b, "y", x);
    assert_ok(build_finish(&b), &error);
    assert_ok(output_open(&file, path, 0, &error), &error);
    assert_ok(executorch_write(program, &options, &file, sizes, &error), &error);
    assert_ok(output_commit(&file, &error), &error);
    assert_ok(file_map(path, arena, &mapped, &error), &error);
    program_free(program);
    return mapped;
}

static void memory_is_used_again(void **state) {
    (void)state;
    Arena arena = {0};
    ExecutorchSizes sizes;
    MappedFile file = write_chain(20, &sizes, &arena);
    assert_int_equal(sizes.instructions, 20);
    /* two tensors of 8 * 32 floats, and slack */
    assert_int_equal(sizes.planned_bytes, 2 * 1024 + 64);
    file_unmap(&file);
    arena_free(&arena);
}

static void a_written_file_passes_and_a_damaged_one_does_not(void **state) {
    (void)state;
    Arena arena = {0};
    ExecutorchSizes sizes;
    MappedFile file = write_chain(3, &sizes, &arena);
    assert_ok(executorch_verify(path, file.bytes, file.size, file.size, &error), &error);
    assert_fails(executorch_verify(path, file.bytes, 50, 50, &error), FERRY_BAD_FORMAT, &error,
                 "header");
    assert_fails(executorch_verify(path, file.bytes, 200, 200, &error), FERRY_BAD_FORMAT, &error,
                 "behind the file");
    unsigned char *copy = arena_copy(&arena, file.bytes, file.size);
    for (size_t at = 0; at < file.size; at++) {
        copy[at] ^= 0x55;
        executorch_verify(path, copy, file.size, file.size, &error);
        copy[at] ^= 0x55;
    }
    memcpy(memmem(copy, file.size, "aten::add", 9), "aten::odd", 9);
    assert_fails(executorch_verify(path, copy, file.size, file.size, &error), FERRY_BAD_FORMAT,
                 &error, "a kernel that the runtime does not have");
    file_unmap(&file);
    arena_free(&arena);
}

static void kernels_are_found_by_name(void **state) {
    (void)state;
    assert_true(kernel_exists("aten::add.out"));
    assert_true(kernel_exists("executorch_prim::et_view.default"));
    assert_true(kernel_exists("aten::_adaptive_avg_pool2d.out"));
    assert_true(kernel_exists("executorch_prim::trunc.Scalar"));
    assert_false(kernel_exists("aten::add"));
    assert_false(kernel_exists("aten::sort.values"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_is_bounded_by_its_symbols),
        cmocka_unit_test(a_size_without_a_bound_gets_one),
        cmocka_unit_test(batches_shrink_before_other_sizes),
        cmocka_unit_test(no_bound_at_all_is_an_error),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(a_written_file_passes_and_a_damaged_one_does_not),
        cmocka_unit_test(kernels_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
