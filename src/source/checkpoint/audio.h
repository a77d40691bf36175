/* Whisper's encoder of audio, which Qwen2-Audio has too. */
#ifndef SOURCE_AUDIO_H
#define SOURCE_AUDIO_H

#include "source/checkpoint/prenorm.h"

/* The encoder of the present part on the input input_features [batch, mels, frames]: the hidden states
 * [batch, positions, size] after the last norm. When `pools`, pairs of them are averaged before it, and
 * attention_mask [batch, 1, positions, positions] tells which are silence that was added. */
Value *audio_encode(Model *m, const char *scope, bool pools);

#endif
