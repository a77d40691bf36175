/* ferry preprocess */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILES = 256 };

static void print_tensors(const ferry_tensors *tensors) {
    const ferry_tensor *tensor;
    for (size_t i = 0; (tensor = ferry_tensors_at(tensors, i)); i++) {
        printf("%s: %s", tensor->name, ferry_dtype_name(tensor->dtype));
        cli_sizes(tensor->rank, tensor->shape);
        putchar('\n');
    }
}

typedef struct Request {
    const char *directory, *prompt, *output;
    bool render, plain;
    ferry_media files[MAX_FILES];
    size_t count;
} Request;

/* input_ids and what goes with them. */
static ferry_status add_prompt(const Request *r, ferry_processed *processed, ferry_error *error) {
    ferry_tokenizer *tokenizer;
    ferry_status status = ferry_tokenizer_open(r->directory, &tokenizer, error);
    if (status != FERRY_OK) return status;
    status = ferry_processed_add_prompt(processed, tokenizer, r->prompt, strlen(r->prompt),
                                        !r->plain, error);
    ferry_tokenizer_close(tokenizer);
    return status;
}

static ferry_status write_inputs(const Request *r, ferry_processed *processed, ferry_error *error) {
    ferry_status status = r->prompt ? add_prompt(r, processed, error) : FERRY_OK;
    const ferry_tensors *tensors = ferry_processed_tensors(processed);
    if (status == FERRY_OK && r->output) status = ferry_tensors_save(tensors, r->output, error);
    if (status == FERRY_OK) print_tensors(tensors);
    return status;
}

static ferry_status preprocess(const Request *r, ferry_error *error) {
    ferry_processor *processor;
    ferry_processed *processed = NULL;
    ferry_status status = ferry_processor_open(r->directory, &processor, error);
    if (status != FERRY_OK) return status;
    status = ferry_processor_run(processor, r->files, r->count, &processed, error);
    if (status == FERRY_OK && r->render)
        status =
            ferry_processed_expand(processed, r->prompt, strlen(r->prompt), cli_write, NULL, error);
    else if (status == FERRY_OK)
        status = write_inputs(r, processed, error);
    ferry_processed_free(processed);
    ferry_processor_close(processor);
    return status;
}

static int run_preprocess(int argc, char **argv) {
    const char *arguments[MAX_FILES + 1];
    Request request = {0};
    const Option options[] = {
        {'o', "output", "FILE", OPTION_STRING, &request.output,
         "write the inputs (.safetensors or .npz)"},
        {0, "prompt", "TEXT", OPTION_STRING, &request.prompt,
         "a prompt with a place for each file: add input_ids and what\n"
         "goes with them"},
        {0, "no-special", NULL, OPTION_FLAG, &request.plain,
         "add no special tokens around the prompt, as for what a chat\n"
         "template wrote"},
        {0, "render", NULL, OPTION_FLAG, &request.render,
         "print the expanded prompt, and nothing else"},
    };
    cli_parse(&command_preprocess, options, sizeof options / sizeof *options, argc, argv, arguments,
              MAX_FILES + 1);
    if (request.render && !request.prompt) {
        fputs("ferry preprocess: --render goes with --prompt\n", stderr);
        return ferry_status_exit(FERRY_INVALID_ARGUMENT);
    }
    request.directory = arguments[0];
    while (request.count < MAX_FILES && arguments[request.count + 1]) {
        request.files[request.count].path = arguments[request.count + 1];
        request.count++;
    }
    ferry_error error;
    return preprocess(&request, &error) == FERRY_OK ? 0 : cli_fail(&error);
}

const Command command_preprocess = {
    "preprocess", "DIR FILE...", "Turn images and sounds into the inputs of a model",
    "DIR is a checkpoint with a preprocessor_config.json or processor_config.json. "
    "FILEs are PNG, JPEG\nor WAV.",
    run_preprocess};
