#include "graph/program.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

Program *program_new(void) {
    Program *program = calloc(1, sizeof *program);
    if (!program) return NULL;
    sym_table_init(&program->symbols, &program->arena);
    program->architecture = program->model_type = "";
    return program;
}

void program_free(Program *program) {
    if (!program) return;
    sym_table_free(&program->symbols);
    VEC_FREE(&program->weights);
    VEC_FREE(&program->inputs);
    VEC_FREE(&program->outputs);
    VEC_FREE(&program->states);
    VEC_FREE(&program->sources);
    VEC_FREE(&program->input_constants);
    VEC_FREE(&program->output_constants);
    map_free(&program->names);
    map_free(&program->counters);
    arena_free(&program->arena);
    free(program);
}

/* `stem` itself when free, else the first free of stem_1, stem_2, ... */
static const char *unique_name(Program *program, const char *stem) {
    if (!map_find(&program->names, stem)) return arena_string(&program->arena, stem);
    uint32_t *counter = map_find(&program->counters, stem);
    if (!counter) {
        counter = ARENA_NEW(&program->arena, uint32_t);
        if (!counter) return "";
        map_put(&program->counters, arena_string(&program->arena, stem), counter);
    }
    for (;;) {
        const char *name = arena_format(&program->arena, "%s_%u", stem, ++*counter);
        if (program->arena.failed || !map_find(&program->names, name)) return name;
    }
}

Value *program_value(Program *program, ValueKind kind, const char *name, ferry_dtype dtype,
                     uint32_t rank, const Sym *const *shape) {
    Value *value = ARENA_NEW(&program->arena, Value);
    const Sym *const *copy = arena_copy(&program->arena, shape, rank * sizeof *shape);
    if (!value || !copy) return NULL;
    *value = (Value){.name = unique_name(program, name),
                     .kind = kind,
                     .dtype = dtype,
                     .rank = rank,
                     .shape = copy,
                     .id = program->value_count++};
    map_put(&program->names, value->name, value);
    return value;
}

Value *program_weight(Program *program, ValueKind kind, const char *name, const Recipe *recipe) {
    const Sym *shape[FERRY_MAX_RANK];
    if (!recipe) return NULL;
    for (uint32_t d = 0; d < recipe->rank; d++) {
        shape[d] = sym_const(&program->symbols, recipe->shape[d]);
    }
    Value *value = program_value(program, kind, name, recipe->dtype, recipe->rank, shape);
    if (!value) return NULL;
    value->recipe = recipe;
    VEC_PUSH(&program->weights, value);
    return value;
}

ferry_dtype program_float_dtype(const Program *program) {
    for (size_t i = 0; i < program->weights.count; i++) {
        ferry_dtype dtype = program->weights.items[i]->dtype;
        if (ferry_dtype_is_float(dtype)) return dtype;
    }
    return FERRY_F32;
}

ValueKind value_role(const Value *value) {
    return value->kind == VALUE_STATE ? value->role : value->kind;
}

void value_make_state(Value *weight) {
    weight->role = value_role(weight) == VALUE_CONSTANT ? VALUE_BUFFER : value_role(weight);
    weight->kind = VALUE_STATE;
}

void program_drop_persistence(Program *program) {
    for (size_t i = 0; i < program->weights.count; i++) {
        Value *weight = program->weights.items[i];
        if (weight->kind == VALUE_PERSISTENT_BUFFER) weight->kind = VALUE_BUFFER;
    }
}

void program_swap_names(Program *program, Value *a, Value *b) {
    const char *name = a->name;
    a->name = b->name;
    b->name = name;
    map_put(&program->names, a->name, a);
    map_put(&program->names, b->name, b);
}

void program_insert(Program *program, Node *node, Node *before) {
    node->next = before;
    node->previous = before ? before->previous : program->last;
    *(node->previous ? &node->previous->next : &program->first) = node;
    *(before ? &before->previous : &program->last) = node;
}

void program_remove(Program *program, Node *node) {
    *(node->previous ? &node->previous->next : &program->first) = node->next;
    *(node->next ? &node->next->previous : &program->last) = node->previous;
}

void node_each_tensor(Node *node, void (*visit)(void *context, Value **use), void *context) {
    uint32_t count = op_schema(node->op)->arg_count;
    for (uint32_t i = 0; i < count; i++) {
        Arg *arg = &node->args[i];
        if (arg->kind == VALUE_TENSOR) visit(context, &arg->tensor);
        if (arg->kind != VALUE_TENSORS) continue;
        for (uint32_t j = 0; j < arg->tensors.count; j++) {
            if (arg->tensors.items[j]) visit(context, &arg->tensors.items[j]);
        }
    }
}

typedef struct Replacement {
    Value **map;
    uint32_t count;
} Replacement;

static void replace_use(void *context, Value **use) {
    const Replacement *replacement = context;
    while ((*use)->id < replacement->count && replacement->map[(*use)->id]) {
        *use = replacement->map[(*use)->id];
    }
}

void program_replace(Program *program, Value **map, uint32_t count) {
    Replacement replacement = {map, count};
    for (Node *node = program->first; node; node = node->next) {
        node_each_tensor(node, replace_use, &replacement);
    }
    for (size_t i = 0; i < program->outputs.count; i++) {
        replace_use(&replacement, &program->outputs.items[i].value);
    }
    for (size_t i = 0; i < program->states.count; i++) {
        replace_use(&replacement, &program->states.items[i].after);
    }
    for (size_t i = 0; i < program->sources.count; i++) {
        replace_use(&replacement, &program->sources.items[i].value);
    }
}

static void count_use(void *context, Value **use) {
    ((uint32_t *)context)[(*use)->id]++;
}

size_t program_leaf_outputs(const Program *program) {
    size_t count = program->outputs.count;
    if (!program->output_tree) return count;
    size_t leaves = tree_leaves(program->output_tree) - program->output_constants.count;
    return leaves < count ? leaves : count;
}

uint32_t *program_uses(Program *program, Arena *arena) {
    uint32_t *uses = ARENA_ARRAY(arena, uint32_t, program->value_count);
    if (!uses) return NULL;
    for (Node *node = program->first; node; node = node->next) {
        node_each_tensor(node, count_use, uses);
    }
    for (size_t i = 0; i < program->outputs.count; i++) uses[program->outputs.items[i].value->id]++;
    for (size_t i = 0; i < program->states.count; i++) uses[program->states.items[i].after->id]++;
    for (size_t i = 0; i < program->sources.count; i++) uses[program->sources.items[i].value->id]++;
    return uses;
}

static void drop_use(void *context, Value **use) {
    ((uint32_t *)context)[(*use)->id]--;
}

void program_sweep(Program *program) {
    Arena scratch = {0};
    uint32_t *uses = program_uses(program, &scratch);
    if (!uses) {
        program->arena.failed = true;
        arena_free(&scratch);
        return;
    }
    for (Node *node = program->last, *previous; node; node = previous) {
        previous = node->previous;
        bool used = false;
        for (uint32_t i = 0; i < node->output_count; i++) used |= uses[node->outputs[i]->id] > 0;
        if (used) continue;
        node_each_tensor(node, drop_use, uses);
        program_remove(program, node);
    }
    size_t kept = 0;
    for (size_t i = 0; i < program->weights.count; i++) {
        Value *weight = program->weights.items[i];
        bool stays = weight->kind == VALUE_STATE || weight->kind == VALUE_PERSISTENT_BUFFER;
        if (uses[weight->id] || stays) program->weights.items[kept++] = weight;
    }
    program->weights.count = kept;
    arena_free(&scratch);
}

ferry_status program_health(Program *program, ferry_error *error) {
    if (program->arena.failed || program->names.failed || program->counters.failed ||
        program->weights.failed || program->inputs.failed || program->outputs.failed ||
        program->states.failed || program->sources.failed || program->input_constants.failed ||
        program->output_constants.failed) {
        return error_memory(error, program->architecture, 0);
    }
    if (program->symbols.overflow) {
        return error_set(error, FERRY_UNSUPPORTED, program->architecture,
                         "a size of the program does not fit 64 bits, divides by 0, or is too "
                         "complex");
    }
    return FERRY_OK;
}

bool shape_equal(uint32_t rank, const Sym *const *a, const Sym *const *b) {
    for (uint32_t d = 0; d < rank; d++) {
        if (a[d] != b[d]) return false;
    }
    return true;
}

const Sym *shape_count(SymTable *table, uint32_t rank, const Sym *const *shape) {
    const Sym *count = sym_const(table, 1);
    for (uint32_t d = 0; d < rank; d++) count = sym_mul(table, count, shape[d]);
    return count;
}
