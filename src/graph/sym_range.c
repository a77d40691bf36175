/* Ranges and values of symbolic integers. A lower bound of INT64_MIN is minus infinity, an upper bound
 * of INT64_MAX plus infinity; bounds that leave int64 are rounded outwards to these. */
#include "graph/sym_range.h"

int64_t sym_floor_divide(int64_t dividend, int64_t divisor) {
    int64_t quotient = dividend / divisor;
    return dividend % divisor != 0 && (dividend < 0) != (divisor < 0) ? quotient - 1 : quotient;
}

int64_t sym_floor_modulo(int64_t dividend, int64_t divisor) {
    int64_t remainder = dividend % divisor;
    return remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder;
}

/* ---- ranges ---- */

/* The sum of two bounds of the same side; `infinity` is what that side calls unbounded. */
static int64_t bound_add(int64_t a, int64_t b, int64_t infinity) {
    int64_t sum;
    if (a == infinity || b == infinity) return infinity;
    if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

/* Bounds as numbers that products cannot overflow: a product of 2^63 and anything but 0 is out of
 * int64's range, as a product of infinity should be. */
static __int128 wide(int64_t bound) {
    return bound == INT64_MAX ? (__int128)1 << 63 : bound;
}

static int64_t narrow(__int128 bound) {
    if (bound > INT64_MAX) return INT64_MAX;
    return bound < INT64_MIN ? INT64_MIN : (int64_t)bound;
}

static void range_mul(Sym *sym, const Sym *factor) {
    const __int128 a[2] = {wide(sym->lower), wide(sym->upper)};
    const __int128 b[2] = {wide(factor->lower), wide(factor->upper)};
    __int128 lower = a[0] * b[0], upper = lower;
    for (int i = 1; i < 4; i++) {
        __int128 corner = a[i & 1] * b[i >> 1];
        if (corner < lower) lower = corner;
        if (corner > upper) upper = corner;
    }
    sym->lower = narrow(lower);
    sym->upper = narrow(upper);
}

static void derive_division(Sym *sym) {
    const Sym *dividend = sym->operands[0], *divisor = sym->operands[1];
    sym->lower = dividend->lower >= 0 && divisor->lower > 0 ? 0 : INT64_MIN;
    sym->upper = INT64_MAX;
    if (divisor->kind != SYM_CONST || divisor->value <= 0) return;
    if (dividend->lower != INT64_MIN) {
        sym->lower = sym_floor_divide(dividend->lower, divisor->value);
    }
    if (dividend->upper != INT64_MAX) {
        sym->upper = sym_floor_divide(dividend->upper, divisor->value);
    }
}

static void derive_modulo(Sym *sym) {
    const Sym *divisor = sym->operands[1];
    sym->lower = divisor->lower < 0 && divisor->lower != INT64_MIN ? divisor->lower + 1
                 : divisor->lower < 0                              ? INT64_MIN
                                                                   : 0;
    sym->upper = divisor->upper > 0 && divisor->upper != INT64_MAX ? divisor->upper - 1
                 : divisor->upper > 0                              ? INT64_MAX
                                                                   : 0;
}

static void derive_extreme(Sym *sym) {
    bool minimum = sym->kind == SYM_MIN;
    sym->lower = sym->operands[0]->lower;
    sym->upper = sym->operands[0]->upper;
    for (uint32_t i = 1; i < sym->count; i++) {
        int64_t lower = sym->operands[i]->lower, upper = sym->operands[i]->upper;
        if (minimum ? lower < sym->lower : lower > sym->lower) sym->lower = lower;
        if (minimum ? upper < sym->upper : upper > sym->upper) sym->upper = upper;
    }
}

void sym_derive_range(Sym *sym) {
    if (sym->kind != SYM_SYMBOL) sym->lower = sym->upper = sym->value;
    switch (sym->kind) {
    case SYM_CONST:
    case SYM_SYMBOL: break;
    case SYM_SUM:
        for (uint32_t i = 0; i < sym->count; i++) {
            sym->lower = bound_add(sym->lower, sym->operands[i]->lower, INT64_MIN);
            sym->upper = bound_add(sym->upper, sym->operands[i]->upper, INT64_MAX);
        }
        break;
    case SYM_PRODUCT:
        for (uint32_t i = 0; i < sym->count; i++) range_mul(sym, sym->operands[i]);
        break;
    case SYM_FLOORDIV: derive_division(sym); break;
    case SYM_MOD: derive_modulo(sym); break;
    case SYM_MIN:
    case SYM_MAX: derive_extreme(sym); break;
    }
}

/* ---- values ---- */

static bool evaluate_division(const Sym *sym, const int64_t *values, int64_t *out) {
    int64_t dividend, divisor;
    if (!sym_evaluate(sym->operands[0], values, &dividend)) return false;
    if (!sym_evaluate(sym->operands[1], values, &divisor)) return false;
    if (divisor == 0 || (divisor == -1 && dividend == INT64_MIN)) return false;
    *out = sym->kind == SYM_FLOORDIV ? sym_floor_divide(dividend, divisor)
                                     : sym_floor_modulo(dividend, divisor);
    return true;
}

/* One more operand of a sum, product, minimum or maximum. */
static bool accumulate(SymKind kind, int64_t *result, int64_t operand) {
    if (kind == SYM_SUM) return !__builtin_add_overflow(*result, operand, result);
    if (kind == SYM_PRODUCT) return !__builtin_mul_overflow(*result, operand, result);
    if (kind == SYM_MIN ? operand < *result : operand > *result) *result = operand;
    return true;
}

bool sym_evaluate(const Sym *sym, const int64_t *values, int64_t *out) {
    int64_t result = sym->value, operand;
    if (sym->kind == SYM_SYMBOL) result = values[sym->value];
    if (sym->kind == SYM_MIN) result = INT64_MAX;
    if (sym->kind == SYM_MAX) result = INT64_MIN;
    if (sym->kind == SYM_FLOORDIV || sym->kind == SYM_MOD) {
        return evaluate_division(sym, values, out);
    }
    for (uint32_t i = 0; i < sym->count; i++) {
        if (!sym_evaluate(sym->operands[i], values, &operand)) return false;
        if (!accumulate(sym->kind, &result, operand)) return false;
    }
    *out = result;
    return true;
}
