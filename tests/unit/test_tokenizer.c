/* Tokenizers: what is refused and how, streams, and the parts that the comparison with the tokenizers
 * package cannot reach. */
#include "check.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <ferry/text.h>

/* Open what a tokenizer.json says. */
static ferry_status open_text(const char *json, ferry_tokenizer **out, ferry_error *error) {
    error_clear(error);
    ferry_tokenizer *t = calloc(1, sizeof *t);
    t->path = "tokenizer.json";
    ferry_status status = tokenizer_read(t, json, strlen(json), error);
    if (status != FERRY_OK) {
        ferry_tokenizer_close(t);
        t = NULL;
    }
    *out = t;
    return status;
}

#define BPE(settings)                                                                              \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": "      \
    "[[\"a\", "                                                                                    \
    "\"b\"]]" settings "}"

static void test_refused(void **state) {
    static const struct {
        const char *json;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"{}", FERRY_BAD_FORMAT, "\"model\" is missing; expected an object"},
        {"{\"model\": {\"type\": \"Markov\"}}", FERRY_UNSUPPORTED,
         "model: the type \"Markov\" is not known"},
        {"{" BPE(", \"dropout\": 0.1") "}", FERRY_UNSUPPORTED, "\"dropout\" is 0.1"},
        {"{" BPE(", \"fuse_unk\": 3") "}", FERRY_BAD_FORMAT,
         "\"fuse_unk\" of BPE is an integer; expected true or false"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
         FERRY_BAD_FORMAT,
         "\"merges\"[0] merges \"a\" and \"b\", but the vocabulary lacks the second"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}",
         FERRY_BAD_FORMAT, "\"merges\"[0] is a string; expected two tokens"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 5000000}, \"merges\": []}}",
         FERRY_UNSUPPORTED, "the token \"a\" has id 5000000"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}",
         FERRY_BAD_FORMAT, "an id is out of range"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", FERRY_BAD_FORMAT,
         "\"vocab\"[0] is not a token with its score"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]], \"unk_id\": 1}}",
         FERRY_BAD_FORMAT, "\"unk_id\" is 1, of a vocabulary of 1"},
        {"{\"normalizer\": {\"type\": \"Strip\"}, " BPE("") "}", FERRY_BAD_FORMAT,
         "normalizer: \"strip_left\" of Strip is missing; expected true or false"},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAA*\"}, " BPE(
             "") "}",
         FERRY_BAD_FORMAT, "is not base64"},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": "
         "\"AAEAAA==\"}, " BPE("") "}",
         FERRY_BAD_FORMAT, "is damaged: 4 bytes that announce a trie of 256"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": "
         "\"Removed\", \"invert\": false}, " BPE("") "}",
         FERRY_BAD_FORMAT, "the pattern \"(\" is not valid: missing closing parenthesis"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\X\"}, "
         "\"behavior\": \"Removed\", \"invert\": false}, " BPE("") "}",
         FERRY_UNSUPPORTED, "uses \\X"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{InGreek}\"}, "
         "\"behavior\": \"Removed\", \"invert\": false}, " BPE("") "}",
         FERRY_UNSUPPORTED, "uses a property that is not known"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, "
         "\"behavior\": "
         "\"Gone\", \"invert\": false}, " BPE("") "}",
         FERRY_BAD_FORMAT, "\"behavior\" is \"Gone\", which is not known"},
        {"{\"pre_tokenizer\": {\"type\": \"FixedLength\", \"length\": 0}, " BPE("") "}",
         FERRY_BAD_FORMAT, "\"length\" of FixedLength is 0"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
         "{\"id\": \"<s>\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {}}, " BPE("") "}",
         FERRY_BAD_FORMAT, "the template uses \"<s>\", which \"special_tokens\" lacks"},
        {"{\"decoder\": {\"type\": \"Strip\", \"content\": \"ab\", \"start\": 0, \"stop\": "
         "0}, " BPE("") "}",
         FERRY_BAD_FORMAT, "\"content\" of Strip is a string; expected a string of one character"},
        {"{\"added_tokens\": [{\"content\": \"x\"}], " BPE("") "}", FERRY_BAD_FORMAT,
         "added_tokens: \"single_word\" is missing"},
        {"{\"version\": \"2.0\", " BPE("") "}", FERRY_UNSUPPORTED, "\"version\" is \"2.0\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        ferry_tokenizer *t;
        ferry_error error;
        ferry_status status = open_text(cases[i].json, &t, &error);
        if (status != cases[i].status) print_error("%s: %s\n", cases[i].json, error.message);
        assert_int_equal(status, cases[i].status);
        assert_contains(error.message, cases[i].message);
        assert_string_equal(error.where, "tokenizer.json");
    }
}

static ferry_encoding *encode(ferry_tokenizer *t, const char *text) {
    ferry_encoding *encoding;
    ferry_error error;
    assert_ok(ferry_tokenizer_encode(t, text, strlen(text), NULL, &encoding, &error), &error);
    return encoding;
}

static void test_encoding(void **state) {
    ferry_tokenizer *t;
    ferry_error error;
    (void)state;
    assert_ok(open_text("{" BPE("") "}", &t, &error), &error);
    ferry_encoding *encoding = encode(t, "abba");
    assert_int_equal(encoding->count, 3);
    assert_int_equal(encoding->ids[0], 2);
    assert_int_equal(encoding->ids[1], 1);
    assert_int_equal(encoding->offsets[0].end, 2);
    assert_int_equal(encoding->offsets[2].begin, 3);
    ferry_encoding_free(encoding);
    encoding = encode(t, "");
    assert_int_equal(encoding->count, 0);
    ferry_encoding_free(encoding);
    ferry_tokenizer_close(t);
}

static void test_what_cannot_be_encoded(void **state) {
    ferry_tokenizer *t;
    ferry_error error;
    ferry_encoding *encoding;
    ferry_encode_config config;
    (void)state;
    assert_ok(open_text("{" BPE(", \"unk_token\": \"<unk>\"") "}", &t, &error), &error);
    assert_int_equal(ferry_tokenizer_encode(t, "a\xff", 2, NULL, &encoding, &error),
                     FERRY_INVALID_ARGUMENT);
    assert_contains(error.message, "not UTF-8: byte 0xff at offset 1");
    assert_int_equal(ferry_tokenizer_encode(t, "c", 1, NULL, &encoding, &error), FERRY_UNSUPPORTED);
    assert_contains(error.message, "no token for \"c\"");
    ferry_encode_config_init(&config);
    config.truncate = true;
    assert_int_equal(ferry_tokenizer_encode(t, "a", 1, &config, &encoding, &error),
                     FERRY_INVALID_ARGUMENT);
    assert_contains(error.message, "has no \"truncation\"");
    config.truncate = false;
    config.pad = true;
    assert_int_equal(ferry_tokenizer_encode(t, "a", 1, &config, &encoding, &error),
                     FERRY_INVALID_ARGUMENT);
    assert_contains(error.message, "has no \"padding\"");
    assert_null(encoding);
    ferry_tokenizer_close(t);
}

static void append(void *context, const char *text, size_t length) {
    buffer_append(context, text, length);
}

static void test_stream_of_bytes(void **state) {
    static const char json[] =
        "{\"decoder\": {\"type\": \"ByteFallback\"}, \"model\": {\"type\": \"BPE\", \"merges\": [],"
        " \"vocab\": {\"<0xC3>\": 0, \"<0xA9>\": 1, \"a\": 2}}}";
    static const struct {
        uint32_t id;
        const char *so_far;
    } steps[] = {{2, "a"}, {0, "a"}, {1, "a\xc3\xa9"}, {0, "a\xc3\xa9"}};
    ferry_tokenizer *t;
    ferry_text_stream *stream;
    ferry_error error;
    Buffer text = {0};
    (void)state;
    assert_ok(open_text(json, &t, &error), &error);
    assert_ok(ferry_text_stream_new(t, false, &stream, &error), &error);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < COUNT(steps); i++) {
            assert_ok(ferry_text_stream_put(stream, steps[i].id, append, &text, &error), &error);
            assert_string_equal(buffer_string(&text), steps[i].so_far);
        }
        assert_ok(ferry_text_stream_end(stream, append, &text, &error), &error);
        assert_string_equal(buffer_string(&text), "a\xc3\xa9\xef\xbf\xbd");
        text.length = 0;
    }
    buffer_free(&text);
    ferry_text_stream_free(stream);
    ferry_tokenizer_close(t);
}

static void test_patterns_are_translated(void **state) {
    static const char *const pairs[][2] = {
        {"\\s+(?!\\S)", "[\\p{White_Space}]+(?![^\\p{White_Space}])"},
        {"[^\\r\\n\\p{L}]", "[^\\r\\n\\p{L}]"},
        {"\\p{Han}", "[\\p{sc:Han}]"},
        {"\\p{^Letter}", "[^\\p{L}]"},
        {"[a[b]]", "[ab]"},
        {"[\\p{L}&&[^a]]", "(?:(?=[\\p{L}])(?:[^a]))"},
        {"x{,2}", "x{0,2}"},
        {"(ab){1,3}+", "(?:(ab){1,3})+"},
        {"(?mi:a.)", "(?si:a.)"},
        {"\\u0041\\x{1F600}", "\\x{0041}\\x{1F600}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        Buffer out = {0};
        const char *problem = regex_translate(pairs[i][0], &out);
        if (problem) print_error("%s: %s\n", pairs[i][0], problem);
        assert_null(problem);
        assert_string_equal(buffer_string(&out), pairs[i][1]);
        buffer_free(&out);
    }
}

static void test_malformed_text(void **state) {
    static const struct {
        const char *text;
        size_t place;
    } cases[] = {{"\xc0\x80", 0}, {"a\xed\xa0\x80", 1}, {"ab\xf5", 2},          {"\xe0\x80\x80", 0},
                 {"\xc3", 0},     {"a\x80", 1},         {"\xf4\x90\x80\x80", 0}};
    size_t place;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_false(utf8_check(cases[i].text, strlen(cases[i].text), &place));
        assert_int_equal(place, cases[i].place);
    }
    assert_true(utf8_check("a\xc3\xa9\xf4\x8f\xbf\xbf", 7, &place));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_what_cannot_be_encoded),
        cmocka_unit_test(test_stream_of_bytes),
        cmocka_unit_test(test_patterns_are_translated),
        cmocka_unit_test(test_malformed_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
