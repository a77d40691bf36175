/* Upper bounds of sizes.
 *
 * A dynamic size that nothing bounds gets a cap, as torch's exporter to ExecuTorch gives it: at least four
 * times its least value, four times what it was in the sample, and a floor that falls with the number n
 * of such sizes, 2^24 elements to the power 1/n, between 64 and 1024. Where memory for that would be more
 * than the runtime should take at once, floors are halved until it is not: first those of batches, down to
 * 8, then the others, down to 64, then both, down to 4. What a program finds out while it runs is bounded
 * by what it looks at: there are no more nonzero elements than elements, and a part is no larger than the
 * whole. */
#include "target/executorch/bounds.h"

#include <math.h>

enum { NO_BOUND = INT32_MAX }; /* more than that is none */

/* Is the symbol a size of an input or of a state, and nothing bounds it? */
static bool needs_cap(const Program *program, const Sym *symbol) {
    if (symbol->upper < NO_BOUND) return false;
    for (size_t i = 0; i < program->sources.count; i++) {
        if (program->sources.items[i].symbol == symbol) return false;
    }
    return true;
}

/* Is the symbol the first size of an input, and nothing else? */
static bool is_first(const Program *program, const Sym *symbol) {
    bool first = false;
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Value *value = program->inputs.items[i].value;
        for (uint32_t d = 0; d < value->rank; d++) {
            if (value->shape[d] == symbol && d > 0) return false;
            first = first || value->shape[d] == symbol;
        }
    }
    return first;
}

Floors bounds_floors(const Program *program) {
    uint32_t count = 0;
    for (size_t i = 0; i < program->symbols.symbols.count; i++) {
        count += needs_cap(program, program->symbols.symbols.items[i]);
    }
    int64_t floor = llround(pow(16777216.0, 1.0 / (count ? count : 1)));
    floor = floor < 64 ? 64 : floor > 1024 ? 1024 : floor;
    return (Floors){floor, floor};
}

static bool halve(int64_t *floor, int64_t least) {
    if (*floor <= least) return false;
    *floor = *floor / 2 < least ? least : *floor / 2;
    return true;
}

bool bounds_shrink(Floors *floors) {
    return halve(&floors->first, 8) || halve(&floors->other, 64) || halve(&floors->first, 4) ||
           halve(&floors->other, 4);
}

static int64_t limit_of(const Program *program, const Sym *symbol, Floors floors) {
    if (symbol->upper < NO_BOUND) return symbol->upper;
    int64_t floor = is_first(program, symbol) ? floors.first : floors.other;
    int64_t least = symbol->lower > symbol->sample ? symbol->lower : symbol->sample;
    least = least > NO_BOUND / 4 ? NO_BOUND : 4 * least;
    return least > floor ? least : floor;
}

/* The elements of a tensor at its largest. */
static int64_t count_elements(Bounds *bounds, const Value *value) {
    int64_t elements = 1;
    for (uint32_t d = 0; d < value->rank; d++) {
        int64_t size = bounds_upper(bounds, value->shape[d]);
        if (__builtin_mul_overflow(elements, size, &elements)) return INT64_MAX;
    }
    return elements;
}

/* Bound a symbol that the program finds out by something that it cannot exceed. */
static void bound_by(Bounds *bounds, const Program *program, const Sym *symbol, int64_t limit) {
    if (symbol->kind != SYM_SYMBOL || symbol->upper < NO_BOUND) return;
    if (needs_cap(program, symbol)) return;
    bounds->limits[symbol->value] = limit;
    map_free(&bounds->known);
}

static void bound_by_node(Bounds *bounds, const Program *program, const Node *node) {
    if (node->op == OP_NONZERO) {
        int64_t elements = count_elements(bounds, node->args[0].tensor);
        bound_by(bounds, program, node->args[1].integer, elements);
    }
    if (node->op != OP_SPLIT) return;
    const Value *whole = node->args[0].tensor;
    int64_t dim = node->args[2].integer->value;
    const Sym *size = whole->shape[dim < 0 ? dim + whole->rank : dim];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Sym *part = node->args[1].integers.items[i];
        bound_by(bounds, program, part, bounds_upper(bounds, size));
    }
}

bool bounds_init(Bounds *bounds, const Program *program, Arena *arena, Floors floors) {
    size_t count = program->symbols.symbols.count;
    *bounds = (Bounds){.arena = arena, .limits = ARENA_ARRAY(arena, int64_t, count)};
    if (!bounds->limits) return false;
    for (size_t i = 0; i < count; i++) {
        bounds->limits[i] = limit_of(program, program->symbols.symbols.items[i], floors);
    }
    for (const Node *node = program->first; node; node = node->next) {
        bound_by_node(bounds, program, node);
    }
    return true;
}

bool bounds_fix(Program *program, Floors floors, Buffer *text) {
    Arena scratch = {0};
    Bounds bounds;
    bool made = bounds_init(&bounds, program, &scratch, floors);
    for (size_t i = 0; made && i < program->symbols.symbols.count; i++) {
        const Sym *symbol = program->symbols.symbols.items[i];
        bool capped = needs_cap(program, symbol);
        sym_narrow(&program->symbols, symbol, bounds.limits[i]);
        if (!capped) continue;
        buffer_format(text, "%s%s <= %lld", text->length ? ", " : "", symbol->name,
                      (long long)symbol->upper);
    }
    map_free(&bounds.known);
    arena_free(&scratch);
    return made && !text->failed;
}

/* ---- ranges of expressions ---- */

typedef struct Range {
    int64_t lower, upper;
} Range;

static int64_t narrow(__int128 value) {
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static Range multiply(Range a, Range b) {
    const __int128 corners[] = {(__int128)a.lower * b.lower, (__int128)a.lower * b.upper,
                                (__int128)a.upper * b.lower, (__int128)a.upper * b.upper};
    __int128 lower = corners[0], upper = corners[0];
    for (int i = 1; i < 4; i++) {
        if (corners[i] < lower) lower = corners[i];
        if (corners[i] > upper) upper = corners[i];
    }
    return (Range){narrow(lower), narrow(upper)};
}

static int64_t divide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Of positive divisors; sizes are divided by nothing else. */
static Range floor_divide(Range a, Range b) {
    if (b.lower < 1) b.lower = 1;
    if (b.upper < 1) b.upper = 1;
    return (Range){divide(a.lower, a.lower < 0 ? b.lower : b.upper),
                   divide(a.upper, a.upper < 0 ? b.upper : b.lower)};
}

static Range join(SymKind kind, Range a, Range b) {
    switch (kind) {
    case SYM_SUM:
        return (Range){narrow((__int128)a.lower + b.lower), narrow((__int128)a.upper + b.upper)};
    case SYM_PRODUCT: return multiply(a, b);
    case SYM_FLOORDIV: return floor_divide(a, b);
    case SYM_MOD: {
        int64_t most = b.upper > 0 ? b.upper - 1 : 0;
        return (Range){b.lower < 0 ? b.lower : 0, a.lower >= 0 && a.upper < most ? a.upper : most};
    }
    case SYM_MIN:
        return (Range){a.lower < b.lower ? a.lower : b.lower,
                       a.upper < b.upper ? a.upper : b.upper};
    default:
        return (Range){a.lower > b.lower ? a.lower : b.lower,
                       a.upper > b.upper ? a.upper : b.upper};
    }
}

static Range range(Bounds *bounds, const Sym *sym) {
    if (sym->kind == SYM_CONST) return (Range){sym->value, sym->value};
    if (sym->kind == SYM_SYMBOL) return (Range){sym->lower, bounds->limits[sym->value]};
    const Range *known = map_get(&bounds->known, &sym, sizeof sym);
    if (known) return *known;
    Range result = range(bounds, sym->operands[0]);
    for (uint32_t i = 1; i < sym->count; i++) {
        result = join(sym->kind, result, range(bounds, sym->operands[i]));
    }
    if (sym->kind == SYM_SUM || sym->kind == SYM_PRODUCT) {
        result = join(sym->kind, result, (Range){sym->value, sym->value});
    }
    if (sym->upper < result.upper) result.upper = sym->upper;
    if (sym->lower > result.lower) result.lower = sym->lower;
    const Sym **key = arena_copy(bounds->arena, &sym, sizeof sym);
    Range *entry = arena_copy(bounds->arena, &result, sizeof result);
    if (key && entry) map_set(&bounds->known, key, sizeof sym, entry);
    return result;
}

int64_t bounds_upper(Bounds *bounds, const Sym *sym) {
    int64_t upper = range(bounds, sym).upper;
    return upper < 0 ? 0 : upper;
}
