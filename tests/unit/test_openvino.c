/* The OpenVINO adapter. Searching is tested with stand-ins; the rest needs a real library, named by
 * FERRY_TEST_OPENVINO (a file, or a directory that holds it), and is skipped without one. */
#include "check.h"
#include "base/file.h"
#include "openvino_model.h"
#include <ferry/ferry.h>
#include "run/openvino/ov.h"

#include <dlfcn.h>

/* What OpenVINO keeps for the life of the process. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libopenvino\nleak:libtbb\nleak:libstdc++\n";
}

static char directory[256];
static Arena arena;
static OpenVino *runtime; /* NULL: no real library */

static const char *write_file(const char *name, const void *bytes, size_t size) {
    const char *path = path_join(&arena, directory, name);
    char *slash = strrchr(path, '/');
    const char *parent = arena_string_n(&arena, path, (size_t)(slash - path));
    assert_int_equal(path_make_directory(parent, NULL, NULL), FERRY_OK);
    assert_int_equal(file_write(path, bytes, size, NULL), FERRY_OK);
    return path;
}

/* ---- without a library ---- */

static void what_is_no_library_is_said(void **state) {
    (void)state;
    OpenVino *loaded = NULL;
    ferry_error error = {0};
    assert_fails(openvino_load("/nowhere/libopenvino_c.so", &loaded, &error), FERRY_RUNTIME_MISSING,
                 &error, "pip install openvino");
    assert_fails(openvino_load(directory, &loaded, &error), FERRY_RUNTIME_MISSING, &error,
                 "holds no libopenvino_c.so");
    const char *text = write_file("libopenvino_c.so.1", "text", 4);
    assert_fails(openvino_load(text, &loaded, &error), FERRY_BAD_FORMAT, &error,
                 "cannot load the library");
    Dl_info other;
    assert_true(dladdr((void *)cmocka_set_message_output, &other));
    assert_fails(openvino_load(other.dli_fname, &loaded, &error), FERRY_BAD_FORMAT, &error,
                 "not OpenVINO: the library has no ov_");
    setenv("FERRY_OPENVINO", "/nowhere/ov", 1);
    assert_fails(openvino_load(NULL, &loaded, &error), FERRY_RUNTIME_MISSING, &error,
                 "FERRY_OPENVINO: ");
    unsetenv("FERRY_OPENVINO");
    assert_null(loaded);
}

static void versions(void **state) {
    (void)state;
    assert_true(ov_version_accepted("2026.0.0"));
    assert_true(ov_version_accepted("2027.1"));
    assert_false(ov_version_accepted("2025.4.1"));
    assert_false(ov_version_accepted("unknown"));
}

static void the_package_of_python_is_found(void **state) {
    (void)state;
    write_file("venv/lib/python3.12/site-packages/openvino/libs/libopenvino_c.so.2700", "", 0);
    write_file("venv/lib/python3.12/site-packages/openvino/libs/libopenvino.so.2700", "", 0);
    setenv("VIRTUAL_ENV", path_join(&arena, directory, "venv"), 1);
    LibrarySearch search = {.kind = &ov_library};
    search_packages(&search);
    unsetenv("VIRTUAL_ENV");
    assert_true(search.files.count >= 1);
    assert_contains(search.files.items[0], "libopenvino_c.so.2700");
    search_free(&search);
    assert_true(library_fits(&ov_library, "/somewhere/libopenvino_c.so.2641"));
    assert_false(library_fits(&ov_library, "/somewhere/libonnxruntime.so"));
    assert_true(library_fits(
        &ov_library, path_join(&arena, directory, "venv/lib/python3.12/site-packages/openvino")));
}

/* ---- with a library ---- */

static ferry_status open_net(NetText *net, const void *weights, size_t size,
                             OpenVinoSession **session, ferry_error *error) {
    const OpenVinoOptions options = {.device = "cpu", .exact = true, .threads = 1};
    Buffer text = net_text(net);
    const char *path = write_file("model.xml", text.bytes, text.length);
    write_file("model.bin", weights, size);
    buffer_free(&text);
    return openvino_open(runtime, path, &options, session, error);
}

static OpenVinoSession *opened(NetText *net, const void *weights, size_t size) {
    OpenVinoSession *session = NULL;
    ferry_error error = {0};
    assert_ok(open_net(net, weights, size, &session, &error), &error);
    return session;
}

/* y is x, in this type and of this shape. */
static void run_identity(ferry_dtype dtype, const char *type, const char *dims, size_t rank,
                         const int64_t *shape) {
    NetText net = {0};
    net_result(&net, "y", net_input(&net, "x", type, dims));
    OpenVinoSession *session = opened(&net, "", 0);
    ferry_tensors *inputs = ferry_tensors_new(), *outputs = NULL;
    ferry_tensor *x;
    ferry_error error = {0};
    assert_ok(ferry_tensors_add(inputs, "x", dtype, rank, shape, &x, &error), &error);
    for (size_t i = 0; i < ferry_tensor_bytes(x); i++) ((unsigned char *)x->data)[i] = i % 2;
    assert_ok(openvino_run(session, inputs, &outputs, &error), &error);
    const ferry_tensor *y = ferry_tensors_at(outputs, 0);
    assert_int_equal(y->dtype, dtype);
    assert_int_equal(y->rank, rank);
    assert_memory_equal(y->shape, shape, rank * sizeof *shape);
    assert_memory_equal(y->data, x->data, ferry_tensor_bytes(x));
    ferry_tensors_free(inputs);
    ferry_tensors_free(outputs);
    openvino_close(session);
}

static void every_type_and_rank_passes_through(void **state) {
    (void)state;
    static const struct {
        ferry_dtype dtype;
        const char *type;
    } types[] = {{FERRY_BOOL, "boolean"}, {FERRY_U8, "u8"},     {FERRY_I8, "i8"},
                 {FERRY_I16, "i16"},      {FERRY_I32, "i32"},   {FERRY_I64, "i64"},
                 {FERRY_F16, "f16"},      {FERRY_BF16, "bf16"}, {FERRY_F32, "f32"},
                 {FERRY_F64, "f64"}};
    if (!runtime) skip();
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        assert_int_equal(ov_dtype(ov_element_type((ferry_dtype)d)), d);
    }
    for (size_t i = 0; i < COUNT(types); i++) {
        run_identity(types[i].dtype, types[i].type, "?,3", 2, (int64_t[]){2, 3});
        run_identity(types[i].dtype, types[i].type, "2,3", 2, (int64_t[]){2, 3});
    }
    run_identity(FERRY_F32, "f32", "", 0, (int64_t[]){0});
    run_identity(FERRY_I32, "i32", "2,?,3", 3, (int64_t[]){2, 0, 3});
    run_identity(FERRY_F32, "f32", "1,?,1,2,1,2,1,2", 8, (int64_t[]){1, 2, 1, 2, 1, 2, 1, 2});
}

static const float zeros[2];

/* A model that adds up what it is given: total = state + x, which becomes the state. The row of the state
 * that counts is chosen by beam_idx. */
static NetText sum_net(void) {
    NetText net = {0};
    const char *variable = "variable_id=\"total\" variable_type=\"f32\" variable_shape=\"1,2\"";
    net_input(&net, "x", "f32", "1,2");
    net_input(&net, "beam_idx", "i32", "?");
    net_constant_at(&net, "f32", "1,2", 0, sizeof zeros);
    net_constant_at(&net, "i32", "", 0, 4);
    net_layer(&net, "ReadValue", 6, "2", variable);
    net_layer(&net, "Gather", 8, "4,1,3", "");
    net_layer(&net, "Add", 1, "5,0", "");
    net_layer_named(&net, "assign", "Assign", 6, "6", "variable_id=\"total\"", 0);
    net_result(&net, "total", 6);
    return net;
}

static OpenVinoSession *open_sum(void) {
    NetText net = sum_net();
    return opened(&net, zeros, sizeof zeros);
}

static ferry_tensors *sum_inputs(float x) {
    ferry_tensors *inputs = ferry_tensors_new();
    ferry_tensor *given;
    assert_int_equal(ferry_tensors_add(inputs, "x", FERRY_F32, 2, (int64_t[]){1, 2}, &given, NULL),
                     FERRY_OK);
    ((float *)given->data)[0] = x;
    return inputs;
}

static float take_total(ferry_tensors *inputs, ferry_tensors *outputs) {
    float total = ((float *)ferry_tensors_find(outputs, "total")->data)[0];
    ferry_tensors_free(inputs);
    ferry_tensors_free(outputs);
    return total;
}

static float run_sum(OpenVinoSession *session, float x) {
    ferry_tensors *inputs = sum_inputs(x), *outputs = NULL;
    ferry_error error = {0};
    ferry_tensors_add(inputs, "beam_idx", FERRY_I32, 1, (int64_t[]){1}, NULL, NULL);
    assert_ok(openvino_run(session, inputs, &outputs, &error), &error);
    return take_total(inputs, outputs);
}

static void a_state_lasts_until_it_is_reset(void **state) {
    (void)state;
    ferry_error error = {0};
    if (!runtime) skip();
    OpenVinoSession *session = open_sum();
    assert_true(run_sum(session, 1) == 1);
    assert_true(run_sum(session, 2) == 3);
    assert_ok(openvino_reset(session, &error), &error);
    assert_true(run_sum(session, 5) == 5);
    openvino_close(session);
}

static float run_export(ferry_exported *exported, const char *named, float x) {
    ferry_tensors *inputs = sum_inputs(x), *outputs = NULL;
    ferry_run_config config;
    ferry_error error = {0};
    ferry_run_config_init(&config);
    config.runtime = named;
    config.library = getenv("FERRY_TEST_OPENVINO");
    config.device = "CPU";
    assert_ok(ferry_exported_run(exported, &config, inputs, &outputs, &error), &error);
    return take_total(inputs, outputs);
}

/* An export does the same, and makes beam_idx up; in the built-in runtime every run starts over. */
static void an_export_keeps_its_state_from_run_to_run(void **state) {
    (void)state;
    static const char manifest[] =
        "{\"schema_version\": 1, \"export_format\": \"openvino\", \"components\": {\"model\": "
        "{\"file\": \"model.xml\", \"metadata\": {\"export_dtype\": \"float32\"}}}}";
    NetText net = sum_net();
    Buffer text = net_text(&net);
    ferry_exported *exported = NULL;
    ferry_error error = {0};
    write_file("sum/model.xml", text.bytes, text.length);
    write_file("sum/model.bin", zeros, sizeof zeros);
    write_file("sum/export.json", manifest, sizeof manifest - 1);
    buffer_free(&text);
    const char *folder = path_join(&arena, directory, "sum");
    assert_ok(ferry_exported_load(folder, &exported, &error), &error);
    assert_true(run_export(exported, "reference", 1) == 1);
    assert_true(run_export(exported, "reference", 2) == 2);
    if (runtime) {
        assert_true(run_export(exported, NULL, 1) == 1);
        assert_true(run_export(exported, "openvino", 2) == 3);
        assert_ok(ferry_exported_reset(exported, &error), &error);
        assert_true(run_export(exported, "openvino", 5) == 5);
    }
    ferry_exported_free(exported);
}

static void wrong_inputs_are_said(void **state) {
    (void)state;
    ferry_error error = {0};
    ferry_tensors *outputs = NULL;
    if (!runtime) skip();
    OpenVinoSession *session = open_sum();
    ferry_tensors *inputs = ferry_tensors_new();
    assert_fails(openvino_run(session, inputs, &outputs, &error), FERRY_INVALID_ARGUMENT, &error,
                 "\"x\" was not given; given: nothing");
    ferry_tensors_add(inputs, "x", FERRY_I64, 2, (int64_t[]){1, 2}, NULL, NULL);
    assert_fails(openvino_run(session, inputs, &outputs, &error), FERRY_INVALID_ARGUMENT, &error,
                 "\"x\" is float32, the tensor given is int64");
    ferry_tensors_free(inputs);
    inputs = ferry_tensors_new();
    ferry_tensors_add(inputs, "x", FERRY_F32, 2, (int64_t[]){3, 2}, NULL, NULL);
    ferry_tensors_add(inputs, "beam_idx", FERRY_I32, 1, (int64_t[]){1}, NULL, NULL);
    assert_fails(openvino_run(session, inputs, &outputs, &error), FERRY_RUNTIME_FAILED, &error,
                 "OpenVINO refused the tensor");
    assert_null(outputs);
    ferry_tensors_free(inputs);
    openvino_close(session);
}

static void wrong_models_do_not_reach_the_runtime(void **state) {
    (void)state;
    OpenVinoSession *session = NULL;
    ferry_error error = {0};
    const OpenVinoOptions options = {.device = "CPU"};
    NetText net = {0};
    if (!runtime) skip();
    assert_fails(openvino_open(runtime, "/nowhere/m.xml", &options, &session, &error),
                 FERRY_NOT_FOUND, &error, "does not exist");
    /* OpenVINO itself ends the process that reads this one */
    net_result(&net, "y", net_layer(&net, "Constant", 1, "", "element_type=\"f32\" shape=\"1\""));
    assert_fails(open_net(&net, "", 0, &session, &error), FERRY_BAD_FORMAT, &error,
                 "there is no type \"Constant\"; expected \"Const\"");
    net = (NetText){0};
    net_result(&net, "y", net_layer(&net, "NoSuchLayer", 1, "", ""));
    assert_fails(open_net(&net, "", 0, &session, &error), FERRY_RUNTIME_FAILED, &error,
                 "OpenVINO cannot read the model: ");
    const OpenVinoOptions other = {.device = "gpu.7"};
    net = (NetText){0};
    net_result(&net, "y", net_input(&net, "x", "f32", "1"));
    Buffer text = net_text(&net);
    const char *path = write_file("model.xml", text.bytes, text.length);
    buffer_free(&text);
    assert_fails(openvino_open(runtime, path, &other, &session, &error), FERRY_INVALID_ARGUMENT,
                 &error, "there is no such device");
    assert_string_equal(error.where, "GPU.7");
    assert_null(session);
}

static int start(void **state) {
    (void)state;
    unsetenv("FERRY_OPENVINO");
    unsetenv("VIRTUAL_ENV");
    scratch_make(directory, sizeof directory);
    return 0;
}

static int load_library(void **state) {
    (void)state;
    const char *library = getenv("FERRY_TEST_OPENVINO");
    ferry_error error = {0};
    if (!library || !*library) return 0;
    setenv("TBB_ENABLE_SANITIZERS", "1",
           1); /* its threads load a library in a way that ASan refuses */
    if (openvino_load(library, &runtime, &error) == FERRY_OK) return 0;
    print_error("%s: %s\n", error.where, error.message);
    return -1;
}

static int stop(void **state) {
    (void)state;
    openvino_unload(runtime);
    scratch_remove(directory);
    arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest finding[] = {
        cmocka_unit_test(what_is_no_library_is_said),
        cmocka_unit_test(versions),
        cmocka_unit_test(the_package_of_python_is_found),
    };
    const struct CMUnitTest running[] = {
        cmocka_unit_test(every_type_and_rank_passes_through),
        cmocka_unit_test(a_state_lasts_until_it_is_reset),
        cmocka_unit_test(an_export_keeps_its_state_from_run_to_run),
        cmocka_unit_test(wrong_inputs_are_said),
        cmocka_unit_test(wrong_models_do_not_reach_the_runtime),
    };
    int failures = cmocka_run_group_tests(finding, start, NULL);
    return failures + cmocka_run_group_tests(running, load_library, stop);
}
