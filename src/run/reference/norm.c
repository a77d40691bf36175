/* Softmax and normalization: rows of features, split over the pool. */
#include "run/reference/kernels.h"
#include "run/reference/layers.h"

typedef struct Norm {
    Op op;
    bool wide; /* float64 */
    const unsigned char *input, *weight, *bias;
    unsigned char *output;
    int64_t length, rows, share;
    double eps;
} Norm;

/* The functions of one type on one row. */
#define RUN_ROW(real, suffix)                                                                      \
    do {                                                                                           \
        const real *x = (const real *)norm->input + row * norm->length;                            \
        const real *weight = (const real *)norm->weight, *bias = (const real *)norm->bias;         \
        real *out = (real *)norm->output + row * norm->length;                                     \
        if (norm->op == OP_SOFTMAX)                                                                \
            layers_softmax_##suffix(x, norm->length, false, out);                                  \
        else if (norm->op == OP_RMS_NORM)                                                          \
            layers_rms_norm_##suffix(x, weight, norm->eps, norm->length, out);                     \
        else                                                                                       \
            layers_layer_norm_##suffix(x, weight, bias, norm->eps, norm->length, out);             \
    } while (0)

static void run_rows(void *context, size_t task) {
    const Norm *norm = context;
    int64_t first = (int64_t)task * norm->share, last = first + norm->share;
    for (int64_t row = first; row < last && row < norm->rows; row++) {
        if (norm->wide)
            RUN_ROW(double, f64);
        else
            RUN_ROW(float, f32);
    }
}

static void run(const Call *call, Norm *norm, const Tensor *input, const Tensor *output) {
    int64_t tasks = 4 * (int64_t)pool_threads(call->pool);
    norm->op = call->node->op;
    norm->wide = input->dtype == FERRY_F64;
    norm->input = input->data;
    norm->output = output->data;
    if (norm->length == 0) return;
    norm->rows = tensor_count(input) / norm->length;
    if (norm->rows * norm->length < 8192) tasks = 1;
    norm->share = (norm->rows + tasks - 1) / tasks;
    pool_run(call->pool, norm->rows ? (size_t)tasks : 0, run_rows, norm);
}

/* The input of the call in its compute type. */
static ferry_status take_input(Call *call, const Tensor **input, ferry_dtype *dtype) {
    *input = call_tensor(call, 0);
    *dtype = call_compute_dtype((*input)->dtype);
    if (*dtype != FERRY_F32 && *dtype != FERRY_F64) return call_reject_dtype(call, (*input)->dtype);
    return call_convert(call, input, *dtype);
}

ferry_status kernel_softmax(Call *call) {
    const Tensor *input;
    Tensor *output;
    ferry_dtype dtype;
    uint32_t dim;
    TRY(take_input(call, &input, &dtype));
    uint32_t last = input->rank - 1;
    TRY(call_dim(call, 1, input->rank, &dim));
    Norm norm = {.length = input->shape[dim]};
    Tensor moved = tensor_move(input, dim, last);
    input = &moved;
    TRY(call_contiguous(call, &input));
    if (dim == last) {
        TRY(call_start(call, dtype, &output));
        run(call, &norm, input, output);
        call_finish(call, output);
        return FERRY_OK;
    }
    TRY(call_allocate(call, 0));
    TRY(call_temporary(call, dtype, input->rank, input->shape, &output));
    run(call, &norm, input, output);
    Tensor result = tensor_move(output, last, dim);
    call_copy(call, &result, call_output(call, 0));
    return FERRY_OK;
}

/* A weight or bias in the compute type, `length` elements; absent: NULL. */
static ferry_status take_weight(Call *call, uint32_t arg, ferry_dtype dtype, int64_t length,
                                const unsigned char **out) {
    const Tensor *weight = call_tensor(call, arg);
    *out = NULL;
    if (!weight) return FERRY_OK;
    if (tensor_count(weight) != length) return call_reject_shape(call);
    TRY(call_convert(call, &weight, dtype));
    TRY(call_contiguous(call, &weight));
    *out = weight->data;
    return FERRY_OK;
}

static ferry_status normalize(Call *call, Norm *norm) {
    const Tensor *input;
    Tensor *output;
    ferry_dtype dtype;
    int64_t sizes[FERRY_MAX_RANK];
    uint32_t count;
    TRY(take_input(call, &input, &dtype));
    TRY(call_integers(call, 1, sizes, &count));
    norm->length = 1;
    for (uint32_t d = 0; d < count; d++) {
        if (sizes[d] != input->shape[input->rank - count + d]) return call_reject_shape(call);
        norm->length *= sizes[d];
    }
    TRY(call_contiguous(call, &input));
    TRY(call_start(call, dtype, &output));
    TRY(take_weight(call, 2, dtype, norm->length, &norm->weight));
    if (call->node->op == OP_LAYER_NORM) {
        TRY(take_weight(call, 3, dtype, norm->length, &norm->bias));
    }
    run(call, norm, input, output);
    call_finish(call, output);
    return FERRY_OK;
}

ferry_status kernel_layer_norm(Call *call) {
    Norm norm = {.eps = call->node->args[4].number};
    return normalize(call, &norm);
}

ferry_status kernel_rms_norm(Call *call) {
    Norm norm = {.eps = call->node->args[3].number};
    return normalize(call, &norm);
}
