/* The largest or smallest elements of each row, in order. Of equal elements the first comes first, and
 * NaN counts as the largest number. */
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <math.h>
#include <stdlib.h>

/* An element: where it was, and its number as a float or an integer. */
typedef struct Entry {
    int64_t index;
    union {
        double number;
        int64_t integer;
    };
} Entry;

static int by_index(const Entry *a, const Entry *b) {
    return (a->index > b->index) - (a->index < b->index);
}

static int compare_numbers(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b) ? (isnan(a) ? 1 : -1) : 0;
    return (a > b) - (a < b);
}

static int numbers_up(const void *left, const void *right) {
    const Entry *a = left, *b = right;
    int order = compare_numbers(a->number, b->number);
    return order ? order : by_index(a, b);
}

static int numbers_down(const void *left, const void *right) {
    const Entry *a = left, *b = right;
    int order = compare_numbers(b->number, a->number);
    return order ? order : by_index(a, b);
}

static int integers_up(const void *left, const void *right) {
    const Entry *a = left, *b = right;
    int order = (a->integer > b->integer) - (a->integer < b->integer);
    return order ? order : by_index(a, b);
}

static int integers_down(const void *left, const void *right) {
    const Entry *a = left, *b = right;
    int order = (b->integer > a->integer) - (b->integer < a->integer);
    return order ? order : by_index(a, b);
}

typedef struct Ordering {
    const Tensor *rows, *values, *indices;
    int64_t length, count; /* of a row, and of what is taken from it */
    bool is_float;
    int (*compare)(const void *, const void *);
} Ordering;

static void order_row(const Ordering *work, int64_t row, Entry *entries) {
    const Tensor *rows = work->rows;
    size_t size = ferry_dtype_size(rows->dtype);
    const unsigned char *source = rows->data + (size_t)(row * work->length) * size;
    unsigned char *values = work->values->data + (size_t)(row * work->count) * size;
    int64_t *indices = (int64_t *)work->indices->data + row * work->count;
    for (int64_t i = 0; i < work->length; i++) {
        entries[i].index = i;
        dtype_convert(rows->dtype, source + (size_t)i * size,
                      work->is_float ? FERRY_F64 : FERRY_I64, &entries[i].number, 1);
    }
    qsort(entries, (size_t)work->length, sizeof *entries, work->compare);
    for (int64_t i = 0; i < work->count; i++) {
        indices[i] = entries[i].index;
        dtype_convert(rows->dtype, source + (size_t)entries[i].index * size, rows->dtype,
                      values + (size_t)i * size, 1);
    }
}

ferry_status kernel_topk(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    bool largest = call->node->args[3].boolean, is_float = ferry_dtype_is_float(self->dtype);
    uint32_t dim, last = self->rank - 1;
    Ordering work = {.is_float = is_float};
    work.compare =
        is_float ? (largest ? numbers_down : numbers_up) : (largest ? integers_down : integers_up);
    TRY(call_integer(call, 1, &work.count));
    TRY(call_dim(call, 2, self->rank, &dim));
    if (call_compute_dtype(self->dtype) == FERRY_DTYPE_NONE) {
        return call_reject_dtype(call, self->dtype);
    }
    Tensor moved = tensor_move(self, dim, last), *values, *indices;
    work.rows = &moved;
    work.length = moved.shape[last];
    if (work.count < 0 || work.count > work.length) return call_reject_shape(call);
    TRY(call_contiguous(call, &work.rows));
    int64_t rows = work.length ? tensor_count(work.rows) / work.length : 0;
    moved.shape[last] = work.count;
    TRY(call_temporary(call, self->dtype, moved.rank, moved.shape, &values));
    TRY(call_temporary(call, FERRY_I64, moved.rank, moved.shape, &indices));
    work.values = values;
    work.indices = indices;
    size_t bytes = ((size_t)work.length + 1) * sizeof(Entry);
    Entry *entries = malloc(bytes);
    if (!entries) return call_memory(call, bytes);
    for (int64_t row = 0; row < rows; row++) order_row(&work, row, entries);
    free(entries);
    Tensor result = tensor_move(values, last, dim);
    TRY(call_share(call, 0, &result));
    result = tensor_move(indices, last, dim);
    return call_share(call, 1, &result);
}
