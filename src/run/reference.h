/* The built-in reference runtime: executes a Program on the CPU, with no other runtime's help.
 *
 * Correct first: every kernel computes what ATen's does; half precisions compute in float32 and
 * round once per operation. Matrix products use a BLAS, large loops the pool. */
#ifndef RUN_REFERENCE_H
#define RUN_REFERENCE_H

#include "base/pool.h"
#include "graph/program.h"
#include <ferry/tensor.h>

/* Run `program` on `inputs`, matched by name; extra tensors are ignored. The sizes of the inputs bind
 * the program's symbols and are checked against its types and ranges: INVALID_ARGUMENT names the
 * input, what was expected and what was found. `*outputs` (owned by the caller) holds the program's
 * outputs in order. `pool` may be NULL. Memory peaks at the live tensors, not at their sum: values
 * are freed after their last use; weights are read in place where they need no change. */
ferry_status reference_run(Program *program, const ferry_tensors *inputs, Pool *pool,
                           ferry_tensors **outputs, ferry_error *error);

/* Compute one node whose tensor arguments are all weights and whose sizes are all constants. Fills
 * results[i] (node->output_count of them) with bytes allocated in `arena`. For constant folding. */
ferry_status reference_evaluate(Program *program, const Node *node, Arena *arena, void **results,
                                ferry_error *error);

/* True when the runtime has a kernel for `op`. */
bool reference_supports(Op op);

#endif
