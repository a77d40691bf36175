/* Reshape, as ONNX and OpenVINO have it. */
#ifndef TARGET_RESHAPE_H
#define TARGET_RESHAPE_H

#include "graph/program.h"

/* A constant target for Reshape, when the sizes allow one: 0 copies the input's size at the same
 * place, and one -1 is worked out. */
bool reshape_target(const Value *from, const Value *to, int64_t *target);

#endif
