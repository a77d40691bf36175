/* The list of model types. */
#include "source/checkpoint/families.h"

#include <string.h>

static const char *const task_names[] = {
#define TASK(name, cli_name, suffix) [TASK_##name] = cli_name,
#include "source/checkpoint/tasks.def"
#undef TASK
};

static const char *const task_suffixes[] = {
#define TASK(name, cli_name, suffix) [TASK_##name] = suffix,
#include "source/checkpoint/tasks.def"
#undef TASK
};

const char *task_name(Task task) {
    return task_names[task];
}

const char *task_suffix(Task task) {
    return task_suffixes[task];
}

bool task_parse(const char *text, Task *out) {
    for (int task = 0; task < TASK_COUNT; task++) {
        if (strcmp(text, task_names[task]) != 0 && strcmp(text, task_suffixes[task]) != 0) continue;
        *out = (Task)task;
        return true;
    }
    return false;
}

static const Family *const lists[] = {decoder_families, gpt_families,       mamba_families,
                                      jamba_families,   encoder_families,   t5_families,
                                      bart_families,    whisper_families,   vit_families,
                                      clip_families,    multimodal_families};

void families_register(Registry *registry) {
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const Family *family = lists[i]; family->model_type; family++)
            registry_add(registry, EXTENSION_FAMILY, family->model_type, family);
    }
}

/* Letters to insert, remove or change to get from one name to the other (Levenshtein). */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[64], length = strlen(b);
    if (length >= sizeof row / sizeof *row) return SIZE_MAX;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t changed = diagonal + (a[i] != b[j]);
            size_t moved = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < moved ? changed : moved;
        }
    }
    return row[length];
}

const char *families_nearest(const Registry *registry, const char *wanted) {
    const char *best = "llama";
    size_t least = SIZE_MAX;
    const Extensions *families = &registry->lists[EXTENSION_FAMILY];
    for (size_t i = 0; i < families->count; i++) {
        size_t distance = edit_distance(wanted, families->items[i].name);
        if (distance >= least) continue;
        best = families->items[i].name;
        least = distance;
    }
    return best;
}
