#include "base/error.h"
#include "media/audio.h"

#include <soxr.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

ferry_status audio_resample(const char *name, const Audio *audio, size_t rate, Audio *out,
                            ferry_error *error) {
    size_t count;
    *out = (Audio){.rate = rate};
    if (__builtin_mul_overflow(audio->count, rate, &count)) return error_memory(error, name, 0);
    count = (count + audio->rate - 1) / audio->rate;
    out->count = count;
    out->samples =
        calloc(count ? count : 1, sizeof *out->samples); /* what soxr leaves is silence */
    if (!out->samples) return error_memory(error, name, count * sizeof *out->samples);
    if (count == 0) return FERRY_OK;
    if (rate == audio->rate) {
        memcpy(out->samples, audio->samples, count * sizeof *out->samples);
        return FERRY_OK;
    }
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_error_t problem =
        soxr_oneshot((double)audio->rate, (double)rate, 1, audio->samples, audio->count, NULL,
                     out->samples, count, NULL, NULL, &quality, NULL);
    if (!problem) return FERRY_OK;
    audio_free(out);
    return error_set(error, FERRY_UNSUPPORTED, name,
                     "cannot go from %zu to %zu samples a second: %s", audio->rate, rate, problem);
}
