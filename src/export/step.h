/* A component that is run again and again, and keeps its cache from one run to the next. */
#ifndef EXPORT_STEP_H
#define EXPORT_STEP_H

#include "export/export.h"

typedef struct Step Step;

/* An input or output, with the keyword it has in the model: "cache.layers.0.keys" for the graph's
 * "input.cache.layers.0.keys". */
typedef struct StepPort {
    const char *keyword;
    const ferry_port *port;
    bool carried; /* of inputs: the output of the same keyword is the next run's */
} StepPort;

/* Open a component of an export that ferry wrote, in the runtime that `config` asks for. `config` must
 * outlive the step. */
ferry_status step_open(ferry_exported *component, const ferry_run_config *config, Step **out,
                       ferry_error *error);
void step_close(Step *step);

const StepPort *step_input(const Step *step, size_t index); /* NULL past the end */
const StepPort *step_find(const Step *step, const char *keyword);

/* Does the runtime keep the cache by itself, so that it is neither an input nor an output? */
bool step_is_stateful(const Step *step);

/* Does it go on from a cache, wherever that is? */
bool step_takes_cache(const Step *step);

ferry_exported *step_component(const Step *step);

/* Run on `inputs`, by keyword. What is carried and not given comes from the last run. `*outputs`, by
 * keyword and without what is carried, is the caller's. */
ferry_status step_run(Step *step, const ferry_tensors *inputs, ferry_tensors **outputs,
                      ferry_error *error);

/* Copies of what is carried, by keyword. */
ferry_status step_carried(Step *step, ferry_tensors **out, ferry_error *error);

/* Start over. */
ferry_status step_forget(Step *step, ferry_error *error);

#endif
