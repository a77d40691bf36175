/* A model from the outside in: its structure, inputs, the layers that the outputs need, and outputs. */
#include "base/dtype.h"
#include "base/error.h"
#include "source/openvino/reader.h"

#include <string.h>

/* ---- sizes ---- */

/* What the caller says about an input. */
static const ferry_port *find_port(const Reader *reader, const char *name) {
    for (size_t i = 0; i < reader->inputs->count; i++) {
        if (strcmp(reader->inputs->inputs[i].name, name) == 0) return &reader->inputs->inputs[i];
    }
    return NULL;
}

/* "?", "-1", "4", "1..8", "2..", "..8". */
static bool parse_dim(const char *text, uint64_t *lower, uint64_t *upper) {
    *lower = 0;
    *upper = SYM_UNBOUNDED;
    if (strcmp(text, "?") == 0 || strcmp(text, "-1") == 0) return true;
    bool bounded = net_number(&text, lower);
    if (bounded && !*text) return *upper = *lower, *lower != SYM_UNBOUNDED;
    if (strncmp(text, "..", 2) != 0) return false;
    text += 2;
    if (*text && !net_number(&text, upper)) return false;
    return !*text && *lower <= *upper;
}

/* The size at place `d` of an input; a fixed one, or a symbol. */
static const Sym *input_size(Reader *reader, const char *name, const ferry_port *port, uint32_t d,
                             const char *text) {
    Import *im = &reader->im;
    uint64_t lower, upper;
    if (!parse_dim(text, &lower, &upper)) {
        import_bad(im, "the size \"%s\" is no number and no range", text);
        return NULL;
    }
    if (lower == upper) return build_const(&im->b, (int64_t)lower);
    if (port) return import_size(im, port->shape[d]);
    return sym_symbol(&im->b.program->symbols, arena_format(&im->arena, "%s_dim_%u", name, d),
                      (int64_t)lower, (int64_t)upper);
}

/* ---- inputs ---- */

static uint32_t count_dims(const char *shape) {
    uint32_t count = *shape != 0;
    for (; *shape; shape++) count += *shape == ',';
    return count;
}

static void read_parameter(Reader *reader, NetLayer *layer) {
    Import *im = &reader->im;
    const char *type = xml_value(layer->data, "element_type");
    const char *shape = xml_value(layer->data, "shape");
    const Sym *sizes[FERRY_MAX_RANK];
    ferry_dtype dtype = type ? net_dtype(type) : FERRY_DTYPE_NONE;
    if (layer->output_count != 1 || layer->input_count)
        import_bad(im, "expected no input and one output");
    if (!dtype) import_unsupported(im, "the element type \"%s\"", type ? type : "");
    if (!shape) import_bad(im, "the attribute \"shape\" is missing");
    if (!import_ok(im)) return;
    uint32_t rank = count_dims(shape);
    const char *name = net_port_name(layer, &im->b.program->arena);
    if (rank > FERRY_MAX_RANK || strcmp(shape, "...") == 0) {
        import_unsupported(im, "the shape \"%s\": expected at most %d sizes", shape,
                           FERRY_MAX_RANK);
        return;
    }
    const ferry_port *port = find_port(reader, name);
    if (port && port->rank != rank) port = NULL;
    for (uint32_t d = 0; d < rank; d++) {
        const char *text = shape + strspn(shape, " ");
        size_t length = strcspn(text, ", ");
        sizes[d] = input_size(reader, name, port, d, arena_string_n(&im->arena, text, length));
        if (!sizes[d]) return;
        shape = text + length;
        shape += strspn(shape, " ");
        if (*shape == ',') shape++;
    }
    OnnxValue *input = ARENA_NEW(&im->arena, OnnxValue);
    layer->values = ARENA_ARRAY(&im->arena, OnnxValue *, 1);
    if (!input || !layer->values) {
        import_memory(im);
        return;
    }
    *input = (OnnxValue){.name = name, .value = build_input(&im->b, name, dtype, rank, sizes)};
    layer->values[0] = input;
}

/* ---- outputs ---- */

static void read_result(Reader *reader, NetLayer *layer) {
    Import *im = &reader->im;
    if (layer->input_count != 1) {
        import_bad(im, "expected one input");
        return;
    }
    const NetInput *input = &layer->inputs[0];
    OnnxValue *made = input->from->values ? input->from->values[input->output] : NULL;
    const char *name = net_port_name(layer, &im->b.program->arena);
    if (!made)
        import_unsupported(im, "its input is no tensor that can be made");
    else
        build_output(&im->b, name, known_tensor(im, made));
}

/* ---- the layers ---- */

static bool is_type(const NetLayer *layer, const char *type) {
    return strcmp(layer->type, type) == 0;
}

/* What the results need: the rest, such as the layers that keep a state, is not read. */
static void mark_needed(const Net *net) {
    for (size_t i = net->count; i-- > 0;) {
        NetLayer *layer = net->order[i];
        layer->needed |= is_type(layer, "Result");
        for (uint32_t k = 0; layer->needed && k < layer->input_count; k++) {
            layer->inputs[k].from->needed = true;
        }
    }
}

/* Call `read` for the layers of this type, as in the file, with their names for failures. */
static void each_rim(Reader *reader, const char *type,
                     void (*read)(Reader *reader, NetLayer *layer)) {
    for (size_t i = 0; import_ok(&reader->im) && i < reader->net.count; i++) {
        NetLayer *layer = &reader->net.layers[i];
        if (!is_type(layer, type)) continue;
        OnnxNode node = {.name = layer->name, .op_type = type};
        reader->im.node = &node;
        read(reader, layer);
        import_explain(&reader->im);
        reader->im.node = NULL;
    }
}

static void read_layers(Reader *reader) {
    Import *im = &reader->im;
    for (size_t i = 0; import_ok(im) && i < reader->net.count; i++) {
        NetLayer *layer = reader->net.order[i];
        if (!layer->needed || is_type(layer, "Parameter") || is_type(layer, "Result")) continue;
        if (is_type(layer, "Const"))
            reader_constant(reader, layer);
        else
            reader_layer(reader, layer);
    }
}

/* What ferry wrote about the model. */
static void read_info(Reader *reader, const XmlElement *root) {
    Program *program = reader->im.b.program;
    const XmlElement *info = xml_child(xml_child(root, "rt_info"), "ferry");
    const char *architecture = xml_value(xml_child(info, "architecture"), "value");
    const char *model_type = xml_value(xml_child(info, "model_type"), "value");
    if (architecture) program->architecture = arena_string(&program->arena, architecture);
    if (model_type) program->model_type = arena_string(&program->arena, model_type);
}

static void read_model(Reader *reader, const MappedFile *weights) {
    Import *im = &reader->im;
    im->b.status = net_parse(im->model, weights, &im->arena, &reader->net, &im->problem);
    im->told = !import_ok(im);
    if (!import_ok(im)) return;
    read_info(reader, reader->net.root);
    mark_needed(&reader->net);
    each_rim(reader, "Parameter", read_parameter);
    read_layers(reader);
    im->b.scope = "";
    each_rim(reader, "Result", read_result);
    if (import_ok(im) && im->b.program->outputs.count == 0)
        import_bad(im, "the model has no Result");
    import_name_ports(im);
    if (!import_ok(im)) return;
    program_sweep(im->b.program);
    im->b.program->dtype = program_float_dtype(im->b.program);
    if (im->arena.failed) import_memory(im);
}

ferry_status openvino_read_model(const MappedFile *model, const MappedFile *weights,
                                 const OpenvinoInputs *inputs, Program *program,
                                 ferry_error *error) {
    Reader reader = {.im = {.model = model}, .inputs = inputs};
    Import *im = &reader.im;
    im->b = build_start(program, &im->problem);
    read_model(&reader, weights);
    build_finish(&im->b);
    import_explain(im);
    if (!import_ok(im) && error) *error = im->problem;
    ferry_status status = im->b.status;
    arena_free(&im->arena);
    return status;
}

ferry_status openvino_read(const char *path, const OpenvinoInputs *inputs, MappedFiles *files,
                           Program *program, ferry_error *error) {
    const MappedFile *model, *weights;
    TRY(net_map(path, files, &model, &weights, error));
    return openvino_read_model(model, weights, inputs, program, error);
}

/* The names of the layers of a type. */
static bool read_names(const Net *net, const char *type, Arena *arena, const char ***names,
                       size_t *count) {
    *names = ARENA_ARRAY(arena, const char *, net->count);
    *count = 0;
    for (size_t i = 0; *names && i < net->count; i++) {
        if (!is_type(&net->layers[i], type)) continue;
        (*names)[(*count)++] = net_port_name(&net->layers[i], arena);
    }
    return !arena->failed;
}

ferry_status openvino_validate(const char *path, Arena *arena, OpenvinoNames *out,
                               ferry_error *error) {
    MappedFiles files = {0};
    Arena scratch = {0};
    const MappedFile *model, *weights;
    Net net;
    ferry_status status = net_map(path, &files, &model, &weights, error);
    if (status == FERRY_OK) status = net_parse(model, weights, &scratch, &net, error);
    if (status == FERRY_OK &&
        (!read_names(&net, "Parameter", arena, &out->inputs, &out->input_count) ||
         !read_names(&net, "Result", arena, &out->outputs, &out->output_count)))
        status = error_memory(error, path, 0);
    arena_free(&scratch);
    files_unmap(&files);
    return status;
}
