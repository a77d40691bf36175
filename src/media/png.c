/* PNG, with libpng: any depth and color, as 8-bit RGB. Of 16 bits the high ones count, as in Pillow. */
#include "base/error.h"
#include "media/image.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const char *name;
    const unsigned char *bytes;
    size_t size, at, max_pixels;
    char problem[200];
    png_structp png;
    png_infop info;
    unsigned char **rows;
} Reader;

static void read_bytes(png_structp png, png_bytep out, size_t count) {
    Reader *reader = png_get_io_ptr(png);
    if (count > reader->size - reader->at) png_error(png, "the file ends early");
    memcpy(out, reader->bytes + reader->at, count);
    reader->at += count;
}

static void on_error(png_structp png, png_const_charp message) {
    Reader *reader = png_get_error_ptr(png);
    snprintf(reader->problem, sizeof reader->problem, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

static void set_conversions(Reader *reader) {
    png_set_expand(reader->png);
    png_set_strip_16(reader->png);
    png_set_gray_to_rgb(reader->png);
    png_set_strip_alpha(reader->png);
    png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
}

/* Everything that may jump back here. */
static ferry_status decode(Reader *reader, Image *out, int *orientation, ferry_error *error) {
    if (setjmp(png_jmpbuf(reader->png)))
        return error_set(error, FERRY_BAD_FORMAT, reader->name, "the PNG is damaged: %s",
                         reader->problem);
    png_set_read_fn(reader->png, reader, read_bytes);
    png_set_user_limits(reader->png, 0x7fffffff, 0x7fffffff);
    png_read_info(reader->png, reader->info);
    size_t width = png_get_image_width(reader->png, reader->info);
    size_t height = png_get_image_height(reader->png, reader->info);
    TRY(image_check_size(reader->name, width, height, reader->max_pixels, error));
    set_conversions(reader);
    if (png_get_rowbytes(reader->png, reader->info) != width * 3)
        return error_set(error, FERRY_INTERNAL, reader->name, "rows of another size than expected");
    TRY(image_new(reader->name, width, height, out, error));
    reader->rows = calloc(height, sizeof *reader->rows);
    if (!reader->rows) return error_memory(error, reader->name, height * sizeof *reader->rows);
    for (size_t y = 0; y < height; y++) reader->rows[y] = out->pixels + y * width * 3;
    png_read_image(reader->png, reader->rows);
    png_read_end(reader->png, reader->info);
    png_bytep exif = NULL;
    png_uint_32 length = 0;
    if (png_get_eXIf_1(reader->png, reader->info, &length, &exif))
        *orientation = exif_orientation(exif, length);
    return FERRY_OK;
}

ferry_status png_decode(const char *name, const unsigned char *bytes, size_t size,
                        size_t max_pixels, Image *out, int *orientation, ferry_error *error) {
    Reader reader = {.name = name, .bytes = bytes, .size = size, .max_pixels = max_pixels};
    reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
    reader.info = reader.png ? png_create_info_struct(reader.png) : NULL;
    ferry_status status =
        reader.info ? decode(&reader, out, orientation, error) : error_memory(error, name, 0);
    png_destroy_read_struct(&reader.png, &reader.info, NULL);
    free(reader.rows);
    return status;
}
