/* Planning memory: where each tensor lies in the arena.
 *
 * Tensors that are in use for long are placed first, then the others; larger ones before smaller ones, each
 * at the lowest place where nothing lies that is in use at the same time. Equal sizes go in the order of the table, so a program always gets the same plan. */
#include "target/executorch/emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, SLACK = 64 }; /* XNNPACK may read a little behind a buffer */

typedef struct Block {
    uint64_t bytes, offset;
    uint32_t first, last;
    PteValue value;
} Block;

enum { SHORT_USE = 64 };

static bool is_short(const Block *block) {
    return block->last - block->first <= SHORT_USE;
}

static int in_order(const void *a, const void *b) {
    const Block *left = a, *right = b;
    if (is_short(left) != is_short(right)) return is_short(left) ? 1 : -1;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return (left->value > right->value) - (left->value < right->value);
}

/* The bytes of a tensor at its largest. */
static uint64_t upper_bytes(Pte *p, const Slot *slot) {
    uint64_t bytes = ferry_dtype_size(slot->dtype);
    for (uint32_t d = 0; d < slot->rank; d++) {
        uint64_t size = (uint64_t)bounds_upper(&p->bounds, slot->shape[d]);
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > INT64_MAX / 2) {
            return INT64_MAX / 2;
        }
    }
    return bytes;
}

/* Tensors that need memory of their own. */
static uint32_t collect(Pte *p, Block *blocks) {
    uint32_t count = 0;
    for (size_t i = 0; i < p->slots.count; i++) {
        Slot *slot = &p->slots.items[i];
        if (slot->kind != SLOT_TENSOR) continue;
        if (slot->state) slot->last = (uint32_t)p->instructions.count;
        uint64_t bytes = upper_bytes(p, slot);
        Slot *owner = slot->base >= 0 ? &p->slots.items[slot->base] : slot;
        if (bytes > owner->bytes) owner->bytes = bytes;
    }
    for (size_t i = 0; i < p->slots.count; i++) {
        Slot *slot = &p->slots.items[i];
        bool placed = slot->kind == SLOT_TENSOR && slot->base < 0 && !slot->constant;
        if (!placed || slot->unplanned || !slot->used) continue;
        blocks[count++] = (Block){slot->bytes, 0, slot->first, slot->last, (PteValue)i};
    }
    return count;
}

/* Where to look for what is in use at a time: blocks of long use in the order of their places, and those of
 * short use by the instruction that they begin at. */
typedef struct Places {
    Block *blocks;
    int32_t *begin, *next; /* lists of blocks, by instruction and by block; -1: the end */
    Block *longs,
        *shorts; /* the latter: in use at the same time as the block that is being placed */
    uint32_t long_count, short_count;
} Places;

static bool meets(const Block *block, const Block *other) {
    return other->last >= block->first && other->first <= block->last;
}

static int by_offset(const void *a, const void *b) {
    const Block *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

static void find_shorts(Places *places, const Block *block) {
    uint32_t from = block->first > SHORT_USE ? block->first - SHORT_USE : 0;
    places->short_count = 0;
    if (!is_short(block)) return; /* there are none yet */
    for (uint32_t t = from; t <= block->last; t++) {
        for (int32_t i = places->begin[t]; i >= 0; i = places->next[i]) {
            if (!meets(block, &places->blocks[i])) continue;
            places->shorts[places->short_count++] = places->blocks[i];
        }
    }
    if (places->short_count == 0) return;
    qsort(places->shorts, places->short_count, sizeof *places->shorts, by_offset);
}

/* Look through what is in use, from the lowest place up, for a gap. */
static uint64_t find_gap(const Places *places, const Block *block) {
    uint64_t end = 0;
    uint32_t i = 0, k = 0;
    while (i < places->long_count || k < places->short_count) {
        bool is_long =
            k == places->short_count ||
            (i < places->long_count && places->longs[i].offset <= places->shorts[k].offset);
        const Block *other = is_long ? &places->longs[i++] : &places->shorts[k++];
        if (is_long && !meets(block, other)) continue;
        if (other->offset >= end + block->bytes) break;
        uint64_t behind = (other->offset + other->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (behind > end) end = behind;
    }
    return end;
}

static void place(Places *places, uint32_t index) {
    Block *block = &places->blocks[index];
    find_shorts(places, block);
    block->offset = find_gap(places, block);
    if (is_short(block)) {
        places->next[index] = places->begin[block->first];
        places->begin[block->first] = (int32_t)index;
        return;
    }
    uint32_t at = places->long_count++;
    while (at > 0 && places->longs[at - 1].offset > block->offset) at--;
    memmove(places->longs + at + 1, places->longs + at,
            (places->long_count - 1 - at) * sizeof *places->longs);
    places->longs[at] = *block;
}

static bool prepare(Pte *p, Places *places) {
    size_t count = p->slots.count, instructions = p->instructions.count + 1;
    *places = (Places){.blocks = ARENA_ARRAY(&p->arena, Block, count),
                       .longs = ARENA_ARRAY(&p->arena, Block, count),
                       .shorts = ARENA_ARRAY(&p->arena, Block, count),
                       .begin = ARENA_ARRAY(&p->arena, int32_t, instructions),
                       .next = ARENA_ARRAY(&p->arena, int32_t, count)};
    for (size_t i = 0; places->begin && i < instructions; i++) places->begin[i] = -1;
    return places->blocks && places->longs && places->shorts && places->begin && places->next;
}

void pte_plan(Pte *p) {
    Places places;
    if (!prepare(p, &places)) return;
    Block *blocks = places.blocks;
    uint32_t count = collect(p, blocks);
    if (count) qsort(blocks, count, sizeof *blocks, in_order);
    for (uint32_t i = 0; i < count && p->status == FERRY_OK; i++) {
        if (blocks[i].bytes >= INT64_MAX / 2) {
            pte_fail(p, FERRY_UNSUPPORTED,
                     "a tensor of %" PRIu32 " dimensions has no bound: give its sizes bounds "
                     "(--dynamic-shapes)",
                     p->slots.items[blocks[i].value].rank);
        }
        place(&places, i);
        p->slots.items[blocks[i].value].offset = blocks[i].offset;
        uint64_t end = blocks[i].offset + blocks[i].bytes;
        if (end > p->planned) p->planned = end;
    }
    p->planned = (p->planned + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + SLACK;
}
