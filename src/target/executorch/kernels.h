/* The kernels that the runtime has. */
#ifndef TARGET_EXECUTORCH_KERNELS_H
#define TARGET_EXECUTORCH_KERNELS_H

#include <stdbool.h>

bool kernel_exists(const char *name);

#endif
