/* Models that are wrong or that the reader does not understand: each is refused with a message that
 * names the file and the node, and nothing is read that is not there. */
#include "check.h"
#include "onnx_model.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, STRING = 8 };

static const int64_t two[] = {2};

/* The model, which is used up, is refused. */
static void check_refused(OnnxModel *model, ferry_status status, const char *message) {
    ReadModel read;
    assert_fails(model_read(model, &read), status, &read.error, message);
    assert_string_equal(read.error.where, "/nowhere/model.onnx");
    read_free(&read);
}

/* One node between x [batch, 4], ids [2], a bool b [] and constants, and the output y. */
static OnnxModel around(const char *op_type, const char *inputs, const char *attrs) {
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "batch,4");
    model_input(&model, "ids", INT64, "2");
    model_input(&model, "b", BOOL, "");
    model_input(&model, "deep", FLOAT, "1,1,1,1,1,1,1,1");
    model_input(&model, "image", FLOAT, "1,1,3,3");
    model_ints(&model, "zero", 0);
    model_ints(&model, "one", 1);
    model_ints(&model, "minus", -2);
    model_ints(&model, "pair", 1, 2);
    model_ints(&model, "twice", 0, 0);
    model_ints(&model, "many", 1, 1, 1, 1, 1, 1, 1, 1, 1);
    model_ints(&model, "least", INT64_MIN);
    model_ints(&model, "most", INT64_MAX);
    model_node(&model, op_type, inputs, "y", attrs);
    model_output(&model, "y", FLOAT);
    return model;
}

static void nodes(void **state) {
    (void)state;
    static const struct {
        const char *op_type, *inputs, *attrs;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"Add", "x,nothing", "", FERRY_BAD_FORMAT, "reads \"nothing\""},
        {"Add", "x,y", "", FERRY_BAD_FORMAT, "reads \"y\""},
        {"Add", "x", "", FERRY_BAD_FORMAT, "input 1 is missing"},
        {"Add", "x,", "", FERRY_BAD_FORMAT, "input 1 is missing"},
        {"Add", "x,x,x", "", FERRY_BAD_FORMAT, "at most 2 inputs, found 3"},
        {"Add", "x,ids", "", FERRY_BAD_FORMAT, "float32 and int64"},
        {"Add", "x,x", "axis=1", FERRY_UNSUPPORTED, "attribute \"axis\""},
        {"Softmax", "x", "axis=1.5", FERRY_BAD_FORMAT, "\"axis\" has type 1, expected 2"},
        {"Softmax", "x", "axis=2", FERRY_BAD_FORMAT, "axis 2 is outside a tensor of rank 2"},
        {"Softmax", "x", "axis=-9223372036854775808", FERRY_BAD_FORMAT, "outside a tensor"},
        {"Softmax", "ids", "", FERRY_BAD_FORMAT, "floating-point"},
        {"MatMul", "ids,x", "", FERRY_UNSUPPORTED, "rank 1 and 2"},
        {"MatMul", "x,deep", "", FERRY_BAD_FORMAT, "inner sizes"},
        {"Gemm", "x,deep", "", FERRY_BAD_FORMAT, "expected matrices"},
        {"And", "b,x", "", FERRY_BAD_FORMAT, "bool and float32"},
        {"And", "x,x", "", FERRY_BAD_FORMAT, "expected bool, found float32"},
        {"Where", "x,x,x", "", FERRY_BAD_FORMAT, "(bool, T, T)"},
        {"Cast", "x", "to=8", FERRY_UNSUPPORTED, "element type 8"},
        {"Cast", "x", "to=17", FERRY_UNSUPPORTED, "float8"},
        {"Cast", "x", "", FERRY_UNSUPPORTED, "element type 0"},
        {"Gelu", "x", "approximate='cubic'", FERRY_UNSUPPORTED, "\"cubic\""},
        {"Constant", "", "", FERRY_BAD_FORMAT, "one attribute"},
        {"Constant", "", "value=1", FERRY_BAD_FORMAT, "\"value\" has type 2"},
        {"Constant", "", "value_string='a'", FERRY_UNSUPPORTED, "\"value_string\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = around(cases[i].op_type, cases[i].inputs, cases[i].attrs);
        check_refused(&model, cases[i].status, cases[i].message);
        model = around(cases[i].op_type, cases[i].inputs, cases[i].attrs);
        check_refused(&model, cases[i].status, "node \"the node\" (");
    }
}

#define LINEAR "mode='linear' coordinate_transformation_mode='half_pixel'"

static void shapes_and_selections(void **state) {
    (void)state;
    static const struct {
        const char *op_type, *inputs, *attrs;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"Reshape", "x,x", "", FERRY_UNSUPPORTED, "no short vector of whole numbers"},
        {"Reshape", "x,minus", "", FERRY_BAD_FORMAT, "size 0 of the target"},
        {"Reshape", "x,least", "", FERRY_BAD_FORMAT, "size 0 of the target"},
        {"Reshape", "x,most", "", FERRY_OK, ""},
        {"Reshape", "x,twice", "allowzero=1", FERRY_OK, ""},
        {"Reshape", "x,many", "", FERRY_UNSUPPORTED, "rank 9"},
        {"Expand", "x,many", "", FERRY_UNSUPPORTED, "rank 9"},
        {"Expand", "x,minus", "", FERRY_BAD_FORMAT, "negative"},
        {"Expand", "x,pair", "", FERRY_BAD_FORMAT, "cannot expand size 4 to 2"},
        {"Tile", "x,minus", "", FERRY_BAD_FORMAT, "expected 2 repeats, found 1"},
        {"Transpose", "x", "perm=[0]", FERRY_BAD_FORMAT, "expected 2 dimensions, found 1"},
        {"Transpose", "x", "perm=[0,0]", FERRY_BAD_FORMAT, "no permutation"},
        {"Transpose", "x", "perm=[0,4611686018427387904]", FERRY_BAD_FORMAT, "no permutation"},
        {"Unsqueeze", "deep,zero", "", FERRY_UNSUPPORTED, "rank 9"},
        {"Unsqueeze", "x,twice", "", FERRY_BAD_FORMAT, "axis 0 is given twice"},
        {"Unsqueeze", "x,most", "", FERRY_BAD_FORMAT, "is outside a tensor of rank 3"},
        {"Squeeze", "x", "", FERRY_UNSUPPORTED, "dimension 0 must have a fixed size"},
        {"Squeeze", "x,one", "", FERRY_BAD_FORMAT, "dimension 1 is not 1"},
        {"Concat", "x,x", "", FERRY_BAD_FORMAT, "\"axis\" is missing"},
        {"Concat", "x,ids", "axis=0", FERRY_BAD_FORMAT, "differs from the first"},
        {"Slice", "x,zero,pair", "", FERRY_BAD_FORMAT, "differ in their number"},
        {"Slice", "x,twice,pair,twice", "", FERRY_BAD_FORMAT, "axis 0 is given twice"},
        {"Slice", "x,zero,one,zero,minus", "", FERRY_UNSUPPORTED, "the step -2"},
        {"Slice", "x,zero,one,least", "", FERRY_BAD_FORMAT, "is outside a tensor"},
        {"Split", "x", "num_outputs=2", FERRY_BAD_FORMAT, "expected 2 outputs"},
        {"Split", "x,minus", "axis=1", FERRY_BAD_FORMAT, "sizes of 0 or more"},
        {"Split", "x,pair", "axis=1", FERRY_BAD_FORMAT, "expected 2 outputs, found 1"},
        {"Split", "x", "", FERRY_UNSUPPORTED, "must have a fixed size"},
        {"Gather", "x,x", "", FERRY_BAD_FORMAT, "int64 or int32 indices"},
        {"Gather", "pair,pair", "", FERRY_BAD_FORMAT, "axis 2 is outside"},
        {"Gather", "b,ids", "", FERRY_BAD_FORMAT, "is outside a tensor of rank 0"},
        {"GatherND", "x,ids", "batch_dims=1", FERRY_UNSUPPORTED, "\"batch_dims\" is 1"},
        {"GatherND", "ids,ids", "", FERRY_UNSUPPORTED, "1 to 1 coordinates"},
        {"GatherND", "x,b", "", FERRY_UNSUPPORTED, "1 to 2 coordinates"},
        {"Range", "zero,one,zero", "", FERRY_UNSUPPORTED, "positive constant"},
        {"Range", "zero,x,one", "", FERRY_UNSUPPORTED, "input 1 (\"x\")"},
        {"ConstantOfShape", "minus", "", FERRY_BAD_FORMAT, "a size is negative"},
        {"ConstantOfShape", "many", "", FERRY_UNSUPPORTED, "rank 9"},
        {"Trilu", "ids", "", FERRY_BAD_FORMAT, "expected rank 2"},
        {"ReduceSum", "x,minus", "", FERRY_OK, ""},
        {"ReduceSum", "x,most", "", FERRY_BAD_FORMAT, "is outside a tensor"},
        {"ReduceMean", "ids", "", FERRY_UNSUPPORTED, "the mean of int64"},
        {"ScatterND", "x,ids,x", "reduction='max'", FERRY_UNSUPPORTED, "reduction \"max\""},
        {"ScatterElements", "x,ids,x", "", FERRY_BAD_FORMAT, "indices and a source of rank 2"},
        {"TopK", "x,pair", "", FERRY_BAD_FORMAT, "one count"},
        {"TopK", "x,many", "", FERRY_BAD_FORMAT, "one count"},
        {"TopK", "x,minus", "", FERRY_BAD_FORMAT, "-2 of 4 elements"},
        {"Pad", "x,pair", "", FERRY_BAD_FORMAT, "expected 4 amounts"},
        {"Pad", "x,pair,,most", "", FERRY_BAD_FORMAT, "is outside a tensor"},
        {"Pad", "ids,least", "", FERRY_BAD_FORMAT, "expected 2 amounts"},
        {"Pad", "ids,pair", "mode='wrap'", FERRY_UNSUPPORTED, "padding by \"wrap\""},
        {"Pad", "ids,pair,ids", "", FERRY_UNSUPPORTED, "must be constant"},
        {"Conv", "x,x", "", FERRY_UNSUPPORTED, "an input of rank 2"},
        {"Conv", "image,x", "", FERRY_BAD_FORMAT, "the weight differs"},
        {"Conv", "image,image", "kernel_shape=[2,2]", FERRY_BAD_FORMAT, "the weight differs"},
        {"Conv", "image,image", "auto_pad='SAME_UPPER'", FERRY_UNSUPPORTED, "SAME_UPPER"},
        {"Conv", "image,image", "group=0", FERRY_BAD_FORMAT, "groups do not divide"},
        {"Conv", "image,image", "strides=[0,1]", FERRY_BAD_FORMAT, "constants of 1 or more"},
        {"Conv", "image,image", "strides=[1]", FERRY_BAD_FORMAT, "expected 2 numbers"},
        {"Conv", "image,image", "pads=[0,0,0,4294967296]", FERRY_UNSUPPORTED, "4294967296 in"},
        {"Conv", "image,image", "dilations=[9,9]", FERRY_BAD_FORMAT, "the input is too small"},
        {"ConvTranspose", "image,image", "pads=[1,0,0,0]", FERRY_UNSUPPORTED, "different padding"},
        {"MaxPool", "image", "kernel_shape=[9,9]", FERRY_BAD_FORMAT, "the input is too small"},
        {"MaxPool", "image", "kernel_shape=[0,0]", FERRY_BAD_FORMAT, "constants of 1 or more"},
        {"AveragePool", "image", "kernel_shape=[1,1] pads=[9,0,0,0]", FERRY_UNSUPPORTED, "padding"},
        {"BatchNormalization", "image,x,x,x,x", "", FERRY_BAD_FORMAT, "of rank 1"},
        {"InstanceNormalization", "ids,ids,ids", "", FERRY_BAD_FORMAT,
         "outside a tensor of rank 1"},
        {"Resize", "x,,,pair", "", FERRY_UNSUPPORTED, "this form of interpolation"},
        {"Resize", "image,,x,", LINEAR, FERRY_UNSUPPORTED, "this form of interpolation"},
        {"Resize", "image,,,pair", LINEAR, FERRY_UNSUPPORTED, "the last two of four dimensions"},
        {"Resize", "image,,,least", LINEAR " axes=[2,3]", FERRY_UNSUPPORTED, "the last two"},
        {"Resize", "image,,,pair", LINEAR " axes=[1,2]", FERRY_UNSUPPORTED, "the last two"},
        {"GridSample", "image,x", "", FERRY_BAD_FORMAT, "expected an input [N, C, H, W]"},
        {"GridSample", "image,image", "mode='wide'", FERRY_UNSUPPORTED, "\"wide\""},
        {"CumSum", "x,pair", "", FERRY_BAD_FORMAT, "expected one axis"},
        {"CumSum", "x,zero", "reverse=1", FERRY_UNSUPPORTED, "\"reverse\" is 1"},
        {"LayerNormalization", "x,ids", "", FERRY_BAD_FORMAT, "differ in dtype"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = around(cases[i].op_type, cases[i].inputs, cases[i].attrs);
        if (cases[i].status == FERRY_OK) {
            ReadModel read;
            assert_ok(model_read(&model, &read), &read.error);
            read_free(&read);
            continue;
        }
        check_refused(&model, cases[i].status, cases[i].message);
    }
}

static void operators_that_are_not_known(void **state) {
    (void)state;
    OnnxModel model = around("Einsum", "x,x", "");
    check_refused(
        &model, FERRY_UNSUPPORTED,
        "node \"the node\" (Einsum): there is no support for the operator Einsum of domain "
        "\"ai.onnx\" at opset 22");
    model_input(&model, "x", FLOAT, "4");
    model_node_in(&model, "com.microsoft", "Gelu", "x", "y", "");
    check_refused(&model, FERRY_UNSUPPORTED, "operator Gelu of domain \"com.microsoft\"");
    model = around("Gelu", "x", "");
    model.opset = 18;
    check_refused(&model, FERRY_UNSUPPORTED, "at opset 18");
    model = around("Neg", "x", "");
    model.opset = 12;
    check_refused(&model, FERRY_UNSUPPORTED, "expected an opset from 13 to 24, found 12");
    model_input(&model, "x", FLOAT, "4");
    model_node(&model, "LayerNormalization", "x,x", "y,mean", "");
    model_output(&model, "y", FLOAT);
    check_refused(&model, FERRY_UNSUPPORTED, "output 1 (\"mean\")");
}

/* ---- names, inputs and outputs ---- */

static void names(void **state) {
    (void)state;
    OnnxModel model = around("Neg", "x", "");
    model_node(&model, "Neg", "x", "y", "");
    check_refused(&model, FERRY_BAD_FORMAT, "makes \"y\", which there is already");
    model = around("Neg", "x", "");
    model_input(&model, "x", FLOAT, "1");
    check_refused(&model, FERRY_BAD_FORMAT, "two inputs or initializers called \"x\"");
    model = around("Neg", "x", "");
    model_ints(&model, "zero", 0);
    check_refused(&model, FERRY_BAD_FORMAT, "two inputs or initializers called \"zero\"");
    model = around("Neg", "x", "");
    model_output(&model, "y", FLOAT);
    check_refused(&model, FERRY_BAD_FORMAT, "two outputs called \"y\"");
    model = around("Neg", "x", "");
    model_ints(&model, "", 0);
    check_refused(&model, FERRY_BAD_FORMAT, "has no name");
    model = around("Neg", "x", "");
    size_t mark = proto_open(&model.graph, 1);
    proto_bytes(&model.graph, 1, "x\0y", 3);
    proto_close(&model.graph, mark);
    check_refused(&model, FERRY_BAD_FORMAT, "zero byte");
}

static void ports(void **state) {
    (void)state;
    static const struct {
        int elem_type;
        const char *sizes;
        ferry_status status;
        const char *message;
    } cases[] = {
        {FLOAT, NULL, FERRY_UNSUPPORTED, "the input \"z\" has no rank"},
        {FLOAT, "1,2,3,4,5,6,7,8,9", FERRY_UNSUPPORTED, "has rank 9"},
        {FLOAT, "-1", FERRY_BAD_FORMAT, "has the size -1"},
        {STRING, "1", FERRY_UNSUPPORTED, "element type 8"},
        {0, "1", FERRY_UNSUPPORTED, "element type 0"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = around("Neg", "x", "");
        model_input(&model, "z", cases[i].elem_type, cases[i].sizes);
        check_refused(&model, cases[i].status, cases[i].message);
    }
    OnnxModel model = around("Neg", "ids", "");
    check_refused(&model, FERRY_BAD_FORMAT, "declared as float32 of rank 1, but is int64");
    model = around("Neg", "x", "");
    model_port(&model, 12, "x", FLOAT, "4");
    check_refused(&model, FERRY_BAD_FORMAT, "declared as float32 of rank 1, but is float32");
    model = around("Neg", "x", "");
    model_output(&model, "gone", FLOAT);
    check_refused(&model, FERRY_BAD_FORMAT, "output \"gone\" is made by no node");
    check_refused(&model, FERRY_BAD_FORMAT, "has no output");
    model = around("Neg", "x", "");
    size_t mark = proto_open(&model.graph, 11);
    proto_string(&model.graph, 1, "list");
    proto_close(&model.graph, mark);
    check_refused(&model, FERRY_UNSUPPORTED, "\"list\" is no tensor");
}

/* ---- tensors ---- */

static void tensors(void **state) {
    (void)state;
    static const struct {
        int elem_type;
        int64_t sizes[2];
        size_t size;
        ferry_status status;
        const char *message;
    } cases[] = {
        {FLOAT, {2, 2}, 15, FERRY_BAD_FORMAT, "expected 16 bytes, found 15"},
        {FLOAT, {2, -2}, 0, FERRY_BAD_FORMAT, "sizes of 0 or more"},
        {FLOAT, {INT64_MAX, 2}, 0, FERRY_BAD_FORMAT, "sizes of 0 or more"},
        {FLOAT, {1LL << 40, 1}, 0, FERRY_BAD_FORMAT, "expected 4398046511104 bytes, found 0"},
        {STRING, {1, 1}, 0, FERRY_UNSUPPORTED, "element type 8"},
        {-3, {1, 1}, 0, FERRY_UNSUPPORTED, "element type -3"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OnnxModel model = {0};
        model_raw(&model, "w", cases[i].elem_type, 2, cases[i].sizes, "0123456789abcdef",
                  cases[i].size);
        check_refused(&model, cases[i].status, cases[i].message);
    }
    OnnxModel model = {0};
    size_t mark = proto_open(&model.graph, 5);
    proto_int(&model.graph, 1, 1LL << 40);
    proto_int(&model.graph, 2, FLOAT);
    proto_close(&model.graph, mark);
    check_refused(&model, FERRY_BAD_FORMAT, "expected 1099511627776 numbers, found 0");
    mark = proto_open(&model.graph, 5);
    for (int i = 0; i < 9; i++) proto_int(&model.graph, 1, 1);
    proto_int(&model.graph, 2, FLOAT);
    proto_close(&model.graph, mark);
    check_refused(&model, FERRY_UNSUPPORTED, "has rank 9");
}

/* Sizes that overflow 64 bits, and tensors without elements that only look large. */
static void sizes_that_overflow(void **state) {
    (void)state;
    OnnxModel model = {0};
    model_input(&model, "x", FLOAT, "n,4611686018427387904,4");
    model_ints(&model, "target", -1);
    model_node(&model, "Reshape", "x,target", "y", "");
    model_output(&model, "y", FLOAT);
    check_refused(&model, FERRY_UNSUPPORTED, "does not fit 64 bits");
    model_input(&model, "x", FLOAT, "1,1,3,3");
    model_input(&model, "one", FLOAT, "");
    model_ints(&model, "large", 1, 1, 1LL << 61, 1);
    model_node(&model, "Expand", "one,large", "w", "");
    model_node(&model, "Conv", "x,w", "y", "dilations=[8,1]");
    model_output(&model, "y", FLOAT);
    check_refused(&model, FERRY_BAD_FORMAT, "a weight of constant sizes");
    model_raw(&model, "w", FLOAT, 2, (const int64_t[]){0, 1LL << 60}, "", 0);
    model_input(&model, "x", FLOAT, "n");
    model_node(&model, "Concat", "w,w,w,w,w,w,w,w,w", "y", "axis=1");
    model_output(&model, "y", FLOAT);
    check_refused(&model, FERRY_UNSUPPORTED, "does not fit 64 bits");
}

/* ---- bytes ---- */

/* Every prefix of a model, and every model with one byte changed, is refused or read. */
static void damaged_bytes(void **state) {
    (void)state;
    OnnxModel model = around("Reshape", "x,pair", "allowzero=1");
    model_raw(&model, "w", FLOAT, 1, two, "01234567", 8);
    model_node(&model, "Add", "x,w", "z", "");
    Buffer bytes = model_bytes(&model);
    for (size_t i = 0; i < 2 * bytes.length; i++) {
        bool cut = i < bytes.length;
        size_t place = cut ? i : i - bytes.length;
        size_t length = cut ? i : bytes.length;
        unsigned char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy, bytes.bytes, length);
        if (!cut) copy[place] ^= (unsigned char)(1u << place % 8);
        const MappedFile file = {"/nowhere/model.onnx", copy, length};
        MappedFiles files = {0};
        ferry_error error = {0};
        Program *program = program_new();
        if (onnx_read_model(&file, &files, program, &error) == FERRY_OK) {
            assert_ok(program_verify(program, "reading", &error), &error);
        }
        program_free(program);
        files_unmap(&files);
        free(copy);
    }
    buffer_free(&bytes);
    buffer_free(&model.graph);
}

static void models(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {{"", 0}, {"{\"a\": 1}", 8}, {"\x3a\x7f", 2}, {"\x3a\0\x3a\0", 4}, {"\x38\1", 2}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const MappedFile file = {"bad.onnx", (const unsigned char *)cases[i].bytes,
                                 cases[i].length};
        MappedFiles files = {0};
        ferry_error error;
        Program *program = program_new();
        assert_fails(onnx_read_model(&file, &files, program, &error), FERRY_BAD_FORMAT, &error,
                     "not a valid ONNX model");
        program_free(program);
    }
    Program *program = program_new();
    MappedFiles files = {0};
    ferry_error error;
    assert_fails(onnx_read("/nowhere/model.onnx", &files, program, &error), FERRY_NOT_FOUND, &error,
                 "cannot open");
    program_free(program);
    files_unmap(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes),
        cmocka_unit_test(shapes_and_selections),
        cmocka_unit_test(operators_that_are_not_known),
        cmocka_unit_test(names),
        cmocka_unit_test(ports),
        cmocka_unit_test(tensors),
        cmocka_unit_test(sizes_that_overflow),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
