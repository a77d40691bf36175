/* Outputs of a run that are inputs of the next: what a decoder keeps from step to step.
 *
 * A session that carries a pair takes the input from the last run when it is not given, and leaves the
 * output out of the results. What is carried is not copied: the runtime's own tensor is handed back, or,
 * in place, one memory is input and output at once. */
#ifndef RUN_CARRY_H
#define RUN_CARRY_H

#include <stdbool.h>

typedef struct Carry {
    const char *input, *output; /* by the names of the graph */
    bool in_place; /* the output may be computed in the input's memory: nothing else reads that */
} Carry;

#endif
