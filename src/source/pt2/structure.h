/* Nested structures of a program's arguments and results, from treespec strings: the Tree, and the path
 * of every leaf as transformers.exporters names it. */
#ifndef SOURCE_PT2_STRUCTURE_H
#define SOURCE_PT2_STRUCTURE_H

#include "base/vec.h"
#include "graph/tree.h"
#include <ferry/status.h>

typedef VEC(const char *) Paths;

/* Parse "[1, {...}]". `paths` receives the path of each leaf in order: dict and ModelOutput keys, list
 * and tuple indices, attributes of caches ("layers.0.keys"), joined by dots; `names` (may be NULL) are
 * the keywords of positional arguments. For the specification of arguments ((...), {...}) the outer
 * levels leave no trace. A single result is called "output". */
ferry_status structure_arguments(Arena *arena, const char *text, const char *const *names,
                                 uint32_t name_count, const Tree **tree, Paths *paths,
                                 ferry_error *error);
ferry_status structure_results(Arena *arena, const char *text, const Tree **tree, Paths *paths,
                               ferry_error *error);

#endif
