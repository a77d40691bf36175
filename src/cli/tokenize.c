/* ferry tokenize */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_numbers(const char *name, size_t count, const uint32_t *words,
                          const unsigned char *bytes) {
    printf(",\n  \"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%u", i ? ", " : "", words ? words[i] : (unsigned)bytes[i]);
    putchar(']');
}

static void print_json(const ferry_tokenizer *tokenizer, const ferry_encoding *encoding) {
    printf("{\n  \"tokens\": [");
    for (size_t i = 0; i < encoding->count; i++) {
        const char *token = ferry_tokenizer_token(tokenizer, encoding->ids[i]);
        if (i) fputs(", ", stdout);
        cli_json_string(token ? token : "");
    }
    putchar(']');
    print_numbers("ids", encoding->count, encoding->ids, NULL);
    printf(",\n  \"offsets\": [");
    for (size_t i = 0; i < encoding->count; i++) {
        printf("%s[%zu, %zu]", i ? ", " : "", encoding->offsets[i].begin, encoding->offsets[i].end);
    }
    putchar(']');
    print_numbers("type_ids", encoding->count, encoding->type_ids, NULL);
    print_numbers("special_tokens_mask", encoding->count, NULL, encoding->special);
    print_numbers("attention_mask", encoding->count, NULL, encoding->attention_mask);
    puts("\n}");
}

static ferry_status encode(ferry_tokenizer *tokenizer, const char *text, size_t length,
                           const ferry_encode_config *config, bool json, ferry_error *error) {
    ferry_encoding *encoding;
    ferry_status status = ferry_tokenizer_encode(tokenizer, text, length, config, &encoding, error);
    if (status != FERRY_OK) return status;
    if (json) {
        print_json(tokenizer, encoding);
    } else {
        for (size_t i = 0; i < encoding->count; i++) printf("%s%u", i ? " " : "", encoding->ids[i]);
        putchar('\n');
    }
    ferry_encoding_free(encoding);
    return FERRY_OK;
}

/* The ids in a text, separated by blanks or commas; NULL, with a message, when there is anything else. */
static uint32_t *parse_ids(const char *text, size_t *count) {
    uint32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    *count = 0;
    while (ids && *(text += strspn(text, " \t\r\n,[]"))) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(text, &end, 10);
        if (!isdigit((unsigned char)*text) || errno || id > UINT32_MAX) {
            fprintf(stderr, "ferry tokenize: expected ids, found %.20s\n", text);
            free(ids);
            return NULL;
        }
        ids[(*count)++] = (uint32_t)id;
        text = end;
    }
    return ids;
}

static int run_tokenize(int argc, char **argv) {
    const char *arguments[2];
    bool json = false, decode = false, plain = false, skip = false, render = false;
    ChatOptions chat = {0};
    int exit_status;
    ferry_encode_config config;
    ferry_encode_config_init(&config);
    const Option options[] = {
        {0, "decode", NULL, OPTION_FLAG, &decode,
         "TEXT is ids; print the text that they stand for"},
        {0, "skip-special", NULL, OPTION_FLAG, &skip, "with --decode: leave special tokens out"},
        {0, "pair", "TEXT", OPTION_STRING, &config.pair,
         "a second text, for models that take pairs"},
        {0, "no-special", NULL, OPTION_FLAG, &plain, "add no special tokens around the text"},
        {0, "truncate", NULL, OPTION_FLAG, &config.truncate,
         "cut off what tokenizer.json allows no room for"},
        {0, "pad", NULL, OPTION_FLAG, &config.pad, "fill up as tokenizer.json says"},
        OPTIONS_CHAT(&chat),
        {0, "render", NULL, OPTION_FLAG, &render,
         "with --chat or --messages: print the text, not its ids"},
        {0, "json", NULL, OPTION_FLAG, &json, "print JSON: tokens, ids, offsets in bytes, masks"},
    };
    cli_parse(&command_tokenize, options, sizeof options / sizeof *options, argc, argv, arguments,
              2);
    if (render && !cli_is_chat(&chat)) {
        fputs("ferry tokenize: --render goes with --chat or --messages\n", stderr);
        return ferry_status_exit(FERRY_INVALID_ARGUMENT);
    }
    size_t length = arguments[1] ? strlen(arguments[1]) : 0, count = 0;
    char *input = arguments[1] ? NULL : cli_read(NULL, &length);
    const char *text = arguments[1] ? arguments[1] : input;
    if (!text) return ferry_status_exit(FERRY_IO);
    if (cli_is_chat(&chat)) {
        char *rendered = cli_chat_render(arguments[0], &chat, text, &length, &exit_status);
        free(input);
        text = input = rendered;
        if (!text) return exit_status;
        plain = true; /* the template writes those that it wants */
        if (render) {
            cli_write(NULL, text, length);
            free(input);
            return 0;
        }
    }
    uint32_t *ids = decode ? parse_ids(text, &count) : NULL;
    if (decode && !ids) {
        free(input);
        return ferry_status_exit(FERRY_INVALID_ARGUMENT);
    }
    config.special_tokens = !plain;
    config.pair_length = config.pair ? strlen(config.pair) : 0;
    ferry_tokenizer *tokenizer = NULL;
    ferry_error error;
    ferry_status status = ferry_tokenizer_open(arguments[0], &tokenizer, &error);
    if (status == FERRY_OK && decode)
        status = ferry_tokenizer_decode(tokenizer, ids, count, skip, cli_write, NULL, &error);
    else if (status == FERRY_OK)
        status = encode(tokenizer, text, length, &config, json, &error);
    if (status == FERRY_OK && decode) putchar('\n');
    ferry_tokenizer_close(tokenizer);
    free(ids);
    free(input);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

const Command command_tokenize = {"tokenize", "DIR [TEXT]",
                                  "Turn text into the ids that a model takes, or back",
                                  "DIR is a checkpoint with a tokenizer.json, such a file, or a "
                                  "GGUF file. Without TEXT, it is read\n"
                                  "from standard input, as it is: a final newline is part of it.",
                                  run_tokenize};
