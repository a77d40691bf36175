/* A call of a kernel: how a kernel gets its arguments, makes its results and reports failure.
 *
 * Before the call the outputs are empty tensors with the dtype and shape that the program says;
 * a kernel allocates them or makes them views, and must have checked that its arguments fit. */
#ifndef RUN_REFERENCE_CALL_H
#define RUN_REFERENCE_CALL_H

#include "base/error.h"
#include "base/pool.h"
#include "graph/program.h"
#include "run/reference/loop.h"

enum { CALL_MAX_TEMPORARIES = 12 };

/* The numbers that the symbols of a program stand for. */
typedef struct Bindings {
    int64_t *values; /* by symbol index */
    bool *bound;
} Bindings;

typedef struct Call {
    const Node *node;
    Tensor *values; /* of the program, by id */
    const Bindings *bindings;
    Pool *pool;
    ferry_error *error;
    Tensor temporaries[CALL_MAX_TEMPORARIES]; /* released after the call */
    uint32_t temporary_count;
} Call;

/* A Scalar argument. */
typedef struct Scalar {
    bool is_float;
    int64_t integer; /* when not is_float */
    double number;   /* in any case */
} Scalar;

typedef ferry_status (*Kernel)(Call *call);

/* The kernel for `op`, or NULL. */
Kernel kernel_find(Op op);

/* False when the expression has a symbol without a value, overflows or divides by zero. */
bool bindings_evaluate(const Bindings *bindings, const Sym *sym, int64_t *out);

/* Set the error, at the place of the node; the message starts with the op's name. */
ferry_status call_fail(const Call *call, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ferry_status call_memory(const Call *call, uint64_t bytes);

/* ---- arguments ---- */

/* NULL for an optional tensor that is absent. */
const Tensor *call_tensor(const Call *call, uint32_t arg);
bool call_is_given(const Call *call, uint32_t arg);
ferry_status call_evaluate(const Call *call, const Sym *sym, int64_t *out);
ferry_status call_integer(const Call *call, uint32_t arg, int64_t *out);
/* At most FERRY_MAX_RANK of them. */
ferry_status call_integers(const Call *call, uint32_t arg, int64_t *out, uint32_t *count);
ferry_status call_scalar(const Call *call, uint32_t arg, Scalar *out);
/* A dimension of a tensor of `rank` dimensions, counted from the front. */
ferry_status call_dim(const Call *call, uint32_t arg, uint32_t rank, uint32_t *out);

/* ---- tensors ---- */

/* float32 for float32 and the halves, float64, int64 for integers and bool; NONE for others. */
ferry_dtype call_compute_dtype(ferry_dtype dtype);

/* UNSUPPORTED: no kernel for this element type. */
ferry_status call_reject_dtype(const Call *call, ferry_dtype dtype);

/* INVALID_ARGUMENT: the sizes of this run do not fit together. */
ferry_status call_reject_shape(const Call *call);

/* Replace `*tensor` by a temporary of that dtype, or of contiguous elements, unless it is so. */
ferry_status call_convert(Call *call, const Tensor **tensor, ferry_dtype dtype);
ferry_status call_contiguous(Call *call, const Tensor **tensor);

/* An uninitialized temporary. */
ferry_status call_temporary(Call *call, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            Tensor **out);

/* Fill one tensor from another of the same shape, converted; both strided. */
void call_copy(const Call *call, const Tensor *from, const Tensor *to);

/* `n` elements at steps of `step` elements from `source`, converted, to a contiguous block. */
void call_load(ferry_dtype from, const unsigned char *source, int64_t step, int64_t n,
               ferry_dtype to, void *block);

/* ---- results ---- */

Tensor *call_output(const Call *call, uint32_t index);
ferry_status call_allocate(const Call *call, uint32_t index);

/* Make an output a view, whose shape must be the expected one, of memory that is shared. */
ferry_status call_share(const Call *call, uint32_t index, const Tensor *view);

/* Somewhere to compute output 0 in `dtype`: the output itself or a temporary; then call_finish. */
ferry_status call_start(Call *call, ferry_dtype dtype, Tensor **out);
void call_finish(const Call *call, const Tensor *computed);

#endif
