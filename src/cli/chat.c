/* Conversations on the command line: what --chat and --messages make of a text. */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <stdlib.h>

bool cli_is_chat(const ChatOptions *options) {
    return options->chat || options->messages;
}

/* Write the conversation into the template of the checkpoint. */
static ferry_status render(const char *directory, const ChatOptions *options, const char *tools,
                           const char *text, size_t length, FILE *out, ferry_error *error) {
    ferry_chat *chat;
    ferry_chat_config config;
    ferry_chat_config_init(&config);
    config.add_generation_prompt = !options->no_prompt;
    config.template_name = options->template_name;
    config.tools = tools;
    config.variables = options->variables;
    ferry_status status = ferry_chat_open(directory, &chat, error);
    if (status != FERRY_OK) return status;
    status = options->messages
                 ? ferry_chat_render(chat, text, &config, cli_write, out, error)
                 : ferry_chat_render_user(chat, text, length, &config, cli_write, out, error);
    ferry_chat_close(chat);
    return status;
}

char *cli_chat_render(const char *directory, const ChatOptions *options, const char *text,
                      size_t *length, int *status) {
    ferry_error error;
    char *rendered = NULL;
    size_t tools_length;
    char *tools = options->tools ? cli_read(options->tools, &tools_length) : NULL;
    *status = ferry_status_exit(FERRY_IO);
    if (options->tools && !tools) return NULL;
    size_t given = *length;
    FILE *out = open_memstream(&rendered, length);
    ferry_status done =
        out ? render(directory, options, tools, text, given, out, &error) : cli_no_memory(&error);
    free(tools);
    if (out && fclose(out) != 0 && done == FERRY_OK) done = cli_no_memory(&error);
    if (done == FERRY_OK) return rendered;
    *status = cli_fail(&error);
    free(rendered);
    return NULL;
}
