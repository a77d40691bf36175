/* Conversations on the command line: what --chat and --messages make of a text. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Text {
    char *bytes;
    size_t length;
} Text;

/* A ferry_write that keeps what it is given, which comes in one piece. */
static void keep(void *context, const char *bytes, size_t length) {
    Text *text = context;
    text->bytes = malloc(length + 1);
    if (!text->bytes) return;
    memcpy(text->bytes, bytes, length);
    text->bytes[length] = '\0';
    text->length = length;
}

bool cli_is_chat(const ChatOptions *options) {
    return options->chat || options->messages;
}

char *cli_chat_render(const char *directory, const ChatOptions *options, const char *text,
                      size_t *length, int *status) {
    ferry_chat *chat;
    ferry_error error;
    Text out = {0};
    size_t tools_length;
    char *tools = options->tools ? cli_read(options->tools, &tools_length) : NULL;
    *status = ferry_status_exit(FERRY_IO);
    if (options->tools && !tools) return NULL;
    ferry_chat_config config;
    ferry_chat_config_init(&config);
    config.add_generation_prompt = !options->no_prompt;
    config.template_name = options->template_name;
    config.tools = tools;
    config.variables = options->variables;
    ferry_status done = ferry_chat_open(directory, &chat, &error);
    if (done == FERRY_OK) {
        done = options->messages
                   ? ferry_chat_render(chat, text, &config, keep, &out, &error)
                   : ferry_chat_render_user(chat, text, *length, &config, keep, &out, &error);
        ferry_chat_close(chat);
    }
    free(tools);
    *length = out.length;
    *status = done == FERRY_OK ? 0 : cli_fail(&error);
    return done == FERRY_OK && !out.bytes ? calloc(1, 1) : out.bytes;
}
