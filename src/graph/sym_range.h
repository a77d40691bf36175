/* What a symbolic integer can be: its range, and whole-number division. */
#ifndef GRAPH_SYM_RANGE_H
#define GRAPH_SYM_RANGE_H

#include "graph/sym.h"

/* Set `lower` and `upper` from the operands; a symbol keeps what it has. */
void sym_derive_range(Sym *sym);

/* Rounded towards minus infinity, and the remainder with the divisor's sign. The divisor is not 0; it
 * is not -1 where the dividend is INT64_MIN. */
int64_t sym_floor_divide(int64_t dividend, int64_t divisor);
int64_t sym_floor_modulo(int64_t dividend, int64_t divisor);

#endif
