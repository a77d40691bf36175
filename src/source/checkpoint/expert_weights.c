/* Layouts of the weights of experts, I features inside of an expert:
 *   separate     <name>.N.gate_proj.weight [I, H], up_proj [I, H], down_proj [H, I]; version 4
 *   together     <name>.gate_up_proj [E, 2 I, H], down_proj [E, H, I]; version 5
 *   alternating  <name>.gate_up_proj [E, H, 2 I], gate and up in turn, down_proj [E, I, H], with biases;
 *                GPT-OSS
 * Taking apart and stacking is done with recipes: no weight is copied before the writing. */
#include "source/checkpoint/expert_weights.h"

static const Recipe *swap_sides(Arena *arena, const Recipe *recipe) {
    return recipe ? recipe_permute(arena, recipe, (const int64_t[]){0, 2, 1}) : NULL;
}

static Value *weight_of(Decoder *d, const Recipe *recipe, const char *name, const char *which) {
    return model_made_weight(d->m, recipe, d->m->dtype, "%s.%s", name, which);
}

/* The matrices [rows, columns] of all experts; [experts, columns, rows]. */
static const Recipe *stack(Decoder *d, const char *name, const char *which, int64_t rows,
                           int64_t columns) {
    Model *m = d->m;
    Arena *arena = &m->b.program->arena;
    int64_t count = d->experts->count;
    const int64_t shape[] = {rows, columns};
    const Recipe **items = ARENA_ARRAY(arena, const Recipe *, (size_t)count);
    for (int64_t i = 0; items && i < count && build_ok(&m->b); i++) {
        items[i] = model_recipe(m, 2, shape, "%s.%lld.%s.weight", name, (long long)i, which);
        if (items[i] && items[i]->dtype != items[0]->dtype) {
            build_fail(&m->b, FERRY_UNSUPPORTED,
                       "%s: the weights \"%s.N.%s.weight\" of the experts are of different dtypes",
                       m->checkpoint->directory, name, which);
        }
    }
    if (!items || !build_ok(&m->b)) return NULL;
    return swap_sides(arena, recipe_stack(arena, items, (uint32_t)count));
}

static ExpertWeights separate(Decoder *d, const char *name) {
    const char *const *names = d->traits->experts->names;
    int64_t size = d->experts->size;
    const Recipe *gate = stack(d, name, names[0], size, d->hidden);
    const Recipe *up = stack(d, name, names[1], size, d->hidden);
    const Recipe *down = stack(d, name, names[2], d->hidden, size);
    return (ExpertWeights){.gate.weight = weight_of(d, gate, name, "gate_proj"),
                           .up.weight = weight_of(d, up, name, "up_proj"),
                           .down.weight = weight_of(d, down, name, "down_proj")};
}

static ExpertWeights together(Decoder *d, const char *name) {
    Model *m = d->m;
    Arena *arena = &m->b.program->arena;
    int64_t count = d->experts->count, size = d->experts->size;
    const int64_t inner[] = {count, 2 * size, d->hidden}, outer[] = {count, d->hidden, size};
    const Recipe *both = model_recipe(m, 3, inner, "%s.gate_up_proj", name), *parts[2] = {0};
    const Recipe *down = swap_sides(arena, model_recipe(m, 3, outer, "%s.down_proj", name));
    for (int i = 0; i < 2 && both; i++)
        parts[i] = swap_sides(arena, recipe_slice(arena, both, 1, i * size, (i + 1) * size));
    return (ExpertWeights){.gate.weight = weight_of(d, parts[0], name, "gate_proj"),
                           .up.weight = weight_of(d, parts[1], name, "up_proj"),
                           .down.weight = weight_of(d, down, name, "down_proj")};
}

/* Every other element along the last dimension, from the first or the second on. */
static const Recipe *every_other(Arena *arena, const Recipe *recipe, int64_t first) {
    int64_t shape[FERRY_MAX_RANK];
    uint32_t rank = recipe ? recipe->rank : 0;
    if (!recipe) return NULL;
    for (uint32_t i = 0; i < rank; i++) shape[i] = recipe->shape[i];
    shape[rank - 1] /= 2;
    shape[rank] = 2;
    const Recipe *pairs = recipe_view(arena, recipe, rank + 1, shape);
    return pairs ? recipe_select(arena, pairs, rank, first) : NULL;
}

static ExpertWeights alternating(Decoder *d, const char *name) {
    Model *m = d->m;
    Arena *arena = &m->b.program->arena;
    int64_t count = d->experts->count, size = d->experts->size;
    const int64_t inner[] = {count, d->hidden, 2 * size}, outer[] = {count, size, d->hidden};
    const int64_t inner_bias[] = {count, 2 * size}, outer_bias[] = {count, d->hidden};
    if (model_has(m, "%s.gate_up_proj_blocks", name)) {
        build_fail(
            &m->b, FERRY_UNSUPPORTED,
            "%s: the experts are quantized to MXFP4 (%s.gate_up_proj_blocks), which is not "
            "supported; load the model in Transformers with Mxfp4Config(dequantize=True) and "
            "save it, and export that",
            m->checkpoint->directory, name);
        return (ExpertWeights){0};
    }
    const Recipe *both = model_recipe(m, 3, inner, "%s.gate_up_proj", name);
    const Recipe *down = model_recipe(m, 3, outer, "%s.down_proj", name);
    const Recipe *biases = model_recipe(m, 2, inner_bias, "%s.gate_up_proj_bias", name);
    const Recipe *last = model_recipe(m, 2, outer_bias, "%s.down_proj_bias", name);
    return (ExpertWeights){
        .gate = {weight_of(d, every_other(arena, both, 0), name, "gate_proj"),
                 weight_of(d, every_other(arena, biases, 0), name, "gate_proj_bias")},
        .up = {weight_of(d, every_other(arena, both, 1), name, "up_proj"),
               weight_of(d, every_other(arena, biases, 1), name, "up_proj_bias")},
        .down = {weight_of(d, down, name, "down_proj"), weight_of(d, last, name, "down_proj_bias")},
    };
}

ExpertWeights expert_weights(Decoder *d, const char *name) {
    if (d->traits->experts->clamped) return alternating(d, name);
    return model_has(d->m, "%s.gate_up_proj", name) ? together(d, name) : separate(d, name);
}
