/* Reading ONNX models: sizes that the graph computes become expressions, constants become weights in
 * whatever form they are stored, names become ports. What operators compute is compared with ONNX
 * Runtime by tests/conformance/test_onnx_read.py. */
#include "check.h"
#include "onnx_model.h"

#include <fcntl.h>

enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9 };

static const int64_t two[] = {2}, four[] = {4};

/* The type of the only output. */
static void check_type(OnnxModel *model, const char *wanted) {
    ReadModel read;
    Buffer text = {0};
    assert_ok(model_read(model, &read), &read.error);
    value_print_type(&text, read.program->outputs.items[0].value);
    assert_string_equal(buffer_string(&text), wanted);
    buffer_free(&text);
    read_free(&read);
}

/* ---- shape arithmetic ---- */

/* x [batch, seq, 24] reshaped to `target`, which the graph computes after these nodes. */
static OnnxModel reshape_of(void) {
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "batch,seq,24");
    model_ints(&model, "zero", 0);
    model_ints(&model, "one", 1);
    model_ints(&model, "two", 2);
    model_ints(&model, "minus", -1);
    model_node(&model, "Shape", "x", "shape", "");
    return model;
}

static void check_reshape(OnnxModel *model, const char *attrs, const char *wanted) {
    model_node(model, "Reshape", "x,target", "y", attrs);
    model_output(model, "y", FLOAT);
    check_type(model, wanted);
}

static void constant_targets(void **state) {
    (void)state;
    OnnxModel model = reshape_of();
    model_ints(&model, "target", 0, -1, 4, 6);
    check_reshape(&model, "", "float32[batch, seq, 4, 6]");
    model = reshape_of();
    model_ints(&model, "target", -1, 24);
    check_reshape(&model, "", "float32[batch*seq, 24]");
    model = reshape_of();
    model_ints(&model, "target", 0, 0, -1, 2);
    check_reshape(&model, "", "float32[batch, seq, 12, 2]");
}

static void targets_of_sizes(void **state) {
    (void)state;
    OnnxModel model = reshape_of();
    model_node(&model, "Gather", "shape,one", "seq", "axis=0");
    model_node(&model, "Slice", "shape,zero,one", "batch", "");
    model_node(&model, "Mul", "batch,seq", "rows", "");
    model_node(&model, "Concat", "rows,minus,two", "target", "axis=0");
    check_reshape(&model, "allowzero=1", "float32[batch*seq, 12, 2]");
    model = reshape_of();
    model_node(&model, "Split", "shape", "a,b", "num_outputs=2");
    model_node(&model, "ReduceProd", "a", "rows", "keepdims=1");
    model_node(&model, "Cast", "rows", "narrow", "to=6");
    model_node(&model, "Cast", "narrow", "again", "to=7");
    model_node(&model, "Concat", "again,b", "target", "axis=-1");
    check_reshape(&model, "", "float32[batch*seq, 24]");
}

static void scalars_of_sizes(void **state) {
    (void)state;
    OnnxModel model = reshape_of();
    model_node(&model, "Squeeze", "one", "i", "");
    model_node(&model, "Gather", "shape,i", "seq", "axis=0");
    model_node(&model, "Size", "x", "count", "");
    model_node(&model, "Div", "count,seq", "rest", "");
    model_node(&model, "Unsqueeze", "seq,zero", "s", "");
    model_node(&model, "Reshape", "rest,minus", "r", "");
    model_node(&model, "Identity", "r", "same", "");
    model_node(&model, "Concat", "s,same", "target", "axis=0");
    check_reshape(&model, "", "float32[seq, 24*batch]");
}

/* expand(x, shape with -1) as the exporter through TorchScript writes it. */
static void targets_through_a_choice(void **state) {
    (void)state;
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "batch,1,24");
    model_input(&model, "z", FLOAT, "seq");
    model_ints(&model, "minus", -1);
    model_ints(&model, "three", 3);
    model_node(&model, "Shape", "z", "seq", "");
    model_node(&model, "Concat", "minus,seq,minus", "wanted", "axis=0");
    model_node(&model, "Expand", "minus,three", "all_minus", "");
    model_node(&model, "Neg", "all_minus", "ones", "");
    model_node(&model, "Equal", "wanted,all_minus", "kept", "");
    model_node(&model, "Where", "kept,ones,wanted", "target", "");
    model_node(&model, "Expand", "x,target", "y", "");
    model_output(&model, "y", FLOAT);
    check_type(&model, "float32[batch, seq, 24]");
}

static void sizes_as_tensors(void **state) {
    (void)state;
    OnnxModel model = reshape_of();
    model_node(&model, "Cast", "shape", "y", "to=1");
    model_output(&model, "y", FLOAT);
    check_type(&model, "float32[3]");
    model = reshape_of();
    model_node(&model, "Squeeze", "zero", "start", "");
    model_node(&model, "Squeeze", "one", "step", "");
    model_node(&model, "Size", "x", "end", "");
    model_node(&model, "Range", "start,end,step", "y", "");
    model_output(&model, "y", INT64);
    check_type(&model, "int64[24*batch*seq]");
}

static void slices_to_either_end(void **state) {
    (void)state;
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "batch,16");
    model_ints(&model, "starts", INT64_MIN, -4);
    model_ints(&model, "ends", INT64_MAX, INT64_MAX);
    model_node(&model, "Slice", "x,starts,ends", "y", "");
    model_output(&model, "y", FLOAT);
    check_type(&model, "float32[batch, 4]");
}

/* A target that is an input of the model. */
static void targets_that_depend_on_the_data(void **state) {
    (void)state;
    OnnxModel model = {0};
    ReadModel read;
    model_input(&model, "x", FLOAT, "24");
    model_input(&model, "n", INT64, "1");
    model_ints(&model, "minus", -1);
    model_node(&model, "Concat", "n,minus", "target", "axis=0");
    model_node(&model, "Reshape", "x,target", "y", "");
    model_output(&model, "y", FLOAT);
    assert_ok(model_read(&model, &read), &read.error);
    assert_int_equal(read.program->sources.count, 1);
    const Value *value = read.program->outputs.items[0].value;
    assert_ptr_equal(value->shape[0], read.program->sources.items[0].symbol);
    read_free(&read);
}

/* ---- sizes of inputs ---- */

static void symbols_of_inputs(void **state) {
    (void)state;
    static const struct {
        const char *sizes, *wanted;
    } cases[] = {
        {"batch,8", "float32[batch, 8]"},
        {"batch,past + seq", "float32[batch, past + seq]"},
        {"n-best,2*n", "float32[n-best, 2*n]"},
        {",,3", "float32[x_dim_0, x_dim_1, 3]"},
        {"", "float32[]"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = {0};
        model_input(&model, "x", FLOAT, cases[i].sizes);
        model_input(&model, "z", FLOAT, "past,seq");
        model_node(&model, "Neg", "x", "y", "");
        model_output(&model, "y", FLOAT);
        check_type(&model, cases[i].wanted);
    }
}

static void ranges_that_are_known_stay(void **state) {
    (void)state;
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "batch");
    model_node(&model, "Neg", "x", "y", "");
    model_output(&model, "y", FLOAT);
    Buffer bytes = model_bytes(&model);
    const MappedFile file = {"/nowhere/model.onnx", bytes.bytes, bytes.length};
    MappedFiles files = {0};
    ferry_error error;
    Program *program = program_new();
    const Sym *batch = sym_symbol(&program->symbols, "batch", 2, 7);
    assert_ok(onnx_read_model(&file, &files, program, &error), &error);
    assert_ptr_equal(program->inputs.items[0].value->shape[0], batch);
    assert_int_equal(batch->upper, 7);
    program_free(program);
    files_unmap(&files);
    buffer_free(&bytes);
    buffer_free(&model.graph);
}

static void names_on_both_sides(void **state) {
    (void)state;
    OnnxModel model = {0};
    ReadModel read;
    model_input(&model, "input.cache", FLOAT, "2");
    model_input(&model, "input.1", FLOAT, "2");
    model_node(&model, "Add", "input.cache,input.1", "output.cache", "");
    model_node(&model, "Neg", "input.1", "output.2", "");
    model_output(&model, "output.cache", FLOAT);
    model_output(&model, "output.2", FLOAT);
    assert_ok(model_read(&model, &read), &read.error);
    assert_string_equal(read.program->inputs.items[0].name, "cache");
    assert_string_equal(read.program->inputs.items[1].name, "input.1");
    assert_string_equal(read.program->outputs.items[0].name, "cache");
    assert_string_equal(read.program->outputs.items[1].name, "output.2");
    read_free(&read);
}

/* ---- weights ---- */

/* The elements of the only weight, as its dtype has them. */
static void check_weight(OnnxModel *model, int elem_type, const char *type, const void *wanted,
                         size_t size) {
    ReadModel read;
    Buffer text = {0};
    unsigned char found[64];
    model_node(model, "Identity", "w", "y", "");
    model_output(model, "y", elem_type);
    assert_ok(model_read(model, &read), &read.error);
    assert_int_equal(read.program->weights.count, 1);
    const Value *weight = read.program->weights.items[0];
    value_print_type(&text, weight);
    assert_string_equal(buffer_string(&text), type);
    assert_string_equal(weight->name, "w");
    assert_int_equal(recipe_bytes_size(weight->recipe), size);
    recipe_read(weight->recipe, 0, recipe_count(weight->recipe), found);
    assert_memory_equal(found, wanted, size);
    buffer_free(&text);
    read_free(&read);
}

/* An initializer w [2] with numbers in a field of their own; floats are given by their bits. */
static OnnxModel typed(int elem_type, uint32_t field, bool packed, int64_t a, int64_t b) {
    OnnxModel model = {0};
    Buffer values = {0}, one = {0};
    size_t mark = proto_open(&model.graph, 5);
    proto_int(&model.graph, 1, 2);
    proto_int(&model.graph, 2, elem_type);
    proto_string(&model.graph, 8, "w");
    for (int i = 0; i < 2; i++) {
        int64_t value = i ? b : a;
        if (!packed) {
            proto_int(&model.graph, field, value);
        } else if (field == 4 || field == 10) {
            buffer_append(&values, &value, field == 4 ? 4 : 8);
        } else {
            one.length = 0;
            proto_int(&one, 1, value);
            buffer_append(&values, one.bytes + 1, one.length - 1);
        }
    }
    if (packed) proto_bytes(&model.graph, field, values.bytes, values.length);
    proto_close(&model.graph, mark);
    buffer_free(&values);
    buffer_free(&one);
    return model;
}

static void weights_in_fields(void **state) {
    (void)state;
    OnnxModel model = typed(INT64, 7, true, -5, 1LL << 40);
    check_weight(&model, INT64, "int64[2]", (const int64_t[]){-5, 1LL << 40}, 16);
    model = typed(INT64, 7, false, -5, 1LL << 40);
    check_weight(&model, INT64, "int64[2]", (const int64_t[]){-5, 1LL << 40}, 16);
    model = typed(INT32, 5, true, -5, 70000);
    check_weight(&model, INT32, "int32[2]", (const int32_t[]){-5, 70000}, 8);
    model = typed(10, 5, false, 0x3c00, 0xc000);
    check_weight(&model, 10, "float16[2]", (const uint16_t[]){0x3c00, 0xc000}, 4);
    model = typed(BOOL, 5, true, 256, 0);
    check_weight(&model, BOOL, "bool[2]", (const uint8_t[]){1, 0}, 2);
    model = typed(FLOAT, 4, true, 0x3fc00000, 0xc0000000);
    check_weight(&model, FLOAT, "float32[2]", (const float[]){1.5F, -2}, 8);
    model = typed(11, 10, true, 0x3ff8000000000000, 0);
    check_weight(&model, 11, "float64[2]", (const double[]){1.5, 0}, 16);
}

static void weights_as_bytes(void **state) {
    (void)state;
    OnnxModel model = {0};
    const float values[] = {1, 2, 3, 4};
    model_raw(&model, "w", FLOAT, 1, four, values, sizeof values);
    check_weight(&model, FLOAT, "float32[4]", values, sizeof values);
    model_raw(&model, "w", BOOL, 1, two, "\x80\0", 2);
    check_weight(&model, BOOL, "bool[2]", "\1\0", 2);
    model_raw(&model, "w", FLOAT, 2, (const int64_t[]){0, 4}, "", 0);
    check_weight(&model, FLOAT, "float32[0, 4]", "", 0);
    model_raw(&model, "w", FLOAT, 0, NULL, values, 4);
    check_weight(&model, FLOAT, "float32[]", values, 4);
}

/* A directory with a data file of four floats at offset 64, and a model's path in it. */
typedef struct Folder {
    char directory[256], model[512], data[512];
} Folder;

static const float external[] = {5, 6, 7, 8};

static void folder_make(Folder *folder) {
    char content[64 + sizeof external] = {0};
    ferry_error error;
    scratch_make(folder->directory, sizeof folder->directory);
    snprintf(folder->model, sizeof folder->model, "%s/model.onnx", folder->directory);
    snprintf(folder->data, sizeof folder->data, "%s/w.data", folder->directory);
    memcpy(content + 64, external, sizeof external);
    assert_ok(file_write(folder->data, content, sizeof content, &error), &error);
}

static void external_weights(void **state) {
    (void)state;
    Folder folder;
    folder_make(&folder);
    OnnxModel model = {.path = folder.model};
    model_external(&model, "w", 4, "w.data", "64", "16");
    check_weight(&model, FLOAT, "float32[4]", external, 16);
    model.path = folder.model;
    model_external(&model, "w", 2, "w.data", "72", NULL);
    check_weight(&model, FLOAT, "float32[2]", external + 2, 8);
    scratch_remove(folder.directory);
}

static void external_weights_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *location, *offset, *length;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"w.data", "68", "16", FERRY_BAD_FORMAT, "16 bytes at offset 68 are not in \"w.data\""},
        {"w.data", "18446744073709551615", "16", FERRY_BAD_FORMAT, "are not in"},
        {"w.data", "18446744073709551616", "16", FERRY_BAD_FORMAT, "is no number"},
        {"w.data", "-1", "16", FERRY_BAD_FORMAT, "is no number"},
        {"w.data", "", "16", FERRY_BAD_FORMAT, "is no number"},
        {"w.data", "0", "8", FERRY_BAD_FORMAT, "expected a length of 16, found 8"},
        {NULL, "0", "16", FERRY_BAD_FORMAT, "has no location"},
        {"gone.data", "0", "16", FERRY_NOT_FOUND, "no file \"gone.data\""},
        {"../w.data", "0", "16", FERRY_BAD_FORMAT, "below the model's directory"},
        {"/etc/passwd", "0", "16", FERRY_BAD_FORMAT, "below the model's directory"},
        {"link.data", "0", "16", FERRY_BAD_FORMAT, "is outside the model's directory"},
        {".", "0", "16", FERRY_BAD_FORMAT, "below the model's directory"},
    };
    Folder folder;
    char link[512];
    folder_make(&folder);
    snprintf(link, sizeof link, "%s/link.data", folder.directory);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = {.path = folder.model};
        ReadModel read;
        model_external(&model, "w", 4, cases[i].location, cases[i].offset, cases[i].length);
        model_output(&model, "w", FLOAT);
        assert_fails(model_read(&model, &read), cases[i].status, &read.error, cases[i].message);
        assert_string_equal(read.error.where, folder.model);
        read_free(&read);
    }
    scratch_remove(folder.directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_targets),
        cmocka_unit_test(targets_of_sizes),
        cmocka_unit_test(scalars_of_sizes),
        cmocka_unit_test(targets_through_a_choice),
        cmocka_unit_test(sizes_as_tensors),
        cmocka_unit_test(slices_to_either_end),
        cmocka_unit_test(targets_that_depend_on_the_data),
        cmocka_unit_test(symbols_of_inputs),
        cmocka_unit_test(ranges_that_are_known_stay),
        cmocka_unit_test(names_on_both_sides),
        cmocka_unit_test(weights_in_fields),
        cmocka_unit_test(weights_as_bytes),
        cmocka_unit_test(external_weights),
        cmocka_unit_test(external_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
