/* The decompositions that the table in decompose.c takes from other files. */
#ifndef PASS_DECOMPOSE_H
#define PASS_DECOMPOSE_H

#include "pass/pass.h"

/* A part of a tensor; of a weight without an operation. */
Value *decompose_select(Builder *b, Value *x, uint32_t dim, int64_t index);

/* decompose_vision.c */
Value *decompose_bicubic(Builder *b, const Node *node);
Value *decompose_bicubic_aa(Builder *b, const Node *node);
Value *decompose_bilinear_aa(Builder *b, const Node *node);
Value *decompose_convolution(Builder *b, const Node *node);
Value *decompose_nearest_exact(Builder *b, const Node *node);

#endif
