/* A Fourier transform of any length: split by its smallest factor, over and over. */
#include "media/audio.h"

#include <math.h>

void fft_roots(Complex *roots, size_t n) {
    const double pi = 3.14159265358979323846;
    for (size_t k = 0; k < n; k++) {
        double angle = -2 * pi * (double)k / (double)n;
        roots[k] = (Complex){cos(angle), sin(angle)};
    }
}

static size_t smallest_factor(size_t n) {
    for (size_t f = 2; f * f <= n; f++)
        if (n % f == 0) return f;
    return n;
}

/* Of every `stride`-th value of `from`; `stride` roots further is the next n-th root. */
static void transform(const Complex *from, size_t stride, Complex *to, Complex *scratch,
                      const Complex *roots, size_t n) {
    if (n == 1) {
        *to = *from;
        return;
    }
    size_t f = smallest_factor(n), m = n / f;
    for (size_t r = 0; r < f; r++)
        transform(from + r * stride, stride * f, scratch + r * m, to + r * m, roots, m);
    for (size_t k = 0, j = 0; k < n; k++, j = j + 1 < m ? j + 1 : 0) {
        Complex sum = {0, 0};
        for (size_t r = 0, turn = 0; r < f; r++) {
            Complex part = scratch[r * m + j], root = roots[turn * stride];
            sum.re += part.re * root.re - part.im * root.im;
            sum.im += part.re * root.im + part.im * root.re;
            turn = turn + k < n ? turn + k : turn + k - n;
        }
        to[k] = sum;
    }
}

void fft(Complex *values, Complex *scratch, const Complex *roots, size_t n) {
    Complex *input = scratch + n;
    for (size_t i = 0; i < n; i++) input[i] = values[i];
    transform(input, 1, values, scratch, roots, n);
}
