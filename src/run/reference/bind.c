#include "run/reference/bind.h"

#include <string.h>

typedef struct Bind {
    Bindings *bindings;
    const char *input; /* at hand */
    uint32_t dim;
    ferry_error *error;
} Bind;

static ferry_status reject_size(const Bind *bind, const Sym *sym, int64_t expected, int64_t found) {
    Buffer text = {0};
    sym_print(&text, sym);
    ferry_status status =
        sym_is_const(sym)
            ? error_set(bind->error, FERRY_INVALID_ARGUMENT, bind->input,
                        "dimension %u: expected %lld, found %lld", bind->dim, (long long)expected,
                        (long long)found)
            : error_set(bind->error, FERRY_INVALID_ARGUMENT, bind->input,
                        "dimension %u (%s): expected %lld, as in the inputs before, found %lld",
                        bind->dim, buffer_string(&text), (long long)expected, (long long)found);
    buffer_free(&text);
    return status;
}

static ferry_status bind_symbol(const Bind *bind, const Sym *sym, int64_t value) {
    Bindings *bindings = bind->bindings;
    if (bindings->bound[sym->value]) {
        if (bindings->values[sym->value] == value) return FERRY_OK;
        return reject_size(bind, sym, bindings->values[sym->value], value);
    }
    if (value < sym->lower) {
        return error_set(bind->error, FERRY_INVALID_ARGUMENT, bind->input,
                         "dimension %u (%s): expected at least %lld, found %lld", bind->dim,
                         sym->name, (long long)sym->lower, (long long)value);
    }
    if (value > sym->upper) {
        return error_set(bind->error, FERRY_INVALID_ARGUMENT, bind->input,
                         "dimension %u (%s): expected at most %lld, found %lld", bind->dim,
                         sym->name, (long long)sym->upper, (long long)value);
    }
    bindings->values[sym->value] = value;
    bindings->bound[sym->value] = true;
    return FERRY_OK;
}

/* True when `sym`, or a term of it whose others are known, is factor * symbol; `offset` is the rest. */
static bool is_linear(const Bind *bind, const Sym *sym, const Sym **symbol, int64_t *factor,
                      int64_t *offset) {
    bool is_sum = sym->kind == SYM_SUM;
    const Sym *unknown = is_sum ? NULL : sym;
    *factor = 1;
    *offset = is_sum ? sym->value : 0;
    for (uint32_t i = 0; is_sum && i < sym->count; i++) {
        int64_t known;
        bool evaluated = bindings_evaluate(bind->bindings, sym->operands[i], &known);
        if (evaluated && __builtin_add_overflow(*offset, known, offset)) return false;
        if (!evaluated && unknown) return false;
        if (!evaluated) unknown = sym->operands[i];
    }
    if (unknown && unknown->kind == SYM_PRODUCT && unknown->count == 1) {
        *factor = unknown->value;
        unknown = unknown->operands[0];
    }
    *symbol = unknown;
    return unknown && unknown->kind == SYM_SYMBOL && *factor != 0;
}

/* The size of a dimension that is an expression: solve it for its symbol when that is unknown. */
static ferry_status bind_expression(const Bind *bind, const Sym *sym, int64_t found) {
    const Sym *symbol;
    int64_t factor, offset, expected, distance;
    if (bindings_evaluate(bind->bindings, sym, &expected)) {
        return expected == found ? FERRY_OK : reject_size(bind, sym, expected, found);
    }
    if (is_linear(bind, sym, &symbol, &factor, &offset) && !bind->bindings->bound[symbol->value] &&
        !__builtin_sub_overflow(found, offset, &distance) && distance % factor == 0) {
        return bind_symbol(bind, symbol, distance / factor);
    }
    Buffer text = {0};
    sym_print(&text, sym);
    ferry_status status = error_set(bind->error, FERRY_INVALID_ARGUMENT, bind->input,
                                    "dimension %u: %lld does not determine %s", bind->dim,
                                    (long long)found, buffer_string(&text));
    buffer_free(&text);
    return status;
}

static ferry_status check_type(const Value *value, const char *name, const ferry_tensor *tensor,
                               ferry_error *error) {
    if (!tensor) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name,
                         "the input is missing: expected %s of "
                         "rank %u",
                         ferry_dtype_name(value->dtype), value->rank);
    }
    if (tensor->dtype != value->dtype) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "expected %s, found %s",
                         ferry_dtype_name(value->dtype), ferry_dtype_name(tensor->dtype));
    }
    if (tensor->rank != value->rank) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "expected rank %u, found rank %zu",
                         value->rank, tensor->rank);
    }
    return FERRY_OK;
}

/* Plain numbers and symbols come first, for the expressions may need them. */
ferry_status bind_inputs(const Program *program, const ferry_tensors *inputs, Bindings *bindings,
                         ferry_error *error) {
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < program->inputs.count; i++) {
            const Port *port = &program->inputs.items[i];
            const ferry_tensor *tensor = ferry_tensors_find(inputs, port->name);
            Bind bind = {.bindings = bindings, .input = port->name, .error = error};
            TRY(check_type(port->value, port->name, tensor, error));
            for (; bind.dim < port->value->rank; bind.dim++) {
                const Sym *sym = port->value->shape[bind.dim];
                int64_t found = tensor->shape[bind.dim];
                if (sym->kind == SYM_SYMBOL)
                    TRY(bind_symbol(&bind, sym, found));
                else if (pass == 1 || sym_is_const(sym))
                    TRY(bind_expression(&bind, sym, found));
            }
        }
    }
    return FERRY_OK;
}
