/* Numbers that are known while reading: sizes and what is computed of them.
 *
 * ONNX computes the targets of Reshape, Expand, Slice and the like by tensors of int64 in the graph.
 * Here they are expressions: they start at Shape and at small constants and go through the operators
 * that have a rule for them. A tensor is made of them only where one is asked for. */
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <math.h>
#include <string.h>

Known *known_make(Import *im, ferry_dtype dtype, bool is_scalar, uint32_t count) {
    Known *known = ARENA_NEW(&im->arena, Known);
    const Sym **items = ARENA_ARRAY(&im->arena, const Sym *, count);
    if (!known || !items) return import_memory(im), NULL;
    *known = (Known){.dtype = dtype, .is_scalar = is_scalar, .count = count, .items = items};
    return known;
}

const Known *known_one(Import *im, ferry_dtype dtype, const Sym *item) {
    Known *known = known_make(im, dtype, true, 1);
    if (known) known->items[0] = item;
    return known;
}

const Known *known_like(Import *im, const Known *known, bool is_scalar) {
    Known *copy = known_make(im, known->dtype, is_scalar, known->count);
    if (copy && known->count) memcpy(copy->items, known->items, known->count * sizeof *copy->items);
    return copy;
}

const Known *known_repeat(Import *im, const Known *known, uint32_t count) {
    Known *repeated = known_make(im, known->dtype, false, count);
    for (uint32_t i = 0; repeated && i < count; i++) repeated->items[i] = known->items[0];
    return repeated;
}

static const Sym *number(Import *im, int64_t value) {
    return value == INT64_MIN ? NULL : build_const(&im->b, value);
}

/* Whole numbers up to this are exact in a floating-point dtype. */
static int64_t exact_limit(ferry_dtype dtype) {
    return dtype == FERRY_F64 ? (int64_t)1 << 53 : (int64_t)1 << 24;
}

const Known *known_of_recipe(Import *im, const Recipe *recipe) {
    uint64_t count = recipe_count(recipe);
    bool is_integer = recipe->dtype == FERRY_I64 || recipe->dtype == FERRY_I32;
    bool is_float = recipe->dtype == FERRY_F32 || recipe->dtype == FERRY_F64;
    if (recipe->rank > 1 || count > KNOWN_MAX_COUNT) return NULL;
    if (!is_integer && !(is_float && recipe->rank == 0)) return NULL;
    unsigned char bytes[KNOWN_MAX_COUNT * sizeof(int64_t)];
    int64_t values[KNOWN_MAX_COUNT];
    recipe_read(recipe, 0, count, bytes);
    if (is_float) {
        double value;
        dtype_convert(recipe->dtype, bytes, FERRY_F64, &value, 1);
        bool exact = value == floor(value) && fabs(value) <= (double)exact_limit(recipe->dtype);
        if (!exact) return NULL;
    }
    dtype_convert(recipe->dtype, bytes, FERRY_I64, values, count);
    Known *known = known_make(im, recipe->dtype, recipe->rank == 0, (uint32_t)count);
    for (uint32_t i = 0; known && i < count; i++) known->items[i] = number(im, values[i]);
    return known;
}

const Known *known_of_shape(Import *im, const Value *value, uint32_t start, uint32_t end) {
    Known *known = known_make(im, FERRY_I64, false, end - start);
    for (uint32_t d = start; known && d < end; d++) known->items[d - start] = value->shape[d];
    return known;
}

const Known *known_slice(Import *im, const Known *known, uint32_t start, uint32_t count) {
    Known *part = known_make(im, known->dtype, false, count);
    if (part && count) memcpy(part->items, known->items + start, count * sizeof *part->items);
    return part;
}

const Known *known_join(Import *im, const Known *a, const Known *b) {
    if (a->count + b->count > KNOWN_MAX_COUNT) return NULL;
    Known *all = known_make(im, a->dtype, false, a->count + b->count);
    if (all && a->count) memcpy(all->items, a->items, a->count * sizeof *all->items);
    if (all && b->count) memcpy(all->items + a->count, b->items, b->count * sizeof *all->items);
    return all;
}

bool known_constants(const Known *known, int64_t *out) {
    for (uint32_t i = 0; i < known->count; i++) {
        const Sym *item = known->items[i];
        if (item && !sym_is_const(item)) return false;
        out[i] = item ? item->value : INT64_MIN;
    }
    return true;
}

/* ---- arithmetic ---- */

/* A divisor that is a size is taken to be positive: nothing is defined for 0. */
static bool is_divisor(const Sym *sym) {
    return sym->lower >= 0 && !sym_is_value(sym, 0);
}

/* ONNX truncates; where both are positive that is the floor. */
static const Sym *divide(SymTable *symbols, const Sym *a, const Sym *b) {
    if (!is_divisor(b)) return NULL;
    if (sym_is_const(a) && sym_is_const(b)) return sym_const(symbols, a->value / b->value);
    return a->lower < 0 ? NULL : sym_floordiv(symbols, a, b);
}

const Sym *known_modulo(SymTable *symbols, const Sym *a, const Sym *b) {
    return is_divisor(b) ? sym_mod(symbols, a, b) : NULL;
}

/* 1, 0, or not known. */
static const Sym *equal(SymTable *symbols, const Sym *a, const Sym *b) {
    if (a == b) return sym_const(symbols, 1);
    const Sym *difference = sym_sub(symbols, a, b);
    bool different = difference->lower > 0 || difference->upper < 0;
    return different ? sym_const(symbols, 0) : NULL;
}

KnownFunction known_function(Op op) {
    switch (op) {
    case OP_ADD: return sym_add;
    case OP_SUB: return sym_sub;
    case OP_MUL: return sym_mul;
    case OP_DIV: return divide;
    case OP_MAXIMUM: return sym_max;
    case OP_MINIMUM: return sym_min;
    case OP_EQ: return equal;
    default: return NULL;
    }
}

/* A number of that dtype; NULL when it is known not to fit. */
static const Sym *fit(const Sym *sym, ferry_dtype dtype) {
    if (!sym || !sym_is_const(sym)) return sym;
    int64_t limit = dtype == FERRY_I32 ? INT32_MAX : INT64_MAX;
    if (ferry_dtype_is_float(dtype)) limit = exact_limit(dtype);
    return sym->value > limit || sym->value < -limit ? NULL : sym;
}

const Known *known_binary(Import *im, KnownFunction function, const Known *a, const Known *b) {
    SymTable *symbols = &im->b.program->symbols;
    if (!function || !known_is_integer(a) || !known_is_integer(b) || a->dtype != b->dtype) {
        return NULL;
    }
    if (a->count != b->count && a->count != 1 && b->count != 1) return NULL;
    uint32_t count = a->count == 1 ? b->count : a->count;
    ferry_dtype dtype = function == equal ? FERRY_BOOL : a->dtype;
    Known *result = known_make(im, dtype, a->is_scalar && b->is_scalar, count);
    for (uint32_t i = 0; result && i < count; i++) {
        const Sym *x = a->items[a->count == 1 ? 0 : i], *y = b->items[b->count == 1 ? 0 : i];
        if (!x || !y || symbols->overflow) return NULL;
        result->items[i] = fit(function(symbols, x, y), dtype);
        bool overflow = symbols->overflow;
        symbols->overflow = false;
        if (overflow || !result->items[i]) return NULL;
    }
    return result;
}

const Known *known_cast(Import *im, const Known *known, ferry_dtype dtype) {
    bool to_number =
        dtype == FERRY_I64 || dtype == FERRY_I32 || dtype == FERRY_F32 || dtype == FERRY_F64;
    if (!to_number) return NULL;
    Known *result = known_make(im, dtype, known->is_scalar, known->count);
    for (uint32_t i = 0; result && i < known->count; i++) {
        result->items[i] = fit(known->items[i], dtype);
        if (!result->items[i]) return NULL;
    }
    return result;
}

/* ---- as a tensor ---- */

static Value *constant_tensor(Import *im, const Known *known, const int64_t *values) {
    unsigned char bytes[KNOWN_MAX_COUNT * sizeof(int64_t)];
    const int64_t shape = known->count;
    dtype_convert(FERRY_I64, values, known->dtype, bytes, known->count);
    return build_constant(&im->b, VALUE_CONSTANT, "constant", known->dtype, !known->is_scalar,
                          &shape, bytes);
}

static Value *make_tensor(Import *im, const Known *known) {
    Value *parts[KNOWN_MAX_COUNT];
    int64_t values[KNOWN_MAX_COUNT];
    if (known_constants(known, values)) return constant_tensor(im, known, values);
    for (uint32_t i = 0; i < known->count; i++) {
        const Sym *item = known->items[i];
        if (!item) return import_unsupported(im, "a size is INT64_MIN"), &im->b.poison;
        parts[i] = build_scalar_tensor(&im->b, item, known->dtype);
        if (!known->is_scalar) parts[i] = build_unsqueeze(&im->b, parts[i], 0);
    }
    return known->count == 1 ? parts[0] : build_cat(&im->b, parts, known->count, 0);
}

Value *known_tensor(Import *im, OnnxValue *value) {
    if (!import_ok(im)) return &im->b.poison;
    if (value->value) return value->value;
    if (!value->recipe) {
        value->value = make_tensor(im, value->known);
        return value->value;
    }
    value->value = program_weight(im->b.program, VALUE_PARAMETER, value->name, value->recipe);
    if (!value->value) return import_memory(im), &im->b.poison;
    return value->value;
}
