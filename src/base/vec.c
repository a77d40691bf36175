#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

bool vec_grow(void **items, size_t count, size_t *capacity, size_t item_size, bool *failed) {
    if (*failed) return false;
    if (count < *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    void *grown = wanted > SIZE_MAX / item_size ? NULL : realloc(*items, wanted * item_size);
    if (!grown) {
        *failed = true;
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}
