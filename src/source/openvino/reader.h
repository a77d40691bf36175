/* What the parts of the reader of OpenVINO models share. */
#ifndef SOURCE_OPENVINO_READER_H
#define SOURCE_OPENVINO_READER_H

#include "source/onnx/import.h"
#include "source/openvino/net.h"
#include "source/openvino/openvino_read.h"

typedef struct Reader {
    Import im; /* its sticky status is the reader's */
    Net net;
    const OpenvinoInputs *inputs;
} Reader;

/* A row of the table of layers. As a node of ONNX it has the attributes that the words of
 * `rule.attributes` make:
 *
 *   NAME=TEXT|TEXT...       must have one of these values where it is present
 *   NAME:KIND               is handed on: i integer, b bool, f number, s text, l list of integers, t element
 *                           type (as an integer, the ferry_dtype)
 *   NAME>OTHER:KIND         under another name; !b for the opposite of a bool
 *   ...?VALUE               the value where it is absent; without one it stays absent
 *   +NAME=NUMBER            an integer that is always there */
typedef struct LayerRule {
    OnnxOperator rule; /* `since`: the operation set that introduced the layer's present meaning */
    const char *order; /* of the inputs as ONNX has them, one digit each; NULL: the same */
} LayerRule;

/* layer.c: read one layer, whose inputs are read. */
void reader_layer(Reader *reader, NetLayer *layer);

/* layers.c: the row of a layer; NULL when there is none. */
const LayerRule *reader_rule(const NetLayer *layer);

/* fold.c: a Const. */
void reader_constant(Reader *reader, NetLayer *layer);

/* fold.c: the layer at hand, when it computes a constant of small constants; false when it does not. */
bool reader_fold(Reader *reader, const NetLayer *layer, const OnnxNode *node);

/* ---- nodes told in other words (layer.c) ---- */

enum { RETOLD_INPUTS = 8, RETOLD_ATTRS = 16 };

typedef struct Retold {
    OnnxNode node;
    OnnxName inputs[RETOLD_INPUTS];
    OnnxAttr attrs[RETOLD_ATTRS];
} Retold;

/* The node with the inputs that `order` names, one digit each, and with its attributes, which may become
 * more. Outputs are the node's own. */
void reader_retell(const OnnxNode *node, const char *order, Retold *out);
void reader_replace(Retold *retold, uint32_t i, OnnxValue *value);
void reader_set_int(Retold *retold, const char *name, int64_t value);
void reader_set_ints(Import *im, Retold *retold, const char *name, const int64_t *items,
                     size_t count);
void reader_set_string(Retold *retold, const char *name, const char *value);

/* Convert output `i`, which is made, to the dtype that the attribute says; int64 without it. */
void reader_convert(Import *im, const OnnxNode *node, uint32_t i, const char *attribute);

/* The one whole number that input `i` is. */
bool reader_number(Import *im, const OnnxNode *node, uint32_t i, int64_t *out);

/* ---- layers, by file; the table is in layers.c ---- */

/* layers_elementwise.c */
void net_read_clamp(Import *im, const OnnxNode *node);
void net_read_convert(Import *im, const OnnxNode *node);
void net_read_divide(Import *im, const OnnxNode *node);
void net_read_gelu(Import *im, const OnnxNode *node);
void net_read_hsigmoid(Import *im, const OnnxNode *node);
void net_read_prelu(Import *im, const OnnxNode *node);
void net_read_swish(Import *im, const OnnxNode *node);
/* layers_shape.c */
void net_read_range(Import *im, const OnnxNode *node);
void net_read_shape_of(Import *im, const OnnxNode *node);
void net_read_split(Import *im, const OnnxNode *node);
void net_read_state(Import *im, const OnnxNode *node);
void net_read_strided_slice(Import *im, const OnnxNode *node);
void net_read_transpose(Import *im, const OnnxNode *node);
/* layers_select.c */
void net_read_gather(Import *im, const OnnxNode *node);
void net_read_nonzero(Import *im, const OnnxNode *node);
void net_read_reduce_logical(Import *im, const OnnxNode *node);
void net_read_scatter_elements(Import *im, const OnnxNode *node);
void net_read_scatter_nd(Import *im, const OnnxNode *node);
void net_read_scatter_update(Import *im, const OnnxNode *node);
void net_read_topk(Import *im, const OnnxNode *node);
/* layers_product.c */
void net_read_attention(Import *im, const OnnxNode *node);
void net_read_group_norm(Import *im, const OnnxNode *node);
void net_read_matmul(Import *im, const OnnxNode *node);
void net_read_mvn(Import *im, const OnnxNode *node);
/* layers_vision.c */
void net_read_convolution(Import *im, const OnnxNode *node);
void net_read_interpolate(Import *im, const OnnxNode *node);
void net_read_pad(Import *im, const OnnxNode *node);
void net_read_pool(Import *im, const OnnxNode *node);

#endif
