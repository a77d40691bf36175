/* ferry models, ferry ops, ferry doctor */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* ---- models ---- */

static int run_models(int argc, char **argv) {
    bool json = false;
    StringList files = {0};
    ferry_plugins *plugins;
    ferry_family family;
    const Option options[] = {OPTION_PLUGIN(&files),
                              {0, "json", NULL, OPTION_FLAG, &json, "print JSON"}};
    cli_parse(&command_models, options, 2, argc, argv, NULL, 0);
    int failed = cli_load_plugins(&files, &plugins);
    if (failed) return failed;
    if (json) putchar('[');
    for (size_t i = 0; ferry_family_at(plugins, i, &family); i++) {
        if (json) {
            printf("%s\n  {\"model_type\": \"%s\", \"class_prefix\": \"%s\", \"tasks\": [",
                   i ? "," : "", family.model_type, family.class_prefix);
        } else {
            printf("%-19s %-12s ", family.model_type, family.class_prefix);
        }
        for (size_t t = 0; family.tasks[t]; t++) {
            printf(json ? "%s\"%s\"" : "%s%s", t ? ", " : "", family.tasks[t]);
        }
        if (json)
            printf("]}");
        else
            putchar('\n');
    }
    if (json) puts("\n]");
    ferry_plugins_free(plugins);
    return 0;
}

const Command command_models = {"models", "", "List the model types that are built natively", NULL,
                                run_models};

/* ---- ops ---- */

static int run_ops(int argc, char **argv) {
    bool json = false;
    StringList files = {0};
    ferry_plugins *plugins;
    ferry_op op;
    const Option options[] = {OPTION_PLUGIN(&files),
                              {0, "json", NULL, OPTION_FLAG, &json, "print JSON"}};
    cli_parse(&command_ops, options, 2, argc, argv, NULL, 0);
    int failed = cli_load_plugins(&files, &plugins);
    if (failed) return failed;
    if (json)
        putchar('[');
    else
        puts("reference  onnx        openvino    executorch  mlx         operation");
    for (size_t i = 0; ferry_op_at(plugins, i, &op); i++) {
        const char *otherwise = op.decomposes ? "decomposed" : "no";
        const char *onnx = op.onnx ? "yes" : otherwise;
        const char *openvino = op.openvino ? "yes" : otherwise;
        const char *executorch = op.executorch ? "yes" : otherwise;
        const char *mlx = op.mlx ? "yes" : op.executorch ? "kernels" : otherwise;
        if (!json) {
            printf("%-10s %-11s %-11s %-11s %-11s %s%s\n", op.reference ? "yes" : "no", onnx,
                   openvino, executorch, mlx, op.name, op.schema);
            continue;
        }
        printf("%s\n  {\"name\": \"%s\", \"reference\": %s, \"onnx\": \"%s\", \"openvino\": "
               "\"%s\", \"executorch\": \"%s\", \"mlx\": \"%s\", \"schema\": ",
               i ? "," : "", op.name, op.reference ? "true" : "false", onnx, openvino, executorch,
               mlx);
        cli_json_string(op.schema);
        putchar('}');
    }
    if (json) puts("\n]");
    ferry_plugins_free(plugins);
    return 0;
}

const Command command_ops = {"ops", "", "List the operations of programs and who takes them", NULL,
                             run_ops};

/* ---- doctor ---- */

static void print_runtime_json(const ferry_runtime *runtime, size_t index) {
    printf("%s\n  {\"name\": \"%s\", \"found\": %s, \"version\": ", index ? "," : "", runtime->name,
           runtime->found ? "true" : "false");
    cli_json_string(runtime->version);
    printf(", \"tested\": \"%s\", \"path\": ", runtime->tested);
    cli_json_string(runtime->path);
    printf(", \"devices\": ");
    cli_json_string(runtime->devices);
    printf(", \"problem\": ");
    cli_json_string(runtime->problem);
    putchar('}');
}

static void print_runtime(const ferry_runtime *runtime) {
    if (!runtime->found) {
        printf("%-12s not found: %s\n", runtime->name, runtime->problem);
        return;
    }
    printf("%-12s %s  %s", runtime->name, runtime->version, runtime->path);
    if (*runtime->devices) printf("  (with %s)", runtime->devices);
    if (strcmp(runtime->version, runtime->tested) != 0)
        printf("  (tested with %s)", runtime->tested);
    putchar('\n');
}

static int run_doctor(int argc, char **argv) {
    bool json = false;
    const char *library = NULL;
    ferry_runtime runtime;
    const Option options[] = {
        {0, "library", "PATH", OPTION_STRING, &library, "a runtime's library; default: search"},
        {0, "json", NULL, OPTION_FLAG, &json, "print JSON"},
    };
    cli_parse(&command_doctor, options, 2, argc, argv, NULL, 0);
    if (json)
        putchar('[');
    else
        printf("ferry        %s\n", ferry_version());
    for (size_t i = 0; ferry_runtime_at(i, library, &runtime); i++) {
        if (json)
            print_runtime_json(&runtime, i);
        else
            print_runtime(&runtime);
    }
    if (json) puts("\n]");
    return 0;
}

const Command command_doctor = {
    "doctor", "", "Show which runtimes are found, and what differs from the tested ones", NULL,
    run_doctor};
