#include "graph/sym.h"

#include <stdlib.h>
#include <string.h>

void sym_table_init(SymTable *table, Arena *arena) {
    *table = (SymTable){.arena = arena};
}

void sym_table_free(SymTable *table) {
    map_free(&table->interned);
    VEC_FREE(&table->symbols);
}

/* ---- arithmetic on bounds: SYM_UNBOUNDED is plus infinity, INT64_MIN minus infinity ---- */

static int64_t bound_add(int64_t a, int64_t b) {
    int64_t sum;
    if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
    if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
    if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

static int64_t bound_mul(int64_t a, int64_t b) {
    int64_t product;
    bool infinite = a == INT64_MAX || b == INT64_MAX || a == INT64_MIN || b == INT64_MIN;
    if (a == 0 || b == 0) return 0;
    if (infinite || __builtin_mul_overflow(a, b, &product)) {
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    }
    return product;
}

static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static void range_mul(Sym *sym, int64_t lower, int64_t upper) {
    int64_t corners[4] = {bound_mul(sym->lower, lower), bound_mul(sym->lower, upper),
                          bound_mul(sym->upper, lower), bound_mul(sym->upper, upper)};
    sym->lower = sym->upper = corners[0];
    for (int i = 1; i < 4; i++) {
        if (corners[i] < sym->lower) sym->lower = corners[i];
        if (corners[i] > sym->upper) sym->upper = corners[i];
    }
}

static void derive_range(Sym *sym) {
    const Sym *const *operands = sym->operands;
    switch (sym->kind) {
    case SYM_CONST: sym->lower = sym->upper = sym->value; break;
    case SYM_SYMBOL: break;
    case SYM_SUM:
        sym->lower = sym->upper = sym->value;
        for (uint32_t i = 0; i < sym->count; i++) {
            sym->lower = bound_add(sym->lower, operands[i]->lower);
            sym->upper = bound_add(sym->upper, operands[i]->upper);
        }
        break;
    case SYM_PRODUCT:
        sym->lower = sym->upper = sym->value;
        for (uint32_t i = 0; i < sym->count; i++) {
            range_mul(sym, operands[i]->lower, operands[i]->upper);
        }
        break;
    case SYM_FLOORDIV:
        sym->lower = operands[0]->lower >= 0 && operands[1]->lower > 0 ? 0 : INT64_MIN;
        sym->upper = INT64_MAX;
        if (sym_is_const(operands[1]) && operands[1]->value > 0) {
            int64_t divisor = operands[1]->value;
            if (operands[0]->lower != INT64_MIN)
                sym->lower = floor_divide(operands[0]->lower, divisor);
            if (operands[0]->upper != INT64_MAX)
                sym->upper = floor_divide(operands[0]->upper, divisor);
        }
        break;
    case SYM_MOD:
        sym->lower = operands[1]->lower > 0 ? 0 : INT64_MIN;
        sym->upper = operands[1]->upper == INT64_MAX ? INT64_MAX : operands[1]->upper - 1;
        break;
    case SYM_MIN:
    case SYM_MAX:
        sym->lower = operands[0]->lower;
        sym->upper = operands[0]->upper;
        for (uint32_t i = 1; i < sym->count; i++) {
            int64_t lower = operands[i]->lower, upper = operands[i]->upper;
            bool minimum = sym->kind == SYM_MIN;
            if (minimum ? lower < sym->lower : lower > sym->lower) sym->lower = lower;
            if (minimum ? upper < sym->upper : upper > sym->upper) sym->upper = upper;
        }
        break;
    }
}

/* ---- interning ---- */

/* Stands for an expression that could not be made; the table's flags say why. */
static const Sym zero = {.kind = SYM_CONST};

static const Sym *intern(SymTable *table, SymKind kind, int64_t value, const char *name,
                         const Sym *const *operands, uint32_t count, int64_t lower, int64_t upper) {
    size_t name_length = name ? strlen(name) : 0;
    size_t key_size = sizeof kind + sizeof value + count * sizeof *operands + name_length;
    unsigned char local[256];
    unsigned char *key = key_size <= sizeof local ? local : arena_alloc(table->arena, key_size);
    if (!key) return &zero;
    unsigned char *next = key;
    memcpy(next, &kind, sizeof kind);
    next += sizeof kind;
    memcpy(next, &value, sizeof value);
    next += sizeof value;
    if (count) memcpy(next, operands, count * sizeof *operands);
    next += count * sizeof *operands;
    if (name_length) memcpy(next, name, name_length);
    Sym *found = map_get(&table->interned, key, key_size);
    if (found) return found;

    Sym *sym = ARENA_NEW(table->arena, Sym);
    if (!sym) return &zero;
    *sym = (Sym){.kind = kind,
                 .order = (uint32_t)table->interned.count,
                 .value = value,
                 .name = name ? arena_string(table->arena, name) : NULL,
                 .lower = lower,
                 .upper = upper,
                 .count = count,
                 .operands = arena_copy(table->arena, operands, count * sizeof *operands)};
    derive_range(sym);
    if (key == local) key = arena_copy(table->arena, local, key_size);
    if (!key) return &zero;
    map_set(&table->interned, key, key_size, sym);
    if (table->interned.failed) table->arena->failed = true;
    return sym;
}

const Sym *sym_const(SymTable *table, int64_t value) {
    return intern(table, SYM_CONST, value, NULL, NULL, 0, 0, 0);
}

const Sym *sym_lookup(const SymTable *table, const char *name) {
    for (size_t i = 0; i < table->symbols.count; i++) {
        if (strcmp(table->symbols.items[i]->name, name) == 0) return table->symbols.items[i];
    }
    return NULL;
}

const Sym *sym_symbol(SymTable *table, const char *name, int64_t lower, int64_t upper) {
    const Sym *found = sym_lookup(table, name);
    if (found) return found;
    const Sym *sym =
        intern(table, SYM_SYMBOL, (int64_t)table->symbols.count, name, NULL, 0, lower, upper);
    VEC_PUSH(&table->symbols, sym);
    if (table->symbols.failed) table->arena->failed = true;
    return sym;
}

/* ---- sums of products ---- */

typedef VEC(const Sym *) SymList;

static void insert_sorted(SymList *list, const Sym *sym) {
    VEC_PUSH(list, sym);
    if (list->failed) return;
    size_t i = list->count - 1;
    for (; i > 0 && list->items[i - 1]->order > sym->order; i--)
        list->items[i] = list->items[i - 1];
    list->items[i] = sym;
}

static int64_t checked(SymTable *table, bool overflow, int64_t value) {
    if (overflow) table->overflow = true;
    return overflow ? 0 : value;
}

static int64_t checked_add(SymTable *table, int64_t a, int64_t b) {
    int64_t result;
    bool overflow = __builtin_add_overflow(a, b, &result);
    return checked(table, overflow, result);
}

static int64_t checked_mul(SymTable *table, int64_t a, int64_t b) {
    int64_t result;
    bool overflow = __builtin_mul_overflow(a, b, &result);
    return checked(table, overflow, result);
}

static int64_t coefficient(const Sym *term) {
    return term->kind == SYM_PRODUCT ? term->value : 1;
}

/* coefficient * factors as an expression: the bare factor where that is all there is. */
static const Sym *make_product(SymTable *table, int64_t scale, const Sym *const *factors,
                               uint32_t count) {
    if (scale == 0 || count == 0) return sym_const(table, scale);
    if (scale == 1 && count == 1) return factors[0];
    return intern(table, SYM_PRODUCT, scale, NULL, factors, count, 0, 0);
}

static const Sym *rescale(SymTable *table, const Sym *term, int64_t scale) {
    if (term->kind == SYM_PRODUCT) return make_product(table, scale, term->operands, term->count);
    return make_product(table, scale, &term, 1);
}

/* True when the two terms differ in their coefficient alone. */
static bool same_factors(const Sym *a, const Sym *b) {
    const Sym *const *left = a->kind == SYM_PRODUCT ? a->operands : &a;
    const Sym *const *right = b->kind == SYM_PRODUCT ? b->operands : &b;
    uint32_t left_count = a->kind == SYM_PRODUCT ? a->count : 1;
    uint32_t right_count = b->kind == SYM_PRODUCT ? b->count : 1;
    return left_count == right_count && memcmp(left, right, left_count * sizeof *left) == 0;
}

/* Collect a + scale * b into constant and terms, merging like terms. */
static void collect(SymTable *table, const Sym *sym, int64_t scale, int64_t *constant,
                    SymList *terms) {
    if (sym->kind == SYM_CONST) {
        *constant = checked_add(table, *constant, checked_mul(table, scale, sym->value));
    } else if (sym->kind == SYM_SUM) {
        *constant = checked_add(table, *constant, checked_mul(table, scale, sym->value));
        for (uint32_t i = 0; i < sym->count; i++) {
            collect(table, sym->operands[i], scale, constant, terms);
        }
    } else {
        int64_t total = checked_mul(table, scale, coefficient(sym));
        for (size_t i = 0; i < terms->count; i++) {
            if (!same_factors(terms->items[i], sym)) continue;
            total = checked_add(table, total, coefficient(terms->items[i]));
            memmove(&terms->items[i], &terms->items[i + 1],
                    (terms->count - i - 1) * sizeof *terms->items);
            terms->count--;
            break;
        }
        if (total != 0) insert_sorted(terms, rescale(table, sym, total));
    }
}

static const Sym *make_sum(SymTable *table, int64_t constant, SymList *terms) {
    const Sym *result;
    if (terms->failed) table->arena->failed = true;
    if (terms->count == 0)
        result = sym_const(table, constant);
    else if (terms->count == 1 && constant == 0)
        result = terms->items[0];
    else
        result = intern(table, SYM_SUM, constant, NULL, terms->items, (uint32_t)terms->count, 0, 0);
    VEC_FREE(terms);
    return result;
}

static const Sym *add_scaled(SymTable *table, const Sym *a, const Sym *b, int64_t scale) {
    int64_t constant = 0;
    SymList terms = {0};
    collect(table, a, 1, &constant, &terms);
    collect(table, b, scale, &constant, &terms);
    return make_sum(table, constant, &terms);
}

const Sym *sym_add(SymTable *table, const Sym *a, const Sym *b) {
    return add_scaled(table, a, b, 1);
}

const Sym *sym_sub(SymTable *table, const Sym *a, const Sym *b) {
    return add_scaled(table, a, b, -1);
}

static void append_factors(SymList *factors, const Sym *term) {
    if (term->kind != SYM_PRODUCT)
        insert_sorted(factors, term);
    else
        for (uint32_t i = 0; i < term->count; i++) insert_sorted(factors, term->operands[i]);
}

/* The product of two terms, neither of them a sum. */
static const Sym *mul_terms(SymTable *table, const Sym *a, const Sym *b) {
    if (a->kind == SYM_CONST && b->kind == SYM_CONST) {
        return sym_const(table, checked_mul(table, a->value, b->value));
    }
    if (a->kind == SYM_CONST || b->kind == SYM_CONST) {
        const Sym *term = a->kind == SYM_CONST ? b : a;
        int64_t scale = a->kind == SYM_CONST ? a->value : b->value;
        return rescale(table, term, checked_mul(table, scale, coefficient(term)));
    }
    SymList factors = {0};
    append_factors(&factors, a);
    append_factors(&factors, b);
    if (factors.failed) table->arena->failed = true;
    int64_t scale = checked_mul(table, coefficient(a), coefficient(b));
    const Sym *result = make_product(table, scale, factors.items, (uint32_t)factors.count);
    VEC_FREE(&factors);
    return result;
}

const Sym *sym_mul(SymTable *table, const Sym *a, const Sym *b) {
    if (a->kind != SYM_SUM && b->kind != SYM_SUM) return mul_terms(table, a, b);
    if (a->kind != SYM_SUM) return sym_mul(table, b, a);
    const Sym *result = sym_mul(table, sym_const(table, a->value), b);
    for (uint32_t i = 0; i < a->count; i++) {
        result = sym_add(table, result, sym_mul(table, a->operands[i], b));
    }
    return result;
}

/* ---- division ---- */

/* True when `divisor` divides every coefficient of `sym`; `*quotient` is then the exact result. */
static bool divide_exactly(SymTable *table, const Sym *sym, int64_t divisor, const Sym **quotient) {
    if (sym->kind != SYM_SUM) {
        int64_t scale = sym->kind == SYM_CONST ? sym->value : coefficient(sym);
        if (scale % divisor != 0) return false;
        *quotient = sym->kind == SYM_CONST ? sym_const(table, scale / divisor)
                                           : rescale(table, sym, scale / divisor);
        return true;
    }
    if (sym->value % divisor != 0) return false;
    const Sym *result = sym_const(table, sym->value / divisor);
    for (uint32_t i = 0; i < sym->count; i++) {
        const Sym *part;
        if (!divide_exactly(table, sym->operands[i], divisor, &part)) return false;
        result = sym_add(table, result, part);
    }
    *quotient = result;
    return true;
}

/* Removes the factor `b` from a product that contains it. */
static bool cancel_factor(SymTable *table, const Sym *a, const Sym *b, const Sym **quotient) {
    if (a->kind != SYM_PRODUCT) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->operands[i] != b) continue;
        SymList rest = {0};
        for (uint32_t j = 0; j < a->count; j++) {
            if (j != i) VEC_PUSH(&rest, a->operands[j]);
        }
        *quotient = make_product(table, a->value, rest.items, (uint32_t)rest.count);
        VEC_FREE(&rest);
        return true;
    }
    return false;
}

const Sym *sym_floordiv(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *quotient;
    if (sym_is_value(b, 0)) {
        table->overflow = true;
        return sym_const(table, 0);
    }
    if (a == b) return sym_const(table, 1);
    if (sym_is_const(a) && sym_is_const(b)) {
        if (b->value == -1) return sym_mul(table, a, b);
        return sym_const(table, floor_divide(a->value, b->value));
    }
    if (sym_is_const(b) && divide_exactly(table, a, b->value, &quotient)) return quotient;
    if (cancel_factor(table, a, b, &quotient)) return quotient;
    const Sym *operands[2] = {a, b};
    return intern(table, SYM_FLOORDIV, 0, NULL, operands, 2, 0, 0);
}

const Sym *sym_mod(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *quotient;
    if (sym_is_value(b, 0)) {
        table->overflow = true;
        return sym_const(table, 0);
    }
    if (a == b || sym_is_value(b, 1) || sym_is_value(b, -1)) return sym_const(table, 0);
    if (sym_is_const(a) && sym_is_const(b)) {
        return sym_const(table, a->value - b->value * floor_divide(a->value, b->value));
    }
    if (sym_is_const(b) && divide_exactly(table, a, b->value, &quotient)) {
        return sym_const(table, 0);
    }
    if (cancel_factor(table, a, b, &quotient)) return sym_const(table, 0);
    if (sym_is_const(b) && a->lower >= 0 && a->upper < b->value) return a;
    const Sym *operands[2] = {a, b};
    return intern(table, SYM_MOD, 0, NULL, operands, 2, 0, 0);
}

/* ---- minimum and maximum ---- */

static void gather_extremes(SymKind kind, const Sym *sym, SymList *list) {
    if (sym->kind == kind) {
        for (uint32_t i = 0; i < sym->count; i++) gather_extremes(kind, sym->operands[i], list);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const Sym *other = list->items[i];
        bool other_wins = kind == SYM_MIN ? other->upper <= sym->lower : other->lower >= sym->upper;
        bool sym_wins = kind == SYM_MIN ? sym->upper <= other->lower : sym->lower >= other->upper;
        if (other == sym || other_wins) return;
        if (!sym_wins) continue;
        memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof *list->items);
        list->count--;
        i--;
    }
    insert_sorted(list, sym);
}

static const Sym *extreme(SymTable *table, SymKind kind, const Sym *a, const Sym *b) {
    SymList list = {0};
    gather_extremes(kind, a, &list);
    gather_extremes(kind, b, &list);
    if (list.failed) table->arena->failed = true;
    const Sym *result = list.count == 0 ? sym_const(table, 0)
                        : list.count == 1
                            ? list.items[0]
                            : intern(table, kind, 0, NULL, list.items, (uint32_t)list.count, 0, 0);
    VEC_FREE(&list);
    return result;
}

const Sym *sym_min(SymTable *table, const Sym *a, const Sym *b) {
    return extreme(table, SYM_MIN, a, b);
}

const Sym *sym_max(SymTable *table, const Sym *a, const Sym *b) {
    return extreme(table, SYM_MAX, a, b);
}

/* ---- evaluation ---- */

bool sym_evaluate(const Sym *sym, const int64_t *values, int64_t *out) {
    int64_t result = sym->value, operand;
    switch (sym->kind) {
    case SYM_CONST: break;
    case SYM_SYMBOL: result = values[sym->value]; break;
    case SYM_SUM:
    case SYM_PRODUCT:
        for (uint32_t i = 0; i < sym->count; i++) {
            if (!sym_evaluate(sym->operands[i], values, &operand)) return false;
            if (sym->kind == SYM_SUM ? __builtin_add_overflow(result, operand, &result)
                                     : __builtin_mul_overflow(result, operand, &result))
                return false;
        }
        break;
    case SYM_FLOORDIV:
    case SYM_MOD: {
        int64_t divisor;
        if (!sym_evaluate(sym->operands[0], values, &result)) return false;
        if (!sym_evaluate(sym->operands[1], values, &divisor)) return false;
        if (divisor == 0 || (divisor == -1 && result == INT64_MIN)) return false;
        int64_t quotient = floor_divide(result, divisor);
        result = sym->kind == SYM_FLOORDIV ? quotient : result - divisor * quotient;
        break;
    }
    case SYM_MIN:
    case SYM_MAX:
        if (!sym_evaluate(sym->operands[0], values, &result)) return false;
        for (uint32_t i = 1; i < sym->count; i++) {
            if (!sym_evaluate(sym->operands[i], values, &operand)) return false;
            if (sym->kind == SYM_MIN ? operand < result : operand > result) result = operand;
        }
        break;
    }
    *out = result;
    return true;
}
