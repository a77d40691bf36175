/* Loops over the elements of several strided tensors at once.
 *
 * Dimensions that lie behind each other in every operand are merged, so that a body is called for
 * the longest possible stretches; long loops are split over the pool. */
#ifndef RUN_REFERENCE_LOOP_H
#define RUN_REFERENCE_LOOP_H

#include "base/pool.h"
#include "run/reference/tensor.h"

enum { LOOP_MAX = 4 };

typedef struct Loop {
    uint32_t rank;
    uint32_t count; /* operands */
    int64_t shape[FERRY_MAX_RANK];
    int64_t strides[LOOP_MAX][FERRY_MAX_RANK];
    int64_t steps[LOOP_MAX]; /* of each operand within a stretch */
} Loop;

/* `n` elements: those of operand k are at offsets[k], offsets[k] + steps[k], ... elements. Called
 * from several threads. */
typedef void (*LoopBody)(void *context, const Loop *loop, const int64_t *offsets, int64_t n);

Loop loop_start(uint32_t rank, const int64_t *shape);

/* The next operand, broadcast; false when its sizes do not fit. */
bool loop_tensor(Loop *loop, const Tensor *tensor);

/* The next operand, by its strides. */
void loop_strides(Loop *loop, const int64_t *strides);

/* `cost` is the work per element, 1 for an addition. */
void loop_run(Loop *loop, Pool *pool, int64_t cost, LoopBody body, void *context);

#endif
