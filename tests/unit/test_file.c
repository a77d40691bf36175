/* Files: mapping, atomic output, paths. */
#include "check.h"
#include "base/file.h"

#include <sys/stat.h>

static char directory[256];

static const char *in_directory(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int make_scratch(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

static void assert_content(const char *path, const char *text) {
    Arena arena = {0};
    MappedFile file;
    assert_int_equal(file_map(path, &arena, &file, NULL), FERRY_OK);
    assert_int_equal(file.size, strlen(text));
    if (*text) assert_memory_equal(file.bytes, text, file.size);
    file_unmap(&file);
    arena_free(&arena);
}

static void a_file_appears_only_when_it_is_committed(void **state) {
    (void)state;
    const char *path = in_directory("out");
    ferry_error error;
    OutputFile file;
    assert_ok(output_open(&file, path, 100, &error), &error);
    assert_ok(output_write(&file, 3, "def", 3, &error), &error);
    assert_ok(output_write(&file, 0, "abc", 3, &error), &error);
    assert_false(path_exists(path));
    assert_ok(output_commit(&file, &error), &error);
    output_discard(&file);
    assert_true(path_exists(path));
    assert_int_equal(scratch_count(directory), 1);

    assert_ok(file_write(path, "new", 3, &error), &error);
    assert_content(path, "new");
    assert_ok(file_write(path, "", 0, &error), &error);
    assert_content(path, "");
    assert_int_equal(scratch_count(directory), 1);
    unlink(path);
}

static void a_link_takes_the_place_of_a_file_and_gives_it_back(void **state) {
    (void)state;
    char path[512], target[512];
    snprintf(path, sizeof path, "%s", in_directory("link"));
    snprintf(target, sizeof target, "%s", in_directory("target"));
    ferry_error error;
    OutputFile file;
    assert_ok(file_write(target, "far", 3, &error), &error);
    assert_ok(file_write(path, "old", 3, &error), &error);
    assert_ok(output_symlink(&file, path, "target", &error), &error);
    assert_content(path, "old");
    assert_ok(output_commit(&file, &error), &error);
    assert_content(path, "far");
    assert_ok(file_write(path, "new", 3, &error), &error);
    assert_content(path, "new");
    assert_content(target, "far");
    assert_ok(output_symlink(&file, path, "target", &error), &error);
    output_discard(&file);
    assert_int_equal(scratch_count(directory), 2);
    unlink(path);
    unlink(target);
}

static void a_discarded_file_leaves_nothing_behind(void **state) {
    (void)state;
    const char *path = in_directory("out");
    ferry_error error;
    OutputFile file;
    assert_ok(file_write(path, "old", 3, &error), &error);
    assert_ok(output_open(&file, path, 0, &error), &error);
    assert_ok(output_write(&file, 0, "half", 4, &error), &error);
    output_discard(&file);
    output_discard(&file);
    assert_content(path, "old");
    assert_int_equal(scratch_count(directory), 1);
    unlink(path);
}

static void a_file_that_cannot_be_put_in_place_leaves_nothing(void **state) {
    (void)state;
    ferry_error error;
    const char *path = in_directory("taken");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_fails(file_write(path, "x", 1, &error), FERRY_IO, &error, "in its place");
    assert_int_equal(scratch_count(directory), 1);
    rmdir(path);
    assert_int_equal(file_write(in_directory("absent/file"), "x", 1, &error), FERRY_NOT_FOUND);
    assert_contains(error.where, "absent/file");
}

static void only_regular_files_are_mapped(void **state) {
    (void)state;
    Arena arena = {0};
    ferry_error error;
    MappedFile file;
    assert_fails(file_map(directory, &arena, &file, &error), FERRY_BAD_FORMAT, &error,
                 "a directory");
    assert_fails(file_map("/dev/zero", &arena, &file, &error), FERRY_BAD_FORMAT, &error,
                 "a special file");
    const char *fifo = in_directory("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(file_map(fifo, &arena, &file, &error), FERRY_BAD_FORMAT, &error, "a special file");
    unlink(fifo);
    assert_int_equal(file_map(in_directory("none"), &arena, &file, &error), FERRY_NOT_FOUND);
    arena_free(&arena);
}

static void forgotten_pages_read_the_same_again(void **state) {
    (void)state;
    enum { SIZE = 40000 };
    Arena arena = {0};
    MappedFile file;
    unsigned char *bytes = arena_alloc(&arena, SIZE);
    for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 7);
    const char *path = in_directory("pages");
    assert_int_equal(file_write(path, bytes, SIZE, NULL), FERRY_OK);
    assert_int_equal(file_map(path, &arena, &file, NULL), FERRY_OK);
    assert_memory_equal(file.bytes, bytes, SIZE);
    file_forget(&file, 100, 30000);
    file_forget(&file, 0, SIZE);
    file_forget(&file, 5, 0);
    assert_memory_equal(file.bytes, bytes, SIZE);
    file_unmap(&file);
    unlink(path);
    arena_free(&arena);
}

static void a_contained_path_cannot_leave_its_directory(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool contained;
    } cases[] = {
        {"model.bin", true}, {"a/b/c", true},   {"..a", true},   {"a..", true},   {"...", true},
        {"a/.b", true},      {"", false},       {"/etc", false}, {".", false},    {"..", false},
        {"../x", false},     {"a/../b", false}, {"a/..", false}, {"a//b", false}, {"a/", false},
        {"a/./b", false},    {"./a", false},    {"/", false},    {"//", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (path_is_contained(cases[i].name) != cases[i].contained) fail_msg("%s", cases[i].name);
    }
    Arena arena = {0};
    assert_string_equal(path_join(&arena, "dir//", "name"), "dir/name");
    assert_string_equal(path_join(&arena, "/", "name"), "//name");
    assert_string_equal(path_base("a/b"), "b");
    assert_string_equal(path_base("b"), "b");
    arena_free(&arena);
}

static void directories_are_made_with_their_parents(void **state) {
    (void)state;
    bool created;
    ferry_error error;
    assert_ok(path_make_directory(in_directory("x/y/"), &created, &error), &error);
    assert_true(created);
    assert_true(path_is_directory(in_directory("x/y")));
    assert_ok(path_make_directory(in_directory("x/y"), &created, &error), &error);
    assert_false(created);
    assert_ok(file_write(in_directory("x/y/file"), "", 0, &error), &error);
    assert_int_not_equal(path_make_directory(in_directory("x/y/file"), &created, &error), FERRY_OK);
    assert_int_not_equal(path_make_directory(in_directory("x/y/file/z"), &created, &error),
                         FERRY_OK);
    unlink(in_directory("x/y/file"));
    rmdir(in_directory("x/y"));
    rmdir(in_directory("x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_only_when_it_is_committed),
        cmocka_unit_test(a_link_takes_the_place_of_a_file_and_gives_it_back),
        cmocka_unit_test(a_discarded_file_leaves_nothing_behind),
        cmocka_unit_test(a_file_that_cannot_be_put_in_place_leaves_nothing),
        cmocka_unit_test(only_regular_files_are_mapped),
        cmocka_unit_test(forgotten_pages_read_the_same_again),
        cmocka_unit_test(a_contained_path_cannot_leave_its_directory),
        cmocka_unit_test(directories_are_made_with_their_parents),
    };
    return cmocka_run_group_tests_name("file", tests, make_scratch, remove_scratch);
}
