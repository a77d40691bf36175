/* JSON files, read with jansson. Duplicate keys, depth above 2048 and numbers that do not fit 64
 * bits are errors; integers stay exact. */
#ifndef FORMAT_JSON_H
#define FORMAT_JSON_H

#include <ferry/status.h>
#include <jansson.h>
#include <stddef.h>

/* Parse `length` bytes. `path` is for messages. The result is owned by the caller (json_decref). */
ferry_status json_parse(const char *path, const void *bytes, size_t length, json_t **out,
                        ferry_error *error);

/* Parse a whole file, which must hold an object. Infinity and NaN, which Python writes and JSON does not
 * have, are read as {"__float__": "Infinity"} and so on. */
ferry_status json_read_object(const char *path, json_t **out, ferry_error *error);

/* The same for a file of which only strings matter: integers are read as numbers of any size, such as the
 * 1e30 that Transformers writes for a model without a maximum length. */
ferry_status json_read_texts(const char *path, json_t **out, ferry_error *error);

/* "a string", "an array", ... for messages. */
const char *json_kind(const json_t *json);

#endif
