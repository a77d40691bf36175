/* Generation: the loop over tokens. */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"
#include "export/generator.h"

#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- tokens ---- */

float *generator_process(Generator *g, int64_t row) {
    float *scores = g->scores + (size_t)row * g->vocabulary;
    const SampleHistory history = {.tokens = g->tokens + row * g->limit,
                                   .count = (size_t)g->feed.used,
                                   .prompt = (size_t)g->prompt,
                                   .limit = (size_t)g->limit};
    sample_process(scores, g->vocabulary, &history, &g->options, g->scratch);
    return scores;
}

static int64_t choose_token(Generator *g, int64_t row) {
    float *scores = generator_process(g, row);
    if (!g->config->do_sample) return sample_best(scores, g->vocabulary);
    return sample_draw(scores, g->vocabulary, &g->options, g->scratch, &g->random);
}

/* A token for every row. Returns true when the generation is over. */
static bool add_tokens(Generator *g) {
    const ferry_generate_config *config = g->config;
    bool all_ended = true, enough = false;
    for (int64_t row = 0; row < g->feed.batch; row++) {
        int64_t *place = &g->tokens[row * g->limit + g->feed.used];
        if (g->ended[row]) {
            *place = config->pad_token_id >= 0 ? config->pad_token_id : config->eos_token_ids[0];
            continue;
        }
        *place = choose_token(g, row);
        g->ended[row] = sample_is_among(config->eos_token_ids, config->eos_token_count, *place);
        all_ended &= g->ended[row];
        if (g->stats) g->stats->new_tokens++;
        if (config->token) enough |= config->token(config->token_context, (size_t)row, *place);
    }
    return all_ended || enough;
}

/* ---- the whole ---- */

static void set_options(Generator *g) {
    const ferry_generate_config *config = g->config;
    g->options = (SampleOptions){.repetition_penalty = config->repetition_penalty,
                                 .temperature = config->temperature,
                                 .top_p = config->top_p,
                                 .min_p = config->min_p,
                                 .top_k = config->top_k,
                                 .no_repeat_ngram_size = config->no_repeat_ngram_size,
                                 .min_length = config->min_length,
                                 .min_new_tokens = config->min_new_tokens,
                                 .forced_bos = config->forced_bos_token_id,
                                 .forced_eos = config->forced_eos_token_id,
                                 .stop_tokens = config->eos_token_ids,
                                 .stop_count = config->eos_token_count,
                                 .suppress_tokens = config->suppress_tokens,
                                 .suppress_count = config->suppress_token_count,
                                 .begin_suppress_tokens = config->begin_suppress_tokens,
                                 .begin_suppress_count = config->begin_suppress_token_count};
    sample_seed(&g->random, config->seed);
}

static ferry_status make_sequences(const Generator *g, int64_t length, ferry_tensors **out) {
    ferry_tensor *sequences;
    const int64_t shape[2] = {g->feed.batch, length};
    *out = ferry_tensors_new();
    if (!*out) return error_memory(g->error, "sequences", 0);
    TRY(ferry_tensors_add(*out, "sequences", FERRY_I64, 2, shape, &sequences, g->error));
    for (int64_t row = 0; row < shape[0]; row++) {
        memcpy((int64_t *)sequences->data + row * length, g->tokens + row * g->limit,
               (size_t)length * sizeof(int64_t));
    }
    return FERRY_OK;
}

static ferry_status generate(Generator *g, const ferry_tensors *inputs, ferry_tensors **outputs) {
    double start = now();
    TRY(generator_open(g));
    double opened = now();
    TRY(feed_configure(&g->feed, g->exported, g->error));
    TRY(generator_take(g, inputs));
    g->feed.starts = true;
    set_options(g);
    if (g->decode) TRY(step_forget(g->decode, g->error));
    TRY(generator_prompt(g));
    bool search = g->config->num_beams > 1, over = search || add_tokens(g);
    double first = now();
    while (!over && g->feed.used + 1 < g->limit) {
        TRY(generator_next(g));
        over = add_tokens(g);
    }
    if (search) TRY(generator_search(g, outputs));
    if (g->stats) {
        g->stats->open_seconds = opened - start;
        g->stats->prefill_seconds = first - opened;
        g->stats->decode_seconds = now() - first;
        g->stats->prompt_tokens = (size_t)(g->prompt * g->feed.batch);
    }
    return search ? FERRY_OK : make_sequences(g, g->feed.used + 1, outputs);
}

ferry_status ferry_generate(ferry_exported *exported, const ferry_generate_config *config,
                            const ferry_tensors *inputs, ferry_tensors **outputs,
                            ferry_generate_stats *stats, ferry_error *error) {
    error_clear(error);
    *outputs = NULL;
    if (stats) *stats = (ferry_generate_stats){0};
    if (config->size != sizeof *config) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "ferry_generate_config",
                         "expected a structure of %zu bytes, found %zu: call "
                         "ferry_generate_config_init, and build against the library's own headers",
                         sizeof *config, config->size);
    }
    if (config->num_beams > 1 && config->do_sample) {
        return error_set(error, FERRY_UNSUPPORTED, "num_beams",
                         "beam search draws no tokens: take one beam, or the most probable tokens");
    }
    Generator g = {.exported = exported, .config = config, .stats = stats, .error = error};
    ferry_status status = generate(&g, inputs, outputs);
    merge_close(&g);
    step_close(g.encoder);
    step_close(g.prefill);
    step_close(g.decode);
    ferry_tensors_free(g.given);
    ferry_tensors_free(g.start);
    ferry_tensors_free(g.cache);
    arena_free(&g.arena);
    return status;
}
