/* Recurrences of state space models, h[t] = decay[t] h[t-1] + input[t], over sequences of any length.
 *
 * A program has no loops, and the length of the sequence is a symbol. So a sequence is cut into chunks
 * of a fixed number of tokens. Inside a chunk the states follow from each other one by one, or from all
 * inputs at once, weighted with the decay between the two; from chunk to chunk they are carried the same
 * way. Only decays are multiplied, which are at most 1: nothing is divided by them, and nothing
 * overflows, however long the sequence is. A sequence of one token is one step of the recurrence. */
#ifndef SOURCE_SCAN_H
#define SOURCE_SCAN_H

#include "graph/build.h"

/* All tensors are float32. `rates` are negative: the decay of a token is exp(step * rate). */
typedef struct ScanInputs {
    Value *x, *steps, *rates, *in, *out; /* the matrices called dt, A, B and C in the literature */
    Value *state;                        /* before the first token */
} ScanInputs;

typedef struct Scan {
    Value *y;     /* like x */
    Value *state; /* after the last token */
} Scan;

/* Mamba: x and steps [batch, length, channels], rates [channels, size], in and out [batch, length, size],
 * state [batch, channels, size]. The largest tensors have the states of all tokens, [batch, length,
 * channels, size], while there are at most 65,536; after that memory grows with the square of the
 * length / 256. */
Scan scan_channels(Builder *b, const ScanInputs *inputs);

/* Mamba 2: x [batch, length, heads, width], steps [batch, length, heads], rates [heads], in and out
 * [batch, length, groups, size], state [batch, heads, width, size]. The largest tensors are the decays
 * inside chunks, [batch, heads, length, 64], the states between them, and the decays between these,
 * [batch, heads, length / 64, length / 64]. */
Scan scan_heads(Builder *b, const ScanInputs *inputs);

#endif
