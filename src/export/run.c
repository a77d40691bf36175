/* Running exports: inputs and outputs by the model's own names. */
#include "base/error.h"
#include "export/runner.h"
#include "format/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ferry_run_config_init(ferry_run_config *config) {
    *config = (ferry_run_config){.size = sizeof *config};
}

/* ---- names ---- */

const char *port_keyword(const char *name) {
    static const char *const prefixes[] = {"input.", "output."};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], length) == 0) return name + length;
    }
    return name;
}

ferry_status ports_by_keyword(ferry_tensors *from, ferry_tensors **out, ferry_error *error) {
    *out = ferry_tensors_new();
    ferry_status status =
        *out ? tensors_keep(*out, from, error) : error_memory(error, "outputs", 0);
    for (size_t i = 0; status == FERRY_OK && i < ferry_tensors_count(from); i++) {
        const ferry_tensor *tensor = ferry_tensors_at(from, i);
        status = tensors_lend(*out, port_keyword(tensor->name), tensor, error);
    }
    if (status == FERRY_OK) return FERRY_OK;
    ferry_tensors_free(*out);
    *out = NULL;
    return status;
}

/* A run's inputs, by the names of the graph. */
typedef struct Selection {
    const ferry_run_config *config;
    const char **names; /* of the graph */
    size_t count;
    const ferry_tensors *given;
    ferry_tensors *made; /* NULL: those that are given serve as they are */
    ferry_error *error;
} Selection;

static const ferry_tensor *find_input(const Selection *selection, const char *name) {
    const ferry_tensor *given = ferry_tensors_find(selection->given, name);
    return given ? given : ferry_tensors_find(selection->given, port_keyword(name));
}

/* A stateful model of OpenVINO takes which earlier sequence each one goes on from; by default, its own. */
static ferry_status add_beams(Selection *selection, const char *name) {
    const ferry_tensor *first = NULL;
    for (size_t i = 0; i < selection->count && !first; i++) {
        first = find_input(selection, selection->names[i]);
        if (first && first->rank == 0) first = NULL;
    }
    if (!first) return FERRY_OK; /* what is missing is told later */
    ferry_tensor *beams;
    TRY(ferry_tensors_add(selection->made, name, FERRY_I32, 1, first->shape, &beams,
                          selection->error));
    for (int32_t i = 0; i < beams->shape[0]; i++) ((int32_t *)beams->data)[i] = i;
    return FERRY_OK;
}

static ferry_status make_inputs(Selection *selection) {
    selection->made = ferry_tensors_new();
    if (!selection->made) return error_memory(selection->error, "inputs", 0);
    for (size_t i = 0; i < selection->count; i++) {
        const char *name = selection->names[i];
        const ferry_tensor *given = find_input(selection, name);
        if (given)
            TRY(tensors_lend(selection->made, name, given, selection->error));
        else if (strcmp(name, "beam_idx") == 0)
            TRY(add_beams(selection, name));
        if (ferry_tensors_find(selection->made, name)) continue;
        return error_set(selection->error, FERRY_INVALID_ARGUMENT, name,
                         "the input \"%s\" is missing", port_keyword(name));
    }
    return FERRY_OK;
}

static bool is_known(const Selection *selection, const char *name) {
    for (size_t i = 0; i < selection->count; i++) {
        if (strcmp(selection->names[i], name) == 0) return true;
        if (strcmp(port_keyword(selection->names[i]), name) == 0) return true;
    }
    return false;
}

static void note_dropped(const Selection *selection) {
    const ferry_run_config *config = selection->config;
    for (size_t i = 0; config->note && i < ferry_tensors_count(selection->given); i++) {
        const char *name = ferry_tensors_at(selection->given, i)->name;
        if (is_known(selection, name)) continue;
        char text[256];
        snprintf(text, sizeof text, "the program was not exported with the input \"%s\": dropped",
                 name);
        config->note(config->note_context, text);
    }
}

static ferry_status select_inputs(Selection *selection) {
    bool direct = true;
    for (size_t i = 0; i < selection->count; i++) {
        direct &= ferry_tensors_find(selection->given, selection->names[i]) != NULL;
    }
    if (!direct) TRY(make_inputs(selection));
    note_dropped(selection);
    return FERRY_OK;
}

/* The outputs under the names of the model's own. */
static ferry_status rename_outputs(ferry_tensors **outputs, ferry_error *error) {
    bool renames = false;
    for (size_t i = 0; i < ferry_tensors_count(*outputs); i++) {
        const char *name = ferry_tensors_at(*outputs, i)->name;
        renames |= port_keyword(name) != name;
    }
    if (!renames) return FERRY_OK;
    ferry_tensors *renamed;
    ferry_status status = ports_by_keyword(*outputs, &renamed, error);
    ferry_tensors_free(*outputs);
    *outputs = renamed;
    return status;
}

/* ---- running ---- */

static ferry_status run_opened(const Runner *runner, ferry_exported *exported,
                               const ferry_run_config *config, const ferry_tensors *inputs,
                               ferry_tensors **outputs, ferry_error *error) {
    Selection selection = {.config = config, .given = inputs, .error = error};
    selection.count = runner->input_count(exported);
    selection.names = calloc(selection.count + 1, sizeof *selection.names);
    if (!selection.names) return error_memory(error, "inputs", 0);
    for (size_t i = 0; i < selection.count; i++) {
        selection.names[i] = runner->input_name(exported, i);
    }
    ferry_status status = select_inputs(&selection);
    if (status == FERRY_OK) {
        status = runner->run(exported, selection.made ? selection.made : inputs, outputs, error);
    }
    if (status == FERRY_OK) status = rename_outputs(outputs, error);
    ferry_tensors_free(selection.made);
    free(selection.names);
    return status;
}

ferry_status ferry_exported_run(ferry_exported *exported, const ferry_run_config *config,
                                const ferry_tensors *inputs, ferry_tensors **outputs,
                                ferry_error *error) {
    const Runner *runner;
    error_clear(error);
    *outputs = NULL;
    TRY(ferry_exported_component(exported, NULL, &exported, error));
    TRY(runner_open(exported, config, &runner, error));
    return run_opened(runner, exported, config, inputs, outputs, error);
}

ferry_status ferry_exported_reset(ferry_exported *exported, ferry_error *error) {
    error_clear(error);
    if (exported->openvino_session) TRY(openvino_reset(exported->openvino_session, error));
    if (!exported->executorch_session) return FERRY_OK;
    return executorch_reset(exported->executorch_session, error);
}
