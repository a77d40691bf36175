/* Whisper's features: the power of each window in bands of the mel scale, as logarithms within 8 of the
 * largest, scaled. Windows are centered on multiples of the hop; beyond its ends the sound is mirrored. */
#include "base/error.h"
#include "media/audio.h"

#include <math.h>
#include <stdlib.h>

/* Slaney's mel scale: linear to 1000 Hz, then logarithmic. */
static double to_mel(double hertz) {
    return hertz >= 1000 ? 15 + log(hertz / 1000) * (27 / log(6.4)) : 3 * hertz / 200;
}

static double to_hertz(double mel) {
    return mel >= 15 ? 1000 * exp(log(6.4) / 27 * (mel - 15)) : 200 * mel / 3;
}

/* Triangles over the frequencies of the transform, each of the same energy; bins by band. */
static void make_bands(const MelSettings *s, float *bands, double *edges) {
    size_t bins = s->window / 2 + 1;
    double last = to_mel(8000), nyquist = (double)(s->rate / 2);
    for (size_t i = 0; i < s->bands + 2; i++)
        edges[i] = to_hertz(last * (double)i / (double)(s->bands + 1));
    for (size_t band = 0; band < s->bands; band++) {
        double low = edges[band], middle = edges[band + 1], high = edges[band + 2];
        for (size_t bin = 0; bin < bins; bin++) {
            double at = nyquist * (double)bin / (double)(bins - 1);
            double weight = fmin((at - low) / (middle - low), (high - at) / (high - middle));
            bands[band * bins + bin] = (float)(fmax(weight, 0) * 2 / (high - low));
        }
    }
}

typedef struct Work {
    float *bands;
    double *edges, *window, *power;
    Complex *values, *scratch, *roots;
} Work;

static bool work_make(Work *w, const MelSettings *s) {
    size_t bins = s->window / 2 + 1;
    const double pi = 3.14159265358979323846;
    w->bands = calloc(s->bands * bins, sizeof *w->bands);
    w->edges = calloc(s->bands + 2, sizeof *w->edges);
    w->window = calloc(s->window, sizeof *w->window);
    w->power = calloc(bins, sizeof *w->power);
    w->values = calloc(s->window, sizeof *w->values);
    w->scratch = calloc(s->window * 2, sizeof *w->scratch);
    w->roots = calloc(s->window, sizeof *w->roots);
    if (!w->bands || !w->edges || !w->window || !w->power || !w->values || !w->scratch || !w->roots)
        return false;
    make_bands(s, w->bands, w->edges);
    fft_roots(w->roots, s->window);
    for (size_t i = 0; i < s->window; i++)
        w->window[i] = 0.5 - 0.5 * cos(2 * pi * (double)i / (double)s->window);
    return true;
}

static void work_free(Work *w) {
    free(w->bands);
    free(w->edges);
    free(w->window);
    free(w->power);
    free(w->values);
    free(w->scratch);
    free(w->roots);
}

/* The sample at a place that may lie beyond the ends. */
static float mirrored(const float *samples, size_t count, int64_t at) {
    if (at < 0) at = -at;
    if (at >= (int64_t)count) at = 2 * ((int64_t)count - 1) - at;
    return samples[at];
}

/* The power of a window at each frequency. */
static void take_power(Work *w, const float *samples, size_t count, const MelSettings *s,
                       size_t frame) {
    int64_t start = (int64_t)(frame * s->hop) - (int64_t)(s->window / 2);
    for (size_t i = 0; i < s->window; i++)
        w->values[i] = (Complex){mirrored(samples, count, start + (int64_t)i) * w->window[i], 0};
    fft(w->values, w->scratch, w->roots, s->window);
    for (size_t bin = 0; bin <= s->window / 2; bin++) {
        Complex v = w->values[bin];
        w->power[bin] = v.re * v.re + v.im * v.im;
    }
}

ferry_status mel_compute(const char *name, const float *samples, size_t count,
                         const MelSettings *settings, float *out, ferry_error *error) {
    Work work = {0};
    size_t frames = count / settings->hop, bins = settings->window / 2 + 1;
    float largest = -INFINITY;
    if (!work_make(&work, settings)) {
        work_free(&work);
        return error_memory(error, name, 0);
    }
    for (size_t frame = 0; frame < frames; frame++) {
        take_power(&work, samples, count, settings, frame);
        for (size_t band = 0; band < settings->bands; band++) {
            double sum = 0;
            for (size_t bin = 0; bin < bins; bin++)
                sum += (double)work.bands[band * bins + bin] * work.power[bin];
            float value = (float)log10(fmax(sum, 1e-10));
            out[band * frames + frame] = value;
            if (value > largest) largest = value;
        }
    }
    for (size_t i = 0; i < frames * settings->bands; i++)
        out[i] = (fmaxf(out[i], largest - 8) + 4) / 4;
    work_free(&work);
    return FERRY_OK;
}
