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

static bool part_is_contiguous(const RecipePart *part, uint32_t rank) {
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
    if (recipe->part_count != 1 || !part_is_contiguous(&recipe->parts[0], recipe->rank))
        return NULL;
    Recipe result = *recipe;
    RecipePart part = recipe->parts[0];
    result.rank = rank;
    result.dim = 0;
    for (uint32_t d = 0; d < rank; d++) result.shape[d] = part.shape[d] = shape[d];
    row_major(rank, part.shape, part.strides);
    return make(arena, result, &part);
}

const Recipe *recipe_slice(Arena *arena, const Recipe *recipe, uint32_t dim, int64_t start,
                           int64_t end) {
    Recipe result = *recipe;
    RecipePart *parts = ARENA_ARRAY(arena, RecipePart, recipe->part_count);
    if (!parts) return NULL;
    result.shape[dim] = end - start;
    result.part_count = 0;
    int64_t position = 0;
    if (start == end) { /* one empty part, so that there is a first part to ask */
        parts[0] = recipe->parts[0];
        for (uint32_t d = 0; d < recipe->rank; d++) parts[0].shape[d] = result.shape[d];
        result.part_count = 1;
        return make(arena, result, parts);
    }
    for (uint32_t i = 0; i < recipe->part_count; i++) {
        RecipePart part = recipe->parts[i];
        int64_t from = start, to = end;
        if (dim == recipe->dim) {
            int64_t length = part.shape[dim];
            from = start > position ? start - position : 0;
            to = end - position < length ? end - position : length;
            position += length;
        }
        if (to <= from) continue;
        part.base += from * part.strides[dim] * (int64_t)ferry_dtype_size(part.dtype);
        part.shape[dim] = to - from;
        parts[result.part_count++] = part;
    }
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

/* ---- reading ---- */

/* Where element `flat` (row-major) of a part is, in elements from its base. */
static int64_t part_offset(const RecipePart *part, uint32_t rank, uint64_t flat) {
    int64_t offset = 0;
    for (uint32_t d = rank; d-- > 0;) {
        uint64_t size = (uint64_t)part->shape[d];
        offset += (int64_t)(flat % size) * part->strides[d];
        flat /= size;
    }
    return offset;
}

enum { TILE = 64 };

/* Copy rows x columns elements into a tile whose rows are TILE apart. It goes down the columns, since
 * what is not in order is mostly transposed: then a column's elements are neighbours in the source, and
 * every cache line is read whole. */
static void gather(const unsigned char *source, size_t size, int64_t row_step, int64_t column_step,
                   uint64_t rows, uint64_t columns, unsigned char *tile) {
#define GATHER(bytes)                                                                              \
    for (uint64_t j = 0; j < columns; j++) {                                                       \
        const unsigned char *from = source + (int64_t)j * column_step;                             \
        unsigned char *to = tile + j * (bytes);                                                    \
        for (uint64_t i = 0; i < rows; i++, from += row_step, to += TILE * (bytes))                \
            memcpy(to, from, bytes);                                                               \
    }
    switch (size) {
    case 1: GATHER(1); break;
    case 2: GATHER(2); break;
    case 4: GATHER(4); break;
    default: GATHER(8); break;
    }
#undef GATHER
}

/* A block of rows whose elements are `column_step` bytes apart, converted, through tiles. */
static void read_rows(const RecipePart *part, const unsigned char *source, int64_t row_step,
                      int64_t column_step, uint64_t rows, uint64_t columns, ferry_dtype dtype,
                      unsigned char *out) {
    _Alignas(64) unsigned char tile[TILE * TILE * 8];
    size_t from_size = ferry_dtype_size(part->dtype), to_size = ferry_dtype_size(dtype);
    for (uint64_t i = 0; i < rows; i += TILE) {
        uint64_t height = rows - i < TILE ? rows - i : TILE;
        for (uint64_t j = 0; j < columns; j += TILE) {
            uint64_t width = columns - j < TILE ? columns - j : TILE;
            gather(source + (int64_t)i * row_step + (int64_t)j * column_step, from_size, row_step,
                   column_step, height, width, tile);
            for (uint64_t k = 0; k < height; k++) {
                dtype_convert(part->dtype, tile + k * TILE * from_size, dtype,
                              out + ((i + k) * columns + j) * to_size, width);
            }
        }
    }
}

/* Elements [first, first + count) of one part, row-major within the part, converted. */
static void part_read(const RecipePart *part, uint32_t rank, ferry_dtype dtype, uint64_t first,
                      uint64_t count, unsigned char *out) {
    int64_t size = (int64_t)ferry_dtype_size(part->dtype);
    if (part_is_contiguous(part, rank)) {
        dtype_convert(part->dtype, part->base + first * (uint64_t)size, dtype, out, count);
        return;
    }
    uint64_t row = (uint64_t)part->shape[rank - 1],
             height = rank > 1 ? (uint64_t)part->shape[rank - 2] : 1;
    int64_t row_step = rank > 1 ? part->strides[rank - 2] * size : 0;
    int64_t column_step = part->strides[rank - 1] * size;
    while (count > 0) {
        const unsigned char *source = part->base + part_offset(part, rank, first) * size;
        uint64_t column = first % row, columns = row - column, rows = 1;
        if (columns > count) columns = count;
        if (column_step == size) {
            dtype_convert(part->dtype, source, dtype, out, columns);
        } else {
            if (columns == row) {
                rows = height - first / row % height;
                if (rows > count / row) rows = count / row;
            }
            read_rows(part, source, row_step, column_step, rows, columns, dtype, out);
        }
        out += rows * columns * ferry_dtype_size(dtype);
        first += rows * columns;
        count -= rows * columns;
    }
}

typedef void (*PartRange)(const Recipe *recipe, const RecipePart *part, uint64_t first,
                          uint64_t count, void *context);

/* Call `visit` for the stretches of parts that make up elements [first, first + count), in order. */
static void each_range(const Recipe *recipe, uint64_t first, uint64_t count, PartRange visit,
                       void *context) {
    if (recipe->part_count == 1) {
        visit(recipe, &recipe->parts[0], first, count, context);
        return;
    }
    uint64_t inner = 1; /* elements of the result per step along `dim` */
    for (uint32_t d = recipe->dim + 1; d < recipe->rank; d++) inner *= (uint64_t)recipe->shape[d];
    uint64_t outer_size = inner * (uint64_t)recipe->shape[recipe->dim];
    while (count > 0) {
        uint64_t outer = first / outer_size, within = first % outer_size;
        const RecipePart *part = recipe->parts;
        uint64_t length = inner * (uint64_t)part->shape[recipe->dim];
        while (within >= length) {
            within -= length;
            part++;
            length = inner * (uint64_t)part->shape[recipe->dim];
        }
        uint64_t run = length - within < count ? length - within : count;
        visit(recipe, part, outer * length + within, run, context);
        first += run;
        count -= run;
    }
}

static void read_range(const Recipe *recipe, const RecipePart *part, uint64_t first, uint64_t count,
                       void *context) {
    unsigned char **out = context;
    part_read(part, recipe->rank, recipe->dtype, first, count, *out);
    *out += count * ferry_dtype_size(recipe->dtype);
}

void recipe_read(const Recipe *recipe, uint64_t first, uint64_t count, void *out) {
    unsigned char *next = out;
    if (count) each_range(recipe, first, count, read_range, &next);
}

static void forget_range(const Recipe *recipe, const RecipePart *part, uint64_t first,
                         uint64_t count, void *context) {
    (void)context;
    if (!part->file || !part_is_contiguous(part, recipe->rank)) return;
    size_t size = ferry_dtype_size(part->dtype);
    file_forget(part->file, (size_t)(part->base - part->file->bytes) + first * size, count * size);
}

void recipe_forget(const Recipe *recipe, uint64_t first, uint64_t count) {
    if (count) each_range(recipe, first, count, forget_range, NULL);
}

bool recipe_is_verbatim(const Recipe *recipe, const MappedFile **file, uint64_t *offset) {
    const RecipePart *part = &recipe->parts[0];
    if (recipe->part_count != 1 || !part->file || part->dtype != recipe->dtype) return false;
    if (!part_is_contiguous(part, recipe->rank)) return false;
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
        for (uint32_t d = 0; d < a->rank; d++) {
            if (left->shape[d] != right->shape[d] || left->strides[d] != right->strides[d])
                return false;
        }
    }
    return true;
}
