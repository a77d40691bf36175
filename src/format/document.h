/* JSON documents of millions of values, such as the program in a .pt2: read with yajl into one arena,
 * and only looked at from then on. Duplicate keys, depth above 2048, strings with NUL and integers that
 * do not fit 64 bits are errors.
 *
 * Functions take NULL, or a value of another kind, for something absent: what is nested can be
 * reached for in one expression and checked at its end. */
#ifndef FORMAT_DOCUMENT_H
#define FORMAT_DOCUMENT_H

#include "base/arena.h"
#include "base/buffer.h"
#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Doc Doc;

/* Parse `length` bytes into `arena`, where the document then lives. `path` is for messages. */
ferry_status doc_parse(const char *path, const void *bytes, size_t length, Arena *arena,
                       const Doc **out, ferry_error *error);

/* A member of an object; NULL when there is none. */
const Doc *doc_get(const Doc *object, const char *key);

/* An item of an array; NULL past the end. */
const Doc *doc_item(const Doc *array, size_t index);

/* The key and the value of an object's member by its place in the file; NULL past the end. */
const char *doc_key(const Doc *object, size_t index);
const Doc *doc_value(const Doc *object, size_t index);

/* Of an array or object; 0 for anything else. */
size_t doc_count(const Doc *doc);

const char *doc_text(const Doc *doc); /* NULL for anything but a string */
int64_t doc_integer(const Doc *doc);  /* 0 for anything but an integer */
double doc_number(const Doc *doc);    /* 0 for anything but a number */
bool doc_bool(const Doc *doc);        /* true for true */

bool doc_is_null(const Doc *doc);
bool doc_is_bool(const Doc *doc);
bool doc_is_integer(const Doc *doc);
bool doc_is_number(const Doc *doc);
bool doc_is_text(const Doc *doc);
bool doc_is_array(const Doc *doc);
bool doc_is_object(const Doc *doc);

/* Loops over an array and over the members of an object, in the order of the file. */
#define DOC_EACH_ITEM(array, i, item) for (i = 0; ((item) = doc_item(array, i)) != NULL; i++)
#define DOC_EACH_MEMBER(object, key, value)                                                        \
    for (size_t member_ = 0; ((key) = doc_key(object, member_)) != NULL &&                         \
                             ((value) = doc_value(object, member_)) != NULL;                       \
         member_++)

/* Append a null, boolean, number or string as JSON text; anything else as null. */
void doc_print_scalar(Buffer *out, const Doc *doc);

/* "a string", "an array", ..., for messages. */
const char *doc_kind(const Doc *doc);

#endif
