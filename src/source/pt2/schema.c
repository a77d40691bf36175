#include "source/pt2/schema.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- srepr: call := NAME "(" (argument ("," argument)*)? ")"
 *      argument := call | integer | string | NAME "=" NAME | NAME ---- */

enum { MAX_DEPTH = 200, MAX_OPERANDS = 64 };

/* What an expression is: floats are fractions, with a divisor above 0. */
typedef struct Ratio {
    const Sym *top;
    int64_t bottom;
} Ratio;

typedef struct Srepr {
    SymTable *table;
    const char *text, *next;
    int depth;
    ferry_status status;
    ferry_error *error;
} Srepr;

static Ratio srepr_fail(Srepr *p, const char *problem) {
    if (p->status == FERRY_OK) {
        p->status =
            error_set(p->error, FERRY_BAD_FORMAT, "symbolic size", "%s at column %d of \"%.200s\"",
                      problem, (int)(p->next - p->text) + 1, p->text);
    }
    return (Ratio){sym_const(p->table, 0), 1};
}

static bool srepr_accept(Srepr *p, char character) {
    while (*p->next == ' ') p->next++;
    if (*p->next != character) return false;
    p->next++;
    return true;
}

static size_t srepr_word(Srepr *p, const char **start) {
    while (*p->next == ' ') p->next++;
    *start = p->next;
    while (isalnum((unsigned char)*p->next) || *p->next == '_') p->next++;
    return (size_t)(p->next - *start);
}

/* Symbol('s0', positive=True, integer=True), after the bracket. */
static Ratio srepr_symbol(Srepr *p) {
    if (!srepr_accept(p, '\'')) return srepr_fail(p, "expected a quoted name");
    const char *start = p->next;
    while (*p->next && *p->next != '\'') p->next++;
    const char *name = arena_string_n(p->table->arena, start, (size_t)(p->next - start));
    if (!srepr_accept(p, '\'') || !*name) return srepr_fail(p, "expected a quoted name");
    const char *end = strchr(p->next, ')');
    if (!end) return srepr_fail(p, "expected ')'");
    p->next = end + 1;
    return (Ratio){sym_symbol(p->table, name, 0, SYM_UNBOUNDED), 1};
}

static Ratio srepr_integer(Srepr *p) {
    char *end;
    errno = 0;
    long long value = strtoll(p->next, &end, 10);
    if (errno || end == p->next) return srepr_fail(p, "expected a 64-bit integer");
    p->next = end;
    return (Ratio){sym_const(p->table, value), 1};
}

/* Float('0.75', precision=53), after the bracket: the simplest fraction that it is, 3 by a divisor
 * of 4. Scale factors of sizes are such numbers. */
static Ratio srepr_float(Srepr *p) {
    enum { MOST = 4096 };
    char *end;
    if (!srepr_accept(p, '\'')) return srepr_fail(p, "expected a quoted number");
    double number = strtod(p->next, &end);
    if (end == p->next || *end != '\'' || !strchr(end, ')') || !(fabs(number) < 1e9)) {
        return srepr_fail(p, "expected a quoted number");
    }
    p->next = strchr(end, ')') + 1;
    for (int64_t divisor = 1; divisor <= MOST; divisor++) {
        double scaled = number * (double)divisor;
        if (fabs(scaled - round(scaled)) > 1e-12 * fabs(scaled)) continue;
        return (Ratio){sym_const(p->table, (int64_t)round(scaled)), divisor};
    }
    return srepr_fail(p, "no simple fraction");
}

static Ratio srepr_expression(Srepr *p);

static const Sym *power(SymTable *table, const Sym *base, const Sym *exponent) {
    const Sym *result = sym_const(table, 1);
    bool small = sym_is_const(exponent) && exponent->value >= 0 && exponent->value <= 16;
    for (int64_t i = 0; small && i < exponent->value; i++) result = sym_mul(table, result, base);
    return small ? result : NULL;
}

/* -(-a // b) */
static const Sym *ceiling(SymTable *table, const Sym *a, const Sym *b) {
    const Sym *minus = sym_const(table, -1);
    return sym_mul(table, minus, sym_floordiv(table, sym_mul(table, minus, a), b));
}

typedef const Sym *(*SymFunction)(SymTable *table, const Sym *a, const Sym *b);

/* What a function does with fractions. */
typedef enum Fractions {
    WHOLE,      /* takes none */
    ALIKE,      /* takes them with one divisor, which the result has */
    MULTIPLIED, /* divisors are multiplied, too */
    DIVIDED,    /* the second one is turned over */
    ROUNDED,    /* takes one, and its two parts are the operands */
    KEPT,       /* gives the one that it takes */
} Fractions;

static const struct {
    const char *name;
    SymFunction apply;
    Fractions fractions;
    size_t least, most; /* operands */
} srepr_functions[] = {
    {"Add", sym_add, ALIKE, 1, MAX_OPERANDS},
    {"Mul", sym_mul, MULTIPLIED, 1, MAX_OPERANDS},
    {"Max", sym_max, ALIKE, 1, MAX_OPERANDS},
    {"Min", sym_min, ALIKE, 1, MAX_OPERANDS},
    {"FloorDiv", sym_floordiv, WHOLE, 2, 2},
    {"CleanDiv", sym_floordiv, WHOLE, 2, 2},
    {"Mod", sym_mod, WHOLE, 2, 2},
    {"PythonMod", sym_mod, WHOLE, 2, 2},
    {"Pow", power, WHOLE, 2, 2},
    {"PowByNatural", power, WHOLE, 2, 2},
    {"FloatTrueDiv", sym_mul, DIVIDED, 2, 2},
    {"IntTrueDiv", sym_mul, DIVIDED, 2, 2},
    {"ToFloat", NULL, KEPT, 1, 1},
    {"Identity", NULL, KEPT, 1, 1},
    {"TruncToInt", sym_floordiv, ROUNDED, 1, 1},
    {"FloorToInt", sym_floordiv, ROUNDED, 1, 1},
    {"CeilToInt", ceiling, ROUNDED, 1, 1},
};

static Ratio turned_over(Srepr *p, Ratio ratio) {
    bool known = sym_is_const(ratio.top) && ratio.top->value != 0 && ratio.top->value != INT64_MIN;
    if (!known) return srepr_fail(p, "a division by a size that is no number, or by 0");
    int64_t top = ratio.top->value < 0 ? -ratio.bottom : ratio.bottom;
    return (Ratio){sym_const(p->table, top), llabs(ratio.top->value)};
}

static Ratio srepr_combine(Srepr *p, size_t function, Ratio a, Ratio b) {
    SymTable *table = p->table;
    Fractions fractions = srepr_functions[function].fractions;
    Ratio result = {.bottom = 1};
    bool fits = true;
    if (fractions == DIVIDED) b = turned_over(p, b);
    if (fractions == WHOLE) {
        if (a.bottom != 1 || b.bottom != 1)
            return srepr_fail(p, "unsupported arithmetic on fractions");
    } else if (fractions != ALIKE) {
        fits = !__builtin_mul_overflow(a.bottom, b.bottom, &result.bottom);
    } else if (a.bottom == b.bottom) {
        result.bottom = a.bottom;
    } else {
        fits = !__builtin_mul_overflow(a.bottom, b.bottom, &result.bottom);
        a.top = sym_mul(table, a.top, sym_const(table, b.bottom));
        b.top = sym_mul(table, b.top, sym_const(table, a.bottom));
    }
    result.top = srepr_functions[function].apply(table, a.top, b.top);
    if (!result.top) return srepr_fail(p, "unsupported exponent");
    return fits ? result : srepr_fail(p, "a number is out of range");
}

static Ratio srepr_apply(Srepr *p, size_t function, const Ratio *operands, size_t count) {
    SymFunction apply = srepr_functions[function].apply;
    Ratio result = operands[0];
    if (count < srepr_functions[function].least || count > srepr_functions[function].most)
        return srepr_fail(p, "wrong number of arguments");
    if (srepr_functions[function].fractions == ROUNDED)
        return (Ratio){apply(p->table, result.top, sym_const(p->table, result.bottom)), 1};
    for (size_t i = 1; i < count && p->status == FERRY_OK; i++)
        result = srepr_combine(p, function, result, operands[i]);
    return result;
}

static Ratio srepr_call(Srepr *p, const char *name, size_t length) {
    Ratio operands[MAX_OPERANDS];
    size_t function = 0, count = 0, known = sizeof srepr_functions / sizeof *srepr_functions;
    while (function < known && (strlen(srepr_functions[function].name) != length ||
                                memcmp(srepr_functions[function].name, name, length) != 0)) {
        function++;
    }
    if (function == known) return srepr_fail(p, "unsupported function");
    do {
        if (count == MAX_OPERANDS) return srepr_fail(p, "too many arguments");
        operands[count++] = srepr_expression(p);
    } while (p->status == FERRY_OK && srepr_accept(p, ','));
    if (!srepr_accept(p, ')')) return srepr_fail(p, "expected ')'");
    return p->status == FERRY_OK ? srepr_apply(p, function, operands, count) : operands[0];
}

static Ratio srepr_expression(Srepr *p) {
    const char *name;
    if (p->status != FERRY_OK) return (Ratio){sym_const(p->table, 0), 1};
    if (++p->depth > MAX_DEPTH) return srepr_fail(p, "nested too deeply");
    Ratio result;
    size_t length = srepr_word(p, &name);
    if (!srepr_accept(p, '(')) {
        /* plain names are accepted once torch has seen the symbol */
        if (!length) return srepr_fail(p, "expected a name");
        const char *symbol = arena_string_n(p->table->arena, name, length);
        result = (Ratio){sym_symbol(p->table, symbol, 0, SYM_UNBOUNDED), 1};
    } else if (length == 6 && !memcmp(name, "Symbol", 6)) {
        result = srepr_symbol(p);
    } else if (length == 7 && !memcmp(name, "Integer", 7)) {
        result = srepr_integer(p);
        if (!srepr_accept(p, ')')) srepr_fail(p, "expected ')'");
    } else if (length == 5 && !memcmp(name, "Float", 5)) {
        result = srepr_float(p);
    } else {
        result = srepr_call(p, name, length);
    }
    p->depth--;
    return result;
}

/* A SymPy expression as srepr writes it. */
static ferry_status parse_srepr(SymTable *table, const char *text, const Sym **out,
                                ferry_error *error) {
    Srepr parser = {.table = table, .text = text, .next = text, .error = error};
    Ratio ratio = srepr_expression(&parser);
    *out = ratio.top;
    if (parser.status == FERRY_OK && ratio.bottom != 1) srepr_fail(&parser, "no whole number");
    if (parser.status == FERRY_OK && *parser.next) srepr_fail(&parser, "unexpected text");
    return parser.status;
}

/* ---- records ---- */

ferry_status schema_sym(SymTable *table, const Doc *json, const Sym **out, ferry_error *error) {
    const Doc *number = doc_get(json, "as_int");
    const Doc *expression = doc_get(json, "as_expr");
    const Doc *text = doc_get(expression, "expr_str");
    const Doc *hint = doc_get(doc_get(expression, "hint"), "as_int");
    if (doc_is_integer(number))
        *out = sym_const(table, doc_integer(number));
    else if (doc_is_text(text))
        TRY(parse_srepr(table, doc_text(text), out, error));
    if (table->overflow) {
        return error_set(error, FERRY_BAD_FORMAT, "symbolic size",
                         "a number that does not fit 64 bits, or a division by 0");
    }
    if (doc_is_integer(hint) && doc_is_text(text) && (*out)->kind == SYM_SYMBOL)
        sym_set_sample(table, *out, doc_integer(hint));
    if (doc_is_integer(number) || doc_is_text(text)) return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, "symbolic size",
                     "expected {\"as_int\": ...} or {\"as_expr\": {\"expr_str\": ...}}, found %s",
                     doc_kind(json));
}

static ferry_status read_syms(SymTable *table, const Doc *list, const Sym **out, size_t count,
                              ferry_error *error) {
    for (size_t i = 0; i < count; i++) TRY(schema_sym(table, doc_item(list, i), &out[i], error));
    return FERRY_OK;
}

/* Complex numbers are pairs of real ones: a last dimension of 2. */
static const struct {
    int64_t number;
    ferry_dtype part;
} complex_types[] = {{9, FERRY_F16}, {10, FERRY_F32}, {11, FERRY_F64}};

static ferry_dtype complex_part(const Doc *json) {
    int64_t number = doc_integer(doc_get(json, "dtype"));
    for (size_t i = 0; i < sizeof complex_types / sizeof *complex_types; i++) {
        if (complex_types[i].number == number) return complex_types[i].part;
    }
    return FERRY_DTYPE_NONE;
}

bool schema_is_complex(const Doc *json) {
    return complex_part(json) != FERRY_DTYPE_NONE;
}

static void add_parts(SymTable *table, const Doc *json, TensorMeta *meta) {
    const Sym *two = sym_const(table, 2);
    for (uint32_t d = 0; d < meta->rank; d++)
        meta->strides[d] = sym_mul(table, meta->strides[d], two);
    meta->dtype = complex_part(json);
    meta->sizes[meta->rank] = two;
    meta->strides[meta->rank++] = sym_const(table, 1);
    meta->offset = sym_mul(table, meta->offset, two);
}

ferry_status schema_tensor(SymTable *table, const Doc *json, const char *name, TensorMeta *out,
                           ferry_error *error) {
    const Doc *sizes = doc_get(json, "sizes"), *strides = doc_get(json, "strides");
    size_t rank = doc_count(sizes);
    *out = (TensorMeta){.dtype = scalar_type_dtype(doc_integer(doc_get(json, "dtype")))};
    if (!doc_is_array(sizes) || doc_count(strides) != rank) {
        return error_set(error, FERRY_BAD_FORMAT, name,
                         "expected a tensor type with \"sizes\" and \"strides\" of one length");
    }
    if (rank + schema_is_complex(json) > FERRY_MAX_RANK) {
        return error_set(error, FERRY_UNSUPPORTED, name, "a tensor of rank %zu (at most %d)", rank,
                         FERRY_MAX_RANK);
    }
    out->rank = (uint32_t)rank;
    out->offset = sym_const(table, 0);
    TRY(read_syms(table, sizes, out->sizes, rank, error));
    TRY(read_syms(table, strides, out->strides, rank, error));
    const Doc *offset = doc_get(json, "storage_offset");
    if (offset) TRY(schema_sym(table, offset, &out->offset, error));
    if (schema_is_complex(json)) add_parts(table, json, out);
    return FERRY_OK;
}

/* torch writes some strides as what they are with sizes above 1, others not: Min(6, 6 * s0). They are
 * compared at sizes at which different ones differ. */
static bool same_stride(const SymTable *table, const Sym *a, const Sym *b) {
    int64_t *values, first = 0, second = 1;
    size_t count = table->symbols.count;
    if (a == b || (sym_is_const(a) && sym_is_const(b))) return a == b;
    values = calloc(count + 1, sizeof *values);
    for (size_t i = 0; values && i < count; i++) {
        const Sym *symbol = table->symbols.items[i];
        int64_t value = 101 + 2 * (int64_t)i;
        value = value < symbol->lower ? symbol->lower : value;
        values[i] = value > symbol->upper ? symbol->upper : value;
    }
    bool same = values && sym_evaluate(a, values, &first) && sym_evaluate(b, values, &second) &&
                first == second;
    free(values);
    return same;
}

bool schema_is_contiguous(SymTable *table, const TensorMeta *meta) {
    const Sym *stride = sym_const(table, 1);
    for (uint32_t d = meta->rank; d-- > 0;) {
        if (!sym_is_value(meta->sizes[d], 1) && !same_stride(table, meta->strides[d], stride))
            return false;
        stride = sym_mul(table, stride, meta->sizes[d]);
    }
    return true;
}

bool schema_same_strides(const SymTable *table, const TensorMeta *a, const TensorMeta *b) {
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = same_stride(table, a->strides[d], b->strides[d]);
    return same;
}
