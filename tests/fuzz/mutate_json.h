/* A libFuzzer mutator that keeps JSON well-formed: one value somewhere in the document becomes another.
 * Include it once per fuzzer. Text that does not parse is mutated byte by byte. */
#ifndef TESTS_FUZZ_MUTATE_JSON_H
#define TESTS_FUZZ_MUTATE_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t capacity, unsigned seed);

static size_t mutate_count(const json_t *json) {
    size_t count = 1, i;
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)json, key, item) count += mutate_count(item);
    json_array_foreach(json, i, item) count += mutate_count(item);
    return count;
}

/* The parent of the value number `*index` in preorder, with the place of the value in it. */
static json_t *mutate_find(json_t *json, size_t *index, const char **key, size_t *place) {
    json_t *item, *found;
    json_object_foreach(json, *key, item) {
        if ((*index)-- == 0) return json;
        const char *kept = *key;
        if ((found = mutate_find(item, index, key, place))) return found;
        *key = kept;
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        item = json_array_get(json, i);
        if ((*index)-- == 0) {
            *place = i;
            return json;
        }
        if ((found = mutate_find(item, index, key, place))) return found;
    }
    return NULL;
}

static json_t *mutate_value(json_t *root, size_t count, unsigned random) {
    static const json_int_t integers[] = {0,  1,  -1, 2,         3,         7,
                                          64, -8, 65, INT32_MAX, INT64_MAX, INT64_MIN};
    static const char *const strings[] = {"", "a", "x", "s0", "2*s0 + 1", "gelu", "full_attention"};
    switch (random % 9) {
    case 0: return json_null();
    case 1: return json_boolean(random & 16);
    case 2: return json_real(random & 16 ? 1e-6 : -1e300);
    case 3: return json_string(strings[random / 16 % (sizeof strings / sizeof *strings)]);
    case 4: return random & 16 ? json_array() : json_object();
    case 5:
    case 6: return json_integer(integers[random / 16 % (sizeof integers / sizeof *integers)]);
    default: { /* a copy of another value of the document */
        size_t index = random / 16 % count, place = 0;
        const char *key = NULL;
        json_t *parent = mutate_find(root, &index, &key, &place);
        if (!parent) return json_null();
        return json_deep_copy(json_is_object(parent) ? json_object_get(parent, key)
                                                     : json_array_get(parent, place));
    }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t capacity, unsigned seed) {
    json_t *root = seed % 16 ? json_loadb((const char *)bytes, size, 0, NULL) : NULL;
    size_t count = root ? mutate_count(root) - 1 : 0;
    if (!count) {
        json_decref(root);
        return LLVMFuzzerMutate(bytes, size, capacity);
    }
    for (unsigned round = 0; round <= seed / 16 % 3; round++) {
        seed = seed * 1664525u + 1013904223u;
        size_t index = seed / 65536 % count, place = 0;
        const char *key = NULL;
        json_t *parent = mutate_find(root, &index, &key, &place);
        if (!parent) continue;
        seed = seed * 1664525u + 1013904223u;
        unsigned random = seed / 256;
        if (random % 11 == 0) {
            if (json_is_object(parent))
                json_object_del(parent, key);
            else
                json_array_remove(parent, place);
            count = mutate_count(root) - 1;
            if (!count) break;
            continue;
        }
        json_t *value = mutate_value(root, count, random);
        if (json_is_object(parent))
            json_object_set_new(parent, key, value);
        else
            json_array_set_new(parent, place, value);
        count = mutate_count(root) - 1;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    size_t length = text ? strlen(text) : 0;
    if (length && length <= capacity)
        memcpy(bytes, text, length);
    else
        length = size;
    free(text);
    json_decref(root);
    return length;
}

#endif
