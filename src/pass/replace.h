/* Replacing nodes one after another, for passes that rewrite. The uses of what was replaced are
 * redirected at the end, all at once. */
#ifndef PASS_REPLACE_H
#define PASS_REPLACE_H

#include "base/vec.h"
#include "graph/build.h"

/* Replacement values by value id; grows with the program. */
typedef VEC(Value *) Replacements;

/* Put `value`, which must have the type of the node's only output, in the node's place and remove the
 * node. `what` made it, for the message when the type differs. */
ferry_status replace_node(Program *program, Replacements *map, Node *node, Value *value,
                          const char *what, ferry_error *error);

/* Redirect the uses and sweep. Frees the map; `status` is what happened so far. */
ferry_status replace_finish(Program *program, Replacements *map, ferry_status status,
                            ferry_error *error);

#endif
