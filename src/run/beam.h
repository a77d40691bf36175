/* Beam search over one prompt: which sequences live on, and which are the best that have ended. The rules are
 * those of _beam_search in transformers.generation, in float32 as there. */
#ifndef RUN_BEAM_H
#define RUN_BEAM_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct BeamOptions {
    int64_t beams;         /* how many sequences live */
    int64_t prompt, limit; /* tokens that they begin with, and that they may have */
    double length_penalty;
    bool early_stopping;
    const int64_t *stop_tokens;
    size_t stop_count;
} BeamOptions;

/* A sequence and its score. */
typedef struct Beam {
    float score;
    bool ended;
    int64_t parent, token; /* what made it of the beams of the step before */
    int64_t length;        /* of `tokens`, when it has ended */
    int64_t *tokens;       /* [limit] */
} Beam;

typedef struct BeamSearch {
    BeamOptions options;
    float *running; /* [beams]: the scores of the sequences that live */
    Beam *ended;    /* [beams], best first */
    Beam *candidates;
    int64_t candidate_count;
    bool hopeless;  /* no sequence that lives can become better than those that ended */
    bool exhausted; /* every candidate of the last step had ended */
} BeamSearch;

/* Prepare a search; false when memory is exhausted. Everything lives in `arena`. */
bool beam_start(BeamSearch *search, const BeamOptions *options, Arena *arena);

/* One step: `scores` [beams, vocabulary] are logarithms of probabilities of the tokens behind `sequences`
 * [beams, limit], which have `length` tokens. parents[i] and tokens[i] are what sequence i of the next step
 * consists of. */
void beam_step(BeamSearch *search, const float *scores, size_t vocabulary, const int64_t *sequences,
               int64_t length, int64_t *parents, int64_t *tokens);

/* Have all sequences ended? */
bool beam_all_ended(const BeamSearch *search);

#endif
