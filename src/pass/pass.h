/* Passes: Program -> Program. Each leaves a valid program; pass_run checks that in debug builds. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "graph/registry.h"

/* Does the target take this node as it is? */
typedef bool (*PassAccepts)(const void *context, const Node *node);

/* Replace every node that `accepts` refuses by its decomposition, again and again until all are
 * accepted. UNSUPPORTED names the operation, its place in the model and the target when there is no
 * decomposition. */
ferry_status pass_legalize(Program *program, const Registry *registry, const char *target,
                           PassAccepts accepts, const void *context, ferry_error *error);

/* Register the built-in decompositions. */
void decompositions_register(Registry *registry);

/* Run the fixes that are registered for the target: node fixes first, on every node with one output
 * that the program has at the start, until one replaces the node; then program fixes. */
ferry_status pass_fix(Program *program, const Registry *registry, const char *target,
                      ferry_error *error);

/* Give attentions, and products of heads, the keys and values that groups of heads share, where the
 * program repeats them for each head. */
ferry_status pass_share_heads(Program *program, ferry_error *error);

/* Give every attention as many key and value heads as it has query heads, and a mask that is added to the
 * scores, if any. */
ferry_status pass_plain_attention(Program *program, ferry_error *error);

/* Decompose every attention for targets whose products broadcast over heads that share keys, and that
 * multiply where they cannot choose: rows that a bool mask hides entirely are multiplied with 0. */
ferry_status pass_broadcast_attention(Program *program, ferry_error *error);

/* Merge nodes that compute the same thing. */
ferry_status pass_merge(Program *program, ferry_error *error);

/* Compose conversions and transpositions of weights into their recipes, where the weight is not
 * also needed as it is; the weight keeps its name. */
ferry_status pass_fold_weights(Program *program, ferry_error *error);

/* Computes the outputs of a node on constant arguments; see run/reference.h. */
typedef ferry_status (*PassEvaluate)(Program *program, const Node *node, Arena *arena,
                                     void **results, ferry_error *error);

/* Compute nodes whose arguments are constants of the program (not its parameters, nor what is written or persistent), up to
 * a mebibyte of result each. */
ferry_status pass_fold_constants(Program *program, PassEvaluate evaluate, ferry_error *error);

#endif
