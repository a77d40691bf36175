/* What the targets that name tensors and read sizes off them share. */
#ifndef TARGET_SIGNATURE_H
#define TARGET_SIGNATURE_H

#include "graph/program.h"

/* The names of a model's inputs and outputs: the leaf paths, with "input." and "output." before a name
 * that is on both sides. In the program's arena. */
const char *signature_input(Program *program, size_t index);
const char *signature_output(Program *program, size_t index);

/* Where a symbol's value is read. */
typedef struct Dimension {
    const Value *value; /* NULL: nowhere */
    int dim; /* the symbol is this size of the value; -1: the value itself, a 0-d integer */
} Dimension;

/* By symbol: an input, a state or the source of a data-dependent symbol; NULL when memory is exhausted. */
Dimension *signature_dimensions(const Program *program, Arena *arena);

#endif
