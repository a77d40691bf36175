/* Writing weights: recipes are read in chunks and written to their places in a file, by all threads of a
 * pool. Memory is bounded by the chunks, whatever the size of the weights. */
#ifndef GRAPH_STREAM_H
#define GRAPH_STREAM_H

#include "base/file.h"
#include "base/pool.h"
#include "graph/recipe.h"

typedef struct StreamItem {
    const Recipe *recipe;
    uint64_t offset; /* of its bytes in the file */
} StreamItem;

/* Told how many of how many bytes are written, one call at a time; true cancels. */
typedef bool (*StreamProgress)(void *context, uint64_t done, uint64_t total);

/* `progress` may be NULL, and `pool`. What lies between the items is left as it is. */
ferry_status stream_write(const StreamItem *items, size_t count, Pool *pool, OutputFile *file,
                          StreamProgress progress, void *context, ferry_error *error);

#endif
