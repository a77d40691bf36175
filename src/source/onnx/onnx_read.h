/* Reading ONNX models: a model.onnx with its external data becomes a Program.
 *
 * Taken are the operators that the ONNX target writes and what else the same operations of a Program
 * express, at opsets 13 to 24: see operators.c. Everything that computes shapes is evaluated while
 * reading (known.c), so sizes come out as expressions of the inputs' sizes. Whatever is not
 * understood is UNSUPPORTED and names the operator, its domain and the node; there is no default for
 * an attribute that is not known. */
#ifndef SOURCE_ONNX_READ_H
#define SOURCE_ONNX_READ_H

#include "base/file.h"
#include "graph/program.h"

enum { ONNX_READ_MIN_OPSET = 13, ONNX_READ_MAX_OPSET = 24 };

/* Read the model at `path` into an empty program. Its weights refer to the model and to the files of
 * its external data, which are added to `files`: these must outlive the program. The files of external
 * data are in or below the model's directory; nothing else is opened. Symbols that the program has
 * already keep their ranges. Inputs and outputs called "input.X" and "output.X" for one X become the
 * ports X. */
ferry_status onnx_read(const char *path, MappedFiles *files, Program *program, ferry_error *error);

/* The same for a model in memory; `model->path` tells where external data would be. */
ferry_status onnx_read_model(const MappedFile *model, MappedFiles *files, Program *program,
                             ferry_error *error);

#endif
