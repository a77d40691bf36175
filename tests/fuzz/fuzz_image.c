/* Any bytes as a PNG or JPEG: refused with a message, or an image, which is resized and turned. */
#include "media/image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    Image image, other;
    if (image_decode("image", bytes, size, 1 << 18, &image, &error) != FERRY_OK) {
        expect(error.message[0] && !image.pixels);
        return 0;
    }
    size_t width = 1 + bytes[size / 2] % 40, height = 1 + bytes[size - 1] % 40;
    if (image_resize(&image, width, height, (Filter)(size % 3), &other, &error) == FERRY_OK)
        image_free(&other);
    if (image_orient(&image, 1 + (int)(size % 8), &other, &error) == FERRY_OK) image_free(&other);
    image_free(&image);
    return 0;
}
