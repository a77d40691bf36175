/* Settings of a processor: a JSON object over the defaults of its class. The first failure is kept; from
 * then on nothing is read. */
#ifndef MEDIA_CONFIG_H
#define MEDIA_CONFIG_H

#include "format/json.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct Config {
    const char *path; /* of the file, for messages */
    json_t *json;
    ferry_error *error;
    ferry_status status;
} Config;

/* `defaults`, JSON text, changed by what `given` (may be NULL) has that is not null. Freed by config_free. */
void config_make(Config *config, const char *path, const char *defaults, const json_t *given,
                 ferry_error *error);
void config_free(Config *config);

void config_fail(Config *config, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool config_flag(Config *config, const char *name); /* absent: false */
size_t config_count(Config *config, const char *name, size_t least,
                    size_t most); /* must be there */
double config_real(Config *config, const char *name);
/* A number for each color; one number stands for all. */
void config_colors(Config *config, const char *name, double out[3]);

/* A size: what it says, 0 for what it does not. */
typedef struct Size {
    size_t height, width, shortest_edge, longest_edge, max_height, max_width;
} Size;

/* A number alone is a square, or, unless "default_to_square", the shortest edge. */
Size config_size(Config *config, const char *name);

#endif
