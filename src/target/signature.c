#include "target/signature.h"

#include <string.h>

static bool is_port(const Port *ports, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ports[i].name, name) == 0) return true;
    }
    return false;
}

const char *signature_input(Program *program, size_t index) {
    const char *name = program->inputs.items[index].name;
    bool twin = is_port(program->outputs.items, program->outputs.count, name);
    return twin ? arena_format(&program->arena, "input.%s", name) : name;
}

const char *signature_output(Program *program, size_t index) {
    const char *name = program->outputs.items[index].name;
    bool twin = is_port(program->inputs.items, program->inputs.count, name);
    return twin ? arena_format(&program->arena, "output.%s", name) : name;
}

static void add_sizes(Dimension *dimensions, const Value *value) {
    for (uint32_t d = 0; d < value->rank; d++) {
        const Sym *size = value->shape[d];
        if (size->kind != SYM_SYMBOL || dimensions[size->value].value) continue;
        dimensions[size->value] = (Dimension){value, (int)d};
    }
}

Dimension *signature_dimensions(const Program *program, Arena *arena) {
    Dimension *dimensions = ARENA_ARRAY(arena, Dimension, program->symbols.symbols.count);
    if (!dimensions) return NULL;
    for (size_t i = 0; i < program->inputs.count; i++) {
        add_sizes(dimensions, program->inputs.items[i].value);
    }
    for (size_t i = 0; i < program->states.count; i++) {
        add_sizes(dimensions, program->states.items[i].before);
    }
    for (size_t i = 0; i < program->sources.count; i++) {
        const SymSource *source = &program->sources.items[i];
        dimensions[source->symbol->value] = (Dimension){source->value, source->dim};
    }
    return dimensions;
}
