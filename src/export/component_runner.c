/* Runners: steps, as the public API has them. */
#include "base/error.h"
#include "export/step.h"

#include <stdlib.h>

struct ferry_runner {
    ferry_run_config config;
    Step *step;
};

ferry_status ferry_exported_runner(ferry_exported *exported, const char *name,
                                   const ferry_run_config *config, ferry_runner **out,
                                   ferry_error *error) {
    ferry_exported *component;
    error_clear(error);
    *out = NULL;
    TRY(ferry_exported_component(exported, name, &component, error));
    ferry_runner *runner = calloc(1, sizeof *runner);
    if (!runner) return error_memory(error, component->directory, sizeof *runner);
    runner->config = *config;
    ferry_status status = step_open(component, &runner->config, &runner->step, error);
    if (status == FERRY_OK)
        *out = runner;
    else
        free(runner);
    return status;
}

void ferry_runner_free(ferry_runner *runner) {
    if (!runner) return;
    step_close(runner->step);
    free(runner);
}

ferry_status ferry_runner_run(ferry_runner *runner, const ferry_tensors *inputs,
                              ferry_tensors **outputs, ferry_error *error) {
    error_clear(error);
    return step_run(runner->step, inputs, outputs, error);
}

ferry_status ferry_runner_cache(ferry_runner *runner, ferry_tensors **out, ferry_error *error) {
    error_clear(error);
    return step_carried(runner->step, out, error);
}

ferry_status ferry_runner_reset(ferry_runner *runner, ferry_error *error) {
    error_clear(error);
    return step_forget(runner->step, error);
}
