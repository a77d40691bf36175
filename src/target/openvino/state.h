/* State: caches that the model keeps between its runs instead of taking and giving them. */
#ifndef TARGET_OPENVINO_STATE_H
#define TARGET_OPENVINO_STATE_H

#include "target/openvino/emit.h"

/* Make states of the caches that a program takes and gives, and add the input "beam_idx". A program
 * without such caches stays as it is. */
ferry_status state_keep(Program *program, ferry_error *error);

/* The layers that read the states, and those that leave the new ones. */
void state_read(Ir *ir);
void state_assign(Ir *ir);

#endif
