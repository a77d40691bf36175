/* The ONNX Runtime adapter. Loading and searching are tested with stand-ins; the rest needs a real
 * library, named by FERRY_TEST_ONNXRUNTIME (a file, or a directory that holds it), and is skipped
 * without one. */
#define _GNU_SOURCE
#include "run/onnxruntime/ort.h"
#include "base/file.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* Some releases of ONNX Runtime keep an object or two for the life of the process. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libonnxruntime.so\n";
}

/* sum = Add(a, b) for a, b: float32 [n, 3]; IR version 9, opset 19. */
static const unsigned char add_model[] = {
    0x08, 0x09, 0x3a, 0x59, 0x0a, 0x10, 0x0a, 0x01, 0x61, 0x0a, 0x01, 0x62, 0x12, 0x03, 0x73,
    0x75, 0x6d, 0x22, 0x03, 0x41, 0x64, 0x64, 0x12, 0x01, 0x67, 0x5a, 0x14, 0x0a, 0x01, 0x61,
    0x12, 0x0f, 0x0a, 0x0d, 0x08, 0x01, 0x12, 0x09, 0x0a, 0x03, 0x12, 0x01, 0x6e, 0x0a, 0x02,
    0x08, 0x03, 0x5a, 0x14, 0x0a, 0x01, 0x62, 0x12, 0x0f, 0x0a, 0x0d, 0x08, 0x01, 0x12, 0x09,
    0x0a, 0x03, 0x12, 0x01, 0x6e, 0x0a, 0x02, 0x08, 0x03, 0x62, 0x16, 0x0a, 0x03, 0x73, 0x75,
    0x6d, 0x12, 0x0f, 0x0a, 0x0d, 0x08, 0x01, 0x12, 0x09, 0x0a, 0x03, 0x12, 0x01, 0x6e, 0x0a,
    0x02, 0x08, 0x03, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x13,
};

/* y = Identity(x), both of any shape and of the element type in the two bytes named below. */
static const unsigned char identity_model[] = {
    0x08, 0x09, 0x3a, 0x2b, 0x0a, 0x10, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x79, 0x22, 0x08,
    0x49, 0x64, 0x65, 0x6e, 0x74, 0x69, 0x74, 0x79, 0x12, 0x01, 0x67, 0x5a, 0x09, 0x0a,
    0x01, 0x78, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x62, 0x09, 0x0a, 0x01, 0x79, 0x12,
    0x04, 0x0a, 0x02, 0x08, 0x01, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x13,
};

enum { INPUT_TYPE_BYTE = 35, OUTPUT_TYPE_BYTE = 46 };

static char directory[] = "/tmp/ferry-test-XXXXXX";
static Arena arena;
static OnnxRuntime *runtime; /* NULL: no real library */

static const char *write_file(const char *name, const void *bytes, size_t size) {
    const char *path = path_join(&arena, directory, name);
    char *slash = strrchr(path, '/');
    const char *parent = arena_string_n(&arena, path, (size_t)(slash - path));
    assert_int_equal(path_make_directory(parent, NULL, NULL), FERRY_OK);
    assert_int_equal(file_write(path, bytes, size, NULL), FERRY_OK);
    return path;
}

static void assert_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void assert_load_fails(const char *library, ferry_status status, const char *message) {
    OnnxRuntime *loaded = NULL;
    ferry_error error = {0};
    assert_int_equal(onnxruntime_load(library, &loaded, &error), status);
    assert_null(loaded);
    assert_int_equal(error.status, status);
    assert_contains(error.message, message);
    if (library) assert_string_equal(error.where, library);
}

/* ---- without a library ---- */

static void test_path_missing(void **state) {
    (void)state;
    const char *path = path_join(&arena, directory, "nowhere/libonnxruntime.so");
    assert_load_fails(path, FERRY_RUNTIME_MISSING, "does not exist");
    assert_load_fails(directory, FERRY_RUNTIME_MISSING, "holds no libonnxruntime.so");
}

static void test_text_file(void **state) {
    (void)state;
    const char *path = write_file("notes.txt", "not a library\n", 14);
    assert_load_fails(path, FERRY_BAD_FORMAT, "cannot load the library");
}

static void test_other_library(void **state) {
    (void)state;
    Dl_info info;
    assert_true(dladdr((void *)cmocka_set_message_output, &info));
    assert_load_fails(info.dli_fname, FERRY_BAD_FORMAT, "no OrtGetApiBase");
}

static void test_versions(void **state) {
    (void)state;
    assert_true(ort_version_accepted("1.17.0"));
    assert_true(ort_version_accepted("1.32.0-dev"));
    assert_true(ort_version_accepted("2.0"));
    assert_false(ort_version_accepted("1.16.3"));
    assert_false(ort_version_accepted("0.99.0"));
    assert_false(ort_version_accepted("unknown"));
}

static void test_environment_names_library(void **state) {
    (void)state;
    const char *path = write_file("named/text.so", "text", 4);
    setenv("FERRY_ONNXRUNTIME", path, 1);
    assert_load_fails(NULL, FERRY_BAD_FORMAT, "FERRY_ONNXRUNTIME: cannot load the library");
    setenv("FERRY_ONNXRUNTIME", "/nonexistent/ort", 1);
    assert_load_fails(NULL, FERRY_RUNTIME_MISSING, "FERRY_ONNXRUNTIME: ");
    unsetenv("FERRY_ONNXRUNTIME");
}

static bool found(const LibrarySearch *search, const char *name) {
    for (size_t i = 0; i < search->files.count; i++) {
        if (strstr(search->files.items[i], name)) return true;
    }
    return false;
}

/* Points the variables that steer the search into `directory`, or back. */
static void redirect_search(bool redirect) {
    static const char *path, *home;
    static char *current;
    if (redirect) {
        path = arena_string(&arena, getenv("PATH"));
        home = arena_string(&arena, getenv("HOME") ? getenv("HOME") : "");
        current = getcwd(NULL, 0);
        setenv("VIRTUAL_ENV", path_join(&arena, directory, "venv"), 1);
        setenv("PATH", path_join(&arena, directory, "prefix/bin"), 1);
        setenv("HOME", path_join(&arena, directory, "home"), 1);
        assert_int_equal(chdir(path_join(&arena, directory, "project/deep")), 0);
    } else {
        unsetenv("VIRTUAL_ENV");
        setenv("PATH", path, 1);
        setenv("HOME", home, 1);
        assert_int_equal(chdir(current), 0);
        free(current);
    }
}

#if defined(__aarch64__)
#define NODE_LIBRARY "node_modules/onnxruntime-node/bin/napi-v6/linux/arm64/libonnxruntime.so.1"
#else
#define NODE_LIBRARY "node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"
#endif
#define WHEEL_LIBRARY "site-packages/onnxruntime/capi/libonnxruntime.so.1"

static void test_search_finds_packages(void **state) {
    (void)state;
    static const char *const libraries[] = {
        "venv/lib/python3.12/" WHEEL_LIBRARY ".30.0",
        "prefix/lib/python3.11/" WHEEL_LIBRARY ".9.0",
        "prefix/lib/python3.11/" WHEEL_LIBRARY ".20.0",
        "base/lib/python3.10/" WHEEL_LIBRARY,
        "home/.local/lib/python3.9/" WHEEL_LIBRARY,
        "project/" NODE_LIBRARY,
    };
    enum { LIBRARY_COUNT = sizeof libraries / sizeof *libraries };
    for (size_t i = 0; i < LIBRARY_COUNT; i++) write_file(libraries[i], "", 0);
    write_file("project/deep/file", "", 0);
    write_file("prefix/lib/python3.11/site-packages/onnxruntime/capi/other.so", "", 0);
    assert_int_equal(chmod(write_file("prefix/bin/python3", "#!/bin/sh\n", 10), 0755), 0);
    const char *cfg = arena_format(&arena, "version = 3\nhome = %s/base/bin\n", directory);
    write_file("prefix/pyvenv.cfg", cfg, strlen(cfg));
    redirect_search(true);
    LibrarySearch search = {.kind = &ort_library};
    search_packages(&search);
    redirect_search(false);
    assert_false(search.arena.failed);
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        if (!found(&search, libraries[i])) fail_msg("%s was not found", libraries[i]);
    }
    assert_false(found(&search, "other.so"));
    assert_contains(search.files.items[0], "venv/");
    assert_contains(search.files.items[1], ".20.0"); /* the newer of the two comes first */
    search_free(&search);
}

static void test_search_reports_places(void **state) {
    (void)state;
    OnnxRuntime *loaded = NULL;
    ferry_error error = {0};
    redirect_search(true);
    ferry_status status = onnxruntime_load(NULL, &loaded, &error);
    redirect_search(false);
    onnxruntime_unload(loaded);
    if (status == FERRY_OK) skip(); /* the system has one */
    assert_int_equal(status, FERRY_RUNTIME_MISSING);
    assert_contains(error.message, "pip install onnxruntime");
    assert_contains(error.message, "FERRY_ONNXRUNTIME");
    assert_contains(error.message, "the system's library path");
    assert_contains(error.message, "venv/lib/python3*");
    assert_contains(error.message, "node_modules/onnxruntime-node");
    assert_contains(error.message, "not usable: ");
}

/* ---- with a library ---- */

static OnnxSession *open_model(const void *bytes, size_t size) {
    const char *path = write_file("model.onnx", bytes, size);
    OnnxSession *session = NULL;
    ferry_error error = {0};
    ferry_status status = onnxruntime_open(runtime, path, 1, &session, &error);
    if (status != FERRY_OK) fail_msg("%s", error.message);
    return session;
}

static void add_floats(ferry_tensors *tensors, const char *name, int64_t rows, float first) {
    ferry_tensor *tensor = NULL;
    assert_int_equal(
        ferry_tensors_add(tensors, name, FERRY_F32, 2, (int64_t[]){rows, 3}, &tensor, NULL),
        FERRY_OK);
    for (int64_t i = 0; i < rows * 3; i++) ((float *)tensor->data)[i] = first + (float)i;
}

static void test_names(void **state) {
    (void)state;
    if (!runtime) skip();
    assert_true(ort_version_accepted(onnxruntime_version(runtime)));
    assert_true(path_exists(onnxruntime_path(runtime)));
    OnnxSession *session = open_model(add_model, sizeof add_model);
    assert_int_equal(onnxruntime_input_count(session), 2);
    assert_string_equal(onnxruntime_input_name(session, 0), "a");
    assert_string_equal(onnxruntime_input_name(session, 1), "b");
    assert_int_equal(onnxruntime_output_count(session), 1);
    assert_string_equal(onnxruntime_output_name(session, 0), "sum");
    assert_null(onnxruntime_output_name(session, 1));
    onnxruntime_close(session);
}

static void test_two_sizes(void **state) {
    (void)state;
    if (!runtime) skip();
    OnnxSession *session = open_model(add_model, sizeof add_model);
    for (int64_t rows = 0; rows < 5; rows += 2) {
        ferry_tensors *inputs = ferry_tensors_new(), *outputs = NULL;
        add_floats(inputs, "b", rows, 100.0f);
        add_floats(inputs, "unused", 1, 0.0f);
        add_floats(inputs, "a", rows, 1.0f);
        assert_int_equal(onnxruntime_run(session, inputs, &outputs, NULL), FERRY_OK);
        const ferry_tensor *sum = ferry_tensors_find(outputs, "sum");
        assert_int_equal(sum->rank, 2);
        assert_int_equal(sum->shape[0], rows);
        assert_int_equal(sum->shape[1], 3);
        for (int64_t i = 0; i < rows * 3; i++) {
            assert_true(((const float *)sum->data)[i] == 101.0f + 2.0f * (float)i);
        }
        ferry_tensors_free(inputs);
        ferry_tensors_free(outputs);
    }
    onnxruntime_close(session);
}

static void assert_run_fails(OnnxSession *session, const ferry_tensors *inputs, ferry_status status,
                             const char *message) {
    ferry_tensors *outputs = NULL;
    ferry_error error = {0};
    assert_int_equal(onnxruntime_run(session, inputs, &outputs, &error), status);
    assert_null(outputs);
    assert_contains(error.message, message);
}

static void test_bad_inputs(void **state) {
    (void)state;
    if (!runtime) skip();
    OnnxSession *session = open_model(add_model, sizeof add_model);
    ferry_tensors *inputs = ferry_tensors_new();
    assert_run_fails(session, inputs, FERRY_INVALID_ARGUMENT,
                     "\"a\" was not given; given: nothing");
    add_floats(inputs, "a", 2, 0.0f);
    assert_run_fails(session, inputs, FERRY_INVALID_ARGUMENT, "\"b\" was not given; given: a");
    add_floats(inputs, "b", 3, 0.0f);
    assert_run_fails(session, inputs, FERRY_RUNTIME_FAILED, "could not run the model: ");
    ferry_tensors_free(inputs);
    inputs = ferry_tensors_new();
    ferry_tensors_add(inputs, "a", FERRY_I64, 2, (int64_t[]){1, 3}, NULL, NULL);
    assert_run_fails(session, inputs, FERRY_INVALID_ARGUMENT,
                     "\"a\" is float32, the tensor given is int64");
    ferry_tensors_free(inputs);
    onnxruntime_close(session);
}

static void run_identity(ferry_dtype dtype, size_t rank, const int64_t *shape) {
    unsigned char model[sizeof identity_model];
    memcpy(model, identity_model, sizeof model);
    model[INPUT_TYPE_BYTE] = model[OUTPUT_TYPE_BYTE] = (unsigned char)ort_element_type(dtype);
    OnnxSession *session = open_model(model, sizeof model);
    ferry_tensors *inputs = ferry_tensors_new(), *outputs = NULL;
    ferry_tensor *x = NULL;
    assert_int_equal(ferry_tensors_add(inputs, "x", dtype, rank, shape, &x, NULL), FERRY_OK);
    for (size_t i = 0; i < ferry_tensor_bytes(x); i++) ((unsigned char *)x->data)[i] = i % 2;
    assert_int_equal(onnxruntime_run(session, inputs, &outputs, NULL), FERRY_OK);
    const ferry_tensor *y = ferry_tensors_find(outputs, "y");
    assert_int_equal(y->dtype, dtype);
    assert_int_equal(y->rank, rank);
    assert_memory_equal(y->shape, shape, rank * sizeof *shape);
    assert_memory_equal(y->data, x->data, ferry_tensor_bytes(x));
    ferry_tensors_free(inputs);
    ferry_tensors_free(outputs);
    onnxruntime_close(session);
}

static void test_dtypes_and_ranks(void **state) {
    (void)state;
    if (!runtime) skip();
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        assert_int_equal(ort_dtype(ort_element_type((ferry_dtype)d)), d);
        run_identity((ferry_dtype)d, 2, (int64_t[]){2, 3});
    }
    run_identity(FERRY_F32, 0, (int64_t[]){0});
    run_identity(FERRY_I64, 3, (int64_t[]){2, 0, 3});
    run_identity(FERRY_F32, FERRY_MAX_RANK, (int64_t[]){1, 2, 1, 2, 1, 2, 1, 2});
}

static void assert_open_fails(const char *path, ferry_status status, const char *message) {
    OnnxSession *session = NULL;
    ferry_error error = {0};
    assert_int_equal(onnxruntime_open(runtime, path, 0, &session, &error), status);
    assert_null(session);
    assert_contains(error.message, message);
}

static void test_bad_models(void **state) {
    (void)state;
    if (!runtime) skip();
    unsigned char model[sizeof identity_model];
    memcpy(model, identity_model, sizeof model);
    model[INPUT_TYPE_BYTE] = model[OUTPUT_TYPE_BYTE] = 12; /* uint32 */
    assert_open_fails(write_file("bad.onnx", "not a model", 11), FERRY_RUNTIME_FAILED,
                      "Protobuf parsing failed");
    assert_open_fails(write_file("u32.onnx", model, sizeof model), FERRY_UNSUPPORTED,
                      "element type 12");
    assert_open_fails("/nonexistent/model.onnx", FERRY_NOT_FOUND, "does not exist");
}

static void test_directory_of_library(void **state) {
    (void)state;
    if (!runtime) skip();
    const char *link = path_join(&arena, directory, "release/lib/libonnxruntime.so.1");
    write_file("release/lib/README", "", 0);
    assert_int_equal(symlink(onnxruntime_path(runtime), link), 0);
    setenv("FERRY_ONNXRUNTIME", path_join(&arena, directory, "release"), 1);
    OnnxRuntime *second = NULL;
    ferry_status status = onnxruntime_load(NULL, &second, NULL);
    unsetenv("FERRY_ONNXRUNTIME");
    assert_int_equal(status, FERRY_OK);
    assert_string_equal(onnxruntime_path(second), onnxruntime_path(runtime));
    onnxruntime_unload(second);
}

static int make_directory(void **state) {
    (void)state;
    unsetenv("FERRY_ONNXRUNTIME");
    unsetenv("VIRTUAL_ENV");
    return mkdtemp(directory) ? 0 : -1;
}

static int load_library(void **state) {
    (void)state;
    const char *library = getenv("FERRY_TEST_ONNXRUNTIME");
    ferry_error error = {0};
    if (!library || !*library) return 0;
    if (onnxruntime_load(library, &runtime, &error) == FERRY_OK) return 0;
    print_error("%s: %s\n", error.where, error.message);
    return -1;
}

static int unload_library(void **state) {
    (void)state;
    onnxruntime_unload(runtime);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    arena_free(&arena);
    return system(command);
}

/* The library is loaded after the searches: the loader finds again what is already loaded. */
int main(void) {
    const struct CMUnitTest finding[] = {
        cmocka_unit_test(test_path_missing),
        cmocka_unit_test(test_text_file),
        cmocka_unit_test(test_other_library),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_environment_names_library),
        cmocka_unit_test(test_search_finds_packages),
        cmocka_unit_test(test_search_reports_places),
    };
    const struct CMUnitTest running[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_two_sizes),
        cmocka_unit_test(test_bad_inputs), cmocka_unit_test(test_dtypes_and_ranks),
        cmocka_unit_test(test_bad_models), cmocka_unit_test(test_directory_of_library),
    };
    int failures = cmocka_run_group_tests(finding, make_directory, NULL);
    return failures + cmocka_run_group_tests(running, load_library, unload_library);
}
