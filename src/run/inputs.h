/* The tensors that a run takes. */
#ifndef RUN_INPUTS_H
#define RUN_INPUTS_H

#include <ferry/tensor.h>

/* The tensor called `name`, which must be there and have the dtype that the model wants. */
ferry_status inputs_find(const ferry_tensors *inputs, const char *name, ferry_dtype dtype,
                         const ferry_tensor **out, ferry_error *error);

/* Where `name` stands in the names of the inputs, or of the outputs, of the model of the file `path`. */
ferry_status inputs_place(const char *const *names, size_t count, const char *name,
                          const char *path, size_t *out, ferry_error *error);

#endif
