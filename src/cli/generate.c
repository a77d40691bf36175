/* ferry generate */
#include "cli/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct GenerateArgs {
    PromptArgs prompt;
    const char *inputs, *output;
    long max_new_tokens, top_k, seed, beams, chunk, threads;
    double temperature, top_p, min_p, repetition_penalty;
    bool sample, greedy, stats, ids;
} GenerateArgs;

/* Text as it comes. */
typedef struct Printer {
    ferry_text_stream *stream; /* NULL: token ids */
    const ferry_generate_config *config;
    bool failed;
    ferry_error error;
} Printer;

static bool is_stop(const ferry_generate_config *config, int64_t token) {
    for (size_t i = 0; i < config->eos_token_count; i++) {
        if (config->eos_token_ids[i] == token) return true;
    }
    return false;
}

static bool print_token(void *context, size_t sequence, int64_t token) {
    Printer *printer = context;
    if (sequence) return false;
    if (!printer->stream) {
        printf("%lld ", (long long)token);
    } else if (!is_stop(printer->config, token)) {
        printer->failed = ferry_text_stream_put(printer->stream, (uint32_t)token, cli_write, NULL,
                                                &printer->error) != FERRY_OK;
    }
    fflush(stdout);
    return printer->failed;
}

static void print_stats(const ferry_generate_stats *stats) {
    double prefill = stats->prefill_seconds, decode = stats->decode_seconds;
    size_t steps = stats->new_tokens ? stats->new_tokens - 1 : 0;
    fflush(stdout);
    fprintf(stderr,
            "open     %8.3f s\n"
            "prefill  %8.3f s  %zu tokens  %.1f tokens/s\n"
            "decode   %8.3f s  %zu tokens  %.1f tokens/s\n",
            stats->open_seconds, prefill, stats->prompt_tokens,
            prefill > 0 ? (double)stats->prompt_tokens / prefill : 0, decode, steps,
            decode > 0 ? (double)steps / decode : 0);
}

/* As asked for, or as generation_config.json says; otherwise more than the 20 tokens that are the default of
 * GenerationConfig. */
static void set_length(long max_new_tokens, ferry_generate_config *config) {
    ferry_generate_config defaults;
    ferry_generate_config_init(&defaults);
    bool told = config->max_new_tokens > 0 || config->max_length != defaults.max_length;
    if (max_new_tokens > 0)
        config->max_new_tokens = max_new_tokens;
    else if (!told)
        config->max_new_tokens = 128;
}

static void apply(const GenerateArgs *args, ferry_generate_config *config) {
    set_length(args->max_new_tokens, config);
    if (args->sample) config->do_sample = true;
    if (args->greedy) config->do_sample = false;
    if (args->temperature > 0) config->temperature = args->temperature;
    if (args->top_k >= 0) config->top_k = args->top_k;
    if (args->top_p > 0) config->top_p = args->top_p;
    if (args->min_p > 0) config->min_p = args->min_p;
    if (args->repetition_penalty > 0) config->repetition_penalty = args->repetition_penalty;
    if (args->beams > 0) config->num_beams = args->beams;
    config->seed = (uint64_t)args->seed;
    config->chunk = args->chunk;
    config->run.threads = (unsigned)args->threads;
    config->run.note = config->note = cli_note;
}

/* Generate from inputs; text comes through the tokenizer (NULL: there is none). */
static ferry_status generate(ferry_exported *exported, const GenerateArgs *args,
                             const ferry_tensors *inputs, ferry_tokenizer *tokenizer,
                             ferry_generate_config *config, ferry_error *error) {
    ferry_tensors *outputs = NULL;
    ferry_generate_stats stats;
    Printer printer = {.config = config};
    ferry_status status = FERRY_OK;
    if (tokenizer && !args->ids)
        status = ferry_text_stream_new(tokenizer, true, &printer.stream, error);
    config->token = args->output ? NULL : print_token;
    config->token_context = &printer;
    if (status == FERRY_OK)
        status = ferry_generate(exported, config, inputs, &outputs, &stats, error);
    if (status == FERRY_OK && printer.failed) {
        *error = printer.error;
        status = error->status;
    }
    if (status == FERRY_OK && printer.stream)
        status = ferry_text_stream_end(printer.stream, cli_write, NULL, error);
    if (status == FERRY_OK && args->output)
        status = ferry_tensors_save(outputs, args->output, error);
    if (status == FERRY_OK && !args->output) putchar('\n');
    if (status == FERRY_OK && args->stats) print_stats(&stats);
    ferry_text_stream_free(printer.stream);
    ferry_tensors_free(outputs);
    return status;
}

/* From a prompt, or from a file of inputs. */
static int generate_from(ferry_exported *exported, const GenerateArgs *args,
                         ferry_generate_config *config) {
    ferry_error error;
    Prompt prompt = {0};
    ferry_tensors *loaded = NULL;
    ferry_status status = args->inputs ? ferry_tensors_load(args->inputs, &loaded, &error)
                                       : prompt_make(&args->prompt, &prompt, &error);
    if (status == FERRY_OK) {
        status = generate(exported, args, loaded ? loaded : prompt.inputs, prompt.tokenizer, config,
                          &error);
    }
    prompt_free(&prompt);
    ferry_tensors_free(loaded);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

static int run_generate(int argc, char **argv) {
    GenerateArgs args = {.top_k = -1};
    ferry_generate_config config;
    const char *names[2];
    ferry_generate_config_init(&config);
    const Option options[] = {
        {0, "chat", NULL, OPTION_FLAG, &args.prompt.chat,
         "PROMPT is what a user says to a chat model: write it as the\n"
         "model's chat template does"},
        {0, "image", "FILE", OPTION_LIST, &args.prompt.images,
         "an image (PNG, JPEG) that PROMPT speaks of; may be repeated"},
        {0, "audio", "FILE", OPTION_LIST, &args.prompt.sounds,
         "a sound (WAV) that PROMPT speaks of, or to transcribe"},
        {0, "language", "CODE", OPTION_STRING, &config.language,
         "the language that is spoken, such as fr; default en"},
        {0, "translate", NULL, OPTION_FLAG, &config.translate,
         "translate what is spoken into English"},
        {'i', "inputs", "FILE", OPTION_STRING, &args.inputs,
         "input_ids and other inputs (.safetensors, .npz) in the place of\n"
         "PROMPT"},
        {'o', "output", "FILE", OPTION_STRING, &args.output,
         "write the sequences (.safetensors, .npz) and print nothing"},
        {'n', "max-new-tokens", "N", OPTION_NUMBER, &args.max_new_tokens,
         "at most this many new tokens; default: as generation_config.json\n"
         "says, or 128"},
        {0, "sample", NULL, OPTION_FLAG, &args.sample,
         "draw tokens; default: as generation_config.json says"},
        {0, "greedy", NULL, OPTION_FLAG, &args.greedy, "take the most probable token"},
        {0, "temperature", "X", OPTION_REAL, &args.temperature,
         "divides the scores before drawing"},
        {0, "top-k", "N", OPTION_NUMBER, &args.top_k, "draw from the N most probable tokens"},
        {0, "top-p", "P", OPTION_REAL, &args.top_p,
         "draw from the most probable tokens that make up P together"},
        {0, "min-p", "P", OPTION_REAL, &args.min_p,
         "draw from tokens at least P times as probable as the first"},
        {0, "repetition-penalty", "X", OPTION_REAL, &args.repetition_penalty,
         "above 1: tokens that have occurred become less probable"},
        {0, "seed", "N", OPTION_NUMBER, &args.seed, "the same seed draws the same tokens"},
        {0, "beams", "N", OPTION_NUMBER, &args.beams, "beam search with N beams"},
        {0, "chunk", "N", OPTION_NUMBER, &args.chunk,
         "feed the prompt N tokens at a time, where decode takes several"},
        {0, "ids", NULL, OPTION_FLAG, &args.ids, "print token ids, not text"},
        {0, "stats", NULL, OPTION_FLAG, &args.stats, "print times and tokens/s to stderr"},
        {0, "runtime", "NAME", OPTION_STRING, &config.run.runtime,
         "onnxruntime, openvino, executorch or reference (built in);\n"
         "default: the one for the export's format where it is found, else\n"
         "reference"},
        {0, "library", "PATH", OPTION_STRING, &config.run.library,
         "the runtime's library; default: search"},
        {0, "device", "NAME", OPTION_STRING, &config.run.device,
         "OpenVINO: CPU, GPU, NPU or AUTO (the default)"},
        {0, "threads", "N", OPTION_NUMBER, &args.threads, "threads of the runtime"},
    };
    cli_parse(&command_generate, options, sizeof options / sizeof *options, argc, argv, names, 2);
    args.prompt.directory = names[0];
    args.prompt.text = names[1];
    bool media = args.prompt.images.count + args.prompt.sounds.count > 0;
    if (args.inputs ? names[1] || media : !names[1] && !args.prompt.sounds.count) {
        fputs("ferry generate: expected a PROMPT, or a sound, or --inputs FILE alone; see `ferry "
              "generate --help`\n",
              stderr);
        return 2;
    }
    ferry_exported *exported;
    ferry_error error;
    if (ferry_exported_load(names[0], &exported, &error) != FERRY_OK) return cli_fail(&error);
    config.note = cli_note;
    if (ferry_generate_config_load(exported, &config, &error) != FERRY_OK) {
        ferry_exported_free(exported);
        return cli_fail(&error);
    }
    apply(&args, &config);
    int status = generate_from(exported, &args, &config);
    ferry_exported_free(exported);
    return status;
}

const Command command_generate = {
    "generate", "DIR [PROMPT]", "Generate text from an export",
    "DIR is an export made with --generation, beside its tokenizer.json. Text is printed as it is\n"
    "generated. Options that are not given are those of generation_config.json.",
    run_generate};
