#include "text/settings.h"
#include "base/error.h"
#include "text/trie.h"
#include "text/unicode.h"

#include <stdio.h>
#include <string.h>

void setting_fail(Settings *settings, ferry_status status, const char *format, ...) {
    if (settings->status != FERRY_OK) return;
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    settings->status =
        error_set(settings->error, status, settings->path, "%s: %s", settings->place, message);
}

static void expect(Settings *settings, const Doc *object, const char *key, const char *what) {
    const Doc *type = doc_get(object, "type"), *value = doc_get(object, key);
    const char *name = doc_text(type);
    setting_fail(settings, FERRY_BAD_FORMAT, "\"%s\"%s%s is %s; expected %s", key,
                 name ? " of " : "", name ? name : "", value ? doc_kind(value) : "missing", what);
}

const char *setting_text(Settings *settings, const Doc *object, const char *key) {
    const char *text = doc_text(doc_get(object, key));
    if (!text) expect(settings, object, key, "a string");
    return text ? text : "";
}

bool setting_bool(Settings *settings, const Doc *object, const char *key) {
    const Doc *value = doc_get(object, key);
    if (!doc_is_bool(value)) expect(settings, object, key, "true or false");
    return doc_bool(value);
}

size_t setting_size(Settings *settings, const Doc *object, const char *key) {
    const Doc *value = doc_get(object, key);
    if (!doc_is_integer(value) || doc_integer(value) < 0 || doc_integer(value) > UINT32_MAX) {
        expect(settings, object, key, "an integer from 0 to 4294967295");
        return 0;
    }
    return (size_t)doc_integer(value);
}

uint32_t setting_char(Settings *settings, const Doc *object, const char *key) {
    const char *text = doc_text(doc_get(object, key));
    if (!text || !*text || strlen(text) != utf8_size(*text)) {
        expect(settings, object, key, "a string of one character");
        return ' ';
    }
    return utf8_get(text);
}

static bool is_given(const Doc *object, const char *key) {
    const Doc *value = doc_get(object, key);
    return value && !doc_is_null(value);
}

const char *setting_text_or(Settings *settings, const Doc *object, const char *key,
                            const char *otherwise) {
    return is_given(object, key) ? setting_text(settings, object, key) : otherwise;
}

bool setting_bool_or(Settings *settings, const Doc *object, const char *key, bool otherwise) {
    return is_given(object, key) ? setting_bool(settings, object, key) : otherwise;
}

size_t setting_size_or(Settings *settings, const Doc *object, const char *key, size_t otherwise) {
    return is_given(object, key) ? setting_size(settings, object, key) : otherwise;
}

size_t setting_choice(Settings *settings, const Doc *object, const char *key,
                      const char *const *names, size_t count) {
    const char *text = setting_text(settings, object, key);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) return i;
    }
    setting_fail(settings, FERRY_BAD_FORMAT, "\"%s\" is \"%s\", which is not known", key, text);
    return 0;
}

uint32_t setting_id(Settings *settings, const Doc *value) {
    if (!doc_is_integer(value) || doc_integer(value) < 0 || doc_integer(value) >= TRIE_NONE) {
        setting_fail(settings, FERRY_BAD_FORMAT,
                     "an id is %s; expected an integer below 4294967295",
                     doc_is_integer(value) ? "out of range" : doc_kind(value));
        return 0;
    }
    return (uint32_t)doc_integer(value);
}

const Doc *setting_array(Settings *settings, const Doc *object, const char *key) {
    const Doc *value = doc_get(object, key);
    if (!doc_is_array(value)) expect(settings, object, key, "an array");
    return value;
}

const Doc *setting_object(Settings *settings, const Doc *object, const char *key) {
    const Doc *value = doc_get(object, key);
    if (!doc_is_object(value)) expect(settings, object, key, "an object");
    return value;
}
