/* Chat templates of a checkpoint: where they are found, in which order files count, what is refused, and
 * the limits of a run. */
#include "check.h"
#include "base/file.h"
#include "text/chat.h"

#include <sys/stat.h>

static char directory[200];

static int make_directory(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    return 0;
}

static int remove_directory(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

static void put(const char *name, const char *text) {
    char path[400];
    ferry_error error;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_ok(file_write(path, text, strlen(text), &error), &error);
}

static void append(void *context, const char *text, size_t length) {
    buffer_append(context, text, length);
}

/* The text of a conversation of "Hi". */
static void expect_text(const ferry_chat_config *config, const char *expected) {
    ferry_chat *chat;
    ferry_error error;
    Buffer out = {0};
    assert_ok(ferry_chat_open(directory, &chat, &error), &error);
    assert_ok(ferry_chat_render_user(chat, "Hi", 2, config, append, &out, &error), &error);
    assert_string_equal(buffer_string(&out), expected);
    buffer_free(&out);
    ferry_chat_close(chat);
}

static void expect_refused(ferry_status status, const char *message) {
    ferry_chat *chat;
    ferry_error error;
    assert_fails(ferry_chat_open(directory, &chat, &error), status, &error, message);
    assert_null(chat);
}

static void test_places_and_their_order(void **state) {
    (void)state;
    expect_refused(FERRY_NOT_FOUND, "has no chat template");
    put("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
    expect_refused(FERRY_NOT_FOUND, "has no chat template");
    put("tokenizer_config.json", "{\"chat_template\": \"config {{ messages[0].content }}\"}");
    expect_text(NULL, "config Hi");
    put("chat_template.json", "{\"chat_template\": \"json {{ messages[0].content }}\"}");
    expect_text(NULL, "json Hi");
    put("chat_template.jinja", "jinja {{ messages[0].content }}\n");
    expect_text(NULL, "jinja Hi");
}

static void test_names(void **state) {
    ferry_chat_config config;
    ferry_chat *chat;
    ferry_error error;
    char path[300];
    (void)state;
    ferry_chat_config_init(&config);
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"plain\"},"
        "{\"name\": \"tool_use\", \"template\": \"tools {{ tools | length }}\"}]}");
    snprintf(path, sizeof path, "%s/chat_templates", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    put("chat_templates/rag.jinja", "rag");
    expect_text(&config, "plain");
    config.tools = "[{}, {}]";
    expect_text(&config, "tools 2");
    config.template_name = "rag";
    expect_text(&config, "rag");
    config.template_name = "other";
    assert_ok(ferry_chat_open(directory, &chat, &error), &error);
    assert_string_equal(ferry_chat_template_at(chat, 2), "rag");
    assert_null(ferry_chat_template_at(chat, 3));
    assert_fails(ferry_chat_render_user(chat, "Hi", 2, &config, append, NULL, &error),
                 FERRY_NOT_FOUND, &error,
                 "has no chat template \"other\", but default, tool_use, rag");
    ferry_chat_close(chat);
    scratch_remove(path);
}

static void test_special_tokens(void **state) {
    ferry_chat *chat;
    ferry_error error;
    (void)state;
    put("chat_template.jinja",
        "{{ bos_token }}{{ eos_token }}{{ image_token }}{{ pad_token is defined }}");
    put("tokenizer_config.json",
        "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}, \"pad_token\": null,"
        "\"extra_special_tokens\": {\"image_token\": \"<i>\"}}");
    expect_text(NULL, "<s></s><i>False");
    put("special_tokens_map.json", "{\"eos_token\": \"<end>\"}");
    expect_text(NULL, "<s><end><i>False");
    put("tokenizer_config.json",
        "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"added_tokens_decoder\": {}}");
    expect_text(NULL, "<s></s>False");
    assert_ok(ferry_chat_open(directory, &chat, &error), &error);
    assert_string_equal(ferry_chat_token(chat, "eos_token"), "</s>");
    assert_null(ferry_chat_token(chat, "cls_token"));
    ferry_chat_close(chat);
}

static void test_refused(void **state) {
    (void)state;
    put("tokenizer_config.json", "{\"chat_template\": 5}");
    expect_refused(FERRY_BAD_FORMAT, "\"chat_template\" is a number");
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"a\"}]}");
    expect_refused(FERRY_BAD_FORMAT, "\"chat_template\"[0] lacks a \"name\" or a \"template\"");
    put("tokenizer_config.json", "{\"chat_template\": \"a\\n{% if %}\"}");
    expect_refused(FERRY_BAD_FORMAT, "line 2 of \"chat_template\": expected an expression");
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"x\", \"template\": \"{{\"}]}");
    expect_refused(FERRY_BAD_FORMAT, "line 1 of \"chat_template\" \"x\": expected an expression");
    put("tokenizer_config.json", "{}");
    put("chat_template.jinja", "a\xff");
    expect_refused(FERRY_BAD_FORMAT, "line 1: not UTF-8 at byte 1");
}

static void test_arguments(void **state) {
    static const struct {
        const char *messages, *tools, *variables, *message;
    } cases[] = {
        {"", NULL, NULL, "not valid JSON"},
        {"[]", NULL, NULL, "expected a list of messages, found an empty one"},
        {"{}", NULL, NULL, "expected a list of messages, found an object"},
        {"[1]", NULL, NULL, "message 0 is an integer"},
        {"[{}]", "{}", NULL, "expected a list of tools, found an object"},
        {"[{}]", "[", NULL, "not valid JSON"},
        {"[{}]", NULL, "[]", "expected an object of names and values, found an array"},
        {"[{}]", NULL, NULL, "line 1: 'dict object' has no attribute 'content'"},
    };
    ferry_chat *chat;
    ferry_error error;
    (void)state;
    put("chat_template.jinja", "{{ messages[0].content.x }}");
    assert_ok(ferry_chat_open(directory, &chat, &error), &error);
    for (size_t i = 0; i < COUNT(cases); i++) {
        ferry_chat_config config;
        ferry_chat_config_init(&config);
        config.tools = cases[i].tools;
        config.variables = cases[i].variables;
        assert_fails(ferry_chat_render(chat, cases[i].messages, &config, append, NULL, &error),
                     FERRY_INVALID_ARGUMENT, &error, cases[i].message);
    }
    assert_fails(ferry_chat_render_user(chat, "\xff", 1, NULL, append, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "not UTF-8");
    ferry_chat_close(chat);
}

static void test_gguf(void **state) {
    ferry_chat *chat;
    ferry_error error;
    Buffer out = {0};
    (void)state;
    assert_ok(
        ferry_chat_open(FERRY_ROOT "/tests/fuzz/corpus/gguf_tokenizer/byte_level", &chat, &error),
        &error);
    assert_ok(ferry_chat_render_user(chat, "Hi", 2, NULL, append, &out, &error), &error);
    assert_string_equal(buffer_string(&out), "[{'role': 'user', 'content': 'Hi'}]");
    assert_string_equal(ferry_chat_token(chat, "bos_token"), "<s>");
    buffer_free(&out);
    ferry_chat_close(chat);
    assert_fails(ferry_chat_open(FERRY_ROOT "/tests/fuzz/corpus/gguf_tokenizer/sentencepiece",
                                 &chat, &error),
                 FERRY_NOT_FOUND, &error, "has no chat template");
}

/* Whatever runs out first, the run ends, with the line. */
static void test_limits(void **state) {
    static const char *const texts[] = {
        "{% for a in range(1000) %}{% for b in range(1000) %}{{ a * b }}{% endfor %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for a in range(100) %}{% set ns.l = ns.l + ns.l %}{% "
        "endfor %}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{% set l = range(50000) | list %}{{ (l | sort) == (l | reverse | list | sort) }}{{ l | "
        "unique | list }}",
        "{{ ('ab' * 100000).split('a') | map('upper') | join('x' * 1000) }}",
        "{% set ns = namespace(s=[]) %}{% for a in range(100000) %}{% set ns.s = [ns.s] %}{% "
        "endfor %}{{ ns.s }}",
        "{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        Arena arena = {0};
        Buffer out = {0};
        ferry_error error = {0};
        const Template *template;
        TemplateLimits limits = {.steps = 1000000, .memory = 16 << 20};
        assert_ok(template_parse((TemplateName){"t.jinja", NULL}, &arena, texts[i],
                                 strlen(texts[i]), &template, &error),
                  &error);
        assert_fails(template_render(template, NULL, limits, &out, &error), FERRY_UNSUPPORTED,
                     &error, "line 1: the template ");
        buffer_free(&out);
        arena_free(&arena);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_directory, remove_directory)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_places_and_their_order), TEST(test_names),   TEST(test_special_tokens),
        cmocka_unit_test(test_gguf),       TEST(test_refused), TEST(test_arguments),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
