/* The signature of a program whose caches became state. */
#ifndef TARGET_OPENVINO_STRUCTURE_H
#define TARGET_OPENVINO_STRUCTURE_H

#include "graph/program.h"

/* caches[i]: port i is a leaf of a cache, an object of a class called "...Cache". Inputs, or outputs. */
void structure_find_caches(Program *program, bool outputs, bool *caches);

/* Take the ports with gone[i] out of the signature. A cache that keeps some leaves becomes a dict of
 * these; the constants of one that loses some go with it. */
ferry_status structure_prune(Program *program, bool outputs, const bool *gone, ferry_error *error);

/* One more input at the end, a keyword of its own. */
ferry_status structure_add_input(Program *program, const char *name, Value *value,
                                 ferry_error *error);

#endif
