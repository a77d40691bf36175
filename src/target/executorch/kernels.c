#include "target/executorch/kernels.h"

#include <stdlib.h>
#include <string.h>

static const char *const kernels[] = {
#define KERNEL(name) name,
#include "target/executorch/kernels.def"
#undef KERNEL
};

static int compare(const void *name, const void *entry) {
    return strcmp(name, *(const char *const *)entry);
}

bool kernel_exists(const char *name) {
    return bsearch(name, kernels, sizeof kernels / sizeof *kernels, sizeof *kernels, compare);
}
