/* ferry check */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct Report {
    bool json, verbose;
    size_t count;
} Report;

static void print_json(const ferry_comparison *c, size_t index) {
    printf("%s\n  {\"runtime\": ", index ? "," : "");
    cli_json_string(c->runtime);
    printf(", \"oracle\": ");
    cli_json_string(c->oracle);
    printf(", \"inputs\": ");
    cli_json_string(c->inputs);
    printf(", \"output\": ");
    cli_json_string(c->output);
    if (c->problem) {
        printf(", \"problem\": ");
        cli_json_string(c->problem);
    } else {
        printf(", \"difference\": %.9g, \"scale\": %.9g", c->difference, c->scale);
    }
    printf(", \"passed\": %s}", c->passed ? "true" : "false");
}

static void on_comparison(void *context, const ferry_comparison *c) {
    Report *report = context;
    size_t index = report->count++;
    if (report->json) {
        print_json(c, index);
        return;
    }
    printf("%s  %s  %s  %s: ", c->passed ? "ok  " : "FAIL", c->runtime, c->inputs, c->output);
    if (c->problem)
        printf("%s\n", c->problem);
    else
        printf("largest difference %.3g (largest value %.3g)\n", c->difference, c->scale);
}

static int run_check(int argc, char **argv) {
    const char *directory;
    Report report = {0};
    long threads = 0;
    ferry_check_config config;
    ferry_check_config_init(&config);
    const Option options[] = {
        {0, "against", "SOURCE|FILE", OPTION_STRING, &config.against,
         "a checkpoint directory or GGUF file (its own program, in the\n"
         "reference runtime) or recorded outputs (.safetensors, .npz;\n"
         "needs --inputs); default: the reference runtime on the exported\n"
         "program"},
        {0, "component", "NAME", OPTION_STRING, &config.component,
         "check this one of an export with several; default: all of them"},
        {'i', "inputs", "FILE", OPTION_STRING, &config.inputs,
         "inputs (.safetensors, .npz); default: made up, at two shapes"},
        {0, "tolerance", "X", OPTION_REAL, &config.tolerance,
         "largest difference allowed, relative to the larger of 1 and the\n"
         "largest expected value; default 1e-4"},
        {0, "library", "PATH", OPTION_STRING, &config.library,
         "the runtime's library; default: search"},
        {0, "threads", "N", OPTION_NUMBER, &threads, "threads of the runtimes"},
        {0, "json", NULL, OPTION_FLAG, &report.json, "report as JSON"},
    };
    cli_parse(&command_check, options, sizeof options / sizeof *options, argc, argv, &directory, 1);
    ferry_error error;
    config.threads = (unsigned)threads;
    config.compare = on_comparison;
    config.compare_context = &report;
    config.note = cli_note;
    if (report.json) putchar('[');
    ferry_status status = ferry_check(directory, &config, &error);
    if (report.json) puts("\n]");
    if (status == FERRY_OK && !report.json) printf("%zu outputs agree\n", report.count);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

const Command command_check = {"check", "DIR",
                               "Run an export in every runtime found and compare the outputs",
                               "Exit status 1 when an output differs by more than the tolerance, "
                               "has another shape or dtype, or is\n"
                               "missing; 0 when all agree.",
                               run_check};
