/* RIFF WAVE: chunks, of which "fmt " says what the samples in "data" are. */
#include "base/error.h"
#include "media/audio.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    FORMAT_PCM = 1,
    FORMAT_FLOAT = 3,
    FORMAT_EXTENSIBLE = 0xfffe,
    MIN_RATE = 1000,
    MAX_RATE = 1000000
};

typedef struct Format {
    unsigned kind, channels, bits;
    size_t rate, frame; /* bytes of one sample of every channel */
} Format;

static uint32_t number(const unsigned char *at, size_t count) {
    uint32_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | at[i];
    return value;
}

void audio_free(Audio *audio) {
    free(audio->samples);
    *audio = (Audio){0};
}

bool audio_is_wav(const unsigned char *bytes, size_t size) {
    return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WAVE", 4) == 0;
}

/* A sample as a number between -1 and 1. */
static double sample(const unsigned char *at, const Format *f) {
    if (f->kind == FORMAT_FLOAT && f->bits == 32) {
        uint32_t bits = number(at, 4);
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    if (f->kind == FORMAT_FLOAT) {
        uint64_t bits = number(at, 4) | (uint64_t)number(at + 4, 4) << 32;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (f->bits == 8) return ((double)at[0] - 128) / 128;
    int64_t value = (int64_t)number(at, f->bits / 8);
    int64_t half = (int64_t)1 << (f->bits - 1);
    return (double)(value >= half ? value - 2 * half : value) / (double)half;
}

static ferry_status read_format(const char *name, const unsigned char *at, size_t size, Format *f,
                                ferry_error *error) {
    if (size < 16)
        return error_set(error, FERRY_BAD_FORMAT, name, "the \"fmt \" chunk is too short");
    *f = (Format){.kind = number(at, 2),
                  .channels = number(at + 2, 2),
                  .rate = number(at + 4, 4),
                  .bits = number(at + 14, 2)};
    if (f->kind == FORMAT_EXTENSIBLE && size >= 26) f->kind = number(at + 24, 2);
    bool pcm = f->kind == FORMAT_PCM && f->bits % 8 == 0 && f->bits >= 8 && f->bits <= 32;
    bool real = f->kind == FORMAT_FLOAT && (f->bits == 32 || f->bits == 64);
    if (!pcm && !real)
        return error_set(
            error, FERRY_UNSUPPORTED, name,
            "the samples have format %u with %u bits; expected PCM (1) of 8 to 32 bits or "
            "floats (3) of 32 or 64",
            f->kind, f->bits);
    if (f->channels == 0 || f->rate < MIN_RATE || f->rate > MAX_RATE)
        return error_set(
            error, FERRY_BAD_FORMAT, name,
            "has %u channels of %zu samples a second; expected at least one, of %d to %d",
            f->channels, f->rate, MIN_RATE, MAX_RATE);
    f->frame = (size_t)f->channels * f->bits / 8;
    return FERRY_OK;
}

static ferry_status read_samples(const char *name, const unsigned char *at, size_t size,
                                 const Format *f, Audio *out, ferry_error *error) {
    out->count = size / f->frame;
    out->rate = f->rate;
    out->samples = malloc((out->count ? out->count : 1) * sizeof *out->samples);
    if (!out->samples) return error_memory(error, name, out->count * sizeof *out->samples);
    for (size_t i = 0; i < out->count; i++, at += f->frame) {
        float sum = 0;
        for (size_t c = 0; c < f->channels; c++) sum += (float)sample(at + c * f->bits / 8, f);
        out->samples[i] = f->channels > 1 ? sum / (float)f->channels : sum;
        if (!isfinite(out->samples[i]))
            return error_set(error, FERRY_BAD_FORMAT, name, "sample %zu is not finite", i);
    }
    return FERRY_OK;
}

ferry_status audio_decode(const char *name, const unsigned char *bytes, size_t size, Audio *out,
                          ferry_error *error) {
    Format format = {0};
    *out = (Audio){0};
    if (!audio_is_wav(bytes, size))
        return error_set(error, FERRY_UNSUPPORTED, name, "is no WAV file");
    for (size_t at = 12; size - at >= 8;) {
        const unsigned char *chunk = bytes + at + 8;
        size_t length = number(bytes + at + 4, 4), left = size - at - 8;
        bool data = memcmp(bytes + at, "data", 4) == 0;
        if (length > left) {
            /* Programs that write as they record leave the length open. */
            if (!data) break;
            length = left;
        }
        if (memcmp(bytes + at, "fmt ", 4) == 0)
            TRY(read_format(name, chunk, length, &format, error));
        if (data && format.frame) {
            ferry_status status = read_samples(name, chunk, length, &format, out, error);
            if (status != FERRY_OK) audio_free(out);
            return status;
        }
        if (length + (length & 1) > left) break;
        at += 8 + length + (length & 1);
    }
    return error_set(error, FERRY_BAD_FORMAT, name, "the WAV file has no %s chunk",
                     format.frame ? "\"data\"" : "\"fmt \" before its \"data\"");
}
