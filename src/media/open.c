/* Opening a processor: the files that describe one, and the classes that they name. */
#include "base/error.h"
#include "base/file.h"
#include "media/processor.h"
#include "text/special_tokens.h"

#include <stdlib.h>
#include <string.h>

static ferry_status read_file(const char *path, json_t **out, ferry_error *error) {
    return path_exists(path) ? json_read_texts(path, out, error) : FERRY_OK;
}

static ferry_status read_files(ferry_processor *p, ProcessorFiles *f, ferry_error *error) {
    f->whole_path = path_join(&p->arena, f->directory, "processor_config.json");
    f->part_path = path_join(&p->arena, f->directory, "preprocessor_config.json");
    TRY(read_file(f->whole_path, &f->whole, error));
    TRY(read_file(f->part_path, &f->part, error));
    if (!f->whole && !f->part)
        return error_set(error, FERRY_NOT_FOUND, f->directory,
                         "has no processor_config.json and no preprocessor_config.json; does the "
                         "model take images "
                         "or sounds?");
    return special_tokens_read(f->directory, &f->tokens, &f->tokenizer, error);
}

/* The settings of a part: nested in the one file, or the other file. */
static const json_t *part_settings(const ProcessorFiles *f, const char *nested, const char **path) {
    const json_t *found = json_object_get(f->whole, nested);
    *path = json_is_object(found) ? f->whole_path : f->part_path;
    return json_is_object(found) ? found : f->part;
}

static const char *text_of(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

static ferry_status unknown_kind(const char *path, const char *name, ferry_error *error) {
    Buffer known = {0};
    image_kinds_list(&known);
    ferry_status status =
        error_set(error, FERRY_UNSUPPORTED, path,
                  "the processor %s is not supported; these are: %s, WhisperFeatureExtractor", name,
                  buffer_string(&known));
    buffer_free(&known);
    return status;
}

/* "CLIPImageProcessor" for "CLIPFeatureExtractor", as images had them once; NULL for those of sounds. */
static const char *old_image_kind(ferry_processor *p, const json_t *settings) {
    const char *old = text_of(settings, "feature_extractor_type");
    const char *end = old ? strstr(old, "FeatureExtractor") : NULL;
    if (!end) return NULL;
    const char *name = arena_format(&p->arena, "%.*sImageProcessor", (int)(end - old), old);
    return image_kind_find(name) ? name : NULL;
}

static ferry_status read_image(ferry_processor *p, const ProcessorFiles *f, ferry_error *error) {
    Config config;
    const char *path;
    const json_t *settings = part_settings(f, "image_processor", &path);
    const char *name = text_of(settings, "image_processor_type");
    if (!name) name = old_image_kind(p, settings);
    if (!name) return FERRY_OK;
    p->image = image_kind_find(name);
    if (!p->image) return unknown_kind(path, name, error);
    config_make(&config, path, p->image->defaults, settings, error);
    if (config.status == FERRY_OK) image_settings_read(&config, p->image, &p->image_settings);
    config_free(&config);
    return config.status;
}

#define WHISPER                                                                                    \
    "{\"feature_size\": 80, \"sampling_rate\": 16000, \"hop_length\": 160, \"chunk_length\": 30,"  \
    "\"n_fft\": 400, \"padding_value\": 0.0, \"dither\": 0.0, \"return_attention_mask\": false}"

static ferry_status read_audio(ferry_processor *p, const ProcessorFiles *f, ferry_error *error) {
    Config config;
    const char *path;
    const json_t *settings = part_settings(f, "feature_extractor", &path);
    const char *name = text_of(settings, "feature_extractor_type");
    if (!name || old_image_kind(p, settings)) return FERRY_OK;
    if (strcmp(name, "WhisperFeatureExtractor") != 0) return unknown_kind(path, name, error);
    config_make(&config, path, WHISPER, settings, error);
    if (config.status == FERRY_OK) audio_settings_read(&config, &p->audio_settings);
    config_free(&config);
    p->has_audio = config.status == FERRY_OK;
    return config.status;
}

static ferry_status read_prompt(ferry_processor *p, const ProcessorFiles *f, ferry_error *error) {
    Config config;
    const json_t *const places[] = {f->whole, f->part, f->tokenizer};
    for (size_t i = 0; i < sizeof places / sizeof *places && !p->class_name; i++) {
        const char *name = text_of(places[i], "processor_class");
        if (name) p->class_name = arena_string(&p->arena, name);
    }
    p->prompt = p->class_name ? prompt_kind_find(p->class_name) : NULL;
    if (!p->prompt) return FERRY_OK;
    config_make(&config, f->whole ? f->whole_path : f->part_path, p->prompt->defaults, f->whole,
                error);
    if (config.status == FERRY_OK)
        p->prompt->read(&config, f->tokens, &p->image_settings, &p->arena, &p->prompt_settings);
    config_free(&config);
    /* Where sounds stand in prompts, masks of theirs are told from the prompt's. */
    if (p->prompt_settings.audio && p->has_audio) {
        p->audio_settings.return_attention_mask = true;
        p->audio_settings.mask_name = "feature_attention_mask";
    }
    return config.status;
}

ferry_status processor_read(ferry_processor *p, const ProcessorFiles *f, ferry_error *error) {
    TRY(read_image(p, f, error));
    TRY(read_audio(p, f, error));
    if (!p->image && !p->has_audio)
        return error_set(error, FERRY_UNSUPPORTED, f->part ? f->part_path : f->whole_path,
                         "names no \"image_processor_type\" and no \"feature_extractor_type\"");
    TRY(read_prompt(p, f, error));
    return p->arena.failed ? error_memory(error, f->directory, 0) : FERRY_OK;
}

ferry_status ferry_processor_open(const char *path, ferry_processor **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_processor *p = calloc(1, sizeof *p);
    if (!p) return error_memory(error, path, sizeof *p);
    p->path = arena_string(&p->arena, path);
    ProcessorFiles files = {.directory = path};
    ferry_status status = read_files(p, &files, error);
    if (status == FERRY_OK) status = processor_read(p, &files, error);
    json_decref(files.whole);
    json_decref(files.part);
    json_decref(files.tokens);
    json_decref(files.tokenizer);
    if (status == FERRY_OK)
        *out = p;
    else
        ferry_processor_close(p);
    return status;
}

void ferry_processor_close(ferry_processor *processor) {
    if (!processor) return;
    arena_free(&processor->arena);
    free(processor);
}

const char *ferry_processor_image_token(const ferry_processor *processor) {
    return processor->prompt_settings.image;
}

const char *ferry_processor_audio_token(const ferry_processor *processor) {
    return processor->prompt_settings.audio;
}
