/* Reading recipes: in order where the source is, through tiles where it is transposed. Quantized blocks are
 * decoded on the way. */
#include "base/dtype.h"
#include "base/strided.h"
#include "graph/recipe.h"

enum {
    TILE = 64,             /* elements: whole cache lines on both sides for every type */
    CHUNK_BYTES = 1 << 19, /* of the result, which stays in the cache until it is written */
    LARGE_CHUNK = 1 << 22,
    LARGEST_CHUNK = 1 << 25,
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

/* `count` elements that follow each other from element `place` of a part on, converted. */
static void read_run(const RecipePart *part, int64_t place, uint64_t count, ferry_dtype dtype,
                     unsigned char *out) {
    _Alignas(64) float decoded[1024];
    const size_t most = sizeof decoded / sizeof *decoded;
    if (!part->blocks) {
        const unsigned char *source = part->base + place * (int64_t)ferry_dtype_size(part->dtype);
        dtype_convert(part->dtype, source, dtype, out, count);
        return;
    }
    uint64_t first = (uint64_t)(part->start + place);
    if (dtype == FERRY_F32 && (uintptr_t)out % _Alignof(float) == 0) {
        block_decode(part->blocks, part->base, first, count, (float *)out);
        return;
    }
    for (uint64_t i = 0; i < count; i += most) {
        uint64_t length = count - i < most ? count - i : most;
        block_decode(part->blocks, part->base, first + i, length, decoded);
        dtype_convert(FERRY_F32, decoded, dtype, out + i * ferry_dtype_size(dtype), length);
    }
}

/* A matrix inside of a part: element [i, j] is at place + i*row_step + j*column_step. */
typedef struct Window {
    int64_t place, row_step, column_step;
} Window;

/* A tile of at most TILE x TILE elements, unconverted, to rows that are `pitch` bytes apart. */
static void read_tile(const RecipePart *part, const Window *window, uint64_t rows, uint64_t columns,
                      unsigned char *out, size_t pitch) {
    _Alignas(64) float decoded[TILE * TILE];
    int64_t size = (int64_t)ferry_dtype_size(part->dtype);
    if (!part->blocks) {
        strided_copy(part->base + window->place * size, window->row_step * size,
                     window->column_step * size, (size_t)size, rows, columns, out, pitch);
        return;
    }
    uint64_t run = window->row_step == 1 ? rows : 1; /* elements that can be decoded at once */
    for (uint64_t j = 0; j < columns; j++) {
        int64_t place = part->start + window->place + (int64_t)j * window->column_step;
        for (uint64_t i = 0; i < rows; i += run) {
            block_decode(part->blocks, part->base,
                         (uint64_t)(place + (int64_t)i * window->row_step), run,
                         decoded + j * TILE + i);
        }
    }
    strided_copy((unsigned char *)decoded, size, TILE * size, (size_t)size, rows, columns, out,
                 pitch);
}

/* A matrix, converted, to rows that are `pitch` bytes apart. */
static void read_matrix(const RecipePart *part, Window window, uint64_t rows, uint64_t columns,
                        ferry_dtype dtype, unsigned char *out, size_t pitch) {
    _Alignas(64) unsigned char tile[TILE * TILE * 8];
    size_t from_size = ferry_dtype_size(part->dtype), to_size = ferry_dtype_size(dtype);
    if (window.column_step == 1) {
        for (uint64_t i = 0; i < rows; i++)
            read_run(part, window.place + (int64_t)i * window.row_step, columns, dtype,
                     out + i * pitch);
        return;
    }
    for (uint64_t i = 0; i < rows; i += TILE) {
        uint64_t height = rows - i < TILE ? rows - i : TILE;
        for (uint64_t j = 0; j < columns; j += TILE) {
            uint64_t width = columns - j < TILE ? columns - j : TILE;
            Window corner = window;
            unsigned char *target = out + i * pitch + j * to_size;
            corner.place += (int64_t)i * window.row_step + (int64_t)j * window.column_step;
            if (part->dtype == dtype) {
                read_tile(part, &corner, height, width, target, pitch);
                continue;
            }
            read_tile(part, &corner, height, width, tile, TILE * from_size);
            for (uint64_t k = 0; k < height; k++) {
                dtype_convert(part->dtype, tile + k * TILE * from_size, dtype, target + k * pitch,
                              width);
            }
        }
    }
}

/* Whole rows (along the last dimension) of a part, to rows that are `pitch` bytes apart. */
static void read_rows(const RecipePart *part, uint32_t rank, uint64_t first, uint64_t count,
                      ferry_dtype dtype, unsigned char *out, size_t pitch) {
    uint64_t row = (uint64_t)part->shape[rank - 1];
    uint64_t block = rank > 1 ? (uint64_t)part->shape[rank - 2] : 1; /* rows at row_step */
    Window window = {.row_step = rank > 1 ? part->strides[rank - 2] : 0,
                     .column_step = part->strides[rank - 1]};
    while (count > 0) {
        uint64_t rows = block - first % block < count ? block - first % block : count;
        window.place = part_offset(part, rank, first * row);
        read_matrix(part, window, rows, row, dtype, out, pitch);
        out += rows * pitch;
        first += rows;
        count -= rows;
    }
}

/* Elements [first, first + count) of one part, row-major within the part, converted. */
static void part_read(const RecipePart *part, uint32_t rank, ferry_dtype dtype, uint64_t first,
                      uint64_t count, unsigned char *out) {
    if (recipe_part_is_contiguous(part, rank)) {
        read_run(part, (int64_t)first, count, dtype, out);
        return;
    }
    size_t size = ferry_dtype_size(dtype);
    uint64_t row = (uint64_t)part->shape[rank - 1];
    while (count > 0) {
        uint64_t done = count / row * row;
        if (first % row == 0 && done > 0) {
            read_rows(part, rank, first / row, count / row, dtype, out, row * size);
        } else { /* the end of a row, or the beginning of one */
            Window window = {part_offset(part, rank, first), 0, part->strides[rank - 1]};
            done = row - first % row < count ? row - first % row : count;
            read_matrix(part, window, 1, done, dtype, out, 0);
        }
        out += done * size;
        first += done;
        count -= done;
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

/* Whole rows of a recipe whose parts are beside each other: part by part, so that each is read in tiles. */
static void read_beside(const Recipe *recipe, uint64_t first, uint64_t count, unsigned char *out) {
    uint32_t last = recipe->rank - 1;
    size_t size = ferry_dtype_size(recipe->dtype);
    for (uint32_t i = 0; i < recipe->part_count; i++) {
        const RecipePart *part = &recipe->parts[i];
        read_rows(part, recipe->rank, first, count, recipe->dtype, out,
                  (size_t)recipe->shape[last] * size);
        out += (size_t)part->shape[last] * size;
    }
}

void recipe_read(const Recipe *recipe, uint64_t first, uint64_t count, void *out) {
    unsigned char *next = out;
    if (count == 0) return;
    if (recipe->part_count > 1 && recipe->dim + 1 == recipe->rank) {
        uint64_t row = (uint64_t)recipe->shape[recipe->dim];
        uint64_t head = (row - first % row) % row, rows = count > head ? (count - head) / row : 0;
        if (head > count) head = count;
        each_range(recipe, first, head, read_range, &next);
        read_beside(recipe, (first + head) / row, rows, next);
        next += rows * row * ferry_dtype_size(recipe->dtype);
        first += head + rows * row;
        count -= head + rows * row;
    }
    each_range(recipe, first, count, read_range, &next);
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
    /* Fewer rows than a group would decode the group again for each chunk. */
    rows = row * BLOCK_GROUP;
    if (recipe->parts[0].blocks && rows <= LARGEST_CHUNK / size) return rows;
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
    uint64_t base = (uint64_t)(part->base - part->file->bytes);
    uint64_t begin = (uint64_t)(part->start + part_offset(part, rank, first));
    uint64_t end = (uint64_t)(part->start + part_offset(part, rank, first + count - 1)) + 1;
    uint64_t unit = part->blocks ? part->blocks->elements : 1;
    uint64_t size = part->blocks ? part->blocks->bytes : ferry_dtype_size(part->dtype);
    begin /= unit;
    end = (end + unit - 1) / unit;
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
