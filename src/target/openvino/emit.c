#include "target/openvino/emit.h"
#include "base/error.h"
#include "format/xml_write.h"

#include <inttypes.h>
#include <string.h>

ferry_status ir_fail(Ir *ir, ferry_status status, const char *format, ...) {
    if (ir->status != FERRY_OK) return ir->status;
    const char *where = ir->node && *ir->node->scope ? ir->node->scope : ir->program->architecture;
    va_list args;
    va_start(args, format);
    ir->status = error_set(ir->error, status, where, "%s", arena_vformat(&ir->arena, format, args));
    va_end(args);
    return ir->status;
}

/* ---- types ---- */

/* Names of element types, as an attribute and as a port's precision. */
static const struct {
    const char *type, *precision;
} type_names[FERRY_DTYPE_COUNT] = {
    [FERRY_BOOL] = {"boolean", "BOOL"},
    [FERRY_U8] = {"u8", "U8"},
    [FERRY_I8] = {"i8", "I8"},
    [FERRY_I16] = {"i16", "I16"},
    [FERRY_I32] = {"i32", "I32"},
    [FERRY_I64] = {"i64", "I64"},
    [FERRY_F16] = {"f16", "FP16"},
    [FERRY_BF16] = {"bf16", "BF16"},
    [FERRY_F32] = {"f32", "FP32"},
    [FERRY_F64] = {"f64", "FP64"},
    [FERRY_F8_E4M3] = {"f8e4m3", "F8E4M3"},
    [FERRY_F8_E5M2] = {"f8e5m2", "F8E5M2"},
};

const char *ir_element_type(ferry_dtype dtype) {
    return type_names[dtype].type;
}

/* The least that a size without an upper bound is told to have. A mask over the keys of a traced step has the
 * entries of a cache in it; as a state that is empty at first. */
static int64_t told_least(const Ir *ir, int64_t lower) {
    return lower > 1 && ir->program->states.count ? 1 : lower;
}

const char *ir_partial_shape(Ir *ir, uint32_t rank, const Sym *const *shape) {
    Buffer text = {0};
    for (uint32_t d = 0; d < rank; d++) {
        const Sym *size = shape[d];
        int64_t lower = size ? size->lower : 0;
        if (lower < 0) lower = 0;
        if (d) buffer_text(&text, ",");
        if (!size)
            buffer_text(&text, "?");
        else if (sym_is_const(size))
            buffer_format(&text, "%" PRId64, size->value);
        else if (size->upper < INT32_MAX) /* more than that is no bound */
            buffer_format(&text, "%" PRId64 "..%" PRId64, lower, size->upper);
        else if (lower > 0)
            buffer_format(&text, "%" PRId64 "..", told_least(ir, lower));
        else
            buffer_text(&text, "?");
    }
    const char *result = arena_string(&ir->arena, buffer_string(&text));
    if (text.failed) ir->layers.failed = true;
    buffer_free(&text);
    return result;
}

/* ---- layers ---- */

static void append_ints(Buffer *out, const int64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) buffer_format(out, "%s%" PRId64, i ? "," : "", values[i]);
}

static void append_attr(Buffer *out, const Attr *attr) {
    if (attr->kind == ATTR_STRING) {
        xml_attribute(out, attr->name, attr->string);
        return;
    }
    buffer_format(out, " %s=\"", attr->name);
    switch (attr->kind) {
    case ATTR_INT: buffer_format(out, "%" PRId64, attr->integer); break;
    case ATTR_FLOAT: buffer_format(out, "%.17g", attr->number); break;
    case ATTR_BOOL: buffer_text(out, attr->integer ? "true" : "false"); break;
    case ATTR_INTS: append_ints(out, attr->integers, attr->count); break;
    case ATTR_STRING: break;
    }
    buffer_text(out, "\"");
}

/* "model.layers.0.mlp/silu": the module and what the node makes. */
static const char *layer_name(Ir *ir, const char *type) {
    if (ir->label) return ir->label;
    if (!ir->node) return type;
    const char *scope = ir->node->scope, *output = ir->node->outputs[0]->name;
    return *scope ? arena_format(&ir->arena, "%s/%s", scope, output) : output;
}

/* A list of tensor names is separated by commas. */
static const char *escape_commas(Ir *ir, const char *name) {
    Buffer text = {0};
    if (!strchr(name, ',')) return name;
    for (; *name; name++) buffer_format(&text, *name == ',' ? "\\%c" : "%c", *name);
    name = arena_string(&ir->arena, buffer_string(&text));
    buffer_free(&text);
    return name;
}

/* What a layer has besides its operation. */
typedef struct Rim {
    const char *output_names; /* of a Result */
    const char *port_names;   /* of the output */
    bool decompression;
} Rim;

static IrPort append_layer(Ir *ir, const char *operation, const ferry_dtype *dtypes,
                           uint32_t output_count, const IrPort *inputs, size_t input_count,
                           const Attr *attrs, size_t attr_count, const Rim *rim) {
    Buffer *out = &ir->layers;
    uint32_t id = ++ir->layer_count;
    const char *set = strrchr(operation, '-') + 1;
    const char *type = arena_string_n(&ir->arena, operation, (size_t)(set - operation) - 1);
    buffer_format(out, "<layer id=\"%u\"", id);
    xml_attribute(out, "name", layer_name(ir, type));
    xml_attribute(out, "type", type);
    buffer_format(out, " version=\"opset%s\"", set);
    if (rim->output_names) xml_attribute(out, "output_names", escape_commas(ir, rim->output_names));
    buffer_text(out, ">");
    if (attr_count) {
        buffer_text(out, "<data");
        for (size_t i = 0; i < attr_count; i++) append_attr(out, &attrs[i]);
        buffer_text(out, "/>");
    }
    if (rim->decompression) {
        buffer_text(out, "<rt_info><attribute name=\"decompression\" version=\"0\"/></rt_info>");
    }
    if (input_count) buffer_text(out, "<input>");
    for (size_t i = 0; i < input_count; i++) {
        buffer_format(out, "<port id=\"%zu\"/>", i);
        buffer_format(
            &ir->edges,
            "<edge from-layer=\"%u\" from-port=\"%u\" to-layer=\"%u\" to-port=\"%zu\"/>\n",
            inputs[i].layer, inputs[i].port, id, i);
    }
    if (input_count) buffer_text(out, "</input>");
    if (output_count) buffer_text(out, "<output>");
    for (uint32_t i = 0; i < output_count; i++) {
        buffer_format(out, "<port id=\"%zu\" precision=\"%s\"", input_count + i,
                      type_names[dtypes[i]].precision);
        if (rim->port_names) xml_attribute(out, "names", escape_commas(ir, rim->port_names));
        buffer_text(out, "/>");
    }
    if (output_count) buffer_text(out, "</output>");
    buffer_text(out, "</layer>\n");
    return (IrPort){id, (uint32_t)input_count};
}

IrPort ir_layer_outputs(Ir *ir, const char *operation, const ferry_dtype *dtypes,
                        uint32_t output_count, const IrPort *inputs, size_t input_count,
                        const Attr *attrs, size_t attr_count) {
    return append_layer(ir, operation, dtypes, output_count, inputs, input_count, attrs, attr_count,
                        &(Rim){0});
}

IrPort ir_layer(Ir *ir, const char *operation, ferry_dtype dtype, const IrPort *inputs,
                size_t input_count, const Attr *attrs, size_t attr_count) {
    return ir_layer_outputs(ir, operation, &dtype, 1, inputs, input_count, attrs, attr_count);
}

IrPort ir_parameter(Ir *ir, const char *name, const Value *value) {
    ir->label = name;
    IrPort port =
        append_layer(ir, "Parameter-1", &value->dtype, 1, NULL, 0,
                     WITH(ATTR_S("shape", ir_partial_shape(ir, value->rank, value->shape)),
                          ATTR_S("element_type", ir_element_type(value->dtype))),
                     &(Rim){.port_names = name});
    ir->label = NULL;
    return port;
}

void ir_result(Ir *ir, const char *name, IrPort from) {
    ir->label = name;
    append_layer(ir, "Result-1", NULL, 0, &from, 1, NULL, 0, &(Rim){.output_names = name});
    ir->label = NULL;
}

IrPort ir_const(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t offset,
                uint64_t size) {
    return ir_layer(ir, "Const-1", dtype, NULL, 0,
                    WITH(ATTR_S("element_type", ir_element_type(dtype)),
                         ATTR_IS("shape", shape, rank), ATTR_I("offset", (int64_t)offset),
                         ATTR_I("size", (int64_t)size)));
}

IrPort ir_decompress(Ir *ir, IrPort from, ferry_dtype dtype) {
    return append_layer(ir, "Convert-1", &dtype, 1, &from, 1,
                        WITH(ATTR_S("destination_type", ir_element_type(dtype))),
                        &(Rim){.decompression = true});
}

IrPort ir_convert(Ir *ir, IrPort from, ferry_dtype dtype) {
    return ir_layer(ir, "Convert-1", dtype, FROM(from),
                    WITH(ATTR_S("destination_type", ir_element_type(dtype))));
}

IrPort ir_value(Ir *ir, const Value *value) {
    IrPort *port = &ir->ports[value->id];
    if (!port->layer && value->recipe) *port = ir_weight(ir, value);
    return *port;
}
