/* Copying a matrix out of strided memory: transposing it, most of the time. */
#ifndef BASE_STRIDED_H
#define BASE_STRIDED_H

#include <stddef.h>

/* The element at source + i*row_step + j*column_step goes to out + i*pitch + j*size, for all i < rows
 * and j < columns; steps and pitch are in bytes, an element has 1, 2, 4 or 8. Fast when a column is
 * contiguous (row_step == size) and the matrix small enough to stay in the cache, some 64 x 64. */
void strided_copy(const unsigned char *source, ptrdiff_t row_step, ptrdiff_t column_step,
                  size_t size, size_t rows, size_t columns, unsigned char *out, size_t pitch);

#endif
