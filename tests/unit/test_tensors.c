/* Collections of named tensors, and their files: safetensors and NumPy archives, good and bad. */
#include "check.h"
#include "base/buffer.h"
#include "base/file.h"
#include <ferry/tensor.h>

#include <signal.h>
#include <sys/resource.h>

/* A refused allocation is a test here, not the end. */
FERRY_API const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

static char directory[256];

static const char *in_directory(const char *name) {
    static char paths[2][512];
    static int turn;
    char *path = paths[turn ^= 1];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
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

/* ---- the collection ---- */

static void tensors_are_found_by_index_and_name(void **state) {
    (void)state;
    ferry_tensors *tensors = ferry_tensors_new();
    ferry_tensor *first, *tensor;
    ferry_error error;
    char name[16] = "first";
    assert_ok(ferry_tensors_add(tensors, name, FERRY_I32, 2, (int64_t[]){3, 5}, &first, &error),
              &error);
    strcpy(name, "changed");
    for (int i = 0; i < 15; i++) assert_int_equal(((int32_t *)first->data)[i], 0);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_ok(ferry_tensors_add(tensors, name, FERRY_F64, 0, NULL, &tensor, &error), &error);
        *(double *)tensor->data = i;
    }
    assert_int_equal(ferry_tensors_count(tensors), 201);
    assert_ptr_equal(ferry_tensors_at(tensors, 0), first);
    assert_ptr_equal(ferry_tensors_find(tensors, "first"), first);
    assert_int_equal(ferry_tensor_count(first), 15);
    assert_int_equal(ferry_tensor_bytes(first), 60);
    assert_int_equal(ferry_tensor_count(tensor), 1);
    assert_true(*(double *)ferry_tensors_find(tensors, "t17")->data == 17);
    assert_null(ferry_tensors_at(tensors, 201));
    assert_null(ferry_tensors_find(tensors, "changed"));
    ferry_tensors_free(tensors);
    ferry_tensors_free(NULL);
}

static void impossible_tensors_are_refused(void **state) {
    (void)state;
    ferry_tensors *tensors = ferry_tensors_new();
    ferry_error error;
    int64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_ok(ferry_tensors_add(tensors, "a", FERRY_U8, 8, shape, NULL, &error), &error);
    assert_fails(ferry_tensors_add(tensors, "a", FERRY_U8, 8, shape, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "there is a tensor of this name");
    assert_fails(ferry_tensors_add(tensors, "b", FERRY_U8, 9, shape, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "at most 8 dimensions");
    assert_fails(ferry_tensors_add(tensors, "b", FERRY_DTYPE_NONE, 1, shape, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "expected a dtype");
    shape[0] = -1;
    assert_fails(ferry_tensors_add(tensors, "b", FERRY_U8, 1, shape, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "sizes of 0 or more");
    shape[0] = shape[1] = (int64_t)1 << 32;
    assert_fails(ferry_tensors_add(tensors, "b", FERRY_U8, 2, shape, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "63 bits");
    shape[1] = 1 << 30;
    assert_fails(ferry_tensors_add(tensors, "b", FERRY_U8, 2, shape, NULL, &error),
                 FERRY_OUT_OF_MEMORY, &error, "out of memory");
    assert_string_equal(error.where, "b");
    assert_int_equal(ferry_tensors_count(tensors), 1);
    assert_null(ferry_tensors_find(tensors, "b"));
    ferry_tensors_free(tensors);
}

/* ---- files ---- */

static void fill(ferry_tensors *tensors, ferry_dtype dtype, const char *name, size_t rank,
                 const int64_t *shape) {
    ferry_tensor *tensor;
    ferry_error error;
    assert_ok(ferry_tensors_add(tensors, name, dtype, rank, shape, &tensor, &error), &error);
    unsigned char *bytes = tensor->data;
    for (size_t i = 0, size = ferry_tensor_bytes(tensor); i < size; i++) {
        bytes[i] = (unsigned char)(dtype == FERRY_BOOL ? i & 1 : i * 37 + 5);
    }
}

static void assert_same(const ferry_tensors *a, const ferry_tensors *b) {
    assert_int_equal(ferry_tensors_count(a), ferry_tensors_count(b));
    for (size_t i = 0; i < ferry_tensors_count(a); i++) {
        const ferry_tensor *left = ferry_tensors_at(a, i);
        const ferry_tensor *right = ferry_tensors_find(b, left->name);
        assert_non_null(right);
        assert_int_equal(left->dtype, right->dtype);
        assert_int_equal(left->rank, right->rank);
        assert_memory_equal(left->shape, right->shape, sizeof left->shape);
        assert_memory_equal(left->data, right->data, ferry_tensor_bytes(left));
    }
}

static void save_and_load(const ferry_tensors *tensors, const char *name) {
    ferry_tensors *loaded;
    ferry_error error;
    assert_ok(ferry_tensors_save(tensors, in_directory(name), &error), &error);
    assert_int_equal(scratch_count(directory), 1);
    assert_int_equal(rename(in_directory(name), in_directory("any name")), 0);
    assert_ok(ferry_tensors_load(in_directory("any name"), &loaded, &error), &error);
    assert_same(tensors, loaded);
    unlink(in_directory("any name"));
    ferry_tensors_free(loaded);
}

static void what_is_saved_is_loaded_again(void **state) {
    (void)state;
    static const ferry_dtype dtypes[] = {FERRY_BOOL, FERRY_U8,  FERRY_I8,  FERRY_I16, FERRY_I32,
                                         FERRY_I64,  FERRY_F16, FERRY_F32, FERRY_F64};
    ferry_tensors *tensors = ferry_tensors_new();
    save_and_load(tensors, "empty.npz");
    save_and_load(tensors, "empty.safetensors");
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        fill(tensors, dtypes[i], ferry_dtype_name(dtypes[i]), 3, (int64_t[]){2, 3, 4});
    }
    fill(tensors, FERRY_F32, "scalar", 0, NULL);
    fill(tensors, FERRY_F32, "vector", 1, (int64_t[]){7});
    fill(tensors, FERRY_F32, "a/b.npy c \xc3\xa9", 2, (int64_t[]){3, 0});
    fill(tensors, FERRY_F32, "", 8, (int64_t[]){1, 2, 1, 2, 1, 2, 1, 2});
    fill(tensors, FERRY_I64, "large", 2, (int64_t[]){300, 301});
    save_and_load(tensors, "all.npz");
    save_and_load(tensors, "all.safetensors");
    fill(tensors, FERRY_BF16, "bf16", 1, (int64_t[]){3});
    fill(tensors, FERRY_F8_E5M2, "f8", 1, (int64_t[]){3});
    save_and_load(tensors, "more.safetensors");
    ferry_error error;
    assert_fails(ferry_tensors_save(tensors, in_directory("more.npz"), &error), FERRY_UNSUPPORTED,
                 &error, "NumPy has no bfloat16");
    assert_string_equal(error.where, "bf16");
    assert_fails(ferry_tensors_save(tensors, in_directory("more.bin"), &error),
                 FERRY_INVALID_ARGUMENT, &error, ".safetensors or .npz");
    assert_int_equal(scratch_count(directory), 0);
    ferry_tensors_free(tensors);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    ferry_tensors *tensors = ferry_tensors_new();
    ferry_error error;
    struct rlimit limit;
    fill(tensors, FERRY_F32, "x", 1, (int64_t[]){1000000});
    assert_int_equal(file_write(in_directory("x.npz"), "old", 3, NULL), FERRY_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t old = limit.rlim_cur;
    for (rlim_t size = 1; size <= 1000000; size *= 10) {
        limit.rlim_cur = size;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        ferry_status npz = ferry_tensors_save(tensors, in_directory("x.npz"), &error);
        ferry_status safetensors = ferry_tensors_save(tensors, in_directory("x.safetensors"), NULL);
        limit.rlim_cur = old;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(npz, FERRY_IO);
        assert_int_equal(safetensors, FERRY_IO);
        assert_contains(error.message, "cannot write the file");
        assert_int_equal(scratch_count(directory), 1);
    }
    unlink(in_directory("x.npz"));
    ferry_tensors_free(tensors);
}

static void other_files_are_refused_with_what_was_expected(void **state) {
    (void)state;
    static const struct {
        const char *content;
        size_t size;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"", 0, FERRY_BAD_FORMAT, "expected a .safetensors or .npz file"},
        {"12345678", 8, FERRY_BAD_FORMAT, "expected a .safetensors or .npz file"},
        {"hello, this is text", 19, FERRY_BAD_FORMAT, "expected a .safetensors or .npz file"},
        {"\x93NUMPY\1\0\0\0", 10, FERRY_UNSUPPORTED, "a single .npy array"},
        {"\2\0\0\0\0\0\0\0{}", 10, FERRY_OK, ""},
        {"\3\0\0\0\0\0\0\0{}", 10, FERRY_BAD_FORMAT, "truncated"},
        {"PK\3\4", 4, FERRY_BAD_FORMAT, "truncated or damaged"},
        {"PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, FERRY_OK, ""},
        {"PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21, FERRY_BAD_FORMAT, "truncated"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ferry_tensors *loaded;
        ferry_error error = {0};
        const char *path = in_directory("file");
        assert_int_equal(file_write(path, cases[i].content, cases[i].size, NULL), FERRY_OK);
        assert_fails(ferry_tensors_load(path, &loaded, &error), cases[i].status, &error,
                     cases[i].message);
        assert_int_equal(loaded != NULL, cases[i].status == FERRY_OK);
        ferry_tensors_free(loaded);
        unlink(path);
    }
    ferry_tensors *loaded;
    ferry_error error;
    assert_int_equal(ferry_tensors_load(in_directory("none"), &loaded, &error), FERRY_NOT_FOUND);
    assert_null(loaded);
}

static void any_byte_but_zero_is_a_true_bool(void **state) {
    (void)state;
    static const char header[] =
        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}} ";
    Buffer file = {0};
    unsigned char length[8] = {sizeof header - 1};
    buffer_append(&file, length, 8);
    buffer_text(&file, header);
    buffer_append(&file, "\0\2\xff", 3);
    const char *path = in_directory("file");
    ferry_tensors *loaded;
    ferry_error error;
    assert_int_equal(file_write(path, file.bytes, file.length, NULL), FERRY_OK);
    assert_ok(ferry_tensors_load(path, &loaded, &error), &error);
    assert_memory_equal(ferry_tensors_at(loaded, 0)->data, "\0\1\1", 3);
    ferry_tensors_free(loaded);
    buffer_free(&file);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_by_index_and_name),
        cmocka_unit_test(impossible_tensors_are_refused),
        cmocka_unit_test(what_is_saved_is_loaded_again),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(other_files_are_refused_with_what_was_expected),
        cmocka_unit_test(any_byte_but_zero_is_a_true_bool),
    };
    return cmocka_run_group_tests_name("tensors", tests, make_scratch, remove_scratch);
}
