/* The file format below the graph: strings, repeated numbers, NodeProto and AttributeProto. */
#include "source/onnx/import.h"

#include <string.h>

/* ---- failures ---- */

bool import_fail(Import *im, ferry_status status, const char *format, ...) {
    if (!import_ok(im)) return false;
    const OnnxNode *node = im->node;
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(&im->arena, format, args);
    va_end(args);
    im->b.status = status;
    im->told = true;
    if (node)
        error_set(&im->problem, status, im->model->path, "node \"%s\" (%s): %s", node->name,
                  node->op_type, message);
    else
        error_set(&im->problem, status, im->model->path, "%s", message);
    return false;
}

bool import_memory(Import *im) {
    return import_fail(im, FERRY_OUT_OF_MEMORY, "out of memory");
}

static bool malformed(Import *im) {
    return import_bad(im, "not a valid ONNX model: a message is cut off or malformed");
}

/* ---- strings and numbers ---- */

const char *import_text(Import *im, const ProtoField *field) {
    if (field->wire != 2) return malformed(im), "";
    if (field->length && memchr(field->bytes, 0, field->length)) {
        import_bad(im, "a name or string has a zero byte in it");
        return "";
    }
    return arena_string_n(&im->arena, (const char *)field->bytes, field->length);
}

static bool next_number(ProtoReader *reader, uint32_t wire, uint64_t *value) {
    size_t size = wire == 1 ? 8 : 4;
    if (wire == 0) return reader->next < reader->end && proto_varint(reader, value);
    return reader->next < reader->end && proto_fixed(reader, size, value);
}

/* Walk over the numbers; `out` NULL: only count them. */
static bool walk_numbers(ProtoReader message, uint32_t field_number, uint32_t wire, uint64_t *out,
                         size_t *count) {
    ProtoField field;
    uint64_t value;
    *count = 0;
    while (proto_next(&message, &field)) {
        if (field.number != field_number) continue;
        if (field.wire == wire) {
            if (out) out[*count] = field.value;
            ++*count;
        } else if (field.wire == 2) {
            ProtoReader packed = proto_reader(field.bytes, field.length);
            for (; next_number(&packed, wire, &value); ++*count) {
                if (out) out[*count] = value;
            }
            if (packed.failed) return false;
        } else {
            return false;
        }
    }
    return !message.failed;
}

bool import_numbers(Import *im, ProtoReader message, uint32_t field_number, uint32_t wire,
                    uint64_t **out, size_t *count) {
    *out = NULL;
    if (!walk_numbers(message, field_number, wire, NULL, count)) return malformed(im);
    *out = ARENA_ARRAY(&im->arena, uint64_t, *count);
    if (!*out) return import_memory(im);
    return walk_numbers(message, field_number, wire, *out, count);
}

/* ---- attributes ---- */

static void take_attr_field(Import *im, const ProtoField *field, OnnxAttr *attr) {
    uint32_t bits = (uint32_t)field->value;
    float number;
    memcpy(&number, &bits, sizeof bits);
    switch (field->number) {
    case ATTRIBUTE_NAME: attr->name = import_text(im, field); break;
    case ATTRIBUTE_F: attr->number = (double)number; break;
    case ATTRIBUTE_I: attr->integer = (int64_t)field->value; break;
    case ATTRIBUTE_S: attr->string = import_text(im, field); break;
    case ATTRIBUTE_T:
        if (field->wire != 2) malformed(im);
        attr->tensor = proto_reader(field->bytes, field->length);
        break;
    case ATTRIBUTE_TYPE:
        if (field->value > INT32_MAX) malformed(im);
        attr->kind = (OnnxAttrKind)(uint32_t)field->value;
        break;
    case ATTRIBUTE_REF: import_unsupported(im, "an attribute refers to one of a function"); break;
    default: break;
    }
}

static void parse_attr(Import *im, ProtoReader message, OnnxAttr *attr) {
    ProtoField field;
    uint64_t *list = NULL;
    *attr = (OnnxAttr){.name = "", .string = "", .message = message};
    while (import_ok(im) && proto_next(&message, &field)) take_attr_field(im, &field, attr);
    if (message.failed) malformed(im);
    if (attr->kind == ONNX_INTS)
        import_numbers(im, attr->message, ATTRIBUTE_INTS, 0, &list, &attr->count);
    if (attr->kind == ONNX_FLOATS)
        import_numbers(im, attr->message, ATTRIBUTE_FLOATS, 5, &list, &attr->count);
    attr->list = list;
}

const OnnxAttr *import_attr(Import *im, const OnnxNode *node, const char *name, OnnxAttrKind kind) {
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const OnnxAttr *attr = &node->attrs[i];
        if (strcmp(attr->name, name) != 0) continue;
        if (attr->kind == kind) return attr;
        import_bad(im, "the attribute \"%s\" has type %d, expected %d", name, (int)attr->kind,
                   (int)kind);
        return NULL;
    }
    return NULL;
}

int64_t import_int(Import *im, const OnnxNode *node, const char *name, int64_t otherwise) {
    const OnnxAttr *attr = import_attr(im, node, name, ONNX_INT);
    return attr ? attr->integer : otherwise;
}

double import_float(Import *im, const OnnxNode *node, const char *name, double otherwise) {
    const OnnxAttr *attr = import_attr(im, node, name, ONNX_FLOAT);
    return attr ? attr->number : otherwise;
}

const char *import_string(Import *im, const OnnxNode *node, const char *name,
                          const char *otherwise) {
    const OnnxAttr *attr = import_attr(im, node, name, ONNX_STRING);
    return attr ? attr->string : otherwise;
}

bool import_require_int(Import *im, const OnnxNode *node, const char *name, int64_t value) {
    int64_t found = import_int(im, node, name, value);
    if (found == value) return true;
    return import_unsupported(im, "the attribute \"%s\" is %lld; only %lld is supported", name,
                              (long long)found, (long long)value);
}

/* ---- nodes ---- */

enum { NODE_FIELDS = NODE_DOMAIN + 1 };

static void take_node_field(Import *im, const ProtoField *field, OnnxNode *node) {
    switch (field->number) {
    case NODE_INPUT: node->inputs[node->input_count++].text = import_text(im, field); break;
    case NODE_OUTPUT: node->outputs[node->output_count++].text = import_text(im, field); break;
    case NODE_NAME: node->name = import_text(im, field); break;
    case NODE_OP_TYPE: node->op_type = import_text(im, field); break;
    case NODE_DOMAIN: node->domain = import_text(im, field); break;
    case NODE_ATTRIBUTE:
        if (field->wire != 2) malformed(im);
        if (!import_ok(im)) break;
        parse_attr(im, proto_reader(field->bytes, field->length), &node->attrs[node->attr_count++]);
        break;
    default: break;
    }
}

/* What the inputs' names stand for; "" is an absent one. */
static bool resolve_inputs(Import *im, OnnxNode *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        OnnxName *input = &node->inputs[i];
        if (!*input->text) continue;
        input->value = map_find(&im->values, input->text);
        if (input->value) continue;
        return import_bad(im, "reads \"%s\", which no input, initializer or earlier node is",
                          input->text);
    }
    return true;
}

bool import_parse_node(Import *im, ProtoReader message, OnnxNode *node) {
    ProtoField field;
    ProtoReader ahead = message;
    size_t counts[NODE_FIELDS] = {0};
    *node = (OnnxNode){.name = "", .op_type = "", .domain = ""};
    while (proto_next(&ahead, &field)) {
        if (field.number < NODE_FIELDS) counts[field.number]++;
    }
    if (ahead.failed) return malformed(im);
    node->inputs = ARENA_ARRAY(&im->arena, OnnxName, counts[NODE_INPUT]);
    node->outputs = ARENA_ARRAY(&im->arena, OnnxName, counts[NODE_OUTPUT]);
    node->attrs = ARENA_ARRAY(&im->arena, OnnxAttr, counts[NODE_ATTRIBUTE]);
    if (!node->inputs || !node->outputs || !node->attrs) return import_memory(im);
    while (import_ok(im) && proto_next(&message, &field)) take_node_field(im, &field, node);
    if (!import_ok(im)) return false;
    im->node = node;
    return resolve_inputs(im, node);
}
