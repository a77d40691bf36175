/* Maximum and average pooling, plane by plane. */
#include "run/reference/kernels.h"

#include <math.h>

typedef struct Pooling {
    bool max, wide;  /* float64 */
    bool count_pads; /* averages: the padding counts */
    int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
    const unsigned char *input;
    unsigned char *output;
} Pooling;

/* The part of a window that lies inside, in steps of the dilation. `*counted` is its length for an
 * average. */
static void window(const Pooling *p, int i, int64_t position, int64_t *first, int64_t *last,
                   int64_t *counted) {
    int64_t start = position * p->stride[i] - p->padding[i], dilation = p->dilation[i];
    int64_t end = start + (p->kernel[i] - 1) * dilation + 1;
    int64_t limit = p->in[i] + p->padding[i];
    *counted = (end < limit ? end : limit) - start;
    *first = start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
    *last = end < p->in[i] ? end : p->in[i];
    if (!p->count_pads) *counted = *last - *first;
}

#define POOL(real)                                                                                 \
    do {                                                                                           \
        const real *from = (const real *)p->input + plane * p->in[0] * p->in[1];                   \
        real result = p->max ? (real)-INFINITY : 0;                                                \
        for (int64_t i = top; i < bottom; i += p->dilation[0]) {                                   \
            for (int64_t j = left; j < right; j += p->dilation[1]) {                               \
                real x = from[i * p->in[1] + j];                                                   \
                if (!p->max)                                                                       \
                    result += x;                                                                   \
                else if (x > result || x != x)                                                     \
                    result = x;                                                                    \
            }                                                                                      \
        }                                                                                          \
        if (!p->max && rows * columns > 0) result /= (real)(rows * columns);                       \
        ((real *)p->output)[(plane * p->out[0] + y) * p->out[1] + x0] = result;                    \
    } while (0)

static void run_plane(void *context, size_t task) {
    const Pooling *p = context;
    int64_t plane = (int64_t)task, top, bottom, left, right, rows, columns;
    for (int64_t y = 0; y < p->out[0]; y++) {
        window(p, 0, y, &top, &bottom, &rows);
        for (int64_t x0 = 0; x0 < p->out[1]; x0++) {
            window(p, 1, x0, &left, &right, &columns);
            if (p->wide)
                POOL(double);
            else
                POOL(float);
        }
    }
}

static ferry_status take_pair(const Call *call, uint32_t arg, int64_t *out) {
    int64_t numbers[FERRY_MAX_RANK];
    uint32_t count;
    TRY(call_integers(call, arg, numbers, &count));
    if (count != 2) return call_reject_shape(call);
    out[0] = numbers[0];
    out[1] = numbers[1];
    return FERRY_OK;
}

/* The windows that the output asks for must all start inside. */
static ferry_status check_sizes(const Call *call, const Pooling *p) {
    for (int i = 0; i < 2; i++) {
        int64_t last = (p->out[i] - 1) * p->stride[i] - p->padding[i];
        if (p->out[i] > 0 && last >= p->in[i] + p->padding[i]) return call_reject_shape(call);
    }
    return FERRY_OK;
}

ferry_status kernel_pool(Call *call) {
    const Tensor *input = call_tensor(call, 0);
    ferry_dtype dtype = call_compute_dtype(input->dtype);
    Pooling p = {
        .max = call->node->op == OP_MAX_POOL, .wide = dtype == FERRY_F64, .dilation = {1, 1}};
    Tensor *output;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, input->dtype);
    TRY(take_pair(call, 1, p.kernel));
    TRY(take_pair(call, 2, p.stride));
    TRY(take_pair(call, 3, p.padding));
    if (p.max)
        TRY(take_pair(call, 4, p.dilation));
    else
        p.count_pads = call->node->args[5].boolean;
    TRY(call_convert(call, &input, dtype));
    TRY(call_contiguous(call, &input));
    TRY(call_start(call, dtype, &output));
    for (int i = 0; i < 2; i++) {
        p.in[i] = input->shape[i + 2];
        p.out[i] = output->shape[i + 2];
    }
    TRY(check_sizes(call, &p));
    if (input->shape[0] != output->shape[0] || input->shape[1] != output->shape[1]) {
        return call_reject_shape(call);
    }
    p.input = input->data;
    p.output = output->data;
    pool_run(call->pool, (size_t)(input->shape[0] * input->shape[1]), run_plane, &p);
    call_finish(call, output);
    return FERRY_OK;
}
