/* Writing ONNX nodes, for plug-ins. */
#include "plugin/plugin.h"
#include "target/onnx/emit.h"

#include <string.h>

const char *ferry_onnx_input(ferry_onnx *onnx, const ferry_node *node, const char *name) {
    ferry_arg arg = ferry_node_arg(node, name);
    return arg.kind == FERRY_ARG_TENSOR ? onnx_name(onnx, arg.as.tensor) : NULL;
}

static Attr private_attr(const ferry_onnx_attr *attr) {
    switch (attr->kind) {
    case FERRY_ONNX_FLOAT: return ATTR_F(attr->name, attr->number);
    case FERRY_ONNX_STRING: return ATTR_S(attr->name, attr->string);
    case FERRY_ONNX_INTS: return ATTR_IS(attr->name, attr->integers, attr->count);
    case FERRY_ONNX_INT: break;
    }
    return ATTR_I(attr->name, attr->integer);
}

void ferry_onnx_emit(ferry_onnx *onnx, const ferry_node *node, const char *domain, int version,
                     const char *op_type, const char *const *inputs, size_t input_count,
                     const ferry_onnx_attr *attrs, size_t attr_count) {
    Attr *list = ARENA_ARRAY(&onnx->arena, Attr, attr_count);
    const char **results = ARENA_ARRAY(&onnx->arena, const char *, node->output_count);
    if (!list || !results) return;
    for (size_t i = 0; i < attr_count; i++) list[i] = private_attr(&attrs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        results[i] = onnx_name(onnx, node->outputs[i]);
    if (*domain) {
        onnx_import(onnx, domain, version);
        op_type = arena_format(&onnx->arena, "%s::%s", domain, op_type);
    }
    onnx_node(onnx, op_type, inputs, (uint32_t)input_count, results, node->output_count, list,
              (uint32_t)attr_count);
}
