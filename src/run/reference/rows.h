/* What elementwise operations compute, for a row of elements of one compute type. */
#ifndef RUN_REFERENCE_ROWS_H
#define RUN_REFERENCE_ROWS_H

#include "graph/op.h"
#include <stdint.h>

enum { ROW_MAX_OPERANDS = 3 };

/* Fill `out` with `n` results. Operand k is at in[k] with steps of steps[k] elements, 0 or 1. */
typedef void (*Row)(void *out, const void *const *in, const int64_t *steps, int64_t n);

/* NULL: the operation does not exist for the type. */
typedef struct RowSet {
    Row f32, f64, i64;
    bool to_bool; /* results are bool, not of the compute type */
} RowSet;

RowSet rows_find(Op op);

/* Variants of one op: gelu by approximation, not of bool. */
extern const RowSet rows_gelu_tanh, rows_not_bool;

#endif
