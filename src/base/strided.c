/* Blocks of as many elements as a vector has are transposed in registers: interleaving the first half of
 * the vectors with the second half, log2(lanes) times, turns columns into rows. */
#include "base/strided.h"

#include <stdint.h>
#include <string.h>

enum { VECTOR = 16 };

typedef void (*Block)(const unsigned char *source, ptrdiff_t column_step, unsigned char *out,
                      size_t pitch);

/* GCC has it from version 12 on, Clang always. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE
#endif
#endif

#ifdef HAVE_SHUFFLE
#define BLOCK(type, lanes, ...)                                                                    \
    static void block_##type(const unsigned char *source, ptrdiff_t column_step,                   \
                             unsigned char *out, size_t pitch) {                                   \
        typedef type Vector __attribute__((vector_size(VECTOR)));                                  \
        Vector from[lanes], to[lanes];                                                             \
        for (int j = 0; j < lanes; j++) memcpy(&from[j], source + j * column_step, VECTOR);        \
        for (int round = 1; round < lanes; round *= 2) {                                           \
            for (int j = 0; j < lanes; j++) {                                                      \
                Vector a = from[j / 2], b = from[j / 2 + lanes / 2];                               \
                to[j] = j % 2 ? HIGH(a, b, __VA_ARGS__) : LOW(a, b, __VA_ARGS__);                  \
            }                                                                                      \
            memcpy(from, to, sizeof from);                                                         \
        }                                                                                          \
        for (int i = 0; i < lanes; i++) memcpy(out + (size_t)i * pitch, &from[i], VECTOR);         \
    }
