/* What is given to `ferry generate`, as the model takes it: a text, written into the checkpoint's chat template
 * where that is asked for, with the images and sounds that it speaks of. */
#define _POSIX_C_SOURCE 200809L
#include "cli/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prompt_free(Prompt *prompt) {
    free(prompt->text);
    ferry_processed_free(prompt->processed);
    ferry_processor_close(prompt->processor);
    ferry_tokenizer_close(prompt->tokenizer);
    ferry_tensors_free(prompt->made);
}

/* ---- text ---- */

/* A conversation of one message: its images and sounds, and its text. */
static void write_message(FILE *out, const PromptArgs *args) {
    fputs("[{\"role\": \"user\", \"content\": [", out);
    for (size_t i = 0; i < args->images.count; i++) fputs("{\"type\": \"image\"}, ", out);
    for (size_t i = 0; i < args->sounds.count; i++) {
        fputs("{\"type\": \"audio\", \"audio_url\": \"audio\"}, ", out);
    }
    fputs("{\"type\": \"text\", \"text\": ", out);
    cli_json_string_to(out, args->text);
    fputs("}]}]", out);
}

static ferry_status render_chat(const PromptArgs *args, FILE *out, ferry_error *error) {
    ferry_chat *chat;
    char *messages = NULL;
    size_t length;
    ferry_status status = ferry_chat_open(args->directory, &chat, error);
    if (status != FERRY_OK) return status;
    if (args->images.count + args->sounds.count == 0) {
        status = ferry_chat_render_user(chat, args->text, strlen(args->text), NULL, cli_write, out,
                                        error);
    } else {
        FILE *stream = open_memstream(&messages, &length);
        if (stream) write_message(stream, args);
        bool written = stream && fclose(stream) == 0;
        status = written ? ferry_chat_render(chat, messages, NULL, cli_write, out, error)
                         : cli_no_memory(error);
        free(messages);
    }
    ferry_chat_close(chat);
    return status;
}

/* Places for what the text does not mention: before it, one each. */
static void add_places(const char *token, size_t count, const char *text, FILE *out) {
    if (!token || strstr(text, token)) return;
    for (size_t i = 0; i < count; i++) fputs(token, out);
}

static ferry_status write_text(const PromptArgs *args, Prompt *prompt, ferry_error *error) {
    size_t length;
    FILE *out = open_memstream(&prompt->text, &length);
    if (!out) return cli_no_memory(error);
    ferry_status status = FERRY_OK;
    if (args->chat) {
        status = render_chat(args, out, error);
    } else {
        const ferry_processor *processor = prompt->processor;
        if (processor) {
            add_places(ferry_processor_image_token(processor), args->images.count, args->text, out);
            add_places(ferry_processor_audio_token(processor), args->sounds.count, args->text, out);
        }
        fputs(args->text, out);
    }
    if (fclose(out) != 0 && status == FERRY_OK) status = cli_no_memory(error);
    return status;
}

/* ---- tokens ---- */

static ferry_status encode(const PromptArgs *args, Prompt *prompt, ferry_error *error) {
    ferry_encoding *encoding;
    ferry_tensor *ids;
    ferry_encode_config config;
    ferry_encode_config_init(&config);
    config.special_tokens = !args->chat; /* a template has written them */
    ferry_status status = ferry_tokenizer_encode(prompt->tokenizer, prompt->text,
                                                 strlen(prompt->text), &config, &encoding, error);
    if (status != FERRY_OK) return status;
    const int64_t shape[2] = {1, (int64_t)encoding->count};
    prompt->made = ferry_tensors_new();
    status = prompt->made
                 ? ferry_tensors_add(prompt->made, "input_ids", FERRY_I64, 2, shape, &ids, error)
                 : cli_no_memory(error);
    for (size_t i = 0; status == FERRY_OK && i < encoding->count; i++) {
        ((int64_t *)ids->data)[i] = encoding->ids[i];
    }
    ferry_encoding_free(encoding);
    prompt->inputs = prompt->made;
    return status;
}

/* ---- images and sounds ---- */

static ferry_status process(const PromptArgs *args, Prompt *prompt, ferry_error *error) {
    ferry_media media[2 * sizeof args->images.items / sizeof *args->images.items];
    size_t count = 0;
    for (size_t i = 0; i < args->images.count; i++)
        media[count++] = (ferry_media){.path = args->images.items[i]};
    for (size_t i = 0; i < args->sounds.count; i++)
        media[count++] = (ferry_media){.path = args->sounds.items[i]};
    return ferry_processor_run(prompt->processor, media, count, &prompt->processed, error);
}

ferry_status prompt_make(const PromptArgs *args, Prompt *prompt, ferry_error *error) {
    bool media = args->images.count + args->sounds.count > 0;
    *prompt = (Prompt){0};
    ferry_status status = ferry_tokenizer_open(args->directory, &prompt->tokenizer, error);
    if (status == FERRY_OK && media)
        status = ferry_processor_open(args->directory, &prompt->processor, error);
    if (status == FERRY_OK && args->text) status = write_text(args, prompt, error);
    if (status == FERRY_OK && !media) return encode(args, prompt, error);
    if (status == FERRY_OK) status = process(args, prompt, error);
    if (status == FERRY_OK && args->text) {
        status = ferry_processed_add_prompt(prompt->processed, prompt->tokenizer, prompt->text,
                                            strlen(prompt->text), !args->chat, error);
    }
    if (status == FERRY_OK) prompt->inputs = ferry_processed_tensors(prompt->processed);
    return status;
}
