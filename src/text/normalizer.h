/* Normalizers: what is done to text before it is cut. */
#ifndef TEXT_NORMALIZER_H
#define TEXT_NORMALIZER_H

#include "text/settings.h"
#include "text/work.h"

typedef struct Normalizer Normalizer;

/* NULL for null, and after a failure. */
Normalizer *normalizer_read(Settings *settings, const Doc *doc);
void normalizer_free(Normalizer *normalizer);

/* Normalize bytes [begin, end) of `from`, whose original begins at `origin`. The result is a whole
 * line of the work's spare ones, valid until the next call. */
const Line *normalizer_run(const Normalizer *normalizer, Work *work, const Line *from, size_t begin,
                           size_t end, uint32_t origin);

/* The 256 characters that stand for bytes in byte-level tokens. */
extern const uint16_t byte_level_chars[256];

/* The byte that a character stands for, or -1. */
int byte_level_byte(uint32_t c);

/* Append each byte of [begin, end) as its character. */
void byte_level_encode(const Line *from, size_t begin, size_t end, Line *out);

#endif
