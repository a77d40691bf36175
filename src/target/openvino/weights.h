/* The weights of a model in its .bin. */
#ifndef TARGET_OPENVINO_WEIGHTS_H
#define TARGET_OPENVINO_WEIGHTS_H

#include "target/openvino/emit.h"

/* Decide what is stored, and where; the pool comes last. False when memory is exhausted. */
bool weights_place(Ir *ir);

/* Stream the weights, then the pool. */
ferry_status weights_write(Ir *ir, OutputFile *bin);

#endif
