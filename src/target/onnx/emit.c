#include "target/onnx/emit.h"
#include "base/dtype.h"
#include "base/error.h"
#include "format/protobuf.h"
#include "graph/infer.h"

#include <string.h>

ferry_status onnx_fail(Onnx *o, ferry_status status, const char *format, ...) {
    if (o->status != FERRY_OK) return o->status;
    const char *where = o->node && *o->node->scope ? o->node->scope : o->program->architecture;
    va_list args;
    va_start(args, format);
    o->status = error_set(o->error, status, where, "%s", arena_vformat(&o->arena, format, args));
    va_end(args);
    return o->status;
}

const char *onnx_name(const Onnx *o, const Value *value) {
    return o->names[value->id] ? o->names[value->id] : value->name;
}

void onnx_value_info(Buffer *buffer, uint32_t field, const char *name, ferry_dtype dtype,
                     uint32_t rank, const Sym *const *shape) {
    Buffer text = {0};
    size_t info = proto_open(buffer, field);
    proto_string(buffer, VALUE_INFO_NAME, name);
    size_t type = proto_open(buffer, VALUE_INFO_TYPE), tensor = proto_open(buffer, TYPE_TENSOR);
    proto_int(buffer, TYPE_TENSOR_ELEM, onnx_dtype(dtype));
    size_t dims = proto_open(buffer, TYPE_TENSOR_SHAPE);
    for (uint32_t d = 0; d < rank; d++) {
        size_t dim = proto_open(buffer, SHAPE_DIM);
        if (sym_is_const(shape[d])) {
            proto_int(buffer, DIM_VALUE, shape[d]->value);
        } else {
            text.length = 0;
            sym_print(&text, shape[d]);
            proto_string(buffer, DIM_PARAM, buffer_string(&text));
        }
        proto_close(buffer, dim);
    }
    proto_close(buffer, dims);
    proto_close(buffer, tensor);
    proto_close(buffer, type);
    proto_close(buffer, info);
    if (text.failed) buffer->failed = true;
    buffer_free(&text);
}

/* ---- nodes ---- */

static void append_attr(Buffer *nodes, const Attr *attr) {
    static const OnnxAttrKind types[] = {[ATTR_FLOAT] = ONNX_FLOAT,
                                         [ATTR_INT] = ONNX_INT,
                                         [ATTR_STRING] = ONNX_STRING,
                                         [ATTR_INTS] = ONNX_INTS};
    size_t mark = proto_open(nodes, NODE_ATTRIBUTE);
    proto_string(nodes, ATTRIBUTE_NAME, attr->name);
    switch (attr->kind) {
    case ATTR_INT: proto_int(nodes, ATTRIBUTE_I, attr->integer); break;
    case ATTR_FLOAT: proto_float(nodes, ATTRIBUTE_F, (float)attr->number); break;
    case ATTR_STRING: proto_string(nodes, ATTRIBUTE_S, attr->string); break;
    case ATTR_INTS:
        for (size_t i = 0; i < attr->count; i++)
            proto_int(nodes, ATTRIBUTE_INTS, attr->integers[i]);
        break;
    }
    proto_int(nodes, ATTRIBUTE_TYPE, types[attr->kind]);
    proto_close(nodes, mark);
}

void onnx_import(Onnx *o, const char *domain, int version) {
    for (size_t i = 0; i < o->domains.count; i++) {
        const OnnxDomain *known = &o->domains.items[i];
        if (strcmp(known->name, domain) != 0) continue;
        if (known->version != version)
            onnx_fail(o, FERRY_INVALID_ARGUMENT,
                      "the domain \"%s\" is wanted in versions %d and %d", domain, known->version,
                      version);
        return;
    }
    VEC_PUSH(&o->domains, (OnnxDomain){arena_string(&o->arena, domain), version});
}

/* "model.layers.0.mlp/silu", unique in the model: the module and what the node makes. */
static const char *node_name(Onnx *o, const char *output) {
    const char *scope = o->node ? o->node->scope : "";
    return *scope ? arena_format(&o->arena, "%s/%s", scope, output) : output;
}

void onnx_node(Onnx *o, const char *op_type, const char *const *inputs, uint32_t input_count,
               const char *const *outputs, uint32_t output_count, const Attr *attrs,
               uint32_t attr_count) {
    Buffer *nodes = &o->nodes;
    size_t mark = proto_open(nodes, GRAPH_NODE);
    for (uint32_t i = 0; i < input_count; i++) {
        proto_string(nodes, NODE_INPUT, inputs[i] ? inputs[i] : "");
    }
    for (uint32_t i = 0; i < output_count; i++) proto_string(nodes, NODE_OUTPUT, outputs[i]);
    proto_string(nodes, NODE_NAME, node_name(o, outputs[0]));
    const char *separator = strstr(op_type, "::");
    proto_string(nodes, NODE_OP_TYPE, separator ? separator + 2 : op_type);
    if (separator) proto_bytes(nodes, NODE_DOMAIN, op_type, (size_t)(separator - op_type));
    for (uint32_t i = 0; i < attr_count; i++) append_attr(nodes, &attrs[i]);
    proto_close(nodes, mark);
    o->node_count++;
}

void onnx_result(Onnx *o, const char *op_type, const char *const *inputs, uint32_t input_count,
                 const Attr *attrs, uint32_t attr_count) {
    const char *output = onnx_name(o, o->node->outputs[0]);
    onnx_node(o, op_type, inputs, input_count, &output, 1, attrs, attr_count);
}

const char *onnx_declare(Onnx *o, const char *what, ferry_dtype dtype, uint32_t rank,
                         const Sym *const *shape) {
    const char *stem = o->node ? onnx_name(o, o->node->outputs[0]) : "graph";
    const char *name = arena_format(&o->arena, "%s/%s_%u", stem, what, o->counter++);
    onnx_value_info(&o->value_info, GRAPH_VALUE_INFO, name, dtype, rank, shape);
    return name;
}

const char *onnx_helper(Onnx *o, const char *op_type, const char *const *inputs,
                        uint32_t input_count, const Attr *attrs, uint32_t attr_count,
                        ferry_dtype dtype, uint32_t rank, const Sym *const *shape) {
    const char *name = onnx_declare(o, op_type, dtype, rank, shape);
    onnx_node(o, op_type, inputs, input_count, &name, 1, attrs, attr_count);
    return name;
}

/* ---- constants ---- */

const char *onnx_constant(Onnx *o, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                          const void *bytes, size_t size) {
    Buffer key = {0};
    buffer_append(&key, &dtype, sizeof dtype);
    buffer_append(&key, &rank, sizeof rank);
    if (rank) buffer_append(&key, shape, rank * sizeof *shape);
    buffer_append(&key, bytes, size);
    const char *name = key.failed ? "" : map_get(&o->constants, key.bytes, key.length);
    if (!name) {
        name = arena_format(&o->arena, "constant/%zu", o->constants.count);
        void *copy = arena_copy(&o->arena, key.bytes, key.length);
        if (copy) map_set(&o->constants, copy, key.length, (void *)(uintptr_t)name);
        Buffer *out = &o->initializers;
        size_t mark = proto_open(out, GRAPH_INITIALIZER);
        for (uint32_t d = 0; d < rank; d++) proto_int(out, TENSOR_DIMS, shape[d]);
        proto_int(out, TENSOR_DATA_TYPE, onnx_dtype(dtype));
        proto_string(out, TENSOR_NAME, name);
        proto_bytes(out, TENSOR_RAW_DATA, bytes, size);
        proto_close(out, mark);
        o->initializer_count++;
    }
    if (key.failed) o->nodes.failed = true;
    buffer_free(&key);
    return name;
}

const char *onnx_ints(Onnx *o, const int64_t *values, size_t count) {
    const int64_t shape = (int64_t)count;
    return onnx_constant(o, FERRY_I64, 1, &shape, values, count * sizeof *values);
}

const char *onnx_int(Onnx *o, int64_t value) {
    return onnx_constant(o, FERRY_I64, 0, NULL, &value, sizeof value);
}

const char *onnx_number(Onnx *o, double value, ferry_dtype dtype) {
    unsigned char bytes[8];
    dtype_convert(FERRY_F64, &value, dtype, bytes, 1);
    return onnx_constant(o, dtype, 0, NULL, bytes, ferry_dtype_size(dtype));
}

const char *onnx_scalar(Onnx *o, const Arg *arg, ferry_dtype dtype) {
    unsigned char bytes[8];
    if (arg->kind == VALUE_FLOAT) return onnx_number(o, arg->number, dtype);
    if (arg->kind == VALUE_BOOL) return onnx_number(o, arg->boolean, dtype);
    if (!sym_is_const(arg->integer)) {
        const char *size = onnx_size_scalar(o, arg->integer);
        const Attr to = ATTR_I("to", onnx_dtype(dtype));
        return dtype == FERRY_I64 ? size : onnx_helper(o, "Cast", &size, 1, &to, 1, dtype, 0, NULL);
    }
    dtype_convert(FERRY_I64, &arg->integer->value, dtype, bytes, 1);
    return onnx_constant(o, dtype, 0, NULL, bytes, ferry_dtype_size(dtype));
}

/* ---- sizes ---- */

static const char *size_operation(Onnx *o, const char *op_type, const char *a, const char *b) {
    const Sym *one = sym_const(&o->program->symbols, 1);
    return onnx_helper(o, op_type, (const char *const[]){a, b}, 2, NULL, 0, FERRY_I64, 1, &one);
}

static const char *size_constant(Onnx *o, int64_t value) {
    return onnx_ints(o, &value, 1);
}

/* A symbol is read off the shape of an input that has it. */
static const char *symbol_size(Onnx *o, const Sym *sym) {
    const Value *input = o->dimensions[sym->value].value;
    if (!input) {
        onnx_fail(o, FERRY_UNSUPPORTED, "no input has the size \"%s\"", sym->name);
        return "";
    }
    int64_t dim = o->dimensions[sym->value].dim;
    const char *name = onnx_name(o, input);
    const Sym *one = sym_const(&o->program->symbols, 1);
    if (dim < 0) {
        const char *inputs[] = {name, onnx_ints(o, (const int64_t[]){1}, 1)};
        return onnx_helper(o, "Reshape", inputs, 2, NULL, 0, FERRY_I64, 1, &one);
    }
    const Attr attrs[] = {ATTR_I("start", dim), ATTR_I("end", dim + 1)};
    return onnx_helper(o, "Shape", &name, 1, attrs, 2, FERRY_I64, 1, &one);
}

static const char *compound_size(Onnx *o, const Sym *sym) {
    static const char *const operations[] = {
        [SYM_SUM] = "Add", [SYM_PRODUCT] = "Mul", [SYM_FLOORDIV] = "Div",
        [SYM_MOD] = "Mod", [SYM_MIN] = "Min",     [SYM_MAX] = "Max",
    };
    const char *operation = operations[sym->kind];
    const char *result = onnx_size(o, sym->operands[0]);
    if (sym->kind == SYM_FLOORDIV && sym->operands[0]->lower < 0) {
        /* Division truncates; Mod rounds down. */
        const char *rest = size_operation(o, "Mod", result, onnx_size(o, sym->operands[1]));
        result = size_operation(o, "Sub", result, rest);
    }
    for (uint32_t i = 1; i < sym->count; i++) {
        result = size_operation(o, operation, result, onnx_size(o, sym->operands[i]));
    }
    bool neutral = sym->kind == SYM_SUM ? sym->value == 0 : sym->value == 1;
    if ((sym->kind != SYM_SUM && sym->kind != SYM_PRODUCT) || neutral) return result;
    return size_operation(o, operation, result, size_constant(o, sym->value));
}

const char *onnx_size(Onnx *o, const Sym *sym) {
    if (sym_is_const(sym)) return size_constant(o, sym->value);
    const char *known = map_get(&o->sizes, &sym, sizeof sym);
    if (known) return known;
    const char *name = sym->kind == SYM_SYMBOL ? symbol_size(o, sym) : compound_size(o, sym);
    const Sym **key = arena_copy(&o->arena, &sym, sizeof sym);
    if (key) map_set(&o->sizes, key, sizeof sym, (void *)(uintptr_t)name);
    return name;
}

const char *onnx_size_scalar(Onnx *o, const Sym *sym) {
    if (sym_is_const(sym)) return onnx_int(o, sym->value);
    const char *inputs[] = {onnx_size(o, sym), onnx_ints(o, (const int64_t[]){0}, 1)};
    return onnx_helper(o, "Squeeze", inputs, 2, NULL, 0, FERRY_I64, 0, NULL);
}

const char *onnx_shape(Onnx *o, const Sym *const *shape, uint32_t rank) {
    int64_t values[INFER_MAX_OUTPUTS];
    const char *parts[INFER_MAX_OUTPUTS];
    bool constant = true;
    for (uint32_t d = 0; d < rank; d++) {
        values[d] = shape[d]->value;
        constant = constant && sym_is_const(shape[d]);
    }
    if (constant) return onnx_ints(o, values, rank);
    for (uint32_t d = 0; d < rank; d++) parts[d] = onnx_size(o, shape[d]);
    if (rank == 1) return parts[0];
    const Attr axis = ATTR_I("axis", 0);
    const Sym *length = sym_const(&o->program->symbols, rank);
    return onnx_helper(o, "Concat", parts, rank, &axis, 1, FERRY_I64, 1, &length);
}
