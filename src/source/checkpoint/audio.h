/* What the encoders of Whisper and Qwen2-Audio begin with. */
#ifndef SOURCE_AUDIO_H
#define SOURCE_AUDIO_H

#include "source/checkpoint/model.h"

/* The input input_features [batch, bins, 2 * length], log-mel spectra, through two convolutions and with
 * the positions of the present part: [batch, length, width]. Sets m->batch. */
Value *audio_embed(Model *m, int64_t bins, int64_t length, int64_t width);

#endif
