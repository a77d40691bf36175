/* Reductions: the reduced dimensions are moved to the end and made contiguous, then each output is
 * one row. Floats accumulate in float64 and round once; integers are exact. */
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <math.h>

enum { BLOCK = 256 };

/* The running state of a row. */
typedef struct Accumulator {
    double number; /* of floats */
    int64_t integer;
    int64_t position; /* of the largest element */
    bool started;
} Accumulator;

typedef struct Reduction {
    Op op;
    bool is_float;
    const Tensor *input, *output;
    int64_t length, share, rows;
} Reduction;

/* True when `x` takes the place of `best`: a greater number, or the first NaN. */
static bool beats(double x, double best) {
    return x > best || (isnan(x) && !isnan(best));
}

static void add_floats(Op op, Accumulator *state, const double *block, int64_t first, int64_t n) {
    double lanes[4] = {0};
    switch (op) {
    case OP_SUM:
    case OP_MEAN: {
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            for (int lane = 0; lane < 4; lane++) lanes[lane] += block[i + lane];
        }
        for (; i < n; i++) lanes[0] += block[i];
        state->number += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        break;
    }
    case OP_PROD:
        for (int64_t i = 0; i < n; i++) state->number *= block[i];
        break;
    case OP_ANY:
        for (int64_t i = 0; i < n; i++) state->integer |= block[i] != 0;
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            double x = op == OP_AMIN ? -block[i] : block[i];
            if (state->started && !beats(x, state->number)) continue;
            state->number = x;
            state->position = first + i;
            state->started = true;
        }
    }
}

static void add_integers(Op op, Accumulator *state, const int64_t *block, int64_t first,
                         int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t x = block[i], best = state->integer;
        if (op == OP_SUM) {
            state->integer = (int64_t)((uint64_t)best + (uint64_t)x);
        } else if (op == OP_PROD) {
            state->integer = (int64_t)((uint64_t)best * (uint64_t)x);
        } else if (op == OP_ANY) {
            state->integer |= x != 0;
        } else if (!state->started || (op == OP_AMIN ? x < best : x > best)) {
            state->integer = x;
            state->position = first + i;
            state->started = true;
        }
    }
}

/* The result of a row, in float64 or int64 according to `*dtype`. */
static void finish(const Reduction *work, Accumulator *state, const void **result,
                   ferry_dtype *dtype) {
    *dtype = FERRY_I64;
    *result = &state->integer;
    if (work->op == OP_ARGMAX) *result = &state->position;
    if (!work->is_float || work->op == OP_ARGMAX || work->op == OP_ANY) return;
    *dtype = FERRY_F64;
    *result = &state->number;
    if (work->op == OP_MEAN) state->number /= (double)work->length;
    if (work->op == OP_AMIN) state->number = -state->number;
}

static void reduce_rows(void *context, size_t task) {
    const Reduction *work = context;
    const Tensor *input = work->input, *output = work->output;
    size_t size = ferry_dtype_size(input->dtype), out_size = ferry_dtype_size(output->dtype);
    int64_t first = (int64_t)task * work->share, last = first + work->share;
    union {
        double floats[BLOCK];
        int64_t integers[BLOCK];
    } block;
    for (int64_t row = first; row < last && row < work->rows; row++) {
        const unsigned char *source = input->data + (size_t)(row * work->length) * size;
        Accumulator state = {0};
        if (work->op == OP_PROD) state.number = (double)(state.integer = 1);
        for (int64_t done = 0; done < work->length; done += BLOCK) {
            int64_t n = work->length - done < BLOCK ? work->length - done : BLOCK;
            dtype_convert(input->dtype, source + (size_t)done * size,
                          work->is_float ? FERRY_F64 : FERRY_I64, &block, (size_t)n);
            if (work->is_float)
                add_floats(work->op, &state, block.floats, done, n);
            else
                add_integers(work->op, &state, block.integers, done, n);
        }
        const void *result;
        ferry_dtype dtype;
        finish(work, &state, &result, &dtype);
        dtype_convert(dtype, result, output->dtype, output->data + (size_t)row * out_size, 1);
    }
}

/* The set of reduced dimensions, bit by bit. */
static ferry_status reduced_dims(const Call *call, uint32_t rank, unsigned *out) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count, dim;
    *out = 0;
    if (call->node->args[1].kind == VALUE_INT) {
        TRY(call_dim(call, 1, rank, &dim));
        *out = 1u << dim;
        return FERRY_OK;
    }
    TRY(call_integers(call, 1, dims, &count));
    for (uint32_t i = 0; i < count; i++) *out |= 1u << (dims[i] < 0 ? dims[i] + rank : dims[i]);
    if (count == 0) *out = (1u << rank) - 1;
    return FERRY_OK;
}

/* `*rows`: a tensor of [kept sizes..., reduced sizes...], contiguous. */
static ferry_status make_rows(Call *call, const Tensor **rows, Tensor *moved, Reduction *work) {
    const Tensor *self = *rows;
    int64_t order[FERRY_MAX_RANK];
    uint32_t next = 0;
    unsigned reduced;
    TRY(reduced_dims(call, self->rank, &reduced));
    work->length = work->rows = 1;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t d = 0; d < self->rank; d++) {
            if ((reduced >> d & 1) != pass) continue;
            order[next++] = d;
            *(pass ? &work->length : &work->rows) *= self->shape[d];
        }
    }
    *moved = tensor_permute(self, order);
    *rows = moved;
    return call_contiguous(call, rows);
}

ferry_status kernel_reduce(Call *call) {
    const Tensor *self = call_tensor(call, 0), *output = call_output(call, 0);
    Op op = call->node->op;
    Tensor moved;
    Reduction work = {
        .op = op, .is_float = ferry_dtype_is_float(self->dtype), .input = self, .output = output};
    if (call_compute_dtype(self->dtype) == FERRY_DTYPE_NONE || (op == OP_MEAN && !work.is_float)) {
        return call_reject_dtype(call, self->dtype);
    }
    TRY(make_rows(call, &work.input, &moved, &work));
    TRY(call_allocate(call, 0));
    if (tensor_count(output) != work.rows) return call_reject_shape(call);
    if (work.length == 0 && op != OP_SUM && op != OP_MEAN && op != OP_ANY && op != OP_PROD) {
        return call_fail(call, FERRY_INVALID_ARGUMENT, "the reduced dimension is empty");
    }
    int64_t tasks = work.length * work.rows > 32768 ? 4 * (int64_t)pool_threads(call->pool) : 1;
    work.share = (work.rows + tasks - 1) / tasks;
    pool_run(call->pool, work.rows ? (size_t)tasks : 0, reduce_rows, &work);
    return FERRY_OK;
}

/* ---- running sums ---- */

static void sum_row(const Tensor *input, const Tensor *output, int64_t row, int64_t length) {
    bool is_float = ferry_dtype_is_float(input->dtype);
    double number = 0;
    uint64_t integer = 0;
    for (int64_t i = row * length; i < (row + 1) * length; i++) {
        const unsigned char *source = input->data + (size_t)i * ferry_dtype_size(input->dtype);
        unsigned char *target = output->data + (size_t)i * ferry_dtype_size(output->dtype);
        if (is_float) {
            double x;
            dtype_convert(input->dtype, source, FERRY_F64, &x, 1);
            number += x;
            dtype_convert(FERRY_F64, &number, output->dtype, target, 1);
        } else {
            int64_t x;
            dtype_convert(input->dtype, source, FERRY_I64, &x, 1);
            integer += (uint64_t)x;
            dtype_convert(FERRY_I64, &integer, output->dtype, target, 1);
        }
    }
}

ferry_status kernel_cumsum(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    uint32_t dim, last = self->rank - 1;
    TRY(call_dim(call, 1, self->rank, &dim));
    if (call_compute_dtype(self->dtype) == FERRY_DTYPE_NONE) {
        return call_reject_dtype(call, self->dtype);
    }
    Tensor moved = tensor_move(self, dim, last), *sums;
    const Tensor *rows = &moved;
    TRY(call_contiguous(call, &rows));
    TRY(call_temporary(call, call_output(call, 0)->dtype, rows->rank, rows->shape, &sums));
    int64_t length = rows->shape[last], count = length ? tensor_count(rows) / length : 0;
    for (int64_t row = 0; row < count; row++) sum_row(rows, sums, row, length);
    Tensor result = tensor_move(sums, last, dim);
    return call_share(call, 0, &result);
}
