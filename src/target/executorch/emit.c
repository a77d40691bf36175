#include "target/executorch/emit.h"
#include "base/error.h"
#include "target/executorch/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

ferry_status pte_fail(Pte *p, ferry_status status, const char *format, ...) {
    if (p->status != FERRY_OK) return p->status;
    const char *where = p->node && *p->node->scope ? p->node->scope : p->program->architecture;
    va_list args;
    va_start(args, format);
    p->status = error_set(p->error, status, where, "%s", arena_vformat(&p->arena, format, args));
    va_end(args);
    return p->status;
}

/* ---- the table of values ---- */

static PteValue add(Pte *p, Slot slot) {
    slot.base = slot.onto = -1;
    VEC_PUSH(&p->slots, slot);
    return (PteValue)p->slots.count - 1;
}

/* The value that was remembered under this key, or -1. */
static PteValue recall(const Pte *p, const void *key, size_t length) {
    const PteValue *known = map_get(&p->known, key, length);
    return known ? *known : -1;
}

static PteValue remember(Pte *p, const void *key, size_t length, PteValue value) {
    void *copy = arena_copy(&p->arena, key, length);
    PteValue *entry = arena_copy(&p->arena, &value, sizeof value);
    if (copy && entry) map_set(&p->known, copy, length, entry);
    return value;
}

/* Scalars of equal kind and bits are one value. */
static PteValue scalar(Pte *p, SlotKind kind, uint64_t bits, Slot slot) {
    const uint64_t key[] = {kind, bits};
    PteValue known = recall(p, key, sizeof key);
    slot.kind = kind;
    return known >= 0 ? known : remember(p, key, sizeof key, add(p, slot));
}

PteValue pte_null(Pte *p) {
    return scalar(p, SLOT_NULL, 0, (Slot){0});
}

PteValue pte_int(Pte *p, int64_t value) {
    return scalar(p, SLOT_INT, (uint64_t)value, (Slot){.integer = value});
}

PteValue pte_bool(Pte *p, bool value) {
    return scalar(p, SLOT_BOOL, value, (Slot){.integer = value});
}

PteValue pte_double(Pte *p, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return scalar(p, SLOT_DOUBLE, bits, (Slot){.number = value});
}

PteValue pte_string(Pte *p, const char *text) {
    return add(p, (Slot){.kind = SLOT_STRING, .string = text});
}

PteValue pte_doubles(Pte *p, const double *numbers, uint32_t count) {
    const double *copy = arena_copy(&p->arena, numbers, count * sizeof *numbers);
    return add(p, (Slot){.kind = SLOT_DOUBLES, .numbers = copy, .count = count});
}

PteValue pte_list(Pte *p, SlotKind kind, const PteValue *items, uint32_t count) {
    Buffer key = {0};
    PteValue value = 0;
    buffer_text(&key, "list");
    buffer_append(&key, &kind, sizeof kind);
    buffer_append(&key, items, count * sizeof *items);
    if (key.failed) {
        pte_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    } else {
        value = recall(p, key.bytes, key.length);
        if (value < 0) {
            PteValue *copy = arena_copy(&p->arena, items, count * sizeof *items);
            value = add(p, (Slot){.kind = kind, .items = copy, .count = count});
            remember(p, key.bytes, key.length, value);
        }
    }
    buffer_free(&key);
    return value;
}

/* ---- sizes ---- */

PteValue pte_computed(Pte *p) {
    return add(p, (Slot){.kind = SLOT_INT});
}

static PteValue symbol_size(Pte *p, const Sym *sym) {
    const Dimension *dimension = &p->dimensions[sym->value];
    if (!dimension->value) {
        pte_fail(p, FERRY_UNSUPPORTED, "no input has the size \"%s\"", sym->name);
        return 0;
    }
    PteValue from = pte_value(p, dimension->value), result = pte_computed(p);
    if (dimension->dim < 0)
        pte_call(p, "aten::_local_scalar_dense", ARGS(from, result));
    else
        pte_call(p, "aten::sym_size.int", ARGS(from, pte_int(p, dimension->dim), result));
    return result;
}

/* The kernel's remainder has the sign of the dividend: what may be negative is reduced with the quotient. */
static PteValue remainder_size(Pte *p, const Sym *sym) {
    PteValue a = pte_size(p, sym->operands[0]), b = pte_size(p, sym->operands[1]);
    PteValue quotient = pte_computed(p), whole = pte_computed(p), rest = pte_computed(p);
    if (sym->operands[0]->lower >= 0 && sym->operands[1]->lower >= 0) {
        pte_call(p, "executorch_prim::mod.Scalar", ARGS(a, b, rest));
        return rest;
    }
    pte_call(p, "executorch_prim::floordiv.Scalar", ARGS(a, b, quotient));
    pte_call(p, "executorch_prim::mul.Scalar", ARGS(quotient, b, whole));
    pte_call(p, "executorch_prim::sub.Scalar", ARGS(a, whole, rest));
    return rest;
}

static PteValue compound_size(Pte *p, const Sym *sym) {
    static const char *const kernels[] = {
        [SYM_SUM] = "executorch_prim::add.Scalar",
        [SYM_PRODUCT] = "executorch_prim::mul.Scalar",
        [SYM_FLOORDIV] = "executorch_prim::floordiv.Scalar",
        [SYM_MIN] = "executorch_prim::sym_min.Scalar",
        [SYM_MAX] = "executorch_prim::sym_max.Scalar",
    };
    const char *kernel = kernels[sym->kind];
    if (sym->kind == SYM_MOD) return remainder_size(p, sym);
    PteValue result = pte_size(p, sym->operands[0]);
    for (uint32_t i = 1; i < sym->count; i++) {
        PteValue next = pte_size(p, sym->operands[i]), joined = pte_computed(p);
        pte_call(p, kernel, ARGS(result, next, joined));
        result = joined;
    }
    bool neutral = sym->kind == SYM_SUM ? sym->value == 0 : sym->value == 1;
    if ((sym->kind != SYM_SUM && sym->kind != SYM_PRODUCT) || neutral) return result;
    PteValue joined = pte_computed(p);
    pte_call(p, kernel, ARGS(result, pte_int(p, sym->value), joined));
    return joined;
}

PteValue pte_size(Pte *p, const Sym *sym) {
    if (sym_is_const(sym)) return pte_int(p, sym->value);
    PteValue known = recall(p, &sym, sizeof sym);
    if (known >= 0) return known;
    PteValue value = sym->kind == SYM_SYMBOL ? symbol_size(p, sym) : compound_size(p, sym);
    return remember(p, &sym, sizeof sym, value);
}

PteValue pte_sizes(Pte *p, const Sym *const *sizes, uint32_t count) {
    PteValue *items = ARENA_ARRAY(&p->arena, PteValue, count);
    if (!items) return 0;
    for (uint32_t i = 0; i < count; i++) items[i] = pte_size(p, sizes[i]);
    return pte_list(p, SLOT_INTS, items, count);
}

PteValue pte_arg(Pte *p, const Arg *arg) {
    switch (arg->kind) {
    case VALUE_INT: return pte_size(p, arg->integer);
    case VALUE_INTS: return pte_sizes(p, arg->integers.items, arg->integers.count);
    case VALUE_FLOAT: return pte_double(p, arg->number);
    case VALUE_BOOL: return pte_bool(p, arg->boolean);
    case VALUE_TENSOR: return pte_value(p, arg->tensor);
    case VALUE_DTYPE: return pte_int(p, pte_dtype(arg->dtype));
    default: return pte_null(p);
    }
}

/* ---- tensors ---- */

PteValue pte_temp(Pte *p, ferry_dtype dtype, uint32_t rank, const Sym *const *shape) {
    if (pte_dtype(dtype) < 0) {
        pte_fail(p, FERRY_UNSUPPORTED, "ExecuTorch has no tensors of dtype %s",
                 ferry_dtype_name(dtype));
    }
    return add(p, (Slot){.kind = SLOT_TENSOR, .dtype = dtype, .rank = rank, .shape = shape});
}

void pte_bind(Pte *p, const Value *output, PteValue value) {
    p->values[output->id] = value + 1;
}

PteValue pte_varying(Pte *p, ferry_dtype dtype, uint32_t rank, const Sym *const *shape) {
    PteValue value = pte_temp(p, dtype, rank, shape);
    if (p->status == FERRY_OK) p->slots.items[value].varies = true;
    return value;
}

PteValue pte_output(Pte *p, const Value *value) {
    PteValue tensor = pte_temp(p, value->dtype, value->rank, value->shape);
    if (p->status == FERRY_OK && p->is_output[value->id]) {
        p->slots.items[tensor].unplanned = p->options->unplanned_outputs;
    }
    pte_bind(p, value, tensor);
    return tensor;
}

PteValue pte_recipe(Pte *p, char use, const Recipe *recipe, PteValue number) {
    Buffer key = {0};
    buffer_append(&key, &use, 1);
    buffer_append(&key, &recipe->dtype, sizeof recipe->dtype);
    buffer_append(&key, &recipe->dim, sizeof recipe->dim);
    for (uint32_t i = 0; i < recipe->part_count; i++) {
        const RecipePart *part = &recipe->parts[i];
        buffer_append(&key, &part->base, sizeof part->base);
        buffer_append(&key, &part->blocks, sizeof part->blocks);
        buffer_append(&key, &part->start, sizeof part->start);
        buffer_append(&key, &part->dtype, sizeof part->dtype);
        buffer_append(&key, part->shape, recipe->rank * sizeof *part->shape);
        buffer_append(&key, part->strides, recipe->rank * sizeof *part->strides);
    }
    PteValue known = key.failed ? -1 : recall(p, key.bytes, key.length);
    if (key.failed) pte_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    if (known < 0 && number >= 0 && !key.failed) remember(p, key.bytes, key.length, number);
    buffer_free(&key);
    return known;
}

/* The number of a recipe in the constant segment; equal ones are stored once. */
static uint32_t store(Pte *p, const Recipe *recipe) {
    PteValue known = pte_recipe(p, 'c', recipe, (PteValue)p->constants.count + 1);
    if (known >= 0) return (uint32_t)known;
    VEC_PUSH(&p->constants, recipe);
    return (uint32_t)p->constants.count;
}

PteValue pte_constant(Pte *p, const Recipe *recipe) {
    const Sym *shape[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < recipe->rank; d++) {
        shape[d] = sym_const(&p->program->symbols, recipe->shape[d]);
    }
    const Sym *const *copy = arena_copy(&p->arena, shape, recipe->rank * sizeof *shape);
    PteValue tensor = pte_temp(p, recipe->dtype, recipe->rank, copy);
    uint32_t constant = store(p, recipe);
    if (p->status == FERRY_OK) p->slots.items[tensor].constant = constant;
    return tensor;
}

/* A mutable buffer: in use from the first instruction on, and after the last one. The caller who gives the
 * memory finds what it holds at first under its name. */
static PteValue add_state(Pte *p, const Value *value) {
    PteValue tensor = pte_temp(p, value->dtype, value->rank, value->shape);
    if (p->status != FERRY_OK) return tensor;
    Slot *slot = &p->slots.items[tensor];
    slot->state = value;
    slot->used = true;
    slot->unplanned = p->options->unplanned_states;
    if (slot->unplanned) {
        VEC_PUSH(&p->named, (NamedData){value->name, value->recipe});
        return tensor;
    }
    PteValue known = pte_recipe(p, 'm', value->recipe, (PteValue)p->initials.count + 1);
    if (known < 0) VEC_PUSH(&p->initials, value->recipe);
    slot->initial = known < 0 ? (uint32_t)p->initials.count : (uint32_t)known;
    return tensor;
}

PteValue pte_value(Pte *p, const Value *value) {
    PteValue known = p->values[value->id] - 1;
    if (known >= 0) return known;
    if (!value->recipe) {
        pte_fail(p, FERRY_INTERNAL, "%s is read before it is made", value->name);
        return 0;
    }
    PteValue tensor =
        value->kind == VALUE_STATE ? add_state(p, value) : pte_constant(p, value->recipe);
    pte_bind(p, value, tensor);
    return tensor;
}

static bool is_static(const Slot *slot) {
    for (uint32_t d = 0; d < slot->rank; d++) {
        if (!sym_is_const(slot->shape[d])) return false;
    }
    return !slot->varies;
}

PteValue pte_view(Pte *p, PteValue from, uint32_t rank, const Sym *const *shape) {
    const Slot *base = &p->slots.items[from];
    PteValue view = pte_temp(p, base->dtype, rank, shape);
    if (p->status != FERRY_OK) return view;
    base = &p->slots.items[from];
    PteValue root = base->base >= 0 ? base->base : from;
    const Slot *memory = &p->slots.items[root];
    Slot *slot = &p->slots.items[view];
    slot->base = root;
    slot->constant = memory->constant;
    if (!base->unplanned && is_static(base) && is_static(slot)) return view;
    slot->constant = 0;
    slot->unplanned = true;
    pte_call(p, "executorch_prim::et_view.default", ARGS(from, pte_sizes(p, shape, rank), view));
    return view;
}

/* ---- weights of delegates ---- */

/* 64 bits that depend on the type and on the first elements: a name for what the weight holds. */
static uint64_t fingerprint(const Recipe *recipe) {
    unsigned char bytes[1024];
    uint64_t count = recipe_count(recipe), most = sizeof bytes / ferry_dtype_size(recipe->dtype);
    if (count > most) count = most;
    recipe_read(recipe, 0, count, bytes);
    uint64_t hash = 14695981039346656037u ^ recipe->dtype;
    for (size_t i = 0; i < count * ferry_dtype_size(recipe->dtype); i++) {
        hash = (hash ^ bytes[i]) * 1099511628211u;
    }
    for (uint32_t d = 0; d < recipe->rank; d++) {
        hash = (hash ^ (uint64_t)recipe->shape[d]) * 1099511628211u;
    }
    return hash;
}

/* Weights with equal recipes are one; the runtime may share them by name between programs. */
const char *pte_named(Pte *p, const Recipe *recipe, const char *name) {
    PteValue known = pte_recipe(p, 'n', recipe, (PteValue)p->named.count);
    if (known >= 0) return p->named.items[known].key;
    const char *key =
        arena_format(&p->arena, "%zu.%s.%016" PRIx64, p->named.count, name, fingerprint(recipe));
    VEC_PUSH(&p->named, (NamedData){key, recipe});
    return key;
}

/* ---- instructions ---- */

/* The memory of a tensor is in use by the instruction that is being added. */
static void touch(Pte *p, PteValue value) {
    Slot *slot = &p->slots.items[value];
    if (slot->kind == SLOT_TENSORS || slot->kind == SLOT_OPTIONAL_TENSORS) {
        for (uint32_t i = 0; i < slot->count; i++) {
            if (slot->items[i] >= 0) touch(p, slot->items[i]);
        }
        return;
    }
    if (slot->kind != SLOT_TENSOR) return;
    if (slot->base >= 0) slot = &p->slots.items[slot->base];
    uint32_t now = (uint32_t)p->instructions.count;
    if (!slot->used) slot->first = now;
    slot->used = true;
    slot->last = now;
}

/* Does the instruction ask for a size? It does not look at the elements. */
static bool is_size(const Pte *p, bool delegate, uint32_t callee) {
    return !delegate && strcmp(p->operators.items[callee], "aten::sym_size.int") == 0;
}

static void instruct(Pte *p, bool delegate, uint32_t callee, const PteValue *args, size_t count) {
    if (p->slots.failed) pte_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    if (p->status != FERRY_OK) return;
    for (size_t i = 0; i < count && !is_size(p, delegate, callee); i++) touch(p, args[i]);
    PteValue *copy = arena_copy(&p->arena, args, count * sizeof *args);
    VEC_PUSH(&p->instructions, (Instruction){delegate, callee, copy, (uint32_t)count});
}

uint32_t pte_operator(Pte *p, const char *kernel) {
    if (!kernel_exists(kernel)) {
        pte_fail(p, FERRY_UNSUPPORTED, "the ExecuTorch runtime has no kernel %s, which %s needs",
                 kernel, p->node ? op_name(p->node->op) : "the program");
        return 0;
    }
    PteValue known = recall(p, kernel, strlen(kernel));
    if (known >= 0) return (uint32_t)known;
    VEC_PUSH(&p->operators, kernel);
    return (uint32_t)remember(p, kernel, strlen(kernel), (PteValue)p->operators.count - 1);
}

void pte_call(Pte *p, const char *kernel, const PteValue *args, size_t count) {
    instruct(p, false, pte_operator(p, kernel), args, count);
}

PteValue pte_result(Pte *p, const char *kernel, PteValue result, const PteValue *args,
                    size_t count) {
    PteValue all[24];
    memcpy(all, args, count * sizeof *args);
    all[count] = all[count + 1] = result;
    pte_call(p, kernel, all, count + 2);
    return result;
}

void pte_delegate(Pte *p, Delegate delegate, const PteValue *args, size_t count) {
    VEC_PUSH(&p->delegates, delegate);
    instruct(p, true, (uint32_t)p->delegates.count - 1, args, count);
}
