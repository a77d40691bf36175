/* JPEG, with libjpeg-turbo: baseline and progressive, gray, YCbCr, RGB, CMYK and YCCK, as RGB. */
#include "base/error.h"
#include "media/image.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* A file of more scans than anyone writes, each over the whole image, is made to take time. */
enum { MAX_SCANS = 500 };

typedef struct Reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    char problem[JMSG_LENGTH_MAX];
    const char *name;
    size_t max_pixels;
    unsigned char *row; /* of CMYK */
} Reader;

static void on_error(j_common_ptr jpeg) {
    Reader *reader = jpeg->client_data;
    jpeg->err->format_message(jpeg, reader->problem);
    longjmp(reader->back, 1);
}

static void on_message(j_common_ptr jpeg) {
    (void)jpeg;
}

static void on_progress(j_common_ptr jpeg) {
    Reader *reader = jpeg->client_data;
    if (!jpeg->is_decompressor || reader->jpeg.input_scan_number <= MAX_SCANS) return;
    snprintf(reader->problem, sizeof reader->problem, "more than %d scans", MAX_SCANS);
    longjmp(reader->back, 1);
}

static int find_orientation(const Reader *reader) {
    static const char mark[6] = "Exif\0";
    for (jpeg_saved_marker_ptr m = reader->jpeg.marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > sizeof mark &&
            !memcmp(m->data, mark, sizeof mark))
            return exif_orientation(m->data + sizeof mark, m->data_length - sizeof mark);
    return 1;
}

/* Of a row of CMYK, which Adobe's files hold inverted. */
static void convert_row(const Reader *reader, unsigned char *out, size_t width) {
    bool inverted = reader->jpeg.saw_Adobe_marker;
    for (size_t x = 0; x < width; x++) {
        const unsigned char *from = reader->row + x * 4;
        unsigned white = inverted ? from[3] : 255u - from[3];
        for (int c = 0; c < 3; c++) {
            unsigned color = inverted ? from[c] : 255u - from[c];
            unsigned product = color * white + 128;
            out[x * 3 + (size_t)c] = (unsigned char)((product + (product >> 8)) >> 8);
        }
    }
}

/* Everything that may jump back here. */
static ferry_status decode(Reader *reader, const unsigned char *bytes, size_t size, Image *out,
                           int *orientation, ferry_error *error) {
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    if (setjmp(reader->back))
        return error_set(error, FERRY_BAD_FORMAT, reader->name, "the JPEG is damaged: %s",
                         reader->problem);
    jpeg_create_decompress(jpeg);
    jpeg->progress = &reader->progress;
    jpeg_mem_src(jpeg, bytes, size);
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(jpeg, TRUE);
    TRY(image_check_size(reader->name, jpeg->image_width, jpeg->image_height, reader->max_pixels,
                         error));
    bool cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(jpeg);
    size_t width = jpeg->output_width;
    TRY(image_new(reader->name, width, jpeg->output_height, out, error));
    if (cmyk && !(reader->row = malloc(width * 4)))
        return error_memory(error, reader->name, width * 4);
    while (jpeg->output_scanline < jpeg->output_height) {
        unsigned char *row = out->pixels + (size_t)jpeg->output_scanline * width * 3;
        unsigned char *to = cmyk ? reader->row : row;
        jpeg_read_scanlines(jpeg, &to, 1);
        if (cmyk) convert_row(reader, row, width);
    }
    *orientation = find_orientation(reader);
    /* A file that ends early decodes with gray where the rest would be; say so instead. */
    if (jpeg->err->num_warnings > 0)
        return error_set(error, FERRY_BAD_FORMAT, reader->name,
                         "the JPEG is damaged: it ends early, or its data are corrupt");
    return FERRY_OK;
}

ferry_status jpeg_decode(const char *name, const unsigned char *bytes, size_t size,
                         size_t max_pixels, Image *out, int *orientation, ferry_error *error) {
    Reader reader = {.name = name, .max_pixels = max_pixels};
    reader.jpeg.err = jpeg_std_error(&reader.errors);
    reader.jpeg.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.output_message = on_message;
    reader.progress.progress_monitor = on_progress;
    ferry_status status = decode(&reader, bytes, size, out, orientation, error);
    jpeg_destroy_decompress(&reader.jpeg);
    free(reader.row);
    return status;
}
