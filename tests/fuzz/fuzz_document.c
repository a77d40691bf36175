/* Any bytes as a JSON document: refused with a message, or a document in which every member is found by
 * its key and every scalar prints as text that is read as the same. */
#include "format/document.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const Doc *reread(const Doc *scalar, Arena *arena) {
    Buffer text = {0};
    const Doc *again;
    doc_print_scalar(&text, scalar);
    if (doc_parse("again", text.bytes, text.length, arena, &again, NULL) != FERRY_OK) abort();
    buffer_free(&text);
    return again;
}

static void walk(const Doc *doc) {
    Arena arena = {0};
    const Doc *item;
    const char *key;
    size_t i;
    DOC_EACH_ITEM(doc, i, item) walk(item);
    DOC_EACH_MEMBER(doc, key, item) {
        if (doc_get(doc, key) != item) abort();
        walk(item);
    }
    if (!doc_is_array(doc) && !doc_is_object(doc)) {
        const Doc *again = reread(doc, &arena);
        if (strcmp(doc_kind(doc), doc_kind(again)) != 0) abort();
        if (doc_text(doc) && strcmp(doc_text(doc), doc_text(again)) != 0) abort();
        if (doc_integer(doc) != doc_integer(again) || doc_number(doc) != doc_number(again)) abort();
        if (doc_bool(doc) != doc_bool(again)) abort();
    }
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    Arena arena = {0};
    const Doc *doc;
    ferry_error error = {0};
    ferry_status status = doc_parse("fuzz", bytes, size, &arena, &doc, &error);
    if (status == FERRY_OK)
        walk(doc);
    else if (!error.message[0])
        abort();
    arena_free(&arena);
    return 0;
}
