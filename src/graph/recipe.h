/* Weights as recipes: where the bytes of a tensor are, and how to make the wanted tensor of them.
 *
 * A recipe is a concatenation (along one dimension) of strided windows into mapped files or memory,
 * converted to one element type. Transposing, slicing, reshaping, concatenating and converting a
 * recipe gives a recipe; nothing is read until a writer pulls elements. */
#ifndef GRAPH_RECIPE_H
#define GRAPH_RECIPE_H

#include "base/arena.h"
#include "base/block.h"
#include "base/file.h"
#include <ferry/dtype.h>
#include <ferry/tensor.h>
#include <stdint.h>

/* A window: element [i0, i1, ...] is at base + (i0*strides[0] + i1*strides[1] + ...) elements. Where these are
 * in quantized blocks, `base` is the first block, and `start` the element in them that the window begins
 * with. */
typedef struct RecipePart {
    const unsigned char *base;
    const BlockFormat *blocks; /* NULL: plain elements */
    int64_t start;
    const MappedFile *file; /* NULL: plain memory that lives as long as the program */
    ferry_dtype dtype;
    int64_t shape[FERRY_MAX_RANK];
    int64_t strides[FERRY_MAX_RANK];
} RecipePart;

typedef struct Recipe {
    ferry_dtype dtype;
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    uint32_t dim; /* along which the parts follow each other */
    uint32_t part_count;
    const RecipePart *parts; /* all of one dtype */
} Recipe;

/* True when the part's elements follow each other in memory. */
bool recipe_part_is_contiguous(const RecipePart *part, uint32_t rank);

/* All makers return NULL when the arena is exhausted. `offset` is in bytes and checked by the caller
 * against the file's size. */
const Recipe *recipe_file(Arena *arena, const MappedFile *file, uint64_t offset, ferry_dtype dtype,
                          uint32_t rank, const int64_t *shape);
const Recipe *recipe_bytes(Arena *arena, const void *bytes, ferry_dtype dtype, uint32_t rank,
                           const int64_t *shape);

/* The float32 elements of quantized blocks. */
const Recipe *recipe_blocks(Arena *arena, const MappedFile *file, uint64_t offset,
                            const BlockFormat *blocks, uint32_t rank, const int64_t *shape);

/* A strided window: element [i, ..] is i*strides[0] + .. elements behind `base`, which lies in `file`
 * (NULL: in memory). The caller has checked that every element is inside. */
const Recipe *recipe_window(Arena *arena, const MappedFile *file, const void *base,
                            ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            const int64_t *strides);

/* These return NULL also when the result is no recipe: a conversion of a conversion that would lose
 * the rounding in between, a reshape of scattered elements. The caller keeps the operation then. */
const Recipe *recipe_cast(Arena *arena, const Recipe *recipe, ferry_dtype dtype);
const Recipe *recipe_permute(Arena *arena, const Recipe *recipe, const int64_t *dims);
const Recipe *recipe_view(Arena *arena, const Recipe *recipe, uint32_t rank, const int64_t *shape);
const Recipe *recipe_slice(Arena *arena, const Recipe *recipe, uint32_t dim, int64_t start,
                           int64_t end);

/* Without a dimension, at one of its indices; and with one more of size 1 at `dim`. Recipes of several parts
 * have no such form. */
const Recipe *recipe_select(Arena *arena, const Recipe *recipe, uint32_t dim, int64_t index);
const Recipe *recipe_unsqueeze(Arena *arena, const Recipe *recipe, uint32_t dim);

/* The rows (along the first dimension) in `groups` groups of equal and even size: of each group first those
 * with an even number, then those with an odd one. Recipes of several parts have no such form. */
const Recipe *recipe_unzip(Arena *arena, const Recipe *recipe, int64_t groups);

/* Recipes of one part, one shape and one dtype, one behind the other along a new first dimension. */
const Recipe *recipe_stack(Arena *arena, const Recipe *const *items, uint32_t count);

uint64_t recipe_count(const Recipe *recipe);
uint64_t recipe_bytes_size(const Recipe *recipe);

/* Elements [first, first + count) of the row-major result. Safe from several threads at once. */
void recipe_read(const Recipe *recipe, uint64_t first, uint64_t count, void *out);

/* A good number of elements to read at a time: small enough for the cache, and whole rows of tiles where
 * the source is transposed. Never 0. */
uint64_t recipe_chunk(const Recipe *recipe);

/* Let go of the file pages behind elements [first, first + count); see file_forget. Where the source is
 * transposed, all elements share the pages: they go when the whole recipe is forgotten. */
void recipe_forget(const Recipe *recipe, uint64_t first, uint64_t count);

/* True when the result is one contiguous run of a file, unconverted: `*offset` is then its place. */
bool recipe_is_verbatim(const Recipe *recipe, const MappedFile **file, uint64_t *offset);

/* Two recipes that read the same elements in the same way. */
bool recipe_equal(const Recipe *a, const Recipe *b);

#endif
