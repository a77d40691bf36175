/* A generation under way, and what its parts do: opening components and taking the prompt (prompt.c), running
 * them (stages.c), and choosing tokens (generate.c, beams.c). */
#ifndef EXPORT_GENERATOR_H
#define EXPORT_GENERATOR_H

#include "export/feed.h"
#include "run/sample.h"

typedef struct Generator {
    Arena arena;
    ferry_exported *exported;
    const ferry_generate_config *config;
    ferry_generate_stats *stats;
    ferry_error *error;
    Step *encoder, *prefill, *decode; /* NULL: there is none */
    bool single;                      /* decode takes one token at a time */
    Feed feed;
    int64_t *tokens;      /* behind feed.tokens */
    unsigned char *valid; /* behind feed.valid */
    unsigned char *ended; /* per row */
    int64_t prompt;       /* slots that were filled to begin with */
    int64_t limit;        /* slots that may be filled */
    ferry_tensors *given; /* what the user and the encoder give */
    ferry_tensors *cache; /* behind feed.cache */
    ferry_tensors *start; /* what a decoder behind an encoder starts with */
    float *scores;        /* [batch, vocabulary], of the next token */
    size_t vocabulary;
    uint32_t *scratch;
    SampleOptions options;
    SampleRandom random;
} Generator;

/* ---- prompt.c ---- */

/* Open the components that it takes to generate, and the cache that decode has. */
ferry_status generator_open(Generator *g);

/* Take what the user gives: the prompt, behind an encoder that is run, and everything that components take
 * besides tokens. */
ferry_status generator_take(Generator *g, const ferry_tensors *inputs);

/* ---- beams.c ---- */

/* Append the tensors of `from` to `to`: those with `rows` rows with every row so many times, the others as they
 * are. `from` must outlive `to`. */
ferry_status generator_repeat(const ferry_tensors *from, int64_t rows, int64_t times,
                              ferry_tensors *to, ferry_error *error);

/* Beam search, after the prompt. */
ferry_status generator_search(Generator *g, ferry_tensors **outputs);

/* ---- stages.c ---- */

/* Run the prompt, or the token that was added last; then the scores are those of the next token. */
ferry_status generator_prompt(Generator *g);
ferry_status generator_next(Generator *g);

#endif
