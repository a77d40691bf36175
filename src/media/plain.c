/* Processors that resize, crop and normalize: CLIP, SigLIP, ViT, BiT, Llava, Gemma 3, and the kinds in
 * common. */
#include "base/error.h"
#include "base/buffer.h"
#include "media/processor.h"

#include <math.h>
#include <string.h>

/* ---- settings ---- */

#define COMMON                                                                                     \
    "\"do_resize\": true, \"do_rescale\": true, \"do_normalize\": true, \"rescale_factor\": "      \
    "0.00392156862745098"
#define CLIP_COLORS                                                                                \
    "\"image_mean\": [0.48145466, 0.4578275, 0.40821073],"                                         \
    "\"image_std\": [0.26862954, 0.26130258, 0.27577711]"
#define HALF_COLORS "\"image_mean\": 0.5, \"image_std\": 0.5"
#define CLIP                                                                                       \
    "{" COMMON "," CLIP_COLORS ", \"resample\": 3, \"size\": {\"shortest_edge\": 224},"            \
    "\"crop_size\": {\"height\": 224, \"width\": 224}, \"do_center_crop\": true}"
#define SQUARE(resample, square)                                                                   \
    "{" COMMON "," HALF_COLORS ", \"resample\": " resample ", \"default_to_square\": " square ","  \
    "\"size\": {\"height\": 224, \"width\": 224}}"
#define QWEN                                                                                       \
    "{" COMMON "," CLIP_COLORS                                                                     \
    ", \"resample\": 3, \"patch_size\": 14, \"temporal_patch_size\": 2,"                           \
    "\"merge_size\": 2, \"size\": {\"shortest_edge\": 3136, \"longest_edge\": 1003520}}"
#define TILES                                                                                      \
    "{" COMMON "," HALF_COLORS                                                                     \
    ", \"resample\": 1, \"do_image_splitting\": true, \"do_pad\": true,"                           \
    "\"size\": {\"longest_edge\": 1456}, \"max_image_size\": {\"longest_edge\": 364}}"

static void refuse_pan_and_scan(Config *config, ImageSettings *settings) {
    (void)settings;
    if (config_flag(config, "do_pan_and_scan"))
        config_fail(config, FERRY_UNSUPPORTED,
                    "\"do_pan_and_scan\" is not supported; set it to false");
}

static void read_patches(Config *config, ImageSettings *settings) {
    enum { MAX_PATCH = 256, MAX_FRAMES = 64, MAX_MERGE = 64, MAX_PIXELS = 1 << 30 };
    settings->patch_size = config_count(config, "patch_size", 1, MAX_PATCH);
    settings->temporal_patch_size = config_count(config, "temporal_patch_size", 1, MAX_FRAMES);
    settings->merge_size = config_count(config, "merge_size", 1, MAX_MERGE);
    /* Older names of the edges, which are numbers of pixels. */
    if (json_object_get(config->json, "min_pixels"))
        settings->size.shortest_edge = config_count(config, "min_pixels", 1, MAX_PIXELS);
    if (json_object_get(config->json, "max_pixels"))
        settings->size.longest_edge = config_count(config, "max_pixels", 1, MAX_PIXELS);
    if (!settings->size.shortest_edge || !settings->size.longest_edge)
        config_fail(config, FERRY_BAD_FORMAT,
                    "\"size\" needs \"shortest_edge\" and \"longest_edge\"");
}

static void read_tiles(Config *config, ImageSettings *settings) {
    settings->max_image_size = config_size(config, "max_image_size");
    settings->do_image_splitting = config_flag(config, "do_image_splitting");
    if (!settings->max_image_size.longest_edge)
        config_fail(config, FERRY_BAD_FORMAT, "\"max_image_size\" needs \"longest_edge\"");
}

static const ImageKind kinds[] = {
    {"CLIPImageProcessor", CLIP, NULL, process_plain},
    {"LlavaImageProcessor", CLIP, NULL, process_plain},
    {"BitImageProcessor", CLIP, NULL, process_plain},
    {"SiglipImageProcessor", SQUARE("3", "false"), NULL, process_plain},
    {"ViTImageProcessor", SQUARE("2", "true"), NULL, process_plain},
    {"Gemma3ImageProcessor", SQUARE("2", "true"), refuse_pan_and_scan, process_plain},
    {"Qwen2VLImageProcessor", QWEN, read_patches, process_patches},
    {"Idefics3ImageProcessor", TILES, read_tiles, process_tiles},
    {"SmolVLMImageProcessor", TILES, read_tiles, process_tiles},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const ImageKind *image_kind_find(const char *name) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        size_t length = strlen(kinds[i].name);
        if (strncmp(name, kinds[i].name, length) != 0) continue;
        /* Names of the backends in Transformers. */
        if (!name[length] || !strcmp(name + length, "Fast") || !strcmp(name + length, "Pil"))
            return &kinds[i];
    }
    return NULL;
}

void image_kinds_list(Buffer *out) {
    for (size_t i = 0; i < KIND_COUNT; i++)
        buffer_format(out, "%s%s", i ? ", " : "", kinds[i].name);
}

static Filter read_filter(Config *config) {
    static const Filter filters[] = {
        [1] = FILTER_LANCZOS, [2] = FILTER_BILINEAR, [3] = FILTER_BICUBIC};
    size_t code = config_count(config, "resample", 0, 5);
    if (code >= 1 && code <= 3) return filters[code];
    config_fail(config, FERRY_UNSUPPORTED,
                "\"resample\" is %zu; supported are 1 (Lanczos), 2 (bilinear) and 3 (bicubic)",
                code);
    return FILTER_BILINEAR;
}

void image_settings_read(Config *config, const ImageKind *kind, ImageSettings *settings) {
    settings->do_resize = config_flag(config, "do_resize");
    settings->do_center_crop = config_flag(config, "do_center_crop");
    settings->do_rescale = config_flag(config, "do_rescale");
    settings->do_normalize = config_flag(config, "do_normalize");
    settings->do_pad = config_flag(config, "do_pad");
    settings->size = config_size(config, "size");
    if (settings->do_center_crop) {
        settings->crop_size = config_size(config, "crop_size");
        if (!settings->crop_size.height || !settings->crop_size.width)
            config_fail(config, FERRY_BAD_FORMAT, "\"crop_size\" needs \"height\" and \"width\"");
    }
    settings->resample = read_filter(config);
    settings->rescale_factor = config_real(config, "rescale_factor");
    config_colors(config, "image_mean", settings->mean);
    config_colors(config, "image_std", settings->deviation);
    if (json_object_get(config->json, "image_seq_length"))
        settings->image_seq_length = config_count(config, "image_seq_length", 1, 1 << 20);
    if (!settings->do_rescale && !settings->do_normalize)
        config_fail(config, FERRY_UNSUPPORTED,
                    "\"do_rescale\" and \"do_normalize\" are both false");
    if (settings->do_pad && kind->process == process_plain &&
        strcmp(kind->name, "LlavaImageProcessor") != 0)
        config_fail(config, FERRY_UNSUPPORTED, "\"do_pad\" of %s is not supported", kind->name);
    if (kind->read) kind->read(config, settings);
}

/* ---- levels ---- */

void levels_make(const ImageSettings *s, Levels *out) {
    /* In the precision and order of torchvision's. */
    float inverse = (float)(1.0 / s->rescale_factor);
    for (int c = 0; c < 3; c++) {
        float mean = (float)s->mean[c], deviation = (float)s->deviation[c];
        if (s->do_rescale) {
            mean *= inverse;
            deviation *= inverse;
        }
        for (int byte = 0; byte < 256; byte++)
            out->of[c][byte] = s->do_normalize ? ((float)byte - mean) / deviation
                                               : (float)byte * (float)s->rescale_factor;
    }
}

void levels_write(const Levels *levels, const Image *image, float *out) {
    size_t pixels = image->width * image->height;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < pixels; i++)
            out[c * pixels + i] = levels->of[c][image->pixels[i * 3 + c]];
}

/* ---- sizes ---- */

/* The shortest edge as asked for, unless the longest would be too long. */
static void by_both_edges(const Size *size, const Image *image, size_t *width, size_t *height) {
    double w = (double)image->width, h = (double)image->height;
    double shortest = fmin(w, h), longest = fmax(w, h), edge = (double)size->shortest_edge,
           exact = edge;
    if (longest / shortest * edge > (double)size->longest_edge) {
        exact = (double)size->longest_edge * shortest / longest;
        edge = rint(exact);
    }
    *width = image->width;
    *height = image->height;
    if (shortest == edge) return;
    if (w < h) {
        *width = (size_t)edge;
        *height = (size_t)(exact * h / w);
    } else {
        *height = (size_t)edge;
        *width = (size_t)(exact * w / h);
    }
}

void image_target(const ImageSettings *settings, const Image *image, size_t *width,
                  size_t *height) {
    const Size *size = &settings->size;
    double w = (double)image->width, h = (double)image->height;
    *width = *height = 0;
    if (size->shortest_edge && size->longest_edge) {
        by_both_edges(size, image, width, height);
    } else if (size->shortest_edge) {
        size_t edge = size->shortest_edge;
        bool upright = image->width <= image->height;
        size_t other = (size_t)((double)edge * (upright ? h : w) / (upright ? w : h));
        *width = upright ? edge : other;
        *height = upright ? other : edge;
    } else if (size->max_height && size->max_width) {
        double scale = fmin((double)size->max_height / h, (double)size->max_width / w);
        *width = (size_t)(w * scale);
        *height = (size_t)(h * scale);
    } else if (size->height && size->width) {
        *width = size->width;
        *height = size->height;
    }
}

/* ---- the steps ---- */

typedef ferry_status Step(const ImageSettings *s, const Image *image, Image *out,
                          ferry_error *error);

static ferry_status pad_to_square(const ImageSettings *s, const Image *image, Image *out,
                                  ferry_error *error) {
    size_t edge = image->width > image->height ? image->width : image->height;
    unsigned char color[3];
    for (int c = 0; c < 3; c++) color[c] = (unsigned char)(int)(s->mean[c] * 255);
    TRY(image_check_size(NULL, edge, edge, IMAGE_MAX_PIXELS, error));
    return image_crop(image, -(int64_t)((edge - image->width) / 2),
                      -(int64_t)((edge - image->height) / 2), edge, edge, color, out, error);
}

static ferry_status resize(const ImageSettings *s, const Image *image, Image *out,
                           ferry_error *error) {
    size_t width, height;
    image_target(s, image, &width, &height);
    return image_resize(image, width, height, s->resample, out, error);
}

/* How far from the edge a crop begins; below 0 where the image is smaller. */
static int64_t crop_start(size_t has, size_t wanted) {
    return wanted > has ? -(int64_t)((wanted - has) / 2) : (int64_t)((has - wanted) / 2);
}

static ferry_status center_crop(const ImageSettings *s, const Image *image, Image *out,
                                ferry_error *error) {
    static const unsigned char black[3] = {0};
    size_t width = s->crop_size.width, height = s->crop_size.height;
    TRY(image_check_size(NULL, width, height, IMAGE_MAX_PIXELS, error));
    return image_crop(image, crop_start(image->width, width), crop_start(image->height, height),
                      width, height, black, out, error);
}

static ferry_status process_one(const ImageSettings *s, const Image *image, Image *out,
                                ferry_error *error) {
    Step *const steps[] = {s->do_pad ? pad_to_square : NULL, s->do_resize ? resize : NULL,
                           s->do_center_crop ? center_crop : NULL};
    *out = (Image){0};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        Image made = {0};
        if (!steps[i]) continue;
        ferry_status status = steps[i](s, out->pixels ? out : image, &made, error);
        image_free(out);
        *out = made;
        if (status != FERRY_OK) return status;
    }
    return out->pixels ? FERRY_OK : image_copy(image, out, error);
}

ferry_status process_plain(const ImageSettings *s, const ImageBatch *batch, ferry_tensors *out,
                           ferry_error *error) {
    Levels levels;
    ferry_tensor *tensor = NULL;
    levels_make(s, &levels);
    for (size_t i = 0; i < batch->count; i++) {
        Image image;
        TRY(process_one(s, &batch->images[i], &image, error));
        ferry_status status = FERRY_OK;
        int64_t shape[] = {(int64_t)batch->count, 3, (int64_t)image.height, (int64_t)image.width};
        if (!tensor)
            status = ferry_tensors_add(out, "pixel_values", FERRY_F32, 4, shape, &tensor, error);
        else if (memcmp(shape, tensor->shape, sizeof shape) != 0)
            status = error_set(
                error, FERRY_INVALID_ARGUMENT, batch->names[i],
                "becomes %zu x %zu pixels, others %lld x %lld; this model takes images of one "
                "size together",
                image.width, image.height, (long long)tensor->shape[3],
                (long long)tensor->shape[2]);
        if (status == FERRY_OK)
            levels_write(&levels, &image,
                         (float *)tensor->data + i * 3 * image.width * image.height);
        batch->items[i]->rows = image.height;
        batch->items[i]->columns = image.width;
        image_free(&image);
        TRY(status);
    }
    return FERRY_OK;
}
