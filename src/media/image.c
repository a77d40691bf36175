#include "media/image.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

ferry_status image_new(const char *name, size_t width, size_t height, Image *out,
                       ferry_error *error) {
    size_t bytes;
    *out = (Image){width, height, NULL};
    if (__builtin_mul_overflow(width, height, &bytes) || __builtin_mul_overflow(bytes, 3, &bytes))
        bytes = SIZE_MAX;
    out->pixels = bytes < PTRDIFF_MAX ? calloc(bytes ? bytes : 1, 1) : NULL;
    return out->pixels ? FERRY_OK : error_memory(error, name, bytes);
}

void image_free(Image *image) {
    free(image->pixels);
    *image = (Image){0};
}

ferry_status image_check_size(const char *name, size_t width, size_t height, size_t max_pixels,
                              ferry_error *error) {
    if (width && height && width <= max_pixels / height) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, name,
                     "the image has %zu x %zu pixels; expected at least one, and at most %zu",
                     width, height, max_pixels);
}

bool image_is_png(const unsigned char *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

bool image_is_jpeg(const unsigned char *bytes, size_t size) {
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

ferry_status image_decode(const char *name, const unsigned char *bytes, size_t size,
                          size_t max_pixels, Image *out, ferry_error *error) {
    int orientation = 1;
    ferry_status status;
    *out = (Image){0};
    if (image_is_png(bytes, size))
        status = png_decode(name, bytes, size, max_pixels, out, &orientation, error);
    else if (image_is_jpeg(bytes, size))
        status = jpeg_decode(name, bytes, size, max_pixels, out, &orientation, error);
    else
        status = error_set(error, FERRY_UNSUPPORTED, name, "is no PNG and no JPEG image");
    if (status == FERRY_OK && orientation != 1) {
        Image upright;
        status = image_orient(out, orientation, &upright, error);
        image_free(out);
        *out = upright;
    }
    if (status != FERRY_OK) image_free(out);
    return status;
}

/* ---- geometry ---- */

ferry_status image_copy(const Image *image, Image *out, ferry_error *error) {
    TRY(image_new(NULL, image->width, image->height, out, error));
    memcpy(out->pixels, image->pixels, image->width * image->height * 3);
    return FERRY_OK;
}

ferry_status image_crop(const Image *image, int64_t left, int64_t top, size_t width, size_t height,
                        const unsigned char color[3], Image *out, ferry_error *error) {
    TRY(image_new(NULL, width, height, out, error));
    for (size_t y = 0; y < height; y++) {
        unsigned char *to = out->pixels + y * width * 3;
        int64_t row = top + (int64_t)y;
        bool inside = row >= 0 && row < (int64_t)image->height;
        for (size_t x = 0; x < width; x++, to += 3) {
            int64_t column = left + (int64_t)x;
            bool there = inside && column >= 0 && column < (int64_t)image->width;
            memcpy(to,
                   there ? image->pixels + ((size_t)row * image->width + (size_t)column) * 3
                         : color,
                   3);
        }
    }
    return FERRY_OK;
}

ferry_status image_orient(const Image *image, int orientation, Image *out, ferry_error *error) {
    /* Of each orientation: are rows and columns exchanged, and which of them then run backwards? */
    static const struct {
        bool exchanged, right_to_left, bottom_up;
    } turns[] = {
        [1] = {false, false, false}, [2] = {false, true, false}, [3] = {false, true, true},
        [4] = {false, false, true},  [5] = {true, false, false}, [6] = {true, false, true},
        [7] = {true, true, true},    [8] = {true, true, false},
    };
    bool exchanged = turns[orientation].exchanged;
    size_t width = exchanged ? image->height : image->width;
    size_t height = exchanged ? image->width : image->height;
    TRY(image_new(NULL, width, height, out, error));
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            size_t column = exchanged ? y : x, row = exchanged ? x : y;
            if (turns[orientation].right_to_left) column = image->width - 1 - column;
            if (turns[orientation].bottom_up) row = image->height - 1 - row;
            memcpy(out->pixels + (y * width + x) * 3,
                   image->pixels + (row * image->width + column) * 3, 3);
        }
    }
    return FERRY_OK;
}
