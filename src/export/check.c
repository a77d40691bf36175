/* Checking an export: run it in every runtime there is and compare with an oracle. */
#include "base/dtype.h"
#include "base/error.h"
#include "export/export.h"
#include "plugin/plugin.h"
#include "run/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ferry_check_config_init(ferry_check_config *config) {
    *config = (ferry_check_config){.size = sizeof *config, .tolerance = 1e-4};
}

typedef struct Check {
    const ferry_check_config *config;
    ferry_exported *exported;
    Pool *pool;
    const char *oracle; /* its name */
    size_t failures, comparisons;
    ferry_error *error;
} Check;

/* ---- comparing ---- */

static double element(const ferry_tensor *tensor, size_t i) {
    double value;
    const unsigned char *bytes = tensor->data;
    dtype_convert(tensor->dtype, bytes + i * ferry_dtype_size(tensor->dtype), FERRY_F64, &value, 1);
    return value;
}

static bool same_type(const ferry_tensor *a, const ferry_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    return memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static void compare(Check *check, const char *runtime, const char *inputs,
                    const ferry_tensor *expected, const ferry_tensor *found) {
    ferry_comparison result = {.runtime = runtime,
                               .oracle = check->oracle,
                               .inputs = inputs,
                               .output = expected->name,
                               .difference = INFINITY};
    if (!found)
        result.problem = "the output is missing";
    else if (!same_type(expected, found))
        result.problem = "the shape or dtype differs";
    else {
        size_t count = ferry_tensor_count(expected);
        result.difference = 0;
        for (size_t i = 0; i < count; i++) {
            double wanted = element(expected, i), got = element(found, i);
            if (isnan(wanted) && isnan(got)) continue;
            double difference = wanted == got ? 0 : fabs(wanted - got);
            if (isnan(difference)) difference = INFINITY;
            if (difference > result.difference) result.difference = difference;
            if (isfinite(wanted) && fabs(wanted) > result.scale) result.scale = fabs(wanted);
        }
        if (count && isinf(result.difference))
            result.problem = "a number is infinite or not a number";
    }
    result.passed = result.difference <= check->config->tolerance * fmax(1, result.scale);
    check->comparisons++;
    if (!result.passed) check->failures++;
    if (check->config->compare) check->config->compare(check->config->compare_context, &result);
}

/* Everything that the oracle and the export both have; a recorded output that the export leaves out on
 * purpose (the cache, with --no-cache) is not missed. */
static void compare_all(Check *check, const char *runtime, const char *inputs,
                        const ferry_tensors *expected, const ferry_tensors *found) {
    for (size_t i = 0; i < ferry_tensors_count(expected); i++) {
        const ferry_tensor *wanted = ferry_tensors_at(expected, i);
        const ferry_tensor *got = ferry_tensors_find(found, wanted->name);
        if (!got && strncmp(wanted->name, "cache.", 6) == 0) continue;
        compare(check, runtime, inputs, wanted, got);
    }
}

/* ---- oracles ---- */

/* The checkpoint's own program, before any pass, in the reference runtime. */
static ferry_status ask_checkpoint(Check *check, const ferry_tensors *inputs, ferry_tensors **out) {
    InputRequest requests[64];
    Checkpoint *checkpoint = NULL;
    const Manifest *manifest = &check->exported->manifest;
    size_t count = ferry_tensors_count(inputs);
    ModelRequest request = {.architecture = manifest->architecture,
                            .dtype = ferry_dtype_parse(manifest->dtype),
                            .use_cache = true};
    if (strcmp(manifest->component, "model") != 0) {
        return error_set(check->error, FERRY_UNSUPPORTED, check->config->against,
                         "the component \"%s\" cannot be compared with a checkpoint: give recorded "
                         "outputs, or nothing",
                         manifest->component);
    }
    if (count > 64)
        return error_set(check->error, FERRY_UNSUPPORTED, "inputs", "more than 64 inputs");
    for (size_t i = 0; i < count; i++) {
        const ferry_tensor *input = ferry_tensors_at(inputs, i);
        requests[i] = (InputRequest){.name = input->name, .dtype = input->dtype};
    }
    TRY(checkpoint_open(check->config->against, &checkpoint, check->error));
    Registry registry = {0};
    Program *program = program_new();
    ferry_status status = program ? FERRY_OK : error_memory(check->error, "check", 0);
    if (status == FERRY_OK) status = plugin_builtin(&registry, check->error);
    if (status == FERRY_OK) {
        status =
            model_build(checkpoint, &registry, &request, requests, count, program, check->error);
    }
    if (status == FERRY_OK) status = reference_run(program, inputs, check->pool, out, check->error);
    program_free(program);
    registry_free(&registry);
    checkpoint_close(checkpoint);
    return status;
}

static ferry_status ask_oracle(Check *check, const ferry_tensors *inputs, ferry_tensors **out) {
    const char *against = check->config->against;
    if (against && checkpoint_probe(against)) return ask_checkpoint(check, inputs, out);
    if (against) return ferry_tensors_load(against, out, check->error);
    ferry_run_config run;
    ferry_run_config_init(&run);
    run.runtime = "reference";
    run.threads = check->config->threads;
    return ferry_exported_run(check->exported, &run, inputs, out, check->error);
}

static const char *name_oracle(const Check *check) {
    const char *against = check->config->against;
    if (!against) return "the reference runtime on the same program";
    return checkpoint_probe(against) ? "the checkpoint in the reference runtime" : against;
}

/* ---- runtimes ---- */

static ferry_status check_runtime(Check *check, const char *name, const char *label,
                                  const char *inputs_label, const ferry_tensors *inputs,
                                  const ferry_tensors *expected) {
    ferry_run_config run;
    ferry_tensors *found = NULL;
    ferry_run_config_init(&run);
    run.runtime = name;
    run.library = check->config->library;
    run.threads = check->config->threads;
    run.note = check->config->note;
    run.note_context = check->config->note_context;
    TRY(ferry_exported_reset(check->exported, check->error));
    TRY(ferry_exported_run(check->exported, &run, inputs, &found, check->error));
    compare_all(check, label, inputs_label, expected, found);
    ferry_tensors_free(found);
    return FERRY_OK;
}

static ferry_status check_inputs(Check *check, const char *label, const ferry_tensors *inputs) {
    ferry_tensors *expected = NULL;
    ferry_runtime runtime;
    ferry_status status = ask_oracle(check, inputs, &expected);
    for (size_t i = 0; status == FERRY_OK && ferry_runtime_at(i, check->config->library, &runtime);
         i++) {
        bool is_oracle = !check->config->against && strcmp(runtime.name, "reference") == 0;
        if (!runtime_takes(runtime.name, check->exported->manifest.format)) continue;
        char title[128];
        snprintf(title, sizeof title, "%s %s", runtime.name, runtime.version);
        if (runtime.found && !is_oracle) {
            status = check_runtime(check, runtime.name, title, label, inputs, expected);
        } else if (!runtime.found && check->config->note) {
            check->config->note(check->config->note_context, runtime.problem);
        }
    }
    ferry_tensors_free(expected);
    return status;
}

static void describe_inputs(const ferry_tensors *inputs, char *out, size_t size) {
    const ferry_tensor *first = ferry_tensors_at(inputs, 0);
    size_t length = (size_t)snprintf(out, size, "%s[", first ? first->name : "");
    for (size_t d = 0; first && d < first->rank && length < size; d++) {
        length += (size_t)snprintf(out + length, size - length, "%s%lld", d ? ", " : "",
                                   (long long)first->shape[d]);
    }
    if (length < size) snprintf(out + length, size - length, "]");
}

static ferry_status check_all(Check *check) {
    ferry_tensors *inputs = NULL;
    ferry_status status = FERRY_OK;
    bool given = check->config->inputs != NULL;
    if (check->config->against && !checkpoint_probe(check->config->against) && !given) {
        return error_set(
            check->error, FERRY_INVALID_ARGUMENT, check->config->against,
            "recorded outputs need the inputs that they were recorded with: give --inputs");
    }
    for (int round = 0; round < (given ? 1 : 2) && status == FERRY_OK; round++) {
        char label[256];
        status = given ? ferry_tensors_load(check->config->inputs, &inputs, check->error)
                       : samples_make(check->exported, round, &inputs, check->error);
        if (status == FERRY_OK) {
            describe_inputs(inputs, label, sizeof label);
            status = check_inputs(check, given ? check->config->inputs : label, inputs);
        }
        ferry_tensors_free(inputs);
        inputs = NULL;
    }
    return status;
}

static ferry_status check_components(Check *check, ferry_exported *whole) {
    const char *wanted = check->config->component;
    if (wanted) TRY(ferry_exported_component(whole, wanted, &check->exported, check->error));
    for (size_t i = 0; (check->exported = ferry_exported_component_at(whole, i)); i++) {
        if (wanted && strcmp(wanted, ferry_exported_name(check->exported)) != 0) continue;
        TRY(check_all(check));
    }
    return FERRY_OK;
}

ferry_status ferry_check(const char *directory, const ferry_check_config *config,
                         ferry_error *error) {
    error_clear(error);
    Check check = {.config = config, .error = error};
    ferry_exported *whole;
    TRY(ferry_exported_load(directory, &whole, error));
    check.oracle = name_oracle(&check);
    check.pool = pool_new(config->threads);
    ferry_status status = check_components(&check, whole);
    pool_free(check.pool);
    ferry_exported_free(whole);
    if (status != FERRY_OK) return status;
    if (check.comparisons == 0) {
        return error_set(error, FERRY_RUNTIME_MISSING, directory,
                         "nothing was compared: no runtime was found");
    }
    if (check.failures == 0) return FERRY_OK;
    return error_set(error, FERRY_MISMATCH, directory, "%zu of %zu outputs differ", check.failures,
                     check.comparisons);
}
