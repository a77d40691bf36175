/* Unigram: the sequence of tokens with the highest sum of scores, found from left to right. */
#include "text/model.h"
#include "text/unicode.h"

#include <math.h>
#include <stdlib.h>

/* How a character without a token of its own compares with the token of the lowest score. */
static const double UNKNOWN_PENALTY = 10;

/* The best way to reach a place in the text: the last token, and where it begins. */
typedef struct Best {
    double score;
    uint32_t begin; /* UINT32_MAX: not reached yet */
    uint32_t id;
} Best;

typedef struct Unigram {
    Model model;
    double *scores; /* by id */
    double unknown_score;
    uint32_t unknown; /* TRIE_NONE: there is none */
    bool byte_fallback;
    uint32_t bytes[256];
    Best *best; /* by place; kept from piece to piece */
    size_t capacity;
} Unigram;

static void reach(Best *best, size_t place, double score, size_t begin, uint32_t id) {
    Best *there = &best[place];
    if (there->begin == UINT32_MAX || score > there->score)
        *there = (Best){score, (uint32_t)begin, id};
}

/* Fill `best`; false when a character needs the unknown token, and there is none. */
static bool find_best(Unigram *m, const char *text, size_t length) {
    const Trie *trie = &m->model.vocab.trie;
    Best *best = m->best;
    best[0] = (Best){0, 0, 0};
    for (size_t i = 1; i <= length; i++) best[i].begin = UINT32_MAX;
    for (size_t begin = 0, next; begin < length; begin = next) {
        bool alone = false; /* is there a token for this character alone? */
        uint32_t node = 0;
        next = begin + utf8_size(text[begin]);
        for (size_t i = begin; i < length; i++) {
            node = trie_step(trie, node, text[i]);
            if (node == 0) break;
            uint32_t id = trie->nodes[node].value;
            if (id == TRIE_NONE) continue;
            reach(best, i + 1, best[begin].score + m->scores[id], begin, id);
            alone |= i + 1 == next;
        }
        if (alone) continue;
        double score = best[begin].score + m->unknown_score;
        bool needed = best[next].begin == UINT32_MAX || score > best[next].score;
        if (needed && m->unknown == TRIE_NONE) return false;
        reach(best, next, score, begin, m->unknown);
    }
    return true;
}

/* A stretch that the path calls unknown, or a token of the path. */
static void put(const Unigram *m, const char *text, size_t begin, size_t end, ModelTokens *out) {
    uint32_t id = vocab_find(&m->model.vocab, text + begin, end - begin);
    bool bytes = id == TRIE_NONE && m->byte_fallback;
    for (size_t i = begin; bytes && i < end; i++)
        bytes = m->bytes[(unsigned char)text[i]] != TRIE_NONE;
    if (!bytes) {
        if (id == TRIE_NONE) id = m->unknown;
        VEC_PUSH(out, (Token){id, (uint32_t)begin, (uint32_t)end, true});
        return;
    }
    for (size_t i = begin; i < end; i++)
        VEC_PUSH(out,
                 (Token){m->bytes[(unsigned char)text[i]], (uint32_t)begin, (uint32_t)end, false});
}

static bool unigram_tokenize(Model *model, const char *text, size_t length, ModelTokens *out) {
    Unigram *m = (Unigram *)model;
    if (m->capacity < length + 1) {
        Best *best = realloc(m->best, (length + 1) * 2 * sizeof *best);
        if (!best) {
            out->failed = true;
            return true;
        }
        m->best = best;
        m->capacity = (length + 1) * 2;
    }
    if (!find_best(m, text, length)) return false;
    /* The path leads backwards. Turn it around: best[i].begin becomes where the token at i ends. */
    Best *best = m->best;
    uint32_t end = (uint32_t)length, after = UINT32_MAX, id = 0;
    while (true) {
        Best here = best[end];
        best[end].begin = after;
        best[end].id = id;
        if (end == 0) break;
        after = end;
        id = here.id;
        end = here.begin;
    }
    for (size_t begin = 0; begin < length;) {
        size_t stop = best[begin].begin;
        /* Unknown characters in a row are one token. */
        while (best[begin].id == m->unknown && stop < length && best[stop].id == m->unknown)
            stop = best[stop].begin;
        put(m, text, begin, stop, out);
        begin = stop;
    }
    return true;
}

static void unigram_free(Model *model) {
    free(((Unigram *)model)->best);
}

static void read_vocab(Settings *settings, Unigram *m, const Doc *list) {
    size_t count = doc_count(list), i;
    TrieEntry *entries = calloc(count ? count : 1, sizeof *entries);
    m->scores = ARENA_ARRAY(settings->arena, double, count);
    double lowest = INFINITY;
    const Doc *item;
    if (entries && m->scores) {
        DOC_EACH_ITEM(list, i, item) {
            const char *text = doc_text(doc_item(item, 0));
            if (!text || !doc_is_number(doc_item(item, 1))) {
                setting_fail(settings, FERRY_BAD_FORMAT,
                             "\"vocab\"[%zu] is not a token with its score, as in [\"a\", -1.5]",
                             i);
                break;
            }
            m->scores[i] = doc_number(doc_item(item, 1));
            if (m->scores[i] < lowest) lowest = m->scores[i];
            entries[i] = (TrieEntry){text, (uint32_t)strlen(text), (uint32_t)i};
        }
        if (settings->status == FERRY_OK) vocab_build(settings, entries, count, &m->model.vocab);
    }
    m->unknown_score = lowest - UNKNOWN_PENALTY;
    free(entries);
}

Model *unigram_read(Settings *settings, const Doc *doc) {
    Unigram *m = ARENA_NEW(settings->arena, Unigram);
    if (!m) return NULL;
    m->model.tokenize = unigram_tokenize;
    m->model.free = unigram_free;
    m->model.missing = "\"unk_id\"";
    read_vocab(settings, m, setting_array(settings, doc, "vocab"));
    m->unknown = (uint32_t)setting_size_or(settings, doc, "unk_id", TRIE_NONE);
    if (m->unknown != TRIE_NONE && m->unknown >= m->model.vocab.limit)
        setting_fail(settings, FERRY_BAD_FORMAT, "\"unk_id\" is %u, of a vocabulary of %u",
                     m->unknown, m->model.vocab.limit);
    m->byte_fallback = setting_bool_or(settings, doc, "byte_fallback", false);
    vocab_bytes(&m->model.vocab, m->bytes);
    return &m->model;
}
