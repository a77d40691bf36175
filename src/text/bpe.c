/* Byte-pair encoding: characters become tokens, and of all neighbours that may merge, those merge first
 * that were merged first in training. Words are remembered: text repeats them. */
#include "text/model.h"
#include "text/unicode.h"

#include <stdlib.h>

enum {
    CACHE_SLOTS = 1 << 14,
    CACHE_TEXT = 32, /* longer words, and those of more tokens, are not remembered */
    CACHE_TOKENS = 8,
};

/* What a pair of tokens merges to; rank UINT32_MAX: an empty slot. */
typedef struct Merge {
    uint64_t pair;
    uint32_t rank, id;
} Merge;

/* A word that was seen. */
typedef struct CachedWord {
    char text[CACHE_TEXT];
    uint32_t length, count; /* length 0: an empty slot */
    uint32_t ids[CACHE_TOKENS];
    uint8_t ends[CACHE_TOKENS];
} CachedWord;

typedef struct Symbol {
    uint32_t id, length;    /* 0: merged into the one before */
    uint32_t before, after; /* UINT32_MAX: none */
} Symbol;

/* A merge that may happen: the smallest key first, which is the rank and then the place. */
typedef struct Candidate {
    uint64_t key;
    uint32_t id;
} Candidate;

typedef struct Bpe {
    Model model;
    Merge *merges;
    uint32_t merge_mask;
    const char *prefix, *suffix; /* of continuations and of the ends of words; "" for none */
    size_t prefix_length, suffix_length;
    uint32_t prefix_node; /* of the trie, or TRIE_NONE */
    bool has_unknown, fuse_unknown, byte_fallback, ignore_merges;
    uint32_t unknown;
    uint32_t bytes[256];
    CachedWord *cache;
    VEC(Symbol) symbols;
    VEC(Candidate) heap;
} Bpe;

/* ---- merges ---- */

static uint64_t pair_of(uint32_t left, uint32_t right) {
    return (uint64_t)left << 32 | right;
}

static Merge *merge_slot(const Bpe *m, uint64_t pair) {
    uint32_t i = (uint32_t)hash_mix(pair) & m->merge_mask;
    while (m->merges[i].rank != UINT32_MAX && m->merges[i].pair != pair)
        i = (i + 1) & m->merge_mask;
    return &m->merges[i];
}

static void heap_push(Bpe *m, Candidate candidate) {
    VEC_PUSH(&m->heap, candidate);
    if (m->heap.failed) return;
    Candidate *heap = m->heap.items;
    size_t i = m->heap.count - 1;
    for (; i > 0 && heap[(i - 1) / 2].key > candidate.key; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = candidate;
}

static Candidate heap_pop(Bpe *m) {
    Candidate *heap = m->heap.items, top = heap[0], last = heap[--m->heap.count];
    size_t count = m->heap.count, i = 0;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && heap[child + 1].key < heap[child].key) child++;
        if (heap[child].key >= last.key) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* The symbol at `left` may merge with the one after it. */
static void propose(Bpe *m, uint32_t left) {
    const Symbol *symbols = m->symbols.items;
    uint32_t right = symbols[left].after;
    if (right == UINT32_MAX) return;
    const Merge *merge = merge_slot(m, pair_of(symbols[left].id, symbols[right].id));
    if (merge->rank != UINT32_MAX)
        heap_push(m, (Candidate){(uint64_t)merge->rank << 32 | left, merge->id});
}

static void merge_all(Bpe *m) {
    Symbol *symbols = m->symbols.items;
    m->heap.count = 0;
    for (uint32_t i = 0; i < m->symbols.count; i++) propose(m, i);
    while (m->heap.count > 0) {
        Candidate top = heap_pop(m);
        uint32_t left = (uint32_t)top.key, right = symbols[left].after;
        if (symbols[left].length == 0 || right == UINT32_MAX) continue;
        const Merge *merge = merge_slot(m, pair_of(symbols[left].id, symbols[right].id));
        if (merge->rank == UINT32_MAX || merge->id != top.id) continue; /* it has changed since */
        symbols[left].id = top.id;
        symbols[left].length += symbols[right].length;
        symbols[left].after = symbols[right].after;
        symbols[right].length = 0;
        if (symbols[left].after != UINT32_MAX) symbols[symbols[left].after].before = left;
        if (symbols[left].before != UINT32_MAX) propose(m, symbols[left].before);
        propose(m, left);
    }
}

/* ---- words ---- */

static void add_symbol(Bpe *m, uint32_t id, size_t length) {
    uint32_t place = (uint32_t)m->symbols.count;
    if (place > 0) m->symbols.items[place - 1].after = place;
    VEC_PUSH(&m->symbols,
             (Symbol){id, (uint32_t)length, place ? place - 1 : UINT32_MAX, UINT32_MAX});
}

/* The token of a character where it stands. */
static uint32_t find_char(const Bpe *m, const char *text, size_t length, bool first, bool last) {
    const Trie *trie = &m->model.vocab.trie;
    uint32_t node = first ? 0 : m->prefix_node;
    if (node != TRIE_NONE) node = trie_walk(trie, node, text, length);
    if (node != TRIE_NONE && last) node = trie_walk(trie, node, m->suffix, m->suffix_length);
    return node == TRIE_NONE ? TRIE_NONE : trie->nodes[node].value;
}

static bool has_bytes(const Bpe *m, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (m->bytes[(unsigned char)text[i]] == TRIE_NONE) return false;
    }
    return true;
}

static void add_bytes(Bpe *m, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) add_symbol(m, m->bytes[(unsigned char)text[i]], 1);
}

/* Add the bytes of a character, with the affixes that it would have; false when some have no token. */
static bool fall_back(Bpe *m, const char *text, size_t length, bool first, bool last) {
    size_t before = first ? 0 : m->prefix_length, after = last ? m->suffix_length : 0;
    if (!has_bytes(m, m->prefix, before) || !has_bytes(m, text, length) ||
        !has_bytes(m, m->suffix, after))
        return false;
    add_bytes(m, m->prefix, before);
    add_bytes(m, text, length);
    add_bytes(m, m->suffix, after);
    return true;
}

/* The symbols of a word before anything is merged. */
static bool spell(Bpe *m, const char *text, size_t length) {
    size_t unknown = 0; /* bytes that an unknown token, not added yet, stands for */
    m->symbols.count = 0;
    for (size_t i = 0, size; i < length; i += size) {
        size = utf8_size(text[i]);
        bool first = i == 0, last = i + size == length;
        uint32_t id = find_char(m, text + i, size, first, last);
        if (id != TRIE_NONE) {
            if (unknown) add_symbol(m, m->unknown, unknown);
            unknown = 0;
            add_symbol(m, id, size);
        } else if (m->byte_fallback && fall_back(m, text + i, size, first, last)) {
            continue;
        } else if (m->has_unknown) {
            if (m->unknown == TRIE_NONE) return false;
            if (unknown && !m->fuse_unknown) {
                add_symbol(m, m->unknown, unknown);
                unknown = 0;
            }
            unknown += size;
        }
    }
    if (unknown) add_symbol(m, m->unknown, unknown);
    return true;
}

/* ---- the cache ---- */

static CachedWord *cache_slot(Bpe *m, const char *text, size_t length) {
    if (!m->cache || length > CACHE_TEXT) return NULL;
    uint64_t hash = length;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text + i, length - i < 8 ? length - i : 8);
        hash = hash_mix(hash ^ word);
    }
    return &m->cache[hash & (CACHE_SLOTS - 1)];
}

static void put_cached(const CachedWord *word, ModelTokens *out) {
    uint32_t begin = 0;
    for (uint32_t i = 0; i < word->count; i++) {
        VEC_PUSH(out, (Token){word->ids[i], begin, word->ends[i], false});
        begin = word->ends[i];
    }
}

static void remember(CachedWord *slot, const char *text, size_t length, const Token *tokens,
                     size_t count) {
    if (count > CACHE_TOKENS) return;
    memcpy(slot->text, text, length);
    slot->length = (uint32_t)length;
    slot->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        slot->ids[i] = tokens[i].id;
        slot->ends[i] = (uint8_t)tokens[i].end;
    }
}

static bool bpe_tokenize(Model *model, const char *text, size_t length, ModelTokens *out) {
    Bpe *m = (Bpe *)model;
    CachedWord *slot = cache_slot(m, text, length);
    if (slot && slot->length == length && memcmp(slot->text, text, length) == 0) {
        put_cached(slot, out);
        return true;
    }
    size_t first = out->count;
    uint32_t whole = m->ignore_merges ? vocab_find(&model->vocab, text, length) : TRIE_NONE;
    if (whole != TRIE_NONE) {
        VEC_PUSH(out, (Token){whole, 0, (uint32_t)length, false});
    } else {
        if (!spell(m, text, length)) return false;
        if (!m->symbols.failed) merge_all(m);
        out->failed |= m->symbols.failed || m->heap.failed;
        uint32_t begin = 0;
        for (size_t i = 0; i < m->symbols.count; i++) {
            Symbol symbol = m->symbols.items[i];
            if (symbol.length == 0) continue;
            VEC_PUSH(out, (Token){symbol.id, begin, begin + symbol.length, false});
            begin += symbol.length;
        }
    }
    if (slot && out->count > first && !out->failed)
        remember(slot, text, length, out->items + first, out->count - first);
    return true;
}

static void bpe_free(Model *model) {
    Bpe *m = (Bpe *)model;
    free(m->cache);
    VEC_FREE(&m->symbols);
    VEC_FREE(&m->heap);
}

/* ---- reading ---- */

/* The two sides of a merge: ["a", "b"], or "a b" in older files. */
static bool merge_sides(const Doc *item, const char *sides[2], size_t lengths[2]) {
    const char *text = doc_text(item);
    if (!text) {
        for (size_t i = 0; i < 2; i++) {
            sides[i] = doc_text(doc_item(item, i));
            lengths[i] = sides[i] ? strlen(sides[i]) : 0;
        }
        return doc_count(item) == 2 && sides[0] && sides[1];
    }
    const char *blank = strchr(text, ' ');
    if (!blank || strchr(blank + 1, ' ')) return false;
    sides[0] = text;
    lengths[0] = (size_t)(blank - text);
    sides[1] = blank + 1;
    lengths[1] = strlen(blank + 1);
    return true;
}

static void read_merge(Settings *settings, Bpe *m, const Doc *item, uint32_t rank) {
    const Vocab *vocab = &m->model.vocab;
    const char *sides[2];
    size_t lengths[2];
    if (!merge_sides(item, sides, lengths)) {
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "\"merges\"[%u] is %s; expected two tokens, as in [\"a\", \"b\"]", rank,
                     doc_kind(item));
        return;
    }
    uint32_t left = vocab_find(vocab, sides[0], lengths[0]);
    uint32_t right = vocab_find(vocab, sides[1], lengths[1]);
    size_t skipped = m->prefix_length < lengths[1] ? m->prefix_length : lengths[1];
    uint32_t node = trie_walk(&vocab->trie, 0, sides[0], lengths[0]);
    if (node != TRIE_NONE)
        node = trie_walk(&vocab->trie, node, sides[1] + skipped, lengths[1] - skipped);
    uint32_t id = node == TRIE_NONE ? TRIE_NONE : vocab->trie.nodes[node].value;
    if (left == TRIE_NONE || right == TRIE_NONE || id == TRIE_NONE) {
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "\"merges\"[%u] merges \"%.*s\" and \"%.*s\", but the vocabulary lacks %s",
                     rank, (int)lengths[0], sides[0], (int)lengths[1], sides[1],
                     left == TRIE_NONE    ? "the first"
                     : right == TRIE_NONE ? "the second"
                                          : "the result");
        return;
    }
    uint64_t pair = pair_of(left, right);
    *merge_slot(m, pair) = (Merge){pair, rank, id};
}

static void read_merges(Settings *settings, Bpe *m, const Doc *list) {
    uint32_t size = 64, rank = 0;
    while (size < 2 * doc_count(list)) size *= 2;
    m->merges = ARENA_ARRAY(settings->arena, Merge, size);
    if (!m->merges) return;
    for (uint32_t i = 0; i < size; i++) m->merges[i].rank = UINT32_MAX;
    m->merge_mask = size - 1;
    size_t i;
    const Doc *item;
    DOC_EACH_ITEM(list, i, item) {
        const char *text = doc_text(item);
        if (text && strncmp(text, "#version", 8) == 0) continue;
        read_merge(settings, m, item, rank++);
        if (settings->status != FERRY_OK) return;
    }
}

Model *bpe_read(Settings *settings, const Doc *doc) {
    Bpe *m = ARENA_NEW(settings->arena, Bpe);
    if (!m) return NULL;
    m->model.tokenize = bpe_tokenize;
    m->model.free = bpe_free;
    if (doc_number(doc_get(doc, "dropout")) != 0)
        setting_fail(settings, FERRY_UNSUPPORTED,
                     "\"dropout\" is %g: tokens would be random, as for training; set it to null",
                     doc_number(doc_get(doc, "dropout")));
    vocab_read(settings, setting_object(settings, doc, "vocab"), &m->model.vocab);
    const Doc *merges = setting_array(settings, doc, "merges");
    m->prefix = setting_text_or(settings, doc, "continuing_subword_prefix", "");
    m->suffix = setting_text_or(settings, doc, "end_of_word_suffix", "");
    m->prefix_length = strlen(m->prefix);
    m->suffix_length = strlen(m->suffix);
    m->fuse_unknown = setting_bool_or(settings, doc, "fuse_unk", false);
    m->byte_fallback = setting_bool_or(settings, doc, "byte_fallback", false);
    m->ignore_merges = setting_bool_or(settings, doc, "ignore_merges", false);
    const char *unknown = setting_text_or(settings, doc, "unk_token", NULL);
    if (settings->status != FERRY_OK || !m->model.vocab.trie.nodes) return &m->model;
    m->has_unknown = unknown != NULL;
    m->unknown = unknown ? vocab_find(&m->model.vocab, unknown, strlen(unknown)) : TRIE_NONE;
    m->model.missing = unknown;
    m->prefix_node = trie_walk(&m->model.vocab.trie, 0, m->prefix, m->prefix_length);
    vocab_bytes(&m->model.vocab, m->bytes);
    read_merges(settings, m, merges);
    m->cache = calloc(CACHE_SLOTS, sizeof *m->cache);
    return &m->model;
}
