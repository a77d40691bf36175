/* Reading recipes: in order where the source is, through tiles where it is transposed. */
#include "base/dtype.h"
#include "base/strided.h"
#include "graph/recipe.h"

enum {
    TILE = 64,             /* elements: whole cache lines on both sides for every type */
    CHUNK_BYTES = 1 << 19, /* of the result, which stays in the cache until it is written */
    LARGE_CHUNK = 1 << 22,
};

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

/* A block of rows, converted. */
static void read_rows(const RecipePart *part, const unsigned char *source, int64_t row_step,
                      int64_t column_step, uint64_t rows, uint64_t columns, ferry_dtype dtype,
                      unsigned char *out) {
    _Alignas(64) unsigned char tile[TILE * TILE * 8];
    size_t from_size = ferry_dtype_size(part->dtype), to_size = ferry_dtype_size(dtype);
    for (uint64_t i = 0; i < rows; i += TILE) {
        uint64_t height = rows - i < TILE ? rows - i : TILE;
        for (uint64_t j = 0; j < columns; j += TILE) {
            uint64_t width = columns - j < TILE ? columns - j : TILE;
            const unsigned char *corner = source + (int64_t)i * row_step + (int64_t)j * column_step;
            unsigned char *target = out + (i * columns + j) * to_size;
            if (part->dtype == dtype) {
                strided_copy(corner, row_step, column_step, to_size, height, width, target,
                             columns * to_size);
                continue;
            }
            strided_copy(corner, row_step, column_step, from_size, height, width, tile,
                         TILE * from_size);
            for (uint64_t k = 0; k < height; k++) {
                dtype_convert(part->dtype, tile + k * TILE * from_size, dtype,
                              target + k * columns * to_size, width);
            }
        }
    }
}

/* Elements [first, first + count) of one part, row-major within the part, converted. */
static void part_read(const RecipePart *part, uint32_t rank, ferry_dtype dtype, uint64_t first,
                      uint64_t count, unsigned char *out) {
    int64_t size = (int64_t)ferry_dtype_size(part->dtype);
    if (recipe_part_is_contiguous(part, rank)) {
        dtype_convert(part->dtype, part->base + first * (uint64_t)size, dtype, out, count);
        return;
    }
    uint64_t row = (uint64_t)part->shape[rank - 1];
    uint64_t block = rank > 1 ? (uint64_t)part->shape[rank - 2] : 1; /* rows at row_step */
    int64_t row_step = rank > 1 ? part->strides[rank - 2] * size : 0;
    int64_t column_step = part->strides[rank - 1] * size;
    while (count > 0) {
        const unsigned char *source = part->base + part_offset(part, rank, first) * size;
        uint64_t rows = 1, columns = row - first % row;
        if (columns > count) columns = count;
        if (column_step == size) {
            dtype_convert(part->dtype, source, dtype, out, columns);
        } else {
            if (columns == row) rows = block - first / row % block;
            if (rows > count / columns) rows = count / columns;
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

uint64_t recipe_chunk(const Recipe *recipe) {
    uint64_t size = ferry_dtype_size(recipe->dtype), most = CHUNK_BYTES / size;
    bool contiguous = true;
    for (uint32_t i = 0; i < recipe->part_count; i++) {
        contiguous = contiguous && recipe_part_is_contiguous(&recipe->parts[i], recipe->rank);
    }
    if (contiguous) return most;
    uint64_t row = (uint64_t)recipe->shape[recipe->rank - 1], rows = row * TILE;
    if (rows <= most) return most / rows * rows;
    if (rows <= LARGE_CHUNK / size) return rows;
    return row <= most ? most / row * row : most;
}

/* ---- forgetting ---- */

/* True when elements that follow each other are never before each other in memory. */
static bool part_is_ordered(const RecipePart *part, uint32_t rank) {
    int64_t extent = 0;
    for (uint32_t d = rank; d-- > 0;) {
        if (part->shape[d] == 1) continue;
        if (part->strides[d] < extent) return false;
        extent = part->strides[d] * part->shape[d];
    }
    return true;
}

static void forget_span(const RecipePart *part, uint32_t rank, uint64_t first, uint64_t count) {
    if (!part->file || count == 0) return;
    uint64_t size = ferry_dtype_size(part->dtype),
             base = (uint64_t)(part->base - part->file->bytes);
    uint64_t begin = (uint64_t)part_offset(part, rank, first);
    uint64_t end = (uint64_t)part_offset(part, rank, first + count - 1) + 1;
    file_forget(part->file, base + begin * size, (end - begin) * size);
}

static void forget_range(const Recipe *recipe, const RecipePart *part, uint64_t first,
                         uint64_t count, void *context) {
    (void)context;
    if (part_is_ordered(part, recipe->rank)) forget_span(part, recipe->rank, first, count);
}

void recipe_forget(const Recipe *recipe, uint64_t first, uint64_t count) {
    if (count < recipe_count(recipe)) {
        if (count) each_range(recipe, first, count, forget_range, NULL);
        return;
    }
    for (uint32_t i = 0; i < recipe->part_count; i++) {
        const RecipePart *part = &recipe->parts[i];
        uint64_t elements = 1;
        for (uint32_t d = 0; d < recipe->rank; d++) elements *= (uint64_t)part->shape[d];
        forget_span(part, recipe->rank, 0, elements);
    }
}
