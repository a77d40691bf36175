/* Quantized blocks, as ggml has them in GGUF files: so many elements of a row share a scale, and what
 * else the format needs. Rows are whole blocks. Decoding gives float32, bit for bit what ggml gives. */
#ifndef BASE_BLOCK_H
#define BASE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { BLOCK_GROUP = 32 }; /* elements that are decoded at once; blocks are 1 or 8 groups */

typedef struct BlockFormat {
    const char *name;  /* "Q4_K" */
    uint32_t elements; /* of a block */
    uint32_t bytes;
    /* Groups [first, first + count), counted from the first block on. */
    void (*decode)(const unsigned char *blocks, uint64_t first, uint64_t count, float *out);
} BlockFormat;

/* The format with this number in ggml; NULL when it has none that can be decoded. */
const BlockFormat *block_format(uint32_t ggml_type);

/* Elements [first, first + count) of the row of blocks that begins at `blocks`. */
void block_decode(const BlockFormat *format, const unsigned char *blocks, uint64_t first,
                  uint64_t count, float *out);

#endif
