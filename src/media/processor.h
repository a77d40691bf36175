/* Processors: what was read from the configuration of one, and what it makes of images and sounds. */
#ifndef MEDIA_PROCESSOR_H
#define MEDIA_PROCESSOR_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/vec.h"
#include "media/audio.h"
#include "media/config.h"
#include "media/image.h"
#include <ferry/media.h>

/* ---- what came out ---- */

/* An image or a sound: what its place in a prompt depends on. */
typedef struct Item {
    bool is_audio;
    size_t rows,
        columns;   /* of an image: its pixels, its patches or its tiles, as the processor counts */
    size_t frames; /* of a sound: those that are not padding */
    size_t tokens; /* that hold its features */
    const char *text; /* what replaces its place; set by the prompt's kind */
} Item;

struct ferry_processed {
    Arena arena;
    const ferry_processor *processor;
    ferry_tensors *tensors;
    VEC(Item) items; /* in the order of the prompt */
};

/* ---- images ---- */

typedef struct ImageSettings {
    bool do_resize, do_center_crop, do_rescale, do_normalize, do_pad, do_image_splitting;
    Size size, crop_size, max_image_size;
    Filter resample;
    double rescale_factor, mean[3], deviation[3];
    size_t patch_size, temporal_patch_size, merge_size;
    size_t image_seq_length; /* 0: not said */
} ImageSettings;

/* Images of one prompt, with their names; the items are those of the images. */
typedef struct ImageBatch {
    const Image *images;
    const char *const *names;
    Item **items;
    size_t count;
} ImageBatch;

typedef struct ImageKind {
    const char *name;                                      /* "CLIPImageProcessor" */
    const char *defaults;                                  /* JSON */
    void (*read)(Config *config, ImageSettings *settings); /* what it has of its own; may be NULL */
    ferry_status (*process)(const ImageSettings *settings, const ImageBatch *batch,
                            ferry_tensors *out, ferry_error *error);
} ImageKind;

/* NULL when there is none of this name. */
const ImageKind *image_kind_find(const char *name);
void image_kinds_list(Buffer *out);
void image_settings_read(Config *config, const ImageKind *kind, ImageSettings *settings);

/* Bytes to what the model takes: scaled and normalized, one plane for each color. */
typedef struct Levels {
    float of[3][256];
} Levels;

void levels_make(const ImageSettings *settings, Levels *out);
void levels_write(const Levels *levels, const Image *image, float *out);

/* The size that an image is resized to. 0 x 0 when the settings do not say. */
void image_target(const ImageSettings *settings, const Image *image, size_t *width, size_t *height);

ferry_status process_plain(const ImageSettings *settings, const ImageBatch *batch,
                           ferry_tensors *out, ferry_error *error);
ferry_status process_patches(const ImageSettings *settings, const ImageBatch *batch,
                             ferry_tensors *out, ferry_error *error);
ferry_status process_tiles(const ImageSettings *settings, const ImageBatch *batch,
                           ferry_tensors *out, ferry_error *error);

/* ---- sounds ---- */

typedef struct AudioSettings {
    MelSettings mel;
    size_t samples; /* that every sound is cut or filled up to */
    double padding_value;
    bool return_attention_mask;
    const char *mask_name;
} AudioSettings;

typedef struct AudioBatch {
    const Audio *sounds; /* at the rate of the settings */
    const char *const *names;
    Item **items;
    size_t count;
} AudioBatch;

void audio_settings_read(Config *config, AudioSettings *settings);
ferry_status process_audio(const AudioSettings *settings, const AudioBatch *batch,
                           ferry_tensors *out, ferry_error *error);

/* ---- prompts ---- */

typedef struct PromptSettings {
    const char *image, *audio;             /* what stands for one in a prompt; NULL: nothing does */
    const char *image_token, *audio_token; /* what is repeated */
    const char *bos, *begin, *end, *fake, *global; /* tokens around images */
    size_t patch_size, image_length, merge_size, additional;
    bool leaves_one_out; /* the features lack the class token */
    bool no_special_tokens;
} PromptSettings;

/* Which input tells the kinds of tokens, and does it mark those of images and sounds? */
typedef enum TokenTypes { TYPES_NONE, TYPES_ZERO, TYPES_MARKED, TYPES_MM_MARKED } TokenTypes;

typedef struct PromptKind {
    const char *name; /* "LlavaProcessor" */
    TokenTypes types;
    const char *defaults; /* JSON, of processor_config.json */
    /* Read what it needs; `tokens` are the special tokens by name. */
    void (*read)(Config *config, const json_t *tokens, const ImageSettings *image, Arena *arena,
                 PromptSettings *settings);
    /* Set what replaces the item's place. */
    void (*replace)(const PromptSettings *settings, Item *item, Buffer *out);
    /* What is done to the prompt before; NULL: nothing. */
    void (*prepare)(const PromptSettings *settings, size_t images, Buffer *prompt);
} PromptKind;

const PromptKind *prompt_kind_find(const char *name);

/* A prompt with all places replaced, appended. */
ferry_status prompt_expand(const ferry_processed *processed, const char *prompt, size_t length,
                           Buffer *out, ferry_error *error);

/* ---- a processor ---- */

struct ferry_processor {
    Arena arena;
    const char *path;
    const char *class_name; /* processor_class; NULL: not said */
    const ImageKind *image; /* NULL: takes none */
    ImageSettings image_settings;
    bool has_audio;
    AudioSettings audio_settings;
    const PromptKind
        *prompt; /* NULL: nothing stands for images in prompts, or it is not known what */
    PromptSettings prompt_settings;
};

/* What the files of a checkpoint say; each may be NULL. */
typedef struct ProcessorFiles {
    const char *directory, *whole_path, *part_path;
    json_t *whole; /* processor_config.json */
    json_t *part;  /* preprocessor_config.json */
    json_t *tokens, *tokenizer;
} ProcessorFiles;

/* Read them into a processor that is all zero. */
ferry_status processor_read(ferry_processor *processor, const ProcessorFiles *files,
                            ferry_error *error);

#endif
