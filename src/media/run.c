/* Running a processor: files are told apart by their content, decoded, and given to the image and the audio
 * part together. */
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "media/processor.h"

#include <stdlib.h>
#include <string.h>

/* What was decoded, with the item of each. */
typedef struct Decoded {
    VEC(Image) images;
    VEC(Audio) sounds;
    VEC(const char *) image_names, sound_names;
    VEC(Item *) image_items, sound_items;
} Decoded;

static void decoded_free(Decoded *d) {
    for (size_t i = 0; i < d->images.count; i++) image_free(&d->images.items[i]);
    for (size_t i = 0; i < d->sounds.count; i++) audio_free(&d->sounds.items[i]);
    VEC_FREE(&d->images);
    VEC_FREE(&d->sounds);
    VEC_FREE(&d->image_names);
    VEC_FREE(&d->sound_names);
    VEC_FREE(&d->image_items);
    VEC_FREE(&d->sound_items);
}

static ferry_status add_image(const ferry_processor *p, const char *name,
                              const unsigned char *bytes, size_t size, Item *item, Decoded *d,
                              ferry_error *error) {
    Image image;
    if (!p->image)
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "is an image; this model takes none");
    TRY(image_decode(name, bytes, size, IMAGE_MAX_PIXELS, &image, error));
    VEC_PUSH(&d->images, image);
    if (d->images.failed) image_free(&image);
    VEC_PUSH(&d->image_names, name);
    VEC_PUSH(&d->image_items, item);
    return FERRY_OK;
}

static ferry_status add_sound(const ferry_processor *p, const char *name,
                              const unsigned char *bytes, size_t size, Item *item, Decoded *d,
                              ferry_error *error) {
    Audio audio, sound;
    if (!p->has_audio)
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "is a sound; this model takes none");
    TRY(audio_decode(name, bytes, size, &audio, error));
    ferry_status status = audio_resample(name, &audio, p->audio_settings.mel.rate, &sound, error);
    audio_free(&audio);
    TRY(status);
    item->is_audio = true;
    VEC_PUSH(&d->sounds, sound);
    if (d->sounds.failed) audio_free(&sound);
    VEC_PUSH(&d->sound_names, name);
    VEC_PUSH(&d->sound_items, item);
    return FERRY_OK;
}

static ferry_status add_bytes(const ferry_processor *p, const char *name,
                              const unsigned char *bytes, size_t size, Item *item, Decoded *d,
                              ferry_error *error) {
    if (image_is_png(bytes, size) || image_is_jpeg(bytes, size))
        return add_image(p, name, bytes, size, item, d, error);
    if (audio_is_wav(bytes, size)) return add_sound(p, name, bytes, size, item, d, error);
    return error_set(error, FERRY_UNSUPPORTED, name, "is no PNG, no JPEG and no WAV file");
}

static ferry_status add_media(ferry_processed *out, const ferry_media *media, size_t index,
                              Decoded *d, ferry_error *error) {
    Item *item = &out->items.items[index];
    if (!media->path)
        return add_bytes(out->processor, arena_format(&out->arena, "item %zu", index), media->bytes,
                         media->size, item, d, error);
    MappedFile file;
    TRY(file_map(media->path, &out->arena, &file, error));
    ferry_status status =
        add_bytes(out->processor, file.path, file.bytes, file.size, item, d, error);
    file_unmap(&file);
    return status;
}

static ferry_status process(ferry_processed *out, const Decoded *d, ferry_error *error) {
    const ferry_processor *p = out->processor;
    if (d->images.failed || d->image_names.failed || d->image_items.failed || d->sounds.failed ||
        d->sound_names.failed || d->sound_items.failed)
        return error_memory(error, p->path, 0);
    if (d->images.count) {
        ImageBatch batch = {d->images.items, d->image_names.items, d->image_items.items,
                            d->images.count};
        TRY(p->image->process(&p->image_settings, &batch, out->tensors, error));
    }
    if (d->sounds.count) {
        AudioBatch batch = {d->sounds.items, d->sound_names.items, d->sound_items.items,
                            d->sounds.count};
        TRY(process_audio(&p->audio_settings, &batch, out->tensors, error));
    }
    return FERRY_OK;
}

static ferry_status make_texts(ferry_processed *out, ferry_error *error) {
    const ferry_processor *p = out->processor;
    for (size_t i = 0; p->prompt && i < out->items.count; i++) {
        Item *item = &out->items.items[i];
        Buffer text = {0};
        if (item->is_audio ? p->prompt_settings.audio : p->prompt_settings.image)
            p->prompt->replace(&p->prompt_settings, item, &text);
        item->text = arena_string_n(&out->arena, buffer_string(&text), text.length);
        bool failed = text.failed || out->arena.failed;
        buffer_free(&text);
        if (failed) return error_memory(error, p->path, 0);
    }
    return FERRY_OK;
}

static ferry_status run(ferry_processed *out, const ferry_media *media, size_t count,
                        ferry_error *error) {
    Decoded decoded = {0};
    ferry_status status = FERRY_OK;
    for (size_t i = 0; i < count; i++) VEC_PUSH(&out->items, (Item){0});
    if (out->items.failed || !out->tensors) status = error_memory(error, out->processor->path, 0);
    for (size_t i = 0; status == FERRY_OK && i < count; i++)
        status = add_media(out, &media[i], i, &decoded, error);
    if (status == FERRY_OK) status = process(out, &decoded, error);
    if (status == FERRY_OK) status = make_texts(out, error);
    decoded_free(&decoded);
    return status;
}

ferry_status ferry_processor_run(const ferry_processor *processor, const ferry_media *media,
                                 size_t count, ferry_processed **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_processed *processed = calloc(1, sizeof *processed);
    if (!processed) return error_memory(error, processor->path, sizeof *processed);
    processed->processor = processor;
    processed->tensors = ferry_tensors_new();
    ferry_status status = run(processed, media, count, error);
    if (status == FERRY_OK)
        *out = processed;
    else
        ferry_processed_free(processed);
    return status;
}

void ferry_processed_free(ferry_processed *processed) {
    if (!processed) return;
    ferry_tensors_free(processed->tensors);
    VEC_FREE(&processed->items);
    arena_free(&processed->arena);
    free(processed);
}

const ferry_tensors *ferry_processed_tensors(const ferry_processed *processed) {
    return processed->tensors;
}

size_t ferry_processed_tokens(const ferry_processed *processed, size_t index) {
    return index < processed->items.count ? processed->items.items[index].tokens : 0;
}

const char *ferry_processed_token(const ferry_processed *processed, size_t index) {
    const PromptSettings *s = &processed->processor->prompt_settings;
    if (index >= processed->items.count) return NULL;
    return processed->items.items[index].is_audio ? s->audio_token : s->image_token;
}
