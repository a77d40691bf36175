/* Reading the settings of tokenizer.json: the first problem is kept, with its place in the document,
 * and everything after it yields something harmless. */
#ifndef TEXT_SETTINGS_H
#define TEXT_SETTINGS_H

#include "base/arena.h"
#include "format/document.h"
#include <ferry/status.h>
#include <stdbool.h>

typedef struct Settings {
    const char *path;
    Arena *arena;      /* of what is read: strings are the document's, which lives there too */
    const char *place; /* "normalizer", "model": for messages */
    ferry_status status;
    ferry_error *error;
} Settings;

/* Fail, unless it has failed: BAD_FORMAT or UNSUPPORTED. */
void setting_fail(Settings *settings, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Members that must be there. */
const char *setting_text(Settings *settings, const Doc *object, const char *key);
bool setting_bool(Settings *settings, const Doc *object, const char *key);
size_t setting_size(Settings *settings, const Doc *object, const char *key);
uint32_t setting_char(Settings *settings, const Doc *object, const char *key);

/* Members that may be absent or null. */
const char *setting_text_or(Settings *settings, const Doc *object, const char *key,
                            const char *otherwise);
bool setting_bool_or(Settings *settings, const Doc *object, const char *key, bool otherwise);
size_t setting_size_or(Settings *settings, const Doc *object, const char *key, size_t otherwise);

/* The place of a member's text among `count` names; fails when it is none of them. */
size_t setting_choice(Settings *settings, const Doc *object, const char *key,
                      const char *const *names, size_t count);

/* An id: an integer that fits 32 bits. */
uint32_t setting_id(Settings *settings, const Doc *value);

/* Members that must be arrays or objects. */
const Doc *setting_array(Settings *settings, const Doc *object, const char *key);
const Doc *setting_object(Settings *settings, const Doc *object, const char *key);

#endif
