/* The ExecuTorch target: a Program becomes `model.pte`, which the runtime of an ExecuTorch 1.5 package
 * loads: kernels it has, planned memory, weights in segments of the file. */
#ifndef TARGET_EXECUTORCH_H
#define TARGET_EXECUTORCH_H

#include "base/file.h"
#include "base/pool.h"
#include "graph/registry.h"
#include "graph/stream.h"

typedef struct Backend Backend;

/* "xnnpack" or "mlx"; NULL: there is none of that name. */
const Backend *executorch_backend(const char *name);

typedef struct ExecutorchOptions {
    const Backend *backend;  /* give what it computes to its delegate; NULL: kernels compute all */
    bool unplanned_inputs;   /* the caller gives the memory of inputs, */
    bool unplanned_outputs;  /* of outputs, */
    bool unplanned_states;   /* and of what the program keeps from run to run */
    Pool *pool;              /* may be NULL */
    StreamProgress progress; /* may be NULL */
    void *progress_context;
} ExecutorchOptions;

typedef struct ExecutorchSizes {
    uint64_t program_bytes, weight_bytes;
    uint64_t planned_bytes; /* memory that the runtime allocates for the tensors of a run */
    uint32_t instructions, delegates, weights;
} ExecutorchSizes;

/* Make the program one that executorch_write takes. */
ferry_status executorch_legalize(Program *program, const Registry *registry,
                                 const ExecutorchOptions *options, ferry_error *error);

/* Write a legalized program to an open file. */
ferry_status executorch_write(Program *program, const ExecutorchOptions *options, OutputFile *file,
                              ExecutorchSizes *sizes, ferry_error *error);

/* Give sizes that nothing bounds a cap, so that memory can be planned. `*caps` names them, such as
 * "batch <= 64, sequence <= 64"; NULL: there are none. Nothing changes the program after this. */
ferry_status executorch_bound(Program *program, const char **caps, ferry_error *error);

/* Check the first `length` bytes of a file of `file_size`, which hold the program, as the runtime does.
 * BAD_FORMAT says what is wrong. */
ferry_status executorch_verify(const char *path, const unsigned char *bytes, size_t length,
                               uint64_t file_size, ferry_error *error);

/* Is there a lowering for `op` to kernels, or a node of the backend? (`ferry ops`) */
bool executorch_supports(Op op);
bool executorch_delegates_op(const Backend *backend, Op op);

#endif
