/* The numbers of a graph: small constants, which are shared, and sizes, which are read off the inputs. */
#include "base/dtype.h"
#include "graph/infer.h"
#include "target/openvino/emit.h"

/* ---- constants ---- */

static IrPort pooled_constant(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                              const void *bytes, size_t size) {
    static const char zeros[8];
    buffer_append(&ir->pool, zeros, -ir->pool.length % 8);
    uint64_t offset = ir->pool_offset + ir->pool.length;
    buffer_append(&ir->pool, bytes, size);
    return ir_const(ir, dtype, rank, shape, offset, size);
}

static void remember(Ir *ir, Map *map, const void *key, size_t length, IrPort port) {
    void *copy = arena_copy(&ir->arena, key, length);
    IrPort *entry = arena_copy(&ir->arena, &port, sizeof port);
    if (copy && entry) map_set(map, copy, length, entry);
}

IrPort ir_constant(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                   const void *bytes, size_t size) {
    Buffer key = {0};
    IrPort port = {0};
    buffer_append(&key, &dtype, sizeof dtype);
    buffer_append(&key, &rank, sizeof rank);
    if (rank) buffer_append(&key, shape, rank * sizeof *shape);
    buffer_append(&key, bytes, size);
    const IrPort *known = key.failed ? &port : map_get(&ir->constants, key.bytes, key.length);
    if (known) {
        port = *known;
    } else {
        const char *label = ir->label;
        ir->label = "constant";
        port = ir->options->link ? ir_computed_constant(ir, dtype, rank, shape, bytes, size)
                                 : pooled_constant(ir, dtype, rank, shape, bytes, size);
        ir->label = label;
        remember(ir, &ir->constants, key.bytes, key.length, port);
    }
    if (key.failed) ir->layers.failed = true;
    buffer_free(&key);
    return port;
}

IrPort ir_ints(Ir *ir, const int64_t *values, size_t count) {
    const int64_t shape = (int64_t)count;
    return ir_constant(ir, FERRY_I64, 1, &shape, values, count * sizeof *values);
}

IrPort ir_int(Ir *ir, int64_t value) {
    return ir_constant(ir, FERRY_I64, 0, NULL, &value, sizeof value);
}

IrPort ir_axis(Ir *ir, int64_t value) {
    const int32_t axis = (int32_t)value;
    return ir_constant(ir, FERRY_I32, 0, NULL, &axis, sizeof axis);
}

IrPort ir_number(Ir *ir, double value, ferry_dtype dtype) {
    unsigned char bytes[8];
    dtype_convert(FERRY_F64, &value, dtype, bytes, 1);
    return ir_constant(ir, dtype, 0, NULL, bytes, ferry_dtype_size(dtype));
}

IrPort ir_scalar(Ir *ir, const Arg *arg, ferry_dtype dtype) {
    unsigned char bytes[8];
    if (arg->kind == VALUE_FLOAT) return ir_number(ir, arg->number, dtype);
    if (arg->kind == VALUE_BOOL) return ir_number(ir, arg->boolean, dtype);
    if (!sym_is_const(arg->integer)) {
        IrPort size = ir_size_scalar(ir, arg->integer);
        return dtype == FERRY_I64 ? size : ir_convert(ir, size, dtype);
    }
    dtype_convert(FERRY_I64, &arg->integer->value, dtype, bytes, 1);
    return ir_constant(ir, dtype, 0, NULL, bytes, ferry_dtype_size(dtype));
}

/* ---- sizes ---- */

static IrPort size_constant(Ir *ir, int64_t value) {
    return ir_ints(ir, &value, 1);
}

/* A symbol is read off the shape of an input that has it. A state is asked itself, so that the change
 * of its order has the single reader that fusions want. */
static IrPort symbol_size(Ir *ir, const Sym *sym) {
    const Dimension *dimension = &ir->dimensions[sym->value];
    if (!dimension->value) {
        ir_fail(ir, FERRY_UNSUPPORTED, "no input has the size \"%s\"", sym->name);
        return (IrPort){0};
    }
    IrPort port = ir_value(ir, dimension->value);
    if (ir->states[dimension->value->id].layer) port = ir->states[dimension->value->id];
    if (dimension->dim < 0) {
        if (dimension->value->dtype != FERRY_I64) port = ir_convert(ir, port, FERRY_I64);
        return ir_layer(ir, "Unsqueeze-1", FERRY_I64, FROM(port, size_constant(ir, 0)), PLAIN);
    }
    IrPort shape =
        ir_layer(ir, "ShapeOf-3", FERRY_I64, FROM(port), WITH(ATTR_S("output_type", "i64")));
    return ir_layer(ir, "Gather-8", FERRY_I64,
                    FROM(shape, size_constant(ir, dimension->dim), ir_axis(ir, 0)), PLAIN);
}

static IrPort size_operation(Ir *ir, const char *operation, IrPort a, IrPort b) {
    return ir_layer(ir, operation, FERRY_I64, FROM(a, b), PLAIN);
}

/* (a - a mod b) / b is exact, whatever the sign of a. */
static IrPort floor_division(Ir *ir, IrPort a, IrPort b) {
    IrPort rest = size_operation(ir, "FloorMod-1", a, b);
    return size_operation(ir, "Divide-1", size_operation(ir, "Subtract-1", a, rest), b);
}

static IrPort compound_size(Ir *ir, const Sym *sym) {
    static const char *const operations[] = {
        [SYM_SUM] = "Add-1",     [SYM_PRODUCT] = "Multiply-1", [SYM_MOD] = "FloorMod-1",
        [SYM_MIN] = "Minimum-1", [SYM_MAX] = "Maximum-1",
    };
    IrPort result = ir_size(ir, sym->operands[0]);
    if (sym->kind == SYM_FLOORDIV) return floor_division(ir, result, ir_size(ir, sym->operands[1]));
    const char *operation = operations[sym->kind];
    for (uint32_t i = 1; i < sym->count; i++) {
        result = size_operation(ir, operation, result, ir_size(ir, sym->operands[i]));
    }
    bool neutral = sym->kind == SYM_SUM ? sym->value == 0 : sym->value == 1;
    if ((sym->kind != SYM_SUM && sym->kind != SYM_PRODUCT) || neutral) return result;
    return size_operation(ir, operation, result, size_constant(ir, sym->value));
}

IrPort ir_size(Ir *ir, const Sym *sym) {
    if (sym_is_const(sym)) return size_constant(ir, sym->value);
    const IrPort *known = map_get(&ir->sizes, &sym, sizeof sym);
    if (known) return *known;
    IrPort port = sym->kind == SYM_SYMBOL ? symbol_size(ir, sym) : compound_size(ir, sym);
    remember(ir, &ir->sizes, &sym, sizeof sym, port);
    return port;
}

IrPort ir_size_scalar(Ir *ir, const Sym *sym) {
    if (sym_is_const(sym)) return ir_int(ir, sym->value);
    return ir_layer(ir, "Squeeze-1", FERRY_I64, FROM(ir_size(ir, sym), size_constant(ir, 0)),
                    PLAIN);
}

IrPort ir_shape(Ir *ir, const Sym *const *shape, uint32_t rank) {
    int64_t values[INFER_MAX_OUTPUTS];
    IrPort parts[INFER_MAX_OUTPUTS];
    bool constant = true;
    for (uint32_t d = 0; d < rank; d++) {
        values[d] = shape[d]->value;
        constant = constant && sym_is_const(shape[d]);
    }
    if (constant) return ir_ints(ir, values, rank);
    for (uint32_t d = 0; d < rank; d++) parts[d] = ir_size(ir, shape[d]);
    if (rank == 1) return parts[0];
    return ir_layer(ir, "Concat-1", FERRY_I64, parts, rank, WITH(ATTR_I("axis", 0)));
}
