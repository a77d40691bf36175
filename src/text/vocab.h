/* A vocabulary: tokens and their ids. */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include "text/settings.h"
#include "text/trie.h"

typedef struct Vocab {
    Trie trie;
    const char **texts; /* by id; NULL where there is no token */
    uint32_t limit;     /* ids are below */
    uint32_t count;     /* of tokens */
} Vocab;

/* From an object of ids by token. */
void vocab_read(Settings *settings, const Doc *object, Vocab *out);

/* From entries, whose values are the ids; they are sorted. */
void vocab_build(Settings *settings, TrieEntry *entries, size_t count, Vocab *out);

/* The id of a token, or TRIE_NONE. */
static inline uint32_t vocab_find(const Vocab *vocab, const char *text, size_t length) {
    return trie_find(&vocab->trie, text, length);
}

/* The token of an id, or NULL. */
static inline const char *vocab_text(const Vocab *vocab, uint32_t id) {
    return id < vocab->limit ? vocab->texts[id] : NULL;
}

/* Ids of the tokens "<0x00>" to "<0xFF>", TRIE_NONE for those that are missing. */
void vocab_bytes(const Vocab *vocab, uint32_t out[256]);

/* Hashing, for the tables of models. */
static inline uint64_t hash_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xe9846af9b1a615d;
    x ^= x >> 32;
    x *= 0xe9846af9b1a615d;
    return x ^ x >> 28;
}

#endif
