/* A model from the outside in: opsets, the graph's initializers, inputs, nodes in their order, and
 * outputs. The fields of a message may come in any order, so each kind is walked over by itself; what
 * is passed over is not read.
 *
 * A node may read only what came before it, so a cycle shows as a name that is not known. */
#include "source/onnx/onnx_read.h"
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Call `take` with every message in field `number`. */
static void each(Import *im, ProtoReader message, uint32_t number,
                 void (*take)(Import *im, ProtoReader message)) {
    ProtoField field;
    while (import_ok(im) && proto_next(&message, &field)) {
        if (field.number != number) continue;
        if (field.wire == 2)
            take(im, proto_reader(field.bytes, field.length));
        else
            import_bad(im, "field %u is no message", number);
    }
    if (message.failed) import_bad(im, "not a valid ONNX model: a message is cut off or malformed");
}

/* The only message in field `number`. */
static bool only(Import *im, ProtoReader message, uint32_t number, ProtoReader *out) {
    ProtoField field;
    uint32_t count = 0;
    while (proto_next(&message, &field)) {
        if (field.number != number || field.wire != 2) continue;
        *out = proto_reader(field.bytes, field.length);
        count++;
    }
    return count == 1 && !message.failed && import_ok(im);
}

static void refuse_function(Import *im, ProtoReader message) {
    (void)message;
    import_unsupported(im, "the model has functions of its own; inline them first");
}

static void refuse_sparse(Import *im, ProtoReader message) {
    (void)message;
    import_unsupported(im, "the model has sparse initializers");
}

/* ---- the model ---- */

static void take_opset(Import *im, ProtoReader message) {
    const char *domain = "";
    int64_t version = 0;
    ProtoField field;
    while (proto_next(&message, &field)) {
        if (field.number == OPSET_DOMAIN) domain = import_text(im, &field);
        if (field.number == OPSET_VERSION) version = (int64_t)field.value;
    }
    if (!*domain || strcmp(domain, "ai.onnx") == 0) im->opset = version;
}

static void take_metadata(Import *im, ProtoReader message) {
    Program *program = im->b.program;
    const char *key = "", *value = "";
    ProtoField field;
    while (proto_next(&message, &field)) {
        if (field.number == ENTRY_KEY) key = import_text(im, &field);
        if (field.number == ENTRY_VALUE) value = import_text(im, &field);
    }
    if (strcmp(key, "dtype") == 0) program->dtype = ferry_dtype_parse(value);
    value = arena_string(&program->arena, value);
    if (strcmp(key, "architecture") == 0) program->architecture = value;
    if (strcmp(key, "model_type") == 0) program->model_type = value;
}

/* ---- names ---- */

/* A name that nothing else may have. */
static void enter(Import *im, const char *name, OnnxValue *value) {
    if (!value || !import_ok(im)) return;
    if (!*name)
        import_bad(im, "an input or initializer has no name");
    else if (map_find(&im->values, name))
        import_bad(im, "there are two inputs or initializers called \"%s\"", name);
    else
        map_put(&im->values, name, value);
}

static void take_initializer(Import *im, ProtoReader message) {
    OnnxValue *value = import_parse_tensor(im, message);
    if (value) enter(im, value->name, value);
}

/* ---- inputs and outputs: ValueInfoProto ---- */

typedef struct Info {
    const char *name;
    ferry_dtype dtype;
    bool has_shape;
    ProtoReader shape;
    uint32_t rank;
} Info;

static uint32_t count_dims(ProtoReader shape) {
    ProtoField field;
    uint32_t count = 0;
    while (proto_next(&shape, &field)) count += field.number == SHAPE_DIM;
    return count;
}

static bool parse_info(Import *im, ProtoReader message, Info *info) {
    ProtoReader type, tensor = {0}, walk = message;
    ProtoField field;
    int64_t elem_type = 0;
    *info = (Info){.name = ""};
    while (proto_next(&walk, &field)) {
        if (field.number == VALUE_INFO_NAME) info->name = import_text(im, &field);
    }
    if (!only(im, message, VALUE_INFO_TYPE, &type) || !only(im, type, TYPE_TENSOR, &tensor)) {
        return import_unsupported(im, "the input or output \"%s\" is no tensor", info->name);
    }
    info->has_shape = only(im, tensor, TYPE_TENSOR_SHAPE, &info->shape);
    while (proto_next(&tensor, &field)) {
        if (field.number == TYPE_TENSOR_ELEM) elem_type = (int64_t)field.value;
    }
    info->dtype = onnx_dtype_of(elem_type);
    if (!info->dtype) {
        return import_unsupported(im, "the input or output \"%s\" has the ONNX element type %lld",
                                  info->name, (long long)elem_type);
    }
    if (info->has_shape) info->rank = count_dims(info->shape);
    if (info->rank <= FERRY_MAX_RANK) return import_ok(im);
    return import_unsupported(im, "the input or output \"%s\" has rank %u; at most %d is supported",
                              info->name, info->rank, FERRY_MAX_RANK);
}

/* A dimension as written; `*param` is "" for a number and for one without either. */
static bool parse_dim(Import *im, ProtoReader message, int64_t *value, const char **param) {
    ProtoField field;
    bool has_value = false;
    *param = "";
    while (proto_next(&message, &field)) {
        if (field.number == DIM_PARAM) *param = import_text(im, &field);
        if (field.number != DIM_VALUE) continue;
        *value = (int64_t)field.value;
        has_value = true;
    }
    return has_value;
}

static bool is_plain_name(const char *text) {
    const char *next = text;
    while (isalnum((unsigned char)*next) || *next == '_' || *next == '.') next++;
    return *text && !*next && !isdigit((unsigned char)*text);
}

/* Names of sizes come first, because expressions refer to those of any input. */
static void declare_symbols(Import *im, ProtoReader message) {
    Info info;
    ProtoField field;
    int64_t value;
    const char *param;
    if (!parse_info(im, message, &info) || map_find(&im->values, info.name)) return;
    while (proto_next(&info.shape, &field)) {
        if (field.number != SHAPE_DIM) continue;
        parse_dim(im, proto_reader(field.bytes, field.length), &value, &param);
        if (is_plain_name(param)) {
            sym_symbol(&im->b.program->symbols, param, 0, SYM_UNBOUNDED);
        }
    }
}

/* An expression of sizes that other inputs have; any other text is the name of a size. */
const Sym *import_size(Import *im, const char *text) {
    SymTable *symbols = &im->b.program->symbols;
    const Sym *size;
    if (sym_parse(symbols, text, false, &size, NULL) == FERRY_OK) return size;
    return sym_symbol(symbols, text, 0, SYM_UNBOUNDED);
}

static void take_input(Import *im, ProtoReader message) {
    Info info;
    ProtoField field;
    int64_t value;
    const char *param;
    const Sym *shape[FERRY_MAX_RANK];
    uint32_t rank = 0;
    if (!parse_info(im, message, &info)) return;
    const OnnxValue *known = map_find(&im->values, info.name);
    if (known && known->recipe)
        return; /* an initializer, listed again as an input with a default */
    if (!info.has_shape) import_unsupported(im, "the input \"%s\" has no rank", info.name);
    while (import_ok(im) && proto_next(&info.shape, &field)) {
        if (field.number != SHAPE_DIM) continue;
        if (parse_dim(im, proto_reader(field.bytes, field.length), &value, &param)) {
            if (value < 0 || value == SYM_UNBOUNDED) {
                import_bad(im, "the input \"%s\" has the size %lld", info.name, (long long)value);
            }
            if (import_ok(im)) shape[rank] = build_const(&im->b, value);
        } else {
            if (!*param) param = arena_format(&im->arena, "%s_dim_%u", info.name, rank);
            shape[rank] = import_size(im, param);
        }
        rank++;
    }
    if (!import_ok(im)) return;
    OnnxValue *input = ARENA_NEW(&im->arena, OnnxValue);
    if (!input) {
        import_memory(im);
        return;
    }
    *input = (OnnxValue){.name = info.name,
                         .value = build_input(&im->b, info.name, info.dtype, rank, shape)};
    enter(im, info.name, input);
}

static void take_output(Import *im, ProtoReader message) {
    Info info;
    if (!parse_info(im, message, &info)) return;
    OnnxValue *made = map_find(&im->values, info.name);
    if (!made) {
        import_bad(im, "the output \"%s\" is made by no node", info.name);
        return;
    }
    Value *value = known_tensor(im, made);
    if (!import_ok(im)) return;
    if (value->dtype != info.dtype || (info.has_shape && value->rank != info.rank)) {
        import_bad(im, "the output \"%s\" is declared as %s of rank %u, but is %s of rank %u",
                   info.name, ferry_dtype_name(info.dtype),
                   info.has_shape ? info.rank : value->rank, ferry_dtype_name(value->dtype),
                   value->rank);
        return;
    }
    build_output(&im->b, info.name, value);
}

/* ---- ports ---- */

static Port *find_port(Port *ports, size_t count, const char *prefix, const char *name) {
    size_t length = strlen(prefix);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(ports[i].name, prefix, length) == 0 &&
            strcmp(ports[i].name + length, name) == 0)
            return &ports[i];
    }
    return NULL;
}

/* An input and an output of one name are told apart by prefixes in a model, where names are unique;
 * as ports of a program they need none. */
static void name_twins(Program *program) {
    static const char prefix[] = "input.";
    for (size_t i = 0; i < program->inputs.count; i++) {
        Port *input = &program->inputs.items[i];
        if (strncmp(input->name, prefix, sizeof prefix - 1) != 0) continue;
        const char *name = input->name + sizeof prefix - 1;
        Port *output = find_port(program->outputs.items, program->outputs.count, "output.", name);
        bool taken = find_port(program->inputs.items, program->inputs.count, "", name) ||
                     find_port(program->outputs.items, program->outputs.count, "", name);
        if (!*name || !output || taken) continue;
        input->name = output->name = name;
    }
}

static void refuse_twins(Import *im) {
    const Program *program = im->b.program;
    Map names = {0};
    for (size_t i = 0; i < program->outputs.count && import_ok(im); i++) {
        const char *name = program->outputs.items[i].name;
        if (map_find(&names, name)) import_bad(im, "there are two outputs called \"%s\"", name);
        map_put(&names, name, program->outputs.items[i].value);
    }
    if (names.failed) import_memory(im);
    map_free(&names);
}

void import_name_ports(Import *im) {
    refuse_twins(im);
    if (import_ok(im)) name_twins(im->b.program);
}

/* ---- putting it together ---- */

static void read_graph(Import *im, ProtoReader graph) {
    each(im, graph, GRAPH_SPARSE_INITIALIZER, refuse_sparse);
    each(im, graph, GRAPH_INITIALIZER, take_initializer);
    each(im, graph, GRAPH_INPUT, declare_symbols);
    each(im, graph, GRAPH_INPUT, take_input);
    each(im, graph, GRAPH_NODE, import_node);
    im->b.scope = "";
    each(im, graph, GRAPH_OUTPUT, take_output);
    if (import_ok(im) && im->b.program->outputs.count == 0)
        import_bad(im, "the graph has no output");
    import_name_ports(im);
}

/* The dtype of the computation, when the model does not say: that of the first weight of floats. */
static void read_model(Import *im) {
    ProtoReader message = proto_reader(im->model->bytes, im->model->size), graph;
    if (!only(im, message, MODEL_GRAPH, &graph)) {
        import_bad(im, "not a valid ONNX model: expected a message with one graph");
        return;
    }
    each(im, message, MODEL_OPSET_IMPORT, take_opset);
    each(im, message, MODEL_METADATA_PROPS, take_metadata);
    each(im, message, MODEL_FUNCTIONS, refuse_function);
    if (im->opset < ONNX_READ_MIN_OPSET || im->opset > ONNX_READ_MAX_OPSET) {
        import_unsupported(im, "expected an opset from %d to %d, found %" PRId64,
                           ONNX_READ_MIN_OPSET, ONNX_READ_MAX_OPSET, im->opset);
    }
    read_graph(im, graph);
    if (!import_ok(im)) return;
    program_sweep(im->b.program);
    if (!im->b.program->dtype) im->b.program->dtype = program_float_dtype(im->b.program);
    if (im->arena.failed || im->values.failed || im->locations.failed) import_memory(im);
}

ferry_status onnx_read_model(const MappedFile *model, MappedFiles *files, Program *program,
                             ferry_error *error) {
    Import im = {.model = model, .files = files};
    im.b = build_start(program, &im.problem);
    read_model(&im);
    build_finish(&im.b);
    import_explain(&im);
    if (!import_ok(&im) && error) *error = im.problem;
    ferry_status status = im.b.status;
    map_free(&im.values);
    map_free(&im.locations);
    arena_free(&im.arena);
    return status;
}

ferry_status onnx_read(const char *path, MappedFiles *files, Program *program, ferry_error *error) {
    const MappedFile *model;
    TRY(files_map(files, path, &model, error));
    return onnx_read_model(model, files, program, error);
}
