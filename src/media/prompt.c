/* Prompts: what stands for an image or a sound, and what replaces it, by the class of the processor. */
#include "base/buffer.h"
#include "base/error.h"
#include "media/processor.h"

#include <string.h>

/* A special token of the tokenizer by its name, else what the configuration has under it. */
static const char *token(Config *config, const json_t *tokens, const char *name, Arena *arena) {
    const char *text = json_string_value(json_object_get(tokens, name));
    if (!text) text = json_string_value(json_object_get(config->json, name));
    if (!text || !*text)
        config_fail(config, FERRY_BAD_FORMAT, "neither this nor tokenizer_config.json has \"%s\"",
                    name);
    return arena_string(arena, text ? text : "");
}

static void repeat(Buffer *out, const char *text, size_t times) {
    for (size_t i = 0; i < times; i++) buffer_text(out, text);
}

/* ---- Llava ---- */

static void llava_read(Config *config, const json_t *tokens, const ImageSettings *image,
                       Arena *arena, PromptSettings *s) {
    const char *strategy =
        json_string_value(json_object_get(config->json, "vision_feature_select_strategy"));
    (void)image;
    s->image = s->image_token = token(config, tokens, "image_token", arena);
    s->patch_size = config_count(config, "patch_size", 1, 4096);
    s->additional = config_count(config, "num_additional_image_tokens", 0, 4096);
    s->leaves_one_out = strategy && strcmp(strategy, "default") == 0;
}

static void llava_replace(const PromptSettings *s, Item *item, Buffer *out) {
    size_t tokens = item->rows / s->patch_size * (item->columns / s->patch_size) + s->additional;
    item->tokens = s->leaves_one_out && tokens ? tokens - 1 : tokens;
    repeat(out, s->image_token, item->tokens);
}

/* ---- PaliGemma ---- */

static void paligemma_read(Config *config, const json_t *tokens, const ImageSettings *image,
                           Arena *arena, PromptSettings *s) {
    s->image = s->image_token = token(config, tokens, "image_token", arena);
    s->bos = token(config, tokens, "bos_token", arena);
    s->image_length = image->image_seq_length;
    s->no_special_tokens = true;
    if (!s->image_length)
        config_fail(config, FERRY_BAD_FORMAT, "the image processor lacks \"image_seq_length\"");
}

static void fixed_replace(const PromptSettings *s, Item *item, Buffer *out) {
    item->tokens = s->image_length;
    repeat(out, s->image_token, item->tokens);
}

static const char *find_last(const char *text, const char *part) {
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, part)); at++) last = at;
    return last;
}

/* Images first, then what begins a text, then the text, then a newline. */
static void paligemma_prepare(const PromptSettings *s, size_t images, Buffer *prompt) {
    Buffer out = {0};
    const char *text = buffer_string(prompt), *last = find_last(text, s->image);
    if (last) {
        last += strlen(s->image);
        buffer_append(&out, text, (size_t)(last - text));
    } else {
        repeat(&out, s->image, images);
        last = text;
    }
    buffer_text(&out, s->bos);
    buffer_text(&out, last);
    buffer_text(&out, "\n");
    buffer_free(prompt);
    *prompt = out;
}

/* ---- Gemma 3 ---- */

static void gemma3_read(Config *config, const json_t *tokens, const ImageSettings *image,
                        Arena *arena, PromptSettings *s) {
    (void)image;
    s->image = s->begin = token(config, tokens, "boi_token", arena);
    s->end = token(config, tokens, "eoi_token", arena);
    s->image_token = token(config, tokens, "image_token", arena);
    s->image_length = config_count(config, "image_seq_length", 1, 1 << 20);
}

static void gemma3_replace(const PromptSettings *s, Item *item, Buffer *out) {
    buffer_format(out, "\n\n%s", s->begin);
    fixed_replace(s, item, out);
    buffer_format(out, "%s\n\n", s->end);
}

/* ---- Qwen2-VL, Qwen2.5-VL, Qwen3-VL ---- */

static void qwen_vl_read(Config *config, const json_t *tokens, const ImageSettings *image,
                         Arena *arena, PromptSettings *s) {
    s->image = s->image_token = token(config, tokens, "image_token", arena);
    s->merge_size = image->merge_size;
    if (!s->merge_size)
        config_fail(config, FERRY_BAD_FORMAT, "the image processor lacks \"merge_size\"");
}

static void qwen_vl_replace(const PromptSettings *s, Item *item, Buffer *out) {
    item->tokens = item->rows * item->columns / (s->merge_size * s->merge_size);
    repeat(out, s->image_token, item->tokens);
}

/* ---- Idefics3, SmolVLM ---- */

static void tiles_read(Config *config, const json_t *tokens, const ImageSettings *image,
                       Arena *arena, PromptSettings *s) {
    (void)image;
    s->image = s->image_token = token(config, tokens, "image_token", arena);
    s->fake = token(config, tokens, "fake_image_token", arena);
    s->global = token(config, tokens, "global_image_token", arena);
    s->image_length = config_count(config, "image_seq_len", 1, 1 << 20);
}

static void tiles_replace(const PromptSettings *s, Item *item, Buffer *out) {
    for (size_t row = 0; row < item->rows; row++) {
        for (size_t column = 0; column < item->columns; column++) {
            buffer_format(out, "%s<row_%zu_col_%zu>", s->fake, row + 1, column + 1);
            repeat(out, s->image_token, s->image_length);
        }
        buffer_text(out, "\n");
    }
    if (item->rows) buffer_text(out, "\n");
    buffer_format(out, "%s%s", s->fake, s->global);
    repeat(out, s->image_token, s->image_length);
    buffer_text(out, s->fake);
    item->tokens = (item->rows * item->columns + 1) * s->image_length;
}

/* ---- Qwen2-Audio ---- */

static void qwen_audio_read(Config *config, const json_t *tokens, const ImageSettings *image,
                            Arena *arena, PromptSettings *s) {
    (void)image;
    s->audio = s->audio_token = token(config, tokens, "audio_token", arena);
}

/* A convolution of stride 2, then a pooling by 2. */
static void qwen_audio_replace(const PromptSettings *s, Item *item, Buffer *out) {
    size_t convolved = item->frames ? (item->frames - 1) / 2 + 1 : 0;
    item->tokens = convolved >= 2 ? (convolved - 2) / 2 + 1 : 0;
    repeat(out, s->audio_token, item->tokens);
}

#define QWEN_VL "{\"image_token\": \"<|image_pad|>\"}"
#define IDEFICS                                                                                    \
    "{\"image_seq_len\": 169, \"image_token\": \"<image>\", \"global_image_token\": "              \
    "\"<global-img>\","                                                                            \
    "\"fake_image_token\": \"<fake_token_around_image>\"}"

static const PromptKind kinds[] = {
    {"LlavaProcessor", TYPES_NONE,
     "{\"image_token\": \"<image>\", \"num_additional_image_tokens\": 0}", llava_read,
     llava_replace, NULL},
    {"PaliGemmaProcessor", TYPES_ZERO, "{\"image_token\": \"<image>\"}", paligemma_read,
     fixed_replace, paligemma_prepare},
    {"Gemma3Processor", TYPES_MARKED, "{\"image_seq_length\": 256}", gemma3_read, gemma3_replace,
     NULL},
    {"Qwen2VLProcessor", TYPES_MM_MARKED, QWEN_VL, qwen_vl_read, qwen_vl_replace, NULL},
    {"Qwen2_5_VLProcessor", TYPES_MM_MARKED, QWEN_VL, qwen_vl_read, qwen_vl_replace, NULL},
    {"Qwen3VLProcessor", TYPES_MM_MARKED, QWEN_VL, qwen_vl_read, qwen_vl_replace, NULL},
    {"Idefics3Processor", TYPES_NONE, IDEFICS, tiles_read, tiles_replace, NULL},
    {"SmolVLMProcessor", TYPES_NONE, IDEFICS, tiles_read, tiles_replace, NULL},
    {"Qwen2AudioProcessor", TYPES_NONE, "{\"audio_token\": \"<|AUDIO|>\"}", qwen_audio_read,
     qwen_audio_replace, NULL},
};

const PromptKind *prompt_kind_find(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

/* ---- expansion ---- */

/* The next item of a sort from `*at` on; NULL past the last one. */
static const Item *next_item(const ferry_processed *p, bool audio, size_t *at) {
    while (*at < p->items.count && p->items.items[*at].is_audio != audio) ++*at;
    return *at < p->items.count ? &p->items.items[(*at)++] : NULL;
}

static ferry_status wrong_number(const ferry_processed *p, bool audio, const char *problem,
                                 ferry_error *error) {
    const PromptSettings *s = &p->processor->prompt_settings;
    return error_set(error, FERRY_INVALID_ARGUMENT, "prompt",
                     "has %s places for %s than there are; each is one \"%s\"", problem,
                     audio ? "sounds" : "images", audio ? s->audio : s->image);
}

static bool stands_at(const char *text, const char *token) {
    return token && strncmp(text, token, strlen(token)) == 0;
}

static ferry_status expand(const ferry_processed *p, const char *text, Buffer *out,
                           ferry_error *error) {
    const PromptSettings *s = &p->processor->prompt_settings;
    size_t at[2] = {0, 0}, images = 0;
    for (size_t i = 0; i < p->items.count; i++) images += !p->items.items[i].is_audio;
    bool has[2] = {images > 0, images < p->items.count};
    while (*text) {
        bool audio = has[1] && stands_at(text, s->audio);
        const char *token = audio                                 ? s->audio
                            : has[0] && stands_at(text, s->image) ? s->image
                                                                  : NULL;
        if (!token) {
            buffer_append(out, text++, 1);
            continue;
        }
        const Item *item = next_item(p, audio, &at[audio]);
        if (!item) return wrong_number(p, audio, "more", error);
        buffer_text(out, item->text);
        text += strlen(token);
    }
    for (int audio = 0; audio < 2; audio++)
        if (next_item(p, audio, &at[audio])) return wrong_number(p, audio, "fewer", error);
    return FERRY_OK;
}

ferry_status prompt_expand(const ferry_processed *p, const char *prompt, size_t length, Buffer *out,
                           ferry_error *error) {
    const ferry_processor *processor = p->processor;
    Buffer text = {0};
    if (memchr(prompt, '\0', length))
        return error_set(error, FERRY_INVALID_ARGUMENT, "prompt", "contains a NUL character");
    if (!processor->prompt && p->items.count)
        return error_set(error, FERRY_UNSUPPORTED, processor->path,
                         "how images and sounds stand in prompts of %s is not known",
                         processor->class_name ? processor->class_name
                                               : "a processor without a class");
    buffer_append(&text, prompt, length);
    if (processor->prompt && processor->prompt->prepare)
        processor->prompt->prepare(&processor->prompt_settings, p->items.count, &text);
    ferry_status status = expand(p, buffer_string(&text), out, error);
    if (status == FERRY_OK && (text.failed || out->failed)) status = error_memory(error, NULL, 0);
    buffer_free(&text);
    return status;
}

ferry_status ferry_processed_expand(const ferry_processed *p, const char *prompt, size_t length,
                                    ferry_write write, void *context, ferry_error *error) {
    Buffer out = {0};
    error_clear(error);
    ferry_status status = prompt_expand(p, prompt, length, &out, error);
    if (status == FERRY_OK) write(context, buffer_string(&out), out.length);
    buffer_free(&out);
    return status;
}
