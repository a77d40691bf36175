/* Upper bounds of sizes: the runtime's memory is planned before any size is known. */
#ifndef TARGET_EXECUTORCH_BOUNDS_H
#define TARGET_EXECUTORCH_BOUNDS_H

#include "graph/program.h"

/* What sizes without a bound are planned for at least: first dimensions of inputs, which are batches
 * mostly, and others. */
typedef struct Floors {
    int64_t first, other;
} Floors;

typedef struct Bounds {
    Arena *arena;
    int64_t *limits; /* by symbol */
    Map known;       /* Sym -> its range; to be freed */
} Bounds;

/* The floors to try first, and the next smaller ones; false when there are none. */
Floors bounds_floors(const Program *program);
bool bounds_shrink(Floors *floors);

/* With these floors; false when memory is exhausted. */
bool bounds_init(Bounds *bounds, const Program *program, Arena *arena, Floors floors);

/* The largest value of an expression; INT64_MAX when it does not fit. */
int64_t bounds_upper(Bounds *bounds, const Sym *sym);

/* Make the limits the bounds of the program's symbols; `text` says which sizes of inputs were given one.
 * False when memory is exhausted. */
bool bounds_fix(Program *program, Floors floors, Buffer *text);

#endif
