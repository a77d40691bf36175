/* Reading config.json: typed values, and the check that no key was overlooked. */
#include "base/file.h"
#include "base/text.h"
#include "source/checkpoint/model.h"

#include <stdlib.h>
#include <string.h>

struct ConfigScope {
    ConfigScope *next;
    json_t *object; /* NULL: absent, which is as good as empty */
    const char *path;
    Map used;
    bool accepted; /* as a whole */
    bool owned;    /* the object was made for this */
};

static ConfigScope *add_scope(Model *m, json_t *object, const char *path) {
    ConfigScope *scope = ARENA_ARRAY(&m->b.program->arena, ConfigScope, 1);
    if (!scope) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return m->scopes;
    }
    *scope = (ConfigScope){.next = m->scopes, .object = object, .path = path};
    m->scopes = scope;
    return scope;
}

/* True when the key is in the object, null or not; remembers that the family knows it. */
static json_t *lookup(Model *m, const char *key) {
    json_t *value = m->config ? json_object_get(m->config->object, key) : NULL;
    if (value) map_put(&m->config->used, key, m);
    return value;
}

json_t *config_get(Model *m, const char *key) {
    json_t *value = lookup(m, key);
    return json_is_null(value) ? NULL : value;
}

bool config_has(Model *m, const char *key) {
    return config_get(m, key) != NULL;
}

bool config_is_null(Model *m, const char *key) {
    return json_is_null(lookup(m, key));
}

void config_accept(Model *m, const char *key) {
    lookup(m, key);
}

void config_accept_all(Model *m) {
    if (m->config) m->config->accepted = true;
}

static void wrong_kind(Model *m, const char *key, const char *expected, const json_t *found) {
    build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"%s\" to be %s, found %s", m->config_path,
               key, expected, json_kind(found));
}

int64_t config_int_or(Model *m, const char *key, int64_t otherwise) {
    json_t *value = config_get(m, key);
    if (!value) return otherwise;
    if (json_is_integer(value)) return json_integer_value(value);
    double real = json_real_value(value);
    if (json_is_real(value) && real > -0x1p62 && real < 0x1p62 && real == (double)(int64_t)real) {
        return (int64_t)real;
    }
    wrong_kind(m, key, "an integer", value);
    return otherwise;
}

enum { MAX_CONFIG_INT = 1 << 30 };

int64_t config_int(Model *m, const char *key) {
    int64_t value = config_int_or(m, key, 0);
    if (!config_has(m, key)) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected the key \"%s\", which is missing",
                   m->config_path, key);
    } else if (value < 1 || value > MAX_CONFIG_INT) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"%s\" to be between 1 and %d, found %lld", m->config_path, key,
                   MAX_CONFIG_INT, (long long)value);
    }
    return value < 1 || value > MAX_CONFIG_INT ? 1 : value;
}

int64_t config_size_or(Model *m, const char *key, int64_t otherwise) {
    return config_has(m, key) ? config_int(m, key) : otherwise;
}

double config_float_or(Model *m, const char *key, double otherwise) {
    json_t *value = config_get(m, key);
    if (!value) return otherwise;
    if (json_is_number(value)) return json_number_value(value);
    wrong_kind(m, key, "a number", value);
    return otherwise;
}

int64_t config_scaled(Model *m, int64_t size, const char *key, double otherwise) {
    double scaled = (double)size * config_float_or(m, key, otherwise);
    if (scaled >= 1 && scaled <= MAX_CONFIG_INT) return (int64_t)scaled;
    build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"%s\" to make a size of %lld",
               m->config_path, key, (long long)size);
    return 1;
}

bool config_bool_or(Model *m, const char *key, bool otherwise) {
    json_t *value = config_get(m, key);
    if (!value) return otherwise;
    if (json_is_boolean(value)) return json_is_true(value);
    wrong_kind(m, key, "true or false", value);
    return otherwise;
}

const char *config_string_or(Model *m, const char *key, const char *otherwise) {
    json_t *value = config_get(m, key);
    if (!value) return otherwise;
    if (json_is_string(value)) return json_string_value(value);
    wrong_kind(m, key, "a string", value);
    return otherwise;
}

void config_require_bool(Model *m, const char *key, bool value) {
    if (config_bool_or(m, key, value) == value) return;
    build_fail(&m->b, FERRY_UNSUPPORTED, "%s: \"%s\": %s is not supported for model type %s",
               m->config_path, key, value ? "false" : "true", m->family->model_type);
}

void config_require_string(Model *m, const char *key, const char *value) {
    const char *found = config_string_or(m, key, value);
    if (strcmp(found, value) == 0) return;
    build_fail(&m->b, FERRY_UNSUPPORTED,
               "%s: \"%s\": \"%s\" is not supported for model type %s (expected \"%s\")",
               m->config_path, key, found, m->family->model_type, value);
}

int64_t config_labels(Model *m) {
    json_t *labels = config_get(m, "id2label");
    int64_t otherwise = json_is_object(labels) ? (int64_t)json_object_size(labels) : 2;
    return config_int_or(m, "num_labels", otherwise);
}

/* ---- keys that nobody read ---- */

static bool is_text(const json_t *value, const char *text) {
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    bool equal = dump && strcmp(dump, text) == 0;
    free(dump);
    return equal;
}

static bool is_harmless(const char *key, const json_t *value) {
#define HARMLESS(name)            || strcmp(key, name) == 0
#define HARMLESS_SUFFIX(end)      || text_ends_with(key, end)
#define HARMLESS_PREFIX(start)    || strncmp(key, start, strlen(start)) == 0
#define HARMLESS_WHEN(name, text) || (strcmp(key, name) == 0 && is_text(value, text))
    return json_is_null(value)
#include "source/checkpoint/config_harmless.def"
        ;
#undef HARMLESS
#undef HARMLESS_SUFFIX
#undef HARMLESS_PREFIX
#undef HARMLESS_WHEN
}

bool config_is_ignored(const Model *m, const char *key) {
    for (size_t i = 0; i < m->request->ignored_key_count; i++) {
        if (strcmp(m->request->ignored_keys[i], key) == 0) return true;
    }
    return false;
}

static void check_scope(Model *m, const ConfigScope *scope) {
    const char *key;
    json_t *value;
    if (scope->accepted) return;
    json_object_foreach(scope->object, key, value) {
        if (map_find(&scope->used, key) || is_harmless(key, value)) continue;
        if (config_is_ignored(m, key)) continue;
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the key \"%s\" is not understood for model type %s and may change the "
                   "arithmetic; if it does not, export with --ignore-config %s",
                   scope->path, key, m->family->model_type, key);
    }
}

void config_check_unread(Model *m) {
    for (const ConfigScope *scope = m->scopes; scope; scope = scope->next) check_scope(m, scope);
}

/* ---- the file and its parts ---- */

void config_start(Model *m) {
    m->config_path = m->checkpoint->config_path;
    m->config = add_scope(m, m->checkpoint->config, m->config_path);
}

void config_enter(Model *m, const char *key) {
    json_t *object = config_get(m, key);
    const char *path = arena_format(&m->b.program->arena, "%s: %s", m->config_path, key);
    if (object && !json_is_object(object)) {
        wrong_kind(m, key, "an object", object);
        object = NULL;
    }
    ConfigScope *known = m->scopes;
    while (known && (!object || known->object != object)) known = known->next;
    m->config = known ? known : add_scope(m, object, path);
    m->config_path = path;
}

void config_enter_made(Model *m, const char *name, json_t *object) {
    const char *path = arena_format(&m->b.program->arena, "%s: %s", m->config_path, name);
    ConfigScope *scope = add_scope(m, object, path);
    if (!scope || scope->object != object) {
        json_decref(object);
        return;
    }
    scope->owned = true;
    m->config = scope;
    m->config_path = path;
}

void config_end(Model *m) {
    for (ConfigScope *scope = m->scopes; scope; scope = scope->next) {
        if (scope->owned) json_decref(scope->object);
        if (scope->used.failed) m->b.program->arena.failed = true;
        map_free(&scope->used);
    }
}
