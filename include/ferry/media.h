/* Images and sounds into models: what the processor of a checkpoint makes of files, and of the places in a
 * prompt that stand for them.
 *
 *     ferry_processor *processor;
 *     ferry_processed *processed;
 *     ferry_media cat = {.path = "cat.png"};
 *     ferry_processor_open("my-model", &processor, &error);
 *     ferry_processor_run(processor, &cat, 1, &processed, &error);
 *     ferry_processed_add_prompt(processed, tokenizer, "<image>\nWhat is this?", 21, true, &error);
 *     ... ferry_processed_tensors(processed): "pixel_values", "input_ids", "attention_mask"
 *     ferry_processed_free(processed);
 *     ferry_processor_close(processor);
 */
#ifndef FERRY_MEDIA_H
#define FERRY_MEDIA_H

#include <ferry/model.h>
#include <ferry/tensor.h>
#include <ferry/text.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferry_processor ferry_processor;

/* Open what processor_config.json and preprocessor_config.json of a directory describe. NOT_FOUND where
 * there is neither, UNSUPPORTED, with its name, for a processor that ferry has not. It does not change:
 * threads may share one. */
FERRY_API ferry_status ferry_processor_open(const char *path, ferry_processor **out,
                                            ferry_error *error);
FERRY_API void ferry_processor_close(ferry_processor *processor);

/* What stands for an image, or for a sound, in a prompt, as a user or a chat template writes it, such as
 * "<image>"; NULL when the model takes none, or when they have no place in prompts. Valid while the
 * processor is open. */
FERRY_API const char *ferry_processor_image_token(const ferry_processor *processor);
FERRY_API const char *ferry_processor_audio_token(const ferry_processor *processor);

/* An image (PNG or JPEG) or a sound (WAV): a file, or the bytes of one when `path` is NULL. */
typedef struct ferry_media {
    const char *path;
    const void *bytes;
    size_t size;
} ferry_media;

/* What became of them. */
typedef struct ferry_processed ferry_processed;

/* Process images and sounds, in the order of their places in the prompt. */
FERRY_API ferry_status ferry_processor_run(const ferry_processor *processor,
                                           const ferry_media *media, size_t count,
                                           ferry_processed **out, ferry_error *error);
FERRY_API void ferry_processed_free(ferry_processed *processed);

/* The inputs of the model, by their names: pixel_values, image_grid_thw, pixel_attention_mask,
 * input_features, ... They belong to `processed`. */
FERRY_API const ferry_tensors *ferry_processed_tensors(const ferry_processed *processed);

/* How many tokens of a prompt hold the features of the item at `index`; 0 past the last one, and where
 * items have no place in prompts. */
FERRY_API size_t ferry_processed_tokens(const ferry_processed *processed, size_t index);

/* The token that is repeated for the features of images, or of sounds, in an expanded prompt; NULL as above.
 * Valid while `processed` is. */
FERRY_API const char *ferry_processed_token(const ferry_processed *processed, size_t index);

/* Encode a prompt, expanded as ferry_processed_expand does it, and add input_ids, attention_mask and, for models
 * that take them, token_type_ids or mm_token_type_ids to the inputs; once. `special_tokens`: with those that
 * the tokenizer adds; false for what a chat template wrote. Where expansion itself writes them, none are
 * added. */
FERRY_API ferry_status ferry_processed_add_prompt(ferry_processed *processed,
                                                  ferry_tokenizer *tokenizer, const char *prompt,
                                                  size_t length, bool special_tokens,
                                                  ferry_error *error);

/* Write a prompt with every place for an image or a sound replaced by what the model expects there, in one
 * piece. INVALID_ARGUMENT when places and items differ in number. */
FERRY_API ferry_status ferry_processed_expand(const ferry_processed *processed, const char *prompt,
                                              size_t length, ferry_write write, void *context,
                                              ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
