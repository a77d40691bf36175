/* ferry show */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct ShowArgs {
    bool json, weights, program;
    const char *component;
    StringList plugins;
} ShowArgs;

/* How the file holds a weight: "float32", or "Q4_K" for blocks. */
static const char *storage(const ferry_weight *weight) {
    return weight->blocks ? weight->blocks : ferry_dtype_name(weight->dtype);
}

typedef struct Totals {
    uint64_t bytes, elements;
    struct {
        const char *storage;
        uint64_t elements;
    } kinds[32]; /* more than there are */
    size_t kind_count, count;
} Totals;

static void add_kind(Totals *totals, const char *kind, uint64_t elements) {
    size_t i = 0;
    while (i < totals->kind_count && strcmp(totals->kinds[i].storage, kind) != 0) i++;
    if (i == sizeof totals->kinds / sizeof *totals->kinds) return;
    if (i == totals->kind_count) totals->kinds[totals->kind_count++].storage = kind;
    totals->kinds[i].elements += elements;
}

static Totals add_up(const ferry_model *model) {
    Totals totals = {0};
    ferry_weight weight;
    while (ferry_model_weight(model, totals.count, &weight)) {
        uint64_t elements = 1;
        for (size_t d = 0; d < weight.rank; d++) elements *= (uint64_t)weight.shape[d];
        totals.count++;
        totals.bytes += weight.bytes;
        totals.elements += elements;
        add_kind(&totals, storage(&weight), elements);
    }
    return totals;
}

static void print_weights_json(const ferry_model *model) {
    ferry_weight weight;
    printf(", \"weights\": [");
    for (size_t i = 0; ferry_model_weight(model, i, &weight); i++) {
        printf("%s\n  {\"name\": ", i ? "," : "");
        cli_json_string(weight.name);
        printf(", \"dtype\": \"%s\", ", ferry_dtype_name(weight.dtype));
        if (weight.blocks) printf("\"blocks\": \"%s\", ", weight.blocks);
        printf("\"shape\": ");
        cli_sizes(weight.rank, weight.shape);
        printf(", \"file\": ");
        cli_json_string(weight.file);
        putchar('}');
    }
    putchar(']');
}

static void show_model(const ferry_model *model, const char *path, const ShowArgs *args) {
    Totals totals = add_up(model);
    if (args->json) {
        printf("{\"kind\": \"checkpoint\", \"model_type\": ");
        cli_json_string(ferry_model_type(model));
        printf(", \"parameters\": %llu, \"bytes\": %llu, \"tensors\": %zu",
               (unsigned long long)totals.elements, (unsigned long long)totals.bytes, totals.count);
        if (args->weights) print_weights_json(model);
        puts("}");
        return;
    }
    printf("%s: a checkpoint of model type %s\n", path, ferry_model_type(model));
    printf("  %zu tensors, %.1f million parameters, %s\n", totals.count,
           (double)totals.elements / 1e6, cli_bytes(totals.bytes));
    for (size_t i = 0; i < totals.kind_count; i++) {
        printf("  %-14s %.1f million\n", totals.kinds[i].storage,
               (double)totals.kinds[i].elements / 1e6);
    }
    ferry_weight weight;
    for (size_t i = 0; args->weights && ferry_model_weight(model, i, &weight); i++) {
        printf("  %s  %s", weight.name, storage(&weight));
        cli_sizes(weight.rank, weight.shape);
        printf("  %s\n", weight.file);
    }
}

static void print_port(const char *role, const ferry_port *port, bool json, bool first) {
    if (json) {
        printf("%s{\"name\": ", first ? "" : ", ");
        cli_json_string(port->name);
        printf(", \"dtype\": \"%s\", \"shape\": [", ferry_dtype_name(port->dtype));
    } else {
        printf("  %-7s %s  %s[", role, port->name, ferry_dtype_name(port->dtype));
    }
    for (size_t d = 0; d < port->rank; d++) {
        if (d) printf(", ");
        if (json)
            cli_json_string(port->shape[d]);
        else
            printf("%s", port->shape[d]);
    }
    if (json) {
        putchar(']');
        if (port->writes) {
            printf(", \"writes\": ");
            cli_json_string(port->writes);
        }
        putchar('}');
    } else {
        printf(port->writes ? "]  (what %s holds after the call)\n" : "]\n", port->writes);
    }
}

/* The sizes of the inputs that are numbers: what a program can never be called with another of. */
static void print_fixed_sizes(const ferry_exported *exported) {
    const char *separator = "  fixed   ";
    for (size_t i = 0; i < ferry_exported_input_count(exported); i++) {
        const ferry_port *port = ferry_exported_input(exported, i);
        for (size_t d = 0; d < port->rank; d++) {
            if (port->shape[d][strspn(port->shape[d], "0123456789")]) continue;
            printf("%s%s[%zu] = %s", separator, port->name, d, port->shape[d]);
            separator = ", ";
        }
    }
    if (*separator == ',') putchar('\n');
}

/* `kind`: "an export" or "a program", or the name of a component. */
static void show_export(const ferry_exported *exported, const char *path, const char *kind,
                        size_t delegates, bool json) {
    size_t inputs = ferry_exported_input_count(exported),
           outputs = ferry_exported_output_count(exported);
    if (json) {
        const char *word = strrchr(kind, ' ') ? strrchr(kind, ' ') + 1 : "component";
        printf("{\"kind\": \"%s\", \"name\": \"%s\", \"format\": \"%s\", \"architecture\": ", word,
               ferry_exported_name(exported), ferry_exported_format(exported));
        cli_json_string(ferry_exported_architecture(exported));
        printf(", \"dtype\": \"%s\", \"inputs\": [", ferry_exported_dtype(exported));
    } else {
        printf("%s: %s of %s (%s, %s)\n", path, kind, ferry_exported_architecture(exported),
               ferry_exported_format(exported), ferry_exported_dtype(exported));
    }
    for (size_t i = 0; i < inputs; i++) {
        print_port("input", ferry_exported_input(exported, i), json, i == 0);
    }
    if (json) printf("], \"outputs\": [");
    for (size_t i = 0; i < outputs; i++) {
        print_port("output", ferry_exported_output(exported, i), json, i == 0);
    }
    bool delegated = strcmp(ferry_exported_format(exported), "executorch") == 0;
    if (json) {
        printf("]");
        if (delegated) printf(", \"delegates\": %zu", delegates);
        putchar('}');
        return;
    }
    if (delegated) printf("  delegates %zu\n", delegates);
    print_fixed_sizes(exported);
}

static bool has_manifest(const char *path) {
    char manifest[4096];
    int length = snprintf(manifest, sizeof manifest, "%s/export.json", path);
    return length > 0 && (size_t)length < sizeof manifest && access(manifest, R_OK) == 0;
}

static int show_checkpoint(const char *path, const ShowArgs *args) {
    ferry_model *model;
    ferry_exported *exported = NULL;
    ferry_plugins *plugins;
    ferry_export_config config;
    ferry_error error;
    int failed = cli_load_plugins(&args->plugins, &plugins);
    if (failed) return failed;
    ferry_status status = ferry_model_open(path, &model, &error);
    if (status != FERRY_OK) {
        ferry_plugins_free(plugins);
        return cli_fail(&error);
    }
    bool traced = strcmp(ferry_model_type(model), "torch.export") == 0 && !args->weights;
    if (args->program || traced) {
        ferry_export_config_init(&config);
        config.target = "dynamo";
        config.plugins = plugins;
        config.dump_after = args->program ? "build" : NULL;
        config.dump = cli_write;
        status = ferry_export(model, &config, &exported, &error);
        if (status == FERRY_OK && !args->program) {
            show_export(exported, path, "a program", 0, args->json);
            if (args->json) putchar('\n');
        }
        ferry_exported_free(exported);
    } else {
        show_model(model, path, args);
    }
    ferry_model_close(model);
    ferry_plugins_free(plugins);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

/* One component, or the only one. */
static ferry_status show_component(ferry_exported *exported, const char *path, const char *kind,
                                   const ShowArgs *args, ferry_error *error) {
    size_t delegates;
    ferry_status status = ferry_exported_delegates(exported, &delegates, error);
    if (status != FERRY_OK) return status;
    if (args->program) return ferry_exported_print(exported, cli_write, NULL, error);
    show_export(exported, path, kind, delegates, args->json);
    return FERRY_OK;
}

static ferry_status show_components(ferry_exported *whole, const char *path, const ShowArgs *args,
                                    ferry_error *error) {
    ferry_exported *component;
    ferry_status status = FERRY_OK;
    size_t count = ferry_exported_component_count(whole);
    if (args->component) {
        status = ferry_exported_component(whole, args->component, &component, error);
        if (status != FERRY_OK) return status;
        status = show_component(component, path, args->component, args, error);
    } else if (count == 1) {
        status =
            show_component(ferry_exported_component_at(whole, 0), path, "an export", args, error);
    }
    bool all = !args->component && count > 1, list = all && args->json && !args->program;
    if (list) printf("{\"kind\": \"export\", \"components\": [");
    for (size_t i = 0; all && status == FERRY_OK && i < count; i++) {
        component = ferry_exported_component_at(whole, i);
        if (list && i) printf(",\n ");
        status = show_component(component, path, ferry_exported_name(component), args, error);
    }
    if (list) printf("]}");
    if (args->json && !args->program) putchar('\n');
    return status;
}

static int run_show(int argc, char **argv) {
    const char *path;
    ShowArgs args = {0};
    const Option options[] = {
        {0, "weights", NULL, OPTION_FLAG, &args.weights, "list a checkpoint's tensors"},
        {0, "program", NULL, OPTION_FLAG, &args.program,
         "print the program: that of an export, or the one that a checkpoint\n"
         "of a native model type is exported from"},
        {0, "component", "NAME", OPTION_STRING, &args.component,
         "show this one of an export with several; default: all of them"},
        OPTION_PLUGIN(&args.plugins),
        {0, "json", NULL, OPTION_FLAG, &args.json, "print JSON"},
    };
    cli_parse(&command_show, options, sizeof options / sizeof *options, argc, argv, &path, 1);
    if (!has_manifest(path)) return show_checkpoint(path, &args);
    ferry_exported *exported;
    ferry_error error;
    if (ferry_exported_load(path, &exported, &error) != FERRY_OK) return cli_fail(&error);
    ferry_status status = show_components(exported, path, &args, &error);
    ferry_exported_free(exported);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

const Command command_show = {"show", "PATH", "Show what a checkpoint or an export contains",
                              "Reads headers only: no weights.", run_show};
