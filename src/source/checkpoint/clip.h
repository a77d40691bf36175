/* The towers of CLIP and SigLIP, by themselves and inside multimodal models. */
#ifndef SOURCE_CLIP_H
#define SOURCE_CLIP_H

#include "source/checkpoint/vision.h"

typedef enum ClipKind { CLIP, SIGLIP, NAVIT } ClipKind; /* NAVIT: SigLIP for images of any size */

/* What a tower makes of its input. */
typedef struct ClipOutput {
    Value *hidden; /* last_hidden_state */
    Value *pooled; /* pooler_output; NULL: the configuration asks for none */
} ClipOutput;

/* The vision tower's configuration and names, read from the present part. */
Vision clip_vision_config(Model *m, ClipKind kind, const char *scope);

/* It on pixel_values; vision->states are its hidden_states. */
ClipOutput clip_vision(Vision *vision, ClipKind kind, Value *pixels);

/* The text tower of the present part, on the inputs of the model. */
ClipOutput clip_text(Model *m, ClipKind kind, const char *scope);

#endif
