/* Shared weights. */
#include "target/shared.h"

const SharedWeight *shared_find(const SharedWeights *table, const Recipe *recipe) {
    if (!table) return NULL;
    const void *start = &recipe->parts[0].base;
    const SharedWeight *weight = map_get(&table->by_start, start, sizeof recipe->parts[0].base);
    while (weight && !recipe_equal(weight->recipe, recipe)) weight = weight->next;
    return weight;
}

bool shared_add(SharedWeights *table, const Recipe *recipe, const char *file, uint64_t offset) {
    SharedWeight *weight = ARENA_NEW(&table->arena, SharedWeight);
    const void *start = &recipe->parts[0].base;
    size_t length = sizeof recipe->parts[0].base;
    if (!weight) return false;
    *weight = (SharedWeight){recipe, file, offset, map_get(&table->by_start, start, length)};
    map_set(&table->by_start, start, length, weight);
    return !table->by_start.failed;
}

void shared_free(SharedWeights *table) {
    map_free(&table->by_start);
    arena_free(&table->arena);
}
