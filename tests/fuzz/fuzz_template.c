/* Any text as a chat template, run on a conversation: refused with a message, or rendered to UTF-8, within
 * limits. */
#include "text/template/template.h"
#include "text/unicode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char variables[] =
    "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"add_generation_prompt\": true, \"tools\":"
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\":"
    "{\"a\": {\"type\": \"string\"}}, \"required\": [\"a\"]}}}], \"documents\": null, \"messages\":"
    "[{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"\u00e9 <b> "
    "\u4e16\"},"
    "{\"role\": \"assistant\", \"content\": \"a</think>b\", \"tool_calls\": [{\"id\": "
    "\"abcdefghi\","
    "\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1.5}}}]}, {\"role\": \"tool\","
    "\"content\": \"1\"}, {\"role\": \"user\", \"content\": [{\"type\": \"image\"},"
    "{\"type\": \"text\", \"text\": \"t\"}]}]}";

static void expect(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static json_t *json;
    ferry_error error = {0};
    Arena arena = {0};
    Buffer out = {0};
    const Template *template;
    if (!json) json = json_loads(variables, 0, NULL);
    ferry_status status = template_parse((TemplateName){"chat_template.jinja", NULL}, &arena,
                                         (const char *)bytes, size, &template, &error);
    if (status == FERRY_OK) {
        size_t place;
        TemplateLimits limits = {.steps = 300000, .memory = 8 << 20};
        status = template_render(template, json, limits, &out, &error);
        expect(utf8_check(buffer_string(&out), out.length, &place));
    }
    expect(status != FERRY_INTERNAL && (status == FERRY_OK || error.message[0]));
    buffer_free(&out);
    arena_free(&arena);
    return 0;
}
