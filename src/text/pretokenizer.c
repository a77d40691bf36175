#include "text/pretokenizer.h"
#include "text/normalizer.h"
#include "text/unicode.h"

typedef void Apply(const PreTokenizer *p, Work *work);

struct PreTokenizer {
    Apply *apply;
    Regex *regex; /* owned; or NULL */
    SplitBehavior behavior;
    bool invert;
    WorkClassOf class;
    union {
        bool prefix_space; /* ByteLevel */
        struct {
            char mark[4];
            size_t mark_size;
            Prepend prepend;
            bool split;
        } metaspace;
        size_t length; /* FixedLength */
    };
    PreTokenizer *next; /* of a sequence */
};

/* ---- each kind ---- */

static void apply_class(const PreTokenizer *p, Work *work) {
    work_split(work, work_find_class, &p->class, p->behavior, false);
}

static void apply_regex(const PreTokenizer *p, Work *work) {
    work_split(work, work_find_regex, p->regex, p->behavior, p->invert);
}

static bool is_char(uint32_t c, uint32_t wanted) {
    return c == wanted;
}

static bool is_space(uint32_t c, uint32_t wanted) {
    (void)wanted;
    return char_is_space(c);
}

static bool is_punctuation(uint32_t c, uint32_t wanted) {
    (void)wanted;
    return char_is_punctuation(c);
}

static bool is_number(uint32_t c, uint32_t wanted) {
    (void)wanted;
    return char_is_number(c);
}

static void put_prefix_space(Work *work, const void *what, const Piece *piece, Line *out) {
    (void)what;
    const char *bytes = work->line.bytes + piece->begin;
    if (*bytes != ' ') line_put(out, " ", 1, work->line.spans[piece->begin]);
    line_copy(out, &work->line, piece->begin, piece->end);
}

static void put_byte_level(Work *work, const void *what, const Piece *piece, Line *out) {
    (void)what;
    byte_level_encode(&work->line, piece->begin, piece->end, out);
}

static void apply_byte_level(const PreTokenizer *p, Work *work) {
    if (p->prefix_space) work_rewrite(work, put_prefix_space, NULL);
    if (p->regex) work_split(work, work_find_regex, p->regex, SPLIT_ISOLATED, false);
    work_rewrite(work, put_byte_level, NULL);
}

static void put_metaspace(Work *work, const void *what, const Piece *piece, Line *out) {
    const PreTokenizer *p = what;
    const Line *in = &work->line;
    const char *mark = p->metaspace.mark;
    size_t size = p->metaspace.mark_size, left = piece->end - piece->begin;
    const char *bytes = in->bytes + piece->begin;
    bool marked = *bytes == ' ' || (left >= size && memcmp(bytes, mark, size) == 0);
    bool wanted = p->metaspace.prepend == PREPEND_ALWAYS ||
                  (p->metaspace.prepend == PREPEND_FIRST && piece->origin == 0);
    if (wanted && !marked) line_put(out, mark, size, in->spans[piece->begin]);
    for (size_t i = piece->begin, end; i < piece->end; i = end) {
        const char *space = memchr(in->bytes + i, ' ', piece->end - i);
        end = space ? (size_t)(space - in->bytes) : piece->end;
        line_copy(out, in, i, end);
        if (space) line_put(out, mark, size, in->spans[end++]);
    }
}

static void apply_metaspace(const PreTokenizer *p, Work *work) {
    work_rewrite(work, put_metaspace, p);
    if (p->metaspace.split)
        work_split(work, work_find_class, &p->class, SPLIT_MERGED_WITH_NEXT, false);
}

static void find_fixed(Work *work, const void *what, uint32_t begin, uint32_t end) {
    size_t wanted = *(const size_t *)what;
    while (begin < end) {
        uint32_t stop = begin;
        for (size_t n = 0; n < wanted && stop < end; n++)
            stop += (uint32_t)utf8_size(work->line.bytes[stop]);
        VEC_PUSH(&work->matches, (Match){begin, stop, true});
        begin = stop;
    }
}

static void apply_fixed_length(const PreTokenizer *p, Work *work) {
    work_split(work, find_fixed, &p->length, SPLIT_ISOLATED, false);
}

/* ---- scripts ---- */

/* The pattern finds runs of one script. A piece goes from the start of a run to the start of the next;
 * what comes before the first is dropped, as the package does it. */
static void find_scripts(Work *work, const void *what, uint32_t begin, uint32_t end) {
    RegexWalk walk = regex_walk(what, work->line.bytes + begin, end - begin);
    uint32_t start = UINT32_MAX;
    while (regex_next(&walk)) {
        if (start != UINT32_MAX)
            VEC_PUSH(&work->matches, (Match){start, begin + (uint32_t)walk.begin, true});
        start = begin + (uint32_t)walk.begin;
    }
    if (start != UINT32_MAX) VEC_PUSH(&work->matches, (Match){start, end, true});
    if (walk.problem && work->status == FERRY_OK)
        work->status = regex_problem(&walk, work->path, work->error);
}

static void apply_scripts(const PreTokenizer *p, Work *work) {
    work_split(work, find_scripts, p->regex, SPLIT_ISOLATED, false);
}

/* ---- reading ---- */

static PreTokenizer *add(Settings *settings, PreTokenizer ***end, Apply *apply) {
    PreTokenizer *p = ARENA_NEW(settings->arena, PreTokenizer);
    if (!p) return NULL;
    p->apply = apply;
    **end = p;
    *end = &p->next;
    return p;
}

static void add_class(Settings *settings, PreTokenizer ***end, WorkClass *has, uint32_t wanted,
                      SplitBehavior behavior) {
    PreTokenizer *p = add(settings, end, apply_class);
    if (!p) return;
    p->class = (WorkClassOf){has, wanted};
    p->behavior = behavior;
}

static SplitBehavior read_behavior(Settings *settings, const Doc *doc) {
    return (SplitBehavior)setting_choice(settings, doc, "behavior", split_behavior_names,
                                         SPLIT_BEHAVIORS);
}

static void read_bert(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    (void)doc;
    add_class(settings, end, is_space, 0, SPLIT_REMOVED);
    add_class(settings, end, is_punctuation, 0, SPLIT_ISOLATED);
}

static void read_byte_level(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    PreTokenizer *p = add(settings, end, apply_byte_level);
    if (!p) return;
    p->prefix_space = setting_bool(settings, doc, "add_prefix_space");
    if (setting_bool_or(settings, doc, "use_regex", true))
        p->regex = regex_new(settings, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                                       " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");
}

static void read_delimiter(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    add_class(settings, end, is_char, setting_char(settings, doc, "delimiter"), SPLIT_REMOVED);
}

Prepend metaspace_prepend(Settings *settings, const Doc *doc) {
    static const char *const schemes[] = {"first", "never", "always"};
    Prepend prepend = PREPEND_ALWAYS;
    if (doc_get(doc, "prepend_scheme"))
        prepend = (Prepend)setting_choice(settings, doc, "prepend_scheme", schemes, 3);
    if (setting_bool_or(settings, doc, "add_prefix_space", true)) return prepend;
    if (prepend != PREPEND_NEVER)
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "\"add_prefix_space\" of Metaspace is false, but \"prepend_scheme\" is \"%s\"",
                     schemes[prepend]);
    return PREPEND_NEVER;
}

static void read_metaspace(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    PreTokenizer *p = add(settings, end, apply_metaspace);
    if (!p) return;
    uint32_t mark = setting_char(settings, doc, "replacement");
    p->class = (WorkClassOf){is_char, mark};
    p->metaspace.mark_size = utf8_put(mark, p->metaspace.mark);
    p->metaspace.prepend = metaspace_prepend(settings, doc);
    p->metaspace.split = setting_bool_or(settings, doc, "split", true);
}

static void read_whitespace(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    (void)doc;
    PreTokenizer *p = add(settings, end, apply_regex);
    if (!p) return;
        /* A word of Unicode's regular expressions, with its joiners, or what is neither that nor blank. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
    p->regex = regex_new(settings, "[" WORD "]+|[^\\s" WORD "]+");
#undef WORD
    p->behavior = SPLIT_REMOVED;
    p->invert = true;
}

static void read_whitespace_split(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    (void)doc;
    add_class(settings, end, is_space, 0, SPLIT_REMOVED);
}

static void read_punctuation(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    bool given = doc_get(doc, "behavior") != NULL;
    add_class(settings, end, is_punctuation, 0,
              given ? read_behavior(settings, doc) : SPLIT_ISOLATED);
}

static void read_digits(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    bool each = setting_bool(settings, doc, "individual_digits");
    add_class(settings, end, is_number, 0, each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
}

static void read_split(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    PreTokenizer *p = add(settings, end, apply_regex);
    if (!p) return;
    p->regex = regex_read(settings, doc);
    p->behavior = read_behavior(settings, doc);
    p->invert = setting_bool(settings, doc, "invert");
}

#define HAN "\\p{Han}\\p{Hiragana}\\p{Katakana}\\x{30FC}"

static void read_scripts(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    (void)doc;
    PreTokenizer *p = add(settings, end, apply_scripts);
    if (!p) return;
    /* A run of one script, whose spaces and unassigned characters are of no script. */
    Buffer pattern = {0};
    buffer_text(&pattern, "(?! )(?:[" HAN "](?:[ \\p{Cn}\\p{Co}]*[" HAN "])*");
#define SCRIPT(name) buffer_text(&pattern, "|\\p{" name "}(?:[ \\p{Cn}\\p{Co}]*\\p{" name "})*");
#include "text/scripts.def"
#undef SCRIPT
    buffer_text(&pattern, ")");
    if (pattern.failed)
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
    else
        p->regex = regex_new(settings, buffer_string(&pattern));
    buffer_free(&pattern);
}

static void read_fixed_length(Settings *settings, const Doc *doc, PreTokenizer ***end) {
    PreTokenizer *p = add(settings, end, apply_fixed_length);
    if (!p) return;
    p->length = setting_size_or(settings, doc, "length", 5);
    if (p->length == 0) setting_fail(settings, FERRY_BAD_FORMAT, "\"length\" of FixedLength is 0");
}

static const struct {
    const char *type;
    void (*read)(Settings *settings, const Doc *doc, PreTokenizer ***end);
} kinds[] = {
    {"BertPreTokenizer", read_bert},
    {"ByteLevel", read_byte_level},
    {"CharDelimiterSplit", read_delimiter},
    {"Digits", read_digits},
    {"FixedLength", read_fixed_length},
    {"Metaspace", read_metaspace},
    {"Punctuation", read_punctuation},
    {"Split", read_split},
    {"UnicodeScripts", read_scripts},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
};

static void read_one(Settings *settings, const Doc *doc, PreTokenizer ***end, int depth) {
    const char *type = setting_text(settings, doc, "type");
    if (strcmp(type, "Sequence") == 0) {
        const Doc *list = setting_array(settings, doc, "pretokenizers"), *item;
        size_t i;
        if (depth == 32) setting_fail(settings, FERRY_UNSUPPORTED, "sequences nested too deeply");
        if (settings->status == FERRY_OK)
            DOC_EACH_ITEM(list, i, item) read_one(settings, item, end, depth + 1);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0) continue;
        kinds[i].read(settings, doc, end);
        return;
    }
    setting_fail(settings, FERRY_UNSUPPORTED, "the type \"%s\" is not known", type);
}

PreTokenizer *pretokenizer_read(Settings *settings, const Doc *doc) {
    PreTokenizer *first = NULL, **end = &first;
    settings->place = "pre_tokenizer";
    if (doc && !doc_is_null(doc)) read_one(settings, doc, &end, 0);
    return first;
}

void pretokenizer_free(PreTokenizer *pretokenizer) {
    for (PreTokenizer *p = pretokenizer; p; p = p->next) regex_free(p->regex);
}

void pretokenizer_run(const PreTokenizer *pretokenizer, Work *work) {
    for (const PreTokenizer *p = pretokenizer; p && work->status == FERRY_OK; p = p->next)
        p->apply(p, work);
}
