/* Growing arrays: declare `VEC(type) name;`, zero it, push to it.
 * A failed allocation sets `failed`, which stays set, and drops the element. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
        bool failed;                                                                               \
    }

/* Room for one more item; used by VEC_PUSH. */
bool vec_grow(void **items, size_t count, size_t *capacity, size_t item_size, bool *failed);

#define VEC_PUSH(vec, ...)                                                                         \
    do {                                                                                           \
        if (vec_grow((void **)&(vec)->items, (vec)->count, &(vec)->capacity, sizeof *(vec)->items, \
                     &(vec)->failed))                                                              \
            (vec)->items[(vec)->count++] = (__VA_ARGS__);                                          \
    } while (0)

#define VEC_FREE(vec)                                                                              \
    do {                                                                                           \
        free((vec)->items);                                                                        \
        (vec)->items = NULL;                                                                       \
        (vec)->count = (vec)->capacity = 0;                                                        \
    } while (0)

#endif
