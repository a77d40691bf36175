/* Running the components of a generation.
 *
 * With a decode that takes any number of tokens, it does everything, from an empty cache on. With one that
 * takes a single token, prefill takes the prompt and its cache goes to decode; where decode keeps its cache to
 * itself, the prompt goes through it token by token. A model without a cache is run on the whole sequence again
 * for every token. */
#include "base/dtype.h"
#include "base/error.h"
#include "export/generator.h"
#include "format/tensors.h"

/* The scores of the last token of every row. */
static ferry_status take_scores(Generator *g, const ferry_tensors *outputs) {
    const ferry_tensor *logits = ferry_tensors_find(outputs, "logits");
    if (!logits || logits->rank != 3 || logits->shape[0] != g->feed.batch || logits->shape[1] < 1) {
        return error_set(g->error, FERRY_BAD_FORMAT, g->exported->directory,
                         "expected an output \"logits\" of [batch, length, vocabulary]");
    }
    size_t vocabulary = (size_t)logits->shape[2], rows = (size_t)logits->shape[1];
    if (!g->scores) {
        g->vocabulary = vocabulary;
        g->scores = ARENA_ARRAY(&g->arena, float, vocabulary *(size_t)g->feed.batch);
        g->scratch = ARENA_ARRAY(&g->arena, uint32_t, vocabulary);
        if (g->arena.failed) return error_memory(g->error, "logits", 0);
    }
    if (vocabulary != g->vocabulary) {
        return error_set(g->error, FERRY_BAD_FORMAT, g->exported->directory,
                         "the components have vocabularies of %zu and %zu tokens", g->vocabulary,
                         vocabulary);
    }
    for (size_t row = 0; row < (size_t)g->feed.batch; row++) {
        size_t last = (row * rows + rows - 1) * vocabulary * ferry_dtype_size(logits->dtype);
        dtype_convert(logits->dtype, (const unsigned char *)logits->data + last, FERRY_F32,
                      g->scores + row * vocabulary, vocabulary);
    }
    return FERRY_OK;
}

/* Run a component on the next `count` slots. Its outputs besides the scores are `*outputs`. */
static ferry_status run_step(Generator *g, Step *step, int64_t count, ferry_tensors **outputs) {
    ferry_tensors *inputs;
    g->feed.count = count;
    if (g->merge) TRY(merge_before(g, step));
    TRY(feed_make(&g->feed, step, &inputs, g->error));
    ferry_status status = step_run(step, inputs, outputs, g->error);
    ferry_tensors_free(inputs);
    if (status == FERRY_OK && g->merge) status = merge_after(g, *outputs);
    if (status != FERRY_OK) return status;
    g->feed.used += count;
    return take_scores(g, *outputs);
}

static ferry_status run_decode(Generator *g, int64_t count) {
    ferry_tensors *outputs = NULL;
    ferry_status status = run_step(g, g->decode, count, &outputs);
    ferry_tensors_free(outputs);
    g->feed.starts = false;
    return status;
}

/* The prompt through prefill; decode will start with the cache that this leaves. */
static ferry_status run_prefill(Generator *g, int64_t length) {
    ferry_tensors *outputs = NULL;
    TRY(run_step(g, g->prefill, length, &outputs));
    ferry_status status = FERRY_OK;
    for (size_t i = 0; g->decode && status == FERRY_OK && i < ferry_tensors_count(outputs); i++) {
        const ferry_tensor *output = ferry_tensors_at(outputs, i);
        if (ferry_tensors_find(g->given, output->name)) continue;
        status = tensors_lend(g->given, output->name, output, g->error);
    }
    if (status == FERRY_OK && g->decode) status = tensors_keep(g->given, outputs, g->error);
    ferry_tensors_free(outputs);
    return status;
}

/* How many of the first `length` tokens go through decode at once. */
static ferry_status choose_chunk(const Generator *g, int64_t length, int64_t *out) {
    const Feed *feed = &g->feed;
    bool longer = feed->short_length > 0 && length > feed->short_length;
    bool at_once = feed->both_ways || longer;
    *out = g->config->chunk > 0 && !g->merge && !at_once ? g->config->chunk : length;
    if (g->single) *out = 1;
    if (!at_once || *out == length) return FERRY_OK;
    return error_set(g->error, FERRY_UNSUPPORTED, g->exported->directory,
                     "this model computes the %lld tokens at once, and \"decode\" takes one at a "
                     "time: export with --multi-token-decode",
                     (long long)length);
}

/* The first `length` tokens. */
static ferry_status run_sequence(Generator *g, int64_t length) {
    int64_t most;
    g->feed.used = 0;
    if (g->prefill) TRY(run_prefill(g, length));
    if (g->prefill && !(g->decode && step_is_stateful(g->decode))) return FERRY_OK;
    TRY(choose_chunk(g, length, &most));
    g->feed.used = 0; /* a cache that the runtime keeps does not come from prefill */
    while (g->feed.used < length) {
        int64_t left = length - g->feed.used;
        TRY(run_decode(g, left < most ? left : most));
    }
    return FERRY_OK;
}

ferry_status generator_prompt(Generator *g) {
    return run_sequence(g, g->prompt);
}

ferry_status generator_next(Generator *g) {
    ferry_tensors *outputs = NULL;
    if (g->decode && g->feed.used == g->feed.short_length) {
        TRY(generator_restart(g));
        return run_sequence(g, g->feed.used + 1);
    }
    if (g->decode) return run_decode(g, 1);
    int64_t length = g->feed.used + 1;
    g->feed.used = 0;
    ferry_status status = run_step(g, g->prefill, length, &outputs);
    ferry_tensors_free(outputs);
    return status;
}
