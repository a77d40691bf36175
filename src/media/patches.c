/* Qwen2-VL and what came after it: images in sizes that follow their own, cut into patches. */
#include "base/error.h"
#include "media/processor.h"

#include <math.h>
#include <stdlib.h>

/* A size of whole blocks of patches that is near the image's, with a number of pixels that the settings
 * allow. */
static ferry_status smart_size(const ImageSettings *s, const char *name, const Image *image,
                               size_t *width, size_t *height, ferry_error *error) {
    double w = (double)image->width, h = (double)image->height,
           factor = (double)(s->patch_size * s->merge_size);
    double least = (double)s->size.shortest_edge, most = (double)s->size.longest_edge;
    if (fmax(w, h) / fmin(w, h) > 200)
        return error_set(error, FERRY_INVALID_ARGUMENT, name,
                         "is %zu x %zu pixels; one edge may be at most 200 times the other",
                         image->width, image->height);
    double rows = rint(h / factor) * factor, columns = rint(w / factor) * factor;
    if (rows * columns > most) {
        double scale = sqrt(h * w / most);
        rows = fmax(factor, floor(h / scale / factor) * factor);
        columns = fmax(factor, floor(w / scale / factor) * factor);
    } else if (rows * columns < least) {
        double scale = sqrt(least / (h * w));
        rows = ceil(h * scale / factor) * factor;
        columns = ceil(w * scale / factor) * factor;
    }
    if (rows > 1e6 || columns > 1e6) rows = columns = 0; /* refused as a size */
    *height = (size_t)rows;
    *width = (size_t)columns;
    return FERRY_OK;
}

static ferry_status resize_one(const ImageSettings *s, const char *name, const Image *image,
                               Image *out, ferry_error *error) {
    size_t width = image->width, height = image->height, factor = s->patch_size * s->merge_size;
    if (s->do_resize) TRY(smart_size(s, name, image, &width, &height, error));
    if (width % factor || height % factor)
        return error_set(
            error, FERRY_INVALID_ARGUMENT, name,
            "is %zu x %zu pixels, which are no multiples of %zu, and \"do_resize\" is false", width,
            height, factor);
    return image_resize(image, width, height, s->resample, out, error);
}

/* The patches of an image, in blocks that the model merges; each holds its pixels once for every frame. */
static float *write_patches(const ImageSettings *s, const Levels *levels, const Image *image,
                            float *out) {
    size_t patch = s->patch_size, block = s->merge_size, edge = patch * block;
    for (size_t top = 0; top < image->height; top += edge) {
        for (size_t left = 0; left < image->width; left += edge) {
            for (size_t k = 0; k < block * block; k++) {
                size_t y0 = top + k / block * patch, x0 = left + k % block * patch;
                for (size_t c = 0; c < 3; c++) {
                    for (size_t frame = 0; frame < s->temporal_patch_size; frame++) {
                        for (size_t y = y0; y < y0 + patch; y++)
                            for (size_t x = x0; x < x0 + patch; x++)
                                *out++ =
                                    levels->of[c][image->pixels[(y * image->width + x) * 3 + c]];
                    }
                }
            }
        }
    }
    return out;
}

static ferry_status write_all(const ImageSettings *s, const ImageBatch *batch, const Image *resized,
                              ferry_tensors *out, ferry_error *error) {
    ferry_tensor *pixels, *grid;
    Levels levels;
    size_t patches = 0;
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i]->rows = resized[i].height / s->patch_size;
        batch->items[i]->columns = resized[i].width / s->patch_size;
        patches += batch->items[i]->rows * batch->items[i]->columns;
    }
    int64_t length = (int64_t)(3 * s->temporal_patch_size * s->patch_size * s->patch_size);
    int64_t shape[] = {(int64_t)patches, length}, grid_shape[] = {(int64_t)batch->count, 3};
    TRY(ferry_tensors_add(out, "pixel_values", FERRY_F32, 2, shape, &pixels, error));
    TRY(ferry_tensors_add(out, "image_grid_thw", FERRY_I64, 2, grid_shape, &grid, error));
    levels_make(s, &levels);
    float *to = pixels->data;
    for (size_t i = 0; i < batch->count; i++) {
        int64_t *row = (int64_t *)grid->data + 3 * i;
        row[0] = 1;
        row[1] = (int64_t)batch->items[i]->rows;
        row[2] = (int64_t)batch->items[i]->columns;
        to = write_patches(s, &levels, &resized[i], to);
    }
    return FERRY_OK;
}

ferry_status process_patches(const ImageSettings *s, const ImageBatch *batch, ferry_tensors *out,
                             ferry_error *error) {
    Image *resized = calloc(batch->count, sizeof *resized);
    ferry_status status =
        resized ? FERRY_OK : error_memory(error, NULL, batch->count * sizeof *resized);
    for (size_t i = 0; status == FERRY_OK && i < batch->count; i++)
        status = resize_one(s, batch->names[i], &batch->images[i], &resized[i], error);
    if (status == FERRY_OK) status = write_all(s, batch, resized, out, error);
    for (size_t i = 0; resized && i < batch->count; i++) image_free(&resized[i]);
    free(resized);
    return status;
}
