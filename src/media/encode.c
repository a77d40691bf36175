/* A prompt as inputs of the model. */
#include "base/error.h"
#include "media/processor.h"

static ferry_status add_row(ferry_tensors *tensors, const char *name, size_t count, int64_t **out,
                            ferry_error *error) {
    int64_t shape[] = {1, (int64_t)count};
    ferry_tensor *tensor;
    TRY(ferry_tensors_add(tensors, name, FERRY_I64, 2, shape, &tensor, error));
    *out = tensor->data;
    return FERRY_OK;
}

/* 1 for the tokens of images, 3 for those of sounds, as Transformers numbers them. */
static void mark(const PromptSettings *s, const ferry_tokenizer *tokenizer,
                 const ferry_encoding *encoding, int64_t *types) {
    uint32_t image, audio;
    bool has_image = s->image_token && ferry_tokenizer_id(tokenizer, s->image_token, &image);
    bool has_audio = s->audio_token && ferry_tokenizer_id(tokenizer, s->audio_token, &audio);
    for (size_t i = 0; i < encoding->count; i++)
        types[i] = has_image && encoding->ids[i] == image   ? 1
                   : has_audio && encoding->ids[i] == audio ? 3
                                                            : 0;
}

static ferry_status add_encoding(ferry_processed *p, const ferry_tokenizer *tokenizer,
                                 const ferry_encoding *encoding, ferry_error *error) {
    int64_t *ids, *mask, *types;
    const PromptKind *kind = p->processor->prompt;
    TRY(add_row(p->tensors, "input_ids", encoding->count, &ids, error));
    TRY(add_row(p->tensors, "attention_mask", encoding->count, &mask, error));
    for (size_t i = 0; i < encoding->count; i++) {
        ids[i] = encoding->ids[i];
        mask[i] = encoding->attention_mask[i];
    }
    if (!kind || kind->types == TYPES_NONE) return FERRY_OK;
    TRY(add_row(p->tensors, kind->types == TYPES_MM_MARKED ? "mm_token_type_ids" : "token_type_ids",
                encoding->count, &types, error));
    if (kind->types != TYPES_ZERO) mark(&p->processor->prompt_settings, tokenizer, encoding, types);
    return FERRY_OK;
}

ferry_status ferry_processed_add_prompt(ferry_processed *p, ferry_tokenizer *tokenizer,
                                        const char *prompt, size_t length, bool special_tokens,
                                        ferry_error *error) {
    Buffer text = {0};
    ferry_encoding *encoding = NULL;
    ferry_encode_config config;
    error_clear(error);
    ferry_encode_config_init(&config);
    config.special_tokens = special_tokens && !p->processor->prompt_settings.no_special_tokens;
    ferry_status status = prompt_expand(p, prompt, length, &text, error);
    if (status == FERRY_OK)
        status = ferry_tokenizer_encode(tokenizer, buffer_string(&text), text.length, &config,
                                        &encoding, error);
    if (status == FERRY_OK) status = add_encoding(p, tokenizer, encoding, error);
    ferry_encoding_free(encoding);
    buffer_free(&text);
    return status;
}
