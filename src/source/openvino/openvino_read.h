/* Reading OpenVINO models: NAME.xml with NAME.bin, version 10 or 11 of the IR, becomes a Program.
 *
 * Taken are the layers that the OpenVINO target writes and what else the same operations of a Program
 * express: see layers.c. Whatever is not understood is UNSUPPORTED and names the layer, its type and its
 * operation set. A state is read as what it is at the first run; what a run leaves in it is not a part of
 * the Program. */
#ifndef SOURCE_OPENVINO_READ_H
#define SOURCE_OPENVINO_READ_H

#include "base/file.h"
#include "graph/program.h"
#include <ferry/exported.h>

/* Sizes of inputs, which the IR does not name; `count` 0: they get names of their own. */
typedef struct OpenvinoInputs {
    const ferry_port *inputs; /* in any order */
    size_t count;
} OpenvinoInputs;

/* Read the model at `path` into an empty program, whose weights refer to the files that are added to
 * `files`: these must outlive the program. Symbols that the program has already keep their ranges.
 * Inputs and outputs called "input.X" and "output.X" for one X become the ports X. */
ferry_status openvino_read(const char *path, const OpenvinoInputs *inputs, MappedFiles *files,
                           Program *program, ferry_error *error);

/* The same for a model in memory; `weights` NULL: there is no .bin. */
ferry_status openvino_read_model(const MappedFile *model, const MappedFile *weights,
                                 const OpenvinoInputs *inputs, Program *program,
                                 ferry_error *error);

/* What the inputs and outputs are called, in the order that OpenVINO has them in. */
typedef struct OpenvinoNames {
    const char **inputs, **outputs;
    size_t input_count, output_count;
} OpenvinoNames;

/* Check what OpenVINO relies on without checking it: that the file is well-formed, that its edges join
 * ports that exist, and that its constants are inside of the .bin. The names are in the arena. */
ferry_status openvino_validate(const char *path, Arena *arena, OpenvinoNames *out,
                               ferry_error *error);

#endif
