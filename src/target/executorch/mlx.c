/* Building the graph of an MLX delegate: tensors, integers, scalars and nodes. */
#include "target/executorch/mlx.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_FLOAT = 1 << 24 }; /* integers up to here are floats */

/* ---- nodes ---- */

void mlx_node(Mlx *m, uint8_t type, const MlxField *fields, size_t count) {
    const MlxField *copy = arena_copy(m->arena, fields, count * sizeof *fields);
    VEC_PUSH(&m->nodes, (MlxNode){type, (uint32_t)count, copy});
}

MlxTensor mlx_temp(Mlx *m) {
    return (MlxTensor){MLX_TEMP, m->temps++};
}

MlxTensor mlx_unary(Mlx *m, uint8_t type, MlxTensor x) {
    MlxTensor out = mlx_temp(m);
    NODE(m, type, TENSOR(x), TENSOR(out));
    return out;
}

MlxTensor mlx_binary(Mlx *m, uint8_t type, MlxTensor a, MlxTensor b) {
    MlxTensor out = mlx_temp(m);
    NODE(m, type, TENSOR(a), TENSOR(b), TENSOR(out));
    return out;
}

MlxTensor mlx_as_type(Mlx *m, MlxTensor x, ferry_dtype dtype) {
    MlxTensor out = mlx_temp(m);
    NODE(m, MLX_AS_TYPE, TENSOR(x), TENSOR(out), I8(pte_dtype(dtype)));
    return out;
}

MlxTensor mlx_reshape(Mlx *m, MlxTensor x, uint32_t rank, const Sym *const *shape) {
    MlxTensor out = mlx_temp(m);
    NODE(m, MLX_RESHAPE, TENSOR(x), TENSOR(out), mlx_shape(m, rank, shape));
    return out;
}

MlxTensor mlx_transpose(Mlx *m, MlxTensor x, const int32_t *dims, uint32_t rank) {
    MlxTensor out = mlx_temp(m);
    NODE(m, MLX_TRANSPOSE, TENSOR(x), TENSOR(out), mlx_numbers(m, dims, rank));
    return out;
}

/* ---- lists ---- */

MlxField mlx_tensors(Mlx *m, const MlxTensor *tensors, uint32_t count) {
    return (MlxField){.kind = FIELD_TENSORS,
                      .count = count,
                      .tensors = arena_copy(m->arena, tensors, count * sizeof *tensors)};
}

MlxField mlx_numbers(Mlx *m, const int32_t *numbers, uint32_t count) {
    return (MlxField){.kind = FIELD_I32S,
                      .count = count,
                      .numbers = arena_copy(m->arena, numbers, count * sizeof *numbers)};
}

MlxField mlx_shape(Mlx *m, uint32_t rank, const Sym *const *sizes) {
    MlxInt *items = ARENA_ARRAY(m->arena, MlxInt, rank);
    for (uint32_t d = 0; items && d < rank; d++) items[d] = mlx_size(m, sizes[d]);
    return (MlxField){.kind = FIELD_INTS, .count = items ? rank : 0, .integers = items};
}

/* ---- tensors from outside ---- */

MlxTensor mlx_weight(Mlx *m, const Recipe *recipe, const char *name) {
    const Sym *shape[FERRY_MAX_RANK];
    Value *value = arena_alloc(m->arena, sizeof *value);
    for (uint32_t d = 0; d < recipe->rank; d++) {
        shape[d] = sym_const(&m->p->program->symbols, recipe->shape[d]);
    }
    if (value) {
        *value = (Value){.dtype = recipe->dtype,
                         .rank = recipe->rank,
                         .shape = arena_copy(m->arena, shape, recipe->rank * sizeof *shape)};
    }
    VEC_PUSH(&m->constants, (MlxPort){.value = value, .key = pte_named(m->p, recipe, name)});
    return (MlxTensor){MLX_CONSTANT, (uint32_t)m->constants.count - 1};
}

static MlxTensor remember(Mlx *m, const Value *value, MlxTensor tensor) {
    m->tensors[value->id] = tensor;
    m->known[value->id] = true;
    return tensor;
}

MlxTensor mlx_input(Mlx *m, const Value *value) {
    if (m->known[value->id]) return m->tensors[value->id];
    const Recipe *fixed = value_fixed(value);
    if (fixed) return remember(m, value, mlx_weight(m, fixed, value->name));
    VEC_PUSH(&m->inputs, (MlxPort){.value = value, .arg = pte_value(m->p, value)});
    return remember(m, value, (MlxTensor){MLX_INPUT, (uint32_t)m->inputs.count - 1});
}

MlxTensor mlx_output(Mlx *m, const Value *value) {
    if (m->known[value->id]) return m->tensors[value->id];
    if (!m->partition->escapes[value->id]) return remember(m, value, mlx_temp(m));
    VEC_PUSH(&m->outputs, (MlxPort){.value = value, .arg = pte_output(m->p, value)});
    return remember(m, value, (MlxTensor){MLX_OUTPUT, (uint32_t)m->outputs.count - 1});
}

/* ---- integers ---- */

static MlxInt compute(Mlx *m, uint8_t type, MlxInt a, MlxInt b) {
    MlxInt out = {true, m->values++};
    NODE(m, type, INT(a), INT(b), RESULT_INT(out));
    return out;
}

static MlxInt symbol_size(Mlx *m, const Sym *symbol) {
    const Dimension *dimension = &m->p->dimensions[symbol->value];
    if (!dimension->value) {
        pte_fail(m->p, FERRY_UNSUPPORTED, "no input has the size \"%s\"", symbol->name);
        return (MlxInt){0};
    }
    MlxTensor from = mlx_input(m, dimension->value);
    if (dimension->dim < 0) from = mlx_as_type(m, from, FERRY_I32);
    MlxInt out = {true, m->values++};
    if (dimension->dim < 0)
        NODE(m, MLX_ITEM_INT, TENSOR(from), RESULT_INT(out));
    else
        NODE(m, MLX_SYM_SIZE, TENSOR(from), I32(dimension->dim), RESULT_INT(out));
    return out;
}

/* There is no node for the smaller of two integers, but the quotient of their difference and the largest
 * integer is -1 where it is negative and 0 elsewhere. */
static MlxInt choose(Mlx *m, SymKind kind, MlxInt a, MlxInt b) {
    MlxInt difference = compute(m, MLX_SUBTRACT_INT, a, b);
    MlxInt sign = compute(m, MLX_FLOOR_DIVIDE_INT, difference, (MlxInt){false, INT32_MAX});
    MlxInt part = compute(m, MLX_MULTIPLY_INT, difference, sign);
    return kind == SYM_MAX ? compute(m, MLX_ADD_INT, a, part)
                           : compute(m, MLX_SUBTRACT_INT, b, part);
}

static MlxInt join(Mlx *m, SymKind kind, MlxInt a, MlxInt b) {
    switch (kind) {
    case SYM_SUM: return compute(m, MLX_ADD_INT, a, b);
    case SYM_PRODUCT: return compute(m, MLX_MULTIPLY_INT, a, b);
    case SYM_FLOORDIV: return compute(m, MLX_FLOOR_DIVIDE_INT, a, b);
    case SYM_MOD: return compute(m, MLX_MOD_INT, a, b);
    default: return choose(m, kind, a, b);
    }
}

static MlxInt compound_size(Mlx *m, const Sym *size) {
    MlxInt result = mlx_size(m, size->operands[0]);
    for (uint32_t i = 1; i < size->count; i++) {
        result = join(m, size->kind, result, mlx_size(m, size->operands[i]));
    }
    bool neutral = size->kind == SYM_SUM ? size->value == 0 : size->value == 1;
    if ((size->kind != SYM_SUM && size->kind != SYM_PRODUCT) || neutral) return result;
    return join(m, size->kind, result, (MlxInt){false, size->value});
}

MlxInt mlx_size(Mlx *m, const Sym *size) {
    if (sym_is_const(size)) return (MlxInt){false, size->value};
    const MlxInt *known = map_get(&m->sizes, &size, sizeof size);
    if (known) return *known;
    MlxInt made = size->kind == SYM_SYMBOL ? symbol_size(m, size) : compound_size(m, size);
    const Sym **key = arena_copy(m->arena, &size, sizeof size);
    MlxInt *entry = arena_copy(m->arena, &made, sizeof made);
    if (key && entry) map_set(&m->sizes, key, sizeof size, entry);
    return made;
}

/* ---- scalars ---- */

typedef struct ScalarKey {
    const Sym *size;
    double number;
    uint64_t dtype;
} ScalarKey;

/* A float fills a tensor: a larger integer is the only element of a range, or a weight. */
static MlxTensor make_scalar(Mlx *m, const ScalarKey *key) {
    MlxField no_sizes = {.kind = FIELD_INTS};
    ferry_dtype dtype = (ferry_dtype)key->dtype;
    if (key->size && bounds_upper(&m->p->bounds, key->size) > EXACT_FLOAT) {
        const Sym *end =
            sym_add(&m->p->program->symbols, key->size, sym_const(&m->p->program->symbols, 1));
        MlxTensor range = mlx_temp(m);
        NODE(m, MLX_ARANGE, TENSOR(range), INT(mlx_size(m, key->size)), INT(mlx_size(m, end)),
             LITERAL(1), I8(pte_dtype(dtype)));
        return mlx_reshape(m, range, 0, NULL);
    }
    bool exact = ferry_dtype_is_float(dtype) || fabs(key->number) <= EXACT_FLOAT;
    if (!key->size && !exact) {
        int64_t *bytes = arena_alloc(m->arena, sizeof *bytes);
        if (bytes) *bytes = (int64_t)key->number;
        const Recipe *recipe = recipe_bytes(m->arena, bytes, FERRY_I64, 0, NULL);
        if (!recipe) return mlx_temp(m);
        return mlx_as_type(m, mlx_weight(m, recipe, "number"), dtype);
    }
    MlxField value = {.kind = FIELD_FILL, .number = key->number};
    if (key->size) value = (MlxField){.kind = FIELD_INT, .integer = mlx_size(m, key->size)};
    MlxTensor out = mlx_temp(m);
    NODE(m, MLX_FULL, TENSOR(out), no_sizes, value, I8(pte_dtype(dtype)));
    return out;
}

static MlxTensor scalar(Mlx *m, ScalarKey key) {
    const MlxTensor *known = map_get(&m->scalars, &key, sizeof key);
    if (known) return *known;
    MlxTensor made = make_scalar(m, &key);
    const ScalarKey *copy = arena_copy(m->arena, &key, sizeof key);
    MlxTensor *entry = arena_copy(m->arena, &made, sizeof made);
    if (copy && entry) map_set(&m->scalars, copy, sizeof key, entry);
    return made;
}

MlxTensor mlx_scalar(Mlx *m, double number, ferry_dtype dtype) {
    return scalar(m, (ScalarKey){NULL, number, dtype});
}

MlxTensor mlx_size_tensor(Mlx *m, const Sym *size, ferry_dtype dtype) {
    if (sym_is_const(size)) return mlx_scalar(m, (double)size->value, dtype);
    return scalar(m, (ScalarKey){size, 0, dtype});
}

MlxTensor mlx_scalar_arg(Mlx *m, const Arg *arg, ferry_dtype dtype) {
    if (arg->kind == VALUE_INT) return mlx_size_tensor(m, arg->integer, dtype);
    return mlx_scalar(m, arg->kind == VALUE_BOOL ? arg->boolean : arg->number, dtype);
}

/* ---- the delegate ---- */

static bool exhausted(const Mlx *m) {
    return m->arena->failed || m->nodes.failed || m->constants.failed || m->inputs.failed ||
           m->outputs.failed || m->scalars.failed || m->sizes.failed || m->masks.failed;
}

static void call(Mlx *m, Delegate delegate) {
    size_t count = m->inputs.count + m->outputs.count;
    PteValue *args = ARENA_ARRAY(m->arena, PteValue, count);
    if (!args || !delegate.bytes) {
        pte_fail(m->p, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < m->inputs.count; i++) args[i] = m->inputs.items[i].arg;
    for (size_t i = 0; i < m->outputs.count; i++) {
        args[m->inputs.count + i] = m->outputs.items[i].arg;
    }
    pte_delegate(m->p, delegate, args, count);
}

static void add_delegate(Pte *p, const Partition *partition, uint32_t level) {
    Mlx m = {.p = p, .partition = partition, .arena = &p->arena};
    m.tensors = ARENA_ARRAY(m.arena, MlxTensor, p->program->value_count);
    m.known = ARENA_ARRAY(m.arena, bool, p->program->value_count);
    for (const Node *node = p->program->first; node && m.tensors && m.known; node = node->next) {
        uint32_t id = node->outputs[0]->id;
        if (!partition->taken[id] || partition->levels[id] != level) continue;
        p->node = node;
        mlx_add_node(&m, node);
    }
    p->node = NULL;
    if (exhausted(&m)) pte_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    if (p->status == FERRY_OK) call(&m, mlx_write(&m));
    VEC_FREE(&m.nodes);
    VEC_FREE(&m.constants);
    VEC_FREE(&m.inputs);
    VEC_FREE(&m.outputs);
    map_free(&m.scalars);
    map_free(&m.sizes);
    map_free(&m.masks);
}

/* ---- the backend ---- */

/* The node of a structure that is a static cache, or holds one in its state; or NULL. */
static const Tree *find_static_cache(const Tree *tree) {
    if (!tree->type) return NULL;
    if (strstr(tree->type, "StaticCache")) return tree;
    if (tree->context && strstr(tree->context, "StaticCache")) return tree;
    for (uint32_t i = 0; i < tree->count; i++) {
        const Tree *found = find_static_cache(tree->children[i]);
        if (found) return found;
    }
    return NULL;
}

static ferry_status refuse_static_cache(Program *program, ferry_error *error) {
    const Tree *cache = program->input_tree ? find_static_cache(program->input_tree) : NULL;
    if (!cache) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, "backend",
                     "the ExecuTorch MLX backend does not support StaticCache, and an input is one "
                     "(%s): export the model with a DynamicCache",
                     cache->type);
}

/* A kernel computes it, but its parts stay with the rest. */
static bool decomposes(const Node *node) {
    return node->op == OP_BATCH_NORM && node->outputs[0]->dtype != FERRY_F64;
}

const Backend mlx_backend = {.name = "mlx",
                             .id = "MLXBackend",
                             .has = mlx_has,
                             .takes = mlx_takes,
                             .decomposes = decomposes,
                             .prepare = refuse_static_cache,
                             .computes_sizes = true,
                             .delegate = add_delegate};
