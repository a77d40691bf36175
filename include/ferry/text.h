/* Text in and out of models: the tokenizers and chat templates of Hugging Face checkpoints.
 *
 *     ferry_tokenizer *tokenizer;
 *     ferry_encoding *encoding;
 *     ferry_tokenizer_open("my-model", &tokenizer, &error);
 *     ferry_tokenizer_encode(tokenizer, text, strlen(text), NULL, &encoding, &error);
 *     ... encoding->ids[0] ...
 *     ferry_encoding_free(encoding);
 *     ferry_tokenizer_close(tokenizer);
 */
#ifndef FERRY_TEXT_H
#define FERRY_TEXT_H

#include <ferry/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferry_tokenizer ferry_tokenizer;

/* Open a tokenizer.json, the one in a directory, or the tokenizer in a GGUF file. */
FERRY_API ferry_status ferry_tokenizer_open(const char *path, ferry_tokenizer **out,
                                            ferry_error *error);

/* Encodings stay valid; streams must be freed before. */
FERRY_API void ferry_tokenizer_close(ferry_tokenizer *tokenizer);

/* ---- encoding ---- */

/* How to encode. ferry_encode_config_init sets the defaults. */
typedef struct ferry_encode_config {
    size_t size; /* of this structure, as the caller knows it; set by init */

    bool special_tokens; /* add those that the model expects around its input; true by default */

    /* A second text, for models that take pairs; NULL: none. */
    const char *pair;
    size_t pair_length;

    /* Cut off, and fill up, as tokenizer.json says under "truncation" and "padding"; false by default.
     * Where it says nothing, INVALID_ARGUMENT. */
    bool truncate, pad;
} ferry_encode_config;

FERRY_API void ferry_encode_config_init(ferry_encode_config *config);

/* Where a token comes from: bytes [begin, end) of its text, whole characters. Empty for the tokens that
 * were added around it. */
typedef struct ferry_text_span {
    size_t begin, end;
} ferry_text_span;

/* Tokens. All arrays have `count` items and belong to the encoding. */
typedef struct ferry_encoding {
    size_t count;
    const uint32_t *ids;
    const uint32_t *type_ids;            /* token_type_ids: 0 for the first text */
    const ferry_text_span *offsets;      /* of the text that the token belongs to */
    const unsigned char *special;        /* 1: added around the text, or padding */
    const unsigned char *attention_mask; /* 0: padding */
} ferry_encoding;

/* Encode a text of well-formed UTF-8, which may contain NUL; anything else is INVALID_ARGUMENT, with the
 * place in the message. `config` may be NULL. `*out` is the caller's to free. */
FERRY_API ferry_status ferry_tokenizer_encode(ferry_tokenizer *tokenizer, const char *text,
                                              size_t length, const ferry_encode_config *config,
                                              ferry_encoding **out, ferry_error *error);

FERRY_API void ferry_encoding_free(ferry_encoding *encoding);

/* ---- decoding ---- */

/* Decode to well-formed UTF-8, given to `write` in one piece. Ids that the vocabulary lacks are left out;
 * bytes that are no character become U+FFFD. */
FERRY_API ferry_status ferry_tokenizer_decode(ferry_tokenizer *tokenizer, const uint32_t *ids,
                                              size_t count, bool skip_special_tokens,
                                              ferry_write write, void *context, ferry_error *error);

/* Decoding token by token, as a model generates them. */
typedef struct ferry_text_stream ferry_text_stream;

FERRY_API ferry_status ferry_text_stream_new(ferry_tokenizer *tokenizer, bool skip_special_tokens,
                                             ferry_text_stream **out, ferry_error *error);
FERRY_API void ferry_text_stream_free(ferry_text_stream *stream);

/* Add a token, and write what is new: nothing until a character is whole. */
FERRY_API ferry_status ferry_text_stream_put(ferry_text_stream *stream, uint32_t id,
                                             ferry_write write, void *context, ferry_error *error);

/* Write what is left, an unfinished character as U+FFFD, and begin anew. */
FERRY_API ferry_status ferry_text_stream_end(ferry_text_stream *stream, ferry_write write,
                                             void *context, ferry_error *error);

/* ---- the vocabulary ---- */

/* Ids are below this. */
FERRY_API uint32_t ferry_tokenizer_id_limit(const ferry_tokenizer *tokenizer);

/* The token of an id, in the spelling of tokenizer.json ("\u0120the"); NULL when there is none. Valid
 * while the tokenizer is open. */
FERRY_API const char *ferry_tokenizer_token(const ferry_tokenizer *tokenizer, uint32_t id);

/* The id of a token. False when there is none. */
FERRY_API bool ferry_tokenizer_id(const ferry_tokenizer *tokenizer, const char *token,
                                  uint32_t *id);

/* Is it skipped when special tokens are? */
FERRY_API bool ferry_tokenizer_is_special(const ferry_tokenizer *tokenizer, uint32_t id);

/* ---- chats ---- */

/* The chat templates of a checkpoint: Jinja programs that write a conversation as the one text that the
 * model was trained on. Rendering changes nothing in it: threads may share one. */
typedef struct ferry_chat ferry_chat;

/* Open the templates in a directory: chat_template.jinja and chat_templates/NAME.jinja, or what
 * tokenizer_config.json has under "chat_template", with the special tokens; or those in a GGUF file.
 * NOT_FOUND where there are none. */
FERRY_API ferry_status ferry_chat_open(const char *path, ferry_chat **out, ferry_error *error);
FERRY_API void ferry_chat_close(ferry_chat *chat);

/* The name of a template, "default" for most; NULL past the last one. Valid while the chat is open. */
FERRY_API const char *ferry_chat_template_at(const ferry_chat *chat, size_t index);

/* A special token by its name in the configuration, such as "eos_token"; NULL when there is none. */
FERRY_API const char *ferry_chat_token(const ferry_chat *chat, const char *name);

/* How to render. ferry_chat_config_init sets the defaults. */
typedef struct ferry_chat_config {
    size_t size; /* of this structure, as the caller knows it; set by init */

    /* End with what begins the model's answer; true by default. */
    bool add_generation_prompt;

    /* Which template; NULL: "tool_use" when there are tools and such a template, else "default". */
    const char *template_name;

    /* JSON: a list of tools as the template expects them, JSON schemas mostly; NULL: none. */
    const char *tools;

    /* JSON: an object of more variables for the template, such as {"enable_thinking": false}; NULL: none. */
    const char *variables;
} ferry_chat_config;

FERRY_API void ferry_chat_config_init(ferry_chat_config *config);

/* Render a conversation: JSON, a list of messages, each an object with "role" and "content" and whatever
 * else the template knows. The text goes to `write` in one piece. It holds the special tokens that it
 * needs: encode it without adding any. `config` may be NULL. INVALID_ARGUMENT, with the line of the
 * template, when the template refuses the conversation. */
FERRY_API ferry_status ferry_chat_render(const ferry_chat *chat, const char *messages,
                                         const ferry_chat_config *config, ferry_write write,
                                         void *context, ferry_error *error);

/* The same for a conversation of one message, by the user: well-formed UTF-8. */
FERRY_API ferry_status ferry_chat_render_user(const ferry_chat *chat, const char *text,
                                              size_t length, const ferry_chat_config *config,
                                              ferry_write write, void *context, ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
