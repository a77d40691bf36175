/* Normalization by channels: batch norm with given statistics, and group norm. */
#include "run/reference/kernels.h"
#include "run/reference/layers.h"

#include <math.h>

typedef struct Channels {
    bool wide; /* float64 */
    int64_t channels, length;
    int64_t group; /* channels of a group */
    double eps;
    const unsigned char *input, *weight, *bias, *mean, *variance; /* weight, bias: may be NULL */
    unsigned char *output;
} Channels;

/* A number of a vector; `otherwise` when there is none. */
static double number(const Channels *c, const unsigned char *vector, int64_t i, double otherwise) {
    if (!vector) return otherwise;
    return c->wide ? ((const double *)vector)[i] : (double)((const float *)vector)[i];
}

/* out = x * scale + shift on one channel; in place when `from` is the output. */
static void scale_channel(const Channels *c, const unsigned char *from, int64_t row, double scale,
                          double shift) {
    if (c->wide) {
        const double *x = (const double *)from + row * c->length;
        double *out = (double *)c->output + row * c->length;
        for (int64_t i = 0; i < c->length; i++) out[i] = x[i] * scale + shift;
    } else {
        const float *x = (const float *)from + row * c->length;
        float *out = (float *)c->output + row * c->length;
        for (int64_t i = 0; i < c->length; i++) out[i] = x[i] * (float)scale + (float)shift;
    }
}

static void run_channel(void *context, size_t task) {
    const Channels *c = context;
    int64_t channel = (int64_t)task % c->channels;
    double scale =
        number(c, c->weight, channel, 1) / sqrt(number(c, c->variance, channel, 1) + c->eps);
    double shift = number(c, c->bias, channel, 0) - number(c, c->mean, channel, 0) * scale;
    scale_channel(c, c->input, (int64_t)task, scale, shift);
}

static void run_group(void *context, size_t task) {
    const Channels *c = context;
    int64_t length = c->group * c->length, first = (int64_t)task * c->group;
    int64_t offset = first * c->length;
    if (c->wide)
        layers_layer_norm_f64((const double *)c->input + offset, NULL, NULL, c->eps, length,
                              (double *)c->output + offset);
    else
        layers_layer_norm_f32((const float *)c->input + offset, NULL, NULL, c->eps, length,
                              (float *)c->output + offset);
    for (int64_t i = 0; (c->weight || c->bias) && i < c->group; i++) {
        int64_t channel = (first + i) % c->channels;
        scale_channel(c, c->output, first + i, number(c, c->weight, channel, 1),
                      number(c, c->bias, channel, 0));
    }
}

/* An optional vector with a number per channel. */
static ferry_status take_vector(Call *call, uint32_t arg, ferry_dtype dtype, int64_t channels,
                                const unsigned char **out) {
    const Tensor *vector = call_tensor(call, arg);
    if (!vector) return FERRY_OK;
    if (tensor_count(vector) != channels) return call_reject_shape(call);
    TRY(call_convert(call, &vector, dtype));
    TRY(call_contiguous(call, &vector));
    *out = vector->data;
    return FERRY_OK;
}

/* Everything that both norms need; `weight` is the argument with the weight, the bias follows. */
static ferry_status start(Call *call, Channels *c, uint32_t weight, Tensor **output) {
    const Tensor *input = call_tensor(call, 0);
    ferry_dtype dtype = call_compute_dtype(input->dtype);
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, input->dtype);
    c->wide = dtype == FERRY_F64;
    c->channels = input->shape[1];
    c->length = 1;
    for (uint32_t d = 2; d < input->rank; d++) c->length *= input->shape[d];
    TRY(call_convert(call, &input, dtype));
    TRY(call_contiguous(call, &input));
    TRY(take_vector(call, weight, dtype, c->channels, &c->weight));
    TRY(take_vector(call, weight + 1, dtype, c->channels, &c->bias));
    TRY(call_start(call, dtype, output));
    if (!tensor_same_shape(input, *output)) return call_reject_shape(call);
    c->input = input->data;
    c->output = (*output)->data;
    return FERRY_OK;
}

ferry_status kernel_batch_norm(Call *call) {
    Channels c = {.eps = call->node->args[7].number};
    Tensor *output;
    TRY(start(call, &c, 1, &output));
    TRY(take_vector(call, 3, output->dtype, c.channels, &c.mean));
    TRY(take_vector(call, 4, output->dtype, c.channels, &c.variance));
    pool_run(call->pool, (size_t)(output->shape[0] * c.channels), run_channel, &c);
    call_finish(call, output);
    return FERRY_OK;
}

ferry_status kernel_group_norm(Call *call) {
    Channels c = {.eps = call->node->args[4].number};
    int64_t groups;
    Tensor *output;
    TRY(call_integer(call, 1, &groups));
    TRY(start(call, &c, 2, &output));
    c.group = c.channels / groups;
    pool_run(call->pool, c.length ? (size_t)(output->shape[0] * groups) : 0, run_group, &c);
    call_finish(call, output);
    return FERRY_OK;
}
