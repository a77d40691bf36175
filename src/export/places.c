/* The places of tokens in time, height and width: a token of text has its position in all three, a patch of
 * an image its place in the image besides, and what follows an image goes on behind its longer side. */
#include "base/error.h"
#include "export/merge.h"

#include <string.h>

typedef struct Places {
    Generator *g;
    int64_t *out;                 /* [3, batch, capacity] */
    const ferry_tensor *grids[2]; /* of images and videos: frames, rows, columns; may be NULL */
    const ferry_tensor *seconds;  /* of videos, float: between frames; may be NULL */
    int64_t next[2];              /* the next grid of each */
    int64_t frame;                /* of the next grid of videos, where each is an image by itself */
    int64_t merge;                /* patches along a side that one token stands for */
    double per_second;
    int64_t row, slot, position; /* where we are */
} Places;

/* Find the grids of a medium, one for every image: int64 [images, 3]. */
static ferry_status find_grids(Places *p, int medium, const char *name) {
    const ferry_tensor *grids = ferry_tensors_find(p->g->given, name);
    if (!grids) return FERRY_OK;
    if (grids->dtype != FERRY_I64 || grids->rank != 2 || grids->shape[1] != 3) {
        return error_set(p->g->error, FERRY_INVALID_ARGUMENT, name, "expected int64 [images, 3]");
    }
    p->grids[medium] = grids;
    return FERRY_OK;
}

static void put(const Places *p, int64_t time, int64_t height, int64_t width) {
    const int64_t values[3] = {time, height, width};
    for (int64_t i = 0; i < 3; i++) {
        p->out[(i * p->g->feed.batch + p->row) * p->g->limit + p->slot] = values[i];
    }
}

/* The grid of the next image, or part of a video, in tokens; and what a frame is in positions. */
static ferry_status next_grid(Places *p, int medium, int64_t grid[3], double *interval) {
    const ferry_tensor *grids = p->grids[medium];
    int64_t index = p->next[medium];
    *interval = 1;
    if (!grids || index >= grids->shape[0]) {
        return error_set(p->g->error, FERRY_INVALID_ARGUMENT,
                         medium == IMAGES ? "image_grid_thw" : "video_grid_thw",
                         "the prompt has more than the %lld there are",
                         (long long)(grids ? grids->shape[0] : 0));
    }
    const int64_t *given = (const int64_t *)grids->data + 3 * index;
    TimeRule time = medium == VIDEOS ? p->g->merge->rule->time : TIME_NONE;
    grid[0] = given[0];
    grid[1] = given[1] / p->merge;
    grid[2] = given[2] / p->merge;
    if (time == TIME_TEXT) {
        grid[0] = 1;
        if (++p->frame < given[0]) return FERRY_OK;
        p->frame = 0;
    }
    if (time == TIME_SECONDS) {
        bool known = p->seconds && p->seconds->dtype == FERRY_F32 && p->seconds->rank == 1 &&
                     index < p->seconds->shape[0];
        *interval = p->per_second * (known ? ((const float *)p->seconds->data)[index] : 1);
    }
    p->next[medium]++;
    return FERRY_OK;
}

/* The tokens of an image, from the present slot on. */
static ferry_status place_image(Places *p, int medium) {
    int64_t grid[3], start = p->position, end = p->slot;
    double interval;
    TRY(next_grid(p, medium, grid, &interval));
    const Source *sources = p->g->merge->sources + p->row * p->g->prompt;
    while (end < p->g->prompt && sources[end].medium == medium) end++;
    int64_t size = grid[1] * grid[2], count = grid[0] * size;
    if (size < 1 || grid[0] < 1 || count > end - p->slot) {
        return error_set(p->g->error, FERRY_INVALID_ARGUMENT, "input_ids",
                         "expected %lld tokens one after the other for an image of %lld x %lld x "
                         "%lld, found %lld",
                         (long long)count, (long long)grid[0], (long long)grid[1],
                         (long long)grid[2], (long long)(end - p->slot));
    }
    for (int64_t i = 0; i < count; i++, p->slot++) {
        int64_t time = (int64_t)((double)(i / size) * interval);
        put(p, start + time, start + i % size / grid[2], start + i % grid[2]);
    }
    p->position = start + (grid[1] > grid[2] ? grid[1] : grid[2]);
    return FERRY_OK;
}

/* Tokens behind the prompt go on behind the farthest place. */
static int64_t farthest(const Places *p, int64_t length) {
    int64_t most = -1;
    for (int64_t i = 0; i < 3; i++) {
        const int64_t *places = p->out + (i * p->g->feed.batch + p->row) * p->g->limit;
        for (int64_t slot = 0; slot < length; slot++) {
            if (places[slot] > most) most = places[slot];
        }
    }
    return most;
}

/* The same as in the row before, which goes on from the same prompt. */
static void repeat_row(const Places *p) {
    for (int64_t i = 0; i < 3; i++) {
        int64_t *row = p->out + (i * p->g->feed.batch + p->row) * p->g->limit;
        memcpy(row, row - p->g->limit, (size_t)p->g->limit * sizeof *row);
    }
}

static ferry_status place_row(Places *p) {
    const Generator *g = p->g;
    p->position = 0;
    for (p->slot = 0; p->slot < g->prompt;) {
        int medium = g->merge->sources[p->row * g->prompt + p->slot].medium;
        if (medium >= 0) {
            TRY(place_image(p, medium));
            continue;
        }
        bool valid = g->valid[p->row * g->limit + p->slot];
        int64_t position = valid ? p->position++ : 0;
        put(p, position, position, position);
        p->slot++;
    }
    for (int64_t next = farthest(p, g->prompt) + 1; p->slot < g->limit; p->slot++, next++)
        put(p, next, next, next);
    return FERRY_OK;
}

ferry_status places_compute(Generator *g) {
    Places p = {.g = g,
                .merge = merge_integer(g->merge, "vision_config", "spatial_merge_size", 2),
                .per_second =
                    (double)merge_integer(g->merge, "vision_config", "tokens_per_second", 4),
                .seconds = ferry_tensors_find(g->given, "second_per_grid_ts")};
    TRY(find_grids(&p, IMAGES, "image_grid_thw"));
    TRY(find_grids(&p, VIDEOS, "video_grid_thw"));
    p.out = ARENA_ARRAY(&g->arena, int64_t, (size_t)(3 * g->feed.batch * g->limit));
    if (!p.out || p.merge < 1) return error_memory(g->error, "positions", 0);
    for (p.row = 0; p.row < g->feed.batch; p.row++) {
        if (p.row % generator_beams(g))
            repeat_row(&p);
        else
            TRY(place_row(&p));
    }
    g->feed.places = p.out;
    return FERRY_OK;
}
