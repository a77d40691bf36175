/* Idefics3 and SmolVLM: a large image is cut into tiles, and is given once more, as a whole, in the size of
 * a tile. */
#include "base/error.h"
#include "media/processor.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EDGE = 4096, MAX_TILES = 4096 }; /* of a resized image */

typedef VEC(Image) Tiles;

/* The longest edge as asked for, the other an even number, both at most MAX_EDGE. */
static void longest_edge(size_t edge, size_t *width, size_t *height) {
    double ratio = (double)*width / (double)*height;
    if (*width >= *height) {
        *width = edge;
        *height = (size_t)((double)edge / ratio);
        *height += *height % 2;
    } else {
        *height = edge;
        *width = (size_t)((double)edge * ratio);
        *width += *width % 2;
    }
    if (!*width) *width = 1;
    if (!*height) *height = 1;
    ratio = (double)*width / (double)*height;
    if (*width >= *height && *width > MAX_EDGE) {
        *width = MAX_EDGE;
        *height = (size_t)((double)MAX_EDGE / ratio);
    } else if (*height > *width && *height > MAX_EDGE) {
        *height = MAX_EDGE;
        *width = (size_t)((double)MAX_EDGE * ratio);
    }
    if (!*width) *width = 1;
    if (!*height) *height = 1;
}

static size_t round_up(size_t value, size_t tile) {
    return (value + tile - 1) / tile * tile;
}

/* Whole tiles, of about the same shape. */
static void whole_tiles(size_t tile, size_t *width, size_t *height) {
    double ratio = (double)*width / (double)*height;
    if (*width >= *height) {
        *width = round_up(*width, tile);
        *height = round_up((size_t)((double)*width / ratio), tile);
    } else {
        *height = round_up(*height, tile);
        *width = round_up((size_t)((double)*height * ratio), tile);
    }
}

static ferry_status resize(const ImageSettings *s, Image *image, size_t width, size_t height,
                           ferry_error *error) {
    Image out;
    TRY(image_resize(image, width, height, s->resample, &out, error));
    image_free(image);
    *image = out;
    return FERRY_OK;
}

/* The image given up to the list. */
static ferry_status keep(Tiles *tiles, Image *image, ferry_error *error) {
    VEC_PUSH(tiles, *image);
    if (tiles->failed) return error_memory(error, NULL, 0);
    *image = (Image){0};
    return FERRY_OK;
}

static ferry_status split(const ImageSettings *s, Image *image, Tiles *tiles, Item *item,
                          ferry_error *error) {
    static const unsigned char none[3] = {0};
    size_t tile = s->max_image_size.longest_edge, width = image->width, height = image->height;
    whole_tiles(tile, &width, &height);
    TRY(resize(s, image, width, height, error));
    if (width <= tile && height <= tile) return keep(tiles, image, error);
    item->rows = height / tile;
    item->columns = width / tile;
    if (item->rows * item->columns > MAX_TILES)
        return error_set(error, FERRY_UNSUPPORTED, NULL,
                         "an image would be cut into %zu tiles; at most %d are",
                         item->rows * item->columns, MAX_TILES);
    for (size_t i = 0; i < item->rows * item->columns; i++) {
        Image part;
        TRY(image_crop(image, (int64_t)(i % item->columns * tile),
                       (int64_t)(i / item->columns * tile), tile, tile, none, &part, error));
        ferry_status status = keep(tiles, &part, error);
        image_free(&part);
        TRY(status);
    }
    TRY(resize(s, image, tile, tile, error));
    return keep(tiles, image, error);
}

static ferry_status add_image(const ImageSettings *s, const Image *source, Tiles *tiles, Item *item,
                              ferry_error *error) {
    size_t width = source->width, height = source->height, tile = s->max_image_size.longest_edge;
    Image image;
    if (s->do_resize && s->size.longest_edge) longest_edge(s->size.longest_edge, &width, &height);
    if (s->do_resize && !s->size.longest_edge) {
        width = s->size.width;
        height = s->size.height;
    }
    TRY(image_resize(source, width, height, s->resample, &image, error));
    ferry_status status;
    if (s->do_image_splitting) {
        status = split(s, &image, tiles, item, error);
    } else {
        status = resize(s, &image, tile, tile, error);
        if (status == FERRY_OK) status = keep(tiles, &image, error);
    }
    image_free(&image);
    return status;
}

/* All tiles, filled up to the largest, with masks of what is theirs. */
static ferry_status write_all(const ImageSettings *s, const Tiles *tiles, ferry_tensors *out,
                              ferry_error *error) {
    size_t width = 0, height = 0;
    ferry_tensor *pixels, *mask = NULL;
    Levels levels;
    for (size_t i = 0; i < tiles->count; i++) {
        if (tiles->items[i].width > width) width = tiles->items[i].width;
        if (tiles->items[i].height > height) height = tiles->items[i].height;
    }
    int64_t count = (int64_t)tiles->count, h = (int64_t)height, w = (int64_t)width;
    int64_t shape[] = {1, count, 3, h, w}, mask_shape[] = {1, count, h, w};
    TRY(ferry_tensors_add(out, "pixel_values", FERRY_F32, 5, shape, &pixels, error));
    if (s->do_pad)
        TRY(ferry_tensors_add(out, "pixel_attention_mask", FERRY_I64, 4, mask_shape, &mask, error));
    levels_make(s, &levels);
    for (size_t i = 0; i < tiles->count; i++) {
        const Image *tile = &tiles->items[i];
        for (size_t y = 0; y < tile->height; y++) {
            for (size_t x = 0; x < tile->width; x++) {
                const unsigned char *from = tile->pixels + (y * tile->width + x) * 3;
                for (size_t c = 0; c < 3; c++)
                    ((float *)pixels->data)[((i * 3 + c) * height + y) * width + x] =
                        levels.of[c][from[c]];
                if (mask) ((int64_t *)mask->data)[(i * height + y) * width + x] = 1;
            }
        }
    }
    return FERRY_OK;
}

ferry_status process_tiles(const ImageSettings *s, const ImageBatch *batch, ferry_tensors *out,
                           ferry_error *error) {
    Tiles tiles = {0};
    ferry_status status = FERRY_OK;
    for (size_t i = 0; status == FERRY_OK && i < batch->count; i++)
        status = add_image(s, &batch->images[i], &tiles, batch->items[i], error);
    if (status == FERRY_OK) status = write_all(s, &tiles, out, error);
    for (size_t i = 0; i < tiles.count; i++) image_free(&tiles.items[i]);
    VEC_FREE(&tiles);
    return status;
}
