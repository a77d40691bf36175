/* The type of what an operation makes. */
#ifndef GRAPH_INFER_H
#define GRAPH_INFER_H

#include "graph/program.h"

enum { INFER_MAX_OUTPUTS = 64 };

typedef struct InferredType {
    ferry_dtype dtype;
    uint32_t rank;
    const Sym *shape[FERRY_MAX_RANK];
} InferredType;

/* The types of the outputs of `op` on `args` (complete, in schema order). INVALID_ARGUMENT when the
 * operation does not accept them; the message says why, the caller adds the place. */
ferry_status infer_types(Program *program, Op op, const Arg *args, InferredType *outputs,
                         uint32_t *output_count, ferry_error *error);

/* The broadcast of two sizes, or NULL when they are different constants other than 1. Of two
 * different expressions the first is taken: they are the same number in any valid run. */
const Sym *infer_broadcast(const Sym *a, const Sym *b);

/* Where the dimensions of the index stand in the result of aten::index: `dims` is the set of indexed
 * dimensions, bit by bit. */
uint32_t infer_index_place(unsigned dims);

#endif
