/* The blob of an MLX delegate: 24 bytes of header (zeros, "MLX0", where the FlatBuffer ends and how many
 * bytes of data follow: none, weights are named data of the file), then the FlatBuffer.
 *
 * Tensors are numbered through: constants, inputs, outputs, then temporaries. Temporaries whose last reader
 * has run give their number to the next ones. */
#include "target/executorch/mlx.h"

#include <string.h>

enum { HEADER_SIZE = 24, BLOB_ALIGNMENT = 16, MAX_FIELDS = 16 };
enum { SLOT_KIND_TENSOR = 0, INDEX_IS_COMPUTED = 1, INDEX_IS_TENSOR = 2 };

/* ---- temporaries ---- */

typedef struct Slots {
    uint32_t *last; /* by temporary: the last node with it */
    uint32_t *slot; /* the number that it has, plus 1 */
    uint32_t *free; /* numbers that are free, a stack */
    uint32_t free_count, count;
} Slots;

/* Call visit for every temporary of a node. */
static void each_temp(const MlxNode *node, void (*visit)(Slots *, uint32_t temp, uint32_t at),
                      Slots *slots, uint32_t at) {
    for (uint32_t i = 0; i < node->count; i++) {
        const MlxField *field = &node->fields[i];
        bool one = field->kind == FIELD_TENSOR || field->kind == FIELD_INDICES;
        const MlxTensor *tensors = one ? &field->tensor : field->tensors;
        uint32_t count = one ? 1 : field->kind == FIELD_TENSORS ? field->count : 0;
        for (uint32_t k = 0; k < count; k++) {
            if (tensors[k].class == MLX_TEMP) visit(slots, tensors[k].number, at);
        }
    }
}

static void note_last(Slots *slots, uint32_t temp, uint32_t at) {
    slots->last[temp] = at;
}

static void take_slot(Slots *slots, uint32_t temp, uint32_t at) {
    (void)at;
    if (slots->slot[temp]) return;
    slots->slot[temp] = slots->free_count ? slots->free[--slots->free_count] : ++slots->count;
}

static void give_slot(Slots *slots, uint32_t temp, uint32_t at) {
    if (slots->last[temp] != at) return;
    slots->last[temp] = UINT32_MAX;
    slots->free[slots->free_count++] = slots->slot[temp];
}

static bool assign_slots(Mlx *m, Slots *slots) {
    slots->last = ARENA_ARRAY(m->arena, uint32_t, m->temps);
    slots->slot = ARENA_ARRAY(m->arena, uint32_t, m->temps);
    slots->free = ARENA_ARRAY(m->arena, uint32_t, m->temps);
    if (!slots->last || !slots->slot || !slots->free) return false;
    for (uint32_t i = 0; i < m->nodes.count; i++) {
        each_temp(&m->nodes.items[i], note_last, slots, i);
    }
    for (uint32_t i = 0; i < m->nodes.count; i++) {
        each_temp(&m->nodes.items[i], take_slot, slots, i);
        each_temp(&m->nodes.items[i], give_slot, slots, i);
    }
    return true;
}

/* ---- fields ---- */

typedef struct Writer {
    Mlx *m;
    FlatBuilder b;
    Slots slots;
} Writer;

static uint32_t number(const Writer *w, MlxTensor tensor) {
    const Mlx *m = w->m;
    size_t inputs = m->constants.count, outputs = inputs + m->inputs.count;
    switch (tensor.class) {
    case MLX_CONSTANT: return tensor.number;
    case MLX_INPUT: return (uint32_t)inputs + tensor.number;
    case MLX_OUTPUT: return (uint32_t)outputs + tensor.number;
    default: return (uint32_t)(outputs + m->outputs.count) + w->slots.slot[tensor.number] - 1;
    }
}

static FlatRef integer(Writer *w, MlxInt integer) {
    if (!integer.computed) return FLAT_TABLE(&w->b, FLAT_64(0, integer.value));
    return FLAT_TABLE(&w->b, FLAT_32(1, integer.value), FLAT_8(2, 1));
}

static FlatRef choice(Writer *w, MlxInt integer) {
    if (!integer.computed) return FLAT_TABLE(&w->b, FLAT_64(0, integer.value));
    return FLAT_TABLE(&w->b, FLAT_32(1, integer.value), FLAT_8(3, INDEX_IS_COMPUTED));
}

static FlatRef integers(Writer *w, const MlxField *field) {
    FlatRef *refs = ARENA_ARRAY(w->m->arena, FlatRef, field->count);
    for (uint32_t i = 0; refs && i < field->count; i++) refs[i] = integer(w, field->integers[i]);
    return flat_refs(&w->b, refs, refs ? field->count : 0);
}

static FlatRef tensors(Writer *w, const MlxField *field) {
    uint32_t *numbers = ARENA_ARRAY(w->m->arena, uint32_t, field->count);
    for (uint32_t i = 0; numbers && i < field->count; i++) {
        numbers[i] = number(w, field->tensors[i]);
    }
    return flat_vector(&w->b, numbers, sizeof *numbers, numbers ? field->count : 0);
}

static FlatField make_field(Writer *w, const MlxField *field, uint16_t id) {
    FlatBuilder *b = &w->b;
    switch (field->kind) {
    case FIELD_TENSOR: return FLAT_32(id, number(w, field->tensor));
    case FIELD_TENSORS: return FLAT_REF(id, tensors(w, field));
    case FIELD_RESULT: return FLAT_32(id, field->integer.value);
    case FIELD_INT: return FLAT_REF(id, integer(w, field->integer));
    case FIELD_INTS: return FLAT_REF(id, integers(w, field));
    case FIELD_FILL: return FLAT_REF(id, FLAT_TABLE(b, FLAT_DOUBLE(0, field->number)));
    case FIELD_INDEX: return FLAT_REF(id, choice(w, field->integer));
    case FIELD_INDICES:
        return FLAT_REF(
            id, FLAT_TABLE(b, FLAT_32(2, number(w, field->tensor)), FLAT_8(3, INDEX_IS_TENSOR)));
    case FIELD_I8: return FLAT_8(id, (int8_t)field->number);
    case FIELD_I32: return FLAT_32(id, (int32_t)field->number);
    case FIELD_I32S:
        return FLAT_REF(id, flat_vector(b, field->numbers, sizeof *field->numbers, field->count));
    case FIELD_FLOAT: return FLAT_FLOAT(id, (float)field->number);
    case FIELD_BOOL: return FLAT_8(id, field->number != 0);
    case FIELD_TEXT: return FLAT_REF(id, flat_string(b, field->text));
    default: return FLAT_REF(id, 0);
    }
}

static FlatRef instruction(Writer *w, const MlxNode *node) {
    FlatField fields[MAX_FIELDS];
    for (uint32_t i = 0; i < node->count; i++) {
        fields[i] = make_field(w, &node->fields[i], (uint16_t)i);
    }
    FlatRef table = flat_table(&w->b, fields, node->count);
    return FLAT_TABLE(&w->b, FLAT_8(0, node->type), FLAT_REF(1, table));
}

/* ---- the graph ---- */

static FlatRef chain(Writer *w) {
    size_t count = w->m->nodes.count;
    FlatRef *refs = ARENA_ARRAY(w->m->arena, FlatRef, count);
    for (size_t i = 0; refs && i < count; i++) refs[i] = instruction(w, &w->m->nodes.items[i]);
    FlatRef instructions = flat_refs(&w->b, refs, refs ? count : 0);
    return FLAT_TABLE(&w->b, FLAT_REF(0, instructions));
}

static FlatRef dimension(Writer *w, const Sym *size) {
    if (sym_is_const(size)) return FLAT_TABLE(&w->b, FLAT_32(0, size->value));
    int64_t most = bounds_upper(&w->m->p->bounds, size), least = size->lower < 0 ? 0 : size->lower;
    return FLAT_TABLE(&w->b, FLAT_32(0, -1), FLAT_32(1, least),
                      FLAT_32(2, most > INT32_MAX ? -1 : most));
}

static FlatRef meta(Writer *w, const Value *value) {
    FlatRef sizes[FERRY_MAX_RANK];
    uint8_t order[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < value->rank; d++) {
        sizes[d] = dimension(w, value->shape[d]);
        order[d] = (uint8_t)d;
    }
    FlatRef shape = flat_refs(&w->b, sizes, value->rank);
    FlatRef dim_order = flat_vector(&w->b, order, sizeof *order, value->rank);
    return FLAT_TABLE(&w->b, FLAT_REF(0, shape), FLAT_8(1, pte_dtype(value->dtype)),
                      FLAT_REF(2, dim_order));
}

static FlatRef slot(Writer *w, size_t tensor) {
    return FLAT_TABLE(&w->b, FLAT_32(0, tensor), FLAT_8(1, SLOT_KIND_TENSOR));
}

/* The slots of tensors that follow each other. */
static FlatRef slots(Writer *w, size_t first, size_t count) {
    FlatRef *refs = ARENA_ARRAY(w->m->arena, FlatRef, count);
    for (size_t i = 0; refs && i < count; i++) refs[i] = slot(w, first + i);
    return flat_refs(&w->b, refs, refs ? count : 0);
}

static FlatRef names(Writer *w) {
    size_t count = w->m->constants.count;
    FlatRef *refs = ARENA_ARRAY(w->m->arena, FlatRef, count);
    for (size_t i = 0; refs && i < count; i++) {
        FlatRef key = flat_string(&w->b, w->m->constants.items[i].key);
        refs[i] = FLAT_TABLE(&w->b, FLAT_REF(0, key), FLAT_REF(1, slot(w, i)));
    }
    return flat_refs(&w->b, refs, refs ? count : 0);
}

static FlatRef metas(Writer *w) {
    const Mlx *m = w->m;
    size_t count = m->constants.count + m->inputs.count + m->outputs.count, n = 0;
    FlatRef *refs = ARENA_ARRAY(m->arena, FlatRef, count);
    if (!refs) return 0;
    for (size_t i = 0; i < m->constants.count; i++)
        refs[n++] = meta(w, m->constants.items[i].value);
    for (size_t i = 0; i < m->inputs.count; i++) refs[n++] = meta(w, m->inputs.items[i].value);
    for (size_t i = 0; i < m->outputs.count; i++) refs[n++] = meta(w, m->outputs.items[i].value);
    return flat_refs(&w->b, refs, n);
}

static const unsigned char *write_graph(Writer *w) {
    const Mlx *m = w->m;
    FlatBuilder *b = &w->b;
    size_t constants = m->constants.count, inputs = m->inputs.count, outputs = m->outputs.count;
    FlatRef main_chain = chain(w), version = flat_string(b, "1");
    FlatRef chains = flat_refs(b, &main_chain, 1), none = flat_refs(b, NULL, 0);
    FlatRef given = slots(w, constants, inputs), made = slots(w, constants + inputs, outputs);
    FlatRef keys = names(w), types = metas(w);
    FlatRef root = FLAT_TABLE(b, FLAT_REF(0, version), FLAT_32(1, constants), FLAT_32(2, inputs),
                              FLAT_32(3, outputs), FLAT_32(4, 0), FLAT_32(5, w->slots.count),
                              FLAT_32(6, m->values), FLAT_REF(7, chains), FLAT_32(8, 0),
                              FLAT_32(9, -1), FLAT_REF(10, given), FLAT_REF(11, made),
                              FLAT_REF(12, none), FLAT_REF(13, keys), FLAT_REF(14, types));
    return flat_finish(b, root, NULL, 0);
}

static void put(unsigned char *place, uint64_t value) {
    for (size_t i = 0; i < 8; i++) place[i] = (unsigned char)(value >> 8 * i);
}

Delegate mlx_write(Mlx *m) {
    Writer w = {.m = m};
    Delegate delegate = {0};
    if (!assign_slots(m, &w.slots)) return delegate;
    const unsigned char *graph = write_graph(&w);
    size_t length = HEADER_SIZE + w.b.length;
    length = (length + BLOB_ALIGNMENT - 1) / BLOB_ALIGNMENT * BLOB_ALIGNMENT;
    unsigned char *bytes = graph ? arena_alloc(m->arena, length) : NULL;
    if (bytes) {
        memset(bytes, 0, length);
        memcpy(bytes + 4, "MLX0", 4);
        put(bytes + 8, length);
        memcpy(bytes + HEADER_SIZE, graph, w.b.length);
        delegate = (Delegate){bytes, length};
    }
    flat_free(&w.b);
    return delegate;
}
