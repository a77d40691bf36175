/* Masks of attention, as decompositions need them too. */
#ifndef PASS_ATTENTION_H
#define PASS_ATTENTION_H

#include "graph/build.h"

/* bool [1, 1, queries, keys]: key j is visible to query i when j <= i */
Value *attention_causal_mask(Builder *b, const Sym *queries, const Sym *keys);

/* What to add to the scores for a bool mask: 0 where it is true, else the lowest finite number. */
Value *attention_added_mask(Builder *b, Value *mask, ferry_dtype dtype);

#endif
