#include "graph/recipe.h"
#include "base/dtype.h"

#include <string.h>

static const Recipe *make(Arena *arena, Recipe recipe, const RecipePart *parts) {
    Recipe *result = ARENA_NEW(arena, Recipe);
    recipe.parts = arena_copy(arena, parts, recipe.part_count * sizeof *parts);
    if (!result || !recipe.parts) return NULL;
    *result = recipe;
    return result;
}

static void row_major(uint32_t rank, const int64_t *shape, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        stride *= shape[d];
    }
}

const Recipe *recipe_window(Arena *arena, const MappedFile *file, const void *base,
                            ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            const int64_t *strides) {
    Recipe recipe = {.dtype = dtype, .rank = rank, .part_count = 1};
    RecipePart part = {.base = base, .file = file, .dtype = dtype};
    if (rank) {
        memcpy(recipe.shape, shape, rank * sizeof *shape);
        memcpy(part.shape, shape, rank * sizeof *shape);
        memcpy(part.strides, strides, rank * sizeof *strides);
    }
    return make(arena, recipe, &part);
}

static const Recipe *make_source(Arena *arena, const MappedFile *file, const void *base,
                                 ferry_dtype dtype, uint32_t rank, const int64_t *shape) {
    int64_t strides[FERRY_MAX_RANK];
    row_major(rank, shape, strides);
    return recipe_window(arena, file, base, dtype, rank, shape, strides);
}

const Recipe *recipe_file(Arena *arena, const MappedFile *file, uint64_t offset, ferry_dtype dtype,
                          uint32_t rank, const int64_t *shape) {
    return make_source(arena, file, file->bytes + offset, dtype, rank, shape);
}

const Recipe *recipe_blocks(Arena *arena, const MappedFile *file, uint64_t offset,
                            const BlockFormat *blocks, uint32_t rank, const int64_t *shape) {
    const Recipe *plain = make_source(arena, file, file->bytes + offset, FERRY_F32, rank, shape);
    if (!plain) return NULL;
    RecipePart part = plain->parts[0];
    part.blocks = blocks;
    return make(arena, *plain, &part);
}

const Recipe *recipe_bytes(Arena *arena, const void *bytes, ferry_dtype dtype, uint32_t rank,
                           const int64_t *shape) {
    return make_source(arena, NULL, bytes, dtype, rank, shape);
}

/* True when every value of `narrow` is a value of `wide`. */
static bool represents(ferry_dtype wide, ferry_dtype narrow) {
    if (wide == narrow) return true;
    if (wide == FERRY_F64) return narrow != FERRY_I64;
    if (wide == FERRY_F32) return ferry_dtype_is_float(narrow) && narrow != FERRY_F64;
    if (wide == FERRY_I64) return !ferry_dtype_is_float(narrow);
    return narrow == FERRY_BOOL;
}

const Recipe *recipe_cast(Arena *arena, const Recipe *recipe, ferry_dtype dtype) {
    if (!represents(recipe->dtype, recipe->parts[0].dtype)) return NULL;
    Recipe result = *recipe;
    result.dtype = dtype;
    return make(arena, result, recipe->parts);
}

const Recipe *recipe_permute(Arena *arena, const Recipe *recipe, const int64_t *dims) {
    Recipe result = *recipe;
    RecipePart *parts = arena_copy(arena, recipe->parts, recipe->part_count * sizeof *parts);
    if (!parts) return NULL;
    for (uint32_t d = 0; d < recipe->rank; d++) {
        result.shape[d] = recipe->shape[dims[d]];
        if (dims[d] == recipe->dim) result.dim = d;
        for (uint32_t i = 0; i < recipe->part_count; i++) {
            parts[i].shape[d] = recipe->parts[i].shape[dims[d]];
            parts[i].strides[d] = recipe->parts[i].strides[dims[d]];
        }
    }
    result.parts = parts;
    return make(arena, result, parts);
}

/* Let the window begin so many elements later. */
static void advance(RecipePart *part, int64_t elements) {
    if (part->blocks)
        part->start += elements;
    else
        part->base += elements * (int64_t)ferry_dtype_size(part->dtype);
}

bool recipe_part_is_contiguous(const RecipePart *part, uint32_t rank) {
    int64_t stride = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (part->shape[d] == 0) return true;
    }
    for (uint32_t d = rank; d-- > 0;) {
        if (part->shape[d] != 1 && part->strides[d] != stride) return false;
        stride *= part->shape[d];
    }
    return true;
}

const Recipe *recipe_view(Arena *arena, const Recipe *recipe, uint32_t rank, const int64_t *shape) {
    if (recipe->part_count != 1 || !recipe_part_is_contiguous(&recipe->parts[0], recipe->rank))
        return NULL;
    Recipe result = *recipe;
    RecipePart part = recipe->parts[0];
    result.rank = rank;
    result.dim = 0;
    for (uint32_t d = 0; d < rank; d++) result.shape[d] = part.shape[d] = shape[d];
    row_major(rank, part.shape, part.strides);
    return make(arena, result, &part);
}

/* The elements [start, end) along `dim` of a part that begins at `position`; false when it has none. */
static bool slice_part(const RecipePart *part, uint32_t dim, int64_t start, int64_t end,
                       int64_t position, RecipePart *out) {
    int64_t length = part->shape[dim];
    int64_t from = start > position ? start - position : 0;
    int64_t to = end - position < length ? end - position : length;
    if (to <= from) return false;
    *out = *part;
    advance(out, from * part->strides[dim]);
    out->shape[dim] = to - from;
    return true;
}

const Recipe *recipe_slice(Arena *arena, const Recipe *recipe, uint32_t dim, int64_t start,
                           int64_t end) {
    bool along = dim == recipe->dim;
    int64_t position = 0;
    Recipe result = *recipe;
    result.shape[dim] = end - start;
    result.part_count = 0;
    /* No more parts than elements: one expert of many is cheap to take. */
    uint64_t most =
        along && end - start < recipe->part_count ? (uint64_t)(end - start) : recipe->part_count;
    RecipePart *parts = ARENA_ARRAY(arena, RecipePart, most ? most : 1);
    if (!parts) return NULL;
    for (uint32_t i = 0; i < recipe->part_count && position < end; i++) {
        RecipePart part;
        bool some = slice_part(&recipe->parts[i], dim, start, end, position, &part);
        if (some) parts[result.part_count++] = part;
        if (along) position += recipe->parts[i].shape[dim];
    }
    if (result.part_count == 0) { /* one empty part, so that there is a first part to ask */
        parts[0] = recipe->parts[0];
        memcpy(parts[0].shape, result.shape, recipe->rank * sizeof *result.shape);
        result.part_count = 1;
    }
    return make(arena, result, parts);
}

/* A recipe of one part with these sizes and strides. */
static const Recipe *make_part(Arena *arena, const Recipe *recipe, const RecipePart *part,
                               uint32_t rank) {
    Recipe result = *recipe;
    result.rank = rank;
    result.dim = 0;
    memcpy(result.shape, part->shape, rank * sizeof *part->shape);
    return make(arena, result, part);
}

const Recipe *recipe_select(Arena *arena, const Recipe *recipe, uint32_t dim, int64_t index) {
    RecipePart part = recipe->parts[0];
    if (recipe->part_count != 1) return NULL;
    advance(&part, index * part.strides[dim]);
    for (uint32_t d = dim; d + 1 < recipe->rank; d++) {
        part.shape[d] = part.shape[d + 1];
        part.strides[d] = part.strides[d + 1];
    }
    return make_part(arena, recipe, &part, recipe->rank - 1);
}

const Recipe *recipe_unsqueeze(Arena *arena, const Recipe *recipe, uint32_t dim) {
    RecipePart part = recipe->parts[0];
    uint32_t rank = recipe->rank;
    if (recipe->part_count != 1 || rank == FERRY_MAX_RANK) return NULL;
    for (uint32_t d = rank; d > dim; d--) {
        part.shape[d] = part.shape[d - 1];
        part.strides[d] = part.strides[d - 1];
    }
    part.strides[dim] = dim < rank ? part.shape[dim + 1] * part.strides[dim + 1] : 1;
    part.shape[dim] = 1;
    return make_part(arena, recipe, &part, rank + 1);
}

const Recipe *recipe_unzip(Arena *arena, const Recipe *recipe, int64_t groups) {
    if (recipe->part_count != 1) return NULL;
    Recipe result = *recipe;
    RecipePart *parts = ARENA_ARRAY(arena, RecipePart, 2 * (size_t)groups);
    if (!parts) return NULL;
    int64_t rows = recipe->shape[0] / groups, step = recipe->parts[0].strides[0];
    for (int64_t i = 0; i < 2 * groups; i++) {
        parts[i] = recipe->parts[0];
        parts[i].shape[0] = rows / 2;
        parts[i].strides[0] = 2 * step;
        advance(&parts[i], (i / 2 * rows + i % 2) * step);
    }
    result.dim = 0;
    result.part_count = 2 * (uint32_t)groups;
    return make(arena, result, parts);
}

const Recipe *recipe_stack(Arena *arena, const Recipe *const *items, uint32_t count) {
    RecipePart *parts = ARENA_ARRAY(arena, RecipePart, count);
    Recipe result = {0};
    if (!parts || count == 0) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const Recipe *item = items[i] ? recipe_unsqueeze(arena, items[i], 0) : NULL;
        if (!item || item->parts[0].dtype != items[0]->parts[0].dtype) return NULL;
        if (i == 0) result = *item;
        if (item->rank != result.rank || item->dtype != result.dtype) return NULL;
        if (memcmp(item->shape, result.shape, item->rank * sizeof *item->shape) != 0) return NULL;
        parts[i] = item->parts[0];
    }
    result.shape[0] = result.part_count = count;
    return make(arena, result, parts);
}

uint64_t recipe_count(const Recipe *recipe) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < recipe->rank; d++) count *= (uint64_t)recipe->shape[d];
    return count;
}

uint64_t recipe_bytes_size(const Recipe *recipe) {
    return recipe_count(recipe) * ferry_dtype_size(recipe->dtype);
}

bool recipe_is_verbatim(const Recipe *recipe, const MappedFile **file, uint64_t *offset) {
    const RecipePart *part = &recipe->parts[0];
    if (recipe->part_count != 1 || !part->file || part->blocks || part->dtype != recipe->dtype)
        return false;
    if (!recipe_part_is_contiguous(part, recipe->rank)) return false;
    *file = part->file;
    *offset = (uint64_t)(part->base - part->file->bytes);
    return true;
}

bool recipe_equal(const Recipe *a, const Recipe *b) {
    if (a->dtype != b->dtype || a->rank != b->rank || a->part_count != b->part_count) return false;
    if (a->part_count > 1 && a->dim != b->dim) return false;
    for (uint32_t i = 0; i < a->part_count; i++) {
        const RecipePart *left = &a->parts[i], *right = &b->parts[i];
        if (left->base != right->base || left->dtype != right->dtype) return false;
        if (left->blocks != right->blocks || left->start != right->start) return false;
        for (uint32_t d = 0; d < a->rank; d++) {
            if (left->shape[d] != right->shape[d] || left->strides[d] != right->strides[d])
                return false;
        }
    }
    return true;
}
