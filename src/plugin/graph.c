/* Reading and building programs, for plug-ins. */
#include "plugin/plugin.h"

#include <string.h>

/* ---- reading ---- */

const char *ferry_node_operation(const ferry_node *node) {
    return op_name(node->op);
}

const char *ferry_node_scope(const ferry_node *node) {
    return node->scope;
}

static ferry_arg public_arg(const Arg *arg) {
    switch (arg->kind) {
    case VALUE_NONE: break;
    case VALUE_TENSOR: return ferry_arg_tensor(arg->tensor);
    case VALUE_TENSORS:
        return (ferry_arg){.kind = FERRY_ARG_TENSORS,
                           .as.tensors = arg->tensors.items,
                           .count = arg->tensors.count};
    case VALUE_INT: return ferry_arg_size(arg->integer);
    case VALUE_INTS: return ferry_arg_sizes(arg->integers.items, arg->integers.count);
    case VALUE_FLOAT: return ferry_arg_float(arg->number);
    case VALUE_BOOL: return ferry_arg_bool(arg->boolean);
    case VALUE_STRING: return (ferry_arg){.kind = FERRY_ARG_STRING, .as.string = arg->string};
    case VALUE_DTYPE: return ferry_arg_dtype(arg->dtype);
    }
    return ferry_arg_none();
}

ferry_arg ferry_node_arg(const ferry_node *node, const char *name) {
    const OpSchema *schema = op_schema(node->op);
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        if (strcmp(schema->args[i].name, name) == 0) return public_arg(&node->args[i]);
    }
    return ferry_arg_none();
}

ferry_value *ferry_node_result(const ferry_node *node, size_t index) {
    return node->outputs[index < node->output_count ? index : 0];
}

const char *ferry_value_name(const ferry_value *value) {
    return value->name;
}

ferry_dtype ferry_value_dtype(const ferry_value *value) {
    return value->dtype;
}

size_t ferry_value_rank(const ferry_value *value) {
    return value->rank;
}

const ferry_size *ferry_value_size(const ferry_value *value, size_t dim) {
    return value->shape[dim];
}

bool ferry_size_is_number(const ferry_size *size, int64_t *number) {
    if (!sym_is_const(size)) return false;
    if (number) *number = size->value;
    return true;
}

/* ---- building ---- */

static Arg private_arg(Builder *b, const ferry_arg *arg) {
    switch (arg->kind) {
    case FERRY_ARG_NONE: break;
    case FERRY_ARG_TENSOR: return arg_tensor(arg->as.tensor);
    case FERRY_ARG_TENSORS: return arg_tensors(b, arg->as.tensors, (uint32_t)arg->count);
    case FERRY_ARG_SIZE: return arg_sym(arg->as.size);
    case FERRY_ARG_SIZES: return arg_syms(b, arg->as.sizes, (uint32_t)arg->count);
    case FERRY_ARG_FLOAT: return arg_float(arg->as.number);
    case FERRY_ARG_BOOL: return arg_bool(arg->as.boolean);
    case FERRY_ARG_STRING: return arg_string(arena_string(&b->program->arena, arg->as.string));
    case FERRY_ARG_DTYPE: return arg_dtype(arg->as.dtype);
    }
    return arg_none();
}

/* OP_COUNT, and a failure, for a name that is none. */
static Op find_operation(Builder *b, const char *operation) {
    Op op;
    if (op_lookup(operation, &op)) return op;
    build_fail(b, FERRY_INVALID_ARGUMENT, "\"%s\" is not an operation; see `ferry ops`", operation);
    return OP_COUNT;
}

ferry_value *ferry_build(ferry_builder *builder, const char *operation, const ferry_arg *args,
                         size_t count) {
    Op op = find_operation(builder, operation);
    Arg list[OP_MAX_ARGS];
    if (op == OP_COUNT) return &builder->poison;
    if (count > op_schema(op)->arg_count) {
        return build_fail(builder, FERRY_INVALID_ARGUMENT, "%s takes %u arguments, found %zu",
                          operation, op_schema(op)->arg_count, count);
    }
    for (size_t i = 0; i < count; i++) list[i] = private_arg(builder, &args[i]);
    return build_op(builder, op, list, (uint32_t)count);
}

ferry_value *ferry_build_result(ferry_builder *builder, ferry_value *first, size_t index) {
    if (!build_ok(builder)) return &builder->poison;
    if (!first->producer || index >= first->producer->output_count) {
        return build_fail(builder, FERRY_INVALID_ARGUMENT, "%s has no result %zu", first->name,
                          index);
    }
    return first->producer->outputs[index];
}

ferry_value *ferry_build_constant(ferry_builder *builder, const char *name, ferry_dtype dtype,
                                  size_t rank, const int64_t *shape, const void *bytes) {
    if (rank > FERRY_MAX_RANK) {
        return build_fail(builder, FERRY_INVALID_ARGUMENT, "%s: rank %zu (at most %d)", name, rank,
                          FERRY_MAX_RANK);
    }
    return build_constant(builder, VALUE_CONSTANT, arena_string(&builder->program->arena, name),
                          dtype, (uint32_t)rank, shape, bytes);
}

ferry_value *ferry_build_unary(ferry_builder *builder, const char *operation, ferry_value *x) {
    return ferry_build(builder, operation, (const ferry_arg[]){ferry_arg_tensor(x)}, 1);
}

ferry_value *ferry_build_binary(ferry_builder *builder, const char *operation, ferry_value *x,
                                ferry_value *y) {
    const ferry_arg args[] = {ferry_arg_tensor(x), ferry_arg_tensor(y)};
    return ferry_build(builder, operation, args, 2);
}

ferry_value *ferry_build_scalar(ferry_builder *builder, const char *operation, ferry_value *x,
                                double scalar) {
    Op op = find_operation(builder, operation);
    return op == OP_COUNT ? &builder->poison : build_scalar(builder, op, x, scalar);
}

const ferry_size *ferry_build_number(ferry_builder *builder, int64_t number) {
    return build_const(builder, number);
}

const ferry_size *ferry_build_size(ferry_builder *builder, const ferry_size *x, char operation,
                                   const ferry_size *y) {
    SymTable *table = &builder->program->symbols;
    switch (operation) {
    case '+': return sym_add(table, x, y);
    case '-': return sym_sub(table, x, y);
    case '*': return sym_mul(table, x, y);
    case '/': return sym_floordiv(table, x, y);
    case '%': return sym_mod(table, x, y);
    default:
        build_fail(builder, FERRY_INVALID_ARGUMENT, "'%c' is no operation on sizes", operation);
        return x;
    }
}

ferry_value *ferry_build_fail(ferry_builder *builder, ferry_status status, const char *message) {
    return build_fail(builder, status, "%s", message);
}

/* ---- programs ---- */

ferry_node *ferry_program_next(const ferry_program *program, const ferry_node *node) {
    return node ? node->next : program->first;
}

size_t ferry_program_output_count(const ferry_program *program) {
    return program->outputs.count;
}

const char *ferry_program_output_name(const ferry_program *program, size_t index) {
    return program->outputs.items[index].name;
}

ferry_value *ferry_program_output(const ferry_program *program, size_t index) {
    return program->outputs.items[index].value;
}

void ferry_program_set_output(ferry_program *program, size_t index, ferry_value *value) {
    program->outputs.items[index].value = value;
}

ferry_status ferry_program_build(ferry_program *program, ferry_node *node,
                                 ferry_build_callback build, void *context, ferry_error *error) {
    Builder b = build_start(program, error);
    b.before = node;
    b.scope = node ? node->scope : "";
    build(&b, context);
    return build_finish(&b);
}

void ferry_program_replace(ferry_program *program, const ferry_value *from, ferry_value *to) {
    Value **map = ARENA_ARRAY(&program->arena, Value *, program->value_count);
    if (!map) return;
    map[from->id] = to;
    program_replace(program, map, program->value_count);
}
