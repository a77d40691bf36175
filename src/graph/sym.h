/* Symbolic integers: the sizes of a program with dynamic shapes.
 *
 * An expression is interned in its table and canonical (a sum of products over symbols, floor
 * divisions, remainders, minima and maxima), so two expressions are equal exactly when their
 * pointers are. Every expression knows an inclusive range, derived from the ranges of its symbols.
 *
 * Text follows torch.export (SymPy's syntax): "s0", "2*s0 + 1", "s0*s1", "((s0 + 3)//4)",
 * "Mod(s0, 8)", "Max(1, s0)", "Min(s0, 16)". */
#ifndef GRAPH_SYM_H
#define GRAPH_SYM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/vec.h"
#include <ferry/status.h>
#include <stdint.h>

typedef enum SymKind {
    SYM_CONST,    /* value */
    SYM_SYMBOL,   /* name; value is its index in the table */
    SYM_SUM,      /* value + operands; no operand is a sum or a constant */
    SYM_PRODUCT,  /* value * operands; no operand is a product, a sum or a constant */
    SYM_FLOORDIV, /* operands[0] // operands[1], rounded towards minus infinity */
    SYM_MOD,      /* operands[0] modulo operands[1], with the divisor's sign */
    SYM_MIN,
    SYM_MAX,
} SymKind;

#define SYM_UNBOUNDED INT64_MAX

/* Expressions that would be written with more parts than this are refused, as an overflow. */
enum { SYM_MAX_SIZE = 512 };

typedef struct ferry_size Sym;
struct ferry_size {
    SymKind kind;
    int64_t value;
    const char *name;
    int64_t lower, upper; /* inclusive; SYM_UNBOUNDED: no upper bound */
    int64_t sample;       /* of a symbol: what it was when the program was traced; 0: unknown */
    uint32_t size;        /* parts of the expression when written out; 1 for a constant or symbol */
    uint32_t count;
    const Sym *const *operands;
};

typedef struct SymTable {
    Arena *arena;
    Map interned;
    VEC(const Sym *) symbols;
    bool
        overflow; /* an expression grew too large or left the range (INT64_MIN, INT64_MAX]; sticky */
} SymTable;

void sym_table_init(SymTable *table, Arena *arena);
void sym_table_free(SymTable *table);

/* INT64_MIN, which stands for minus infinity, sets `overflow`. */
const Sym *sym_const(SymTable *table, int64_t value);

/* The symbol called `name`, made with this range when it is new; an existing one keeps its own. */
const Sym *sym_symbol(SymTable *table, const char *name, int64_t lower, int64_t upper);

/* Remember what a symbol was in a sample. */
void sym_set_sample(SymTable *table, const Sym *symbol, int64_t sample);

/* Give a symbol a smaller upper bound. Expressions that were made before keep their ranges. */
void sym_narrow(SymTable *table, const Sym *symbol, int64_t upper);

/* The symbol called `name`, or NULL. */
const Sym *sym_lookup(const SymTable *table, const char *name);

const Sym *sym_add(SymTable *table, const Sym *a, const Sym *b);
const Sym *sym_sub(SymTable *table, const Sym *a, const Sym *b);
const Sym *sym_mul(SymTable *table, const Sym *a, const Sym *b);

/* The divisor's range must not contain 0; a constant divisor of 0 sets `overflow`. */
const Sym *sym_floordiv(SymTable *table, const Sym *a, const Sym *b);
const Sym *sym_mod(SymTable *table, const Sym *a, const Sym *b);
const Sym *sym_min(SymTable *table, const Sym *a, const Sym *b);
const Sym *sym_max(SymTable *table, const Sym *a, const Sym *b);

static inline bool sym_is_const(const Sym *sym) {
    return sym->kind == SYM_CONST;
}

static inline bool sym_is_value(const Sym *sym, int64_t value) {
    return sym->kind == SYM_CONST && sym->value == value;
}

/* The value of `sym` when the symbol with index i has values[i]. False on overflow or division by
 * zero. */
bool sym_evaluate(const Sym *sym, const int64_t *values, int64_t *out);

void sym_print(Buffer *buffer, const Sym *sym);

/* Parse the text form. An unknown symbol becomes a new one with range [0, unbounded) when
 * `create_symbols`, else an error. */
ferry_status sym_parse(SymTable *table, const char *text, bool create_symbols, const Sym **out,
                       ferry_error *error);

#endif
