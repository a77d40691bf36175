#include "text/vocab.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ID = 1 << 22 };

void vocab_build(Settings *settings, TrieEntry *entries, size_t count, Vocab *out) {
    uint32_t limit = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].value >= MAX_ID) {
            setting_fail(settings, FERRY_UNSUPPORTED, "the token \"%s\" has id %u; ids go up to %d",
                         entries[i].text, entries[i].value, MAX_ID - 1);
            return;
        }
        if (entries[i].value >= limit) limit = entries[i].value + 1;
    }
    out->count = (uint32_t)count;
    out->texts = ARENA_ARRAY(settings->arena, const char *, limit);
    if (!out->texts) return;
    out->limit = limit;
    for (size_t i = 0; i < count; i++) out->texts[entries[i].value] = entries[i].text;
    if (!trie_build(&out->trie, settings->arena, entries, count))
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
}

void vocab_read(Settings *settings, const Doc *object, Vocab *out) {
    size_t count = doc_count(object), i = 0;
    TrieEntry *entries = calloc(count ? count : 1, sizeof *entries);
    if (!entries) {
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    const char *key;
    const Doc *value;
    DOC_EACH_MEMBER(object, key, value)
    entries[i++] = (TrieEntry){key, (uint32_t)strlen(key), setting_id(settings, value)};
    if (settings->status == FERRY_OK) vocab_build(settings, entries, count, out);
    free(entries);
}

void vocab_bytes(const Vocab *vocab, uint32_t out[256]) {
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i);
        out[i] = vocab_find(vocab, text, 6);
    }
}
