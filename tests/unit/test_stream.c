/* Weights streamed into a file: the bytes, whatever the number of threads; progress; failures. */
#include "check.h"
#include "base/dtype.h"
#include "graph/stream.h"

#include <fcntl.h>
#include <stdatomic.h>

enum { ROWS = 700, COLUMNS = 900, COUNTED = 4 };

static Arena arena;
static char directory[256], path[300];
static MappedFile source;
static StreamItem items[COUNTED];
static uint64_t total, file_size;

/* A file of float32, used as it is, converted, transposed, and in part. */
static int make_items(void **state) {
    (void)state;
    ferry_error error;
    const int64_t shape[] = {ROWS, COLUMNS}, turn[] = {1, 0};
    float *numbers = arena_alloc(&arena, ROWS * COLUMNS * sizeof *numbers);
    for (int i = 0; i < ROWS * COLUMNS; i++) numbers[i] = (float)(i % 1000);
    scratch_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/source", directory);
    assert_ok(file_write(path, numbers, ROWS * COLUMNS * sizeof *numbers, &error), &error);
    assert_ok(file_map(path, &arena, &source, &error), &error);
    const Recipe *whole = recipe_file(&arena, &source, 0, FERRY_F32, 2, shape);
    const Recipe *recipes[COUNTED] = {whole, recipe_cast(&arena, whole, FERRY_F16),
                                      recipe_permute(&arena, whole, turn),
                                      recipe_slice(&arena, whole, 1, 100, 207)};
    for (int i = 0; i < COUNTED; i++) {
        file_size = (file_size + 63) / 64 * 64;
        items[i] = (StreamItem){recipes[i], file_size};
        file_size += recipe_bytes_size(recipes[i]);
        total += recipe_bytes_size(recipes[i]);
    }
    snprintf(path, sizeof path, "%s/target", directory);
    return 0;
}

static int drop_items(void **state) {
    (void)state;
    file_unmap(&source);
    arena_free(&arena);
    scratch_remove(directory);
    return 0;
}

typedef struct Watch {
    atomic_int inside;
    int calls, stop_after;
    uint64_t done;
} Watch;

static bool watch(void *context, uint64_t done, uint64_t wanted) {
    Watch *seen = context;
    assert_int_equal(atomic_fetch_add(&seen->inside, 1), 0);
    assert_int_equal(wanted, total);
    assert_true(done > seen->done);
    seen->done = done;
    bool stop = ++seen->calls == seen->stop_after;
    atomic_fetch_sub(&seen->inside, 1);
    return stop;
}

static void the_bytes_are_those_of_the_recipes(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        ferry_error error;
        OutputFile file;
        Watch seen = {0};
        MappedFile written;
        Pool *pool = threads == 1 ? NULL : pool_new(threads);
        assert_ok(output_open(&file, path, file_size, &error), &error);
        assert_ok(stream_write(items, COUNTED, pool, &file, watch, &seen, &error), &error);
        assert_ok(output_commit(&file, &error), &error);
        pool_free(pool);
        assert_int_equal(seen.done, total);
        assert_ok(file_map(path, &arena, &written, &error), &error);
        assert_int_equal(written.size, file_size);
        for (int i = 0; i < COUNTED; i++) {
            uint64_t count = recipe_count(items[i].recipe);
            size_t bytes = (size_t)recipe_bytes_size(items[i].recipe);
            unsigned char *expected = malloc(bytes);
            recipe_read(items[i].recipe, 0, count, expected);
            assert_memory_equal(written.bytes + items[i].offset, expected, bytes);
            free(expected);
        }
        file_unmap(&written);
    }
}

static void nothing_is_a_valid_list(void **state) {
    (void)state;
    ferry_error error;
    OutputFile file;
    const int64_t shape[] = {0, 3};
    StreamItem empty = {recipe_bytes(&arena, "", FERRY_F32, 2, shape), 0};
    assert_ok(output_open(&file, path, 0, &error), &error);
    assert_ok(stream_write(NULL, 0, NULL, &file, NULL, NULL, &error), &error);
    assert_ok(stream_write(&empty, 1, NULL, &file, NULL, NULL, &error), &error);
    output_discard(&file);
}

static void progress_can_cancel(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        ferry_error error;
        OutputFile file;
        Watch seen = {.stop_after = 2};
        Pool *pool = pool_new(threads);
        assert_ok(output_open(&file, path, file_size, &error), &error);
        assert_fails(stream_write(items, COUNTED, pool, &file, watch, &seen, &error),
                     FERRY_CANCELLED, &error, "nothing was written");
        assert_int_equal(seen.calls, 2);
        output_discard(&file);
        pool_free(pool);
    }
}

static void the_first_failure_is_reported(void **state) {
    (void)state;
    ferry_error error;
    Watch seen = {0};
    OutputFile file = {.path = "target", .descriptor = open("/dev/full", O_WRONLY)};
    Pool *pool = pool_new(3);
    assert_fails(stream_write(items, COUNTED, pool, &file, watch, &seen, &error), FERRY_IO, &error,
                 "No space left");
    assert_int_equal(seen.calls, 0);
    assert_int_equal(stream_write(items, COUNTED, pool, &file, NULL, NULL, NULL), FERRY_IO);
    close(file.descriptor);
    pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_recipes),
        cmocka_unit_test(nothing_is_a_valid_list),
        cmocka_unit_test(progress_can_cancel),
        cmocka_unit_test(the_first_failure_is_reported),
    };
    return cmocka_run_group_tests_name("stream", tests, make_items, drop_items);
}
