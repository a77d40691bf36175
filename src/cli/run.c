/* ferry run */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Smallest, largest and mean of a float32 tensor. */
static void print_statistics(const ferry_tensor *tensor) {
    size_t count = ferry_tensor_count(tensor);
    if (tensor->dtype != FERRY_F32 || count == 0) return;
    const float *values = tensor->data;
    double lowest = INFINITY, highest = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) {
        lowest = fmin(lowest, (double)values[i]);
        highest = fmax(highest, (double)values[i]);
        sum += (double)values[i];
    }
    printf("  min %.6g, max %.6g, mean %.6g", lowest, highest, sum / (double)count);
}

static void print_outputs(const ferry_tensors *outputs) {
    for (size_t i = 0; i < ferry_tensors_count(outputs); i++) {
        const ferry_tensor *output = ferry_tensors_at(outputs, i);
        printf("%s %s", output->name, ferry_dtype_name(output->dtype));
        cli_sizes(output->rank, output->shape);
        print_statistics(output);
        putchar('\n');
    }
}

static int run_run(int argc, char **argv) {
    const char *directory, *inputs_path = NULL, *output_path = NULL, *component = NULL;
    long threads = 0;
    ferry_run_config config;
    ferry_run_config_init(&config);
    const Option options[] = {
        {'i', "inputs", "FILE", OPTION_STRING, &inputs_path, "the inputs (.safetensors, .npz)"},
        {'o', "output", "FILE", OPTION_STRING, &output_path,
         "write the outputs (.safetensors, .npz); default: describe them"},
        {0, "component", "NAME", OPTION_STRING, &component,
         "which one of an export with several: prefill, decode, ..."},
        {0, "runtime", "NAME", OPTION_STRING, &config.runtime,
         "onnxruntime, openvino, executorch or reference (built in);\n"
         "default: the one for the export's format where it is found, else\n"
         "reference"},
        {0, "library", "PATH", OPTION_STRING, &config.library,
         "the runtime's library; default: search"},
        {0, "device", "NAME", OPTION_STRING, &config.device,
         "OpenVINO: CPU, GPU, NPU or AUTO (the default)"},
        {0, "threads", "N", OPTION_NUMBER, &threads, "threads of the runtime"},
    };
    cli_parse(&command_run, options, sizeof options / sizeof *options, argc, argv, &directory, 1);
    if (!inputs_path) {
        fputs("ferry run: expected --inputs FILE; see `ferry run --help`\n", stderr);
        return 2;
    }
    config.threads = (unsigned)threads;
    config.note = cli_note;
    ferry_exported *exported = NULL, *chosen = NULL;
    ferry_tensors *inputs = NULL, *outputs = NULL;
    ferry_error error;
    ferry_status status = ferry_exported_load(directory, &exported, &error);
    if (status == FERRY_OK) status = ferry_exported_component(exported, component, &chosen, &error);
    if (status == FERRY_OK) status = ferry_tensors_load(inputs_path, &inputs, &error);
    if (status == FERRY_OK) status = ferry_exported_run(chosen, &config, inputs, &outputs, &error);
    if (status == FERRY_OK && output_path)
        status = ferry_tensors_save(outputs, output_path, &error);
    if (status == FERRY_OK && !output_path) print_outputs(outputs);
    ferry_tensors_free(outputs);
    ferry_tensors_free(inputs);
    ferry_exported_free(exported);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}

const Command command_run = {
    "run", "DIR", "Run an export on inputs from a file",
    "DIR is an export, made by ferry or by a Transformers exporter; its checkpoint is not needed. "
    "Inputs\n"
    "go by the names of the model's keywords; those that it was not exported with are dropped.",
    run_run};
