/* Folding: work on weights and constants that need not be done at run time. */
#include "base/error.h"
#include "pass/pass.h"

#include <string.h>

enum { MAX_FOLDED_BYTES = 1 << 20 };

/* ---- recipes ---- */

/* The recipe of what `node` makes of a weight; NULL when it is no such operation. */
static const Recipe *compose(Program *program, const Node *node, const Recipe *recipe) {
    int64_t dims[FERRY_MAX_RANK];
    Arena *arena = &program->arena;
    switch (node->op) {
    case OP_TO: return recipe_cast(arena, recipe, node->args[1].dtype);
    case OP_PERMUTE:
        for (uint32_t d = 0; d < recipe->rank; d++)
            dims[d] = node->args[1].integers.items[d]->value;
        return recipe_permute(arena, recipe, dims);
    case OP_VIEW:
        for (uint32_t d = 0; d < node->outputs[0]->rank; d++) {
            if (!sym_is_const(node->outputs[0]->shape[d])) return NULL; /* as the inputs have it */
            dims[d] = node->outputs[0]->shape[d]->value;
        }
        return recipe_view(arena, recipe, node->outputs[0]->rank, dims);
    default: return NULL;
    }
}

ferry_status pass_fold_weights(Program *program, ferry_error *error) {
    Arena scratch = {0};
    uint32_t count = program->value_count;
    uint32_t *uses = program_uses(program, &scratch);
    Value **map = ARENA_ARRAY(&scratch, Value *, count);
    if (!uses || !map) return error_memory(error, program->architecture, 0);
    for (Node *node = program->first; node; node = node->next) {
        if (node->op != OP_TO && node->op != OP_PERMUTE && node->op != OP_VIEW) continue;
        Value *weight = node->args[0].tensor;
        while (weight->id < count && map[weight->id]) weight = map[weight->id];
        uint32_t readers = uses[node->args[0].tensor->id];
        if (!weight->recipe || weight->kind == VALUE_STATE || readers != 1) continue;
        const Recipe *recipe = compose(program, node, weight->recipe);
        if (!recipe) continue;
        Value *folded = program_weight(program, weight->kind, weight->name, recipe);
        if (!folded) break;
        program_swap_names(program, weight, folded);
        map[node->outputs[0]->id] = folded;
    }
    program_replace(program, map, count);
    program_sweep(program);
    arena_free(&scratch);
    return program_health(program, error);
}

/* ---- constants ---- */

static void check_constant(void *context, Value **use) {
    bool *constant = context;
    bool given = (*use)->kind == VALUE_BUFFER || (*use)->kind == VALUE_CONSTANT;
    *constant = *constant && given;
}

/* True when everything the node reads and makes is known now, and small. */
static bool is_foldable(Node *node) {
    bool constant = true;
    node_each_tensor(node, check_constant, &constant);
    if (!constant) return false;
    for (uint32_t i = 0; i < op_schema(node->op)->arg_count; i++) {
        const Arg *arg = &node->args[i];
        if (arg->kind == VALUE_INT && !sym_is_const(arg->integer)) return false;
        for (uint32_t j = 0; arg->kind == VALUE_INTS && j < arg->integers.count; j++) {
            if (!sym_is_const(arg->integers.items[j])) return false;
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint64_t bytes = ferry_dtype_size(node->outputs[i]->dtype);
        for (uint32_t d = 0; d < node->outputs[i]->rank; d++) {
            const Sym *size = node->outputs[i]->shape[d];
            if (!sym_is_const(size) || size->value > MAX_FOLDED_BYTES) return false;
            bytes *= (uint64_t)size->value;
            if (bytes > MAX_FOLDED_BYTES) return false;
        }
    }
    return true;
}

static Value *constant_of(Program *program, const Value *value, const void *bytes) {
    int64_t shape[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < value->rank; d++) shape[d] = value->shape[d]->value;
    const Recipe *recipe = recipe_bytes(&program->arena, bytes, value->dtype, value->rank, shape);
    return program_weight(program, VALUE_CONSTANT, value->name, recipe);
}

static void follow(void *context, Value **use) {
    Value **map = context;
    if (map[(*use)->id]) *use = map[(*use)->id];
}

ferry_status pass_fold_constants(Program *program, PassEvaluate evaluate, ferry_error *error) {
    Arena scratch = {0};
    /* Folding makes at most one constant per value there is. */
    uint32_t count = program->value_count;
    Value **map = ARENA_ARRAY(&scratch, Value *, 2 * (size_t)count);
    ferry_status status = map ? FERRY_OK : error_memory(error, program->architecture, 0);
    for (Node *node = program->first, *next; node && status == FERRY_OK; node = next) {
        void *results[64];
        next = node->next;
        node_each_tensor(node, follow, map);
        if (!is_foldable(node)) continue;
        status = evaluate(program, node, &program->arena, results, error);
        for (uint32_t i = 0; i < node->output_count && status == FERRY_OK; i++) {
            map[node->outputs[i]->id] = constant_of(program, node->outputs[i], results[i]);
        }
        program_remove(program, node);
    }
    if (status == FERRY_OK) {
        program_replace(program, map, count);
        program_sweep(program);
        status = program_health(program, error);
    }
    arena_free(&scratch);
    return status;
}
