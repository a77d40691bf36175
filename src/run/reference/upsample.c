/* Resizing of images. Every mode is separable: along each axis an output element is a weighted sum of
 * a few input elements, its taps. Rows are resized first, then columns, plane by plane. */
#include "run/reference/kernels.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The taps of one axis: `count` of them for each output element. */
typedef struct Axis {
    int64_t in, out, count;
    int64_t *places; /* in the input */
    double *weights;
} Axis;

typedef struct Upsampling {
    const Call *call;
    Axis rows, columns; /* of the height and the width */
    bool wide;          /* float64 */
    const unsigned char *input;
    unsigned char *output;
    atomic_bool exhausted;
} Upsampling;

/* ---- taps ---- */

double kernel_cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double triangle(double x) {
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* What an operation does. */
typedef struct Mode {
    int64_t taps;
    float offset; /* of nearest: where in an output element it looks */
    bool antialias;
} Mode;

static const Mode modes[OP_COUNT] = {
    [OP_UPSAMPLE_NEAREST] = {1, 0, false},    [OP_UPSAMPLE_NEAREST_EXACT] = {1, 0.5F, false},
    [OP_UPSAMPLE_BILINEAR] = {2, 0, false},   [OP_UPSAMPLE_BICUBIC] = {4, 0, false},
    [OP_UPSAMPLE_BILINEAR_AA] = {2, 0, true}, [OP_UPSAMPLE_BICUBIC_AA] = {4, 0, true},
};

static int64_t clamp(int64_t i, int64_t size) {
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* Input elements from an output element to the next. ATen computes it in float32. */
static double axis_scale(const Axis *axis, bool align_corners, double given) {
    if (align_corners) {
        return axis->out > 1 ? (double)((float)(axis->in - 1) / (float)(axis->out - 1)) : 0;
    }
    if (given > 0) return (double)(float)(1 / given);
    return (double)((float)axis->in / (float)axis->out);
}

static void nearest_taps(Axis *axis, const Mode *mode, double scale) {
    for (int64_t i = 0; i < axis->out; i++) {
        float place = floorf(((float)i + mode->offset) * (float)scale);
        axis->places[i] = clamp((int64_t)place, axis->in);
        axis->weights[i] = 1;
    }
}

static void smooth_taps(Axis *axis, bool align_corners, double scale) {
    for (int64_t i = 0; i < axis->out; i++) {
        double place = align_corners ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
        if (axis->count == 2 && place < 0) place = 0;
        int64_t first = (int64_t)floor(place) - (axis->count == 4);
        for (int64_t t = 0; t < axis->count; t++) {
            double distance = place - (double)(first + t);
            axis->places[i * axis->count + t] = clamp(first + t, axis->in);
            axis->weights[i * axis->count + t] =
                axis->count == 2 ? triangle(distance) : kernel_cubic(distance, -0.75);
        }
    }
}

/* With antialiasing the filter widens as the image shrinks, and its weights are normalized. */
static void antialiased_taps(Axis *axis, bool is_cubic, double scale, double support) {
    double inverse = scale > 1 ? 1 / scale : 1;
    for (int64_t i = 0; i < axis->out; i++) {
        double center = scale * ((double)i + 0.5), sum = 0;
        int64_t first = (int64_t)(center - support + 0.5), last = (int64_t)(center + support + 0.5);
        if (first < 0) first = 0;
        if (last > axis->in) last = axis->in;
        double *weights = axis->weights + i * axis->count;
        for (int64_t t = 0; t < axis->count; t++) {
            double x = ((double)(first + t) - center + 0.5) * inverse;
            axis->places[i * axis->count + t] = clamp(first + t, axis->in);
            weights[t] = first + t >= last ? 0 : is_cubic ? kernel_cubic(x, -0.5) : triangle(x);
            sum += weights[t];
        }
        for (int64_t t = 0; t < axis->count && sum != 0; t++) weights[t] /= sum;
    }
}

static ferry_status make_axis(const Call *call, Axis *axis, const Mode *mode, uint32_t scale_arg) {
    const Arg *args = call->node->args;
    bool align_corners = mode->taps > 1 && args[2].boolean, antialias = mode->antialias;
    double given = args[scale_arg].kind == VALUE_FLOAT ? args[scale_arg].number : 0;
    double scale = axis_scale(axis, align_corners, given);
    double support = (double)mode->taps / 2 * (scale > 1 ? scale : 1);
    axis->count = antialias ? (int64_t)ceil(support) * 2 + 1 : mode->taps;
    size_t entries = (size_t)(axis->out * axis->count);
    axis->places = calloc(entries + 1, sizeof *axis->places);
    axis->weights = calloc(entries + 1, sizeof *axis->weights);
    if (!axis->places || !axis->weights) return call_memory(call, entries * sizeof(double));
    if (mode->taps == 1)
        nearest_taps(axis, mode, scale);
    else if (antialias)
        antialiased_taps(axis, mode->taps == 4, scale, support);
    else
        smooth_taps(axis, align_corners, scale);
    return FERRY_OK;
}

/* ---- planes ---- */

#define RESIZE(real)                                                                               \
    do {                                                                                           \
        const real *from = (const real *)p->input + plane * rows->in * columns->in;                \
        real *middle = memory, *to = (real *)p->output + plane * rows->out * width;                \
        for (int64_t y = 0; y < rows->in; y++) {                                                   \
            for (int64_t x = 0; x < width; x++) {                                                  \
                real sum = 0;                                                                      \
                for (int64_t t = x * columns->count; t < (x + 1) * columns->count; t++)            \
                    sum += (real)columns->weights[t] * from[y * columns->in + columns->places[t]]; \
                middle[y * width + x] = sum;                                                       \
            }                                                                                      \
        }                                                                                          \
        for (int64_t y = 0; y < rows->out; y++) {                                                  \
            for (int64_t x = 0; x < width; x++) to[y * width + x] = 0;                             \
            for (int64_t t = y * rows->count; t < (y + 1) * rows->count; t++) {                    \
                const real weight = (real)rows->weights[t], *row;                                  \
                row = middle + rows->places[t] * width;                                            \
                for (int64_t x = 0; x < width; x++) to[y * width + x] += weight * row[x];          \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void run_plane(void *context, size_t task) {
    Upsampling *p = context;
    const Axis *rows = &p->rows, *columns = &p->columns;
    int64_t plane = (int64_t)task, width = columns->out;
    void *memory = malloc((size_t)(rows->in * width) * (p->wide ? 8 : 4) + 1);
    if (!memory) {
        atomic_store(&p->exhausted, true);
        return;
    }
    if (p->wide)
        RESIZE(double);
    else
        RESIZE(float);
    free(memory);
}

static ferry_status resize(Call *call, Upsampling *p, int64_t planes) {
    const Mode *mode = &modes[call->node->op];
    uint32_t scales = mode->taps == 1 ? 2 : 3;
    TRY(make_axis(call, &p->rows, mode, scales));
    TRY(make_axis(call, &p->columns, mode, scales + 1));
    pool_run(call->pool, (size_t)planes, run_plane, p);
    return p->exhausted ? call_memory(call, (uint64_t)(p->rows.in * p->columns.out) * 4) : FERRY_OK;
}

ferry_status kernel_upsample(Call *call) {
    const Tensor *input = call_tensor(call, 0);
    ferry_dtype dtype = call_compute_dtype(input->dtype);
    Upsampling p = {.call = call, .wide = dtype == FERRY_F64};
    Tensor *output;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, input->dtype);
    TRY(call_convert(call, &input, dtype));
    TRY(call_contiguous(call, &input));
    TRY(call_start(call, dtype, &output));
    p.rows = (Axis){.in = input->shape[2], .out = output->shape[2]};
    p.columns = (Axis){.in = input->shape[3], .out = output->shape[3]};
    int64_t planes = input->shape[0] * input->shape[1];
    if (planes != output->shape[0] * output->shape[1] || p.rows.in == 0 || p.columns.in == 0) {
        return call_reject_shape(call);
    }
    p.input = input->data;
    p.output = output->data;
    ferry_status status = resize(call, &p, planes);
    free(p.rows.places);
    free(p.rows.weights);
    free(p.columns.places);
    free(p.columns.weights);
    if (status == FERRY_OK) call_finish(call, output);
    return status;
}
