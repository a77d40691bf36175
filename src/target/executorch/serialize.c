/* The program as a FlatBuffer, in the schema of the ExecuTorch runtime (identifier ET12). The numbers are
 * those of its fields and enumerations. */
#include "format/flatbuffer.h"
#include "target/executorch/backend.h"

#include <stdlib.h>

enum { HEADER_SIZE = 32 };

/* ---- values ---- */

static FlatRef tensor(Pte *p, FlatBuilder *b, const Slot *slot) {
    int32_t sizes[FERRY_MAX_RANK];
    uint8_t order[FERRY_MAX_RANK];
    bool dynamic = slot->varies;
    for (uint32_t d = 0; d < slot->rank; d++) {
        int64_t size = bounds_upper(&p->bounds, slot->shape[d]);
        if (size > INT32_MAX) {
            pte_fail(p, FERRY_UNSUPPORTED, "a size may be %lld, more than ExecuTorch can count",
                     (long long)size);
        }
        sizes[d] = (int32_t)size;
        order[d] = (uint8_t)d;
        dynamic |= !sym_is_const(slot->shape[d]);
    }
    const Slot *owner = slot->base >= 0 ? &p->slots.items[slot->base] : slot;
    FlatRef place = 0;
    if (!slot->constant && !slot->unplanned && owner->used) {
        place = FLAT_TABLE(b, FLAT_32(0, 1), FLAT_32(1, owner->offset & UINT32_MAX),
                           FLAT_32(2, owner->offset >> 32));
    }
    FlatRef name = slot->state ? flat_string(b, slot->state->name) : 0;
    FlatRef extra = name ? FLAT_TABLE(b, FLAT_REF(1, name)) : 0;
    FlatRef size_vector = flat_vector(b, sizes, sizeof *sizes, slot->rank);
    FlatRef order_vector = flat_vector(b, order, sizeof *order, slot->rank);
    return FLAT_TABLE(
        b, FLAT_8(0, pte_dtype(slot->dtype)), FLAT_REF(2, size_vector), FLAT_REF(3, order_vector),
        FLAT_32(5, slot->constant ? slot->constant : slot->initial), FLAT_REF(6, place),
        FLAT_8(8, dynamic ? PTE_DYNAMIC_BOUND : PTE_STATIC), FLAT_REF(9, extra));
}

/* A list of integers names values, 64 bits each; lists of tensors do in 32. */
static FlatRef list(FlatBuilder *b, const Slot *slot) {
    FlatRef items;
    if (slot->kind == SLOT_INTS) {
        int64_t *wide = malloc((slot->count + 1) * sizeof *wide);
        if (!wide) {
            b->failed = true;
            return 0;
        }
        for (uint32_t i = 0; i < slot->count; i++) wide[i] = slot->items[i];
        items = flat_vector(b, wide, sizeof *wide, slot->count);
        free(wide);
    } else {
        items = flat_vector(b, slot->items, sizeof *slot->items, slot->count);
    }
    return FLAT_TABLE(b, FLAT_REF(0, items));
}

static FlatRef value(Pte *p, FlatBuilder *b, const Slot *slot) {
    FlatRef content = 0;
    switch (slot->kind) {
    case SLOT_NULL: content = flat_table(b, NULL, 0); break;
    case SLOT_INT: content = FLAT_TABLE(b, FLAT_64(0, slot->integer)); break;
    case SLOT_BOOL: content = FLAT_TABLE(b, FLAT_8(0, slot->integer)); break;
    case SLOT_DOUBLE: content = FLAT_TABLE(b, FLAT_DOUBLE(0, slot->number)); break;
    case SLOT_TENSOR: content = tensor(p, b, slot); break;
    case SLOT_STRING: content = FLAT_TABLE(b, FLAT_REF(0, flat_string(b, slot->string))); break;
    case SLOT_DOUBLES:
        content = FLAT_TABLE(
            b, FLAT_REF(0, flat_vector(b, slot->numbers, sizeof *slot->numbers, slot->count)));
        break;
    case SLOT_BOOLS: break; /* no kernel takes them */
    case SLOT_INTS:
    case SLOT_TENSORS:
    case SLOT_OPTIONAL_TENSORS: content = list(b, slot); break;
    }
    return FLAT_TABLE(b, FLAT_8(0, slot->kind), FLAT_REF(1, content));
}

/* ---- lists of tables ---- */

/* One reference per item, made by `make`. */
typedef FlatRef (*Make)(Pte *p, FlatBuilder *b, size_t index);

static FlatRef tables(Pte *p, FlatBuilder *b, size_t count, Make make) {
    FlatRef *refs = malloc((count + 1) * sizeof *refs);
    if (!refs) {
        b->failed = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++) refs[i] = make(p, b, i);
    FlatRef vector = flat_refs(b, refs, count);
    free(refs);
    return vector;
}

static FlatRef make_value(Pte *p, FlatBuilder *b, size_t index) {
    return value(p, b, &p->slots.items[index]);
}

/* "aten::add.out" is the operator "aten::add" with the overload "out". */
static FlatRef make_operator(Pte *p, FlatBuilder *b, size_t index) {
    const char *kernel = p->operators.items[index], *dot = strchr(kernel, '.');
    size_t length = dot ? (size_t)(dot - kernel) : strlen(kernel);
    FlatRef name = flat_string(b, arena_string_n(&p->arena, kernel, length));
    FlatRef overload = flat_string(b, dot ? dot + 1 : "");
    return FLAT_TABLE(b, FLAT_REF(0, name), FLAT_REF(1, overload));
}

static FlatRef make_instruction(Pte *p, FlatBuilder *b, size_t index) {
    const Instruction *instruction = &p->instructions.items[index];
    FlatRef args = flat_vector(b, instruction->args, sizeof *instruction->args, instruction->count);
    FlatRef call = FLAT_TABLE(b, FLAT_32(0, instruction->callee), FLAT_REF(1, args));
    return FLAT_TABLE(b, FLAT_8(0, instruction->delegate ? PTE_CALL_DELEGATE : PTE_CALL_KERNEL),
                      FLAT_REF(1, call));
}

/* Segment 0 is that of the constants; those of the delegates come next, then named data, then what states
 * hold at first. */
static FlatRef make_delegate(Pte *p, FlatBuilder *b, size_t index) {
    FlatRef data = FLAT_TABLE(b, FLAT_8(0, PTE_LOCATION_SEGMENT), FLAT_32(1, 1 + index));
    FlatRef id = flat_string(b, p->options->backend->id);
    return FLAT_TABLE(b, FLAT_REF(0, id), FLAT_REF(1, data));
}

static FlatRef make_named(Pte *p, FlatBuilder *b, size_t index) {
    FlatRef key = flat_string(b, p->named.items[index].key);
    return FLAT_TABLE(b, FLAT_REF(0, key), FLAT_32(1, 1 + p->delegates.count + index));
}

/* ---- the program ---- */

static FlatRef plan(Pte *p, FlatBuilder *b) {
    const int64_t buffers[] = {0, (int64_t)p->planned};
    FlatRef instructions = tables(p, b, p->instructions.count, make_instruction);
    FlatRef nothing = flat_vector(b, NULL, 4, 0);
    FlatRef chain =
        FLAT_TABLE(b, FLAT_REF(0, nothing), FLAT_REF(1, nothing), FLAT_REF(2, instructions));
    FlatRef chains = flat_refs(b, &chain, 1);
    FlatRef values = tables(p, b, p->slots.count, make_value);
    FlatRef inputs = flat_vector(b, p->inputs, sizeof *p->inputs,
                                 p->program->inputs.count + p->program->input_constants.count);
    FlatRef outputs = flat_vector(b, p->outputs, sizeof *p->outputs, p->program->outputs.count);
    FlatRef operators = tables(p, b, p->operators.count, make_operator);
    FlatRef delegates = tables(p, b, p->delegates.count, make_delegate);
    FlatRef sizes = flat_vector(b, buffers, sizeof *buffers, 2);
    FlatRef name = flat_string(b, "forward");
    return FLAT_TABLE(b, FLAT_REF(0, name), FLAT_REF(2, values), FLAT_REF(3, inputs),
                      FLAT_REF(4, outputs), FLAT_REF(5, chains), FLAT_REF(6, operators),
                      FLAT_REF(7, delegates), FLAT_REF(8, sizes));
}

/* The segments, as the file has them in the end. */
static FlatRef segment_table(Pte *p, FlatBuilder *b, const Segment *segments) {
    size_t count = pte_segment_count(p);
    FlatRef *refs = malloc(count * sizeof *refs);
    if (!refs) {
        b->failed = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        refs[i] = FLAT_TABLE(b, FLAT_64(0, segments[i].offset), FLAT_64(1, segments[i].size));
    }
    FlatRef vector = flat_refs(b, refs, count);
    free(refs);
    return vector;
}

/* Parts of a segment. */
static FlatRef subsegments(FlatBuilder *b, uint32_t segment, const uint64_t *offsets,
                           size_t count) {
    FlatRef vector = flat_vector(b, offsets, sizeof *offsets, count);
    return FLAT_TABLE(b, FLAT_32(0, segment), FLAT_REF(1, vector));
}

unsigned char *pte_serialize(Pte *p, FlatBuilder *b, const Segment *segments,
                             const uint64_t *constant_offsets, const uint64_t *initial_offsets) {
    FlatRef forward = plan(p, b);
    FlatRef plans = flat_refs(b, &forward, 1);
    FlatRef segment_vector = segment_table(p, b, segments);
    FlatRef constants = subsegments(b, 0, constant_offsets, p->constants.count + 1);
    FlatRef initials = 0;
    if (p->initials.count) {
        initials = subsegments(b, (uint32_t)pte_segment_count(p) - 1, initial_offsets,
                               p->initials.count + 1);
        initials = flat_refs(b, &initials, 1);
    }
    FlatRef named = tables(p, b, p->named.count, make_named);
    FlatRef empty = flat_refs(b, NULL, 0);
    FlatRef root = FLAT_TABLE(b, FLAT_32(0, 0), FLAT_REF(1, plans), FLAT_REF(2, empty),
                              FLAT_REF(3, empty), FLAT_REF(4, segment_vector),
                              FLAT_REF(5, constants), FLAT_REF(6, initials), FLAT_REF(7, named));
    b->alignment = 16;
    return flat_finish(b, root, "ET12", HEADER_SIZE);
}
