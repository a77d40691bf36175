/* Upper bounds of sizes: the runtime's memory is planned before any size is known. */
#ifndef TARGET_EXECUTORCH_BOUNDS_H
#define TARGET_EXECUTORCH_BOUNDS_H

#include "graph/program.h"

enum { BOUNDS_LEAST_FLOOR = 4 };

typedef struct Bounds {
    Arena *arena;
    int64_t *limits; /* by symbol */
    Map known;       /* Sym -> its range; to be freed */
} Bounds;

/* The cap to try first for sizes without a bound. */
int64_t bounds_first_floor(const Program *program);

/* With this cap; false when memory is exhausted. */
bool bounds_init(Bounds *bounds, const Program *program, Arena *arena, int64_t floor);

/* The largest value of an expression; INT64_MAX when it does not fit. */
int64_t bounds_upper(Bounds *bounds, const Sym *sym);

/* Make the limits the bounds of the program's symbols; `text` says which sizes of inputs were given one.
 * False when memory is exhausted. */
bool bounds_fix(Program *program, int64_t floor, Buffer *text);

#endif
