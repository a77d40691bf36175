#include "text/trie.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const TrieEntry *x = a, *y = b;
    size_t length = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, length);
    if (order) return order;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* The strings below a node: entries [begin, end), which share their first `depth` bytes. */
typedef struct Range {
    uint32_t begin, end, depth;
} Range;

/* Number of nodes: one per distinct prefix. */
static size_t count_nodes(const TrieEntry *entries, size_t count) {
    size_t nodes = 1;
    for (size_t i = 0; i < count; i++) {
        size_t shared = 0;
        while (i > 0 && shared < entries[i].length && shared < entries[i - 1].length &&
               entries[i].text[shared] == entries[i - 1].text[shared])
            shared++;
        nodes += entries[i].length - shared;
    }
    return nodes;
}

bool trie_build(Trie *trie, Arena *arena, TrieEntry *entries, size_t count) {
    qsort(entries, count, sizeof *entries, compare);
    size_t node_count = count_nodes(entries, count);
    *trie = (Trie){0};
    if (node_count >= TRIE_NONE) return false;
    trie->nodes = ARENA_ARRAY(arena, TrieNode, node_count);
    trie->labels = arena_alloc(arena, node_count);
    Range *ranges = calloc(node_count, sizeof *ranges);
    bool ok = trie->nodes && trie->labels && ranges;
    if (ok) ranges[0] = (Range){0, (uint32_t)count, 0};
    for (uint32_t node = 0, next = 1; ok && node < next; node++) {
        Range range = ranges[node];
        uint32_t i = range.begin;
        trie->nodes[node] = (TrieNode){.first = next, .value = TRIE_NONE};
        for (; i < range.end && entries[i].length == range.depth; i++)
            trie->nodes[node].value = entries[i].value;
        while (i < range.end) {
            char label = entries[i].text[range.depth];
            uint32_t begin = i;
            while (i < range.end && entries[i].text[range.depth] == label) i++;
            trie->labels[next] = (unsigned char)label;
            if (node == 0) trie->starts[(unsigned char)label] = next;
            ranges[next++] = (Range){begin, i, range.depth + 1};
            trie->nodes[node].count++;
        }
    }
    free(ranges);
    return ok;
}

uint32_t trie_walk(const Trie *trie, uint32_t node, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        node = trie_step(trie, node, text[i]);
        if (node == 0) return TRIE_NONE;
    }
    return node;
}

uint32_t trie_find(const Trie *trie, const char *text, size_t length) {
    if (!trie->nodes) return TRIE_NONE;
    uint32_t node = trie_walk(trie, 0, text, length);
    return node == TRIE_NONE ? TRIE_NONE : trie->nodes[node].value;
}
