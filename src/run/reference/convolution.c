/* Convolution. Windows are laid out as columns, block by block, and multiplied by the weight; windows
 * of one element are columns already. One input channel per group (depthwise) is summed directly. */
#include "run/reference/convolution.h"
#include "run/reference/kernels.h"
#include "run/reference/product.h"

#include <stdlib.h>
#include <string.h>

/* Elements of the columns of a task. */
enum { BLOCK = 1 << 18 };

void convolution_split(Convolution *cv, int64_t total, int64_t most, int64_t unit) {
    int64_t threads = (int64_t)pool_threads(cv->call->pool), groups = cv->batch * cv->groups;
    if (groups < threads && most > (total + threads - 1) / threads)
        most = (total + threads - 1) / threads;
    cv->share = (most + unit - 1) / unit * unit;
    if (cv->share < unit) cv->share = unit;
    cv->tasks = (total + cv->share - 1) / cv->share;
}

ferry_status convolution_run(Call *call, Convolution *cv,
                             void (*body)(void *context, size_t task)) {
    pool_run(call->pool, (size_t)(cv->batch * cv->groups * cv->tasks), body, cv);
    return cv->exhausted ? call_memory(call, BLOCK * sizeof(double)) : FERRY_OK;
}

void convolution_fill(const Convolution *cv, int64_t channel, unsigned char *output) {
    if (cv->dtype == FERRY_F32) {
        float bias = cv->bias ? ((const float *)cv->bias)[channel] : 0;
        for (int64_t i = 0; i < cv->out_count; i++) ((float *)output)[i] = bias;
    } else {
        double bias = cv->bias ? ((const double *)cv->bias)[channel] : 0;
        for (int64_t i = 0; i < cv->out_count; i++) ((double *)output)[i] = bias;
    }
}

/* ---- columns ---- */

/* `n` elements at steps of `stride` elements from `from`. */
static void gather(size_t size, unsigned char *to, const unsigned char *from, int64_t stride,
                   int64_t n) {
    if (stride == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = ((const float *)from)[i * stride];
    else
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] = ((const double *)from)[i * stride];
}

/* What tap `k` sees of a channel at output positions [first, first + count). */
static void fill_row(const Convolution *cv, const unsigned char *plane, const int64_t *k,
                     int64_t first, int64_t count, unsigned char *to) {
    size_t size = ferry_dtype_size(cv->dtype);
    while (count > 0) {
        int64_t x = first % cv->out[2], row = first / cv->out[2], inside, end;
        int64_t n = cv->out[2] - x < count ? cv->out[2] - x : count;
        int64_t z = row / cv->out[1] * cv->stride[0] - cv->padding[0] + k[0] * cv->dilation[0];
        int64_t y = row % cv->out[1] * cv->stride[1] - cv->padding[1] + k[1] * cv->dilation[1];
        int64_t start = x * cv->stride[2] - cv->padding[2] + k[2] * cv->dilation[2];
        convolution_range(start, cv->stride[2], cv->in[2], n, &inside, &end);
        if (z < 0 || z >= cv->in[0] || y < 0 || y >= cv->in[1]) inside = end = 0;
        memset(to, 0, (size_t)inside * size);
        if (end > inside) {
            int64_t offset = (z * cv->in[1] + y) * cv->in[2] + start + inside * cv->stride[2];
            gather(size, to + (size_t)inside * size, plane + offset * (int64_t)size, cv->stride[2],
                   end - inside);
        }
        memset(to + (size_t)end * size, 0, (size_t)(n - end) * size);
        to += (size_t)n * size;
        first += n;
        count -= n;
    }
}

static void fill_columns(const Convolution *cv, const unsigned char *input, int64_t first,
                         int64_t count, unsigned char *columns) {
    int64_t size = (int64_t)ferry_dtype_size(cv->dtype), k[3];
    for (int64_t c = 0; c < cv->in_channels; c++) {
        for (k[0] = 0; k[0] < cv->kernel[0]; k[0]++) {
            for (k[1] = 0; k[1] < cv->kernel[1]; k[1]++) {
                for (k[2] = 0; k[2] < cv->kernel[2]; k[2]++) {
                    fill_row(cv, input + c * cv->in_count * size, k, first, count, columns);
                    columns += count * size;
                }
            }
        }
    }
}

/* A window is one element, and every element is one. */
static bool is_pointwise(const Convolution *cv) {
    for (int i = 0; i < 3; i++) {
        if (cv->kernel[i] != 1 || cv->stride[i] != 1 || cv->padding[i] != 0) return false;
    }
    return true;
}

static void add_bias(const Convolution *cv, int64_t group, const Matrix *out, int64_t count) {
    for (int64_t c = 0; cv->bias && c < cv->out_channels; c++) {
        int64_t channel = group * cv->out_channels + c;
        if (cv->dtype == FERRY_F32) {
            float *row = (float *)out->data + c * out->row;
            float bias = ((const float *)cv->bias)[channel];
            for (int64_t i = 0; i < count; i++) row[i] += bias;
        } else {
            double *row = (double *)out->data + c * out->row;
            double bias = ((const double *)cv->bias)[channel];
            for (int64_t i = 0; i < count; i++) row[i] += bias;
        }
    }
}

static void run_block(void *context, size_t task) {
    Convolution *cv = context;
    int64_t size = (int64_t)ferry_dtype_size(cv->dtype), depth = cv->in_channels * cv->taps;
    int64_t plane = (int64_t)task / cv->tasks, group = plane % cv->groups;
    int64_t first = (int64_t)task % cv->tasks * cv->share;
    int64_t count = cv->out_count - first < cv->share ? cv->out_count - first : cv->share;
    unsigned char *columns = NULL;
    Product product = {
        .dtype = cv->dtype, .m = cv->out_channels, .n = count, .k = depth, .scale = 1};
    const unsigned char *input = cv->input + plane * cv->in_channels * cv->in_count * size;
    product.a =
        (Matrix){(unsigned char *)cv->weight + group * cv->out_channels * depth * size, depth, 1};
    product.c = (Matrix){cv->output + (plane * cv->out_channels * cv->out_count + first) * size,
                         cv->out_count, 1};
    if (is_pointwise(cv)) {
        product.b = (Matrix){(unsigned char *)input + first * size, cv->in_count, 1};
    } else {
        columns = malloc((size_t)(depth * count * size) + 1);
        if (!columns) {
            atomic_store(&cv->exhausted, true);
            return;
        }
        fill_columns(cv, input, first, count, columns);
        product.b = (Matrix){columns, count, 1};
    }
    product_run(&product);
    free(columns);
    add_bias(cv, group, &product.c, count);
}

/* ---- depthwise ---- */

#define ADD_TAP(real)                                                                              \
    do {                                                                                           \
        const real *from = (const real *)input + offset;                                           \
        real *to = (real *)output + row * cv->out[2] + inside, weight = ((const real *)w)[tap];    \
        int64_t n = end - inside, stride = cv->stride[2];                                          \
        if (stride == 1)                                                                           \
            for (int64_t i = 0; i < n; i++) to[i] += weight * from[i];                             \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) to[i] += weight * from[i * stride];                    \
    } while (0)

/* Add one tap's share of an output channel. */
static void add_tap(const Convolution *cv, const unsigned char *input, const unsigned char *w,
                    int64_t tap, unsigned char *output) {
    int64_t kx = tap % cv->kernel[2], ky = tap / cv->kernel[2] % cv->kernel[1];
    int64_t kz = tap / cv->kernel[2] / cv->kernel[1], inside, end;
    int64_t start = kx * cv->dilation[2] - cv->padding[2];
    convolution_range(start, cv->stride[2], cv->in[2], cv->out[2], &inside, &end);
    for (int64_t row = 0; row < cv->out[0] * cv->out[1] && end > inside; row++) {
        int64_t z = row / cv->out[1] * cv->stride[0] - cv->padding[0] + kz * cv->dilation[0];
        int64_t y = row % cv->out[1] * cv->stride[1] - cv->padding[1] + ky * cv->dilation[1];
        if (z < 0 || z >= cv->in[0] || y < 0 || y >= cv->in[1]) continue;
        int64_t offset = (z * cv->in[1] + y) * cv->in[2] + start + inside * cv->stride[2];
        if (cv->dtype == FERRY_F32)
            ADD_TAP(float);
        else
            ADD_TAP(double);
    }
}

/* An output channel of a group with one input channel. */
static void run_channel(void *context, size_t task) {
    const Convolution *cv = context;
    int64_t size = (int64_t)ferry_dtype_size(cv->dtype);
    int64_t channels = cv->groups * cv->out_channels, channel = (int64_t)task % channels;
    int64_t plane = (int64_t)task / cv->out_channels;
    unsigned char *output = cv->output + (int64_t)task * cv->out_count * size;
    convolution_fill(cv, channel, output);
    for (int64_t tap = 0; tap < cv->taps; tap++) {
        add_tap(cv, cv->input + plane * cv->in_count * size, cv->weight + channel * cv->taps * size,
                tap, output);
    }
}

/* ---- the call ---- */

/* The last numbers of three: `fill` in front. */
static ferry_status take_three(const Call *call, uint32_t arg, int64_t fill, int64_t *out) {
    int64_t numbers[FERRY_MAX_RANK];
    uint32_t count;
    TRY(call_integers(call, arg, numbers, &count));
    if (count > 3) return call_reject_shape(call);
    for (uint32_t i = 0; i < 3; i++) out[i] = i + count < 3 ? fill : numbers[i + count - 3];
    return FERRY_OK;
}

static void last_three(const Tensor *tensor, int64_t *out) {
    for (uint32_t i = 0; i < 3; i++)
        out[i] = i + tensor->rank < 5 ? 1 : tensor->shape[i + tensor->rank - 3];
}

/* The product of the sizes; what does not fit is more than there is memory for. */
static int64_t volume(const int64_t *sizes) {
    int64_t area, result;
    if (__builtin_mul_overflow(sizes[0], sizes[1], &area)) return INT64_MAX;
    return __builtin_mul_overflow(area, sizes[2], &result) ? INT64_MAX : result;
}

static ferry_status take_geometry(const Call *call, Convolution *cv, const Tensor *input,
                                  const Tensor *weight, bool transposed) {
    const Tensor *output = call_output(call, 0);
    int64_t extra[3];
    TRY(take_three(call, 3, 1, cv->stride));
    TRY(take_three(call, 4, 0, cv->padding));
    TRY(take_three(call, 5, 1, cv->dilation));
    TRY(take_three(call, 7, 0, extra));
    TRY(call_integer(call, 8, &cv->groups));
    last_three(input, cv->in);
    last_three(weight, cv->kernel);
    last_three(output, cv->out);
    cv->batch = input->shape[0];
    cv->in_channels = transposed ? weight->shape[0] / cv->groups : weight->shape[1];
    cv->out_channels = transposed ? weight->shape[1] : weight->shape[0] / cv->groups;
    cv->in_count = volume(cv->in);
    cv->out_count = volume(cv->out);
    cv->taps = volume(cv->kernel);
    if (input->shape[1] != cv->in_channels * cv->groups || output->shape[0] != cv->batch ||
        output->shape[1] != cv->out_channels * cv->groups) {
        return call_reject_shape(call);
    }
    for (int i = 0; i < 3; i++) {
        int64_t reach = cv->dilation[i] * (cv->kernel[i] - 1) - 2 * cv->padding[i];
        int64_t size = transposed ? (cv->in[i] - 1) * cv->stride[i] + reach + 1 + extra[i]
                                  : (cv->in[i] - reach - 1) / cv->stride[i] + 1;
        if (size != cv->out[i] || (!transposed && cv->in[i] < reach + 1)) {
            return call_reject_shape(call);
        }
    }
    return FERRY_OK;
}

/* A tensor of the call, contiguous and in the compute type. */
static ferry_status take_contiguous(Call *call, const Tensor *tensor, ferry_dtype dtype,
                                    const unsigned char **out) {
    if (!tensor) return FERRY_OK;
    TRY(call_convert(call, &tensor, dtype));
    TRY(call_contiguous(call, &tensor));
    *out = tensor->data;
    return FERRY_OK;
}

ferry_status kernel_convolution(Call *call) {
    const Tensor *input = call_tensor(call, 0), *weight = call_tensor(call, 1);
    bool transposed = call->node->args[6].boolean;
    Convolution cv = {.call = call, .dtype = call_compute_dtype(input->dtype)};
    Tensor *output;
    if (cv.dtype != FERRY_F32 && cv.dtype != FERRY_F64) {
        return call_reject_dtype(call, input->dtype);
    }
    TRY(take_geometry(call, &cv, input, weight, transposed));
    TRY(take_contiguous(call, input, cv.dtype, &cv.input));
    TRY(take_contiguous(call, weight, cv.dtype, &cv.weight));
    TRY(take_contiguous(call, call_tensor(call, 2), cv.dtype, &cv.bias));
    TRY(call_start(call, cv.dtype, &output));
    cv.output = output->data;
    if (transposed) {
        TRY(convolution_transposed(call, &cv));
    } else if (cv.in_channels == 1) {
        pool_run(call->pool, (size_t)(cv.batch * cv.groups * cv.out_channels), run_channel, &cv);
    } else if (cv.out_count) {
        convolution_split(&cv, cv.out_count, BLOCK / (cv.in_channels * cv.taps), 16);
        TRY(convolution_run(call, &cv, run_block));
    }
    call_finish(call, output);
    return FERRY_OK;
}
