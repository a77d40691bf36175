/* Choosing tokens: the processors of scores, drawing, beams. */
#include "check.h"
#include "run/beam.h"
#include "run/sample.h"

#include <math.h>
#include <string.h>

enum { VOCABULARY = 8 };

static void scores_are(float *scores, const char *expected) {
    char text[256];
    size_t length = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%g", i ? " " : "",
                                   (double)scores[i]);
    }
    assert_string_equal(text, expected);
}

static const SampleOptions PLAIN = {
    .repetition_penalty = 1, .temperature = 1, .top_p = 1, .forced_bos = -1, .forced_eos = -1};

static void test_processors(void **state) {
    (void)state;
    uint32_t scratch[VOCABULARY];
    const int64_t tokens[] = {3, 1, 3, 1, 3}, stops[] = {7};
    const SampleHistory history = {.tokens = tokens, .count = 5, .prompt = 4, .limit = 9};
    float scores[VOCABULARY] = {1, -2, 0, 4, 0, 0, 0, 5};
    SampleOptions options = PLAIN;
    sample_process(scores, VOCABULARY, &history, &options, scratch);
    scores_are(scores, "1 -2 0 4 0 0 0 5");
    options.repetition_penalty = 2;   /* each token once: 3 and 1 */
    options.no_repeat_ngram_size = 2; /* behind 3 came 1 */
    options.min_new_tokens = 2;
    options.stop_tokens = stops;
    options.stop_count = 1;
    sample_process(scores, VOCABULARY, &history, &options, scratch);
    scores_are(scores, "1 -inf 0 2 0 0 0 -inf");
    options = PLAIN;
    options.forced_eos = 6;
    const SampleHistory last = {.tokens = tokens, .count = 5, .prompt = 4, .limit = 6};
    sample_process(scores, VOCABULARY, &last, &options, scratch);
    assert_int_equal(sample_best(scores, VOCABULARY), 6);
}

/* How often each token is drawn, in thousandths of many draws. */
static void count_draws(const SampleOptions *options, const float *logits, int *counts) {
    SampleRandom random;
    uint32_t scratch[VOCABULARY];
    enum { DRAWS = 100000 };
    sample_seed(&random, 7);
    memset(counts, 0, VOCABULARY * sizeof *counts);
    for (int i = 0; i < DRAWS; i++) {
        float scores[VOCABULARY];
        memcpy(scores, logits, sizeof scores);
        counts[sample_draw(scores, VOCABULARY, options, scratch, &random)]++;
    }
    for (int i = 0; i < VOCABULARY; i++) counts[i] = (counts[i] + DRAWS / 2000) / (DRAWS / 1000);
}

static void test_drawing(void **state) {
    (void)state;
    /* probabilities 0.5, 0.25, 0.125, 0.0625, ... */
    float logits[VOCABULARY];
    int counts[VOCABULARY];
    for (int i = 0; i < VOCABULARY; i++) logits[(i * 3) % VOCABULARY] = (float)(-i * log(2));
    SampleOptions options = PLAIN;
    count_draws(&options, logits, counts);
    assert_true(abs(counts[0] - 502) < 8 && abs(counts[3] - 251) < 8 && abs(counts[6] - 125) < 8);
    options.top_k = 2;
    count_draws(&options, logits, counts);
    assert_true(abs(counts[0] - 667) < 8 && counts[0] + counts[3] == 1000);
    options = PLAIN;
    options.top_p = 0.7; /* the second token crosses it */
    count_draws(&options, logits, counts);
    assert_true(abs(counts[0] - 667) < 8 && counts[0] + counts[3] == 1000);
    options.top_p = 1;
    options.min_p = 0.2; /* 0.125 / 0.5 is more, 0.0625 / 0.5 less */
    count_draws(&options, logits, counts);
    assert_true(counts[6] > 100 && counts[1] == 0);
    options = PLAIN;
    options.temperature = 0.01;
    count_draws(&options, logits, counts);
    assert_int_equal(counts[0], 1000);
}

static void test_the_same_seed_draws_the_same(void **state) {
    (void)state;
    for (int round = 0; round < 2; round++) {
        static int64_t first[16];
        SampleRandom random;
        uint32_t scratch[VOCABULARY];
        sample_seed(&random, 42);
        for (int i = 0; i < 16; i++) {
            float scores[VOCABULARY] = {0};
            int64_t token = sample_draw(scores, VOCABULARY, &PLAIN, scratch, &random);
            if (round) assert_int_equal(token, first[i]);
            first[i] = token;
        }
    }
}

/* Token 0 ends a sequence. From every sequence, token 1 is likely, 2 less, and the end the least. */
static void test_beams(void **state) {
    (void)state;
    Arena arena = {0};
    BeamSearch search;
    const int64_t stop = 0;
    const BeamOptions options = {.beams = 2,
                                 .prompt = 1,
                                 .limit = 4,
                                 .length_penalty = 1,
                                 .stop_tokens = &stop,
                                 .stop_count = 1};
    assert_true(beam_start(&search, &options, &arena));
    const float scores[2][3] = {{-3, -0.5f, -1}, {-3, -0.5f, -1}};
    int64_t sequences[2][4] = {{9}, {9}}, parents[2], tokens[2];
    for (int64_t length = 1; length < 4; length++) {
        beam_step(&search, &scores[0][0], 3, &sequences[0][0], length, parents, tokens);
        int64_t moved[2][4];
        memcpy(moved, sequences, sizeof moved);
        for (int i = 0; i < 2; i++) {
            memcpy(sequences[i], moved[parents[i]], sizeof sequences[i]);
            sequences[i][length] = tokens[i];
        }
    }
    assert_true(search.exhausted && beam_all_ended(&search));
    const int64_t best[4] = {9, 1, 1, 1};
    assert_memory_equal(search.ended[0].tokens, best, sizeof best);
    assert_true(fabsf(search.ended[0].score + 0.5f) < 1e-6f);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_drawing),
        cmocka_unit_test(test_the_same_seed_draws_the_same),
        cmocka_unit_test(test_beams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
