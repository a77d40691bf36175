/* What the two files of the vision encoders of Qwen share. */
#ifndef SOURCE_QWEN_VISION_H
#define SOURCE_QWEN_VISION_H

#include "source/checkpoint/attention.h"

typedef struct QwenTraits {
    const char *architecture;
    const char *hidden_key, *out_key; /* what the configuration calls the sizes */
    int64_t hidden, depth, patch;     /* defaults */
    int64_t intermediate;             /* default; 0: by mlp_ratio */
    const char *activation;
    const char *gate, *up, *down; /* of the feed-forward; `gate` may be NULL */
    struct {
        const char *norm, *up, *down;
    } merger;
    bool rms; /* norms are RMS norms */
    bool patch_bias;
    bool windows;   /* most layers see a window of a frame */
    bool positions; /* there is a table of positions too, and outputs of layers in between */
} QwenTraits;

typedef struct Qwen {
    Model *m;
    const QwenTraits *traits;
    int64_t hidden, intermediate, layers, heads, out;
    int64_t patch, frames, channels, merge; /* `frames` of a patch */
    double theta;
    const char *activation;
} Qwen;

/* Where every patch is, from the grids of the images: int64 [patches]. */
typedef struct QwenGrid {
    const Sym *patches;    /* how many */
    Value *height, *width; /* of its image, in patches */
    Value *frame;          /* the number of the first patch of its frame */
    Value *row, *column;   /* in the image */
    Value *window;         /* the number that the first cell of its window has in window order */
    Value *place;          /* that of its own cell */
    Value *cos, *sin;      /* [1, 1, patches, head] in float32 */
    Value *frame_mask, *window_mask; /* bool [1, 1, patches, patches] */
} QwenGrid;

/* `grids` int64 [images, 3]: frames, rows, columns. */
QwenGrid qwen_grid(const Qwen *q, const Sym *patches, Value *grids);

/* The square table of positions interpolated to every patch, [1, patches, hidden]. */
Value *qwen_positions(const Qwen *q, const QwenGrid *grid);

/* x [patches, hidden] with the cells sorted by window. */
Value *qwen_window_order(const Qwen *q, Value *x, const QwenGrid *grid);

#endif
