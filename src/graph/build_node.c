/* The heart of building: one node at a time, checked and typed, behind a sticky error. */
#include "base/error.h"
#include "graph/build.h"
#include "graph/infer.h"

#include <math.h>

Builder build_start(Program *program, ferry_error *error) {
    return (Builder){.program = program,
                     .error = error,
                     .scope = "",
                     .poison = {.name = "poison", .dtype = FERRY_F32}};
}

ferry_status build_finish(Builder *b) {
    if (build_ok(b)) b->status = program_health(b->program, b->error);
    return b->status;
}

Value *build_fail(Builder *b, ferry_status status, const char *format, ...) {
    if (!build_ok(b)) return &b->poison;
    b->status = status;
    if (b->error) {
        const char *where = *b->scope ? b->scope : b->program->architecture;
        va_list args;
        va_start(args, format);
        error_set(b->error, status, where, "%s", arena_vformat(&b->program->arena, format, args));
        va_end(args);
    }
    return &b->poison;
}

const char *build_scope(Builder *b, const char *format, ...) {
    const char *old = b->scope;
    va_list args;
    va_start(args, format);
    b->scope = arena_vformat(&b->program->arena, format, args);
    va_end(args);
    return old;
}

static Arg default_arg(Builder *b, const OpArg *formal) {
    if (formal->default_none || !formal->has_default) return arg_none();
    switch (formal->type) {
    case ARG_INT: return arg_int(b, (int64_t)formal->default_number);
    case ARG_FLOAT: return arg_float(formal->default_number);
    case ARG_BOOL: return arg_bool(formal->default_number != 0);
    case ARG_STRING: return arg_string(formal->default_string);
    case ARG_SCALAR:
        if (formal->default_number == floor(formal->default_number)) {
            return arg_int(b, (int64_t)formal->default_number);
        }
        return arg_float(formal->default_number);
    default: return arg_none();
    }
}

static bool is_poisoned(const Builder *b, const Arg *arg) {
    if (arg->kind == VALUE_TENSOR) return arg->tensor == &b->poison;
    for (uint32_t i = 0; arg->kind == VALUE_TENSORS && i < arg->tensors.count; i++) {
        if (arg->tensors.items[i] == &b->poison) return true;
    }
    return false;
}

Node *build_node(Builder *b, Op op, const Arg *args, uint32_t count) {
    if (!build_ok(b)) return NULL;
    Arena *arena = &b->program->arena;
    const OpSchema *schema = op_schema(op);
    Node *node = ARENA_NEW(arena, Node);
    Arg *all = ARENA_ARRAY(arena, Arg, schema->arg_count);
    if (!node || !all) return build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory"), NULL;
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        all[i] = i < count ? args[i] : default_arg(b, &schema->args[i]);
        if (is_poisoned(b, &all[i])) {
            return build_fail(b, FERRY_INTERNAL, "%s reads a poison value", op_name(op)), NULL;
        }
    }
    InferredType types[INFER_MAX_OUTPUTS];
    uint32_t output_count;
    ferry_error problem;
    ferry_status status = infer_types(b->program, op, all, types, &output_count, &problem);
    if (status != FERRY_OK && b->program->symbols.overflow) {
        b->status = program_health(b->program, b->error);
        return NULL;
    }
    if (status != FERRY_OK) {
        return build_fail(b, status, "%s: %s", op_name(op), problem.message), NULL;
    }
    *node = (Node){.op = op,
                   .scope = b->scope,
                   .args = all,
                   .output_count = output_count,
                   .outputs = ARENA_ARRAY(arena, Value *, output_count)};
    if (!node->outputs) return build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory"), NULL;
    char name[64];
    op_short_name(op, name, sizeof name);
    for (uint32_t i = 0; i < output_count; i++) {
        Value *value = program_value(b->program, VALUE_NODE, name, types[i].dtype, types[i].rank,
                                     types[i].shape);
        if (!value) return build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory"), NULL;
        value->producer = node;
        value->index = i;
        node->outputs[i] = value;
    }
    program_insert(b->program, node, b->before);
    return node;
}

Value *build_op(Builder *b, Op op, const Arg *args, uint32_t count) {
    Node *node = build_node(b, op, args, count);
    return node ? node->outputs[0] : &b->poison;
}
