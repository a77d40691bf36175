#include "text/added.h"
#include "text/unicode.h"

#include <stdlib.h>

const AddedToken *added_by_id(const Added *added, uint32_t id) {
    return map_get(&added->by_id, &id, sizeof id);
}

void added_free(Added *added) {
    map_free(&added->by_content);
    map_free(&added->by_id);
    map_free(&added->special);
}

/* ---- splitting ---- */

/* Where the spaces that end at `end` begin, not before `from`. */
static size_t spaces_before(const char *text, size_t from, size_t end) {
    while (end > from) {
        size_t begin = utf8_before(text, end);
        if (!char_is_space(utf8_get(text + begin))) break;
        end = begin;
    }
    return end;
}

static size_t spaces_after(const char *text, size_t begin, size_t length) {
    while (begin < length && char_is_space(utf8_get(text + begin))) begin += utf8_size(text[begin]);
    return begin;
}

static bool stands_alone(const char *text, size_t begin, size_t end, size_t length) {
    return (begin == 0 || !char_is_word(utf8_get(text + utf8_before(text, begin)))) &&
           (end == length || !char_is_word(utf8_get(text + end)));
}

/* The longest token that begins at `at`, or NULL. */
static const AddedToken *token_at(const Added *added, const Trie *trie, const char *text, size_t at,
                                  size_t length, size_t *end) {
    const AddedToken *found = NULL;
    for (uint32_t node = 0; at < length; at++) {
        node = trie_step(trie, node, text[at]);
        if (node == 0) break;
        if (trie->nodes[node].value == TRIE_NONE) continue;
        found = &added->tokens[trie->nodes[node].value];
        *end = at + 1;
    }
    return found;
}

/* Told, in order, each token with its place, and with NULL what lies between. */
typedef void Found(void *context, const AddedToken *token, size_t begin, size_t end);

static void find(const Added *added, const Trie *trie, const char *text, size_t length, Found *tell,
                 void *context) {
    size_t done = 0, end = 0;
    for (size_t at = 0; trie->nodes && at < length;) {
        const AddedToken *token = trie->starts[(unsigned char)text[at]]
                                      ? token_at(added, trie, text, at, length, &end)
                                      : NULL;
        if (!token) {
            at++;
            continue;
        }
        size_t begin = at, stop = end;
        at = end;
        if (token->single_word && !stands_alone(text, begin, end, length)) continue;
        if (token->left) begin = begin > done ? spaces_before(text, done, begin) : done;
        if (token->right) stop = spaces_after(text, stop, length);
        if (done < begin) tell(context, NULL, done, begin);
        tell(context, token, begin, stop);
        done = stop;
    }
    if (done < length) tell(context, NULL, done, length);
}

typedef struct Splitting {
    const Added *added;
    const Normalizer *normalizer;
    const Line *line; /* that is being split */
    Work *work;
    uint32_t base; /* where it begins in the work's line */
} Splitting;

static void add_piece(const Splitting *s, const AddedToken *token, size_t begin, size_t end) {
    if (begin >= end) return;
    VEC_PUSH(&s->work->pieces, (Piece){s->base + (uint32_t)begin, s->base + (uint32_t)end,
                                       s->line->spans[begin].begin, token ? token->id : TRIE_NONE});
}

static void found_normalized(void *context, const AddedToken *token, size_t begin, size_t end) {
    add_piece(context, token, begin, end);
}

static void found_plain(void *context, const AddedToken *token, size_t begin, size_t end) {
    Splitting *s = context;
    Splitting inner = *s;
    inner.base = (uint32_t)s->work->line.length;
    if (token) {
        line_copy(&s->work->line, s->line, begin, end);
        inner.base -= (uint32_t)begin;
        add_piece(&inner, token, begin, end);
        return;
    }
    uint32_t origin = s->line->spans[begin].begin;
    inner.line = normalizer_run(s->normalizer, s->work, s->line, begin, end, origin);
    if (s->work->line.failed || inner.line->failed) return;
    line_copy(&s->work->line, inner.line, 0, inner.line->length);
    find(s->added, &s->added->normalized, inner.line->bytes, inner.line->length, found_normalized,
         &inner);
}

void added_split(const Added *added, const Normalizer *normalizer, const Line *input, Work *work) {
    Splitting s = {added, normalizer, input, work, 0};
    work->line.length = 0;
    work->pieces.count = 0;
    find(added, &added->plain, input->bytes, input->length, found_plain, &s);
}

/* ---- reading ---- */

/* The content of a token, normalized. */
static const char *normal_form(Settings *settings, const Normalizer *normalizer, Work *work,
                               const char *content) {
    Line line = {0};
    size_t length = strlen(content);
    line_put(&line, content, length, (Span){0, (uint32_t)length});
    const Line *form = normalizer_run(normalizer, work, &line, 0, line.length, 0);
    const char *text =
        arena_string_n(settings->arena, form->length ? form->bytes : "", form->length);
    line_free(&line);
    return text;
}

static void put(Added *added, AddedToken token) {
    AddedToken *known = map_find(&added->by_content, token.content);
    AddedToken *place = known ? known : &added->tokens[added->count++];
    *place = token;
    if (token.id >= added->limit) added->limit = token.id + 1;
    map_put(&added->by_content, place->content, place);
    map_set(&added->by_id, &place->id, sizeof place->id, place);
    if (token.special) map_put(&added->special, place->content, place);
}

static void build(Settings *settings, Added *added, bool normalized, Trie *trie) {
    TrieEntry *entries = calloc(added->count ? added->count : 1, sizeof *entries);
    size_t count = 0;
    for (size_t i = 0; entries && i < added->count; i++) {
        const AddedToken *token = &added->tokens[i];
        if (token->normalized == normalized && *token->form)
            entries[count++] = (TrieEntry){token->form, (uint32_t)strlen(token->form), (uint32_t)i};
    }
    if (!entries || (count > 0 && !trie_build(trie, settings->arena, entries, count)))
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
    free(entries);
}

void added_read(Settings *settings, const Doc *list, const Model *model,
                const Normalizer *normalizer, Work *work, Added *out) {
    settings->place = "added_tokens";
    if (list && !doc_is_null(list) && !doc_is_array(list))
        setting_fail(settings, FERRY_BAD_FORMAT, "%s; expected an array", doc_kind(list));
    out->tokens = ARENA_ARRAY(settings->arena, AddedToken, doc_count(list));
    uint32_t next = model->vocab.count;
    size_t i;
    const Doc *item;
    DOC_EACH_ITEM(list, i, item) {
        AddedToken token = {
            .content = setting_text(settings, item, "content"),
            .single_word = setting_bool(settings, item, "single_word"),
            .left = setting_bool(settings, item, "lstrip"),
            .right = setting_bool(settings, item, "rstrip"),
            .normalized = setting_bool(settings, item, "normalized"),
            .special = setting_bool(settings, item, "special"),
        };
        if (settings->status != FERRY_OK || !out->tokens) return;
        if (!*token.content) continue;
        const AddedToken *known = map_find(&out->by_content, token.content);
        token.id =
            known ? known->id : vocab_find(&model->vocab, token.content, strlen(token.content));
        if (token.id == TRIE_NONE) token.id = next++;
        token.form = token.normalized && normalizer
                         ? normal_form(settings, normalizer, work, token.content)
                         : token.content;
        if (out->by_content.failed || out->by_id.failed || out->special.failed) break;
        put(out, token);
    }
    build(settings, out, false, &out->plain);
    build(settings, out, true, &out->normalized);
}
