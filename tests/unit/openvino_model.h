/* Small OpenVINO models as text, for the tests of the reader and of the adapter. Included after check.h. */
#ifndef UNIT_OPENVINO_MODEL_H
#define UNIT_OPENVINO_MODEL_H

#include "base/buffer.h"

typedef struct NetText {
    Buffer layers, edges;
    int count;
} NetText;

/* A layer with `outputs` outputs that reads the first outputs of the layers in `inputs`, which are
 * their numbers: "0,1". `attributes` go into <data>. Returns its number. */
static inline int net_layer_named(NetText *net, const char *name, const char *type, int opset,
                                  const char *inputs, const char *attributes, int outputs) {
    int id = net->count++, port = 0;
    buffer_format(&net->layers, "<layer id=\"%d\" name=\"%s\" type=\"%s\" version=\"opset%d\"", id,
                  name, type, opset);
    if (strcmp(type, "Result") == 0) buffer_format(&net->layers, " output_names=\"%s\"", name);
    buffer_format(&net->layers, "><data %s/><input>", attributes);
    for (const char *next = inputs; *next; port++) {
        char *end;
        long from = strtol(next, &end, 10);
        buffer_format(&net->layers, "<port id=\"%d\"/>", port);
        buffer_format(&net->edges,
                      "<edge from-layer=\"%ld\" from-port=\"100\" to-layer=\"%d\" to-port=\"%d\"/>",
                      from, id, port);
        next = *end ? end + 1 : end;
    }
    buffer_text(&net->layers, "</input><output>");
    for (int i = 0; i < outputs; i++) {
        buffer_format(&net->layers, "<port id=\"%d\" precision=\"FP32\"", 100 + i);
        bool named = strcmp(type, "Parameter") == 0;
        if (named) buffer_format(&net->layers, " names=\"%s\"", name);
        buffer_text(&net->layers, "/>");
    }
    buffer_text(&net->layers, "</output></layer>\n");
    return id;
}

static inline int net_layer(NetText *net, const char *type, int opset, const char *inputs,
                            const char *attributes) {
    return net_layer_named(net, "the layer", type, opset, inputs, attributes, 1);
}

static inline int net_input(NetText *net, const char *name, const char *type, const char *shape) {
    char attributes[128];
    snprintf(attributes, sizeof attributes, "element_type=\"%s\" shape=\"%s\"", type, shape);
    return net_layer_named(net, name, "Parameter", 1, "", attributes, 1);
}

static inline int net_constant_at(NetText *net, const char *type, const char *shape, size_t offset,
                                  size_t size) {
    char attributes[128];
    snprintf(attributes, sizeof attributes,
             "element_type=\"%s\" shape=\"%s\" offset=\"%zu\" size=\"%zu\"", type, shape, offset,
             size);
    return net_layer_named(net, "constant", "Const", 1, "", attributes, 1);
}

static inline void net_result(NetText *net, const char *name, int from) {
    char input[16];
    snprintf(input, sizeof input, "%d", from);
    net_layer_named(net, name, "Result", 1, input, "", 0);
}

/* The document; the builder is used up. */
static inline Buffer net_text(NetText *net) {
    Buffer text = {0};
    buffer_text(&text, "<net name=\"test\" version=\"11\"><layers>\n");
    buffer_append(&text, net->layers.bytes, net->layers.length);
    buffer_text(&text, "</layers><edges>");
    if (net->edges.length) buffer_append(&text, net->edges.bytes, net->edges.length);
    buffer_text(&text, "</edges></net>\n");
    buffer_free(&net->layers);
    buffer_free(&net->edges);
    return text;
}

#endif
