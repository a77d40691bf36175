/* The table of values: what an index stands for while the instructions are followed.
 *
 * Tensors are known by their memory: one that no instruction writes has what was written last at its place
 * in the arena, in another shape. */
#include "source/executorch/reader.h"

#include "base/dtype.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>

bool pte_read_fail(Reader *r, ferry_status status, const char *format, ...) {
    if (!reader_ok(r)) return false;
    va_list args;
    va_start(args, format);
    const char *text = arena_vformat(&r->arena, format, args);
    va_end(args);
    const char *where = r->where ? r->where : "", *colon = r->where ? ": " : "";
    r->told = true;
    build_fail(&r->b, status, "%s", text);
    error_set(&r->problem, status, r->f.file->path, "%s%s%s", where, colon, text);
    return false;
}

/* ---- reading the table ---- */

static void read_tensor(Reader *r, PteSlot *slot) {
    FlatTable *table = &slot->table, place = flat_get_table(table, 6),
              extra = flat_get_table(table, 9);
    FlatVector sizes = flat_get_vector(table, 2, 4), order = flat_get_vector(table, 3, 1);
    int number = (int8_t)flat_get(table, 0, 1, 0);
    slot->dtype = pte_dtype_of(number);
    if (!slot->dtype) {
        pte_read_unsupported(r, "a tensor has ExecuTorch's element type %d", number);
        return;
    }
    if (sizes.count > FERRY_MAX_RANK || order.count != sizes.count) {
        pte_read_unsupported(
            r,
            "a tensor has %u sizes and %u dimensions in order; expected the same, at "
            "most %d",
            sizes.count, order.count, FERRY_MAX_RANK);
        return;
    }
    slot->rank = (uint32_t)sizes.count;
    for (uint32_t d = 0; d < slot->rank; d++) {
        slot->sizes[d] = (int32_t)flat_item(&sizes, d);
        if (slot->sizes[d] < 0) pte_read_bad(r, "a tensor has the size %" PRId64, slot->sizes[d]);
        if (flat_item(&order, d) != d) {
            pte_read_unsupported(r, "a tensor whose dimensions are in another order");
        }
    }
    if (flat_get(table, 1, 4, 0))
        pte_read_unsupported(r, "a tensor that begins inside of its memory");
    if (flat_get(&extra, 2, 1, 0)) pte_read_unsupported(r, "a weight in another file (.ptd)");
    slot->constant = (uint32_t)flat_get(table, 5, 4, 0);
    slot->dynamic = flat_get(table, 8, 1, 0) != PTE_STATIC;
    slot->place[0] = flat_get(&place, 0, 4, 0);
    slot->place[1] = flat_get(&place, 1, 4, 0) | flat_get(&place, 2, 4, 0) << 32;
    slot->state = flat_get_string(&extra, 1);
    if (slot->constant && slot->place[0]) {
        if (!slot->state) slot->state = "state";
        slot->initial = slot->constant;
        slot->constant = 0;
    }
    if (slot->state && slot->place[0]) map_set(&r->places, slot->place, sizeof slot->place, slot);
}

static void read_slot(Reader *r, PteSlot *slot, uint64_t index) {
    FlatTable entry = flat_item_table(&r->f.values, index);
    slot->kind = (SlotKind)flat_get(&entry, 0, 1, 0);
    slot->table = flat_get_table(&entry, 1);
    switch (slot->kind) {
    case SLOT_INT: {
        int64_t value = (int64_t)flat_get(&slot->table, 0, 8, 0);
        if (value == INT64_MIN) value++; /* minus infinity, to symbolic integers */
        slot->size = build_const(&r->b, value);
        break;
    }
    case SLOT_BOOL: slot->boolean = flat_get(&slot->table, 0, 1, 0) != 0; break;
    case SLOT_DOUBLE: slot->number = flat_get_double(&slot->table, 0); break;
    case SLOT_TENSOR: read_tensor(r, slot); break;
    default: break; /* read when it is used */
    }
}

bool pte_read_slots(Reader *r) {
    r->slots = ARENA_ARRAY(&r->arena, PteSlot, r->f.values.count);
    if (!r->slots) return pte_read_memory(r);
    for (size_t i = 0; i < r->f.values.count && reader_ok(r); i++) read_slot(r, &r->slots[i], i);
    if (r->f.program.failed) pte_read_bad(r, "a value of the table leads outside of the file");
    return reader_ok(r);
}

PteSlot *pte_read_slot(Reader *r, uint64_t index) {
    if (index < r->f.values.count) return &r->slots[index];
    pte_read_bad(r, "the value %" PRIu64 " is not in the table, which has %u", index,
                 r->f.values.count);
    return NULL;
}

PteSlot *pte_read_kind(Reader *r, uint64_t index, SlotKind kind) {
    static const char *const names[] = {[SLOT_NULL] = "None",
                                        [SLOT_INT] = "an integer",
                                        [SLOT_BOOL] = "a bool",
                                        [SLOT_DOUBLE] = "a float",
                                        [SLOT_TENSOR] = "a tensor",
                                        [SLOT_STRING] = "a string",
                                        [SLOT_INTS] = "integers",
                                        [SLOT_DOUBLES] = "floats",
                                        [SLOT_BOOLS] = "bools",
                                        [SLOT_TENSORS] = "tensors",
                                        [SLOT_OPTIONAL_TENSORS] = "optional tensors"};
    PteSlot *slot = pte_read_slot(r, index);
    if (!slot || slot->kind == kind) return slot;
    pte_read_bad(r, "expected %s as the value %" PRIu64 ", found %s", names[kind], index,
                 slot->kind >= SLOT_NULL && slot->kind <= SLOT_OPTIONAL_TENSORS
                     ? names[slot->kind]
                     : "something unknown");
    return NULL;
}

const Sym *pte_read_size(Reader *r, uint64_t index) {
    const PteSlot *slot = pte_read_kind(r, index, SLOT_INT);
    return slot ? slot->size : build_const(&r->b, 0);
}

const Sym *pte_read_symbol(Reader *r, int64_t lower) {
    SymTable *symbols = &r->b.program->symbols;
    const char *name = "";
    for (size_t k = r->b.program->sources.count; !*name || sym_lookup(symbols, name); k++) {
        name = arena_format(&r->arena, "u%zu", k);
    }
    return sym_symbol(symbols, name, lower, SYM_UNBOUNDED);
}

/* ---- weights ---- */

/* The name of the data that begins there; named data are called "NUMBER.NAME.FINGERPRINT" by ferry. */
static const char *weight_name(Reader *r, uint64_t offset) {
    for (size_t i = 0; i < r->f.named.count; i++) {
        FlatTable entry = flat_item_table(&r->f.named, i);
        const char *key = flat_get_string(&entry, 0), *first = key ? strchr(key, '.') : NULL;
        uint64_t start, size;
        bool found = pte_segment(&r->f, flat_get(&entry, 1, 4, 0), &start, &size);
        if (!key || !found || start != offset) continue;
        const char *last = strrchr(key, '.');
        bool ours = first && last > first + 1 &&
                    strspn(key, "0123456789") == (size_t)(first - key) && strlen(last) == 17;
        return ours ? arena_string_n(&r->arena, first + 1, (size_t)(last - first - 1)) : key;
    }
    return "constant";
}

static Value *add_weight(Reader *r, const char *name, uint64_t offset, uint64_t size,
                         ferry_dtype dtype, uint32_t rank, const int64_t *shape) {
    Program *program = r->b.program;
    uint64_t bytes;
    if (!dtype_bytes(dtype, rank, shape, &bytes) || bytes > size) {
        pte_read_bad(r, "a weight is larger than the %" PRIu64 " bytes that the file has for it",
                     size);
        return &r->b.poison;
    }
    const Recipe *recipe = recipe_file(&program->arena, r->f.file, offset, dtype, rank, shape);
    bool named = strcmp(name, "constant") != 0 && strcmp(name, "number") != 0;
    Value *value =
        recipe ? program_weight(program, named ? VALUE_PARAMETER : VALUE_CONSTANT, name, recipe)
               : NULL;
    if (value) return value;
    pte_read_memory(r);
    return &r->b.poison;
}

Value *pte_read_weight(Reader *r, uint64_t offset, uint64_t size, ferry_dtype dtype, uint32_t rank,
                       const int64_t *shape) {
    int64_t key[3 + FERRY_MAX_RANK] = {(int64_t)offset, dtype, rank};
    memcpy(key + 3, shape, rank * sizeof *shape);
    Value *known = map_get(&r->weights, key, sizeof key);
    if (known) return known;
    Value *value = add_weight(r, weight_name(r, offset), offset, size, dtype, rank, shape);
    const void *copy = arena_copy(&r->arena, key, sizeof key);
    if (!copy) pte_read_memory(r);
    if (reader_ok(r)) map_set(&r->weights, copy, sizeof key, value);
    return value;
}

/* Part `index` of a segment, up to its end. */
static bool find_part(const Reader *r, uint32_t segment, const FlatVector *offsets, uint32_t index,
                      uint64_t *start, uint64_t *size) {
    uint64_t offset = flat_item(offsets, index);
    if (index >= offsets->count || !pte_segment(&r->f, segment, start, size)) return false;
    if (offset > *size) return false;
    *start += offset;
    *size -= offset;
    return true;
}

static Value *constant(Reader *r, const PteSlot *slot) {
    uint64_t start, size;
    if (!find_part(r, r->f.constant_segment, &r->f.constants, slot->constant, &start, &size)) {
        pte_read_bad(r, "the constant %" PRIu32 " is not in the file", slot->constant);
        return &r->b.poison;
    }
    return pte_read_weight(r, start, size, slot->dtype, slot->rank, slot->sizes);
}

static bool find_named(const Reader *r, const char *name, uint64_t *start, uint64_t *size) {
    for (size_t i = 0; i < r->f.named.count; i++) {
        FlatTable entry = flat_item_table(&r->f.named, i);
        const char *key = flat_get_string(&entry, 0);
        if (!key || strcmp(key, name) != 0) continue;
        return pte_segment(&r->f, flat_get(&entry, 1, 4, 0), start, size);
    }
    return false;
}

/* What a state holds before the run. */
static Value *state(Reader *r, PteSlot *slot) {
    uint64_t start, size;
    bool found = slot->initial ? find_part(r, r->f.initial_segment, &r->f.initials, slot->initial,
                                           &start, &size)
                               : find_named(r, slot->state, &start, &size);
    if (!found) {
        pte_read_unsupported(r, "the file does not say what \"%s\" holds at first", slot->state);
        return &r->b.poison;
    }
    slot->before = add_weight(r, slot->state, start, size, slot->dtype, slot->rank, slot->sizes);
    return slot->before;
}

/* ---- tensors ---- */

/* What another tensor left in the memory of this one. */
static Value *inherited(Reader *r, const PteSlot *slot, uint64_t index) {
    PteSlot *base = slot->place[0] ? map_get(&r->places, slot->place, sizeof slot->place) : NULL;
    if (base && !base->value && base->state) base->value = state(r, base);
    const Sym *shape[FERRY_MAX_RANK];
    if (!base) {
        pte_read_bad(r, "the tensor %" PRIu64 " is read before it is made", index);
        return &r->b.poison;
    }
    if (base->dtype != slot->dtype || slot->dynamic) {
        pte_read_unsupported(
            r, "the tensor %" PRIu64 " is a view of another type, or of varying size", index);
        return &r->b.poison;
    }
    for (uint32_t d = 0; d < slot->rank; d++) shape[d] = build_const(&r->b, slot->sizes[d]);
    return build_view(&r->b, base->value, shape, slot->rank);
}

Value *pte_read_tensor(Reader *r, uint64_t index) {
    PteSlot *slot = pte_read_kind(r, index, SLOT_TENSOR);
    if (!slot || !reader_ok(r)) return &r->b.poison;
    if (!slot->value) {
        slot->value = slot->state      ? state(r, slot)
                      : slot->constant ? constant(r, slot)
                                       : inherited(r, slot, index);
    }
    return slot->value;
}

/* Does the tensor have the declared type, with no size beyond the declared one? */
static bool fits(const PteSlot *slot, const Value *value) {
    if (slot->dtype != value->dtype || slot->rank != value->rank) return false;
    for (uint32_t d = 0; d < slot->rank; d++) {
        const Sym *size = value->shape[d];
        if (!sym_is_const(size)) continue;
        bool same = slot->dynamic ? size->value <= slot->sizes[d] : size->value == slot->sizes[d];
        if (!same) return false;
    }
    return true;
}

/* `again`: by a kernel that changes what the tensor is. */
static void give(Reader *r, uint64_t index, Value *value, bool again) {
    PteSlot *slot = pte_read_kind(r, index, SLOT_TENSOR);
    if (!slot || !reader_ok(r)) return;
    if (slot->state && !slot->before) pte_read_tensor(r, index);
    if (!reader_ok(r)) return;
    if (slot->constant || (slot->value && !slot->before && !again)) {
        pte_read_bad(r, "the tensor %" PRIu64 " is written a second time", index);
    } else if (!fits(slot, value)) {
        Buffer text = {0};
        value_print_type(&text, value);
        pte_read_bad(r, "the result is %s; the value %" PRIu64 " is declared as another type",
                     buffer_string(&text), index);
        buffer_free(&text);
    } else {
        slot->value = value;
        if (slot->place[0]) map_set(&r->places, slot->place, sizeof slot->place, slot);
    }
}

void pte_read_give(Reader *r, uint64_t index, Value *value) {
    give(r, index, value, false);
}

void pte_read_change(Reader *r, uint64_t index, Value *value) {
    give(r, index, value, true);
}

/* ---- arguments ---- */

static Arg list(Reader *r, PteSlot *slot, ArgType type) {
    bool sizes = type == ARG_INTS;
    FlatVector items = flat_get_vector(&slot->table, 0, sizes ? 8 : 4);
    if (items.count > PTE_MAX_ITEMS) {
        pte_read_unsupported(r, "a list of %u items", items.count);
        return arg_none();
    }
    Arena *arena = &r->b.program->arena;
    const Sym **syms = ARENA_ARRAY(arena, const Sym *, items.count);
    Value **values = ARENA_ARRAY(arena, Value *, items.count);
    if (!syms || !values || r->f.program.failed) {
        pte_read_bad(r, "a list leads outside of the file");
        return arg_none();
    }
    for (size_t i = 0; i < items.count && reader_ok(r); i++) {
        uint64_t item = flat_item(&items, i);
        bool absent = type == ARG_OPTIONAL_TENSORS && item == UINT32_MAX;
        if (sizes)
            syms[i] = pte_read_size(r, item);
        else if (!absent)
            values[i] = pte_read_tensor(r, item);
    }
    if (!reader_ok(r)) return arg_none();
    if (sizes) return (Arg){.kind = VALUE_INTS, .integers = {syms, (uint32_t)items.count}};
    return (Arg){.kind = VALUE_TENSORS, .tensors = {values, (uint32_t)items.count}};
}

static Arg number(const PteSlot *slot) {
    if (slot->kind == SLOT_INT) return arg_sym(slot->size);
    return slot->kind == SLOT_BOOL ? arg_bool(slot->boolean) : arg_float(slot->number);
}

Arg pte_read_arg(Reader *r, uint64_t index, const OpArg *type) {
    static const SlotKind kinds[] = {
        [ARG_TENSOR] = SLOT_TENSOR,
        [ARG_TENSORS] = SLOT_TENSORS,
        [ARG_OPTIONAL_TENSORS] = SLOT_OPTIONAL_TENSORS,
        [ARG_INT] = SLOT_INT,
        [ARG_INTS] = SLOT_INTS,
        [ARG_FLOAT] = SLOT_DOUBLE,
        [ARG_BOOL] = SLOT_BOOL,
        [ARG_SCALAR] = SLOT_DOUBLE,
        [ARG_STRING] = SLOT_STRING,
        [ARG_DTYPE] = SLOT_INT,
    };
    PteSlot *slot = pte_read_slot(r, index);
    if (!slot || (slot->kind == SLOT_NULL && type->optional)) return arg_none();
    bool is_number = slot->kind == SLOT_INT || slot->kind == SLOT_BOOL;
    bool exact = type->type != ARG_SCALAR && (type->type != ARG_FLOAT || slot->kind == SLOT_BOOL);
    if (is_number && !exact) {
        if (type->type != ARG_FLOAT) return number(slot);
        if (sym_is_const(slot->size)) return arg_float((double)slot->size->value);
    }
    if (!pte_read_kind(r, index, kinds[type->type])) return arg_none();
    switch (type->type) {
    case ARG_TENSOR: return arg_tensor(pte_read_tensor(r, index));
    case ARG_STRING: {
        const char *text = flat_get_string(&slot->table, 0);
        if (!text) pte_read_bad(r, "the string %" PRIu64 " is not valid", index);
        return arg_string(arena_string(&r->b.program->arena, text ? text : ""));
    }
    case ARG_TENSORS:
    case ARG_OPTIONAL_TENSORS:
    case ARG_INTS: return list(r, slot, type->type);
    default: return number(slot);
    }
}
