/* The geometry of a convolution, shared by its kernels. Fewer than three spatial dimensions are
 * preceded by dimensions of one. */
#ifndef RUN_REFERENCE_CONVOLUTION_H
#define RUN_REFERENCE_CONVOLUTION_H

#include "run/reference/call.h"

#include <stdatomic.h>

typedef struct Convolution {
    const Call *call;
    ferry_dtype dtype; /* float32 or float64 */
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* of each group */
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t in_count, out_count, taps;          /* positions, and weights at each */
    const unsigned char *input, *weight, *bias; /* contiguous; bias may be NULL */
    unsigned char *output;
    int64_t share; /* positions or channels of each task */
    int64_t tasks; /* for each group of each batch entry */
    atomic_bool exhausted;
} Convolution;

/* Where tap `k` of a window meets a row: output positions [*first, *last) of `count` lie inside. The
 * input position of output position i is start + i * stride. */
static inline void convolution_range(int64_t start, int64_t stride, int64_t size, int64_t count,
                                     int64_t *first, int64_t *last) {
    *first = start < 0 ? (-start + stride - 1) / stride : 0;
    *last = start >= size ? 0 : (size - 1 - start) / stride + 1;
    if (*last > count) *last = count;
    if (*first > *last) *first = *last;
}

/* Split `total` into tasks of at most `most`, several of them for each thread when there are few
 * groups; sets share and tasks. */
void convolution_split(Convolution *cv, int64_t total, int64_t most, int64_t unit);

/* Run body(cv, i) for batch * groups * tasks. OUT_OF_MEMORY when a task set `exhausted`. */
ferry_status convolution_run(Call *call, Convolution *cv, void (*body)(void *context, size_t task));

/* Make every number of an output channel the bias, or 0. */
void convolution_fill(const Convolution *cv, int64_t channel, unsigned char *output);

/* convolution_transposed.c */
ferry_status convolution_transposed(Call *call, Convolution *cv);

#endif
