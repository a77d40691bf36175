/* Any JSON as the configuration of a processor: {"whole": processor_config.json, "part":
 * preprocessor_config.json, "tokens": special tokens, "prompt": text}. Refused with a message, or an image and
 * a sound are processed, and the prompt is expanded. */
#include "media/processor.h"
#include "mutate_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* 4 x 2 pixels. */
static const unsigned char png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0x5a,
    0xc3, 0x22, 0xbf, 0x00, 0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x60,
    0x64, 0x62, 0x66, 0x61, 0x60, 0x65, 0x63, 0xe7, 0x00, 0x00, 0x00, 0x8c, 0x00, 0x25, 0xd2,
    0x20, 0x50, 0x19, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static const unsigned char wav[] = {'R', 'I', 'F',  'F',  44, 0, 0,  0,   'W', 'A', 'V', 'E',  'f',
                                    'm', 't', ' ',  16,   0,  0, 0,  1,   0,   1,   0,   0x40, 0x1f,
                                    0,   0,   0x40, 0x1f, 0,  0, 1,  0,   8,   0,   'd', 'a',  't',
                                    'a', 8,   0,    0,    0,  0, 50, 100, 200, 255, 128, 7,    9};

static void expect(bool holds) {
    if (!holds) abort();
}

static void ignore(void *context, const char *text, size_t length) {
    (void)context, (void)text, (void)length;
}

/* Would it take long, or much memory? */
static bool is_large(const ferry_processor *p) {
    const ImageSettings *s = &p->image_settings;
    const Size *sizes[] = {&s->size, &s->crop_size, &s->max_image_size};
    for (size_t i = 0; i < 3; i++)
        if (sizes[i]->height > 300 || sizes[i]->width > 300 || sizes[i]->max_height > 300 ||
            sizes[i]->max_width > 300 || (sizes[i]->shortest_edge > 300 && !s->patch_size))
            return true;
    if (s->max_image_size.longest_edge > 128 ||
        (s->max_image_size.longest_edge && s->max_image_size.longest_edge < 8))
        return true;
    if (s->patch_size * s->merge_size * s->temporal_patch_size > 200 ||
        s->size.shortest_edge > 90000)
        return true;
    if (p->prompt_settings.image_length > 4096) return true;
    const AudioSettings *a = &p->audio_settings;
    return p->has_audio && (a->samples / a->mel.hop * (a->mel.window + a->mel.bands) > 400000 ||
                            a->samples > 1000000);
}

static void process(const ferry_processor *p, const char *prompt) {
    ferry_media media[] = {
        {NULL, png, sizeof png}, {NULL, wav, sizeof wav}, {NULL, png, sizeof png}};
    ferry_error error = {0};
    ferry_processed *out;
    size_t first = p->image ? 0 : 1, count = p->image ? 1 : 1;
    if (p->image && p->has_audio) count = 3;
    ferry_status status = ferry_processor_run(p, media + first, count, &out, &error);
    if (status == FERRY_OK)
        status = ferry_processed_expand(out, prompt, strlen(prompt), ignore, NULL, &error);
    expect(status != FERRY_INTERNAL && (status == FERRY_OK || error.message[0]));
    ferry_processed_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    const char *prompt = json_string_value(json_object_get(root, "prompt"));
    ProcessorFiles files = {.directory = "model",
                            .whole_path = "processor_config.json",
                            .part_path = "preprocessor_config.json",
                            .whole = json_object_get(root, "whole"),
                            .part = json_object_get(root, "part"),
                            .tokens = json_object_get(root, "tokens")};
    ferry_processor *p = calloc(1, sizeof *p);
    p->path = "model";
    if (processor_read(p, &files, &error) == FERRY_OK) {
        if (!is_large(p)) process(p, prompt ? prompt : "<image><|AUDIO|>");
    } else {
        expect(error.message[0]);
    }
    ferry_processor_close(p);
    json_decref(root);
    return 0;
}
