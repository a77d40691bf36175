/* What the tests of the reference runtime share: a small program under test, its inputs, and what each
 * output must be. */
#ifndef UNIT_REFERENCE_H
#define UNIT_REFERENCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "graph/build.h"
#include "run/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIMS(...)                                                                                  \
    sizeof((const int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]) {                                \
        __VA_ARGS__                                                                                \
    }
#define NUMBERS(...)                                                                               \
    sizeof((const double[]){__VA_ARGS__}) / 8, (const double[]) {                                  \
        __VA_ARGS__                                                                                \
    }
#define RUN_OP(f, op, ...)                                                                         \
    build_op(&(f)->b, op, (const Arg[]){__VA_ARGS__},                                              \
             sizeof((const Arg[]){__VA_ARGS__}) / sizeof(Arg))

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

enum { MAX_EXPECTED = 24 };

/* A program under test, its inputs, and what each output must be. */
typedef struct Fixture {
    Program *program;
    Builder b;
    ferry_error error;
    ferry_tensors *inputs, *outputs;
    Pool *pool;
    uint32_t expected_count;
    struct {
        uint32_t count;
        double numbers[64];
        double tolerance;
    } expected[MAX_EXPECTED];
} Fixture;

static inline int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    f->program = program_new();
    f->b = build_start(f->program, &f->error);
    f->inputs = ferry_tensors_new();
    f->pool = pool_new(3);
    *state = f;
    return 0;
}

static inline int teardown(void **state) {
    Fixture *f = *state;
    ferry_tensors_free(f->inputs);
    ferry_tensors_free(f->outputs);
    program_free(f->program);
    pool_free(f->pool);
    free(f);
    return 0;
}

/* Add a tensor to the inputs of the run. */
static inline void feed(Fixture *f, const char *name, ferry_dtype dtype, size_t rank,
                        const int64_t *shape, size_t count, const double *numbers) {
    ferry_tensor *tensor;
    assert_int_equal(ferry_tensors_add(f->inputs, name, dtype, rank, shape, &tensor, NULL),
                     FERRY_OK);
    assert_int_equal(ferry_tensor_count(tensor), count);
    dtype_convert(FERRY_F64, numbers, dtype, tensor->data, count);
}

/* An input of constant sizes together with its numbers. */
static inline Value *given(Fixture *f, ferry_dtype dtype, size_t rank, const int64_t *shape,
                           size_t count, const double *numbers) {
    const Sym *sizes[FERRY_MAX_RANK];
    for (size_t d = 0; d < rank; d++) sizes[d] = build_const(&f->b, shape[d]);
    Value *value = build_input(&f->b, "input", dtype, (uint32_t)rank, sizes);
    Port *port = &f->program->inputs.items[f->program->inputs.count - 1];
    port->name = value->name;
    feed(f, value->name, dtype, rank, shape, count, numbers);
    return value;
}

static inline Value *scalar_input(Fixture *f, ferry_dtype dtype, double number) {
    return given(f, dtype, 0, NULL, 1, &number);
}

/* `value` becomes an output that must have these numbers. */
static inline void expect(Fixture *f, Value *value, double tolerance, size_t count,
                          const double *numbers) {
    if (!build_ok(&f->b)) fail_msg("%s: %s", f->error.where, f->error.message);
    assert_true(f->expected_count < MAX_EXPECTED && count <= 64);
    build_output(&f->b, arena_format(&f->program->arena, "output_%u", f->expected_count), value);
    f->expected[f->expected_count].count = (uint32_t)count;
    f->expected[f->expected_count].tolerance = tolerance;
    memcpy(f->expected[f->expected_count++].numbers, numbers, count * sizeof *numbers);
}

static inline ferry_status run(Fixture *f, Pool *pool) {
    ferry_tensors_free(f->outputs);
    f->outputs = NULL;
    assert_int_equal(build_finish(&f->b), FERRY_OK);
    assert_int_equal(program_verify(f->program, "the test", &f->error), FERRY_OK);
    return reference_run(f->program, f->inputs, pool, &f->outputs, &f->error);
}

static inline void compare(const Fixture *f) {
    for (uint32_t i = 0; i < f->expected_count; i++) {
        const ferry_tensor *found = ferry_tensors_at(f->outputs, i);
        assert_int_equal(ferry_tensor_count(found), f->expected[i].count);
        for (uint32_t j = 0; j < f->expected[i].count; j++) {
            double number, wanted = f->expected[i].numbers[j];
            dtype_convert(found->dtype,
                          (const char *)found->data + j * ferry_dtype_size(found->dtype), FERRY_F64,
                          &number, 1);
            if (isnan(wanted) ? isnan(number) : number == wanted) continue;
            if (fabs(number - wanted) <= f->expected[i].tolerance) continue;
            fail_msg("output %u, element %u: expected %.9g, found %.9g", i, j, wanted, number);
        }
    }
}

/* Run on one thread and on several. */
static inline void check(Fixture *f) {
    if (run(f, NULL) != FERRY_OK) fail_msg("%s: %s", f->error.where, f->error.message);
    compare(f);
    if (run(f, f->pool) != FERRY_OK) fail_msg("%s: %s", f->error.where, f->error.message);
    compare(f);
}

/* The run fails with this place and words in its message. */
static inline void check_fails(Fixture *f, ferry_status status, const char *where,
                               const char *words) {
    assert_int_equal(run(f, f->pool), status);
    assert_null(f->outputs);
    if (!strstr(f->error.where, where) || !strstr(f->error.message, words)) {
        fail_msg("unexpected error %s: %s", f->error.where, f->error.message);
    }
}

#endif
