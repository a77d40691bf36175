/* The sizes of a run's inputs give the program's symbols their numbers. */
#ifndef RUN_REFERENCE_BIND_H
#define RUN_REFERENCE_BIND_H

#include "run/reference/call.h"

/* Bind every symbol that an input determines, and check all inputs against their types: dtype,
 * rank, sizes, and the ranges of the symbols. `bindings` has no symbol bound at the call. */
ferry_status bind_inputs(const Program *program, const ferry_tensors *inputs, Bindings *bindings,
                         ferry_error *error);

#endif
