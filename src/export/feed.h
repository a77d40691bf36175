/* The inputs of a step of generation: what a component takes, made from the sequences so far. */
#ifndef EXPORT_FEED_H
#define EXPORT_FEED_H

#include "export/step.h"

/* Sequences in slots: slot s of a row holds its s-th token, padding on the left included. */
typedef struct Feed {
    int64_t batch;
    int64_t used, count;        /* the step takes slots [used, used + count) */
    int64_t capacity;           /* of a row in the two arrays */
    const int64_t *tokens;      /* [batch, capacity] */
    const unsigned char *valid; /* [batch, capacity]: 0 for padding */
    int64_t cache_length;       /* of a static cache; 0: it grows */
    int64_t window;             /* what sliding layers see; 0: everything */
    int64_t chunk;        /* layers with chunked attention see their own chunk; 0: there are none */
    int64_t vocabulary;   /* token ids are below this; 0: unknown */
    int64_t short_length; /* a cache of this many slots is of no use to the next; 0: all are */
    bool slides;          /* a mask that is not by type is that of sliding layers */
    bool both_ways;       /* tokens of a prompt see those behind them */
    bool starts;          /* the step has no cache yet: it starts with `given`, or empty */
    /* [3, batch, capacity]: in time, height and width; NULL: those of text */
    const int64_t *places;
    int64_t first_position; /* the position of the first token */
    /* [batch, capacity]: tokens of one block see each other; negative: of none */
    const int64_t *blocks;
    bool blocks_slide;          /* as far as the window of sliding layers goes */
    const int64_t *beams;       /* [batch]: which row each one goes on from; NULL: itself */
    const ferry_tensors *cache; /* what the cache starts with, when it is not `given` or empty */
    const ferry_tensors *given; /* other inputs by keyword, such as the encoder's output */
} Feed;

/* What config.json says about windows, into `feed`. */
ferry_status feed_configure(Feed *feed, const ferry_exported *exported, ferry_error *error);

/* The inputs of `step`, by keyword; the caller's. An input of unknown meaning that is not given is
 * INVALID_ARGUMENT. */
ferry_status feed_make(const Feed *feed, const Step *step, ferry_tensors **out, ferry_error *error);

#endif
