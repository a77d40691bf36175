/* Any bytes as a WAV file: refused with a message, or a sound, which is resampled. */
#include "media/audio.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    Audio audio, other;
    if (audio_decode("sound", bytes, size, &audio, &error) != FERRY_OK) {
        expect(error.message[0] && !audio.samples);
        return 0;
    }
    expect(audio.count <= size);
    if (audio_resample("sound", &audio, 16000, &other, &error) == FERRY_OK)
        audio_free(&other);
    else
        expect(error.message[0]);
    audio_free(&audio);
    return 0;
}
