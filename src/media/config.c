#include "media/config.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* No size in a configuration is larger. */
enum { MAX_EDGE = 1 << 30 };

void config_make(Config *config, const char *path, const char *defaults, const json_t *given,
                 ferry_error *error) {
    const char *name;
    json_t *value;
    *config = (Config){.path = path, .json = json_loads(defaults, 0, NULL), .error = error};
    if (!config->json) config->status = error_memory(error, path, 0);
    json_object_foreach((json_t *)given, name, value) {
        if (!json_is_null(value)) json_object_set(config->json, name, value);
    }
}

void config_free(Config *config) {
    json_decref(config->json);
    config->json = NULL;
}

void config_fail(Config *config, ferry_status status, const char *format, ...) {
    char message[400];
    va_list args;
    if (config->status != FERRY_OK) return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    config->status = error_set(config->error, status, config->path, "%s", message);
}

static void expected(Config *config, const char *name, const char *what, const json_t *found) {
    config_fail(config, FERRY_BAD_FORMAT, "\"%s\" is %s; expected %s", name,
                found ? json_kind(found) : "missing", what);
}

bool config_flag(Config *config, const char *name) {
    const json_t *value = json_object_get(config->json, name);
    if (value && !json_is_boolean(value)) expected(config, name, "true or false", value);
    return json_is_true(value);
}

/* A whole number, also where it is written with a fraction of zero. */
static bool whole(const json_t *value, size_t least, size_t most, size_t *out) {
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= (double)least) || number > (double)most ||
        floor(number) != number)
        return false;
    *out = (size_t)number;
    return true;
}

size_t config_count(Config *config, const char *name, size_t least, size_t most) {
    const json_t *value = json_object_get(config->json, name);
    size_t count = least;
    if (json_is_number(value) && !whole(value, least, most, &count))
        config_fail(config, FERRY_BAD_FORMAT,
                    "\"%s\" is %g; expected a whole number from %zu to %zu", name,
                    json_number_value(value), least, most);
    else if (!json_is_number(value))
        expected(config, name, "a number", value);
    return count;
}

double config_real(Config *config, const char *name) {
    const json_t *value = json_object_get(config->json, name);
    if (!json_is_number(value)) expected(config, name, "a number", value);
    return json_number_value(value);
}

void config_colors(Config *config, const char *name, double out[3]) {
    const json_t *value = json_object_get(config->json, name);
    for (size_t c = 0; c < 3; c++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, c) : value;
        if (!json_is_number(item) || (json_is_array(value) && json_array_size(value) != 3))
            expected(config, name, "three numbers, or one", value);
        out[c] = json_number_value(item);
    }
}

Size config_size(Config *config, const char *name) {
    Size size = {0};
    const struct {
        const char *name;
        size_t *to;
    } parts[] = {
        {"height", &size.height},
        {"width", &size.width},
        {"shortest_edge", &size.shortest_edge},
        {"longest_edge", &size.longest_edge},
        {"max_height", &size.max_height},
        {"max_width", &size.max_width},
    };
    const json_t *value = json_object_get(config->json, name);
    size_t edge;
    if (json_is_number(value) && whole(value, 1, MAX_EDGE, &edge)) {
        bool square = strcmp(name, "size") != 0 || config_flag(config, "default_to_square");
        return square ? (Size){.height = edge, .width = edge} : (Size){.shortest_edge = edge};
    }
    if (!json_is_object(value)) {
        expected(config, name, "a number, or an object of edges", value);
        return size;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_t *part = json_object_get(value, parts[i].name);
        if (part && !json_is_null(part) && !whole(part, 0, MAX_EDGE, parts[i].to))
            config_fail(config, FERRY_BAD_FORMAT,
                        "\"%s\" of \"%s\" is %s; expected a whole number below %d", parts[i].name,
                        name, json_kind(part), MAX_EDGE);
    }
    return size;
}
