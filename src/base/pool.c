#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t *workers;
    unsigned worker_count; /* threads besides the caller */
    unsigned running;      /* workers still inside the current loop */
    unsigned generation;   /* number of loops started */
    bool stopping;
    void (*body)(void *, size_t);
    void *context;
    size_t count;
    atomic_size_t next;
};

static void run_share(Pool *pool) {
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->count) return;
        pool->body(pool->context, i);
    }
}

static void *worker_main(void *argument) {
    Pool *pool = argument;
    unsigned seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stopping && pool->generation == seen) {
            pthread_cond_wait(&pool->work, &pool->lock);
        }
        if (pool->stopping) break;
        seen = pool->generation;
        pthread_mutex_unlock(&pool->lock);
        run_share(pool);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static unsigned processor_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

Pool *pool_new(unsigned threads) {
    if (threads == 0) threads = processor_count();
    Pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->workers = calloc(threads, sizeof *pool->workers);
    while (pool->workers && pool->worker_count + 1 < threads) {
        if (pthread_create(&pool->workers[pool->worker_count], NULL, worker_main, pool)) break;
        pool->worker_count++;
    }
    return pool;
}

void pool_free(Pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->worker_count; i++) pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

unsigned pool_threads(const Pool *pool) {
    return pool ? pool->worker_count + 1 : 1;
}

void pool_run(Pool *pool, size_t count, void (*body)(void *context, size_t i), void *context) {
    if (!pool || pool->worker_count == 0 || count < 2) {
        for (size_t i = 0; i < count; i++) body(context, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->body = body;
    pool->context = context;
    pool->count = count;
    atomic_store(&pool->next, 0);
    pool->running = pool->worker_count;
    pool->generation++;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    run_share(pool);
    pthread_mutex_lock(&pool->lock);
    while (pool->running > 0) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
