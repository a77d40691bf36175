#include "text/postprocessor.h"
#include "text/unicode.h"

#include <stdlib.h>

typedef struct Special {
    uint32_t id, type;
} Special;

/* A piece of a template: an input, or special tokens. */
typedef struct TemplatePiece {
    const Special *specials;
    size_t count;
    uint32_t type;
    bool is_input, second;
} TemplatePiece;

typedef struct Template {
    const TemplatePiece *pieces;
    size_t count;
} Template;

struct PostProcessor {
    void (*apply)(const PostProcessor *p, Post *post);
    size_t added[2]; /* to one input, to a pair */
    bool trims, prefix_space;
    uint32_t first, separator; /* BertProcessing, RobertaProcessing */
    Template templates[2];
    PostProcessor *next; /* of a sequence */
};

/* ---- segments ---- */

static void put_special(Post *post, uint32_t id, uint32_t type) {
    VEC_PUSH(&post->next, (Encoded){.id = id, .type = type, .special = true});
}

static void end_segment(Post *post) {
    VEC_PUSH(&post->next_ends, post->next.count);
}

static void put_segment(Post *post, size_t segment) {
    size_t i = segment ? post->ends.items[segment - 1] : 0;
    for (; i < post->ends.items[segment]; i++) VEC_PUSH(&post->next, post->tokens.items[i]);
}

static void take_next(Post *post) {
    EncodedTokens tokens = post->tokens;
    Ends ends = post->ends;
    post->tokens = post->next;
    post->ends = post->next_ends;
    post->next = tokens;
    post->next_ends = ends;
    post->next.count = post->next_ends.count = 0;
}

/* ---- each kind ---- */

/* Take blanks out of the span of a token, which counts them in characters. */
static void trim_token(Encoded *token, bool keep_first, const char *input) {
    Span *span = &token->span;
    size_t before = token->before, after = token->after;
    if (keep_first && before == 1) before = 0;
    for (; before > 0 && span->begin < span->end; before--)
        span->begin += (uint32_t)utf8_size(input[span->begin]);
    /* Nothing is taken from the end when the input is shorter than that. */
    size_t end = span->end, left = after;
    while (left > 0 && end > 0) {
        end = utf8_before(input, end);
        left--;
    }
    if (left == 0) span->end = end > span->begin ? (uint32_t)end : span->begin;
}

static void trim(const PostProcessor *p, Post *post) {
    size_t i = 0;
    for (size_t s = 0; p->trims && s < post->ends.count; s++) {
        for (size_t first = i; i < post->ends.items[s]; i++) {
            Encoded *token = &post->tokens.items[i];
            bool at_start = i == first || token->span.begin == 0;
            trim_token(token, at_start && p->prefix_space, post->inputs[token->second]);
        }
    }
}

static void apply_byte_level(const PostProcessor *p, Post *post) {
    trim(p, post);
}

/* [CLS] a [SEP] b [SEP] */
static void apply_bert(const PostProcessor *p, Post *post) {
    if (!post->special_tokens) return;
    for (size_t s = 0; s < post->ends.count; s++) {
        if (s == 0) put_special(post, p->first, 0);
        put_segment(post, s);
        put_special(post, p->separator, s > 0);
        end_segment(post);
    }
    take_next(post);
}

/* <s> a </s></s> b </s> */
static void apply_roberta(const PostProcessor *p, Post *post) {
    trim(p, post);
    for (size_t i = 0; i < post->tokens.count; i++) post->tokens.items[i].type = 0;
    if (!post->special_tokens) return;
    for (size_t s = 0; s < post->ends.count; s++) {
        put_special(post, s ? p->separator : p->first, 0);
        put_segment(post, s);
        put_special(post, p->separator, 0);
        end_segment(post);
    }
    take_next(post);
}

static void apply_template(const PostProcessor *p, Post *post) {
    const Template *template = &p->templates[post->ends.count == 2];
    for (size_t i = 0; i < template->count; i++) {
        const TemplatePiece *piece = &template->pieces[i];
        size_t first = post->next.count;
        if (piece->is_input && piece->second < post->ends.count) {
            put_segment(post, piece->second);
            for (size_t k = first; k < post->next.count; k++)
                post->next.items[k].type = piece->type;
        }
        for (size_t k = 0; k < piece->count && post->special_tokens; k++)
            put_special(post, piece->specials[k].id, piece->type);
        if (piece->is_input || post->special_tokens) end_segment(post);
    }
    take_next(post);
}

/* ---- reading ---- */

/* ["[SEP]", 102] */
static uint32_t read_pair(Settings *settings, const Doc *doc, const char *key) {
    return setting_id(settings, doc_item(setting_array(settings, doc, key), 1));
}

static void read_bert(Settings *settings, const Doc *doc, PostProcessor *p) {
    p->first = read_pair(settings, doc, "cls");
    p->separator = read_pair(settings, doc, "sep");
    p->added[0] = 2;
    p->added[1] = 3;
}

static void read_byte_level(Settings *settings, const Doc *doc, PostProcessor *p) {
    p->trims = setting_bool(settings, doc, "trim_offsets");
    p->prefix_space = setting_bool(settings, doc, "add_prefix_space");
}

static void read_roberta(Settings *settings, const Doc *doc, PostProcessor *p) {
    read_bert(settings, doc, p);
    read_byte_level(settings, doc, p);
    p->added[1] = 4;
}

static void read_specials(Settings *settings, const Doc *doc, const char *name,
                          TemplatePiece *out) {
    const Doc *special = doc_get(setting_object(settings, doc, "special_tokens"), name);
    const Doc *ids = doc_get(special, "ids"), *item;
    if (!doc_is_array(ids)) {
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "the template uses \"%s\", which \"special_tokens\" lacks", name);
        return;
    }
    Special *specials = ARENA_ARRAY(settings->arena, Special, doc_count(ids));
    if (!specials) return;
    size_t i;
    DOC_EACH_ITEM(ids, i, item) specials[i].id = setting_id(settings, item);
    out->specials = specials;
    out->count = doc_count(ids);
}

static void read_template_list(Settings *settings, const Doc *doc, const char *key, bool pair,
                               PostProcessor *p) {
    const Doc *list = setting_array(settings, doc, key), *item;
    TemplatePiece *pieces = ARENA_ARRAY(settings->arena, TemplatePiece, doc_count(list));
    if (!pieces) return;
    size_t i;
    DOC_EACH_ITEM(list, i, item) {
        const Doc *input = doc_get(item, "Sequence");
        const Doc *body = input ? input : setting_object(settings, item, "SpecialToken");
        const char *id = setting_text(settings, body, "id");
        TemplatePiece *piece = &pieces[i];
        piece->type = (uint32_t)setting_size(settings, body, "type_id");
        piece->is_input = input != NULL;
        piece->second = input && strcmp(id, "B") == 0;
        if (!input) read_specials(settings, doc, id, piece);
        if (piece->second && !pair)
            setting_fail(settings, FERRY_BAD_FORMAT, "the template \"single\" uses the sequence B");
        p->added[pair] += piece->count;
    }
    p->templates[pair] = (Template){pieces, doc_count(list)};
}

static void read_template(Settings *settings, const Doc *doc, PostProcessor *p) {
    read_template_list(settings, doc, "single", false, p);
    read_template_list(settings, doc, "pair", true, p);
}

static const struct {
    const char *type;
    void (*read)(Settings *settings, const Doc *doc, PostProcessor *p);
    void (*apply)(const PostProcessor *p, Post *post);
} kinds[] = {
    {"BertProcessing", read_bert, apply_bert},
    {"ByteLevel", read_byte_level, apply_byte_level},
    {"RobertaProcessing", read_roberta, apply_roberta},
    {"TemplateProcessing", read_template, apply_template},
};

static void read_one(Settings *settings, const Doc *doc, PostProcessor ***end, int depth) {
    const char *type = setting_text(settings, doc, "type");
    if (strcmp(type, "Sequence") == 0) {
        const Doc *list = setting_array(settings, doc, "processors"), *item;
        size_t i;
        if (depth == 32) setting_fail(settings, FERRY_UNSUPPORTED, "sequences nested too deeply");
        if (settings->status == FERRY_OK)
            DOC_EACH_ITEM(list, i, item) read_one(settings, item, end, depth + 1);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0) continue;
        PostProcessor *p = ARENA_NEW(settings->arena, PostProcessor);
        if (!p) return;
        p->apply = kinds[i].apply;
        kinds[i].read(settings, doc, p);
        **end = p;
        *end = &p->next;
        return;
    }
    setting_fail(settings, FERRY_UNSUPPORTED, "the type \"%s\" is not known", type);
}

/* A template takes one input or two; another processor that makes segments must not come before it. */
static void check(Settings *settings, const PostProcessor *first) {
    bool segmented = false;
    for (const PostProcessor *p = first; p; p = p->next) {
        if (p->apply == apply_template && segmented)
            setting_fail(settings, FERRY_UNSUPPORTED, "a template after a template in a sequence");
        segmented |= p->apply == apply_template;
    }
}

PostProcessor *postprocessor_read(Settings *settings, const Doc *doc) {
    PostProcessor *first = NULL, **end = &first;
    settings->place = "post_processor";
    if (doc && !doc_is_null(doc)) read_one(settings, doc, &end, 0);
    check(settings, first);
    return first;
}

void postprocessor_run(const PostProcessor *postprocessor, Post *post) {
    for (const PostProcessor *p = postprocessor; p; p = p->next) p->apply(p, post);
}

size_t postprocessor_added(const PostProcessor *postprocessor, bool pair) {
    size_t count = 0;
    for (const PostProcessor *p = postprocessor; p; p = p->next) count += p->added[pair];
    return count;
}

bool postprocessor_trims(const PostProcessor *postprocessor) {
    const PostProcessor *p = postprocessor;
    while (p && !p->trims) p = p->next;
    return p != NULL;
}
