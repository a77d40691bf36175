/* JSON of the parts that torch's schema is made of: text, numbers, expressions, types of tensors. */
#include "format/scalar_type.h"
#include "target/dynamo/serialize.h"

#include <inttypes.h>
#include <math.h>

void json_number(Buffer *out, double number) {
    if (isnan(number))
        buffer_text(out, "\"NaN\"");
    else if (isinf(number))
        buffer_text(out, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else if (number == floor(number) && fabs(number) < 1e15)
        buffer_format(out, "%.1f", number);
    else
        buffer_format(out, "%.17g", number);
}

/* SymPy's srepr. */
static void print_srepr(Serializer *s, Buffer *out, const Sym *sym) {
    static const char *const names[] = {
        [SYM_SUM] = "Add", [SYM_PRODUCT] = "Mul", [SYM_FLOORDIV] = "FloorDiv",
        [SYM_MOD] = "Mod", [SYM_MIN] = "Min",     [SYM_MAX] = "Max",
    };
    if (sym->kind == SYM_CONST) {
        buffer_format(out, "Integer(%" PRId64 ")", sym->value);
        return;
    }
    if (sym->kind == SYM_SYMBOL) {
        const char *name = s->symbol_names[sym->value];
        buffer_format(out, "Symbol('%s', %sinteger=True)", name,
                      *name == 'u' ? "" : "positive=True, ");
        return;
    }
    /* torch's Mod is for dividends that are not negative. */
    bool is_python = sym->kind == SYM_MOD && sym->operands[0]->lower < 0;
    bool neutral = sym->kind == SYM_PRODUCT ? sym->value == 1 : sym->value == 0;
    buffer_format(out, "%s(", is_python ? "PythonMod" : names[sym->kind]);
    if (!neutral) buffer_format(out, "Integer(%" PRId64 ")", sym->value);
    for (uint32_t i = 0; i < sym->count; i++) {
        if (i || !neutral) buffer_text(out, ", ");
        print_srepr(s, out, sym->operands[i]);
    }
    buffer_text(out, ")");
}

/* Whether a size depends on data: then torch has no example of it. */
static bool is_unbacked(const Serializer *s, const Sym *sym) {
    if (sym->kind == SYM_SYMBOL) return *s->symbol_names[sym->value] == 'u';
    for (uint32_t i = 0; i < sym->count; i++) {
        if (is_unbacked(s, sym->operands[i])) return true;
    }
    return false;
}

/* An expression with its value at the sample sizes: torch's tools decide what they cannot prove by it. */
void json_sym(Serializer *s, Buffer *out, const Sym *sym) {
    if (sym_is_const(sym)) {
        buffer_format(out, "{\"as_int\": %" PRId64 "}", sym->value);
        return;
    }
    buffer_text(out, "{\"as_expr\": {\"expr_str\": \"");
    print_srepr(s, out, sym);
    if (is_unbacked(s, sym))
        buffer_text(out, "\", \"hint\": null}}");
    else
        buffer_format(out, "\", \"hint\": {\"as_int\": %" PRId64 "}}}", symbols_sample(s, sym));
}

static void json_syms(Serializer *s, Buffer *out, uint32_t count, const Sym *const *items) {
    buffer_text(out, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buffer_text(out, ", ");
        json_sym(s, out, items[i]);
    }
    buffer_text(out, "]");
}

void json_tensor_meta(Serializer *s, Buffer *out, const Value *value, bool requires_grad) {
    buffer_format(out, "{\"dtype\": %" PRId64 ", \"sizes\": ", scalar_type_number(value->dtype));
    json_syms(s, out, value->rank, value->shape);
    buffer_format(out,
                  ", \"requires_grad\": %s, \"device\": {\"type\": \"cpu\", \"index\": null}, "
                  "\"strides\": ",
                  requires_grad ? "true" : "false");
    json_syms(s, out, value->rank, s->strides[value->id]);
    buffer_text(out, ", \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}");
}
