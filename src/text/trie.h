/* A trie of byte strings, built once from all of them: exact look-ups, and all prefixes of a text that
 * are in it. The children of a node stand side by side, ordered, their labels packed for memchr. */
#ifndef TEXT_TRIE_H
#define TEXT_TRIE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TRIE_NONE = UINT32_MAX };

typedef struct TrieEntry {
    const char *text;
    uint32_t length;
    uint32_t value; /* below TRIE_NONE */
} TrieEntry;

typedef struct TrieNode {
    uint32_t first; /* child */
    uint32_t count; /* of children */
    uint32_t value; /* of the string that ends here, or TRIE_NONE */
} TrieNode;

typedef struct Trie {
    TrieNode *nodes; /* nodes[0] is the root */
    unsigned char *labels;
    uint32_t starts[256]; /* the root's children by label; 0: none */
} Trie;

/* Build from entries, which are sorted in place; of equal strings the last one counts. False when
 * memory is exhausted. */
bool trie_build(Trie *trie, Arena *arena, TrieEntry *entries, size_t count);

/* The child of a node, or 0. */
static inline uint32_t trie_step(const Trie *trie, uint32_t node, char label) {
    if (node == 0) return trie->starts[(unsigned char)label];
    const TrieNode *at = &trie->nodes[node];
    if (at->count == 0) return 0;
    const unsigned char *labels = trie->labels + at->first;
    if (at->count == 1) return *labels == (unsigned char)label ? at->first : 0;
    const unsigned char *found = memchr(labels, (unsigned char)label, at->count);
    return found ? at->first + (uint32_t)(found - labels) : 0;
}

/* The node that is reached from `node` by a text, or TRIE_NONE. */
uint32_t trie_walk(const Trie *trie, uint32_t node, const char *text, size_t length);

/* The value of a string, or TRIE_NONE. */
uint32_t trie_find(const Trie *trie, const char *text, size_t length);

#endif
