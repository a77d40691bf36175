/* From the scores of a language model to its next token, as the logits processors of
 * transformers.generation do it and in their order. */
#ifndef RUN_SAMPLE_H
#define RUN_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Options by the names of GenerationConfig; what is 0 (repetition_penalty and temperature: 1) is off. */
typedef struct SampleOptions {
    double repetition_penalty, temperature, top_p, min_p;
    int64_t top_k, no_repeat_ngram_size;
    int64_t min_length, min_new_tokens;
    int64_t forced_bos, forced_eos; /* negative: none */
    const int64_t *stop_tokens, *suppress_tokens, *begin_suppress_tokens;
    size_t stop_count, suppress_count, begin_suppress_count;
} SampleOptions;

/* What a sequence holds so far. */
typedef struct SampleHistory {
    const int64_t *tokens;
    size_t count;  /* of all tokens, the prompt included */
    size_t prompt; /* of those that came with the prompt */
    size_t limit;  /* the count that it will not exceed */
} SampleHistory;

/* A stream of random numbers. */
typedef struct SampleRandom {
    uint64_t state[2];
} SampleRandom;

void sample_seed(SampleRandom *random, uint64_t seed);

/* Change the scores [vocabulary] of the next token. `scratch`, here and below, has room for `vocabulary`
 * numbers. */
void sample_process(float *scores, size_t vocabulary, const SampleHistory *history,
                    const SampleOptions *options, uint32_t *scratch);

/* Is the token one of these? */
bool sample_is_among(const int64_t *tokens, size_t count, int64_t token);

/* The token with the highest score. */
int64_t sample_best(const float *scores, size_t vocabulary);

/* A token with the probability that the scores give it, after temperature, top_k, top_p and min_p. Scores are
 * changed. */
int64_t sample_draw(float *scores, size_t vocabulary, const SampleOptions *options,
                    uint32_t *scratch, SampleRandom *random);

#endif
