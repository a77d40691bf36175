#include "graph/sym.h"
#include "graph/sym_range.h"

#include <stdlib.h>
#include <string.h>

void sym_table_init(SymTable *table, Arena *arena) {
    *table = (SymTable){.arena = arena};
}

void sym_table_free(SymTable *table) {
    map_free(&table->interned);
    VEC_FREE(&table->symbols);
}

/* ---- interning ---- */

/* Stands for an expression that could not be made; the table's flags say why. */
static const Sym zero = {.kind = SYM_CONST, .size = 1};

static const Sym *intern(SymTable *table, SymKind kind, int64_t value, const char *name,
                         const Sym *const *operands, uint32_t count, int64_t lower, int64_t upper) {
    uint32_t size = 1;
    for (uint32_t i = 0; i < count; i++) size += operands[i]->size;
    if (size > SYM_MAX_SIZE) {
        table->overflow = true;
        return &zero;
    }
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
                 .value = value,
                 .name = name ? arena_string(table->arena, name) : NULL,
                 .lower = lower,
                 .upper = upper,
                 .size = size,
                 .count = count,
                 .operands = arena_copy(table->arena, operands, count * sizeof *operands)};
    sym_derive_range(sym);
    if (key == local) key = arena_copy(table->arena, local, key_size);
    if (!key) return &zero;
    map_set(&table->interned, key, key_size, sym);
    if (table->interned.failed) table->arena->failed = true;
    return sym;
}

static int64_t checked(SymTable *table, bool overflow, int64_t value) {
    if (overflow || value == INT64_MIN) table->overflow = true;
    return overflow || value == INT64_MIN ? 0 : value;
}

const Sym *sym_const(SymTable *table, int64_t value) {
    return intern(table, SYM_CONST, checked(table, false, value), NULL, NULL, 0, 0, 0);
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
    if (sym == &zero) return sym;
    VEC_PUSH(&table->symbols, sym);
    if (table->symbols.failed) table->arena->failed = true;
    return sym;
}

/* The table made it. */
static Sym *own(SymTable *table, const Sym *symbol) {
    return (Sym *)table->symbols.items[symbol->value];
}

void sym_set_sample(SymTable *table, const Sym *symbol, int64_t sample) {
    own(table, symbol)->sample = sample;
}

void sym_narrow(SymTable *table, const Sym *symbol, int64_t upper) {
    if (upper < symbol->upper) own(table, symbol)->upper = upper;
}

/* ---- sums of products ---- */

typedef VEC(const Sym *) SymList;

/* The canonical order of operands, which does not depend on how an expression came about. */
static int order(const Sym *a, const Sym *b) {
    if (a == b) return 0;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    for (uint32_t i = 0; i < a->count; i++) {
        int difference = order(a->operands[i], b->operands[i]);
        if (difference) return difference;
    }
    return a->value < b->value ? -1 : 1;
}

static void insert_sorted(SymList *list, const Sym *sym) {
    VEC_PUSH(list, sym);
    if (list->failed) return;
    size_t i = list->count - 1;
    for (; i > 0 && order(list->items[i - 1], sym) > 0; i--) list->items[i] = list->items[i - 1];
    list->items[i] = sym;
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
    return term->kind == SYM_PRODUCT || term->kind == SYM_CONST ? term->value : 1;
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

/* The factors of a term; none for a constant. `*term` must outlive them. */
static uint32_t factors_of(const Sym *const *term, const Sym *const **factors) {
    *factors = (*term)->kind == SYM_PRODUCT ? (*term)->operands : term;
    return (*term)->kind == SYM_CONST ? 0 : (*term)->kind == SYM_PRODUCT ? (*term)->count : 1;
}

/* True when the two terms differ in their coefficient alone. */
static bool same_factors(const Sym *a, const Sym *b) {
    const Sym *const *left, *const *right;
    uint32_t left_count = factors_of(&a, &left), right_count = factors_of(&b, &right);
    return left_count == right_count && memcmp(left, right, left_count * sizeof *left) == 0;
}

/* The terms of an expression as they are: sorted, and no two alike. */
static void copy_terms(const Sym *sym, int64_t *constant, SymList *terms) {
    if (sym->kind == SYM_CONST || sym->kind == SYM_SUM) *constant = sym->value;
    if (sym->kind == SYM_SUM)
        for (uint32_t i = 0; i < sym->count; i++) VEC_PUSH(terms, sym->operands[i]);
    else if (sym->kind != SYM_CONST)
        VEC_PUSH(terms, sym);
}

/* Add scale * sym to constant and terms, merging like terms. */
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
    if (table->overflow) return &zero;
    copy_terms(a, &constant, &terms);
    collect(table, b, scale, &constant, &terms);
    return make_sum(table, constant, &terms);
}

const Sym *sym_add(SymTable *table, const Sym *a, const Sym *b) {
    return add_scaled(table, a, b, 1);
}

const Sym *sym_sub(SymTable *table, const Sym *a, const Sym *b) {
    return add_scaled(table, a, b, -1);
}

static void append_factors(SymList *list, const Sym *term) {
    const Sym *const *factors;
    uint32_t count = factors_of(&term, &factors);
    for (uint32_t i = 0; i < count; i++) insert_sorted(list, factors[i]);
}

/* The product of two terms, neither of them a sum. */
static const Sym *mul_terms(SymTable *table, const Sym *a, const Sym *b) {
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
    if (table->overflow) return &zero;
    if (a->kind != SYM_SUM && b->kind != SYM_SUM) return mul_terms(table, a, b);
    if (a->kind != SYM_SUM) return sym_mul(table, b, a);
    const Sym *result = sym_mul(table, sym_const(table, a->value), b);
    for (uint32_t i = 0; i < a->count && !table->overflow; i++) {
        result = sym_add(table, result, sym_mul(table, a->operands[i], b));
    }
    return result;
}

/* ---- division ---- */

static bool remove_item(SymList *list, const Sym *sym) {
    size_t i = 0;
    while (i < list->count && list->items[i] != sym) i++;
    if (i == list->count) return false;
    memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof *list->items);
    list->count--;
    return true;
}

/* term / divisor, neither of them a sum, when coefficient and factors cancel without a rest. */
static bool divide_term(SymTable *table, const Sym *term, const Sym *divisor,
                        const Sym **quotient) {
    const Sym *const *factors;
    uint32_t count = factors_of(&divisor, &factors);
    SymList rest = {0};
    if (coefficient(term) % coefficient(divisor) != 0) return false;
    if (sym_is_value(term, 0)) count = 0;
    append_factors(&rest, term);
    bool divides = true;
    for (uint32_t i = 0; i < count && divides; i++) divides = remove_item(&rest, factors[i]);
    if (rest.failed) table->arena->failed = true;
    if (divides) {
        *quotient = make_product(table, coefficient(term) / coefficient(divisor), rest.items,
                                 (uint32_t)rest.count);
    }
    VEC_FREE(&rest);
    return divides;
}

/* The same where `a` may be a sum, whose every term must divide. */
static bool divide_terms(SymTable *table, const Sym *a, const Sym *divisor, const Sym **quotient) {
    const Sym *part, *result;
    if (a->kind != SYM_SUM) return divide_term(table, a, divisor, quotient);
    if (!divide_term(table, sym_const(table, a->value), divisor, &result)) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!divide_term(table, a->operands[i], divisor, &part)) return false;
        result = sym_add(table, result, part);
    }
    *quotient = result;
    return true;
}

/* True when `term` times `factor` is `product`. */
static bool multiplies_to(SymTable *table, const Sym *factor, const Sym *term, const Sym *product) {
    bool overflow = table->overflow;
    bool equal = sym_mul(table, factor, term) == product;
    table->overflow = overflow;
    return equal;
}

/* a / b when that is exact. Of the quotients by a sum, only those of one term are found. */
static bool divide_exactly(SymTable *table, const Sym *a, const Sym *b, const Sym **quotient) {
    if (b->kind != SYM_SUM) return divide_terms(table, a, b, quotient);
    if (a->kind != SYM_SUM || a->count < b->count) return false;
    for (uint32_t i = 0; i <= b->count; i++) {
        const Sym *term = i < b->count ? b->operands[i] : sym_const(table, b->value);
        if (sym_is_value(term, 0)) continue;
        if (!divide_term(table, a->operands[0], term, quotient)) continue;
        if (multiplies_to(table, *quotient, b, a)) return true;
    }
    return false;
}

/* True when `a` is in [0, b) for a constant b. */
static bool is_below(const Sym *a, const Sym *b) {
    return sym_is_const(b) && a->lower >= 0 && a->upper < b->value;
}

static bool is_zero_divisor(SymTable *table, const Sym *b) {
    if (sym_is_value(b, 0)) table->overflow = true;
    return table->overflow;
}

/* A sum as b * whole + rest, for a constant b > 1: the terms that b divides are in `whole`, and what is
 * left of the constant is below b. */
static const Sym *take_multiples(SymTable *table, const Sym *a, int64_t b, const Sym **rest) {
    const Sym *whole = sym_const(table, sym_floor_divide(a->value, b));
    *rest = sym_const(table, sym_floor_modulo(a->value, b));
    for (uint32_t i = 0; i < a->count; i++) {
        const Sym *term = a->operands[i];
        if (coefficient(term) % b == 0)
            whole = sym_add(table, whole, rescale(table, term, coefficient(term) / b));
        else
            *rest = sym_add(table, *rest, term);
    }
    return whole;
}

/* (x // c + n) // b is (x + n*c) // (b*c), for constants b and c above 0; NULL when `a` is no such sum. */
static const Sym *merge_divisions(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *inner = a->kind == SYM_SUM && a->count == 1 ? a->operands[0] : a;
    int64_t product, number = a->kind == SYM_SUM ? a->value : 0;
    if (inner->kind != SYM_FLOORDIV || !sym_is_const(inner->operands[1])) return NULL;
    int64_t divisor = inner->operands[1]->value;
    if (b->value <= 0 || divisor <= 0 || __builtin_mul_overflow(b->value, divisor, &product) ||
        __builtin_mul_overflow(number, divisor, &number))
        return NULL;
    const Sym *dividend = sym_add(table, inner->operands[0], sym_const(table, number));
    return sym_floordiv(table, dividend, sym_const(table, product));
}

const Sym *sym_floordiv(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *quotient;
    if (is_zero_divisor(table, b)) return &zero;
    if (sym_is_const(a) && sym_is_const(b)) {
        return sym_const(table, sym_floor_divide(a->value, b->value));
    }
    if (divide_exactly(table, a, b, &quotient)) return quotient;
    if (is_below(a, b)) return sym_const(table, 0);
    if (a->kind == SYM_SUM && sym_is_const(b) && b->value > 1) {
        const Sym *rest, *whole = take_multiples(table, a, b->value, &rest);
        if (rest != a) return sym_add(table, whole, sym_floordiv(table, rest, b));
    }
    const Sym *nested = sym_is_const(b) ? merge_divisions(table, a, b) : NULL;
    if (nested) return nested;
    const Sym *operands[2] = {a, b};
    return intern(table, SYM_FLOORDIV, 0, NULL, operands, 2, 0, 0);
}

const Sym *sym_mod(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *quotient;
    if (is_zero_divisor(table, b)) return &zero;
    if (sym_is_const(a) && sym_is_const(b)) {
        return sym_const(table, sym_floor_modulo(a->value, b->value));
    }
    if (divide_exactly(table, a, b, &quotient)) return sym_const(table, 0);
    if (is_below(a, b)) return a;
    if (a->kind == SYM_SUM && sym_is_const(b) && b->value > 1) {
        const Sym *rest = a;
        take_multiples(table, a, b->value, &rest);
        if (rest != a) return sym_mod(table, rest, b);
    }
    const Sym *operands[2] = {a, b};
    return intern(table, SYM_MOD, 0, NULL, operands, 2, 0, 0);
}

/* ---- minimum and maximum ---- */

enum { MAX_NESTING = 4, MAX_DIFFERENCE = 64 };

/* Can b - a not be below 0? What cannot be subtracted is left out of account. */
static bool is_ahead(SymTable *table, const Sym *a, const Sym *b) {
    if (a->size + b->size > MAX_DIFFERENCE) return false;
    bool overflowed = table->overflow;
    table->overflow = false;
    const Sym *difference = sym_sub(table, b, a);
    bool result = !table->overflow && difference->lower >= 0;
    table->overflow = overflowed;
    return result;
}

/* Whether a <= b is certain: by the ranges, or because one is an extreme of the other and more. */
static bool is_at_most(SymTable *table, const Sym *a, const Sym *b, int depth) {
    if (a == b || a->upper <= b->lower || is_ahead(table, a, b)) return true;
    if (depth == 0) return false;
    bool any = false, all_a = a->kind == SYM_MAX, all_b = b->kind == SYM_MIN;
    for (uint32_t i = 0; i < a->count && (a->kind == SYM_MIN || a->kind == SYM_MAX); i++) {
        bool holds = is_at_most(table, a->operands[i], b, depth - 1);
        any = any || (holds && a->kind == SYM_MIN);
        all_a = all_a && holds;
    }
    for (uint32_t i = 0; i < b->count && (b->kind == SYM_MIN || b->kind == SYM_MAX); i++) {
        bool holds = is_at_most(table, a, b->operands[i], depth - 1);
        any = any || (holds && b->kind == SYM_MAX);
        all_b = all_b && holds;
    }
    return any || all_a || all_b;
}

static void gather_extremes(SymTable *table, SymKind kind, const Sym *sym, SymList *list) {
    if (sym->kind == kind) {
        for (uint32_t i = 0; i < sym->count; i++)
            gather_extremes(table, kind, sym->operands[i], list);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const Sym *other = list->items[i];
        bool is_min = kind == SYM_MIN;
        if (is_at_most(table, is_min ? other : sym, is_min ? sym : other, MAX_NESTING)) return;
        if (!is_at_most(table, is_min ? sym : other, is_min ? other : sym, MAX_NESTING)) continue;
        memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof *list->items);
        list->count--;
        i--;
    }
    insert_sorted(list, sym);
}

static const Sym *extreme(SymTable *table, SymKind kind, const Sym *a, const Sym *b) {
    SymList list = {0};
    gather_extremes(table, kind, a, &list);
    gather_extremes(table, kind, b, &list);
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
