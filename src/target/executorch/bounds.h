/* Upper bounds of sizes: the runtime's memory is planned before any size is known. */
#ifndef TARGET_EXECUTORCH_BOUNDS_H
#define TARGET_EXECUTORCH_BOUNDS_H

#include "graph/program.h"

typedef struct Bounds {
    Arena *arena;
    const int64_t *limits; /* by symbol */
    Map known;             /* Sym -> its range */
} Bounds;

/* What each symbol may be at most; by symbol, in the arena. */
const int64_t *bounds_limits(const Program *program, Arena *arena);

/* The largest value of an expression; INT64_MAX when it does not fit. */
int64_t bounds_upper(Bounds *bounds, const Sym *sym);

#endif
