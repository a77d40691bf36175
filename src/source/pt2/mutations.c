/* What a program leaves in its inputs and weights. A traced graph writes in place; a functional one lists
 * what torch is to copy where when the graph has run. Both become writes of the reader's bindings. */
#include "source/pt2/reader.h"

#include <string.h>

static const Given *given_of(const Reader *r, const Binding *binding) {
    for (size_t i = 0; i < r->given.count; i++) {
        if (r->given.items[i].binding == binding) return &r->given.items[i];
    }
    return NULL;
}

/* An input by its name in the graph, a weight by its name in the model. */
static const Given *find_target(const Reader *r, const char *name, bool is_input) {
    for (size_t i = 0; i < r->given.count; i++) {
        const Given *given = &r->given.items[i];
        if ((given->value->kind == VALUE_INPUT) != is_input) continue;
        if (strcmp(is_input ? given->binding->name : given->value->name, name) == 0) return given;
    }
    return NULL;
}

/* After the copy, the target is what `source` names. */
static void write_target(Reader *r, const Given *given, const char *source) {
    Value *value = reader_read(r, source);
    Binding *binding = map_find(&r->bindings, source), *base = given->binding;
    reader_write(r, base->name, value);
    if (!build_ok(&r->b) || given_of(r, binding)) return;
    binding->base = base;
    binding->node = NULL;
    binding->storage = base->storage;
    binding->version = base->storage->version;
}

void mutation_read(Reader *r, const char *kind, const json_t *spec) {
    static const char *const kinds[][2] = {{"buffer_mutation", "buffer_name"},
                                           {"parameter_mutation", "parameter_name"},
                                           {"user_input_mutation", "user_input_name"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i][0], kind) != 0) continue;
        const json_t *arg = json_object_get(spec, "arg");
        const char *source = json_string_value(json_object_get(arg, "name"));
        const char *target = json_string_value(json_object_get(spec, kinds[i][1]));
        const Given *given = target ? find_target(r, target, i == 2) : NULL;
        if (source && given)
            write_target(r, given, source);
        else
            reader_fail(r, FERRY_BAD_FORMAT, "expected a %s of an input or weight, found \"%s\"",
                        kind, target ? target : "");
        return;
    }
    reader_fail(r, FERRY_UNSUPPORTED, "an output of kind \"%s\" is not supported", kind);
}

void mutation_record(Reader *r) {
    for (size_t i = 0; i < r->given.count && build_ok(&r->b); i++) {
        const Given *given = &r->given.items[i];
        Value *value = reader_read(r, given->binding->name);
        if (value == given->value) continue;
        if (value->dtype != given->value->dtype || value->rank != given->value->rank) {
            reader_fail(r, FERRY_BAD_FORMAT,
                        "expected what is left in \"%s\" to have its type, found \"%s\"",
                        given->value->name, value->name);
            return;
        }
        if (given->value->kind == VALUE_CONSTANT) given->value->kind = VALUE_BUFFER;
        VEC_PUSH(&r->b.program->mutations, (Mutation){given->value, value});
    }
}

const Value *mutation_target(const Reader *r, const char *name) {
    const Binding *binding = map_find(&r->bindings, name);
    while (binding && binding->base && !binding->node) binding = binding->base;
    const Given *given = given_of(r, binding);
    return given && program_mutates(r->b.program, given->value) ? given->value : NULL;
}
