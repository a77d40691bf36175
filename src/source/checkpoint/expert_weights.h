/* The weights of experts, whatever the layout of the file. */
#ifndef SOURCE_EXPERT_WEIGHTS_H
#define SOURCE_EXPERT_WEIGHTS_H

#include "source/checkpoint/decoder.h"

typedef struct ExpertMatrices {
    Value *weight; /* [experts, in, out] */
    Value *bias;   /* [experts, out], or NULL */
} ExpertMatrices;

typedef struct ExpertWeights {
    ExpertMatrices gate, up, down;
} ExpertWeights;

/* Of the module `name` ("layers.0.mlp.experts"). */
ExpertWeights expert_weights(Decoder *d, const char *name);

#endif
