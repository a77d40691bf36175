/* Reading ExecuTorch programs: a .pte becomes a Program.
 *
 * Taken are the kernels and the nodes of XNNPACK delegates that the ExecuTorch target writes, see kernels.c
 * and xnnpack_nodes.c. Whatever is not understood is UNSUPPORTED and names the kernel. */
#ifndef SOURCE_EXECUTORCH_READ_H
#define SOURCE_EXECUTORCH_READ_H

#include "base/file.h"
#include "graph/program.h"
#include <ferry/exported.h>

/* What export.json says and the file does not: names, and sizes as expressions. `input_count` 0: the ports
 * get names of their own, and every size that may vary is a symbol. */
typedef struct PtePorts {
    const ferry_port *inputs, *outputs;
    size_t input_count, output_count;
} PtePorts;

/* How many parts of the program at `path` are handed to a backend. */
ferry_status executorch_delegates(const char *path, size_t *count, ferry_error *error);

/* Read the file at `path` into an empty program, whose weights refer to the file, which is added to `files`
 * and must outlive the program. Symbols that the program has already keep their ranges. */
ferry_status executorch_read(const char *path, const PtePorts *ports, MappedFiles *files,
                             Program *program, ferry_error *error);

/* The same for a file that is mapped already, or in memory. */
ferry_status executorch_read_file(const MappedFile *file, const PtePorts *ports, Program *program,
                                  ferry_error *error);

#endif
