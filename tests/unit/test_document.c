/* JSON documents: what is read, what is refused, and where. */
#include "check.h"
#include "format/document.h"

static ferry_status parse(Arena *arena, const char *text, const Doc **out, ferry_error *error) {
    error_clear(error);
    return doc_parse("test.json", text, strlen(text), arena, out, error);
}

static void test_values(void **state) {
    Arena arena = {0};
    const Doc *doc;
    ferry_error error;
    (void)state;
    const char *text = "{\"n\": null, \"t\": true, \"i\": -9223372036854775808, \"r\": 2.5e3,"
                       " \"s\": \"a\\u00e9\\n\", \"a\": [1, [], {}]}";
    assert_ok(parse(&arena, text, &doc, &error), &error);
    assert_int_equal(doc_count(doc), 6);
    assert_true(doc_is_null(doc_get(doc, "n")));
    assert_true(doc_bool(doc_get(doc, "t")));
    assert_true(doc_integer(doc_get(doc, "i")) == INT64_MIN);
    assert_true(doc_number(doc_get(doc, "r")) == 2500);
    assert_string_equal(doc_text(doc_get(doc, "s")), "a\xc3\xa9\n");
    assert_int_equal(doc_integer(doc_item(doc_get(doc, "a"), 0)), 1);
    assert_true(doc_is_array(doc_item(doc_get(doc, "a"), 1)));
    assert_true(doc_is_object(doc_item(doc_get(doc, "a"), 2)));
    assert_string_equal(doc_key(doc, 5), "a");
    arena_free(&arena);
}

static void test_what_is_absent(void **state) {
    Arena arena = {0};
    const Doc *doc;
    ferry_error error;
    (void)state;
    assert_ok(parse(&arena, "{\"a\": [1]}", &doc, &error), &error);
    assert_null(doc_get(doc, "b"));
    assert_null(doc_get(doc_get(doc, "a"), "b"));
    assert_null(doc_item(doc_get(doc, "a"), 1));
    assert_null(doc_text(doc_get(doc_get(doc, "b"), "c")));
    assert_int_equal(doc_count(NULL), 0);
    assert_int_equal(doc_integer(doc_get(doc, "a")), 0);
    assert_string_equal(doc_kind(NULL), "nothing");
    arena_free(&arena);
}

static void test_an_object_of_many_members(void **state) {
    enum { MEMBERS = 5000 };
    Arena arena = {0};
    Buffer text = {0};
    const Doc *doc;
    ferry_error error;
    (void)state;
    for (int i = 0; i < MEMBERS; i++) buffer_format(&text, "%c\"k%d\":%d", i ? ',' : '{', i, i);
    buffer_text(&text, "}");
    assert_ok(parse(&arena, buffer_string(&text), &doc, &error), &error);
    for (int i = 0; i < MEMBERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(doc_integer(doc_get(doc, key)), i);
        assert_string_equal(doc_key(doc, (size_t)i), key);
    }
    assert_null(doc_get(doc, "k5000"));
    buffer_free(&text);
    arena_free(&arena);
}

static const struct {
    const char *text, *problem;
} refused[] = {
    {"", "not valid JSON"},
    {"{\"a\": 1", "not valid JSON"},
    {"[1,\n2,\n x]", "line 3"},
    {"[1] 2", "not valid JSON"},
    {"{\"a\": 1, \"a\": 2}", "an object has a key twice"},
    {"[9223372036854775808]", "does not fit 64 bits"},
    {"[1e999]", "out of range"},
    {"[\"\\u0000\"]", "contains NUL"},
    {"[\"\xff\"]", "not valid JSON"},
    {"[NaN]", "not valid JSON"},
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        Arena arena = {0};
        const Doc *doc;
        ferry_error error;
        assert_fails(parse(&arena, refused[i].text, &doc, &error), FERRY_BAD_FORMAT, &error,
                     refused[i].problem);
        assert_string_equal(error.where, "test.json");
        arena_free(&arena);
    }
}

static void test_deep_nesting(void **state) {
    enum { DEPTH = 100000 };
    Arena arena = {0};
    const Doc *doc;
    ferry_error error;
    char *text = malloc(DEPTH + 1);
    (void)state;
    memset(text, '[', DEPTH);
    text[DEPTH] = '\0';
    assert_fails(parse(&arena, text, &doc, &error), FERRY_BAD_FORMAT, &error, "nested too deeply");
    free(text);
    arena_free(&arena);
}

static void test_scalars_print_as_they_are_read(void **state) {
    static const char *const texts[] = {"null", "true", "-3", "0.5", "2.0", "\"a\\\"b\\\\c\""};
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        Arena arena = {0};
        Buffer printed = {0};
        const Doc *doc;
        ferry_error error;
        assert_ok(parse(&arena, texts[i], &doc, &error), &error);
        doc_print_scalar(&printed, doc);
        assert_string_equal(buffer_string(&printed), texts[i]);
        buffer_free(&printed);
        arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_is_absent),
        cmocka_unit_test(test_an_object_of_many_members),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_scalars_print_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
