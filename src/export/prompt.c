/* The beginning of a generation: its components, and what it starts from. */
#include "base/error.h"
#include "export/generator.h"
#include "format/tensors.h"

#include <string.h>

/* Where decoders take the encoder's output. */
static const char ENCODED[] = "encoder_outputs.last_hidden_state";

/* ---- components ---- */

ferry_status generator_open_step(Generator *g, const char *name, Step **out) {
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

ferry_status generator_open(Generator *g) {
    TRY(merge_open(g));
    if (g->merge && g->decode) return FERRY_OK;
    TRY(generator_open_step(g, "encoder", &g->encoder));
    TRY(generator_open_step(g, "decode", &g->decode));
    if (!g->decode) TRY(generator_open_step(g, "model", &g->decode));
    if (g->decode && !step_takes_cache(g->decode)) { /* it takes whole sequences */
        g->prefill = g->decode;
        g->decode = NULL;
    }
    if (g->decode) {
        const StepPort *ids = ids_of(g->decode);
        g->single = ids && ids->port->rank == 2 && strcmp(ids->port->shape[1], "1") == 0;
        g->feed.cache_length = step_component(g->decode)->manifest.static_cache;
        bool start = needs_prefill(g->decode) || (g->single && !step_is_stateful(g->decode));
        if (start && !g->prefill) TRY(generator_open_step(g, "prefill", &g->prefill));
    }
    if (g->merge && g->decode && step_is_stateful(g->decode)) {
        return error_set(g->error, FERRY_UNSUPPORTED, g->exported->directory,
                         "decode keeps its cache to itself and cannot go on from that of "
                         "language_model: export with --no-stateful");
    }
    const Step *first = g->prefill ? g->prefill : g->decode;
    if (first && (g->merge || ids_of(first))) return FERRY_OK;
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
    const int64_t shape[2] = {hidden->shape[0], whole ? (int64_t)config->decoder_prompt_count : 1};
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
    ferry_status status = hidden && hidden->rank == 3
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
    for (size_t i = 0; g->feed.vocabulary && i < ferry_tensor_count(ids); i++) {
        int64_t token = ((const int64_t *)ids->data)[i];
        if (token >= 0 && token < g->feed.vocabulary) continue;
        if (g->merge && merge_stands_for_media(g, token)) continue;
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "input_ids",
                         "token %lld is outside the model's vocabulary of %lld: the tokenizer and "
                         "the model do not belong together",
                         (long long)token, (long long)g->feed.vocabulary);
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

/* How long sequences may become: at most so many tokens, more than any model sees. */
static ferry_status set_limit(Generator *g, int64_t prompt) {
    enum { MOST = 1 << 24 };
    const ferry_generate_config *config = g->config;
    int64_t cache = g->feed.cache_length, added = config->max_new_tokens;
    g->limit = added > MOST ? MOST : added > 0 ? prompt + added : config->max_length;
    if (g->limit > MOST) g->limit = MOST;
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
    bool counted = g->decode && step_component(g->decode)->manifest.counted;
    if (!cache && counted) g->feed.cache_length = g->limit - 1;
    return FERRY_OK;
}

static bool is_state(const char *name) {
    return strstr(name, "conv_states") || strstr(name, "recurrent_states");
}

/* Are there layers with states, as of Mamba, that were traced? Of padding they know what prefill makes of a
 * mask of keys. */
static bool has_traced_states(const Step *step) {
    const Manifest *manifest = &step_component(step)->manifest;
    bool states = false;
    for (size_t i = 0; i < manifest->input_count; i++) states |= is_state(manifest->inputs[i].name);
    for (size_t i = 0; i < manifest->state_count; i++) states |= is_state(manifest->states[i].name);
    return states && manifest->traced;
}

/* Can a component tell padding from tokens? The first one must be told by a mask. In those behind it padding
 * is among the keys alone. */
static bool knows_padding(const Step *step, bool first) {
    const StepPort *port;
    bool masks = false, masks_keys = false, keys = false;
    for (size_t i = 0; (port = step_input(step, i)); i++) {
        bool mask = strstr(port->keyword, "attention_mask") != NULL;
        masks |= mask;
        masks_keys |= mask && port->port->rank == 2;
        keys |= strstr(port->keyword, ".keys") != NULL;
    }
    if (!first) return masks || !keys;
    return has_traced_states(step) ? masks_keys && !step_takes_cache(step) : masks;
}

static ferry_status check_padding(const Generator *g) {
    bool padded = false;
    bool alone = !g->prefill || (g->decode && step_is_stateful(g->decode));
    for (int64_t row = 0; row < g->feed.batch; row++) padded |= !g->valid[row * g->limit];
    bool known = knows_padding(alone ? g->decode : g->prefill, true);
    if (!alone && g->decode) known = known && knows_padding(g->decode, false);
    if (!padded || known) return FERRY_OK;
    return error_set(g->error, FERRY_UNSUPPORTED, "attention_mask",
                     "the program was traced without a mask for padding: give prompts of the same "
                     "length");
}

/* Every beam has what its prompt has. */
static ferry_status repeat_given(Generator *g, int64_t rows) {
    ferry_tensors *repeated = ferry_tensors_new();
    if (!repeated) return error_memory(g->error, "beams", 0);
    ferry_status status =
        generator_repeat(g->given, rows, g->config->num_beams, repeated, g->error);
    if (status == FERRY_OK) status = tensors_keep(repeated, g->given, g->error);
    if (status != FERRY_OK) {
        ferry_tensors_free(repeated);
        return status;
    }
    ferry_tensors_free(g->given);
    g->given = repeated;
    g->feed.given = repeated;
    return FERRY_OK;
}

static ferry_status take_prompt(Generator *g, const ferry_tensors *inputs) {
    const ferry_tensor *ids = ferry_tensors_find(inputs, "input_ids");
    const ferry_tensor *mask = ferry_tensors_find(inputs, "attention_mask");
    if (g->encoder) {
        TRY(run_encoder(g));
        TRY(start_decoder(g, inputs, &ids));
        mask = ferry_tensors_find(inputs, "decoder_attention_mask");
        if (g->config->num_beams > 1) TRY(repeat_given(g, ids->shape[0]));
    }
    TRY(check_prompt(g, ids, mask));
    g->prompt = ids->shape[1];
    int64_t beams = generator_beams(g), batch = ids->shape[0] * beams, length = ids->shape[1];
    TRY(set_limit(g, length));
    g->tokens = ARENA_ARRAY(&g->arena, int64_t, (size_t)(batch * g->limit));
    g->valid = arena_alloc(&g->arena, (size_t)(batch * g->limit));
    g->ended = arena_alloc(&g->arena, (size_t)batch);
    if (g->arena.failed) return error_memory(g->error, "sequences", 0);
    for (int64_t row = 0; row < batch; row++) {
        for (int64_t i = 0; i < g->limit; i++) {
            bool prompt = i < length;
            int64_t from = row / beams * length + i, to = row * g->limit + i;
            g->tokens[to] = prompt ? ((const int64_t *)ids->data)[from] : 0;
            g->valid[to] = !prompt || !mask || ((const int64_t *)mask->data)[from] != 0;
        }
    }
    g->feed.batch = batch;
    g->feed.capacity = g->limit;
    g->feed.tokens = g->tokens;
    g->feed.valid = g->valid;
    return check_padding(g);
}

/* Everything that is given besides the tokens goes to whichever component takes it. */
static ferry_status take_given(Generator *g) {
    const ferry_tensors *inputs = g->inputs;
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

ferry_status generator_take(Generator *g, const ferry_tensors *inputs) {
    g->inputs = inputs;
    TRY(take_given(g));
    TRY(take_prompt(g, inputs));
    return g->merge ? merge_take(g) : FERRY_OK;
}

ferry_status generator_restart(Generator *g) {
    ferry_tensors_free(g->given);
    ferry_tensors_free(g->start);
    ferry_tensors_free(g->cache);
    g->given = g->start = g->cache = NULL;
    g->feed.cache = NULL;
    g->feed.starts = true;
    TRY(take_given(g));
    return step_forget(g->decode, g->error);
}
