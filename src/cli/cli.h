/* What the commands share: options, output, errors. The command line uses the public API alone. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <ferry/ferry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- options ---- */

typedef enum OptionKind {
    OPTION_FLAG,   /* bool: set to true */
    OPTION_STRING, /* const char * */
    OPTION_NUMBER, /* long: a whole number, not negative */
    OPTION_REAL,   /* double */
    OPTION_LIST,   /* StringList: may be given several times */
} OptionKind;

typedef struct StringList {
    const char *items[32];
    size_t count;
} StringList;

typedef struct Option {
    char letter;          /* 0: none */
    const char *name;     /* "output" for --output */
    const char *argument; /* what the help calls the value; NULL for flags */
    OptionKind kind;
    void *target;
    const char *help; /* lines separated by newlines */
} Option;

typedef struct Command {
    const char *name;
    const char *arguments; /* "SOURCE", "DIR [TEXT]"; "" for none */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs for --help; may be NULL */
    int (*run)(int argc, char **argv);
} Command;

/* Parse argv[1..]: options of the table anywhere, at most `positional_count` other arguments, of which those
 * in brackets in `arguments` may be missing; what is missing is NULL. Prints the help and exits for --help;
 * prints what is wrong and exits with 2. */
void cli_parse(const Command *command, const Option *options, size_t option_count, int argc,
               char **argv, const char **positional, size_t positional_count);

/* ---- plug-ins ---- */

/* The row for --plugin in a command's options. */
#define OPTION_PLUGIN(list)                                                                        \
    {                                                                                              \
        0, "plugin", "FILE", OPTION_LIST, list,                                                    \
            "a shared object that adds model types, operators, fixes or\n"                         \
            "lowerings; it runs code, so load only what you trust"                                 \
    }

/* Load them; `*out` is NULL when the list is empty. 0, or an exit status. */
int cli_load_plugins(const StringList *files, ferry_plugins **out);

/* ---- chats ---- */

/* What options say about a text that is a conversation. */
typedef struct ChatOptions {
    bool chat, messages, no_prompt;
    const char *template_name, *tools, *variables;
} ChatOptions;

/* Their rows in a command's options. */
#define OPTIONS_CHAT(options)                                                                      \
    {0,                                                                                            \
     "chat",                                                                                       \
     NULL,                                                                                         \
     OPTION_FLAG,                                                                                  \
     &(options)->chat,                                                                             \
     "TEXT is what a user says to a chat model: write it as the\n"                                 \
     "checkpoint's chat template does"},                                                           \
        {0,                                                                                        \
         "messages",                                                                               \
         NULL,                                                                                     \
         OPTION_FLAG,                                                                              \
         &(options)->messages,                                                                     \
         "TEXT is a conversation: a JSON list of {\"role\", \"content\"}"},                        \
        {0,                                                                                        \
         "template",                                                                               \
         "NAME",                                                                                   \
         OPTION_STRING,                                                                            \
         &(options)->template_name,                                                                \
         "which chat template, where there are several"},                                          \
        {0,                                                                                        \
         "tools",                                                                                  \
         "FILE",                                                                                   \
         OPTION_STRING,                                                                            \
         &(options)->tools,                                                                        \
         "a JSON list of the tools that a model may call"},                                        \
        {0,                                                                                        \
         "variables",                                                                              \
         "JSON",                                                                                   \
         OPTION_STRING,                                                                            \
         &(options)->variables,                                                                    \
         "an object of more variables for the chat template,\n"                                    \
         "such as '{\"enable_thinking\": false}'"},                                                \
    {                                                                                              \
        0, "no-generation-prompt", NULL, OPTION_FLAG, &(options)->no_prompt,                       \
            "end where the conversation ends, not where the answer begins"                         \
    }

/* Is the text a conversation? */
bool cli_is_chat(const ChatOptions *options);

/* A conversation as the checkpoint's chat template writes it, terminated, to be freed; NULL, with a message
 * and `*status`, when it cannot. */
char *cli_chat_render(const char *directory, const ChatOptions *options, const char *text,
                      size_t *length, int *status);

/* ---- commands, one file each ---- */

extern const Command command_export, command_run, command_check, command_show, command_models,
    command_ops, command_doctor, command_tokenize, command_preprocess, command_generate;

/* ---- output ---- */

/* Print an error to stderr and return the exit status for it. */
int cli_fail(const ferry_error *error);

/* Say in `error` that there is no memory left. */
ferry_status cli_no_memory(ferry_error *error);

/* A ferry_note that prints "note: ..." to stderr. */
void cli_note(void *context, const char *text);

/* A ferry_write that writes to a FILE; NULL: to stdout. */
void cli_write(void *context, const char *text, size_t length);

/* A ferry_progress that draws one line on stderr when it is a terminal and the work is long, and that
 * cancels after SIGINT or SIGTERM. */
bool cli_progress(void *context, uint64_t done, uint64_t total);
void cli_progress_end(void);

/* From now on SIGINT and SIGTERM ask cli_progress to cancel. */
void cli_catch_signals(void);

/* "88.1 MiB" in a static buffer (one of four, used in turn). */
const char *cli_bytes(uint64_t bytes);

/* Seconds on a monotonic clock. */
double cli_seconds(void);

/* A JSON string literal, on stdout or elsewhere. */
void cli_json_string(const char *text);
void cli_json_string_to(FILE *out, const char *text);

/* "[2, 3]" on stdout. */
void cli_sizes(size_t rank, const int64_t *shape);

/* All of a file, or of stdin where `path` is NULL, terminated, to be freed. NULL, with a message, when it
 * cannot be read. */
char *cli_read(const char *path, size_t *length);

/* Flush stdout; 4 (and a message) when it cannot be written, else `status`. */
int cli_finish(int status);

#endif
