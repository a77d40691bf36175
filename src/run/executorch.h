/* ExecuTorch, through the libraries of its Python package, found on the machine and loaded at run time,
 * and ferry's adapter to them, libferry_executorch.so, which is built where the package is. */
#ifndef RUN_EXECUTORCH_H
#define RUN_EXECUTORCH_H

#include "run/carry.h"
#include <ferry/tensor.h>

typedef struct ExecuTorch ExecuTorch;               /* the loaded libraries */
typedef struct ExecuTorchSession ExecuTorchSession; /* a program ready to run */

/* Find and load the libraries. `library` (NULL: search) is a path to libexecutorch.so. The search, in
 * order: $FERRY_EXECUTORCH, the system's library path, the `executorch` package of the Python that
 * `python3` starts and of $VIRTUAL_ENV. The adapter is $FERRY_EXECUTORCH_ADAPTER, or the file beside
 * ferry's own library. RUNTIME_MISSING tells what is missing, where it was looked for and what to do. */
ferry_status executorch_load(const char *library, ExecuTorch **out, ferry_error *error);
void executorch_unload(ExecuTorch *runtime);

/* "1.5.1", the path of libexecutorch.so, and the backends that work. Valid while loaded. */
const char *executorch_version(const ExecuTorch *runtime);
const char *executorch_path(const ExecuTorch *runtime);
const char *executorch_backends(const ExecuTorch *runtime);

/* The names of inputs and outputs, which the file does not have. */
typedef struct ExecuTorchNames {
    const char *const *inputs, *const *outputs;
    const int *writes; /* the input that an output is what becomes of, or one of these: */
    size_t input_count, output_count;
} ExecuTorchNames;

enum { EXECUTORCH_WRITES_NOTHING = -1, EXECUTORCH_WRITES_STATE = -2 };

/* Open the .pte at `path`; `threads` 0: the runtime's own choice, for all programs of the process. The
 * names must live as long as the session. RUNTIME_FAILED carries the runtime's own message. */
ferry_status executorch_open(ExecuTorch *runtime, const char *path, const ExecuTorchNames *names,
                             unsigned threads, ExecuTorchSession **out, ferry_error *error);
void executorch_close(ExecuTorchSession *session);

/* Have what the program keeps from run to run be what it was at first. */
ferry_status executorch_reset(ExecuTorchSession *session, ferry_error *error);

/* Run on `inputs`, matched by name (extra tensors are ignored; a missing one is INVALID_ARGUMENT with its
 * name). Inputs whose memory is not the program's are read in place, or copied where the program writes
 * them. `*outputs` is owned by the caller. */
ferry_status executorch_run(ExecuTorchSession *session, const ferry_tensors *inputs,
                            ferry_tensors **outputs, ferry_error *error);

/* From now on carry these pairs from run to run. A carried input that is given starts anew. What the
 * program plans memory for is copied on the way. */
ferry_status executorch_carry(ExecuTorchSession *session, const Carry *pairs, size_t count,
                              ferry_error *error);

/* Copies of what is carried, under the names of the inputs; the caller's to free. */
ferry_status executorch_carried(ExecuTorchSession *session, ferry_tensors **out,
                                ferry_error *error);

/* Carry nothing into the next run. */
void executorch_forget(ExecuTorchSession *session);

#endif
