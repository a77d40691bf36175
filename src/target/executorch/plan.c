/* Planning memory: where each tensor lies in the arena.
 *
 * Larger tensors are placed first, each at the lowest place where nothing lies that is in use at the same
 * time. Equal sizes go in the order of the table, so a program always gets the same plan. */
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

static int larger_first(const void *a, const void *b) {
    const Block *left = a, *right = b;
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

/* `placed` is in the order of offsets. */
static void place(Block *block, Block *placed, uint32_t count) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (placed[i].last < block->first || placed[i].first > block->last) continue;
        if (placed[i].offset >= end + block->bytes) break;
        uint64_t behind = placed[i].offset + placed[i].bytes;
        if (behind > end) end = (behind + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    block->offset = end;
    uint32_t at = count;
    while (at > 0 && placed[at - 1].offset > end) at--;
    memmove(placed + at + 1, placed + at, (count - at) * sizeof *placed);
    placed[at] = *block;
}

void pte_plan(Pte *p) {
    Block *blocks = ARENA_ARRAY(&p->arena, Block, p->slots.count);
    Block *placed = ARENA_ARRAY(&p->arena, Block, p->slots.count);
    if (!blocks || !placed) return;
    uint32_t count = collect(p, blocks);
    if (count) qsort(blocks, count, sizeof *blocks, larger_first);
    for (uint32_t i = 0; i < count && p->status == FERRY_OK; i++) {
        if (blocks[i].bytes >= INT64_MAX / 2) {
            pte_fail(p, FERRY_UNSUPPORTED,
                     "a tensor of %" PRIu32 " dimensions has no bound: give its sizes bounds "
                     "(--dynamic-shapes)",
                     p->slots.items[blocks[i].value].rank);
        }
        place(&blocks[i], placed, i);
        p->slots.items[blocks[i].value].offset = blocks[i].offset;
        uint64_t end = blocks[i].offset + blocks[i].bytes;
        if (end > p->planned) p->planned = end;
    }
    p->planned = (p->planned + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + SLACK;
}
