/* Beam search in the generation loop: every prompt is a group of rows, which change places from step to step,
 * and their caches with them. */
#include "export/generator.h"
#include "base/error.h"
#include "format/tensors.h"
#include "run/beam.h"

#include <math.h>
#include <string.h>

typedef struct Beams {
    Generator *g;
    int64_t beams, prompts;
    BeamSearch *searches;     /* one per prompt */
    int64_t *parents, *added; /* of all rows */
    int64_t *moved;           /* tokens, while rows change places */
} Beams;

/* ---- rows ---- */

/* Rows of a tensor: to[i] = from[rows[i]]. */
static ferry_status take_rows(const ferry_tensor *from, const int64_t *rows, int64_t count,
                              ferry_tensors *to, ferry_error *error) {
    int64_t shape[FERRY_MAX_RANK];
    ferry_tensor *copy;
    memcpy(shape, from->shape, sizeof shape);
    shape[0] = count;
    TRY(ferry_tensors_add(to, from->name, from->dtype, from->rank, shape, &copy, error));
    size_t bytes = from->shape[0] ? ferry_tensor_bytes(from) / (size_t)from->shape[0] : 0;
    for (int64_t i = 0; i < count && bytes; i++) {
        memcpy((char *)copy->data + (size_t)i * bytes,
               (const char *)from->data + (size_t)rows[i] * bytes, bytes);
    }
    return FERRY_OK;
}

/* The same for all tensors that have `rows` rows; the others as they are. */
static ferry_status pick_rows(const ferry_tensors *from, int64_t rows, const int64_t *places,
                              int64_t count, ferry_tensors *to, ferry_error *error) {
    for (size_t i = 0; i < ferry_tensors_count(from); i++) {
        const ferry_tensor *tensor = ferry_tensors_at(from, i);
        if (tensor->rank > 0 && tensor->shape[0] == rows)
            TRY(take_rows(tensor, places, count, to, error));
        else
            TRY(tensors_lend(to, tensor->name, tensor, error));
    }
    return FERRY_OK;
}

ferry_status generator_repeat(const ferry_tensors *from, int64_t rows, int64_t times,
                              ferry_tensors *to, ferry_error *error) {
    Arena scratch = {0};
    int64_t *places = ARENA_ARRAY(&scratch, int64_t, (size_t)(rows * times));
    ferry_status status = places ? FERRY_OK : error_memory(error, "beams", 0);
    for (int64_t i = 0; places && i < rows * times; i++) places[i] = i / times;
    if (status == FERRY_OK) status = pick_rows(from, rows, places, rows * times, to, error);
    arena_free(&scratch);
    return status;
}

/* Let the cache of every row be that of its parent. */
static ferry_status move_cache(Beams *b) {
    Generator *g = b->g;
    int64_t rows = g->feed.batch;
    bool moves = false;
    for (int64_t i = 0; i < rows; i++) moves |= b->parents[i] != i;
    g->feed.beams = b->parents;
    if (!moves || !g->decode || step_is_stateful(g->decode) || g->feed.starts) return FERRY_OK;
    ferry_tensors *cache = NULL, *moved = ferry_tensors_new();
    ferry_status status =
        moved ? step_carried(g->decode, &cache, g->error) : error_memory(g->error, "beams", 0);
    if (status == FERRY_OK) status = pick_rows(cache, rows, b->parents, rows, moved, g->error);
    if (status == FERRY_OK) status = tensors_keep(moved, cache, g->error);
    ferry_tensors_free(cache);
    ferry_tensors_free(g->cache);
    g->cache = status == FERRY_OK ? moved : NULL;
    if (status != FERRY_OK) ferry_tensors_free(moved);
    g->feed.cache = g->cache;
    g->feed.starts = true;
    return status;
}

/* ---- steps ---- */

/* Logarithms of probabilities. */
static void normalize(float *scores, size_t vocabulary) {
    float highest = scores[0];
    double sum = 0;
    for (size_t i = 1; i < vocabulary; i++) highest = fmaxf(highest, scores[i]);
    for (size_t i = 0; i < vocabulary; i++) sum += exp((double)(scores[i] - highest));
    float shift = highest + (float)log(sum);
    for (size_t i = 0; i < vocabulary; i++) scores[i] -= shift;
}

/* Extend the sequences. Returns true when the search is over. */
static bool extend(Beams *b) {
    Generator *g = b->g;
    int64_t length = g->feed.used;
    bool improves = false, all_ended = true, all_exhausted = true;
    for (int64_t row = 0; row < g->feed.batch; row++) {
        normalize(g->scores + (size_t)row * g->vocabulary, g->vocabulary);
        generator_process(g, row);
    }
    for (int64_t p = 0; p < b->prompts; p++) {
        int64_t first = p * b->beams;
        BeamSearch *search = &b->searches[p];
        beam_step(search, g->scores + (size_t)first * g->vocabulary, g->vocabulary,
                  g->tokens + first * g->limit, length, b->parents + first, b->added + first);
        for (int64_t i = first; i < first + b->beams; i++) b->parents[i] += first;
        improves |= !search->hopeless;
        all_ended &= beam_all_ended(search);
        all_exhausted &= search->exhausted;
    }
    memcpy(b->moved, g->tokens, (size_t)(g->feed.batch * g->limit) * sizeof *b->moved);
    for (int64_t row = 0; row < g->feed.batch; row++) {
        memcpy(g->tokens + row * g->limit, b->moved + b->parents[row] * g->limit,
               (size_t)length * sizeof *b->moved);
        g->tokens[row * g->limit + length] = b->added[row];
    }
    if (g->stats) g->stats->new_tokens += (size_t)b->prompts;
    bool stopped = all_ended && g->config->early_stopping;
    return !improves || stopped || all_exhausted;
}

/* The best sequence of each prompt. */
static ferry_status make_sequences(const Beams *b, ferry_tensors **out) {
    const Generator *g = b->g;
    const ferry_generate_config *config = g->config;
    /* Transformers takes a padding token of 0 for none here. */
    int64_t fill = config->pad_token_id > 0  ? config->pad_token_id
                   : config->eos_token_count ? config->eos_token_ids[0]
                                             : -1;
    int64_t longest = 0;
    ferry_tensor *sequences;
    for (int64_t p = 0; p < b->prompts; p++) {
        int64_t length = b->searches[p].ended[0].length;
        if (length > longest) longest = length;
    }
    const int64_t shape[2] = {b->prompts, longest};
    *out = ferry_tensors_new();
    if (!*out) return error_memory(g->error, "sequences", 0);
    TRY(ferry_tensors_add(*out, "sequences", FERRY_I64, 2, shape, &sequences, g->error));
    for (int64_t p = 0; p < b->prompts; p++) {
        const Beam *best = &b->searches[p].ended[0];
        for (int64_t i = 0; i < longest; i++) {
            ((int64_t *)sequences->data)[p * longest + i] =
                i < best->length ? best->tokens[i] : fill;
        }
    }
    return FERRY_OK;
}

/* What is told as it comes is told at the end here: before, no token is certain. */
static void tell(const Beams *b, const ferry_tensors *outputs) {
    const ferry_generate_config *config = b->g->config;
    const ferry_tensor *sequences = ferry_tensors_find(outputs, "sequences");
    for (int64_t p = 0; config->token && p < b->prompts; p++) {
        const int64_t *row = (const int64_t *)sequences->data + p * sequences->shape[1];
        for (int64_t i = b->g->prompt; i < b->searches[p].ended[0].length; i++) {
            if (config->token(config->token_context, (size_t)p, row[i])) return;
        }
    }
}

ferry_status generator_search(Generator *g, ferry_tensors **outputs) {
    Beams b = {.g = g, .beams = g->config->num_beams};
    b.prompts = g->feed.batch / b.beams;
    b.searches = ARENA_ARRAY(&g->arena, BeamSearch, (size_t)b.prompts);
    b.parents = ARENA_ARRAY(&g->arena, int64_t, (size_t)g->feed.batch);
    b.added = ARENA_ARRAY(&g->arena, int64_t, (size_t)g->feed.batch);
    b.moved = ARENA_ARRAY(&g->arena, int64_t, (size_t)(g->feed.batch * g->limit));
    if (g->arena.failed) return error_memory(g->error, "beams", 0);
    const BeamOptions options = {.beams = b.beams,
                                 .prompt = g->prompt,
                                 .limit = g->limit,
                                 .length_penalty = g->config->length_penalty,
                                 .early_stopping = g->config->early_stopping,
                                 .stop_tokens = g->config->eos_token_ids,
                                 .stop_count = g->config->eos_token_count};
    for (int64_t p = 0; p < b.prompts; p++) {
        if (!beam_start(&b.searches[p], &options, &g->arena))
            return error_memory(g->error, "beams", 0);
    }
    while (!extend(&b)) {
        TRY(move_cache(&b));
        TRY(generator_next(g));
    }
    TRY(make_sequences(&b, outputs));
    tell(&b, *outputs);
    return FERRY_OK;
}
