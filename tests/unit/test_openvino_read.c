/* Reading OpenVINO models: what becomes of them, and what is wrong with those that are refused, by the
 * layer and what was expected. That every layer computes the right numbers is tested against OpenVINO. */
#include "check.h"
#include "openvino_model.h"
#include "source/openvino/openvino_read.h"

static const char path[] = "/nowhere/model.xml";

/* The weights of all models here: 0, 1, -2, 1 2, and ones. */
static const int64_t numbers[] = {0, 1, -2, 1, 2, 1, 1, 1, 1};

typedef struct ReadNet {
    ferry_status status;
    ferry_error error;
    Program *program;
    Buffer text; /* of the program, or empty */
} ReadNet;

static ReadNet read_text(const char *text, size_t length, const OpenvinoInputs *inputs) {
    static const OpenvinoInputs none;
    const MappedFile model = {.path = path, .bytes = (const void *)text, .size = length};
    const MappedFile weights = {
        .path = "/nowhere/model.bin", .bytes = (const void *)numbers, .size = sizeof numbers};
    ReadNet read = {.program = program_new()};
    assert_non_null(read.program);
    read.status =
        openvino_read_model(&model, &weights, inputs ? inputs : &none, read.program, &read.error);
    if (read.status == FERRY_OK) {
        assert_ok(program_verify(read.program, "reading", &read.error), &read.error);
        program_print(&read.text, read.program);
    }
    return read;
}

static void read_free(ReadNet *read) {
    buffer_free(&read->text);
    program_free(read->program);
}

static ReadNet read_net(NetText *net, const OpenvinoInputs *inputs) {
    Buffer text = net_text(net);
    ReadNet read = read_text(buffer_string(&text), text.length, inputs);
    buffer_free(&text);
    return read;
}

static void check_refused(ReadNet read, ferry_status status, const char *message) {
    assert_fails(read.status, status, &read.error, message);
    assert_string_equal(read.error.where, path);
    read_free(&read);
}

/* ---- what is understood ---- */

/* One layer between these, by number: */
enum { X, IDS, FLAG, IMAGE, ZERO, ONE, MINUS, PAIR, LAYER };

static NetText around(const char *type, int opset, const char *inputs, const char *attributes) {
    NetText net = {0};
    net_input(&net, "x", "f32", "?,4");
    net_input(&net, "ids", "i64", "2");
    net_input(&net, "flag", "boolean", "");
    net_input(&net, "image", "f32", "1,1,3,3");
    net_constant_at(&net, "i64", "", 0, 8);
    net_constant_at(&net, "i64", "1", 8, 8);
    net_constant_at(&net, "i64", "1", 16, 8);
    net_constant_at(&net, "i64", "2", 24, 16);
    assert_int_equal(net_layer(&net, type, opset, inputs, attributes), LAYER);
    net_result(&net, "y", LAYER);
    return net;
}

static void sizes_have_the_names_that_the_caller_knows(void **state) {
    (void)state;
    NetText net = around("Unsqueeze", 1, "0,5", "");
    const ferry_port port = {.name = "x", .dtype = FERRY_F32, .rank = 2, .shape = {"batch", "4"}};
    const OpenvinoInputs inputs = {&port, 1};
    ReadNet read = read_net(&net, &inputs);
    assert_ok(read.status, &read.error);
    assert_contains(buffer_string(&read.text), "x: %x : float32[batch, 4]");
    assert_contains(buffer_string(&read.text), "float32[batch, 1, 4]");
    read_free(&read);
}

static void bounds_of_sizes_are_kept(void **state) {
    (void)state;
    NetText net = {0};
    net_result(&net, "y", net_input(&net, "x", "f32", "2..,..8,1..3,5"));
    ReadNet read = read_net(&net, NULL);
    assert_ok(read.status, &read.error);
    assert_contains(buffer_string(&read.text), "x_dim_0 in [2, inf)");
    assert_contains(buffer_string(&read.text), "x_dim_1 in [0, 8]");
    assert_contains(buffer_string(&read.text), "x_dim_2 in [1, 3]");
    assert_contains(buffer_string(&read.text), "x_dim_2, 5]");
    read_free(&read);
}

/* A state is at the first run what its layer's input says; what it becomes is nobody's. */
static void a_state_is_what_it_is_at_the_first_run(void **state) {
    (void)state;
    NetText net = {0};
    const char *variable = "variable_id=\"s\" variable_type=\"f32\" variable_shape=\"?,4\"";
    net_input(&net, "x", "f32", "?,4");
    int before = net_layer(&net, "ReadValue", 6, "0", variable);
    assert_int_equal(before, 1);
    int sum = net_layer(&net, "Add", 1, "0,1", "");
    net_layer_named(&net, "assign", "Assign", 6, "2", "variable_id=\"s\"", 0);
    net_result(&net, "y", sum);
    ReadNet read = read_net(&net, NULL);
    assert_ok(read.status, &read.error);
    assert_contains(buffer_string(&read.text), "aten::add.Tensor(%x, %x)");
    read_free(&read);
}

/* Numbers made of the shapes of empty constants: x is repeated [3, 1] times. */
static void numbers_may_be_made_of_shapes(void **state) {
    (void)state;
    NetText net = {0};
    net_input(&net, "x", "f32", "?,4");
    net_constant_at(&net, "f32", "0,3,0,0,0,0,0,0,0,0,0", 0, 0);
    net_layer(&net, "ShapeOf", 3, "1", "output_type=\"i64\"");
    net_constant_at(&net, "i64", "1", 8, 8);
    net_constant_at(&net, "i64", "1", 32, 8);
    net_layer(&net, "StridedSlice", 1, "2,3,4,3", "begin_mask=\"0\" end_mask=\"0\"");
    net_layer(&net, "Concat", 1, "5,3", "axis=\"0\"");
    net_result(&net, "y", net_layer(&net, "Tile", 1, "0,6", ""));
    ReadNet read = read_net(&net, NULL);
    assert_ok(read.status, &read.error);
    assert_contains(buffer_string(&read.text), "y: %view : float32[3*x_dim_0, 4]");
    read_free(&read);
}

/* ---- what is refused ---- */

static void layers(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int opset;
        const char *inputs, *attributes;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"NoSuch", 3, "0", "", FERRY_UNSUPPORTED, "\"the layer\" (NoSuch-3): there is no support"},
        {"Gelu", 1, "0", "", FERRY_UNSUPPORTED, "the layer Gelu of opset1"},
        {"Constant", 1, "", "", FERRY_BAD_FORMAT, "no type \"Constant\"; expected \"Const\""},
        {"Add", 1, "0", "", FERRY_BAD_FORMAT, "input 1 is missing"},
        {"Add", 1, "0,0,0", "", FERRY_BAD_FORMAT, "at most 2 inputs, found 3"},
        {"Add", 1, "0,1", "", FERRY_BAD_FORMAT, "float32 and int64"},
        {"Add", 1, "0,0", "auto_broadcast=\"pdpd\"", FERRY_UNSUPPORTED, "only \"numpy\""},
        {"Add", 1, "0,0", "axis=\"1\"", FERRY_UNSUPPORTED, "the attribute \"axis\" is not"},
        {"Add", 1, "0,8", "", FERRY_BAD_FORMAT, "a cycle"},
        {"Concat", 1, "0,0", "", FERRY_BAD_FORMAT, "\"axis\" is missing"},
        {"Concat", 1, "0,0", "axis=\"one\"", FERRY_BAD_FORMAT, "\"axis\" is \"one\""},
        {"Concat", 1, "0,0", "axis=\"99999999999999999999\"", FERRY_BAD_FORMAT, "\"axis\" is"},
        {"SoftMax", 8, "0", "axis=\"2\"", FERRY_BAD_FORMAT, "axis 2 is outside"},
        {"Elu", 1, "0", "alpha=\"a\"", FERRY_BAD_FORMAT, "\"alpha\" is \"a\""},
        {"Convert", 1, "0", "destination_type=\"u4\"", FERRY_BAD_FORMAT, "\"u4\""},
        {"Transpose", 1, "0,5", "", FERRY_BAD_FORMAT, "expected 2 dimensions, found 1"},
        {"Transpose", 1, "0,1", "", FERRY_UNSUPPORTED, "must be constant"},
        {"Reshape", 1, "0,6", "", FERRY_BAD_FORMAT, "size 0 of the target is invalid"},
        {"Gather", 8, "0,5,7", "", FERRY_BAD_FORMAT, "expected one number as input 2, found 2"},
        {"Gather", 8, "0,5,4", "batch_dims=\"1\"", FERRY_UNSUPPORTED, "only \"0\""},
        {"MatMul", 1, "0,1", "", FERRY_UNSUPPORTED, "rank 2 and 1"},
        {"LogicalNot", 1, "0", "", FERRY_BAD_FORMAT, "expected bool, found float32"},
        {"ReduceLogicalOr", 1, "0,5", "", FERRY_BAD_FORMAT, "expected bool, found float32"},
        {"ReduceSum", 1, "0,7", "", FERRY_BAD_FORMAT, "axis 2 is outside"},
        {"MVN", 6, "3,5", "eps=\"0\"", FERRY_UNSUPPORTED, "the last dimensions"},
        {"Pad", 12, "0,7,6", "pad_mode=\"edge\"", FERRY_BAD_FORMAT, "expected 4 amounts"},
        {"Pad", 12, "0,7,7", "pad_mode=\"no\"", FERRY_UNSUPPORTED, "padding by \"no\""},
        {"MaxPool", 14, "3", "", FERRY_BAD_FORMAT, "\"kernel\" is missing"},
        {"MaxPool", 14, "3", "kernel=\"2,2\" rounding_type=\"ceil\"", FERRY_UNSUPPORTED,
         "\"ceil\""},
        {"MaxPool", 14, "3", "kernel=\"2,2\" strides=\"1,1\" pads_begin=\"1\" pads_end=\"1,1\"",
         FERRY_BAD_FORMAT, "\"pads_begin\" and \"pads_end\""},
        {"GroupConvolution", 1, "3,3", "strides=\"1,1\"", FERRY_BAD_FORMAT, "the weight"},
        {"Interpolate", 11, "3,7,7", "mode=\"linear\"", FERRY_UNSUPPORTED, "(linear, half_pixel"},
        {"ReadValue", 6, "0", "", FERRY_BAD_FORMAT, "\"variable_id\" is missing"},
        {"ReadValue", 6, "", "variable_id=\"s\" variable_shape=\"?\" variable_type=\"f32\"",
         FERRY_UNSUPPORTED, "a state without a first value"},
        {"StridedSlice", 1, "0,5,5,5", "begin_mask=\"0\" end_mask=\"0\"", FERRY_UNSUPPORTED,
         "no constant vector"},
        {"Range", 4, "0,4,4", "output_type=\"f32\"", FERRY_UNSUPPORTED, "whole numbers"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        NetText net = around(cases[i].type, cases[i].opset, cases[i].inputs, cases[i].attributes);
        check_refused(read_net(&net, NULL), cases[i].status, cases[i].message);
    }
}

static void constants(void **state) {
    (void)state;
    static const struct {
        const char *attributes;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"", FERRY_BAD_FORMAT, "expected an element_type"},
        {"element_type=\"f31\"", FERRY_BAD_FORMAT, "found \"f31\""},
        {"element_type=\"f32\"", FERRY_BAD_FORMAT, "\"shape\" is missing"},
        {"element_type=\"f32\" shape=\"2,\"", FERRY_BAD_FORMAT, "found \"2,\""},
        {"element_type=\"f32\" shape=\"-2\"", FERRY_BAD_FORMAT, "found \"-2\""},
        {"element_type=\"f32\" shape=\"2 2\"", FERRY_BAD_FORMAT, "found \"2 2\""},
        {"element_type=\"f32\" shape=\"2\"", FERRY_BAD_FORMAT, "a number as \"offset\""},
        {"element_type=\"f32\" shape=\"2\" offset=\"0\"", FERRY_BAD_FORMAT, "a number as \"size\""},
        {"element_type=\"f32\" shape=\"2\" offset=\"-1\" size=\"8\"", FERRY_BAD_FORMAT, "\"-1\""},
        {"element_type=\"f32\" shape=\"2\" offset=\"0\" size=\"7\"", FERRY_BAD_FORMAT,
         "expected a size of 8 bytes, found 7"},
        {"element_type=\"f32\" shape=\"2\" offset=\"68\" size=\"8\"", FERRY_BAD_FORMAT,
         "8 bytes at offset 68 are not in the weights, which have 72"},
        {"element_type=\"f32\" shape=\"2\" offset=\"9223372036854775807\" size=\"8\"",
         FERRY_BAD_FORMAT, "are not in the weights"},
        {"element_type=\"f32\" shape=\"4294967296,4294967296,4294967296\" offset=\"0\" size=\"8\"",
         FERRY_BAD_FORMAT, "absurdly large"},
        {"element_type=\"u4\" shape=\"3\" offset=\"0\" size=\"2\"", FERRY_UNSUPPORTED,
         "the element type \"u4\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        NetText net = {0};
        net_result(&net, "y", net_layer_named(&net, "c", "Const", 1, "", cases[i].attributes, 1));
        check_refused(read_net(&net, NULL), cases[i].status, cases[i].message);
    }
}

/* The document between the tags of <net>. */
static void check_document(const char *version, const char *content, ferry_status status,
                           const char *message) {
    Buffer text = {0};
    buffer_format(&text, "<net name=\"n\" version=\"%s\">%s</net>", version, content);
    check_refused(read_text(buffer_string(&text), text.length, NULL), status, message);
    buffer_free(&text);
}

#define PARAMETER                                                                                  \
    "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data shape=\"2\" "          \
    "element_type=\"f32\"/><output><port id=\"0\" precision=\"FP32\"/></output></layer>"
#define RESULT                                                                                     \
    "<layer id=\"1\" name=\"y\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/>"        \
    "</input></layer>"
#define EDGE(from, from_port, to, to_port)                                                         \
    "<edge from-layer=\"" from "\" from-port=\"" from_port "\" to-layer=\"" to                     \
    "\" to-port=\"" to_port "\"/>"

static void structure(void **state) {
    (void)state;
    static const char good[] =
        "<layers>" PARAMETER RESULT "</layers><edges>" EDGE("0", "0", "1", "0") "</edges>";
    Buffer text = {0};
    buffer_format(&text, "<net version=\"11\">%s</net>", good);
    ReadNet read = read_text(buffer_string(&text), text.length, NULL);
    assert_ok(read.status, &read.error);
    read_free(&read);
    buffer_free(&text);
    check_document("12", good, FERRY_UNSUPPORTED, "version 10 or 11 of the IR, found 12");
    check_document("11", "", FERRY_BAD_FORMAT, "expected layers, found none");
    check_document("11", "<layers>" PARAMETER "</layers>", FERRY_BAD_FORMAT, "has no Result");
    check_document("11", "<layers>" PARAMETER RESULT "</layers>", FERRY_BAD_FORMAT,
                   "no edge goes to input 0");
    check_document("11", "<layers>" PARAMETER PARAMETER "</layers>", FERRY_BAD_FORMAT,
                   "two layers have the id 0");
    check_document("11",
                   "<layers>" PARAMETER RESULT "</layers><edges>" EDGE("0", "0", "1", "0")
                       EDGE("0", "0", "1", "0") "</edges>",
                   FERRY_BAD_FORMAT, "two edges go to input 0");
    check_document(
        "11", "<layers>" PARAMETER RESULT "</layers><edges>" EDGE("7", "0", "1", "0") "</edges>",
        FERRY_BAD_FORMAT, "layer 7, which is not there");
    check_document(
        "11", "<layers>" PARAMETER RESULT "</layers><edges>" EDGE("0", "3", "1", "0") "</edges>",
        FERRY_BAD_FORMAT, "output 3, which is not there");
    check_document(
        "11", "<layers>" PARAMETER RESULT "</layers><edges>" EDGE("0", "0", "1", "4") "</edges>",
        FERRY_BAD_FORMAT, "input 4, which is not there");
    check_document("11", "<layers><layer id=\"0\" type=\"T\" version=\"opset1\"/></layers>",
                   FERRY_BAD_FORMAT, "\"name\" is missing");
    check_document("11", "<layers><layer id=\"0\" name=\"a\" version=\"opset1\"/></layers>",
                   FERRY_BAD_FORMAT, "\"type\" is missing");
    check_document("11", "<layers><layer name=\"a\" type=\"T\" version=\"opset1\"/></layers>",
                   FERRY_BAD_FORMAT, "a number as \"id\"");
    check_document("11", "<layers><layer id=\"0\" name=\"a\" type=\"T\"/></layers>",
                   FERRY_BAD_FORMAT, "\"version\" is missing");
    check_document("11",
                   "<layers><layer id=\"0\" name=\"a\" type=\"T\" version=\"mine\"/></layers>",
                   FERRY_UNSUPPORTED, "found \"mine\"");
    check_document("11",
                   "<layers><layer id=\"0\" name=\"a\" type=\"T\" version=\"opset1\"><output>"
                   "<port id=\"0\" precision=\"F32\"/></output></layer></layers>",
                   FERRY_BAD_FORMAT, "a precision such as \"FP32\", found \"F32\"");
}

static void documents(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"", "not valid XML"},
        {"<net", "not valid XML: line 1"},
        {"<net></layers>", "mismatched tag"},
        {"<a/>", "expected an OpenVINO model with <net>, found <a>"},
        {"<net a=\"1\" a=\"2\"/>", "duplicate attribute"},
        {"<!DOCTYPE net [<!ENTITY a \"b\">]><net name=\"&a;\"/>", "document types"},
        {"<!DOCTYPE net SYSTEM \"file:///etc/passwd\"><net/>", "document types"},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        check_refused(read_text(texts[i][0], strlen(texts[i][0]), NULL), FERRY_BAD_FORMAT,
                      texts[i][1]);
    }
    Buffer deep = {0};
    for (int i = 0; i < 100; i++) buffer_text(&deep, "<net>");
    check_refused(read_text(buffer_string(&deep), deep.length, NULL), FERRY_BAD_FORMAT,
                  "nested more than 64 deep");
    buffer_free(&deep);
}

/* A file that is cut off anywhere, or has a wrong byte, is refused or means something. */
static void damaged_bytes(void **state) {
    (void)state;
    NetText net = around("Concat", 1, "0,0", "axis=\"1\"");
    Buffer text = net_text(&net);
    for (size_t length = 0; length < text.length - 1; length += 7) {
        ReadNet read = read_text(buffer_string(&text), length, NULL);
        assert_int_equal(read.status, FERRY_BAD_FORMAT);
        read_free(&read);
    }
    for (size_t i = 0; i < text.length; i += 3) {
        unsigned char byte = text.bytes[i];
        text.bytes[i] = byte ^ 5;
        ReadNet read = read_text(buffer_string(&text), text.length, NULL);
        assert_true(read.status == FERRY_OK || read.error.message[0]);
        read_free(&read);
        text.bytes[i] = byte;
    }
    buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_the_names_that_the_caller_knows),
        cmocka_unit_test(bounds_of_sizes_are_kept),
        cmocka_unit_test(a_state_is_what_it_is_at_the_first_run),
        cmocka_unit_test(numbers_may_be_made_of_shapes),
        cmocka_unit_test(layers),
        cmocka_unit_test(constants),
        cmocka_unit_test(structure),
        cmocka_unit_test(documents),
        cmocka_unit_test(damaged_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
