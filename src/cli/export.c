/* ferry export */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct ExportArgs {
    const char *to, *output, *dynamic_shapes, *inputs, *task, *dtype, *weights, *dump_after,
        *structure, *backend, *component;
    bool generation, multi_token, dynamic, expect_dynamic, no_cache, deferred_asserts, stateful,
        no_stateful, compress_to_fp16, unplanned_inputs, unplanned_outputs, unplanned_buffers, json,
        quiet;
    long opset, threads, static_cache;
    StringList ignored, plugins;
} ExportArgs;

static void print_shape(const ferry_port *port) {
    putchar('[');
    for (size_t d = 0; d < port->rank; d++) printf("%s%s", d ? ", " : "", port->shape[d]);
    putchar(']');
}

static void print_ports_json(const char *key, const ferry_exported *exported, size_t count,
                             const ferry_port *(*at)(const ferry_exported *, size_t)) {
    printf(", \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        const ferry_port *port = at(exported, i);
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_string(port->name);
        printf(", \"dtype\": \"%s\", \"shape\": [", ferry_dtype_name(port->dtype));
        for (size_t d = 0; d < port->rank; d++) {
            if (d) printf(", ");
            cli_json_string(port->shape[d]);
        }
        printf("]}");
    }
    putchar(']');
}

static void report_json(const ferry_exported *exported, const ExportArgs *args,
                        const ferry_export_sizes *sizes, double seconds) {
    printf("{\"directory\": ");
    cli_json_string(args->output);
    printf(", \"format\": \"%s\", \"architecture\": ", ferry_exported_format(exported));
    cli_json_string(ferry_exported_architecture(exported));
    printf(", \"dtype\": \"%s\", \"seconds\": %.4f, \"graph_bytes\": %llu, \"weight_bytes\": %llu, "
           "\"nodes\": %u, \"weights\": %u",
           ferry_exported_dtype(exported), seconds, (unsigned long long)sizes->graph_bytes,
           (unsigned long long)sizes->weight_bytes, sizes->nodes, sizes->weights);
    print_ports_json("inputs", exported, ferry_exported_input_count(exported),
                     ferry_exported_input);
    print_ports_json("outputs", exported, ferry_exported_output_count(exported),
                     ferry_exported_output);
    puts("}");
}

static void report_text(const ferry_exported *exported, const ExportArgs *args,
                        const ferry_export_sizes *sizes, double seconds) {
    printf("%s (%s) -> %s in %.3f s\n", ferry_exported_architecture(exported),
           ferry_exported_dtype(exported), args->output, seconds);
    printf("  graph    %s, %u nodes\n", cli_bytes(sizes->graph_bytes), sizes->nodes);
    printf("  weights  %s%s\n", cli_bytes(sizes->weight_bytes),
           args->weights && !strcmp(args->weights, "link") ? " (linked to the checkpoint)" : "");
    for (size_t i = 0; i < ferry_exported_input_count(exported); i++) {
        const ferry_port *port = ferry_exported_input(exported, i);
        printf("  input    %s %s", port->name, ferry_dtype_name(port->dtype));
        print_shape(port);
        putchar('\n');
    }
    size_t outputs = ferry_exported_output_count(exported);
    const ferry_port *first = ferry_exported_output(exported, 0);
    if (!first) return;
    printf("  output   %s %s", first->name, ferry_dtype_name(first->dtype));
    print_shape(first);
    if (outputs > 1) printf(" and %zu more", outputs - 1);
    putchar('\n');
}

static int bad_value(const char *option, const char *value, const char *expected) {
    fprintf(stderr, "ferry export: --%s: expected %s, found %s\n", option, expected, value);
    return 2;
}

/* The public configuration; 0, or an exit status. */
static int configure(const ExportArgs *args, ferry_tensors *inputs, ferry_export_config *config) {
    ferry_export_config_init(config);
    config->target = args->to;
    config->task = args->task;
    config->component = args->component;
    config->static_cache = args->static_cache;
    config->multi_token_decode = args->multi_token;
    config->inputs = inputs;
    config->dynamic = args->dynamic;
    config->dynamic_shapes = args->dynamic_shapes;
    config->no_cache = args->no_cache;
    config->expect_dynamic = args->expect_dynamic;
    config->deferred_asserts = args->deferred_asserts;
    config->stateless = args->no_stateful;
    config->compress_to_fp16 = args->compress_to_fp16;
    config->backend = args->backend;
    config->unplanned_inputs = args->unplanned_inputs;
    config->unplanned_outputs = args->unplanned_outputs;
    config->unplanned_buffers = args->unplanned_buffers;
    config->opset = (int)args->opset;
    config->threads = (unsigned)args->threads;
    config->ignored_config_keys = args->ignored.items;
    config->ignored_config_key_count = args->ignored.count;
    config->note = args->quiet ? NULL : cli_note;
    config->progress = cli_progress;
    config->dump_after = args->dump_after;
    config->dump = cli_write;
    if (args->stateful && (args->no_stateful || strcmp(args->to, "openvino") != 0))
        return bad_value("stateful", args->no_stateful ? "--no-stateful too" : args->to,
                         "--to openvino, without --no-stateful");
    if (args->dtype) {
        config->dtype = ferry_dtype_parse(args->dtype);
        if (!config->dtype)
            return bad_value("dtype", args->dtype, "float32, float16, bfloat16 or float64");
    }
    if (args->weights && strcmp(args->weights, "link") == 0)
        config->weights = FERRY_WEIGHTS_LINK;
    else if (args->weights && strcmp(args->weights, "copy") != 0) {
        return bad_value("weights", args->weights, "copy or link");
    }
    if (args->structure && strcmp(args->structure, "dict") == 0)
        config->structure = FERRY_STRUCTURE_DICT;
    else if (args->structure && strcmp(args->structure, "model") != 0) {
        return bad_value("structure", args->structure, "model or dict");
    }
    return 0;
}

/* Export all components, or the one program. */
static ferry_status make_export(ferry_model *model, const ExportArgs *args,
                                const ferry_export_config *config, ferry_exported **out,
                                ferry_error *error) {
    ferry_parts *parts;
    if (!args->generation || args->component) return ferry_export(model, config, out, error);
    ferry_status status = ferry_decompose(model, config, &parts, error);
    if (status != FERRY_OK) return status;
    status = ferry_parts_export(parts, out, error);
    ferry_parts_free(parts);
    return status;
}

static int export_model(ferry_model *model, const ExportArgs *args,
                        const ferry_export_config *config, double start) {
    ferry_exported *exported;
    ferry_export_sizes sizes;
    ferry_error error;
    if (make_export(model, args, config, &exported, &error) != FERRY_OK) return cli_fail(&error);
    if (args->dump_after) {
        ferry_exported_free(exported);
        return 0;
    }
    ferry_status status = ferry_exported_save(exported, args->output, &sizes, &error);
    cli_progress_end();
    if (status == FERRY_OK && args->json)
        report_json(exported, args, &sizes, cli_seconds() - start);
    else if (status == FERRY_OK && !args->quiet) {
        report_text(exported, args, &sizes, cli_seconds() - start);
    }
    ferry_exported_free(exported);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

static int run_export(int argc, char **argv) {
    ExportArgs args = {.to = "onnx"};
    const char *source;
    const Option options[] = {
        {0, "to", "TARGET", OPTION_STRING, &args.to,
         "what to export to: onnx (the default), dynamo (.pt2), openvino or\n"
         "executorch (.pte)"},
        {'o', "output", "DIR", OPTION_STRING, &args.output,
         "where the export goes; made when missing"},
        {0, "dynamic", NULL, OPTION_FLAG, &args.dynamic,
         "with --inputs: keep every size symbolic (the default without)"},
        {0, "dynamic-shapes", "SPEC", OPTION_STRING, &args.dynamic_shapes,
         "names and bounds of dimensions, such as\n"
         "\"input_ids=batch:1..32,seq:1..2048\"; a number fixes a size;\n"
         "several inputs are separated by \";\"; an input named here joins\n"
         "the default ones"},
        {0, "inputs", "FILE", OPTION_STRING, &args.inputs,
         "sample inputs (.safetensors, .npz): the inputs of the program,\n"
         "with their sizes unless --dynamic is given"},
        {0, "task", "TASK", OPTION_STRING, &args.task,
         "one of those that `ferry models` lists for the model type;\n"
         "default: the class that config.json names"},
        {0, "generation", NULL, OPTION_FLAG, &args.generation,
         "split into the components that generation runs, such as prefill\n"
         "and decode"},
        {0, "component", "NAME", OPTION_STRING, &args.component,
         "export this component of the split alone"},
        {0, "static-cache", "N", OPTION_NUMBER, &args.static_cache,
         "with --generation: caches of N entries, written in place; by\n"
         "default they grow"},
        {0, "multi-token-decode", NULL, OPTION_FLAG, &args.multi_token,
         "with --generation: decode takes any number of tokens"},
        {0, "dtype", "DTYPE", OPTION_STRING, &args.dtype,
         "float32, float16, bfloat16, float64: weights and computation"},
        {0, "opset", "N", OPTION_NUMBER, &args.opset, "ONNX operator set, 18 to 24"},
        {0, "weights", "copy|link", OPTION_STRING, &args.weights,
         "copy weights into the export (the default), or point into the\n"
         "checkpoint's files, which must be inside DIR"},
        {0, "expect-dynamic", NULL, OPTION_FLAG, &args.expect_dynamic,
         "fail when a size of an input is fixed, and name it"},
        {0, "no-cache", NULL, OPTION_FLAG, &args.no_cache,
         "decoders: do not return keys and values"},
        {0, "structure", "model|dict", OPTION_STRING, &args.structure,
         "dynamo: calls return the model's own classes (the default), or\n"
         "dicts, which torch.export.load reads without Transformers"},
        {0, "deferred-asserts", NULL, OPTION_FLAG, &args.deferred_asserts,
         "dynamo: assert the bounds of dynamic sizes in the graph"},
        {0, "stateful", NULL, OPTION_FLAG, &args.stateful,
         "openvino: the model keeps its caches between runs (the default)"},
        {0, "no-stateful", NULL, OPTION_FLAG, &args.no_stateful,
         "openvino: caches stay inputs and outputs; by default the model\n"
         "keeps them, and takes beam_idx"},
        {0, "compress-to-fp16", NULL, OPTION_FLAG, &args.compress_to_fp16,
         "openvino: store float32 weights as float16"},
        {0, "backend", "NAME", OPTION_STRING, &args.backend,
         "executorch: xnnpack (the default) or mlx: it computes what it\n"
         "can; portable: kernels alone; cuda is refused without a GPU"},
        {0, "no-alloc-graph-input", NULL, OPTION_FLAG, &args.unplanned_inputs,
         "executorch: the caller gives the memory of inputs"},
        {0, "no-alloc-graph-output", NULL, OPTION_FLAG, &args.unplanned_outputs,
         "executorch: the caller gives the memory of outputs"},
        {0, "no-alloc-mutable-buffers", NULL, OPTION_FLAG, &args.unplanned_buffers,
         "executorch: the caller gives the memory of buffers that the\n"
         "program writes"},
        {0, "ignore-config", "KEY", OPTION_LIST, &args.ignored,
         "vouch that a key of config.json does not change the arithmetic"},
        OPTION_PLUGIN(&args.plugins),
        {0, "threads", "N", OPTION_NUMBER, &args.threads,
         "worker threads; default: one per processor"},
        {0, "dump-after", "PASS", OPTION_STRING, &args.dump_after,
         "print the program after build, fix, legalize, merge, fold-weights\n"
         "or fold-constants, and write nothing"},
        {0, "json", NULL, OPTION_FLAG, &args.json, "report as JSON"},
        {'q', "quiet", NULL, OPTION_FLAG, &args.quiet, "print nothing but errors"},
    };
    cli_parse(&command_export, options, sizeof options / sizeof *options, argc, argv, &source, 1);
    if (!args.output && !args.dump_after) {
        fputs("ferry export: expected -o DIR; see `ferry export --help`\n", stderr);
        return 2;
    }
    double start = cli_seconds();
    ferry_tensors *inputs = NULL;
    ferry_model *model = NULL;
    ferry_plugins *plugins = NULL;
    ferry_export_config config;
    ferry_error error;
    cli_catch_signals();
    int status = 0;
    if (args.inputs && ferry_tensors_load(args.inputs, &inputs, &error) != FERRY_OK) {
        return cli_fail(&error);
    }
    status = configure(&args, inputs, &config);
    if (status == 0) status = cli_load_plugins(&args.plugins, &plugins);
    config.plugins = plugins;
    if (status == 0 && ferry_model_open(source, &model, &error) != FERRY_OK)
        status = cli_fail(&error);
    if (status == 0) status = export_model(model, &args, &config, start);
    ferry_model_close(model);
    ferry_plugins_free(plugins);
    ferry_tensors_free(inputs);
    return status;
}

const Command command_export = {
    "export", "SOURCE", "Export a model",
    "SOURCE is a Hugging Face checkpoint directory (config.json with model.safetensors or its\n"
    "shards), a GGUF file, or a torch.export program (.pt2).\n"
    "DIR receives model.onnx, model.onnx.data, export.json, config.json and the tokenizer's files\n"
    "(or model.pt2, or openvino_model.xml and openvino_model.bin, or model.pte, in the place of\n"
    "the first two), complete or not at all.\n"
    "Transformers loads it with transformers.exporters.ExportedModel.from_pretrained(DIR).",
    run_export};
