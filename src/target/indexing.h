/* Indexing by tensors, as targets do it that gather and scatter along leading dimensions. */
#ifndef TARGET_INDEXING_H
#define TARGET_INDEXING_H

#include "graph/program.h"

/* What an indexing node does to the dimensions of the tensor it indexes. */
typedef struct Indexing {
    const Value *items[FERRY_MAX_RANK]; /* the index tensors */
    unsigned dims;                      /* that are indexed */
    uint32_t count;                     /* of index tensors */
    uint32_t rank;                      /* of their broadcast shape */
    const Sym *shape[FERRY_MAX_RANK];   /* of what is chosen, as index_put has it in mind */
    uint32_t chosen;                    /* its rank */
    uint32_t place;                     /* where the dimensions of the index stand in it */
    int64_t first[FERRY_MAX_RANK];      /* dimensions of self: indexed ones first */
} Indexing;

/* Of an index or index_put node. */
void indexing_describe(const Node *node, Indexing *out);

/* `there` moves the dimensions of the index from the front to their place, behind the first `place`
 * kept ones; `back` is the other way. */
void indexing_order(const Indexing *indexing, int64_t *there, int64_t *back);

/* Does this permutation leave everything where it is? */
bool indexing_in_order(const int64_t *dims, uint32_t rank);

#endif
