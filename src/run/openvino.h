/* OpenVINO, through the C API of a library found on the machine and loaded at run time. */
#ifndef RUN_OPENVINO_H
#define RUN_OPENVINO_H

#include <ferry/tensor.h>

typedef struct OpenVino OpenVino;               /* the loaded library */
typedef struct OpenVinoSession OpenVinoSession; /* a model ready to run, with its state */

/* Find and load the library. `library` (NULL: search) is a path to libopenvino_c.so. The search, in
 * order: $FERRY_OPENVINO, the system's library path, the `openvino` package of the Python that
 * `python3` starts and of $VIRTUAL_ENV. RUNTIME_MISSING lists where it looked and how to install one. */
ferry_status openvino_load(const char *library, OpenVino **out, ferry_error *error);
void openvino_unload(OpenVino *runtime);

/* "2026.4.1", the path it was loaded from, and the devices it can use: "CPU, GPU.0". Valid while loaded. */
const char *openvino_version(const OpenVino *runtime);
const char *openvino_path(const OpenVino *runtime);
const char *openvino_devices(const OpenVino *runtime);

typedef struct OpenVinoOptions {
    const char *device; /* "CPU", "GPU", "GPU.1", "NPU", in either case; NULL: "AUTO" */
    bool exact;         /* compute in float32, where the device would round to 16 bits by itself */
    unsigned threads;   /* of the CPU; 0: the runtime's own choice */
} OpenVinoOptions;

/* Open a model, NAME.xml with its NAME.bin. What the file holds is checked before the runtime, which
 * does not survive all mistakes, reads it. RUNTIME_FAILED carries the runtime's own message. */
ferry_status openvino_open(OpenVino *runtime, const char *path, const OpenVinoOptions *options,
                           OpenVinoSession **out, ferry_error *error);
void openvino_close(OpenVinoSession *session);

/* Names of the model's inputs. */
size_t openvino_input_count(const OpenVinoSession *session);
const char *openvino_input_name(const OpenVinoSession *session, size_t index);

/* Run on `inputs`, matched by name (extra tensors are ignored; a missing one is INVALID_ARGUMENT with
 * its name). Inputs are read in place. `*outputs` is owned by the caller. A stateful model goes on from where the last run ended. */
ferry_status openvino_run(OpenVinoSession *session, const ferry_tensors *inputs,
                          ferry_tensors **outputs, ferry_error *error);

/* Let a stateful model start over. */
ferry_status openvino_reset(OpenVinoSession *session, ferry_error *error);

#endif
