/* Passes: Program -> Program. Each leaves a valid program; pass_run checks that in debug builds. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "graph/build.h"

/* Does the target take this node as it is? */
typedef bool (*PassAccepts)(const void *context, const Node *node);

/* Replace every node that `accepts` refuses by its decomposition, again and again until all are
 * accepted. UNSUPPORTED names the operation, its place in the model and the target when there is no
 * decomposition. */
ferry_status pass_legalize(Program *program, const char *target, PassAccepts accepts,
                           const void *context, ferry_error *error);

/* The decomposition of `node`, built before it; NULL when the operation has none. */
typedef Value *(*Decomposition)(Builder *b, const Node *node);
Decomposition decompose_find(Op op);

/* Merge nodes that compute the same thing. */
ferry_status pass_merge(Program *program, ferry_error *error);

/* Compose conversions and transpositions of weights into their recipes, where the weight is not
 * also needed as it is; the weight keeps its name. */
ferry_status pass_fold_weights(Program *program, ferry_error *error);

/* Computes the outputs of a node on constant arguments; see run/reference.h. */
typedef ferry_status (*PassEvaluate)(Program *program, const Node *node, Arena *arena,
                                     void **results, ferry_error *error);

/* Compute nodes whose arguments are constants of the program (not its parameters, nor its state), up to
 * a mebibyte of result each. */
ferry_status pass_fold_constants(Program *program, PassEvaluate evaluate, ferry_error *error);

#endif
