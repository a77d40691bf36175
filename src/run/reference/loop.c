#include "run/reference/loop.h"

#include <string.h>

/* Work that is worth a thread, in additions. */
enum { GRAIN = 32768 };

Loop loop_start(uint32_t rank, const int64_t *shape) {
    Loop loop = {.rank = rank};
    if (rank) memcpy(loop.shape, shape, rank * sizeof *shape);
    return loop;
}

bool loop_tensor(Loop *loop, const Tensor *tensor) {
    Tensor view;
    if (!tensor_broadcast(tensor, loop->rank, loop->shape, &view)) return false;
    loop_strides(loop, view.strides);
    return true;
}

void loop_strides(Loop *loop, const int64_t *strides) {
    memcpy(loop->strides[loop->count++], strides, loop->rank * sizeof *strides);
}

static bool mergeable(const Loop *loop, uint32_t outer, uint32_t inner) {
    for (uint32_t k = 0; k < loop->count; k++) {
        if (loop->strides[k][outer] != loop->strides[k][inner] * loop->shape[inner]) return false;
    }
    return true;
}

static void copy_dimension(Loop *loop, uint32_t to, uint32_t from, int64_t size) {
    loop->shape[to] = size;
    for (uint32_t k = 0; k < loop->count; k++) loop->strides[k][to] = loop->strides[k][from];
}

/* Drop sizes of 1 and merge what can be merged; at least one dimension remains. */
static void simplify(Loop *loop) {
    uint32_t kept = 0;
    for (uint32_t d = 0; d < loop->rank; d++) {
        if (loop->shape[d] == 1) continue;
        if (kept && mergeable(loop, kept - 1, d)) {
            copy_dimension(loop, kept - 1, d, loop->shape[kept - 1] * loop->shape[d]);
        } else {
            copy_dimension(loop, kept++, d, loop->shape[d]);
        }
    }
    if (kept == 0) {
        loop->shape[0] = 1;
        for (uint32_t k = 0; k < loop->count; k++) loop->strides[k][0] = 0;
        kept = 1;
    }
    loop->rank = kept;
    for (uint32_t k = 0; k < loop->count; k++) loop->steps[k] = loop->strides[k][kept - 1];
}

typedef struct LoopTask {
    const Loop *loop;
    LoopBody body;
    void *context;
    int64_t total, share; /* elements in all, and of each task */
} LoopTask;

/* Move to the start of the next row. */
static void next_row(const Loop *loop, int64_t *index, int64_t *offsets) {
    uint32_t inner = loop->rank - 1;
    for (uint32_t k = 0; k < loop->count; k++) offsets[k] -= index[inner] * loop->steps[k];
    index[inner] = 0;
    for (uint32_t d = inner; d-- > 0;) {
        bool wraps = ++index[d] == loop->shape[d];
        int64_t moved = wraps ? 1 - loop->shape[d] : 1;
        for (uint32_t k = 0; k < loop->count; k++) offsets[k] += moved * loop->strides[k][d];
        if (!wraps) return;
        index[d] = 0;
    }
}

static void run_share(void *context, size_t task) {
    const LoopTask *work = context;
    const Loop *loop = work->loop;
    int64_t first = (int64_t)task * work->share, rest = first;
    int64_t last = work->total - first < work->share ? work->total : first + work->share;
    int64_t index[FERRY_MAX_RANK], offsets[LOOP_MAX] = {0};
    for (uint32_t d = loop->rank; d-- > 0;) {
        index[d] = rest % loop->shape[d];
        rest /= loop->shape[d];
        for (uint32_t k = 0; k < loop->count; k++) offsets[k] += index[d] * loop->strides[k][d];
    }
    while (first < last) {
        int64_t n = loop->shape[loop->rank - 1] - index[loop->rank - 1];
        if (n > last - first) n = last - first;
        work->body(work->context, loop, offsets, n);
        first += n;
        next_row(loop, index, offsets);
    }
}

void loop_run(Loop *loop, Pool *pool, int64_t cost, LoopBody body, void *context) {
    LoopTask work = {.loop = loop, .body = body, .context = context, .total = 1};
    for (uint32_t d = 0; d < loop->rank; d++) work.total *= loop->shape[d];
    if (work.total == 0) return;
    simplify(loop);
    int64_t grain = GRAIN / cost > 1 ? GRAIN / cost : 1;
    int64_t most = 4 * (int64_t)pool_threads(pool);
    int64_t tasks = work.total / grain;
    tasks = tasks > most ? most : tasks > 1 ? tasks : 1;
    work.share = (work.total + tasks - 1) / tasks;
    pool_run(pool, (size_t)((work.total + work.share - 1) / work.share), run_share, &work);
}
