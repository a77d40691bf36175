/* Arguments of a node, by name. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Value *take_fail(Call *c, ferry_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vformat(&c->r->pt2->arena, format, args);
    va_end(args);
    const Doc *outer = c->r->node;
    c->r->node = c->node;
    reader_fail(c->r, status, "%s", text);
    c->r->node = outer;
    return &c->b->poison;
}

const Doc *take_arg(Call *c, const char *name) {
    const Doc *inputs = doc_get(c->node, "inputs"), *input;
    size_t i;
    DOC_EACH_ITEM(inputs, i, input) {
        const char *found = doc_text(doc_get(input, "name"));
        if (found && strcmp(found, name) == 0) return doc_get(input, "arg");
    }
    return NULL;
}

bool take_has(Call *c, const char *name) {
    const Doc *arg = take_arg(c, name);
    return arg && !doc_get(arg, "as_none");
}

/* The one key of an argument's union is `key`: its value; else NULL. */
static const Doc *member(const Doc *arg, const char *key) {
    return doc_get(arg, key);
}

static void wrong_kind(Call *c, const char *name, const char *expected) {
    take_fail(c, FERRY_BAD_FORMAT, "expected the argument \"%s\" to be %s", name, expected);
}

const char *take_tensor_name(Call *c, const char *name) {
    const Doc *arg = take_arg(c, name), *number = member(arg, "as_sym_float");
    if (number) return doc_text(doc_get(number, "as_name"));
    return doc_text(doc_get(member(arg, "as_tensor"), "name"));
}

bool take_is_tensor(Call *c, const char *name) {
    return take_tensor_name(c, name) != NULL;
}

Value *take_optional_tensor(Call *c, const char *name) {
    const char *tensor = take_tensor_name(c, name);
    if (tensor) return reader_read(c->r, tensor);
    /* An optional tensor may be wrapped once more. */
    const Doc *wrapped = member(take_arg(c, name), "as_optional_tensor");
    tensor = doc_text(doc_get(member(wrapped, "as_tensor"), "name"));
    return tensor ? reader_read(c->r, tensor) : NULL;
}

Value *take_tensor(Call *c, const char *name) {
    Value *value = take_optional_tensor(c, name);
    if (value) return value;
    wrong_kind(c, name, "a tensor");
    return &c->b->poison;
}

Value *take_self(Call *c) {
    return take_tensor(c, "self");
}

/* ---- numbers ---- */

/* {"as_int": 3} or {"as_name": "sym_size_int"}, or {"as_sym_int": ...} around one of them. */
static const Sym *read_sym(Call *c, const char *name, const Doc *arg) {
    const Doc *inner = member(arg, "as_sym_int");
    if (inner) arg = inner;
    const Doc *number = member(arg, "as_int"), *symbol = member(arg, "as_name");
    if (doc_is_integer(number)) return build_const(c->b, doc_integer(number));
    if (doc_is_text(symbol)) {
        const Sym *found = map_find(&c->r->sizes, doc_text(symbol));
        if (found) return found;
        take_fail(c, FERRY_BAD_FORMAT, "the size \"%s\" is not defined", doc_text(symbol));
    } else {
        wrong_kind(c, name, "an integer");
    }
    return build_const(c->b, 1);
}

const Sym *take_sym(Call *c, const char *name, int64_t otherwise) {
    return take_has(c, name) ? read_sym(c, name, take_arg(c, name)) : build_const(c->b, otherwise);
}

int64_t take_int(Call *c, const char *name, int64_t otherwise) {
    const Sym *sym = take_sym(c, name, otherwise);
    if (!sym_is_const(sym)) {
        take_fail(c, FERRY_UNSUPPORTED, "the argument \"%s\" must be a constant", name);
        return otherwise;
    }
    return sym->value;
}

uint32_t take_dim(Call *c, const char *name, int64_t otherwise, uint32_t rank) {
    int64_t dim = take_int(c, name, otherwise);
    if (dim < 0) dim += rank;
    if (dim >= 0 && dim < (rank ? rank : 1)) return (uint32_t)dim;
    take_fail(c, FERRY_BAD_FORMAT, "dimension %lld is outside a tensor of rank %u", (long long)dim,
              rank);
    return 0;
}

/* Non-finite numbers are strings. */
static bool read_number(const Doc *json, double *out) {
    const char *text = doc_text(json);
    if (doc_is_number(json))
        *out = doc_number(json);
    else if (text && strcmp(text, "Infinity") == 0)
        *out = INFINITY;
    else if (text && strcmp(text, "-Infinity") == 0)
        *out = -INFINITY;
    else if (text && strcmp(text, "NaN") == 0)
        *out = NAN;
    else
        return false;
    return true;
}

Arg take_scalar(Call *c, const char *name) {
    const Doc *arg = take_arg(c, name);
    double number;
    if (!take_has(c, name)) return arg_none();
    if (member(arg, "as_bool")) return arg_bool(doc_bool(member(arg, "as_bool")));
    if (member(arg, "as_float") && read_number(member(arg, "as_float"), &number))
        return arg_float(number);
    const Doc *known = doc_get(member(arg, "as_sym_float"), "as_float");
    if (known && read_number(known, &number)) return arg_float(number);
    if (member(arg, "as_int") || member(arg, "as_sym_int")) return arg_sym(read_sym(c, name, arg));
    wrong_kind(c, name, "a number");
    return arg_float(0);
}

double take_float(Call *c, const char *name, double otherwise) {
    Arg scalar = take_scalar(c, name);
    switch (scalar.kind) {
    case VALUE_FLOAT: return scalar.number;
    case VALUE_BOOL: return scalar.boolean;
    case VALUE_INT: return (double)take_int(c, name, 0);
    default: return otherwise;
    }
}

bool take_bool(Call *c, const char *name, bool otherwise) {
    const Doc *value = member(take_arg(c, name), "as_bool");
    return value ? doc_bool(value) : otherwise;
}

const char *take_string(Call *c, const char *name, const char *otherwise) {
    const char *value = doc_text(member(take_arg(c, name), "as_string"));
    return value ? value : otherwise;
}

/* ---- lists ---- */

static uint32_t list_length(Call *c, const char *name, const Doc *list, uint32_t most) {
    size_t length = doc_count(list);
    if (length <= most) return (uint32_t)length;
    take_fail(c, FERRY_UNSUPPORTED, "the argument \"%s\" has %zu entries, at most %u are supported",
              name, length, most);
    return 0;
}

uint32_t take_syms(Call *c, const char *name, const Sym **out, uint32_t most) {
    const Doc *arg = take_arg(c, name);
    if (!take_has(c, name)) return 0;
    const Doc *plain = member(arg, "as_ints"), *symbolic = member(arg, "as_sym_ints");
    if (!plain && !symbolic) {
        out[0] = read_sym(c, name, arg);
        return 1;
    }
    const Doc *list = plain ? plain : symbolic;
    uint32_t length = list_length(c, name, list, most);
    for (uint32_t i = 0; i < length; i++) {
        const Doc *entry = doc_item(list, i);
        out[i] = plain ? build_const(c->b, doc_integer(entry)) : read_sym(c, name, entry);
    }
    return length;
}

uint32_t take_ints(Call *c, const char *name, int64_t *out, uint32_t most) {
    const Sym *syms[64];
    uint32_t length = take_syms(c, name, syms, most < 64 ? most : 64);
    for (uint32_t i = 0; i < length; i++) {
        out[i] = syms[i]->value;
        if (sym_is_const(syms[i])) continue;
        take_fail(c, FERRY_UNSUPPORTED, "the argument \"%s\" must hold constants", name);
    }
    return length;
}

uint32_t take_tensors(Call *c, const char *name, Value **out, uint32_t most) {
    const Doc *arg = take_arg(c, name);
    const Doc *list = member(arg, "as_tensors"), *optional = member(arg, "as_optional_tensors");
    if (!list && !optional) {
        wrong_kind(c, name, "a list of tensors");
        return 0;
    }
    uint32_t length = list_length(c, name, list ? list : optional, most);
    for (uint32_t i = 0; i < length; i++) {
        const Doc *entry = doc_item(list ? list : optional, i);
        if (optional) entry = member(entry, "as_tensor");
        const char *tensor = doc_text(doc_get(entry, "name"));
        out[i] = tensor ? reader_read(c->r, tensor) : NULL;
        if (!tensor && list) wrong_kind(c, name, "a list of tensors");
    }
    return length;
}

/* ---- results ---- */

/* The names of all results, flattened: a list-returning op has one entry with a list. */
static const Doc *output_at(Call *c, uint32_t index) {
    const Doc *outputs = doc_get(c->node, "outputs");
    const Doc *first = doc_item(outputs, 0);
    const Doc *list = member(first, "as_tensors");
    if (list) return doc_item(list, index);
    return member(doc_item(outputs, index), "as_tensor");
}

uint32_t result_count(Call *c) {
    const Doc *outputs = doc_get(c->node, "outputs");
    const Doc *list = member(doc_item(outputs, 0), "as_tensors");
    return (uint32_t)doc_count(list ? list : outputs);
}

const char *result_name(Call *c, uint32_t index) {
    return doc_text(doc_get(output_at(c, index), "name"));
}

TensorMeta result_meta(Call *c, uint32_t index) {
    const char *name = result_name(c, index);
    if (name) return reader_meta(c->r, name);
    take_fail(c, FERRY_BAD_FORMAT, "expected output %u to be a tensor", index);
    return (TensorMeta){.dtype = FERRY_F32};
}

ferry_dtype result_dtype(Call *c) {
    ferry_dtype dtype = result_meta(c, 0).dtype;
    if (dtype) return dtype;
    take_fail(c, FERRY_UNSUPPORTED, "the result has a dtype that is not supported");
    return FERRY_F32;
}

void result_set(Call *c, uint32_t index, Value *value) {
    if (index >= CALL_MAX_RESULTS) {
        take_fail(c, FERRY_UNSUPPORTED, "more than %d results", CALL_MAX_RESULTS);
        return;
    }
    c->results[index] = value;
    if (index >= c->result_count) c->result_count = index + 1;
}
