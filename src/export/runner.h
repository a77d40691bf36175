/* Runtimes as exports are run in them. */
#ifndef EXPORT_RUNNER_H
#define EXPORT_RUNNER_H

#include "export/export.h"
#include "run/carry.h"

/* What differs between the runtimes. Names are those of the graph. */
typedef struct Runner {
    const char *name;
    const char *format; /* of the exports that it takes; NULL: all that can be read */
    ferry_status (*open)(ferry_exported *exported, const ferry_run_config *config,
                         ferry_error *error);
    size_t (*input_count)(const ferry_exported *exported);
    const char *(*input_name)(const ferry_exported *exported, size_t index);
    ferry_status (*run)(ferry_exported *exported, const ferry_tensors *inputs,
                        ferry_tensors **outputs, ferry_error *error);
    /* Outputs that are inputs of the next run, where the runtime has a way to hand them over; NULL: they
     * are outputs like others. */
    ferry_status (*carry)(ferry_exported *exported, const Carry *pairs, size_t count,
                          ferry_error *error);
    ferry_status (*carried)(ferry_exported *exported, ferry_tensors **out, ferry_error *error);
    void (*forget)(ferry_exported *exported);
} Runner;

/* Open the export, which is one component, in the runtime that is asked for, or in the best that is found. */
ferry_status runner_open(ferry_exported *exported, const ferry_run_config *config,
                         const Runner **out, ferry_error *error);

#endif
