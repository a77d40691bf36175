/* Steps: names, and what is carried where the runtime does not do it itself. */
#include "export/step.h"
#include "base/dtype.h"
#include "base/error.h"
#include "export/runner.h"
#include "format/tensors.h"

#include <stdlib.h>
#include <string.h>

struct Step {
    Arena arena;
    ferry_exported *component;
    const Runner *runner;
    StepPort *inputs;
    size_t input_count;
    Carry *pairs;
    size_t pair_count;
    ferry_tensors *held; /* by keyword, where the runner does not carry */
};

/* ---- opening ---- */

static ferry_status find_pairs(Step *step, ferry_error *error) {
    const Manifest *manifest = &step->component->manifest;
    step->pairs = ARENA_ARRAY(&step->arena, Carry, manifest->input_count + 1);
    if (!step->pairs) return error_memory(error, manifest->component, 0);
    for (size_t i = 0; i < manifest->input_count; i++) {
        StepPort *input = &step->inputs[i];
        for (size_t o = 0; o < manifest->output_count && !input->carried; o++) {
            const ferry_port *output = &manifest->outputs[o];
            if (strcmp(port_keyword(output->name), input->keyword) != 0) continue;
            step->pairs[step->pair_count++] = (Carry){
                .input = input->port->name, .output = output->name, .in_place = output->in_place};
            input->carried = true;
        }
    }
    return FERRY_OK;
}

static ferry_status read_ports(Step *step, ferry_error *error) {
    const Manifest *manifest = &step->component->manifest;
    step->input_count = manifest->input_count;
    step->inputs = ARENA_ARRAY(&step->arena, StepPort, step->input_count + 1);
    if (!step->inputs) return error_memory(error, manifest->component, 0);
    if (step->input_count == 0) {
        return error_set(error, FERRY_UNSUPPORTED, step->component->directory,
                         "export.json does not describe the inputs of \"%s\", as that of an export "
                         "by ferry does",
                         manifest->component);
    }
    for (size_t i = 0; i < step->input_count; i++) {
        const ferry_port *port = &manifest->inputs[i];
        step->inputs[i] = (StepPort){.keyword = port_keyword(port->name), .port = port};
    }
    return find_pairs(step, error);
}

ferry_status step_open(ferry_exported *component, const ferry_run_config *config, Step **out,
                       ferry_error *error) {
    *out = NULL;
    Step *step = calloc(1, sizeof *step);
    if (!step) return error_memory(error, component->directory, sizeof *step);
    step->component = component;
    ferry_status status = read_ports(step, error);
    const Runner *runner;
    if (status == FERRY_OK) status = runner_open(component, config, &runner, error);
    if (status == FERRY_OK && component->manifest.state_count && !runner->format) {
        status = error_set(error, FERRY_UNSUPPORTED, runner->name,
                           "this runtime starts over with every run, and \"%s\" keeps its cache to "
                           "itself: run it in OpenVINO, or export it with --no-stateful",
                           component->manifest.component);
    }
    if (status == FERRY_OK) step->runner = runner;
    if (status == FERRY_OK && step->runner->carry && step->pair_count) {
        status = step->runner->carry(component, step->pairs, step->pair_count, error);
    }
    if (status == FERRY_OK)
        *out = step;
    else
        step_close(step);
    return status;
}

void step_close(Step *step) {
    if (!step) return;
    if (step->runner && step->runner->forget) step->runner->forget(step->component);
    ferry_tensors_free(step->held);
    arena_free(&step->arena);
    free(step);
}

const StepPort *step_input(const Step *step, size_t index) {
    return index < step->input_count ? &step->inputs[index] : NULL;
}

const StepPort *step_find(const Step *step, const char *keyword) {
    for (size_t i = 0; i < step->input_count; i++) {
        if (strcmp(step->inputs[i].keyword, keyword) == 0) return &step->inputs[i];
    }
    return NULL;
}

bool step_is_stateful(const Step *step) {
    return step->component->manifest.state_count > 0;
}

bool step_takes_cache(const Step *step) {
    return step->pair_count > 0 || step_is_stateful(step);
}

ferry_exported *step_component(const Step *step) {
    return step->component;
}

/* ---- running ---- */

static const Carry *pair_of_output(const Step *step, const char *name) {
    for (size_t i = 0; i < step->pair_count; i++) {
        if (strcmp(port_keyword(step->pairs[i].output), port_keyword(name)) == 0)
            return &step->pairs[i];
    }
    return NULL;
}

/* Floating-point numbers in the dtype of the component: images and sounds are float32, whatever the model
 * computes in. */
static ferry_status convert(const char *name, const ferry_tensor *from, ferry_dtype dtype,
                            ferry_tensors *chosen, ferry_error *error) {
    ferry_tensor *copy;
    TRY(ferry_tensors_add(chosen, name, dtype, from->rank, from->shape, &copy, error));
    dtype_convert(from->dtype, from->data, dtype, copy->data, ferry_tensor_count(from));
    return FERRY_OK;
}

static bool is_other_float(const StepPort *port, const ferry_tensor *tensor) {
    return port && port->port->dtype != tensor->dtype && ferry_dtype_is_float(tensor->dtype) &&
           ferry_dtype_is_float(port->port->dtype) && !port->carried;
}

/* The run's inputs by the names of the graph; what has the right dtype is not copied. */
static ferry_status select_inputs(const Step *step, const ferry_tensors *given,
                                  ferry_tensors *chosen, ferry_error *error) {
    size_t count = step->runner->input_count(step->component);
    for (size_t i = 0; i < count; i++) {
        const char *name = step->runner->input_name(step->component, i);
        const ferry_tensor *tensor = ferry_tensors_find(given, port_keyword(name));
        if (!tensor && step->held) tensor = ferry_tensors_find(step->held, port_keyword(name));
        if (!tensor) continue;
        const StepPort *port = step_find(step, port_keyword(name));
        if (is_other_float(port, tensor))
            TRY(convert(name, tensor, port->port->dtype, chosen, error));
        else
            TRY(tensors_lend(chosen, name, tensor, error));
    }
    return FERRY_OK;
}

/* Split what came out, by keyword: carried outputs are held (NULL: the runner does it), the others are the
 * caller's. `from` stays their owner. */
static ferry_status split_outputs(const Step *step, const ferry_tensors *from, ferry_tensors *held,
                                  ferry_tensors *outputs, ferry_error *error) {
    for (size_t i = 0; i < ferry_tensors_count(from); i++) {
        const ferry_tensor *tensor = ferry_tensors_at(from, i);
        const Carry *pair = pair_of_output(step, tensor->name);
        if (pair && held)
            TRY(tensors_lend(held, port_keyword(pair->input), tensor, error));
        else if (!pair)
            TRY(tensors_lend(outputs, port_keyword(tensor->name), tensor, error));
    }
    return FERRY_OK;
}

static ferry_status take_outputs(Step *step, ferry_tensors *from, ferry_tensors **out,
                                 ferry_error *error) {
    bool holds = !step->runner->carry;
    ferry_tensors *held = holds ? ferry_tensors_new() : NULL, *outputs = ferry_tensors_new();
    ferry_status status = outputs && (held || !holds)
                              ? split_outputs(step, from, held, outputs, error)
                              : error_memory(error, "outputs", 0);
    if (status == FERRY_OK) status = tensors_keep(outputs, from, error);
    if (status == FERRY_OK && holds) status = tensors_keep(held, from, error);
    if (status != FERRY_OK) {
        ferry_tensors_free(outputs);
        ferry_tensors_free(held);
        return status;
    }
    ferry_tensors_free(step->held);
    step->held = held;
    *out = outputs;
    return FERRY_OK;
}

ferry_status step_run(Step *step, const ferry_tensors *inputs, ferry_tensors **outputs,
                      ferry_error *error) {
    ferry_tensors *chosen = ferry_tensors_new(), *computed = NULL;
    *outputs = NULL;
    if (!chosen) return error_memory(error, "inputs", 0);
    ferry_status status = select_inputs(step, inputs, chosen, error);
    if (status == FERRY_OK) status = step->runner->run(step->component, chosen, &computed, error);
    if (status == FERRY_OK) status = take_outputs(step, computed, outputs, error);
    ferry_tensors_free(computed);
    ferry_tensors_free(chosen);
    return status;
}

ferry_status step_carried(Step *step, ferry_tensors **out, ferry_error *error) {
    ferry_status status;
    *out = NULL;
    if (step->runner->carried && step->pair_count) {
        ferry_tensors *carried;
        TRY(step->runner->carried(step->component, &carried, error));
        status = ports_by_keyword(carried, out, error);
        ferry_tensors_free(carried);
        return status;
    }
    ferry_tensors *copies = ferry_tensors_new();
    status = copies ? FERRY_OK : error_memory(error, "cache", 0);
    for (size_t i = 0; step->held && status == FERRY_OK && i < ferry_tensors_count(step->held);
         i++) {
        const ferry_tensor *tensor = ferry_tensors_at(step->held, i);
        status = tensors_copy(copies, tensor->name, tensor, error);
    }
    if (status == FERRY_OK)
        *out = copies;
    else
        ferry_tensors_free(copies);
    return status;
}

ferry_status step_forget(Step *step, ferry_error *error) {
    if (step->runner->forget) step->runner->forget(step->component);
    ferry_tensors_free(step->held);
    step->held = NULL;
    return step_is_stateful(step) ? ferry_exported_reset(step->component, error) : FERRY_OK;
}
