/* A generation under way, and what its parts do: opening components and taking the prompt (prompt.c), running
 * them (stages.c), and choosing tokens (generate.c, beams.c). */
#ifndef EXPORT_GENERATOR_H
#define EXPORT_GENERATOR_H

#include "export/feed.h"
#include "run/sample.h"

typedef struct Merge Merge;

typedef struct Generator {
    Arena arena;
    ferry_exported *exported;
    const ferry_generate_config *config;
    ferry_generate_stats *stats;
    ferry_error *error;
    Step *encoder, *prefill, *decode; /* NULL: there is none */
    Merge *merge;                     /* of a multimodal model; NULL: it is none */
    bool single;                      /* decode takes one token at a time */
    Feed feed;
    int64_t *tokens;             /* behind feed.tokens */
    unsigned char *valid;        /* behind feed.valid */
    unsigned char *ended;        /* per row */
    int64_t prompt;              /* slots that were filled to begin with */
    int64_t limit;               /* slots that may be filled */
    const ferry_tensors *inputs; /* what the user gives */
    ferry_tensors *given;        /* that and what the encoder gives */
    ferry_tensors *cache;        /* behind feed.cache */
    ferry_tensors *start;        /* what a decoder behind an encoder starts with */
    float *scores;               /* [batch, vocabulary], of the next token */
    size_t vocabulary;
    uint32_t *scratch;
    SampleOptions options;
    SampleRandom random;
} Generator;

/* How many rows go on from the same prompt. */
static inline int64_t generator_beams(const Generator *g) {
    return g->config->num_beams > 1 ? g->config->num_beams : 1;
}

/* ---- generate.c ---- */

/* The scores of the token behind a row's, as the options change them. */
float *generator_process(Generator *g, int64_t row);

/* ---- prompt.c ---- */

/* Open the components that it takes to generate, and the cache that decode has. */
ferry_status generator_open(Generator *g);

/* Take what the user gives: the prompt, behind an encoder that is run, and everything that components take
 * besides tokens. */
ferry_status generator_take(Generator *g, const ferry_tensors *inputs);

/* Forget what the components keep of the sequences. */
ferry_status generator_restart(Generator *g);

/* ---- merge.c ---- */

/* Open the component called `name` of the export, if there is one. */
ferry_status generator_open_step(Generator *g, const char *name, Step **out);

/* Open what a multimodal model runs besides: g->merge, where the export has a language model that takes
 * embeddings. The prompt goes through that, and so does all else when it keeps its cache to itself. */
ferry_status merge_open(Generator *g);
void merge_close(Generator *g);

/* Is it a token that features take the place of? It need not be in the vocabulary. */
bool merge_stands_for_media(const Generator *g, int64_t token);

/* Encode images and audio, and find the tokens that stand for them. */
ferry_status merge_take(Generator *g);

/* embed.c. Before a step: give it what it takes in the place of tokens. */
ferry_status merge_before(Generator *g, const Step *step);

/* After it: make logits of its last hidden states. */
ferry_status merge_after(Generator *g, ferry_tensors *outputs);

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
