/* Arenas: allocate many small objects, free them at once.
 *
 * An allocation that fails sets `failed`, which stays set; the owner checks it once at the end.
 * String functions never return NULL: after a failure they return "". */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    ArenaBlock *blocks;
    size_t used; /* bytes in use in the newest block */
    bool failed;
} Arena;

/* An arena that is all zero is ready for use. */
void arena_free(Arena *arena);

/* Zeroed memory aligned for any object, or NULL (and `failed`). A size of 0 gives a valid pointer. */
void *arena_alloc(Arena *arena, size_t size);

/* `count` zeroed objects of `size` bytes; checks the product. */
void *arena_array(Arena *arena, size_t count, size_t size);

/* A copy of `size` bytes. */
void *arena_copy(Arena *arena, const void *bytes, size_t size);

const char *arena_string(Arena *arena, const char *text);
const char *arena_string_n(Arena *arena, const char *text, size_t length);
const char *arena_format(Arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *arena_vformat(Arena *arena, const char *format, va_list args);

#define ARENA_NEW(arena, type)          ((type *)arena_alloc(arena, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array(arena, count, sizeof(type)))

#endif
