/* WhisperFeatureExtractor: sounds of one length, as mel spectrograms. */
#include "base/error.h"
#include "media/processor.h"

#include <stdlib.h>
#include <string.h>

void audio_settings_read(Config *config, AudioSettings *s) {
    s->mel.bands = config_count(config, "feature_size", 1, 1024);
    s->mel.rate = config_count(config, "sampling_rate", 8000, 1000000);
    s->mel.hop = config_count(config, "hop_length", 1, 1 << 16);
    s->mel.window = config_count(config, "n_fft", 4, 1 << 16);
    size_t seconds = config_count(config, "chunk_length", 1, 3600);
    s->samples = seconds * s->mel.rate;
    s->padding_value = config_real(config, "padding_value");
    s->return_attention_mask = config_flag(config, "return_attention_mask");
    s->mask_name = "attention_mask";
    if (config_real(config, "dither") != 0)
        config_fail(config, FERRY_UNSUPPORTED, "\"dither\" adds noise; set it to 0");
    if (s->mel.window > s->samples || s->mel.hop > s->samples)
        config_fail(config, FERRY_BAD_FORMAT,
                    "\"n_fft\" and \"hop_length\" must fit into \"chunk_length\"");
}

/* Sounds are cut off, or filled up; as in Transformers, what is longer is lost. */
static ferry_status write_one(const AudioSettings *s, const char *name, const Audio *sound,
                              float *features, int32_t *mask, Item *item, ferry_error *error) {
    size_t count = sound->count < s->samples ? sound->count : s->samples,
           frames = s->samples / s->mel.hop;
    float *samples = malloc(s->samples * sizeof *samples);
    if (!samples) return error_memory(error, name, s->samples * sizeof *samples);
    if (count) memcpy(samples, sound->samples, count * sizeof *samples);
    for (size_t i = count; i < s->samples; i++) samples[i] = (float)s->padding_value;
    ferry_status status = mel_compute(name, samples, s->samples, &s->mel, features, error);
    for (size_t i = 0; i < frames; i++) {
        bool inside = i * s->mel.hop < count;
        item->frames += inside;
        if (mask) mask[i] = inside;
    }
    free(samples);
    return status;
}

ferry_status process_audio(const AudioSettings *s, const AudioBatch *batch, ferry_tensors *out,
                           ferry_error *error) {
    ferry_tensor *features, *mask = NULL;
    size_t frames = s->samples / s->mel.hop;
    int64_t count = (int64_t)batch->count,
            shape[] = {count, (int64_t)s->mel.bands, (int64_t)frames};
    int64_t mask_shape[] = {count, (int64_t)frames};
    TRY(ferry_tensors_add(out, "input_features", FERRY_F32, 3, shape, &features, error));
    if (s->return_attention_mask)
        TRY(ferry_tensors_add(out, s->mask_name, FERRY_I32, 2, mask_shape, &mask, error));
    for (size_t i = 0; i < batch->count; i++)
        TRY(write_one(s, batch->names[i], &batch->sounds[i],
                      (float *)features->data + i * s->mel.bands * frames,
                      mask ? (int32_t *)mask->data + i * frames : NULL, batch->items[i], error));
    return FERRY_OK;
}
