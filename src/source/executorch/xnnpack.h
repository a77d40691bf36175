/* Reading the graph of an XNNPACK delegate. */
#ifndef SOURCE_EXECUTORCH_XNNPACK_H
#define SOURCE_EXECUTORCH_XNNPACK_H

#include "source/executorch/reader.h"

/* A value of the graph. */
typedef struct XnnValue {
    Value *value; /* NULL: not made yet */
    ferry_dtype dtype;
    uint32_t external; /* the argument of the call that takes it; UINT32_MAX: none */
} XnnValue;

typedef struct XnnGraph {
    Reader *r;
    const PteCall *call;
    FlatReader buffer;
    FlatVector nodes, values, data;
    XnnValue *table; /* by the number of the value */
    uint32_t count;
    bool clamped; /* what the node at hand makes, to a range */
    double low, high;
} XnnGraph;

/* A value that a node reads, by its number; the poison value after a failure. */
Value *xnn_read(XnnGraph *x, uint64_t id);

/* What a node makes, before it is clamped. */
void xnn_give(XnnGraph *x, uint64_t id, Value *value);

/* xnnpack_nodes.c: add the operations of a node. */
void xnn_read_node(XnnGraph *x, uint32_t type, const FlatTable *node, const FlatTable *range);

#endif
