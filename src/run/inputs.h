/* The tensors that a run takes. */
#ifndef RUN_INPUTS_H
#define RUN_INPUTS_H

#include <ferry/tensor.h>

/* The tensor called `name`, which must be there and have the dtype that the model wants. */
ferry_status inputs_find(const ferry_tensors *inputs, const char *name, ferry_dtype dtype,
                         const ferry_tensor **out, ferry_error *error);

#endif
