/* Resizing, antialiased: each pixel of the result is a weighted sum of those around its place, first along
 * the rows, then along the columns, rounded to bytes after each.
 *
 * The weights are whole numbers of 16 bits, at the largest scale that they allow, which is how torchvision
 * resizes bytes on a CPU. The result is the same bit for bit, and within 1 of Pillow's. */
#include "base/error.h"
#include "media/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Weights {
    size_t width;   /* room of each pixel of the result */
    unsigned shift; /* the scale is 1 << shift */
    size_t *begin, *count;
    int16_t *values;
    double *exact;
} Weights;

static double bilinear(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) {
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double lanczos(double x) {
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct {
    double (*at)(double x);
    double support;
} filters[] = {
    [FILTER_BILINEAR] = {bilinear, 1},
    [FILTER_BICUBIC] = {bicubic, 2},
    [FILTER_LANCZOS] = {lanczos, 3},
};

static void weights_free(Weights *w) {
    free(w->begin);
    free(w->count);
    free(w->values);
    free(w->exact);
}

/* The weights of one pixel of the result, which sum to 1. */
static void weigh(Weights *w, size_t i, size_t from, double scale, Filter filter) {
    double stretch = scale > 1 ? scale : 1, reach = filters[filter].support * stretch;
    double center = scale * ((double)i + 0.5), inverse = 1 / stretch, total = 0;
    int64_t low = (int64_t)(center - reach + 0.5), high = (int64_t)(center + reach + 0.5);
    if (low < 0) low = 0;
    if (high > (int64_t)from) high = (int64_t)from;
    double *exact = w->exact + i * w->width;
    w->begin[i] = (size_t)low;
    w->count[i] = high > low ? (size_t)(high - low) : 0;
    for (size_t k = 0; k < w->count[i]; k++) {
        exact[k] = filters[filter].at(((double)k + (double)low - center + 0.5) * inverse);
        total += exact[k];
    }
    for (size_t k = 0; k < w->count[i] && total != 0; k++) exact[k] /= total;
}

static void quantize(Weights *w, size_t to) {
    double largest = 0;
    for (size_t i = 0; i < to; i++)
        for (size_t k = 0; k < w->count[i]; k++)
            largest = fmax(largest, w->exact[i * w->width + k]);
    while (w->shift < 22 && (int)(0.5 + largest * (double)(1 << (w->shift + 1))) < 1 << 15)
        w->shift++;
    for (size_t i = 0; i < to; i++) {
        for (size_t k = 0; k < w->count[i]; k++) {
            double value = w->exact[i * w->width + k] * (double)(1 << w->shift);
            w->values[i * w->width + k] = (int16_t)(int)(value < 0 ? value - 0.5 : value + 0.5);
        }
    }
}

static ferry_status weights_make(Weights *w, size_t from, size_t to, Filter filter,
                                 ferry_error *error) {
    double scale = (double)from / (double)to;
    size_t cells;
    w->width = (size_t)ceil(filters[filter].support * (scale > 1 ? scale : 1)) * 2 + 1;
    if (__builtin_mul_overflow(w->width, to, &cells)) return error_memory(error, NULL, 0);
    w->begin = calloc(to, sizeof *w->begin);
    w->count = calloc(to, sizeof *w->count);
    w->values = calloc(cells, sizeof *w->values);
    w->exact = calloc(cells, sizeof *w->exact);
    if (!w->begin || !w->count || !w->values || !w->exact)
        return error_memory(error, NULL, cells * sizeof *w->exact);
    for (size_t i = 0; i < to; i++) weigh(w, i, from, scale, filter);
    quantize(w, to);
    return FERRY_OK;
}

static unsigned char to_byte(int32_t sum, unsigned shift) {
    int32_t value = sum >> shift;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void resize_rows(const Image *image, const Weights *w, Image *out) {
    for (size_t y = 0; y < out->height; y++) {
        const unsigned char *row = image->pixels + y * image->width * 3;
        unsigned char *to = out->pixels + y * out->width * 3;
        for (size_t x = 0; x < out->width; x++, to += 3) {
            const int16_t *weights = w->values + x * w->width;
            const unsigned char *from = row + w->begin[x] * 3;
            int32_t sums[3];
            for (int c = 0; c < 3; c++) sums[c] = w->shift ? (int32_t)1 << (w->shift - 1) : 0;
            for (size_t k = 0; k < w->count[x]; k++, from += 3)
                for (int c = 0; c < 3; c++) sums[c] += weights[k] * from[c];
            for (int c = 0; c < 3; c++) to[c] = to_byte(sums[c], w->shift);
        }
    }
}

/* `sums` has room for a row. */
static void resize_columns(const Image *image, const Weights *w, int32_t *sums, Image *out) {
    size_t length = out->width * 3;
    for (size_t y = 0; y < out->height; y++) {
        const int16_t *weights = w->values + y * w->width;
        for (size_t x = 0; x < length; x++) sums[x] = w->shift ? (int32_t)1 << (w->shift - 1) : 0;
        for (size_t k = 0; k < w->count[y]; k++) {
            const unsigned char *from = image->pixels + (w->begin[y] + k) * length;
            for (size_t x = 0; x < length; x++) sums[x] += weights[k] * from[x];
        }
        for (size_t x = 0; x < length; x++)
            out->pixels[y * length + x] = to_byte(sums[x], w->shift);
    }
}

static ferry_status resize_width(const Image *image, size_t width, Filter filter, Image *out,
                                 ferry_error *error) {
    Weights weights = {0};
    ferry_status status = weights_make(&weights, image->width, width, filter, error);
    if (status == FERRY_OK) status = image_new(NULL, width, image->height, out, error);
    if (status == FERRY_OK) resize_rows(image, &weights, out);
    weights_free(&weights);
    return status;
}

static ferry_status resize_height(const Image *image, size_t height, Filter filter, Image *out,
                                  ferry_error *error) {
    Weights weights = {0};
    int32_t *sums = malloc(image->width * 3 * sizeof *sums);
    ferry_status status = sums ? weights_make(&weights, image->height, height, filter, error)
                               : error_memory(error, NULL, image->width * 3 * sizeof *sums);
    if (status == FERRY_OK) status = image_new(NULL, image->width, height, out, error);
    if (status == FERRY_OK) resize_columns(image, &weights, sums, out);
    weights_free(&weights);
    free(sums);
    return status;
}

ferry_status image_resize(const Image *image, size_t width, size_t height, Filter filter,
                          Image *out, ferry_error *error) {
    *out = (Image){0};
    TRY(image_check_size(NULL, width, height, IMAGE_MAX_PIXELS, error));
    if (width == image->width && height == image->height) return image_copy(image, out, error);
    if (height == image->height) return resize_width(image, width, filter, out, error);
    if (width == image->width) return resize_height(image, height, filter, out, error);
    Image rows = {0};
    ferry_status status = image_check_size(NULL, width, image->height, IMAGE_MAX_PIXELS, error);
    if (status == FERRY_OK) status = resize_width(image, width, filter, &rows, error);
    if (status == FERRY_OK) status = resize_height(&rows, height, filter, out, error);
    image_free(&rows);
    return status;
}
