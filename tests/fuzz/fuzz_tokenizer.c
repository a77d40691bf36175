/* Any JSON as tokenizer.json, with the text to encode under "text" (a string, or a list of bytes).
 * Refused with a message, or encoded to tokens whose places are in the text, and decoded to UTF-8. */
#include "mutate_json.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

static void check_text(void *context, const char *text, size_t length) {
    size_t place;
    (void)context;
    expect(utf8_check(text, length, &place));
}

static void decode(ferry_tokenizer *t, const ferry_encoding *encoding) {
    ferry_error error = {0};
    ferry_text_stream *stream;
    expect(ferry_tokenizer_decode(t, encoding->ids, encoding->count, false, check_text, NULL,
                                  &error) == FERRY_OK);
    ferry_status status = ferry_text_stream_new(t, true, &stream, &error);
    for (size_t i = 0; status == FERRY_OK && i < encoding->count && i < 100; i++)
        status = ferry_text_stream_put(stream, encoding->ids[i], check_text, NULL, &error);
    if (status == FERRY_OK) status = ferry_text_stream_end(stream, check_text, NULL, &error);
    expect(status == FERRY_OK || error.message[0]);
    ferry_text_stream_free(stream);
}

static void encode(ferry_tokenizer *t, const char *text, size_t length, bool pair, bool limits) {
    ferry_error error = {0};
    ferry_encoding *encoding;
    ferry_encode_config config;
    ferry_encode_config_init(&config);
    config.pair = pair ? text : NULL;
    config.pair_length = length;
    config.truncate = limits && t->truncation.given;
    config.pad = limits && t->padding.given;
    if (ferry_tokenizer_encode(t, text, length, &config, &encoding, &error) != FERRY_OK) {
        expect(error.message[0]);
        return;
    }
    for (size_t i = 0; i < encoding->count; i++) {
        ferry_text_span span = encoding->offsets[i];
        expect(span.begin <= span.end && span.end <= length);
    }
    decode(t, encoding);
    ferry_encoding_free(encoding);
}

/* The text, with its length. NULL when there is none. */
static char *text_of(const uint8_t *bytes, size_t size, size_t *length) {
    json_t *root = json_loadb((const char *)bytes, size, JSON_ALLOW_NUL, NULL);
    json_t *given = json_object_get(root, "text");
    size_t count = json_is_string(given) ? json_string_length(given) : json_array_size(given);
    char *text = given ? malloc(count + 1) : NULL;
    for (size_t i = 0; text && i < count; i++)
        text[i] = json_is_string(given) ? json_string_value(given)[i]
                                        : (char)json_integer_value(json_array_get(given, i));
    json_decref(root);
    *length = count;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    ferry_tokenizer *t = calloc(1, sizeof *t);
    t->path = "tokenizer.json";
    if (tokenizer_read(t, bytes, size, &error) == FERRY_OK) {
        size_t length;
        char *text = text_of(bytes, size, &length);
        if (text) {
            encode(t, text, length, false, false);
            encode(t, text, length, true, true);
            encode(t, text, length, false, true);
        }
        free(text);
    } else {
        expect(error.message[0]);
    }
    ferry_tokenizer_close(t);
    return 0;
}
