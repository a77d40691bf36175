/* Images: rows of red, green and blue bytes. */
#ifndef MEDIA_IMAGE_H
#define MEDIA_IMAGE_H

#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Image {
    size_t width, height;
    unsigned char *pixels; /* height * width * 3, owned */
} Image;

/* As many as Pillow opens. */
#define IMAGE_MAX_PIXELS ((size_t)178956970)

/* An image of a size, its bytes not set; `name` is for messages. */
ferry_status image_new(const char *name, size_t width, size_t height, Image *out,
                       ferry_error *error);
void image_free(Image *image);

/* Is this how a file of the format begins? */
bool image_is_png(const unsigned char *bytes, size_t size);
bool image_is_jpeg(const unsigned char *bytes, size_t size);

/* Decode a whole file: PNG or JPEG, upright as its EXIF says. Transparency is dropped, as Transformers does
 * with files. */
ferry_status image_decode(const char *name, const unsigned char *bytes, size_t size,
                          size_t max_pixels, Image *out, ferry_error *error);

/* ---- the formats ---- */

/* `*orientation` is EXIF's, 1 to 8. */
ferry_status png_decode(const char *name, const unsigned char *bytes, size_t size,
                        size_t max_pixels, Image *out, int *orientation, ferry_error *error);
ferry_status jpeg_decode(const char *name, const unsigned char *bytes, size_t size,
                         size_t max_pixels, Image *out, int *orientation, ferry_error *error);

/* The orientation in EXIF data, which begins with its byte order; 1 when there is none. */
int exif_orientation(const unsigned char *bytes, size_t size);

/* An image within the limit, in messages of what it has and may have. */
ferry_status image_check_size(const char *name, size_t width, size_t height, size_t max_pixels,
                              ferry_error *error);

/* ---- geometry; each makes a new image ---- */

ferry_status image_copy(const Image *image, Image *out, ferry_error *error);

typedef enum Filter { FILTER_BILINEAR, FILTER_BICUBIC, FILTER_LANCZOS } Filter;

/* Resized, antialiased, bit for bit as torchvision resizes bytes on a CPU. */
ferry_status image_resize(const Image *image, size_t width, size_t height, Filter filter,
                          Image *out, ferry_error *error);

/* A part that may reach beyond the image; what is outside gets a color. */
ferry_status image_crop(const Image *image, int64_t left, int64_t top, size_t width, size_t height,
                        const unsigned char color[3], Image *out, ferry_error *error);

/* Turned upright. */
ferry_status image_orient(const Image *image, int orientation, Image *out, ferry_error *error);

#endif
