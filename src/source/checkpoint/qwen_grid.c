/* Where the patches are: images, frames, windows, places and positions from the grids of the images. */
#include "source/checkpoint/qwen_vision.h"

#include <math.h>

/* ---- whole numbers ---- */

static Value *number(Builder *b, int64_t value) {
    return build_full(b, NULL, 0, (double)value, FERRY_I64);
}

static Value *quotient(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_FLOOR_DIVIDE, x, y);
}

static Value *rest(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_REMAINDER, x, y);
}

static Value *times(Builder *b, Value *x, int64_t factor) {
    return build_scalar(b, OP_MUL_SCALAR, x, (double)factor);
}

/* The smaller one of `limit` and what is left of `size` from `from` on. */
static Value *left_of(Builder *b, Value *size, Value *from, int64_t limit) {
    return build_clamp(b, build_sub(b, size, from), arg_none(), arg_int(b, limit));
}

/* ---- places ---- */

/* x[index] of vectors. */
static Value *pick(Builder *b, Value *x, Value *index) {
    return build_op(b, OP_INDEX_SELECT,
                    (const Arg[]){arg_tensor(x), arg_int(b, 0), arg_tensor(index)}, 3);
}

/* Rows and columns: within a frame, patches are in cells of merge x merge, row by row. */
static void find_places(const Qwen *q, QwenGrid *grid, Value *grids) {
    Builder *b = &q->m->b;
    Value *size[3];
    for (int i = 0; i < 3; i++) size[i] = build_select(b, grids, 1, i);
    Value *counts = build_mul(b, build_mul(b, size[0], size[1]), size[2]);
    Value *ends = build_cumsum(b, counts, 0);
    Value *patch = build_arange(b, build_const(b, 0), grid->patches, FERRY_I64);
    Value *past = build_binary(b, OP_GE, build_unsqueeze(b, patch, 1), build_unsqueeze(b, ends, 0));
    Value *image = build_reduce(b, OP_SUM, build_to(b, past, FERRY_I64), 1, false);
    Value *first = pick(b, build_sub(b, ends, counts), image);
    grid->height = pick(b, size[1], image);
    grid->width = pick(b, size[2], image);
    Value *area = build_mul(b, grid->height, grid->width);
    Value *within = rest(b, build_sub(b, patch, first), area);
    grid->frame = build_sub(b, patch, within);
    Value *side = number(b, q->merge), *cell = quotient(b, within, number(b, q->merge * q->merge));
    Value *cells = quotient(b, grid->width, side);
    Value *row = times(b, quotient(b, cell, cells), q->merge);
    Value *column = times(b, rest(b, cell, cells), q->merge);
    grid->row = build_add(b, row, rest(b, quotient(b, within, side), side));
    grid->column = build_add(b, column, rest(b, within, side));
}

/* Windows: squares of cells, cut off at the lower and right edges of the image. */
static void find_windows(const Qwen *q, QwenGrid *grid) {
    Builder *b = &q->m->b;
    int64_t side = config_size_or(q->m, "window_size", 112) / q->merge / q->patch;
    if (side < 1) {
        build_fail(b, FERRY_BAD_FORMAT,
                   "%s: expected \"window_size\" to be at least a cell of patches, %lld",
                   q->m->config_path, (long long)(q->merge * q->patch));
        return;
    }
    Value *merge = number(b, q->merge), *window = number(b, side);
    Value *height = quotient(b, grid->height, merge), *width = quotient(b, grid->width, merge);
    Value *row = quotient(b, grid->row, merge), *column = quotient(b, grid->column, merge);
    Value *top = build_sub(b, row, rest(b, row, window));
    Value *left = build_sub(b, column, rest(b, column, window));
    Value *rows = left_of(b, height, top, side), *columns = left_of(b, width, left, side);
    Value *above = build_add(b, build_mul(b, top, width), build_mul(b, left, rows));
    Value *first = quotient(b, grid->frame, number(b, q->merge * q->merge));
    grid->window = build_add(b, first, above);
    Value *inside = build_mul(b, rest(b, row, window), columns);
    inside = build_add(b, inside, rest(b, column, window));
    grid->place = build_add(b, grid->window, inside);
}

/* Which patches have the same number? bool [1, 1, patches, patches] */
static Value *same(Builder *b, Value *numbers) {
    Value *equal =
        build_binary(b, OP_EQ, build_unsqueeze(b, numbers, 1), build_unsqueeze(b, numbers, 0));
    return build_unsqueeze(b, build_unsqueeze(b, equal, 0), 0);
}

/* ---- positions ---- */

/* Half of the head turns with the row, half with the column, at the same frequencies. */
static void find_angles(const Qwen *q, QwenGrid *grid) {
    Builder *b = &q->m->b;
    int64_t half = q->hidden / q->heads / 2, count = half / 2;
    if (!build_ok(b)) return;
    float *turns = ARENA_ARRAY(&b->program->arena, float, (size_t)count);
    for (int64_t i = 0; turns && i < count; i++)
        turns[i] = 1.0f / powf((float)q->theta, (float)(2 * i) / (float)half);
    if (!turns) {
        build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    Value *frequency =
        build_constant(b, VALUE_CONSTANT, "frequencies", FERRY_F32, 1, &count, turns);
    Value *places[2] = {grid->row, grid->column}, *angles[2];
    for (int i = 0; i < 2; i++) {
        Value *place = build_to(b, build_unsqueeze(b, places[i], 1), FERRY_F32);
        angles[i] = build_mul(b, place, frequency);
    }
    Value *both = build_cat(b, angles, 2, 1);
    Value *whole = build_cat(b, (Value *const[]){both, both}, 2, 1);
    whole = build_unsqueeze(b, build_unsqueeze(b, whole, 0), 0);
    grid->cos = build_unary(b, OP_COS, whole);
    grid->sin = build_unary(b, OP_SIN, whole);
}

QwenGrid qwen_grid(const Qwen *q, const Sym *patches, Value *grids) {
    Builder *b = &q->m->b;
    QwenGrid grid = {.patches = patches};
    find_places(q, &grid, grids);
    find_angles(q, &grid);
    grid.frame_mask = same(b, grid.frame);
    if (!q->traits->windows) return grid;
    find_windows(q, &grid);
    grid.window_mask = build_ok(b) ? same(b, grid.window) : NULL;
    return grid;
}

/* Between which two rows of the table, and with which weights, is place `at` of `size`? int64 and
 * float32 [patches, 2]; the first and the last place are those of the table. */
static void taps_along(Builder *b, Value *at, Value *size, int64_t side, Value *taps[2],
                       Value *weights[2]) {
    Value *steps = build_scalar(b, OP_ADD_SCALAR, size, -1);
    steps = build_to(b, build_clamp(b, steps, arg_int(b, 1), arg_none()), FERRY_F32);
    Value *place = build_scalar(b, OP_MUL_SCALAR, build_to(b, at, FERRY_F32), (double)(side - 1));
    place = build_binary(b, OP_DIV, place, steps);
    Value *floor = build_unary(b, OP_FLOOR, place), *share = build_sub(b, place, floor);
    Value *low = build_to(b, floor, FERRY_I64);
    taps[0] = build_clamp(b, low, arg_int(b, 0), arg_int(b, side - 1));
    taps[1] =
        build_clamp(b, build_scalar(b, OP_ADD_SCALAR, low, 1), arg_int(b, 0), arg_int(b, side - 1));
    weights[0] = build_scalar(b, OP_ADD_SCALAR, build_unary(b, OP_NEG, share), 1);
    weights[1] = share;
}

Value *qwen_positions(const Qwen *q, const QwenGrid *grid) {
    Model *m = q->m;
    Builder *b = &m->b;
    int64_t count = config_size_or(m, "num_position_embeddings", 2304);
    int64_t side = (int64_t)sqrt((double)count);
    Value *table = model_matrix(m, count, q->hidden, "pos_embed.weight");
    Value *rows[2], *columns[2], *row_weights[2], *column_weights[2], *sum = NULL;
    taps_along(b, grid->row, grid->height, side, rows, row_weights);
    taps_along(b, grid->column, grid->width, side, columns, column_weights);
    for (int i = 0; i < 4; i++) {
        Value *index = build_add(b, times(b, rows[i / 2], side), columns[i % 2]);
        Value *weight = build_mul(b, row_weights[i / 2], column_weights[i % 2]);
        Value *part = build_to(b, build_embedding(b, table, index), FERRY_F32);
        part = build_mul(b, part, build_unsqueeze(b, weight, 1));
        sum = sum ? build_add(b, sum, part) : part;
    }
    return build_unsqueeze(b, build_to(b, sum, m->dtype), 0);
}

Value *qwen_window_order(const Qwen *q, Value *x, const QwenGrid *grid) {
    Builder *b = &q->m->b;
    int64_t unit = q->merge * q->merge;
    const Sym *by_cell[2] = {build_const(b, -1), build_const(b, unit)};
    const Sym *wide[2] = {build_const(b, -1), build_const(b, unit * q->hidden)};
    const Sym *narrow[2] = {grid->patches, build_const(b, q->hidden)};
    Value *place = build_select(b, build_view(b, grid->place, by_cell, 2), 1, 0);
    x = build_view(b, x, wide, 2);
    if (!build_ok(b)) return x;
    const Arg args[] = {arg_tensor(build_full(b, x->shape, 2, 0, x->dtype)), arg_int(b, 0),
                        arg_tensor(place), arg_tensor(x)};
    return build_view(b, build_op(b, OP_INDEX_COPY, args, 4), narrow, 2);
}
