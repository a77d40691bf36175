/* Beam search. */
#include "run/beam.h"
#include "run/sample.h"

#include <math.h>
#include <string.h>

/* Low enough to be the last choice. */
static const float LOW = -1e9f;

bool beam_start(BeamSearch *search, const BeamOptions *options, Arena *arena) {
    int64_t beams = options->beams;
    int64_t per_beam = options->stop_count > 1 ? 1 + (int64_t)options->stop_count : 2;
    *search = (BeamSearch){.options = *options, .candidate_count = per_beam * beams};
    search->running = ARENA_ARRAY(arena, float, (size_t)beams);
    search->ended = ARENA_ARRAY(arena, Beam, (size_t)beams);
    search->candidates = ARENA_ARRAY(arena, Beam, (size_t)search->candidate_count);
    if (arena->failed) return false;
    for (int64_t i = 0; i < beams; i++) {
        /* The sequences are the same at first: one of them will do. */
        search->running[i] = i == 0 ? 0 : LOW;
        search->ended[i] = (Beam){.score = LOW};
        search->ended[i].tokens = ARENA_ARRAY(arena, int64_t, (size_t)options->limit);
    }
    return !arena->failed;
}

/* The best continuations of all sequences, best first. */
static void find_candidates(BeamSearch *search, const float *scores, size_t vocabulary) {
    int64_t most = search->candidate_count, count = 0;
    Beam *list = search->candidates;
    for (int64_t beam = 0; beam < search->options.beams; beam++) {
        const float *row = scores + (size_t)beam * vocabulary;
        for (size_t token = 0; token < vocabulary; token++) {
            float score = row[token] + search->running[beam];
            if (count == most && !(score > list[most - 1].score)) continue;
            int64_t at = count < most ? count++ : most - 1;
            for (; at > 0 && score > list[at - 1].score; at--) list[at] = list[at - 1];
            list[at] = (Beam){.score = score, .parent = beam, .token = (int64_t)token};
        }
    }
}

/* Put a sequence that has ended among the best ones. */
static void keep(BeamSearch *search, const Beam *candidate, float score, const int64_t *sequences,
                 int64_t length) {
    Beam *list = search->ended;
    int64_t last = search->options.beams - 1;
    if (!(score > list[last].score)) return;
    int64_t *tokens = list[last].tokens;
    int64_t at = last;
    for (; at > 0 && score > list[at - 1].score; at--) list[at] = list[at - 1];
    memcpy(tokens, sequences + candidate->parent * search->options.limit,
           (size_t)length * sizeof *tokens);
    tokens[length] = candidate->token;
    list[at] = (Beam){.score = score, .ended = true, .length = length + 1, .tokens = tokens};
}

bool beam_all_ended(const BeamSearch *search) {
    for (int64_t i = 0; i < search->options.beams; i++) {
        if (!search->ended[i].ended) return false;
    }
    return true;
}

static float penalized(const BeamSearch *search, float score, int64_t length) {
    double added = (double)(length - search->options.prompt);
    return score / (float)pow(added, search->options.length_penalty);
}

/* The sequences of the next step: the best candidates that have not ended. */
static void choose_running(BeamSearch *search, int64_t *parents, int64_t *tokens) {
    int64_t chosen = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < search->candidate_count && chosen < search->options.beams; i++) {
            const Beam *candidate = &search->candidates[i];
            if (candidate->ended != (pass == 1)) continue;
            search->running[chosen] = candidate->score + (pass ? LOW : 0);
            parents[chosen] = candidate->parent;
            tokens[chosen++] = candidate->token;
        }
    }
}

void beam_step(BeamSearch *search, const float *scores, size_t vocabulary, const int64_t *sequences,
               int64_t length, int64_t *parents, int64_t *tokens) {
    const BeamOptions *options = &search->options;
    bool full = options->early_stopping && beam_all_ended(search);
    find_candidates(search, scores, vocabulary);
    search->exhausted = true;
    for (int64_t i = 0; i < search->candidate_count; i++) {
        Beam *candidate = &search->candidates[i];
        candidate->ended =
            length + 1 >= options->limit ||
            sample_is_among(options->stop_tokens, options->stop_count, candidate->token);
        search->exhausted &= candidate->ended;
        /* Only the first ones count when they end; the others are there to live on. */
        if (!candidate->ended || i >= options->beams || full || search->hopeless) continue;
        keep(search, candidate, penalized(search, candidate->score, length + 1), sequences, length);
    }
    choose_running(search, parents, tokens);
    float worst =
        search->ended[options->beams - 1].ended ? search->ended[options->beams - 1].score : LOW;
    if (!(penalized(search, search->running[0], length + 1) > worst)) search->hopeless = true;
}
