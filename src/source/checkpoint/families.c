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

static const Family *const lists[] = {decoder_families, gpt_families, encoder_families};

void families_register(Registry *registry) {
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const Family *family = lists[i]; family->model_type; family++)
            registry_add(registry, EXTENSION_FAMILY, family->model_type, family);
    }
}
