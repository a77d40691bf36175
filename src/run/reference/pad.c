/* Padding: for every dimension a map from output to input positions, then rows are copied. Works on
 * elements of any type. */
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <stdlib.h>
#include <string.h>

typedef struct Padding {
    const Tensor *input, *output;        /* the output is contiguous */
    const int64_t *maps[FERRY_MAX_RANK]; /* input position of each output position; -1: none */
    uint64_t fill;                       /* one element, in its first bytes */
    int64_t rows, share;
} Padding;

/* The input row that an output row is made of; NULL when it is all fill. */
static const unsigned char *source_row(const Padding *p, int64_t row) {
    int64_t offset = 0;
    for (uint32_t d = p->output->rank - 1; d-- > 0;) {
        int64_t from = p->maps[d][row % p->output->shape[d]];
        if (from < 0) return NULL;
        offset += from * p->input->strides[d];
        row /= p->output->shape[d];
    }
    return p->input->data + offset * (int64_t)ferry_dtype_size(p->input->dtype);
}

static void copy_row(const Padding *p, int64_t row) {
    uint32_t last = p->output->rank - 1;
    size_t size = ferry_dtype_size(p->output->dtype);
    int64_t width = p->output->shape[last], step = p->input->strides[last] * (int64_t)size;
    unsigned char *to = p->output->data + (size_t)(row * width) * size;
    const unsigned char *from = source_row(p, row);
    const int64_t *map = p->maps[last];
    for (int64_t i = 0, n; i < width; i += n, to += (size_t)n * size) {
        n = 1;
        if (!from || map[i] < 0) {
            memcpy(to, &p->fill, size);
            continue;
        }
        while (step == (int64_t)size && i + n < width && map[i + n] == map[i] + n) n++;
        memcpy(to, from + map[i] * step, (size_t)n * size);
    }
}

static void run_rows(void *context, size_t task) {
    const Padding *p = context;
    int64_t first = (int64_t)task * p->share, last = first + p->share;
    for (int64_t row = first; row < last && row < p->rows; row++) copy_row(p, row);
}

/* The map of one dimension. */
static ferry_status make_map(const Call *call, char mode, int64_t size, int64_t before,
                             int64_t count, int64_t *map) {
    if (mode == 'r' && (before >= size || count - before - size >= size)) {
        return call_fail(call, FERRY_INVALID_ARGUMENT,
                         "reflection needs padding below the size of %lld", (long long)size);
    }
    if (mode != 'c' && size == 0 && count > 0) return call_reject_shape(call);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i - before;
        if (at < 0)
            at = mode == 'c' ? -1 : mode == 'r' ? -at : 0;
        else if (at >= size)
            at = mode == 'c' ? -1 : mode == 'r' ? 2 * (size - 1) - at : size - 1;
        map[i] = at;
    }
    return FERRY_OK;
}

/* The maps of all dimensions, in `memory`. */
static ferry_status make_maps(const Call *call, Padding *p, int64_t *memory) {
    const char *text = call->node->args[2].string;
    char mode = strcmp(text, "constant") == 0 ? 'c' : strcmp(text, "reflect") == 0 ? 'r' : 'e';
    int64_t pads[FERRY_MAX_RANK];
    const Arg *list = &call->node->args[1];
    uint32_t rank = p->output->rank;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t i = 2 * (rank - 1 - d);
        int64_t after = pads[d] = 0;
        if (i + 1 < list->integers.count) {
            TRY(call_evaluate(call, list->integers.items[i], &pads[d]));
            TRY(call_evaluate(call, list->integers.items[i + 1], &after));
        }
        int64_t size = p->input->shape[d], count = p->output->shape[d];
        if (size + pads[d] + after != count) return call_reject_shape(call);
        bool padded = pads[d] != 0 || after != 0;
        TRY(make_map(call, padded ? mode : 'c', size, pads[d], count, memory));
        p->maps[d] = memory;
        memory += count;
    }
    return FERRY_OK;
}

ferry_status kernel_pad(Call *call) {
    const Tensor *input = call_tensor(call, 0);
    Tensor *output = call_output(call, 0);
    Padding p = {.input = input, .output = output};
    double value = call->node->args[3].number;
    int64_t total = 1;
    if (output->rank == 0) return call_share(call, 0, input);
    TRY(call_allocate(call, 0));
    if (tensor_count(output) == 0) return FERRY_OK;
    dtype_convert(FERRY_F64, &value, output->dtype, &p.fill, 1);
    for (uint32_t d = 0; d < output->rank; d++) total += output->shape[d];
    int64_t *memory = calloc((size_t)total, sizeof *memory);
    if (!memory) return call_memory(call, (uint64_t)total * sizeof *memory);
    ferry_status status = make_maps(call, &p, memory);
    if (status == FERRY_OK) {
        int64_t tasks = tensor_count(output) > 32768 ? 4 * (int64_t)pool_threads(call->pool) : 1;
        p.rows = tensor_count(output) / output->shape[output->rank - 1];
        p.share = (p.rows + tasks - 1) / tasks;
        pool_run(call->pool, (size_t)tasks, run_rows, &p);
    }
    free(memory);
    return status;
}
