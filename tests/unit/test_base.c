/* The foundation: memory, text, tables, threads. */
#include "check.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/vec.h"

#include <stdatomic.h>

/* ---- memory, text, tables ---- */

static void arena_memory_is_zeroed_aligned_and_separate(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 65536, 65537, 1 << 20};
    Arena arena = {0};
    unsigned char *blocks[COUNT(sizes) * 2];
    for (size_t i = 0; i < COUNT(blocks); i++) {
        size_t size = sizes[i % COUNT(sizes)];
        blocks[i] = arena_alloc(&arena, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < size; j++) assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < COUNT(blocks); i++) {
        for (size_t j = 0; j < sizes[i % COUNT(sizes)]; j++) assert_int_equal(blocks[i][j], i + 1);
    }
    arena_free(&arena);
}

static void arena_refuses_sizes_that_overflow_and_remembers(void **state) {
    (void)state;
    Arena arena = {0};
    assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
    assert_true(arena.failed);
    arena.failed = false;
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    assert_true(arena.failed);
    assert_string_equal(arena_string_n(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_format(&arena, "%d-%s", 7, "x"), "7-x");
    assert_true(arena.failed);
    arena_free(&arena);
}

static void buffer_keeps_what_is_appended(void **state) {
    (void)state;
    Buffer buffer = {0};
    assert_string_equal(buffer_string(&buffer), "");
    for (int i = 0; i < 1000; i++) buffer_format(&buffer, "%03d,", i);
    buffer_text(&buffer, "end");
    buffer_append(&buffer, "\0z", 2);
    assert_int_equal(buffer.length, 4005);
    assert_memory_equal(buffer.bytes + 4 * 999, "999,end\0z", 10);
    assert_false(buffer.failed);
    buffer_append(&buffer, "", SIZE_MAX - 16);
    assert_true(buffer.failed);
    assert_int_equal(buffer.length, 4005);
    buffer_free(&buffer);
}

static void map_finds_every_key_and_no_other(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    static char names[KEYS][16];
    Map map = {0};
    assert_null(map_find(&map, "absent"));
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "key %d", i);
        map_put(&map, names[i], names[i]);
    }
    map_put(&map, "key 17", names[0]);
    assert_int_equal(map.count, KEYS);
    assert_ptr_equal(map_find(&map, "key 17"), names[0]);
    for (int i = 18; i < KEYS; i++) assert_ptr_equal(map_find(&map, names[i]), names[i]);
    assert_null(map_find(&map, "key 5000"));
    assert_null(map_get(&map, "key 17", 4));
    assert_false(map.failed);
    map_free(&map);
}

static void vec_grows(void **state) {
    (void)state;
    VEC(int) numbers = {0};
    for (int i = 0; i < 1000; i++) VEC_PUSH(&numbers, i * i);
    assert_int_equal(numbers.count, 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(numbers.items[i], i * i);
    VEC_FREE(&numbers);
    assert_int_equal(numbers.count, 0);
}

static void every_status_has_a_name_a_meaning_and_an_exit_status(void **state) {
    (void)state;
    assert_string_equal(ferry_status_name(FERRY_BAD_FORMAT), "BAD_FORMAT");
    assert_int_equal(ferry_status_exit(FERRY_OK), 0);
    assert_int_equal(ferry_status_exit(FERRY_BAD_FORMAT), 5);
    assert_string_equal(ferry_status_name((ferry_status)99), "UNKNOWN");
    assert_int_equal(ferry_status_exit((ferry_status)-1), 70);
    ferry_error error;
    assert_int_equal(error_set(&error, FERRY_IO, NULL, "%2000d", 1), FERRY_IO);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_string_equal(error.where, "");
    assert_int_equal(error_set(NULL, FERRY_IO, "x", "y"), FERRY_IO);
}

/* ---- threads ---- */

enum { ITEMS = 10000 };

static void count_item(void *context, size_t i) {
    atomic_fetch_add(&((atomic_int *)context)[i], 1);
}

static void a_pool_runs_every_item_exactly_once(void **state) {
    (void)state;
    static atomic_int counts[ITEMS];
    for (unsigned threads = 0; threads <= 5; threads++) {
        Pool *pool = pool_new(threads);
        assert_non_null(pool);
        if (threads) assert_int_equal(pool_threads(pool), threads);
        for (size_t count = 0; count <= ITEMS; count += count < 3 ? 1 : ITEMS - 3) {
            memset(counts, 0, sizeof counts);
            pool_run(pool, count, count_item, counts);
            for (size_t i = 0; i < ITEMS; i++) assert_int_equal(counts[i], i < count);
        }
        pool_free(pool);
    }
    memset(counts, 0, sizeof counts);
    pool_run(NULL, 3, count_item, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2], 3);
    assert_int_equal(pool_threads(NULL), 1);
    pool_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_separate),
        cmocka_unit_test(arena_refuses_sizes_that_overflow_and_remembers),
        cmocka_unit_test(buffer_keeps_what_is_appended),
        cmocka_unit_test(map_finds_every_key_and_no_other),
        cmocka_unit_test(vec_grows),
        cmocka_unit_test(every_status_has_a_name_a_meaning_and_an_exit_status),
        cmocka_unit_test(a_pool_runs_every_item_exactly_once),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
