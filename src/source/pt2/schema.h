/* The records of a serialized program (torch._export.serde.schema, major version 8): dtypes, symbolic
 * integers, tensor types. All of it is hostile JSON; functions report what they expected. */
#ifndef SOURCE_PT2_SCHEMA_H
#define SOURCE_PT2_SCHEMA_H

#include "format/document.h"
#include "format/scalar_type.h"
#include "graph/program.h"

/* Type of a tensor as the file declares it. */
typedef struct TensorMeta {
    ferry_dtype dtype;
    uint32_t rank;
    const Sym *sizes[FERRY_MAX_RANK];
    const Sym *strides[FERRY_MAX_RANK];
    const Sym *offset;
} TensorMeta;

/* {"as_int": 4} or {"as_expr": {"expr_str": "Symbol('s0', ...)"}}. Symbols are made on first sight. */
ferry_status schema_sym(SymTable *table, const Doc *json, const Sym **out, ferry_error *error);

/* Complex tensors are of real numbers with a last dimension of 2. */
bool schema_is_complex(const Doc *json);

ferry_status schema_tensor(SymTable *table, const Doc *json, const char *name, TensorMeta *out,
                           ferry_error *error);

/* True when the strides are those of a dense, row-major tensor. */
bool schema_is_contiguous(SymTable *table, const TensorMeta *meta);

bool schema_same_strides(const SymTable *table, const TensorMeta *a, const TensorMeta *b);

#endif
