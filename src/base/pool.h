/* Run a loop body on several threads. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

typedef struct Pool Pool;

/* A pool of `threads` workers in all, the calling thread included; 0 means one per processor. NULL
 * when threads cannot be started. */
Pool *pool_new(unsigned threads);
void pool_free(Pool *pool);
unsigned pool_threads(const Pool *pool);

/* Call body(context, i) for every i in [0, count), in any order, on all workers; returns when all
 * are done. A NULL pool runs the loop on the calling thread. One thread at a time may use a pool. */
void pool_run(Pool *pool, size_t count, void (*body)(void *context, size_t i), void *context);

#endif
