/* Any bytes as a GGUF file: refused with a message, or its tokenizer is, or it encodes a text. */
#include "base/error.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

static void encode(ferry_tokenizer *t) {
    static const char text[] = "ab <s> b\xc3\xa9 12 ab";
    ferry_error error = {0};
    ferry_encoding *encoding;
    ferry_status status = ferry_tokenizer_encode(t, text, sizeof text - 1, NULL, &encoding, &error);
    expect(status == FERRY_OK || error.message[0]);
    if (status == FERRY_OK) ferry_encoding_free(encoding);
}

static void read_tokenizer(const Gguf *gguf) {
    ferry_error error = {0};
    Buffer json = {0};
    ferry_tokenizer *t = calloc(1, sizeof *t);
    t->path = "fuzz";
    ferry_status status = gguf_tokenizer(gguf, &json, &error);
    if (status == FERRY_OK) status = tokenizer_read(t, json.bytes, json.length, &error);
    expect(status == FERRY_OK || error.message[0]);
    if (status == FERRY_OK) encode(t);
    json.length = 0;
    expect(gguf_tokenizer_config(gguf, &json, &error) == FERRY_OK || error.message[0]);
    buffer_free(&json);
    ferry_tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    Arena arena = {0};
    Gguf gguf;
    ferry_error error = {0};
    if (gguf_parse("fuzz", bytes, size, &arena, &gguf, &error) == FERRY_OK) {
        read_tokenizer(&gguf);
        gguf_free(&gguf);
    } else {
        expect(error.message[0]);
    }
    arena_free(&arena);
    return 0;
}
