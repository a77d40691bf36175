/* Generation: a model in the stages that runtimes run, and running them. */
#ifndef FERRY_GENERATION_H
#define FERRY_GENERATION_H

#include <ferry/exported.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the split ---- */

/* The components that a model is exported as, before it is. */
typedef struct ferry_parts ferry_parts;

/* Split a model: a decoder into "prefill", which takes a prompt, and "decode", which goes on from a cache.
 * Every part starts with a copy of `config`, which must outlive the parts with all that it points to.
 * UNSUPPORTED for a model that does not generate. */
FERRY_API ferry_status ferry_decompose(ferry_model *model, const ferry_export_config *config,
                                       ferry_parts **out, ferry_error *error);
FERRY_API void ferry_parts_free(ferry_parts *parts);

/* What the parts are called, in the order of the export. NULL past the end. */
FERRY_API const char *ferry_parts_name(const ferry_parts *parts, size_t index);

/* How the part is exported: to be looked at, changed (but for its component), and exported by itself with
 * ferry_export. NULL past the end. */
FERRY_API ferry_export_config *ferry_parts_config(ferry_parts *parts, size_t index);

/* Leave a part out of the export. NOT_FOUND when there is none called `name`. */
FERRY_API ferry_status ferry_parts_skip(ferry_parts *parts, const char *name, ferry_error *error);

/* Export all parts that are left, as one export with a component each. An error names the component. */
FERRY_API ferry_status ferry_parts_export(const ferry_parts *parts, ferry_exported **out,
                                          ferry_error *error);

/* ---- running components ---- */

/* A component that is run step after step, and keeps its cache in between: what is an input and an output of
 * the same name. Nothing of it is copied where the runtime can hand its own tensors over, and a static cache
 * is updated in place. */
typedef struct ferry_runner ferry_runner;

/* Open a component (NULL: the only one) of an export that ferry wrote. The export must outlive the runner, and
 * have one runner per component at a time. */
FERRY_API ferry_status ferry_exported_runner(ferry_exported *exported, const char *name,
                                             const ferry_run_config *config, ferry_runner **out,
                                             ferry_error *error);
FERRY_API void ferry_runner_free(ferry_runner *runner);

/* Run on `inputs`, by the names of the model's keywords. The cache goes on from the last run, unless it is among
 * them; the first run must be given one, such as prefill's, or one without entries, except where the
 * runtime keeps it. `*outputs`, which the caller frees, has everything but the cache. */
FERRY_API ferry_status ferry_runner_run(ferry_runner *runner, const ferry_tensors *inputs,
                                        ferry_tensors **outputs, ferry_error *error);

/* A copy of the cache, by the names of the inputs; the caller's to free. */
FERRY_API ferry_status ferry_runner_cache(ferry_runner *runner, ferry_tensors **out,
                                          ferry_error *error);

/* Forget the cache. */
FERRY_API ferry_status ferry_runner_reset(ferry_runner *runner, ferry_error *error);

/* ---- generating ---- */

/* Told a new token of a sequence of the batch, in order; returning true ends the generation. */
typedef bool (*ferry_token)(void *context, size_t sequence, int64_t token);

/* How to generate. ferry_generate_config_init sets what a model is asked for without further notice, and
 * ferry_generate_config_load what its generation_config.json says. The names and their meanings are those of
 * Transformers' GenerationConfig. */
typedef struct ferry_generate_config {
    size_t size; /* of this structure, as the caller knows it; set by init */

    int64_t max_new_tokens; /* 0: up to max_length */
    int64_t max_length;     /* of prompt and answer, when max_new_tokens is 0; 20 by default */
    int64_t min_length, min_new_tokens;

    bool do_sample;      /* draw tokens; false: take the most probable one */
    double temperature;  /* 1 */
    int64_t top_k;       /* 50; 0: all */
    double top_p, min_p; /* 1 and 0: all */
    uint64_t seed;       /* the same seed gives the same tokens */

    double repetition_penalty; /* 1 */
    int64_t no_repeat_ngram_size;

    int64_t num_beams; /* 1; more: beam search */
    double length_penalty;
    bool early_stopping;

    /* Token ids; negative: none. The decoder's start is that of encoder-decoder models. */
    int64_t pad_token_id, decoder_start_token_id, forced_bos_token_id, forced_eos_token_id;
    const int64_t *eos_token_ids, *suppress_tokens, *begin_suppress_tokens; /* the caller's */
    size_t eos_token_count, suppress_token_count, begin_suppress_token_count;

    /* What decoders behind an encoder start with, the start token included; none: that token alone. */
    const int64_t *decoder_prompt;
    size_t decoder_prompt_count;

    /* Whisper, before ferry_generate_config_load: the language that is spoken, such as "en", the default, and
     * whether it is to be translated into English. */
    const char *language;
    bool translate;

    int64_t chunk; /* prompts go into a multi-token decode this many tokens at a time; 0: whole */

    ferry_run_config run; /* where */

    ferry_token token; /* may be NULL */
    void *token_context;
    ferry_note note; /* may be NULL */
    void *note_context;
} ferry_generate_config;

FERRY_API void ferry_generate_config_init(ferry_generate_config *config);

/* Fill `config` from generation_config.json of an export's directory, where there is one, else from config.json
 * as Transformers does. A note tells of keys that are set and not supported. What `config` points to then
 * belongs to `exported`. */
FERRY_API ferry_status ferry_generate_config_load(ferry_exported *exported,
                                                  ferry_generate_config *config,
                                                  ferry_error *error);

/* What it took. */
typedef struct ferry_generate_stats {
    size_t prompt_tokens, new_tokens;       /* of all sequences */
    double open_seconds;                    /* opening the runtime and its sessions */
    double prefill_seconds, decode_seconds; /* until the first token is known, and after */
    uint64_t cache_bytes_copied;            /* of caches, by ferry, between steps */
} ferry_generate_stats;

/* Generate from `inputs`: input_ids [batch, length] int64, padded on the left, and, when rows are padded,
 * attention_mask. Models with an encoder take its inputs (input_ids, input_features) in their place, and may be given
 * decoder_input_ids. `*outputs`, the caller's to free, has "sequences" [batch, length] int64 with prompt and
 * answer, filled up with pad_token_id. `stats` may be NULL. The sessions stay open for the next call. */
FERRY_API ferry_status ferry_generate(ferry_exported *exported, const ferry_generate_config *config,
                                      const ferry_tensors *inputs, ferry_tensors **outputs,
                                      ferry_generate_stats *stats, ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
