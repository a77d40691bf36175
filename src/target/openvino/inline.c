/* Constants without bytes: where the .bin is the checkpoint itself, it has no room for the numbers of the
 * graph, so these are made of what an IR can say in its XML, a shape.
 *
 * An empty Const needs no bytes, and ShapeOf it is a vector of whole numbers that contains a 0; what
 * follows a leading 0 is any vector. Negative numbers are a difference of two vectors, fractions a
 * product m * 2^e of whole ones, which is exact. OpenVINO folds all of it when it compiles the model. */
#include "base/dtype.h"
#include "target/openvino/emit.h"

#include <math.h>

/* The shape of an empty Const. */
static IrPort shape_of(Ir *ir, const int64_t *sizes, uint32_t count) {
    IrPort empty = ir_const(ir, FERRY_F32, count, sizes, 0, 0);
    return ir_layer(ir, "ShapeOf-3", FERRY_I64, FROM(empty), WITH(ATTR_S("output_type", "i64")));
}

/* int64 [1], without an entry in the constants: these are made of it. */
static IrPort one(Ir *ir) {
    const int64_t zero = 0;
    return ir_layer(ir, "ShapeOf-3", FERRY_I64, FROM(shape_of(ir, &zero, 1)),
                    WITH(ATTR_S("output_type", "i64")));
}

/* Numbers that are not negative; `sizes` has room for one more before them. */
static IrPort counts(Ir *ir, int64_t *sizes, uint32_t count) {
    const int64_t zero = 0, first = 1;
    sizes[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[1 + i] == 0) return shape_of(ir, sizes + 1, count);
    }
    IrPort all = shape_of(ir, sizes, count + 1), step = one(ir);
    return ir_layer(ir, "StridedSlice-1", FERRY_I64, FROM(all, step, step, step),
                    WITH(ATTR_IS("begin_mask", &zero, 1), ATTR_IS("end_mask", &first, 1),
                         ATTR_IS("new_axis_mask", &zero, 1), ATTR_IS("shrink_axis_mask", &zero, 1),
                         ATTR_IS("ellipsis_mask", &zero, 1)));
}

static IrPort whole_numbers(Ir *ir, const int64_t *values, uint32_t count) {
    int64_t *sizes = ARENA_ARRAY(&ir->arena, int64_t, count + 1);
    bool negative = false;
    if (!sizes) return (IrPort){0};
    for (uint32_t i = 0; i < count; i++) {
        sizes[1 + i] = values[i] > 0 ? values[i] : 0;
        negative |= values[i] < 0;
    }
    IrPort port = counts(ir, sizes, count);
    if (!negative) return port;
    for (uint32_t i = 0; i < count; i++) sizes[1 + i] = values[i] < 0 ? -values[i] : 0;
    return ir_layer(ir, "Subtract-1", FERRY_I64, FROM(port, counts(ir, sizes, count)), PLAIN);
}

/* The value is m * 2^e, with an odd m where there is one. */
static void take_apart(double value, int64_t *m, int64_t *e) {
    int exponent = 0;
    if (isinf(value)) { /* more than the dtype holds: rounds to infinity */
        *m = value > 0 ? 1 : -1;
        *e = 2000;
        return;
    }
    *m = (int64_t)ldexp(frexp(value, &exponent), 53);
    *e = exponent - 53;
    for (; *m && *m % 2 == 0; *m /= 2) ++*e;
    if (*m == 0) *e = 0;
}

static IrPort fractions(Ir *ir, const double *values, uint32_t count, ferry_dtype dtype) {
    const int64_t two = 2;
    int64_t *m = ARENA_ARRAY(&ir->arena, int64_t, count);
    int64_t *e = ARENA_ARRAY(&ir->arena, int64_t, count);
    if (!m || !e) return (IrPort){0};
    for (uint32_t i = 0; i < count; i++) take_apart(values[i], &m[i], &e[i]);
    IrPort base = ir_convert(ir, whole_numbers(ir, &two, 1), dtype);
    IrPort exponent = ir_convert(ir, whole_numbers(ir, e, count), dtype);
    IrPort power = ir_layer(ir, "Power-1", dtype, FROM(base, exponent), PLAIN);
    IrPort mantissa = ir_convert(ir, whole_numbers(ir, m, count), dtype);
    return ir_layer(ir, "Multiply-1", dtype, FROM(mantissa, power), PLAIN);
}

/* A vector of the elements as `*made`, the nearest type to `dtype` that this can make. */
static IrPort elements(Ir *ir, ferry_dtype dtype, const void *bytes, uint32_t count,
                       ferry_dtype *made) {
    if (ferry_dtype_is_float(dtype)) {
        double *values = ARENA_ARRAY(&ir->arena, double, count);
        if (!values) return (IrPort){0};
        dtype_convert(dtype, bytes, FERRY_F64, values, count);
        *made = dtype == FERRY_F64 ? FERRY_F64 : FERRY_F32;
        return fractions(ir, values, count, *made);
    }
    int64_t *values = ARENA_ARRAY(&ir->arena, int64_t, count);
    if (!values) return (IrPort){0};
    dtype_convert(dtype, bytes, FERRY_I64, values, count);
    *made = FERRY_I64;
    return whole_numbers(ir, values, count);
}

static bool is_zero(const unsigned char *bytes) {
    return !(bytes[0] | bytes[1] | bytes[2] | bytes[3]);
}

/* Four bytes of the file that are 0. A fusion wants a real Const for the axis of a Gather; a safetensors
 * file begins with a length whose upper half is one. */
static bool find_zero(const MappedFile *file, uint64_t *place) {
    for (*place = 4; *place + 4 <= file->size && *place < 1 << 16; ++*place) {
        if (is_zero(file->bytes + *place)) return true;
    }
    return false;
}

IrPort ir_computed_constant(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            const void *bytes, size_t size) {
    uint32_t count = (uint32_t)(size / ferry_dtype_size(dtype));
    ferry_dtype made;
    if (size == 0) return ir_const(ir, dtype, rank, shape, 0, 0);
    uint64_t place;
    if (dtype == FERRY_I32 && rank == 0 && is_zero(bytes) && find_zero(ir->linked, &place)) {
        return ir_const(ir, dtype, 0, NULL, place, 4);
    }
    IrPort port = elements(ir, dtype, bytes, count, &made);
    if (made != dtype) port = ir_convert(ir, port, dtype);
    if (rank == 0) return ir_layer(ir, "Squeeze-1", dtype, FROM(port), PLAIN);
    if (rank == 1) return port;
    return ir_layer(ir, "Reshape-1", dtype, FROM(port, whole_numbers(ir, shape, rank)),
                    WITH(ATTR_B("special_zero", false)));
}
