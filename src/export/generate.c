/* Generation: the loop over an export's components.
 *
 * With a decode that takes any number of tokens, it does everything, from an empty cache on. With one that
 * takes a single token, prefill takes the prompt and its cache goes to decode; where decode keeps its cache to
 * itself, the prompt goes through it token by token. A model without a cache is run on the whole sequence again
 * for every token. */
#define _POSIX_C_SOURCE 200809L
#include "base/dtype.h"
#include "base/error.h"
#include "export/feed.h"
#include "format/tensors.h"
#include "run/sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Where decoders take the encoder's output. */
static const char ENCODED[] = "encoder_outputs.last_hidden_state";

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
    ferry_tensors *start; /* what a decoder behind an encoder starts with */
    float *scores;        /* [batch, vocabulary], of the next token */
    size_t vocabulary;
    uint32_t *scratch;
    SampleOptions options;
    SampleRandom random;
} Generator;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- components ---- */

static ferry_status open_step(Generator *g, const char *name, Step **out) {
    for (size_t i = 0; i < ferry_exported_component_count(g->exported); i++) {
        ferry_exported *component = ferry_exported_component_at(g->exported, i);
        if (strcmp(ferry_exported_name(component), name) != 0) continue;
        return step_open(component, &g->config->run, out, g->error);
    }
    return FERRY_OK;
}

static const StepPort *ids_of(const Step *step) {
    const StepPort *port = step_find(step, "decoder_input_ids");
    return port ? port : step_find(step, "input_ids");
}

/* Does the component need caches that only prefill can make, of keys and values of the encoder's output? */
static bool needs_prefill(const Step *step) {
    const StepPort *port;
    for (size_t i = 0; (port = step_input(step, i)); i++) {
        if (strstr(port->keyword, "cross_attention_cache")) return true;
    }
    return false;
}

static ferry_status choose_steps(Generator *g) {
    Step *whole = NULL;
    TRY(open_step(g, "encoder", &g->encoder));
    TRY(open_step(g, "decode", &g->decode));
    TRY(open_step(g, "model", &whole));
    if (whole && !g->decode && step_takes_cache(whole))
        g->decode = whole;
    else if (whole) {
        g->prefill = whole;
    }
    if (g->decode) {
        const StepPort *ids = ids_of(g->decode);
        g->single = ids && ids->port->rank == 2 && strcmp(ids->port->shape[1], "1") == 0;
        g->feed.cache_length = step_component(g->decode)->manifest.static_cache;
        bool start = needs_prefill(g->decode) || (g->single && !step_is_stateful(g->decode));
        if (start && !g->prefill) TRY(open_step(g, "prefill", &g->prefill));
    }
    const Step *first = g->prefill ? g->prefill : g->decode;
    if (first && ids_of(first)) return FERRY_OK;
    return error_set(g->error, FERRY_UNSUPPORTED, g->exported->directory,
                     "the export has no component that takes tokens and a cache: export the model "
                     "with --generation");
}

/* ---- sequences ---- */

/* The prompt of a decoder behind an encoder: what is given, else the tokens to start with, for every row of
 * the encoder's output. */
static ferry_status start_decoder(Generator *g, const ferry_tensors *inputs,
                                  const ferry_tensor **out) {
    const ferry_generate_config *config = g->config;
    *out = ferry_tensors_find(inputs, "decoder_input_ids");
    if (*out) return FERRY_OK;
    const ferry_tensor *hidden = ferry_tensors_find(g->given, ENCODED);
    if (config->decoder_prompt_count == 0 && config->decoder_start_token_id < 0) {
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "decoder_input_ids",
                         "the model's configuration has no decoder_start_token_id: give "
                         "decoder_input_ids");
    }
    bool whole = config->decoder_prompt_count > 0;
    const int64_t *tokens = whole ? config->decoder_prompt : &config->decoder_start_token_id;
    const int64_t shape[2] = {hidden->shape[0],
                              whole ? (int64_t)config->decoder_prompt_count : 1};
    ferry_tensor *ids;
    TRY(ferry_tensors_add(g->start, "decoder_input_ids", FERRY_I64, 2, shape, &ids, g->error));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
        ((int64_t *)ids->data)[i] = tokens[i % shape[1]];
    }
    *out = ids;
    return FERRY_OK;
}

/* Run the encoder, and leave its output where the decoder finds it. */
static ferry_status run_encoder(Generator *g) {
    ferry_tensors *outputs;
    const ferry_tensor *ids = ferry_tensors_find(g->given, "input_ids");
    if (ids && ids->rank == 2 && !ferry_tensors_find(g->given, "attention_mask")) {
        ferry_tensor *mask;
        TRY(ferry_tensors_add(g->given, "attention_mask", FERRY_I64, 2, ids->shape, &mask,
                              g->error));
        for (size_t i = 0; i < ferry_tensor_count(mask); i++) ((int64_t *)mask->data)[i] = 1;
    }
    TRY(step_run(g->encoder, g->given, &outputs, g->error));
    const ferry_tensor *hidden = ferry_tensors_find(outputs, "last_hidden_state");
    ferry_status status =
        hidden && hidden->rank == 3
            ? tensors_lend(g->given, ENCODED, hidden, g->error)
            : error_set(g->error, FERRY_BAD_FORMAT, g->exported->directory,
                        "expected the encoder to return \"last_hidden_state\"");
    if (status == FERRY_OK) status = tensors_keep(g->given, outputs, g->error);
    ferry_tensors_free(outputs);
    return status;
}

static ferry_status check_prompt(Generator *g, const ferry_tensor *ids, const ferry_tensor *mask) {
    if (!ids || ids->rank != 2 || ids->dtype != FERRY_I64 || ids->shape[0] < 1 ||
        ids->shape[1] < 1) {
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "input_ids",
                         "expected int64 [batch, length] with at least one token");
    }
    if (!mask) return FERRY_OK;
    bool fits = mask->dtype == FERRY_I64 && mask->rank == 2 && mask->shape[0] == ids->shape[0] &&
                mask->shape[1] == ids->shape[1];
    for (int64_t row = 0; fits && row < ids->shape[0]; row++) {
        if (((const int64_t *)mask->data)[(row + 1) * mask->shape[1] - 1]) continue;
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "attention_mask",
                         "row %lld ends in padding: prompts are padded on the left",
                         (long long)row);
    }
    if (fits) return FERRY_OK;
    return error_set(g->error, FERRY_INVALID_ARGUMENT, "attention_mask",
                     "expected int64 of the shape of input_ids");
}

/* How long sequences may become. */
static ferry_status set_limit(Generator *g, int64_t prompt) {
    const ferry_generate_config *config = g->config;
    int64_t cache = g->feed.cache_length;
    g->limit = config->max_new_tokens > 0 ? prompt + config->max_new_tokens : config->max_length;
    if (g->limit <= prompt) {
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "max_length",
                         "the prompt has %lld tokens, and sequences may have %lld: ask for new "
                         "tokens",
                         (long long)prompt, (long long)g->limit);
    }
    if (cache && g->limit - 1 > cache) {
        return error_set(g->error, FERRY_INVALID_ARGUMENT, g->exported->directory,
                         "the cache was exported for %lld entries, and %lld tokens of the prompt "
                         "with %lld new ones need %lld: ask for fewer, or export with a longer "
                         "--static-cache",
                         (long long)cache, (long long)prompt, (long long)(g->limit - prompt),
                         (long long)(g->limit - 1));
    }
    /* A static cache of any length is as long as it must be. */
    if (!cache) {
        const StepPort *port;
        for (size_t i = 0; g->decode && (port = step_input(g->decode, i)); i++) {
            if (strstr(port->keyword, "cumulative_length")) g->feed.cache_length = g->limit - 1;
        }
    }
    return FERRY_OK;
}

static ferry_status take_prompt(Generator *g, const ferry_tensors *inputs) {
    const ferry_tensor *ids = ferry_tensors_find(inputs, "input_ids");
    const ferry_tensor *mask = ferry_tensors_find(inputs, "attention_mask");
    if (g->encoder) {
        TRY(run_encoder(g));
        TRY(start_decoder(g, inputs, &ids));
        mask = ferry_tensors_find(inputs, "decoder_attention_mask");
    }
    TRY(check_prompt(g, ids, mask));
    g->prompt = ids->shape[1];
    int64_t batch = ids->shape[0], length = ids->shape[1];
    TRY(set_limit(g, length));
    g->tokens = ARENA_ARRAY(&g->arena, int64_t, (size_t)(batch * g->limit));
    g->valid = arena_alloc(&g->arena, (size_t)(batch * g->limit));
    g->ended = arena_alloc(&g->arena, (size_t)batch);
    if (g->arena.failed) return error_memory(g->error, "sequences", 0);
    for (int64_t row = 0; row < batch; row++) {
        for (int64_t i = 0; i < g->limit; i++) {
            bool prompt = i < length;
            int64_t from = row * length + i, to = row * g->limit + i;
            g->tokens[to] = prompt ? ((const int64_t *)ids->data)[from] : 0;
            g->valid[to] = !prompt || !mask || ((const int64_t *)mask->data)[from] != 0;
        }
    }
    g->feed.batch = batch;
    g->feed.capacity = g->limit;
    g->feed.tokens = g->tokens;
    g->feed.valid = g->valid;
    return FERRY_OK;
}

/* ---- steps ---- */

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
    TRY(feed_make(&g->feed, step, &inputs, g->error));
    ferry_status status = step_run(step, inputs, outputs, g->error);
    ferry_tensors_free(inputs);
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

static ferry_status run_prompt(Generator *g) {
    int64_t length = g->prompt;
    if (g->prefill) TRY(run_prefill(g, length));
    if (g->prefill && !(g->decode && step_is_stateful(g->decode))) return FERRY_OK;
    g->feed.used = 0; /* a cache that the runtime keeps does not come from prefill */
    int64_t most = g->single ? 1 : g->config->chunk > 0 ? g->config->chunk : length;
    while (g->feed.used < length) {
        int64_t left = length - g->feed.used;
        TRY(run_decode(g, left < most ? left : most));
    }
    return FERRY_OK;
}

static ferry_status run_next(Generator *g) {
    ferry_tensors *outputs = NULL;
    if (g->decode) return run_decode(g, 1);
    int64_t length = g->feed.used + 1;
    g->feed.used = 0;
    ferry_status status = run_step(g, g->prefill, length, &outputs);
    ferry_tensors_free(outputs);
    return status;
}

/* ---- tokens ---- */

static bool stops(const ferry_generate_config *config, int64_t token) {
    for (size_t i = 0; i < config->eos_token_count; i++) {
        if (config->eos_token_ids[i] == token) return true;
    }
    return false;
}

static int64_t choose_token(Generator *g, int64_t row) {
    float *scores = g->scores + (size_t)row * g->vocabulary;
    const SampleHistory history = {.tokens = g->tokens + row * g->limit,
                                   .count = (size_t)g->feed.used,
                                   .prompt = (size_t)g->prompt,
                                   .limit = (size_t)g->limit};
    sample_process(scores, g->vocabulary, &history, &g->options, g->scratch);
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
        g->ended[row] = stops(config, *place);
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

/* Everything that is given besides the tokens goes to whichever component takes it. */
static ferry_status take_given(Generator *g, const ferry_tensors *inputs) {
    g->given = ferry_tensors_new();
    g->start = ferry_tensors_new();
    if (!g->given || !g->start) return error_memory(g->error, "inputs", 0);
    for (size_t i = 0; i < ferry_tensors_count(inputs); i++) {
        const ferry_tensor *tensor = ferry_tensors_at(inputs, i);
        bool tokens = !strcmp(tensor->name, "input_ids") || !strcmp(tensor->name, "attention_mask");
        if (strncmp(tensor->name, "decoder_", 8) == 0) continue;
        if (g->encoder || !tokens) TRY(tensors_lend(g->given, tensor->name, tensor, g->error));
    }
    g->feed.given = g->given;
    return FERRY_OK;
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
    TRY(choose_steps(g));
    double opened = now();
    TRY(take_given(g, inputs));
    TRY(take_prompt(g, inputs));
    TRY(feed_configure(&g->feed, g->exported, g->error));
    g->feed.starts = true;
    set_options(g);
    if (g->decode) TRY(step_forget(g->decode, g->error));
    TRY(run_prompt(g));
    bool over = add_tokens(g);
    double first = now();
    while (!over && g->feed.used + 1 < g->limit) {
        TRY(run_next(g));
        over = add_tokens(g);
    }
    if (g->stats) {
        g->stats->open_seconds = opened - start;
        g->stats->prefill_seconds = first - opened;
        g->stats->decode_seconds = now() - first;
        g->stats->prompt_tokens = (size_t)(g->prompt * g->feed.batch);
    }
    return make_sequences(g, g->feed.used + 1, outputs);
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
    Generator g = {.exported = exported, .config = config, .stats = stats, .error = error};
    ferry_status status = generate(&g, inputs, outputs);
    step_close(g.encoder);
    step_close(g.prefill);
    step_close(g.decode);
    ferry_tensors_free(g.given);
    ferry_tensors_free(g.start);
    arena_free(&g.arena);
    return status;
}
