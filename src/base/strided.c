/* Where a column is contiguous, square blocks of as many elements as a vector has are transposed in
 * registers: interleaving the first half of the columns with the second half, log2(lanes) times, turns
 * them into rows. What is left over, and every other matrix, goes element by element. */
#include "base/strided.h"

#include <stdint.h>
#include <string.h>

enum { VECTOR = 16 };

typedef void (*Block)(const unsigned char *source, ptrdiff_t column_step, unsigned char *out,
                      size_t pitch);

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) /* Clang, GCC 12 */
#define HAS_SHUFFLE
#endif
#endif

#ifdef HAS_SHUFFLE
#define LOW1(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH1(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW2(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH2(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW4(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW8(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define HIGH8(a, b) __builtin_shufflevector(a, b, 1, 3)

#define BLOCK(size, type)                                                                          \
    static void block##size(const unsigned char *source, ptrdiff_t column_step,                    \
                            unsigned char *out, size_t pitch) {                                    \
        enum { LANES = VECTOR / size };                                                            \
        typedef type Vector __attribute__((vector_size(VECTOR)));                                  \
        Vector now[LANES], next[LANES];                                                            \
        for (int j = 0; j < LANES; j++) memcpy(&now[j], source + j * column_step, VECTOR);         \
        for (int round = 1; round < LANES; round *= 2) {                                           \
            for (int j = 0; j < LANES / 2; j++) {                                                  \
                next[2 * j] = LOW##size(now[j], now[j + LANES / 2]);                               \
                next[2 * j + 1] = HIGH##size(now[j], now[j + LANES / 2]);                          \
            }                                                                                      \
            memcpy(now, next, sizeof now);                                                         \
        }                                                                                          \
        for (int i = 0; i < LANES; i++) memcpy(out + (size_t)i * pitch, &now[i], VECTOR);          \
    }

BLOCK(1, uint8_t)
BLOCK(2, uint16_t)
BLOCK(4, uint32_t)
BLOCK(8, uint64_t)

static Block block_for(size_t size) {
    return size == 1 ? block1 : size == 2 ? block2 : size == 4 ? block4 : block8;
}
#else
static Block block_for(size_t size) {
    (void)size;
    return NULL;
}
#endif

static void copy_elements(const unsigned char *source, ptrdiff_t row_step, ptrdiff_t column_step,
                          size_t size, size_t rows, size_t columns, unsigned char *out,
                          size_t pitch) {
#define COPY(bytes)                                                                                \
    for (size_t j = 0; j < columns; j++) {                                                         \
        const unsigned char *from = source + (ptrdiff_t)j * column_step;                           \
        unsigned char *to = out + j * (bytes);                                                     \
        for (size_t i = 0; i < rows; i++, from += row_step, to += pitch) memcpy(to, from, bytes);  \
    }
    switch (size) {
    case 1: COPY(1) break;
    case 2: COPY(2) break;
    case 4: COPY(4) break;
    default: COPY(8) break;
    }
}

void strided_copy(const unsigned char *source, ptrdiff_t row_step, ptrdiff_t column_step,
                  size_t size, size_t rows, size_t columns, unsigned char *out, size_t pitch) {
    Block block = row_step == (ptrdiff_t)size ? block_for(size) : NULL;
    size_t lanes = VECTOR / size;
    size_t height = block ? rows / lanes * lanes : 0, width = columns / lanes * lanes;
    for (size_t i = 0; i < height; i += lanes) {
        for (size_t j = 0; j < width; j += lanes) {
            block(source + i * size + (ptrdiff_t)j * column_step, column_step,
                  out + i * pitch + j * size, pitch);
        }
    }
    if (width < columns) {
        copy_elements(source + (ptrdiff_t)width * column_step, row_step, column_step, size, height,
                      columns - width, out + width * size, pitch);
    }
    copy_elements(source + (ptrdiff_t)height * row_step, row_step, column_step, size, rows - height,
                  columns, out + height * pitch, pitch);
}
