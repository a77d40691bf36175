/* ONNX Runtime, through the C API of a library found on the machine and loaded at run time. */
#ifndef RUN_ONNXRUNTIME_H
#define RUN_ONNXRUNTIME_H

#include "run/carry.h"
#include <ferry/tensor.h>

typedef struct OnnxRuntime OnnxRuntime; /* the loaded library */
typedef struct OnnxSession OnnxSession; /* a model ready to run */

/* Find and load the library. `library` (NULL: search) is a path to libonnxruntime.so. The search, in
 * order: $FERRY_ONNXRUNTIME, the system's library path, the `onnxruntime` package of the Python that
 * `python3` starts and of $VIRTUAL_ENV, an `onnxruntime-node` package under node_modules of the
 * current directory and its parents. RUNTIME_MISSING lists where it looked and how to install one. */
ferry_status onnxruntime_load(const char *library, OnnxRuntime **out, ferry_error *error);
void onnxruntime_unload(OnnxRuntime *runtime);

/* "1.32.0", and the path it was loaded from. Valid while loaded. */
const char *onnxruntime_version(const OnnxRuntime *runtime);
const char *onnxruntime_path(const OnnxRuntime *runtime);

/* Open a model file on the CPU provider. `threads` 0: the runtime's own choice. RUNTIME_FAILED
 * carries the runtime's own message. */
ferry_status onnxruntime_open(OnnxRuntime *runtime, const char *path, unsigned threads,
                              OnnxSession **out, ferry_error *error);
void onnxruntime_close(OnnxSession *session);

/* Names of the model's inputs and outputs. */
size_t onnxruntime_input_count(const OnnxSession *session);
const char *onnxruntime_input_name(const OnnxSession *session, size_t index);
size_t onnxruntime_output_count(const OnnxSession *session);
const char *onnxruntime_output_name(const OnnxSession *session, size_t index);

/* Run on `inputs`, matched by name (extra tensors are ignored; a missing one is INVALID_ARGUMENT with
 * its name). Inputs are read in place. `*outputs` is owned by the caller. */
ferry_status onnxruntime_run(OnnxSession *session, const ferry_tensors *inputs,
                             ferry_tensors **outputs, ferry_error *error);

/* From now on carry these pairs from run to run. A carried input that is given starts anew. */
ferry_status onnxruntime_carry(OnnxSession *session, const Carry *pairs, size_t count,
                               ferry_error *error);

/* Copies of what is carried, under the names of the inputs; the caller's to free. */
ferry_status onnxruntime_carried(OnnxSession *session, ferry_tensors **out, ferry_error *error);

/* Carry nothing into the next run. */
void onnxruntime_forget(OnnxSession *session);

#endif
