/* What ferry itself does with collections of tensors, besides the public functions. */
#ifndef FORMAT_TENSORS_H
#define FORMAT_TENSORS_H

#include <ferry/tensor.h>

/* Append `tensor` under the name `name` without copying: its data must outlive the collection. */
ferry_status tensors_lend(ferry_tensors *tensors, const char *name, const ferry_tensor *tensor,
                          ferry_error *error);

/* Append a copy of `tensor` under the name `name`. */
ferry_status tensors_copy(ferry_tensors *tensors, const char *name, const ferry_tensor *tensor,
                          ferry_error *error);

/* Let `kept` live as long as `tensors`, besides its other owners. */
ferry_status tensors_keep(ferry_tensors *tensors, ferry_tensors *kept, ferry_error *error);

#endif
