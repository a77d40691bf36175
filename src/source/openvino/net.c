/* From the tree of the XML to layers that know whom they read. */
#include "source/openvino/net.h"
#include "base/error.h"
#include "base/map.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PORTS = 4096 };

ferry_status net_fail(const Net *net, const NetLayer *layer, ferry_status status,
                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(net->arena, format, args);
    va_end(args);
    if (!layer) return error_set(net->error, status, net->path, "%s", message);
    return error_set(net->error, status, net->path, "line %lu: layer \"%s\" (%s-%d): %s",
                     layer->element->line, layer->name ? layer->name : "",
                     layer->type ? layer->type : "", layer->opset, message);
}

/* ---- numbers ---- */

bool net_number(const char **text, uint64_t *out) {
    const char *next = *text;
    for (*out = 0; *next >= '0' && *next <= '9'; next++) {
        if (__builtin_mul_overflow(*out, 10u, out)) return false;
        if (__builtin_add_overflow(*out, (uint64_t)(*next - '0'), out)) return false;
    }
    bool found = next > *text && *out <= INT64_MAX;
    *text = next;
    return found;
}

/* An attribute that must be there and be a number. */
static ferry_status number(const Net *net, const NetLayer *layer, const XmlElement *element,
                           const char *name, uint64_t *out) {
    const char *text = xml_value(element, name), *end = text;
    if (text && net_number(&end, out) && !*end) return FERRY_OK;
    RETURN_BAD(net, layer, "line %lu: expected a number as \"%s\" of <%s>, found %s%s%s",
               element->line, name, element->name, text ? "\"" : "nothing", text ? text : "",
               text ? "\"" : "");
}

/* ---- layers ---- */

/* Types under the names of classes, which OpenVINO's reader takes and then fails on. */
static const char *const misspelled[][2] = {
    {"Constant", "Const"}, {"Relu", "ReLU"}, {"PRelu", "PReLU"}, {"Softmax", "SoftMax"}};

static ferry_status read_version(const Net *net, NetLayer *layer) {
    static const char prefix[] = "opset";
    const char *version = xml_value(layer->element, "version");
    const char *digits = version ? version + strlen(prefix) : "";
    uint64_t opset;
    if (!version) RETURN_BAD(net, layer, "the attribute \"version\" is missing");
    if (strncmp(version, prefix, strlen(prefix)) != 0 || !net_number(&digits, &opset) || *digits ||
        opset < 1 || opset > 99) {
        return net_fail(net, layer, FERRY_UNSUPPORTED,
                        "expected the version to be an operation set such as \"opset13\", found "
                        "\"%s\"",
                        version);
    }
    layer->opset = (int)opset;
    return FERRY_OK;
}

static size_t count_ports(const XmlElement *list) {
    size_t count = 0;
    for (const XmlElement *port = xml_child(list, "port"); port; port = xml_next(port, "port"))
        count++;
    return count;
}

/* Names that the runtime takes for the precision of a port. */
static bool is_precision(const char *text) {
    static const char *const names[] = {
        "FP32",   "FP16", "FP64",    "BF16",    "BOOL",       "BIN",    "I4",     "I8",
        "I16",    "I32",  "I64",     "U2",      "U3",         "U4",     "U6",     "U8",
        "U16",    "U32",  "U64",     "NF4",     "F8E4M3",     "F8E5M2", "F8E8M0", "F4E2M1",
        "STRING", "U1",   "dynamic", "DYNAMIC", "UNSPECIFIED"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], text) == 0) return true;
    }
    return false;
}

static ferry_status read_inputs(const Net *net, NetLayer *layer) {
    const XmlElement *list = xml_child(layer->element, "input");
    size_t count = count_ports(list);
    if (count > MAX_PORTS)
        RETURN_BAD(net, layer, "%zu inputs; at most %d are accepted", count, MAX_PORTS);
    layer->inputs = ARENA_ARRAY(net->arena, NetInput, count);
    if (!layer->inputs) return error_memory(net->error, net->path, 0);
    for (const XmlElement *port = xml_child(list, "port"); port; port = xml_next(port, "port")) {
        NetInput *input = &layer->inputs[layer->input_count];
        TRY(number(net, layer, port, "id", &input->id));
        for (uint32_t i = 0; i < layer->input_count; i++) {
            if (layer->inputs[i].id == input->id)
                RETURN_BAD(net, layer, "two inputs have the id %" PRIu64, input->id);
        }
        layer->input_count++;
    }
    return FERRY_OK;
}

static ferry_status read_outputs(const Net *net, NetLayer *layer) {
    const XmlElement *list = xml_child(layer->element, "output");
    size_t count = count_ports(list);
    if (count > MAX_PORTS)
        RETURN_BAD(net, layer, "%zu outputs; at most %d are accepted", count, MAX_PORTS);
    layer->outputs = ARENA_ARRAY(net->arena, NetOutput, count);
    if (!layer->outputs) return error_memory(net->error, net->path, 0);
    for (const XmlElement *port = xml_child(list, "port"); port; port = xml_next(port, "port")) {
        NetOutput *output = &layer->outputs[layer->output_count];
        const char *precision = xml_value(port, "precision");
        const char *names = xml_value(port, "names");
        TRY(number(net, layer, port, "id", &output->id));
        if (!precision || !is_precision(precision)) {
            RETURN_BAD(net, layer,
                       "output %" PRIu64 ": expected a precision such as \"FP32\", found \"%s\"",
                       output->id, precision ? precision : "");
        }
        for (uint32_t i = 0; i < layer->output_count; i++) {
            if (layer->outputs[i].id == output->id)
                RETURN_BAD(net, layer, "two outputs have the id %" PRIu64, output->id);
        }
        output->names = names ? names : "";
        layer->output_count++;
    }
    return FERRY_OK;
}

static ferry_status read_layer(const Net *net, const XmlElement *element, NetLayer *layer) {
    layer->element = element;
    layer->data = xml_child(element, "data");
    layer->name = xml_value(element, "name");
    layer->type = xml_value(element, "type");
    if (!layer->name) RETURN_BAD(net, layer, "the attribute \"name\" is missing");
    if (!layer->type || !*layer->type) RETURN_BAD(net, layer, "the attribute \"type\" is missing");
    TRY(number(net, layer, element, "id", &layer->id));
    TRY(read_version(net, layer));
    for (size_t i = 0; i < sizeof misspelled / sizeof *misspelled; i++) {
        if (strcmp(layer->type, misspelled[i][0]) != 0) continue;
        RETURN_BAD(net, layer, "there is no type \"%s\"; expected \"%s\"", layer->type,
                   misspelled[i][1]);
    }
    TRY(read_inputs(net, layer));
    return read_outputs(net, layer);
}

static ferry_status read_layers(Net *net, const XmlElement *list, Map *ids) {
    size_t count = 0, i = 0;
    for (const XmlElement *layer = xml_child(list, "layer"); layer;
         layer = xml_next(layer, "layer"))
        count++;
    if (count == 0) RETURN_BAD(net, NULL, "expected layers, found none");
    net->count = count;
    net->layers = ARENA_ARRAY(net->arena, NetLayer, count);
    net->order = ARENA_ARRAY(net->arena, NetLayer *, count);
    if (!net->layers || !net->order) return error_memory(net->error, net->path, 0);
    for (const XmlElement *element = xml_child(list, "layer"); element;
         element = xml_next(element, "layer")) {
        NetLayer *layer = &net->layers[i++];
        TRY(read_layer(net, element, layer));
        if (map_get(ids, &layer->id, sizeof layer->id))
            RETURN_BAD(net, layer, "two layers have the id %" PRIu64, layer->id);
        map_set(ids, &layer->id, sizeof layer->id, layer);
    }
    return ids->failed ? error_memory(net->error, net->path, 0) : FERRY_OK;
}

/* ---- edges ---- */

static ferry_status find_layer(const Net *net, const Map *ids, const XmlElement *edge,
                               const char *attribute, NetLayer **out) {
    uint64_t id;
    TRY(number(net, NULL, edge, attribute, &id));
    *out = map_get(ids, &id, sizeof id);
    if (*out) return FERRY_OK;
    RETURN_BAD(net, NULL, "line %lu: an edge goes to or from layer %" PRIu64 ", which is not there",
               edge->line, id);
}

static ferry_status read_edge(const Net *net, const Map *ids, const XmlElement *edge) {
    NetLayer *from, *to;
    NetInput *input = NULL;
    uint64_t from_port, to_port;
    uint32_t output = UINT32_MAX;
    TRY(find_layer(net, ids, edge, "from-layer", &from));
    TRY(find_layer(net, ids, edge, "to-layer", &to));
    TRY(number(net, NULL, edge, "from-port", &from_port));
    TRY(number(net, NULL, edge, "to-port", &to_port));
    for (uint32_t i = 0; i < from->output_count; i++) {
        if (from->outputs[i].id == from_port) output = i;
    }
    for (uint32_t i = 0; i < to->input_count; i++) {
        if (to->inputs[i].id == to_port) input = &to->inputs[i];
    }
    if (output == UINT32_MAX)
        RETURN_BAD(net, from, "line %lu: an edge comes from output %" PRIu64 ", which is not there",
                   edge->line, from_port);
    if (!input)
        RETURN_BAD(net, to, "line %lu: an edge goes to input %" PRIu64 ", which is not there",
                   edge->line, to_port);
    if (input->from) RETURN_BAD(net, to, "two edges go to input %" PRIu64, to_port);
    input->from = from;
    input->output = output;
    return FERRY_OK;
}

static ferry_status read_edges(const Net *net, const XmlElement *list, const Map *ids) {
    for (const XmlElement *edge = xml_child(list, "edge"); edge; edge = xml_next(edge, "edge")) {
        TRY(read_edge(net, ids, edge));
    }
    for (size_t i = 0; i < net->count; i++) {
        const NetLayer *layer = &net->layers[i];
        for (uint32_t k = 0; k < layer->input_count; k++) {
            if (!layer->inputs[k].from)
                RETURN_BAD(net, layer, "no edge goes to input %" PRIu64, layer->inputs[k].id);
        }
    }
    return FERRY_OK;
}

/* ---- order ---- */

typedef struct Step {
    NetLayer *layer;
    uint32_t next; /* input to follow */
} Step;

/* In the order of the file, as far as that has each layer after those that it reads. */
static ferry_status order_layers(Net *net) {
    Step *stack = ARENA_ARRAY(net->arena, Step, net->count);
    size_t depth, ordered = 0;
    if (!stack) return error_memory(net->error, net->path, 0);
    for (size_t i = 0; i < net->count; i++) {
        if (net->layers[i].entered) continue;
        stack[0] = (Step){.layer = &net->layers[i]};
        stack[0].layer->entered = true;
        for (depth = 1; depth;) {
            Step *step = &stack[depth - 1];
            if (step->next == step->layer->input_count) {
                step->layer->left = true;
                net->order[ordered++] = step->layer;
                depth--;
                continue;
            }
            NetLayer *from = step->layer->inputs[step->next++].from;
            if (from->left) continue;
            if (from->entered) RETURN_BAD(net, from, "the layer reads its own result: a cycle");
            from->entered = true;
            stack[depth++] = (Step){.layer = from};
        }
    }
    return FERRY_OK;
}

/* ---- names ---- */

/* The first of a list of tensor names, in which a comma of a name is escaped. */
static const char *first_name(const char *names, Arena *arena) {
    char *name = arena_copy(arena, names, strlen(names) + 1), *end = name;
    for (; name && *names && *names != ','; names++) {
        if (*names == '\\' && names[1] == ',') names++;
        *end++ = *names;
    }
    if (name) *end = 0;
    return name ? name : "";
}

const char *net_port_name(const NetLayer *layer, Arena *arena) {
    const char *names = xml_value(layer->element, "output_names");
    if (layer->output_count) names = layer->outputs[0].names;
    if (!names && layer->input_count) {
        names = layer->inputs[0].from->outputs[layer->inputs[0].output].names;
    }
    const char *name = first_name(names ? names : "", arena);
    return *name ? name : arena_string(arena, layer->name);
}

/* ---- the model ---- */

/* What OpenVINO's reader looks for without checking that it is there. */
static ferry_status check_layer(const Net *net, const NetLayer *layer) {
    NetConstant constant;
    bool has_variable = strcmp(layer->type, "ReadValue") == 0 || strcmp(layer->type, "Assign") == 0;
    if (has_variable && !xml_value(layer->data, "variable_id"))
        RETURN_BAD(net, layer, "the attribute \"variable_id\" is missing");
    if (strcmp(layer->type, "Const") != 0) return FERRY_OK;
    return net_constant(net, layer, &constant);
}

static ferry_status read_net(Net *net, const XmlElement *root, Map *ids) {
    const char *version = xml_value(root, "version");
    if (strcmp(root->name, "net") != 0)
        RETURN_BAD(net, NULL, "expected an OpenVINO model with <net>, found <%s>", root->name);
    if (!version || (strcmp(version, "10") != 0 && strcmp(version, "11") != 0)) {
        return net_fail(net, NULL, FERRY_UNSUPPORTED,
                        "expected version 10 or 11 of the IR, found %s",
                        version ? version : "none");
    }
    TRY(read_layers(net, xml_child(root, "layers"), ids));
    TRY(read_edges(net, xml_child(root, "edges"), ids));
    TRY(order_layers(net));
    for (size_t i = 0; i < net->count; i++) TRY(check_layer(net, &net->layers[i]));
    return FERRY_OK;
}

ferry_status net_parse(const MappedFile *model, const MappedFile *weights, Arena *arena, Net *out,
                       ferry_error *error) {
    const XmlElement *root;
    Map ids = {0};
    *out = (Net){.path = model->path, .weights = weights, .arena = arena, .error = error};
    TRY(xml_read(model->bytes, model->size, model->path, arena, &root, error));
    out->root = root;
    ferry_status status = read_net(out, root, &ids);
    map_free(&ids);
    if (status == FERRY_OK && arena->failed) status = error_memory(error, model->path, 0);
    return status;
}

ferry_status net_map(const char *path, MappedFiles *files, const MappedFile **model,
                     const MappedFile **weights, ferry_error *error) {
    const char *dot = strrchr(path_base(path), '.');
    size_t stem = dot ? (size_t)(dot - path) : strlen(path);
    const char *name = arena_format(&files->arena, "%.*s.bin", (int)stem, path);
    *weights = NULL;
    TRY(files_map(files, path, model, error));
    return path_exists(name) ? files_map(files, name, weights, error) : FERRY_OK;
}
