/* The numbers that torch serializes dtypes as (c10::ScalarType, in torch._export.serde.schema). */
#ifndef FORMAT_SCALAR_TYPE_H
#define FORMAT_SCALAR_TYPE_H

#include <ferry/dtype.h>
#include <stdint.h>

/* FERRY_DTYPE_NONE for numbers of dtypes that ferry does not have. */
ferry_dtype scalar_type_dtype(int64_t number);
int64_t scalar_type_number(ferry_dtype dtype);

#endif
