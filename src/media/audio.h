/* Sounds: one channel of samples. */
#ifndef MEDIA_AUDIO_H
#define MEDIA_AUDIO_H

#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Audio {
    size_t count, rate;
    float *samples; /* owned */
} Audio;

void audio_free(Audio *audio);

/* Is this how a WAV file begins? */
bool audio_is_wav(const unsigned char *bytes, size_t size);

/* Decode a WAV file: PCM of 8 to 32 bits, floats of 32 and 64. Channels are averaged. */
ferry_status audio_decode(const char *name, const unsigned char *bytes, size_t size, Audio *out,
                          ferry_error *error);

/* At another rate, by libsoxr in its high quality, as Transformers does it. */
ferry_status audio_resample(const char *name, const Audio *audio, size_t rate, Audio *out,
                            ferry_error *error);

/* ---- spectra ---- */

/* A logarithmic mel spectrogram as Whisper takes it. */
typedef struct MelSettings {
    size_t rate, window, hop, bands; /* samples of a window and between windows */
} MelSettings;

/* Of `count` samples, which is a whole number of hops: `bands` rows of count / hop values. */
ferry_status mel_compute(const char *name, const float *samples, size_t count,
                         const MelSettings *settings, float *out, ferry_error *error);

/* The Fourier transform of `n` numbers, in place. `scratch` holds 2 n complex numbers, `roots` the n-th roots
 * of unity, exp(-2 pi i k / n). */
typedef struct Complex {
    double re, im;
} Complex;

void fft(Complex *values, Complex *scratch, const Complex *roots, size_t n);
void fft_roots(Complex *roots, size_t n);

#endif
