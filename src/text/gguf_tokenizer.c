/* Writing tokenizer.json. */
#include "text/gguf_source.h"
#include "base/error.h"

#include <string.h>

static void put(const GgufSource *s, const char *json) {
    buffer_text(s->out, json);
}

static void put_string(const GgufSource *s, const char *text) {
    buffer_json_string(s->out, text);
}

static void put_token(const GgufSource *s, int64_t id) {
    buffer_json_string_n(s->out, s->tokens[id].text, s->tokens[id].length);
}

/* Tokens that are found whole in a text before it is cut. */
static bool is_added(const GgufSource *s, size_t i) {
    int64_t kind = s->tokens[i].kind, id = (int64_t)i;
    return kind == GGUF_TOKEN_CONTROL || kind == GGUF_TOKEN_USER || kind == GGUF_TOKEN_UNKNOWN ||
           id == s->begin || id == s->end || id == s->padding;
}

static void put_added(const GgufSource *s) {
    const char *separator = "";
    put(s, "\"added_tokens\":[");
    for (size_t i = 0; i < s->count; i++) {
        bool named = (int64_t)i == s->begin || (int64_t)i == s->end || (int64_t)i == s->padding;
        if (!is_added(s, i) || s->tokens[i].shadowed || s->tokens[i].length == 0) continue;
        buffer_format(s->out, "%s{\"id\":%zu,\"content\":", separator, i);
        put_token(s, (int64_t)i);
        buffer_format(s->out,
                      ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                      "\"normalized\":false,\"special\":%s}",
                      s->tokens[i].kind == GGUF_TOKEN_USER && !named ? "false" : "true");
        separator = ",\n";
    }
    put(s, "],\n");
}

static void put_byte_level_cut(const GgufSource *s) {
    put(s, "\"normalizer\":");
    put(s, s->cut->nfc ? "{\"type\":\"NFC\"},\n" : "null,\n");
    put(s, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (s->cut->digits) put(s, "{\"type\":\"Digits\",\"individual_digits\":true},");
    for (size_t i = 0; s->cut->patterns[i]; i++) {
        put(s, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        put_string(s, s->cut->patterns[i]);
        put(s, "},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    buffer_format(s->out,
                  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
                  "\"use_regex\":%s}]},\n\"decoder\":{\"type\":\"ByteLevel\","
                  "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n",
                  s->cut->patterns[0] ? "false" : "true");
}

/* As Transformers has it for these files: Phi-3 puts a blank before every text, the others before one that
 * does not begin with a blank, Gemma nowhere. */
static void put_sentencepiece_cut(const GgufSource *s) {
    static const char normalizer_phi3[] =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" GGUF_SPACE
        "\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" GGUF_SPACE "\"}]}";
    static const char normalizer_gemma[] =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" GGUF_SPACE "\"}";
    static const char cut_gemma[] =
        "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\","
        "\"invert\":false}";
    bool phi3 = strcmp(s->architecture, "phi3") == 0 && s->prefixes_space;
    put(s, "\"normalizer\":");
    put(s, gguf_is_gemma(s) ? normalizer_gemma : phi3 ? normalizer_phi3 : "null");
    put(s, ",\n\"pre_tokenizer\":");
    if (gguf_is_gemma(s) || phi3) {
        put(s, gguf_is_gemma(s) ? cut_gemma : "null");
    } else {
        buffer_format(s->out,
                      "{\"type\":\"Metaspace\",\"replacement\":\"" GGUF_SPACE
                      "\",\"prepend_scheme\":"
                      "\"%s\",\"split\":false}",
                      s->prefixes_space ? "first" : "never");
    }
    put(s, ",\n\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":"
           "{\"String\":\"" GGUF_SPACE "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
           "{\"type\":\"Fuse\"}");
    if (s->prefixes_space) put(s, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    put(s, "]},\n");
}

/* One of the two sequences of a template, with what is put around it. */
static void put_sequence(const GgufSource *s, const char *name, int type) {
    static const char item[] = "{\"SpecialToken\":{\"id\":";
    if (s->adds_begin) {
        put(s, item);
        put_token(s, s->begin);
        buffer_format(s->out, ",\"type_id\":%d}},", type);
    }
    buffer_format(s->out, "{\"Sequence\":{\"id\":\"%s\",\"type_id\":%d}}", name, type);
    if (s->adds_end) {
        put(s, ",");
        put(s, item);
        put_token(s, s->end);
        buffer_format(s->out, ",\"type_id\":%d}}", type);
    }
}

static void put_template_token(const GgufSource *s, int64_t id) {
    put_token(s, id);
    put(s, ":{\"id\":");
    put_token(s, id);
    buffer_format(s->out, ",\"ids\":[%lld],\"tokens\":[", (long long)id);
    put_token(s, id);
    put(s, "]}");
}

static void put_template(const GgufSource *s) {
    put(s, "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[");
    put_sequence(s, "A", 0);
    put(s, "],\"pair\":[");
    put_sequence(s, "A", 0);
    put(s, ",");
    put_sequence(s, "B", 1);
    put(s, "],\"special_tokens\":{");
    if (s->adds_begin) put_template_token(s, s->begin);
    if (s->adds_end && !(s->adds_begin && s->begin == s->end)) {
        put(s, s->adds_begin ? "," : "");
        put_template_token(s, s->end);
    }
    put(s, "}},\n");
}

/* Fillers for ids that no token has: "[PAD123]" is no text. */
static bool is_filler(const GgufSource *s, size_t i) {
    const GgufToken *token = &s->tokens[i];
    return token->kind == GGUF_TOKEN_UNUSED && token->length > 5 &&
           strncmp(token->text, "[PAD", 4) == 0;
}

static void put_vocabulary(const GgufSource *s) {
    const char *separator = "";
    put(s, "\"vocab\":{");
    for (size_t i = 0; i < s->count; i++) {
        if (s->tokens[i].shadowed || is_filler(s, i)) continue;
        put(s, separator);
        put_token(s, (int64_t)i);
        buffer_format(s->out, ":%zu", i);
        separator = ",";
    }
    put(s, "},\n");
}

/* The merges of the file: "left right", where the left side may begin with a blank. */
static ferry_status put_merges(const GgufSource *s) {
    GgufItems items = {.array = gguf_value(s->gguf, "tokenizer.ggml.merges")};
    GgufValue item;
    if (!items.array && !s->cut)
        return gguf_merges(s->gguf->path, s->tokens, s->count, &s->ids, s->out, s->error);
    if (!items.array || items.array->type != GGUF_ARRAY || items.array->item != GGUF_STRING)
        return gguf_wrong_kind(s, "tokenizer.ggml.merges", "an array of strings");
    while (gguf_next(&items, &item)) {
        const char *text = (const char *)item.bytes;
        const char *blank = item.count > 1 ? memchr(text + 1, ' ', item.count - 1) : NULL;
        if (!blank || !gguf_is_text(text, item.count)) {
            return error_set(
                s->error, FERRY_BAD_FORMAT, s->gguf->path,
                "\"tokenizer.ggml.merges\"[%llu]: expected two tokens in UTF-8, with a "
                "blank between them",
                (unsigned long long)items.index - 1);
        }
        put(s, items.index == 1 ? "[" : ",[");
        buffer_json_string_n(s->out, text, (size_t)(blank - text));
        put(s, ",");
        buffer_json_string_n(s->out, blank + 1, item.count - (size_t)(blank - text) - 1);
        put(s, "]");
    }
    return FERRY_OK;
}

static ferry_status put_model(const GgufSource *s) {
    put(s, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"continuing_subword_prefix\":null,"
           "\"end_of_word_suffix\":null,\"unk_token\":");
    if (!s->cut && s->unknown >= 0)
        put_token(s, s->unknown);
    else
        put(s, "null");
    buffer_format(s->out, ",\"fuse_unk\":%s,\"byte_fallback\":%s,\"ignore_merges\":%s,\n",
                  s->cut ? "false" : "true", s->cut ? "false" : "true",
                  s->cut && s->cut->ignore_merges ? "true" : "false");
    put_vocabulary(s);
    put(s, "\"merges\":[");
    TRY(put_merges(s));
    put(s, "]}}\n");
    return FERRY_OK;
}

static ferry_status put_all(GgufSource *s) {
    TRY(gguf_source_read(s));
    put(s, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n");
    put_added(s);
    if (s->cut)
        put_byte_level_cut(s);
    else
        put_sentencepiece_cut(s);
    put_template(s);
    return put_model(s);
}

static ferry_status put_config(GgufSource *s) {
    TRY(gguf_source_read(s));
    const struct {
        const char *name;
        int64_t id;
    } specials[] = {{"bos_token", s->begin},
                    {"eos_token", s->end},
                    {"unk_token", s->unknown},
                    {"pad_token", s->padding}};
    put(s, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
           "  \"clean_up_tokenization_spaces\": false");
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (specials[i].id < 0) continue;
        buffer_format(s->out, ",\n  \"%s\": ", specials[i].name);
        put_token(s, specials[i].id);
    }
    const char *template = gguf_text(gguf_value(s->gguf, "tokenizer.chat_template"), &s->arena);
    if (template && gguf_is_text(template, strlen(template))) {
        put(s, ",\n  \"chat_template\": ");
        put_string(s, template);
    }
    put(s, "\n}\n");
    return FERRY_OK;
}

static ferry_status convert(const Gguf *gguf, ferry_status (*make)(GgufSource *), Buffer *out,
                            ferry_error *error) {
    GgufSource source = {.gguf = gguf, .out = out, .error = error};
    ferry_status status = make(&source);
    if (status == FERRY_OK && (source.arena.failed || out->failed))
        status = error_memory(error, gguf->path, 0);
    map_free(&source.ids);
    arena_free(&source.arena);
    return status;
}

ferry_status gguf_tokenizer(const Gguf *gguf, Buffer *out, ferry_error *error) {
    return convert(gguf, put_all, out, error);
}

ferry_status gguf_tokenizer_config(const Gguf *gguf, Buffer *out, ferry_error *error) {
    return convert(gguf, put_config, out, error);
}
