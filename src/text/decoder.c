#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

typedef void Apply(const Decoder *d, const Strings *in, Strings *out);

struct Decoder {
    Apply *apply;
    Regex *regex;            /* owned; or NULL */
    const char *text, *word; /* suffix, prefix, content, pad token; CTC: word delimiter */
    bool clean;
    uint32_t mark; /* Metaspace, Strip */
    Prepend prepend;
    size_t start, stop;
    Decoder *next; /* of a sequence */
};

/* ---- strings ---- */

void strings_free(Strings *strings) {
    buffer_free(&strings->bytes);
    VEC_FREE(&strings->ends);
}

void strings_clear(Strings *strings) {
    strings->bytes.length = strings->ends.count = 0;
}

/* What was appended since the last one is a string. */
static void end_string(Strings *strings) {
    VEC_PUSH(&strings->ends, strings->bytes.length);
}

void strings_add(Strings *strings, const char *text, size_t length) {
    buffer_append(&strings->bytes, text, length);
    end_string(strings);
}

typedef struct Slice {
    const char *text;
    size_t length;
} Slice;

static Slice string_at(const Strings *strings, size_t i) {
    size_t begin = i ? strings->ends.items[i - 1] : 0;
    return (Slice){buffer_string(&strings->bytes) + begin, strings->ends.items[i] - begin};
}

static const char *find_text(Slice in, size_t from, const char *wanted, size_t length) {
    for (size_t i = from; i + length <= in.length; i++) {
        if (memcmp(in.text + i, wanted, length) == 0) return in.text + i;
    }
    return NULL;
}

/* Append with one text in place of another. */
static void put_replaced(Buffer *out, Slice in, const char *old, const char *new) {
    size_t length = strlen(old), from = 0;
    const char *found;
    while (length > 0 && (found = find_text(in, from, old, length)) != NULL) {
        buffer_append(out, in.text + from, (size_t)(found - in.text) - from);
        buffer_text(out, new);
        from = (size_t)(found - in.text) + length;
    }
    buffer_append(out, in.text + from, in.length - from);
}

/* Append without the blanks that words were separated by. */
static void put_clean(Buffer *out, Slice in) {
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    Buffer now = {0}, then = {0};
    buffer_append(&now, in.text, in.length);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        then.length = 0;
        put_replaced(&then, (Slice){buffer_string(&now), now.length}, pairs[i][0], pairs[i][1]);
        Buffer other = now;
        now = then;
        then = other;
    }
    buffer_append(out, buffer_string(&now), now.length);
    out->failed |= now.failed || then.failed;
    buffer_free(&now);
    buffer_free(&then);
}

/* Append bytes; what is not UTF-8 becomes the replacement character, each longest beginning of a
 * character once. */
static void put_lossy(Buffer *out, Slice in) {
    for (size_t i = 0, place; i < in.length;) {
        bool good = utf8_check(in.text + i, in.length - i, &place);
        size_t whole = good ? in.length - i : place;
        buffer_append(out, in.text + i, whole);
        i += whole;
        if (good) return;
        size_t bad = 1;
        while (i + bad < in.length && bad < 4 && utf8_begins(in.text + i, bad + 1)) bad++;
        buffer_text(out, REPLACEMENT);
        i += bad;
    }
}

/* ---- each kind ---- */

static void apply_bpe(const Decoder *d, const Strings *in, Strings *out) {
    for (size_t i = 0; i < in->ends.count; i++) {
        put_replaced(&out->bytes, string_at(in, i), d->text, i + 1 == in->ends.count ? "" : " ");
        end_string(out);
    }
}

static void apply_byte_level(const Decoder *d, const Strings *in, Strings *out) {
    (void)d;
    Buffer all = {0};
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        size_t start = all.length, k = 0;
        for (; k < token.length; k += utf8_size(token.text[k])) {
            int byte = byte_level_byte(utf8_get(token.text + k));
            if (byte < 0) break;
            buffer_append(&all, (unsigned char[]){(unsigned char)byte}, 1);
        }
        if (k >= token.length || all.failed) continue;
        /* Not a token of bytes: an added one. */
        all.length = start;
        buffer_append(&all, token.text, token.length);
    }
    put_lossy(&out->bytes, (Slice){buffer_string(&all), all.length});
    end_string(out);
    out->bytes.failed |= all.failed;
    buffer_free(&all);
}

static void put_bytes(Strings *out, Buffer *bytes) {
    size_t place;
    if (bytes->length && utf8_check(buffer_string(bytes), bytes->length, &place)) {
        strings_add(out, buffer_string(bytes), bytes->length);
    } else {
        for (size_t i = 0; i < bytes->length; i++) strings_add(out, REPLACEMENT, 3);
    }
    bytes->length = 0;
}

static int hexadecimal(char c) {
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, c);
    return c && at ? (int)(at - digits) % 16 : -1;
}

static void apply_byte_fallback(const Decoder *d, const Strings *in, Strings *out) {
    (void)d;
    Buffer bytes = {0};
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        bool is_byte = token.length == 6 && memcmp(token.text, "<0x", 3) == 0 &&
                       token.text[5] == '>' && hexadecimal(token.text[4]) >= 0 &&
                       (hexadecimal(token.text[3]) >= 0 || token.text[3] == '+');
        if (is_byte) {
            int high = token.text[3] == '+' ? 0 : hexadecimal(token.text[3]);
            unsigned char byte = (unsigned char)(high * 16 + hexadecimal(token.text[4]));
            buffer_append(&bytes, &byte, 1);
        } else {
            put_bytes(out, &bytes);
            strings_add(out, token.text, token.length);
        }
    }
    put_bytes(out, &bytes);
    out->bytes.failed |= bytes.failed;
    buffer_free(&bytes);
}

static void apply_ctc(const Decoder *d, const Strings *in, Strings *out) {
    Buffer plain = {0}, clean = {0};
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i), last = i ? string_at(in, i - 1) : token;
        if (i > 0 && token.length == last.length && !memcmp(token.text, last.text, token.length))
            continue;
        plain.length = clean.length = 0;
        size_t start = out->bytes.length;
        put_replaced(&plain, token, d->text, "");
        if (d->clean) {
            put_clean(&clean, (Slice){buffer_string(&plain), plain.length});
            put_replaced(&out->bytes, (Slice){buffer_string(&clean), clean.length}, d->word, " ");
        } else {
            buffer_append(&out->bytes, buffer_string(&plain), plain.length);
        }
        if (out->bytes.length > start) end_string(out);
    }
    out->bytes.failed |= plain.failed || clean.failed;
    buffer_free(&plain);
    buffer_free(&clean);
}

static void apply_fuse(const Decoder *d, const Strings *in, Strings *out) {
    (void)d;
    strings_add(out, buffer_string(&in->bytes), in->bytes.length);
}

static void apply_metaspace(const Decoder *d, const Strings *in, Strings *out) {
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        for (size_t k = 0, size; k < token.length; k += size) {
            size = utf8_size(token.text[k]);
            if (utf8_get(token.text + k) != d->mark)
                buffer_append(&out->bytes, token.text + k, size);
            else if (i > 0 || d->prepend == PREPEND_NEVER)
                buffer_text(&out->bytes, " ");
        }
        end_string(out);
    }
}

static void apply_replace(const Decoder *d, const Strings *in, Strings *out) {
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        RegexWalk walk = regex_walk(d->regex, token.text, token.length);
        size_t last = 0;
        while (token.length > 0 && regex_next(&walk)) {
            buffer_append(&out->bytes, token.text + last, walk.begin - last);
            buffer_text(&out->bytes, d->text);
            last = walk.end;
        }
        buffer_append(&out->bytes, token.text + last, token.length - last);
        end_string(out);
    }
}

static void apply_strip(const Decoder *d, const Strings *in, Strings *out) {
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        size_t begin = 0, end = token.length;
        for (size_t n = 0; n < d->start && begin < end; n++) {
            if (utf8_get(token.text + begin) != d->mark) break;
            begin += utf8_size(token.text[begin]);
        }
        for (size_t n = 0; n < d->stop && begin < end; n++) {
            size_t last = utf8_before(token.text, end);
            if (utf8_get(token.text + last) != d->mark) break;
            end = last;
        }
        strings_add(out, token.text + begin, end - begin);
    }
}

static void apply_wordpiece(const Decoder *d, const Strings *in, Strings *out) {
    size_t prefix = strlen(d->text);
    Buffer word = {0};
    for (size_t i = 0; i < in->ends.count; i++) {
        Slice token = string_at(in, i);
        bool continues = token.length >= prefix && memcmp(token.text, d->text, prefix) == 0;
        size_t skipped = i > 0 && continues ? prefix : 0;
        word.length = 0;
        if (i > 0 && !continues) buffer_text(&word, " ");
        buffer_append(&word, token.text + skipped, token.length - skipped);
        if (d->clean)
            put_clean(&out->bytes, (Slice){buffer_string(&word), word.length});
        else
            buffer_append(&out->bytes, buffer_string(&word), word.length);
        end_string(out);
    }
    out->bytes.failed |= word.failed;
    buffer_free(&word);
}

/* ---- reading ---- */

static void read_bpe(Settings *settings, const Doc *doc, Decoder *d) {
    d->text = setting_text(settings, doc, "suffix");
}

static void read_ctc(Settings *settings, const Doc *doc, Decoder *d) {
    d->text = setting_text(settings, doc, "pad_token");
    d->word = setting_text(settings, doc, "word_delimiter_token");
    d->clean = setting_bool(settings, doc, "cleanup");
}

static void read_metaspace(Settings *settings, const Doc *doc, Decoder *d) {
    d->mark = setting_char(settings, doc, "replacement");
    d->prepend = metaspace_prepend(settings, doc);
}

static void read_replace(Settings *settings, const Doc *doc, Decoder *d) {
    d->regex = regex_read(settings, doc);
    d->text = setting_text(settings, doc, "content");
}

static void read_strip(Settings *settings, const Doc *doc, Decoder *d) {
    d->mark = setting_char(settings, doc, "content");
    d->start = setting_size(settings, doc, "start");
    d->stop = setting_size(settings, doc, "stop");
}

static void read_wordpiece(Settings *settings, const Doc *doc, Decoder *d) {
    d->text = setting_text(settings, doc, "prefix");
    d->clean = setting_bool(settings, doc, "cleanup");
}

static const struct {
    const char *type;
    void (*read)(Settings *settings, const Doc *doc, Decoder *d);
    Apply *apply;
} kinds[] = {
    {"BPEDecoder", read_bpe, apply_bpe},
    {"ByteFallback", NULL, apply_byte_fallback},
    {"ByteLevel", NULL, apply_byte_level},
    {"CTC", read_ctc, apply_ctc},
    {"Fuse", NULL, apply_fuse},
    {"Metaspace", read_metaspace, apply_metaspace},
    {"Replace", read_replace, apply_replace},
    {"Strip", read_strip, apply_strip},
    {"WordPiece", read_wordpiece, apply_wordpiece},
};

static void read_one(Settings *settings, const Doc *doc, Decoder ***end, int depth) {
    const char *type = setting_text(settings, doc, "type");
    if (strcmp(type, "Sequence") == 0) {
        const Doc *list = setting_array(settings, doc, "decoders"), *item;
        size_t i;
        if (depth == 32) setting_fail(settings, FERRY_UNSUPPORTED, "sequences nested too deeply");
        if (settings->status == FERRY_OK)
            DOC_EACH_ITEM(list, i, item) read_one(settings, item, end, depth + 1);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0) continue;
        Decoder *d = ARENA_NEW(settings->arena, Decoder);
        if (!d) return;
        d->apply = kinds[i].apply;
        if (kinds[i].read) kinds[i].read(settings, doc, d);
        **end = d;
        *end = &d->next;
        return;
    }
    setting_fail(settings, FERRY_UNSUPPORTED, "the type \"%s\" is not known", type);
}

Decoder *decoder_read(Settings *settings, const Doc *doc) {
    Decoder *first = NULL, **end = &first;
    settings->place = "decoder";
    if (doc && !doc_is_null(doc)) read_one(settings, doc, &end, 0);
    return first;
}

void decoder_free(Decoder *decoder) {
    for (Decoder *d = decoder; d; d = d->next) regex_free(d->regex);
}

Strings *decoder_run(const Decoder *decoder, Strings strings[2]) {
    Strings *in = &strings[0], *out = &strings[1];
    for (const Decoder *d = decoder; d; d = d->next) {
        strings_clear(out);
        d->apply(d, in, out);
        if (out->bytes.failed || out->ends.failed) return out;
        Strings *other = in;
        in = out;
        out = other;
    }
    return in;
}
