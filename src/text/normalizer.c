#include "text/normalizer.h"
#include "text/charsmap.h"
#include "text/forms.h"
#include "text/unicode.h"

#include <stdlib.h>

/* Append the normalized text to `out`, or return false when it is what it was. */
typedef bool Apply(const Normalizer *n, Work *work, const Line *in, uint32_t origin, Line *out);

struct Normalizer {
    Apply *apply;
    union {
        struct {
            bool clean, chinese, strip_accents, lowercase;
        } bert;
        struct {
            bool left, right;
        } strip;
        Form form;
        Charsmap charsmap;
        struct {
            Regex *regex;
            const char *content;
        } replace;
        const char *prepend;
    };
    Normalizer *next; /* of a sequence */
};

/* ---- each kind ---- */

/* The characters of a text, one after the other. */
#define EACH_CHAR(line, i, c)                                                                      \
    for (size_t i = 0; i < (line)->length; i += utf8_size((line)->bytes[i]))                       \
        for (uint32_t c = utf8_get((line)->bytes + i), once_ = 1; once_; once_ = 0)

static bool is_ascii(const Line *line) {
    for (size_t i = 0; i < line->length; i++) {
        if ((unsigned char)line->bytes[i] >= 0x80) return false;
    }
    return true;
}

static bool is_chinese(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static void put_lower(Line *out, uint32_t c, Span span) {
    uint32_t lower[2];
    size_t count = char_lower(c, lower);
    for (size_t i = 0; i < count; i++) line_put_char(out, lower[i], span);
}

static bool apply_lowercase(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                            Line *out) {
    (void)n, (void)work, (void)origin;
    EACH_CHAR(in, i, c) put_lower(out, c, in->spans[i]);
    return true;
}

static bool apply_form(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                       Line *out) {
    work->edits.count = 0;
    if (!form_edits(n->form, in->bytes, in->length, &work->edits)) return false;
    line_edit(out, in, 0, in->length, origin, &work->edits);
    return true;
}

static bool apply_strip_accents(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                                Line *out) {
    (void)n, (void)work, (void)origin;
    EACH_CHAR(in, i, c) {
        if (!char_is_mark(c)) line_put_char(out, c, in->spans[i]);
    }
    return true;
}

static bool apply_strip(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                        Line *out) {
    (void)work, (void)origin;
    size_t begin = 0, end = in->length;
    while (n->strip.left && begin < end && char_is_space(utf8_get(in->bytes + begin)))
        begin += utf8_size(in->bytes[begin]);
    while (n->strip.right && begin < end) {
        size_t last = utf8_before(in->bytes, end);
        if (!char_is_space(utf8_get(in->bytes + last))) break;
        end = last;
    }
    line_copy(out, in, begin, end);
    return true;
}

/* Control characters that are dropped, and what counts as a space, in NMT. */
static bool is_nmt_control(uint32_t c) {
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
}

static bool is_nmt_space(uint32_t c) {
    return c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

static bool apply_nmt(const Normalizer *n, Work *work, const Line *in, uint32_t origin, Line *out) {
    (void)n, (void)work, (void)origin;
    EACH_CHAR(in, i, c) {
        if (!is_nmt_control(c)) line_put_char(out, is_nmt_space(c) ? ' ' : c, in->spans[i]);
    }
    return true;
}

static bool apply_precompiled(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                              Line *out) {
    work->edits.count = 0;
    if (!charsmap_edits(&n->charsmap, in->bytes, in->length, &work->edits)) return false;
    line_edit(out, in, 0, in->length, origin, &work->edits);
    return true;
}

static bool apply_replace(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                          Line *out) {
    RegexWalk walk = regex_walk(n->replace.regex, in->bytes, in->length);
    size_t last = 0, length = strlen(n->replace.content);
    while (in->length > 0 && regex_next(&walk)) {
        line_copy(out, in, last, walk.begin);
        Span span = walk.end > 0 ? in->spans[walk.end - 1] : (Span){origin, origin};
        line_put(out, n->replace.content, length, span);
        last = walk.end;
    }
    if (walk.problem && work->status == FERRY_OK)
        work->status = regex_problem(&walk, work->path, work->error);
    if (last == 0 && out->length == 0) return false;
    line_copy(out, in, last, in->length);
    return true;
}

static bool apply_prepend(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                          Line *out) {
    (void)work, (void)origin;
    if (in->length == 0) return false;
    line_put(out, n->prepend, strlen(n->prepend), in->spans[0]);
    line_copy(out, in, 0, in->length);
    return true;
}

static bool apply_byte_level(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                             Line *out) {
    (void)n, (void)work, (void)origin;
    byte_level_encode(in, 0, in->length, out);
    return true;
}

/* BertNormalizer is a sequence of these. */

static bool apply_bert_clean(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                             Line *out) {
    (void)n, (void)work, (void)origin;
    EACH_CHAR(in, i, c) {
        bool blank = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xfffd || (!blank && char_is_control(c))) continue;
        line_put_char(out, char_is_space(c) ? ' ' : c, in->spans[i]);
    }
    return true;
}

static bool apply_bert_chinese(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                               Line *out) {
    (void)n, (void)work, (void)origin;
    if (is_ascii(in)) return false;
    EACH_CHAR(in, i, c) {
        bool apart = is_chinese(c);
        if (apart) line_put(out, " ", 1, in->spans[i]);
        line_put_char(out, c, in->spans[i]);
        if (apart) line_put(out, " ", 1, in->spans[i]);
    }
    return true;
}

static bool apply_bert_accents(const Normalizer *n, Work *work, const Line *in, uint32_t origin,
                               Line *out) {
    (void)n, (void)work, (void)origin;
    if (is_ascii(in)) return false;
    EACH_CHAR(in, i, c) {
        if (!char_is_nonspacing(c)) line_put_char(out, c, in->spans[i]);
    }
    return true;
}

/* ---- reading ---- */

/* Add a step behind `*end`. */
static Normalizer *add(Settings *settings, Normalizer ***end, Apply *apply) {
    Normalizer *n = ARENA_NEW(settings->arena, Normalizer);
    if (!n) return NULL;
    n->apply = apply;
    **end = n;
    *end = &n->next;
    return n;
}

static void read_one(Settings *settings, const Doc *doc, Normalizer ***end, int depth);

static void read_bert(Settings *settings, const Doc *doc, Normalizer ***end) {
    bool lowercase = setting_bool(settings, doc, "lowercase");
    bool strip = setting_bool_or(settings, doc, "strip_accents", lowercase);
    if (setting_bool(settings, doc, "clean_text")) add(settings, end, apply_bert_clean);
    if (setting_bool(settings, doc, "handle_chinese_chars")) add(settings, end, apply_bert_chinese);
    if (strip) {
        add(settings, end, apply_form); /* NFD */
        add(settings, end, apply_bert_accents);
    }
    if (lowercase) add(settings, end, apply_lowercase);
}

static void read_strip(Settings *settings, const Doc *doc, Normalizer ***end) {
    Normalizer *n = add(settings, end, apply_strip);
    if (!n) return;
    n->strip.left = setting_bool(settings, doc, "strip_left");
    n->strip.right = setting_bool(settings, doc, "strip_right");
}

static void read_form(Settings *settings, const Doc *doc, Normalizer ***end) {
    const char *name = setting_text(settings, doc, "type");
    Normalizer *n = add(settings, end, apply_form);
    if (n) n->form = (Form){strchr(name, 'K') != NULL, strchr(name, 'C') != NULL};
}

static void read_precompiled(Settings *settings, const Doc *doc, Normalizer ***end) {
    Charsmap map;
    charsmap_read(settings, setting_text(settings, doc, "precompiled_charsmap"), &map);
    Normalizer *n = map.units ? add(settings, end, apply_precompiled) : NULL;
    if (n) n->charsmap = map;
}

static void read_replace(Settings *settings, const Doc *doc, Normalizer ***end) {
    Regex *regex = regex_read(settings, doc);
    Normalizer *n = regex ? add(settings, end, apply_replace) : NULL;
    if (!n) {
        regex_free(regex);
        return;
    }
    n->replace.regex = regex;
    n->replace.content = setting_text(settings, doc, "content");
}

static void read_prepend(Settings *settings, const Doc *doc, Normalizer ***end) {
    const char *text = setting_text(settings, doc, "prepend");
    Normalizer *n = add(settings, end, apply_prepend);
    if (n) n->prepend = text;
}

static void read_sequence(Settings *settings, const Doc *doc, Normalizer ***end, int depth) {
    const Doc *list = setting_array(settings, doc, "normalizers"), *item;
    size_t i;
    if (depth == 32) setting_fail(settings, FERRY_UNSUPPORTED, "sequences nested too deeply");
    if (settings->status == FERRY_OK)
        DOC_EACH_ITEM(list, i, item) read_one(settings, item, end, depth + 1);
}

static const struct {
    const char *type;
    void (*read)(Settings *settings, const Doc *doc, Normalizer ***end);
    Apply *apply; /* when there is nothing to read */
} kinds[] = {
    {"BertNormalizer", read_bert, NULL},
    {"ByteLevel", NULL, apply_byte_level},
    {"Lowercase", NULL, apply_lowercase},
    {"NFC", read_form, NULL},
    {"NFD", read_form, NULL},
    {"NFKC", read_form, NULL},
    {"NFKD", read_form, NULL},
    {"Nmt", NULL, apply_nmt},
    {"Precompiled", read_precompiled, NULL},
    {"Prepend", read_prepend, NULL},
    {"Replace", read_replace, NULL},
    {"Strip", read_strip, NULL},
    {"StripAccents", NULL, apply_strip_accents},
};

static void read_one(Settings *settings, const Doc *doc, Normalizer ***end, int depth) {
    const char *type = setting_text(settings, doc, "type");
    if (strcmp(type, "Sequence") == 0) {
        read_sequence(settings, doc, end, depth);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0) continue;
        if (kinds[i].read)
            kinds[i].read(settings, doc, end);
        else
            add(settings, end, kinds[i].apply);
        return;
    }
    setting_fail(settings, FERRY_UNSUPPORTED, "the type \"%s\" is not known", type);
}

Normalizer *normalizer_read(Settings *settings, const Doc *doc) {
    Normalizer *first = NULL, **end = &first;
    settings->place = "normalizer";
    if (doc && !doc_is_null(doc)) read_one(settings, doc, &end, 0);
    return first;
}

void normalizer_free(Normalizer *normalizer) {
    for (Normalizer *n = normalizer; n; n = n->next) {
        if (n->apply == apply_replace) regex_free(n->replace.regex);
    }
}

const Line *normalizer_run(const Normalizer *normalizer, Work *work, const Line *from, size_t begin,
                           size_t end, uint32_t origin) {
    Line *in = &work->spare[0], *out = &work->spare[1];
    in->length = 0;
    line_copy(in, from, begin, end);
    for (const Normalizer *n = normalizer; n; n = n->next) {
        out->length = 0;
        if (!n->apply(n, work, in, origin, out)) continue;
        Line *other = in;
        in = out;
        out = other;
    }
    return in;
}
