/* Weights that several programs of one export have in common: the first one that has them writes them, the
 * others refer to its file. */
#ifndef TARGET_SHARED_H
#define TARGET_SHARED_H

#include "base/arena.h"
#include "base/map.h"
#include "graph/recipe.h"

/* Where a weight is. */
typedef struct SharedWeight {
    const Recipe *recipe; /* of a program that lives as long as the table */
    const char *file;     /* its name, which is the caller's */
    uint64_t offset;
    struct SharedWeight *next; /* of the same key */
} SharedWeight;

/* All zero to begin with. */
typedef struct SharedWeights {
    Arena arena;
    Map by_start; /* the address of a recipe's first byte -> SharedWeight */
} SharedWeights;

/* Where the weight of an equal recipe is; NULL: nowhere, or `table` is NULL. */
const SharedWeight *shared_find(const SharedWeights *table, const Recipe *recipe);

/* Remember a weight that was written. False when memory is exhausted. */
bool shared_add(SharedWeights *table, const Recipe *recipe, const char *file, uint64_t offset);

void shared_free(SharedWeights *table);

#endif
