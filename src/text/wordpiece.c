/* WordPiece: the longest token first, then the longest continuation, and so on. WordLevel: the piece is
 * a token. */
#include "text/model.h"
#include "text/unicode.h"

typedef struct WordPiece {
    Model model;
    uint32_t unknown;      /* TRIE_NONE: there is none */
    uint32_t continuation; /* the node behind the prefix of continuations, or TRIE_NONE */
    size_t max_chars;
} WordPiece;

static bool put_unknown(WordPiece *m, size_t length, ModelTokens *out) {
    if (m->unknown == TRIE_NONE) return false;
    VEC_PUSH(out, (Token){m->unknown, 0, (uint32_t)length, false});
    return true;
}

static bool wordpiece_tokenize(Model *model, const char *text, size_t length, ModelTokens *out) {
    WordPiece *m = (WordPiece *)model;
    const Trie *trie = &model->vocab.trie;
    size_t first = out->count;
    if (length > m->max_chars && utf8_count(text, length) > m->max_chars)
        return put_unknown(m, length, out);
    for (size_t begin = 0; begin < length;) {
        uint32_t node = begin ? m->continuation : 0, id = TRIE_NONE;
        size_t end = begin;
        for (size_t i = begin; i < length && node != TRIE_NONE; i++) {
            node = trie_step(trie, node, text[i]);
            if (node == 0) break;
            /* A token ends where a character does. */
            if (trie->nodes[node].value == TRIE_NONE ||
                (i + 1 < length && utf8_is_inner(text[i + 1])))
                continue;
            id = trie->nodes[node].value;
            end = i + 1;
        }
        if (id == TRIE_NONE) {
            out->count = first;
            return put_unknown(m, length, out);
        }
        VEC_PUSH(out, (Token){id, (uint32_t)begin, (uint32_t)end, false});
        begin = end;
    }
    return true;
}

static bool wordlevel_tokenize(Model *model, const char *text, size_t length, ModelTokens *out) {
    uint32_t id = vocab_find(&model->vocab, text, length);
    if (id == TRIE_NONE) return put_unknown((WordPiece *)model, length, out);
    VEC_PUSH(out, (Token){id, 0, (uint32_t)length, false});
    return true;
}

static WordPiece *read_words(Settings *settings, const Doc *doc) {
    WordPiece *m = ARENA_NEW(settings->arena, WordPiece);
    if (!m) return NULL;
    const char *unknown = setting_text(settings, doc, "unk_token");
    vocab_read(settings, setting_object(settings, doc, "vocab"), &m->model.vocab);
    m->unknown = vocab_find(&m->model.vocab, unknown, strlen(unknown));
    m->model.missing = unknown;
    return m;
}

Model *wordpiece_read(Settings *settings, const Doc *doc) {
    WordPiece *m = read_words(settings, doc);
    if (!m) return NULL;
    const char *prefix = setting_text(settings, doc, "continuing_subword_prefix");
    m->max_chars = setting_size(settings, doc, "max_input_chars_per_word");
    m->model.tokenize = wordpiece_tokenize;
    m->continuation = m->model.vocab.trie.nodes
                          ? trie_walk(&m->model.vocab.trie, 0, prefix, strlen(prefix))
                          : TRIE_NONE;
    return &m->model;
}

Model *wordlevel_read(Settings *settings, const Doc *doc) {
    WordPiece *m = read_words(settings, doc);
    if (!m) return NULL;
    m->model.tokenize = wordlevel_tokenize;
    return &m->model;
}
