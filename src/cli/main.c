/* The `ferry` command: picks a subcommand. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const Command *const commands[] = {
    &command_export,   &command_generate,   &command_run,    &command_check, &command_show,
    &command_tokenize, &command_preprocess, &command_models, &command_ops,   &command_doctor,
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_usage(FILE *out) {
    fputs("usage: ferry COMMAND [ARGUMENTS] [--help]\n\n"
          "Exports pretrained transformer models to the runtimes that run them.\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-10s %-12s %s\n", commands[i]->name, commands[i]->arguments,
                commands[i]->summary);
    }
    fputs("\n`ferry COMMAND --help` tells more. Data goes to stdout, everything else to stderr.\n\n"
          "Exit status: 0 success, 1 a check found a difference, 2 bad usage, 3 not found, 4 input "
          "or\n"
          "output failed, 5 a damaged file, 6 not supported, 7 out of memory, 8 no such runtime, 9 "
          "the\n"
          "runtime failed, 70 a defect in ferry, 130 interrupted.\n",
          out);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return cli_finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("ferry %s\n", ferry_version());
        return cli_finish(0);
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i]->name) == 0) {
            return cli_finish(commands[i]->run(argc - 1, argv + 1));
        }
    }
    fprintf(stderr, "ferry: \"%s\" is not a command; see `ferry --help`\n", argv[1]);
    return 2;
}
