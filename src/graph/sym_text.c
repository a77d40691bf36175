/* Printing and parsing of symbolic integers, in the syntax of torch.export. */
#include "base/error.h"
#include "graph/sym.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

/* A factor: parenthesized when it is a sum. */
static void print_factor(Buffer *buffer, const Sym *sym) {
    bool parenthesized = sym->kind == SYM_SUM || sym->kind == SYM_PRODUCT;
    if (parenthesized) buffer_text(buffer, "(");
    sym_print(buffer, sym);
    if (parenthesized) buffer_text(buffer, ")");
}

static void print_product(Buffer *buffer, int64_t scale, const Sym *sym) {
    const char *separator = "";
    if (scale == -1)
        buffer_text(buffer, "-");
    else if (scale != 1) {
        buffer_format(buffer, "%" PRId64, scale);
        separator = "*";
    }
    if (sym->kind != SYM_PRODUCT) {
        buffer_text(buffer, separator);
        print_factor(buffer, sym);
        return;
    }
    for (uint32_t i = 0; i < sym->count; i++) {
        uint32_t power = 1;
        while (i + 1 < sym->count && sym->operands[i + 1] == sym->operands[i]) i++, power++;
        buffer_text(buffer, separator);
        print_factor(buffer, sym->operands[i]);
        if (power > 1) buffer_format(buffer, "**%u", power);
        separator = "*";
    }
}

static void print_call(Buffer *buffer, const char *name, const Sym *sym) {
    buffer_format(buffer, "%s(", name);
    for (uint32_t i = 0; i < sym->count; i++) {
        if (i) buffer_text(buffer, ", ");
        sym_print(buffer, sym->operands[i]);
    }
    buffer_text(buffer, ")");
}

static void print_sum(Buffer *buffer, const Sym *sym) {
    for (uint32_t i = 0; i < sym->count; i++) {
        const Sym *term = sym->operands[i];
        int64_t scale = term->kind == SYM_PRODUCT ? term->value : 1;
        if (i) buffer_text(buffer, scale < 0 ? " - " : " + ");
        print_product(buffer, i && scale < 0 ? -scale : scale, term);
    }
    if (sym->value > 0) buffer_format(buffer, " + %" PRId64, sym->value);
    if (sym->value < 0) buffer_format(buffer, " - %" PRId64, -sym->value);
}

void sym_print(Buffer *buffer, const Sym *sym) {
    switch (sym->kind) {
    case SYM_CONST: buffer_format(buffer, "%" PRId64, sym->value); break;
    case SYM_SYMBOL: buffer_text(buffer, sym->name); break;
    case SYM_SUM: print_sum(buffer, sym); break;
    case SYM_PRODUCT: print_product(buffer, sym->value, sym); break;
    case SYM_FLOORDIV:
        buffer_text(buffer, "((");
        print_factor(buffer, sym->operands[0]);
        buffer_text(buffer, "//");
        print_factor(buffer, sym->operands[1]);
        buffer_text(buffer, "))");
        break;
    case SYM_MOD: print_call(buffer, "Mod", sym); break;
    case SYM_MIN: print_call(buffer, "Min", sym); break;
    case SYM_MAX: print_call(buffer, "Max", sym); break;
    }
}

/* ---- parsing, with Python's precedence: sum := product (("+"|"-") product)*,
 *      product := unary (("*"|"//") unary)*, unary := "-" unary | power,
 *      power := primary ("**" unary)?,
 *      primary := integer | name | name "(" sum ("," sum)* ")" | "(" sum ")" ---- */

enum { MAX_DEPTH = 200, MAX_TEXT = 4096 };

typedef struct Parser {
    SymTable *table;
    const char *text, *next;
    bool create_symbols;
    int depth;
    ferry_error *error;
    ferry_status status;
} Parser;

static const Sym *parse_sum(Parser *p);

static const Sym *parse_fail(Parser *p, const char *problem) {
    if (p->table->overflow) {
        problem = "a value does not fit 64 bits, a divisor is 0, or it is too complex";
    }
    if (p->status == FERRY_OK) {
        p->status = error_set(p->error, FERRY_BAD_FORMAT, p->text,
                              "cannot read this symbolic size: %s at column %d", problem,
                              (int)(p->next - p->text) + 1);
    }
    return sym_const(p->table, 0);
}

static bool accept(Parser *p, const char *token) {
    while (isspace((unsigned char)*p->next)) p->next++;
    size_t length = strlen(token);
    if (strncmp(p->next, token, length) != 0) return false;
    p->next += length;
    return true;
}

typedef const Sym *(*SymFunction)(SymTable *, const Sym *, const Sym *);

static const struct {
    const char *name;
    SymFunction apply;
    bool variadic;
} functions[] = {
    {"Mod", sym_mod, false},
    {"PythonMod", sym_mod, false},
    {"FloorDiv", sym_floordiv, false},
    {"CleanDiv", sym_floordiv, false},
    {"Min", sym_min, true},
    {"Max", sym_max, true},
};

static const Sym *parse_call(Parser *p, const char *name, size_t length) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strlen(functions[i].name) != length || memcmp(functions[i].name, name, length) != 0) {
            continue;
        }
        const Sym *result = parse_sum(p);
        int count = 1;
        while (p->status == FERRY_OK && accept(p, ",")) {
            result = functions[i].apply(p->table, result, parse_sum(p));
            count++;
        }
        if (count < 2 || (count > 2 && !functions[i].variadic)) {
            return parse_fail(p, "wrong number of arguments");
        }
        return accept(p, ")") ? result : parse_fail(p, "expected ')'");
    }
    return parse_fail(p, "unknown function");
}

static const Sym *parse_primary(Parser *p) {
    if (accept(p, "(")) {
        const Sym *inner = parse_sum(p);
        return accept(p, ")") ? inner : parse_fail(p, "expected ')'");
    }
    if (isdigit((unsigned char)*p->next)) {
        char *end;
        errno = 0;
        long long value = strtoll(p->next, &end, 10);
        if (errno) return parse_fail(p, "the number does not fit 64 bits");
        p->next = end;
        return sym_const(p->table, value);
    }
    const char *name = p->next;
    while (isalnum((unsigned char)*p->next) || *p->next == '_' || *p->next == '.') p->next++;
    size_t length = (size_t)(p->next - name);
    if (length == 0) return parse_fail(p, "expected a number, a name or '('");
    if (accept(p, "(")) return parse_call(p, name, length);
    const char *symbol = arena_string_n(p->table->arena, name, length);
    if (!p->create_symbols && !sym_lookup(p->table, symbol)) return parse_fail(p, "unknown symbol");
    return sym_symbol(p->table, symbol, 0, SYM_UNBOUNDED);
}

static const Sym *parse_unary(Parser *p);

static const Sym *parse_power(Parser *p) {
    const Sym *base = parse_primary(p);
    if (!accept(p, "**")) return base;
    const Sym *exponent = parse_unary(p);
    if (!sym_is_const(exponent) || exponent->value < 0 || exponent->value > SYM_MAX_SIZE) {
        return parse_fail(p, "expected an exponent of 0 or more");
    }
    const Sym *result = sym_const(p->table, 1);
    for (int64_t i = 0; i < exponent->value; i++) result = sym_mul(p->table, result, base);
    return result;
}

static const Sym *parse_unary(Parser *p) {
    if (p->status != FERRY_OK) return sym_const(p->table, 0);
    if (++p->depth > MAX_DEPTH) return parse_fail(p, "the expression is nested too deeply");
    const Sym *result;
    if (accept(p, "-"))
        result = sym_mul(p->table, sym_const(p->table, -1), parse_unary(p));
    else
        result = parse_power(p);
    p->depth--;
    return result;
}

/* Nothing went wrong so far. */
static bool parse_ok(const Parser *p) {
    return p->status == FERRY_OK && !p->table->overflow;
}

static const Sym *parse_product(Parser *p) {
    const Sym *result = parse_unary(p);
    while (parse_ok(p)) {
        if (accept(p, "//"))
            result = sym_floordiv(p->table, result, parse_unary(p));
        else if (accept(p, "*"))
            result = sym_mul(p->table, result, parse_unary(p));
        else
            break;
    }
    return result;
}

static const Sym *parse_sum(Parser *p) {
    const Sym *result = parse_product(p);
    while (parse_ok(p)) {
        if (accept(p, "+"))
            result = sym_add(p->table, result, parse_product(p));
        else if (accept(p, "-"))
            result = sym_sub(p->table, result, parse_product(p));
        else
            break;
    }
    return result;
}

/* Multiplied out, would it be too long to be read again? Only products of sums grow so. */
static bool is_too_long(const char *text, const Sym *sym) {
    if (strlen(text) <= 64 && sym->count <= 64) return false;
    Buffer printed = {0};
    sym_print(&printed, sym);
    bool result = printed.length > MAX_TEXT;
    buffer_free(&printed);
    return result;
}

ferry_status sym_parse(SymTable *table, const char *text, bool create_symbols, const Sym **out,
                       ferry_error *error) {
    Parser parser = {.table = table,
                     .text = text,
                     .next = text,
                     .create_symbols = create_symbols,
                     .error = error};
    bool overflowed = table->overflow;
    table->overflow = false;
    *out = strlen(text) > MAX_TEXT ? parse_fail(&parser, "it is too long") : parse_sum(&parser);
    accept(&parser, "");
    if (*parser.next || table->overflow)
        parse_fail(&parser, "unexpected text");
    else if (parser.status == FERRY_OK && is_too_long(text, *out))
        parse_fail(&parser, "it is too long when multiplied out");
    table->overflow = overflowed;
    return parser.status;
}
