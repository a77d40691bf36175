/* The numbers of onnx.proto (IR version 10) that are written or read: fields by message, and the
 * values of its enumerations. */
#ifndef FORMAT_ONNX_H
#define FORMAT_ONNX_H

#include <ferry/dtype.h>
#include <stdint.h>

enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_METADATA_PROPS = 14,
    MODEL_FUNCTIONS = 25,

    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,

    ENTRY_KEY = 1, /* StringStringEntryProto */
    ENTRY_VALUE = 2,

    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE_INITIALIZER = 15,

    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,

    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REF = 21,

    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT32_DATA = 5,
    TENSOR_INT64_DATA = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_DOUBLE_DATA = 10,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14,
    LOCATION_EXTERNAL = 1,

    VALUE_INFO_NAME = 1,
    VALUE_INFO_TYPE = 2,
    TYPE_TENSOR = 1,
    TYPE_TENSOR_ELEM = 1,
    TYPE_TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2,
};

/* AttributeProto.AttributeType, as far as attributes are written or read. */
typedef enum OnnxAttrKind {
    ONNX_FLOAT = 1,
    ONNX_INT = 2,
    ONNX_STRING = 3,
    ONNX_TENSOR = 4,
    ONNX_FLOATS = 6,
    ONNX_INTS = 7,
} OnnxAttrKind;

/* TensorProto.DataType of a dtype, and back: FERRY_DTYPE_NONE when there is none. */
int onnx_dtype(ferry_dtype dtype);
ferry_dtype onnx_dtype_of(int64_t number);

#endif
