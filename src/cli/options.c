/* Parsing of options from a table that also makes the help. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const Command *command, const Option *options, size_t count) {
    printf("usage: ferry %s %s%s[OPTIONS]\n\n%s.\n", command->name, command->arguments,
           *command->arguments ? " " : "", command->summary);
    if (command->details) printf("\n%s\n", command->details);
    if (count) puts("\nOptions:");
    for (size_t i = 0; i < count; i++) {
        const Option *option = &options[i];
        char left[64], letter[8] = "    ";
        if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        const char *line = option->help, *end;
        for (bool first = true; line; line = end ? end + 1 : NULL, first = false) {
            end = strchr(line, '\n');
            int length = end ? (int)(end - line) : (int)strlen(line);
            printf("  %-30s %.*s\n", first ? left : "", length, line);
        }
    }
    exit(cli_finish(0));
}

static void usage_error(const Command *command, const char *problem, const char *what) {
    fprintf(stderr, "ferry %s: %s%s; see `ferry %s --help`\n", command->name, problem, what,
            command->name);
    exit(2);
}

static const Option *find_option(const Option *options, size_t count, const char *name,
                                 size_t length, char letter) {
    for (size_t i = 0; i < count; i++) {
        if (letter ? options[i].letter == letter
                   : strlen(options[i].name) == length && !strncmp(options[i].name, name, length)) {
            return &options[i];
        }
    }
    return NULL;
}

static void store(const Command *command, const Option *option, const char *value) {
    char *end = NULL;
    errno = 0;
    switch (option->kind) {
    case OPTION_FLAG: *(bool *)option->target = true; break;
    case OPTION_STRING: *(const char **)option->target = value; break;
    case OPTION_NUMBER:
        *(long *)option->target = strtol(value, &end, 10);
        if (errno || end == value || *end || *(long *)option->target < 0) {
            usage_error(command, "expected a whole number, found ", value);
        }
        break;
    case OPTION_REAL:
        *(double *)option->target = strtod(value, &end);
        if (errno || end == value || *end) usage_error(command, "expected a number, found ", value);
        break;
    case OPTION_LIST: {
        StringList *list = option->target;
        if (list->count == sizeof list->items / sizeof *list->items) {
            usage_error(command, "too many times: --", option->name);
        }
        list->items[list->count++] = value;
        break;
    }
    }
}

/* Take the option at argv[i]; returns the index of the last argument it used. */
static int take_option(const Command *command, const Option *options, size_t count, int argc,
                       char **argv, int i) {
    const char *text = argv[i];
    bool is_long = text[1] == '-';
    const char *equals = is_long ? strchr(text, '=') : NULL;
    size_t length = equals ? (size_t)(equals - text - 2) : is_long ? strlen(text + 2) : 0;
    if ((is_long && length == 4 && !strncmp(text + 2, "help", 4)) || !strcmp(text, "-h")) {
        print_help(command, options, count);
    }
    const Option *option =
        find_option(options, count, is_long ? text + 2 : NULL, length, is_long ? 0 : text[1]);
    if (!option || (!is_long && text[2])) usage_error(command, "unknown option ", text);
    if (option->kind == OPTION_FLAG) {
        if (equals) usage_error(command, "this option takes no value: ", text);
        store(command, option, NULL);
        return i;
    }
    if (equals) {
        store(command, option, equals + 1);
        return i;
    }
    if (i + 1 >= argc) usage_error(command, "a value is missing after ", text);
    store(command, option, argv[i + 1]);
    return i + 1;
}

void cli_parse(const Command *command, const Option *options, size_t option_count, int argc,
               char **argv, const char **positional, size_t positional_count) {
    size_t found = 0, required = 0;
    bool only_positional = false;
    for (const char *c = command->arguments; *c; c += strcspn(c, " "), c += strspn(c, " "))
        required += *c != '[';
    for (size_t i = 0; i < positional_count; i++) positional[i] = NULL;
    for (int i = 1; i < argc; i++) {
        if (!only_positional && strcmp(argv[i], "--") == 0) {
            only_positional = true;
        } else if (!only_positional && argv[i][0] == '-' && argv[i][1]) {
            i = take_option(command, options, option_count, argc, argv, i);
        } else if (found == positional_count) {
            usage_error(command, "unexpected argument ", argv[i]);
        } else {
            positional[found++] = argv[i];
        }
    }
    if (found < required) usage_error(command, "expected ", command->arguments);
}
