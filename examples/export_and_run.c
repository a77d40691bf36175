/* The C API from end to end: open a checkpoint, export it to ONNX, load the export, run it.
 *
 *     export_and_run CHECKPOINT DIRECTORY
 *
 * CHECKPOINT is a Hugging Face checkpoint directory; DIRECTORY receives the export. Build it with
 *
 *     cc -o export_and_run export_and_run.c $(pkg-config --cflags --libs ferry)
 *
 * or with the CMakeLists.txt beside it. */
#include <ferry/ferry.h>

#include <stdio.h>

/* The library never prints: notes and errors are the caller's to show. */
static void print_note(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "note: %s\n", text);
}

static int print_error(const ferry_error *error) {
    fprintf(stderr, "%s: %s: %s\n", ferry_status_name(error->status), error->where, error->message);
    return 1;
}

/* Build the program for ONNX and write it. Weights go from file to file; they are never in memory as a
 * whole. */
static ferry_status export_checkpoint(const char *checkpoint, const char *directory,
                                      ferry_error *error) {
    ferry_model *model = NULL;
    ferry_exported *exported = NULL;
    ferry_export_sizes sizes = {0};
    ferry_export_config config;

    /* Defaults first: the class that config.json names, dynamic shapes, the checkpoint's dtype. */
    ferry_export_config_init(&config);
    config.note = print_note;
    /* What the dimensions are called in the exported model, and the sizes that they may take. */
    config.dynamic_shapes = "input_ids=batch:1..8,sequence:1..64";

    ferry_status status = ferry_model_open(checkpoint, &model, error);
    if (status == FERRY_OK) status = ferry_export(model, &config, &exported, error);
    if (status == FERRY_OK) status = ferry_exported_save(exported, directory, &sizes, error);
    if (status == FERRY_OK) {
        printf("%s: %u nodes, %u weights, %llu bytes\n", ferry_exported_architecture(exported),
               sizes.nodes, sizes.weights,
               (unsigned long long)(sizes.graph_bytes + sizes.weight_bytes));
    }
    /* Both accept NULL; an export is freed before the model that it was made from. */
    ferry_exported_free(exported);
    ferry_model_close(model);
    return status;
}

/* A batch of one sequence of four tokens, all of them attended to. */
static ferry_status make_inputs(ferry_tensors **inputs, ferry_error *error) {
    static const int64_t shape[] = {1, 4};
    ferry_tensor *ids, *mask;
    *inputs = ferry_tensors_new();
    if (!*inputs) return FERRY_OUT_OF_MEMORY;
    ferry_status status = ferry_tensors_add(*inputs, "input_ids", FERRY_I64, 2, shape, &ids, error);
    if (status == FERRY_OK) {
        status = ferry_tensors_add(*inputs, "attention_mask", FERRY_I64, 2, shape, &mask, error);
    }
    if (status != FERRY_OK) return status;
    for (int i = 0; i < 4; i++) {
        ((int64_t *)ids->data)[i] = 3 + i;
        ((int64_t *)mask->data)[i] = 1;
    }
    return FERRY_OK;
}

/* Load the export and run it: in ONNX Runtime where one is found, else in the built-in runtime. */
static ferry_status run_export(const char *directory, ferry_error *error) {
    ferry_exported *exported = NULL;
    ferry_tensors *inputs = NULL, *outputs = NULL;
    ferry_run_config config;

    ferry_run_config_init(&config);
    config.note = print_note;
    ferry_status status = ferry_exported_load(directory, &exported, error);
    if (status == FERRY_OK) status = make_inputs(&inputs, error);
    if (status == FERRY_OK) {
        status = ferry_exported_run(exported, &config, inputs, &outputs, error);
    }
    for (size_t i = 0; status == FERRY_OK && i < ferry_tensors_count(outputs); i++) {
        const ferry_tensor *output = ferry_tensors_at(outputs, i);
        printf("%s %s, %zu elements\n", output->name, ferry_dtype_name(output->dtype),
               ferry_tensor_count(output));
    }
    ferry_tensors_free(outputs);
    ferry_tensors_free(inputs);
    ferry_exported_free(exported);
    return status;
}

int main(int argc, char **argv) {
    ferry_error error;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CHECKPOINT DIRECTORY\n", argv[0]);
        return 2;
    }
    if (export_checkpoint(argv[1], argv[2], &error) != FERRY_OK) return print_error(&error);
    if (run_export(argv[2], &error) != FERRY_OK) return print_error(&error);
    return 0;
}
