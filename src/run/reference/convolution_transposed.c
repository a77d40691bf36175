/* Transposed convolution: every input element spreads the weight over the output. A product gives
 * what each element adds at each tap, which is then summed where it belongs. */
#include "run/reference/convolution.h"
#include "run/reference/product.h"

#include <stdlib.h>

/* Elements of the products of a task. */
enum { BLOCK = 1 << 19 };

#define SPREAD(real)                                                                               \
    do {                                                                                           \
        const real *from = (const real *)added + row * cv->in[2];                                  \
        real *to = (real *)output + offset;                                                        \
        for (int64_t i = inside; i < end; i++) to[i * cv->stride[2]] += from[i];                   \
    } while (0)

/* Add a tap's share, one number per input position, to an output channel. */
static void spread(const Convolution *cv, const unsigned char *added, int64_t tap,
                   unsigned char *output) {
    int64_t kx = tap % cv->kernel[2], ky = tap / cv->kernel[2] % cv->kernel[1];
    int64_t kz = tap / cv->kernel[2] / cv->kernel[1], inside, end;
    int64_t start = kx * cv->dilation[2] - cv->padding[2];
    convolution_range(start, cv->stride[2], cv->out[2], cv->in[2], &inside, &end);
    for (int64_t row = 0; row < cv->in[0] * cv->in[1]; row++) {
        int64_t z = row / cv->in[1] * cv->stride[0] - cv->padding[0] + kz * cv->dilation[0];
        int64_t y = row % cv->in[1] * cv->stride[1] - cv->padding[1] + ky * cv->dilation[1];
        if (z < 0 || z >= cv->out[0] || y < 0 || y >= cv->out[1]) continue;
        int64_t offset = (z * cv->out[1] + y) * cv->out[2] + start;
        if (cv->dtype == FERRY_F32)
            SPREAD(float);
        else
            SPREAD(double);
    }
}

static void run_channels(void *context, size_t task) {
    Convolution *cv = context;
    int64_t size = (int64_t)ferry_dtype_size(cv->dtype), width = cv->out_channels * cv->taps;
    int64_t plane = (int64_t)task / cv->tasks, group = plane % cv->groups;
    int64_t first = (int64_t)task % cv->tasks * cv->share;
    int64_t count = cv->out_channels - first < cv->share ? cv->out_channels - first : cv->share;
    unsigned char *added = malloc((size_t)(count * cv->taps * cv->in_count * size) + 1);
    if (!added) {
        atomic_store(&cv->exhausted, true);
        return;
    }
    int64_t weight = group * cv->in_channels * width + first * cv->taps;
    Product product = {
        .dtype = cv->dtype,
        .m = count * cv->taps,
        .n = cv->in_count,
        .k = cv->in_channels,
        .scale = 1,
        .a = {(unsigned char *)cv->weight + weight * size, 1, width},
        .b = {(unsigned char *)cv->input + plane * cv->in_channels * cv->in_count * size,
              cv->in_count, 1},
        .c = {added, cv->in_count, 1}};
    product_run(&product);
    for (int64_t c = 0; c < count; c++) {
        int64_t channel = plane * cv->out_channels + first + c;
        unsigned char *output = cv->output + channel * cv->out_count * size;
        convolution_fill(cv, group * cv->out_channels + first + c, output);
        for (int64_t tap = 0; tap < cv->taps; tap++)
            spread(cv, added + (c * cv->taps + tap) * cv->in_count * size, tap, output);
    }
    free(added);
}

ferry_status convolution_transposed(Call *call, Convolution *cv) {
    int64_t row = cv->taps * (cv->in_count > 0 ? cv->in_count : 1);
    convolution_split(cv, cv->out_channels, BLOCK / row, 1);
    return convolution_run(call, cv, run_channels);
}
