#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct ArenaBlock {
    ArenaBlock *next;
    size_t capacity;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void arena_free(Arena *arena) {
    for (ArenaBlock *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (Arena){0};
}

void *arena_alloc(Arena *arena, size_t size) {
    if (size > PTRDIFF_MAX - BLOCK_BYTES) {
        arena->failed = true;
        return NULL;
    }
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->blocks || arena->blocks->capacity - arena->used < size) {
        size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        ArenaBlock *block = calloc(1, sizeof *block + capacity);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        block->next = arena->blocks;
        block->capacity = capacity;
        arena->blocks = block;
        arena->used = 0;
    }
    void *result = arena->blocks->bytes + arena->used;
    arena->used += size;
    return result;
}

void *arena_array(Arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return arena_alloc(arena, bytes);
}

void *arena_copy(Arena *arena, const void *bytes, size_t size) {
    void *result = arena_alloc(arena, size);
    if (result && size) memcpy(result, bytes, size);
    return result;
}

const char *arena_string_n(Arena *arena, const char *text, size_t length) {
    char *result = arena_alloc(arena, length + 1);
    if (!result) return "";
    memcpy(result, text, length);
    return result;
}

const char *arena_string(Arena *arena, const char *text) {
    return arena_string_n(arena, text, strlen(text));
}

const char *arena_vformat(Arena *arena, const char *format, va_list args) {
    char text[256];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(text, sizeof text, format, args);
    char *result = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (result && (size_t)length < sizeof text)
        memcpy(result, text, (size_t)length + 1);
    else if (result)
        vsnprintf(result, (size_t)length + 1, format, again);
    va_end(again);
    return result ? result : "";
}

const char *arena_format(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *result = arena_vformat(arena, format, args);
    va_end(args);
    return result;
}
