/* Sampling an image at given places (grid_sampler). Coordinates run from -1 to 1. */
#include "run/reference/kernels.h"

#include <math.h>

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct Sampling {
    bool wide; /* float64 */
    bool align_corners;
    int64_t mode, padding;
    int64_t channels, in[2], out; /* height and width; places of a batch entry */
    const unsigned char *input, *grid;
    unsigned char *output;
} Sampling;

/* The weights of a place along one axis: `count` neighbours from `first` on. */
typedef struct Taps {
    int64_t first, count;
    double weights[4];
} Taps;

/* Mirror at `low` and `low + span` until it is between them. */
static double reflect(double x, double low, double span) {
    if (span <= 0) return 0;
    x = fabs(x - low);
    double extra = fmod(x, span), flips = floor(x / span);
    return fmod(flips, 2) == 0 ? extra + low : span - extra + low;
}

/* A coordinate brought into the image as the padding mode says. */
static double fold(const Sampling *s, double x, int64_t size) {
    if (s->padding == REFLECTION) {
        x = s->align_corners ? reflect(x, 0, (double)(size - 1)) : reflect(x, -0.5, (double)size);
    }
    if (s->padding == ZEROS) return x;
    return x < 0 ? 0 : x > (double)(size - 1) ? (double)(size - 1) : x;
}

static Taps make_taps(const Sampling *s, double x, int64_t size) {
    Taps taps = {.count = s->mode == BICUBIC ? 4 : s->mode == NEAREST ? 1 : 2};
    x = s->align_corners ? (x + 1) / 2 * (double)(size - 1) : ((x + 1) * (double)size - 1) / 2;
    if (s->mode != BICUBIC) x = fold(s, x, size);
    if (!(fabs(x) < 1e9)) x = -100; /* far outside, or NaN */
    if (s->mode == NEAREST) {
        taps.first = (int64_t)nearbyint(x);
        taps.weights[0] = 1;
        return taps;
    }
    taps.first = (int64_t)floor(x) - (s->mode == BICUBIC);
    for (int64_t t = 0; t < taps.count; t++) {
        double distance = fabs(x - (double)(taps.first + t));
        taps.weights[t] = s->mode == BICUBIC ? kernel_cubic(distance, -0.75) : 1 - distance;
    }
    return taps;
}

/* Where a neighbour is in the image; -1: outside, where zeros are. */
static int64_t place(const Sampling *s, int64_t i, int64_t size) {
    if (s->mode == BICUBIC) i = (int64_t)fold(s, (double)i, size);
    return i >= 0 && i < size ? i : -1;
}

static double read_number(const Sampling *s, const unsigned char *data, int64_t i) {
    return s->wide ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static double sample(const Sampling *s, int64_t plane, const Taps *y, const Taps *x) {
    double sum = 0;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t row = place(s, y->first + i, s->in[0]);
        for (int64_t j = 0; j < x->count && row >= 0; j++) {
            int64_t column = place(s, x->first + j, s->in[1]);
            double weight = y->weights[i] * x->weights[j];
            if (column < 0 || weight == 0) continue;
            sum += weight * read_number(s, s->input, (plane * s->in[0] + row) * s->in[1] + column);
        }
    }
    return sum;
}

/* All channels at one place of the grid. */
static void run_place(void *context, size_t task) {
    const Sampling *s = context;
    int64_t at = (int64_t)task, batch = at / s->out;
    Taps x = make_taps(s, read_number(s, s->grid, 2 * at), s->in[1]);
    Taps y = make_taps(s, read_number(s, s->grid, 2 * at + 1), s->in[0]);
    for (int64_t c = 0; c < s->channels; c++) {
        int64_t plane = batch * s->channels + c, to = plane * s->out + at % s->out;
        double result = sample(s, plane, &y, &x);
        if (s->wide)
            ((double *)s->output)[to] = result;
        else
            ((float *)s->output)[to] = (float)result;
    }
}

ferry_status kernel_grid_sampler(Call *call) {
    const Tensor *input = call_tensor(call, 0), *grid = call_tensor(call, 1);
    ferry_dtype dtype = call_compute_dtype(input->dtype);
    Sampling s = {.wide = dtype == FERRY_F64, .align_corners = call->node->args[4].boolean};
    Tensor *output;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, input->dtype);
    TRY(call_integer(call, 2, &s.mode));
    TRY(call_integer(call, 3, &s.padding));
    TRY(call_convert(call, &input, dtype));
    TRY(call_contiguous(call, &input));
    TRY(call_convert(call, &grid, dtype));
    TRY(call_contiguous(call, &grid));
    TRY(call_start(call, dtype, &output));
    s.channels = input->shape[1];
    s.in[0] = input->shape[2];
    s.in[1] = input->shape[3];
    s.out = grid->shape[1] * grid->shape[2];
    if (input->shape[0] != grid->shape[0] || s.in[0] == 0 || s.in[1] == 0 ||
        tensor_count(output) != input->shape[0] * s.channels * s.out) {
        return call_reject_shape(call);
    }
    s.input = input->data;
    s.grid = grid->data;
    s.output = output->data;
    pool_run(call->pool, (size_t)(input->shape[0] * s.out), run_place, &s);
    call_finish(call, output);
    return FERRY_OK;
}
