/* Giving parts of a program to XNNPACK: which nodes it takes, and the graph that a delegate is made of. */
#ifndef TARGET_EXECUTORCH_XNNPACK_H
#define TARGET_EXECUTORCH_XNNPACK_H

#include "format/flatbuffer.h"
#include "target/executorch/backend.h"

/* xnnpack_nodes.c: Does XNNPACK compute what the node says, to the last sign? */
bool xnnpack_has(Op op);
bool xnnpack_takes(const Node *node);

/* Are these nodes XNNPACK's once they are decomposed? */
bool xnnpack_decomposes(const Node *node);

/* A graph under construction. */
typedef struct Xnn {
    Pte *p;
    const Partition *partition;
    FlatBuilder b;
    VEC(FlatRef) nodes;
    VEC(FlatRef) values;
    VEC(FlatRef) data;    /* constants */
    VEC(PteValue) args;   /* of the call: what comes in and goes out */
    VEC(uint32_t) inputs; /* numbers of args */
    VEC(uint32_t) outputs;
    uint32_t *plain,
        *last; /* by value id, plus 1: the number of the value, and with channels last */
} Xnn;

/* A value inside of the graph. */
uint32_t xnn_temp(Xnn *x, ferry_dtype dtype, uint32_t rank, const Sym *const *shape);

/* An input of a node, and its output; with the dimensions as the program has them. */
uint32_t xnn_input(Xnn *x, const Value *value);
uint32_t xnn_output(Xnn *x, const Value *value);

/* A weight, and a small constant that has `count` numbers along one dimension, or [1, count]. */
uint32_t xnn_weight(Xnn *x, const Recipe *recipe, const char *name);
uint32_t xnn_numbers(Xnn *x, ferry_dtype dtype, uint32_t rank, double number, int64_t count);

/* The same with channels last, as convolutions want images. */
uint32_t xnn_channels_last(Xnn *x, const Value *value);
uint32_t xnn_output_channels_last(Xnn *x, const Value *value);
bool xnn_has_channels_last(const Xnn *x, const Value *value); /* is it there already? */

/* A node: its number in the schema, and its table. */
void xnn_node(Xnn *x, uint8_t type, FlatRef table);
void xnn_clamped_node(Xnn *x, uint8_t type, FlatRef table, double low, double high);
void xnn_transpose(Xnn *x, uint32_t from, uint32_t to, const int64_t *dims, uint32_t rank);

/* xnnpack_nodes.c */
void xnn_add_node(Xnn *x, const Node *node);

#endif
