/* The OpenVINO target: a Program becomes `openvino_model.xml` and `openvino_model.bin` (IR version 11). */
#ifndef TARGET_OPENVINO_H
#define TARGET_OPENVINO_H

#include "base/file.h"
#include "base/pool.h"
#include "graph/program.h"
#include "graph/stream.h"

typedef struct OpenvinoOptions {
    /* The .bin is the checkpoint's only file: nothing is written there, and constants that it does not
     * hold are computed in the graph. */
    bool link;
    bool compress_to_fp16;   /* store float32 weights as float16 */
    bool stateless;          /* caches stay inputs and outputs */
    Pool *pool;              /* may be NULL */
    StreamProgress progress; /* may be NULL */
    void *progress_context;
} OpenvinoOptions;

typedef struct OpenvinoSizes {
    uint64_t xml_bytes, bin_bytes;
    uint32_t layers, weights;
} OpenvinoSizes;

/* Make the program one that openvino_write takes. */
ferry_status openvino_legalize(Program *program, const OpenvinoOptions *options,
                               ferry_error *error);

/* Write a legalized program to two open files; `bin` is NULL when it is linked. */
ferry_status openvino_write(Program *program, const OpenvinoOptions *options, OutputFile *xml,
                            OutputFile *bin, OpenvinoSizes *sizes, ferry_error *error);

/* The bytes that the weights will take in the .bin; small constants follow. */
uint64_t openvino_bin_size(const Program *program, const OpenvinoOptions *options);

/* The file that the .bin is to link to: the one that holds all weights. */
ferry_status openvino_linked_file(const Program *program, const MappedFile **file,
                                  ferry_error *error);

/* Is there a lowering for `op`? (`ferry ops`) */
bool openvino_supports(Op op);

#endif
