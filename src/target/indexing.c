#include "target/indexing.h"
#include "graph/infer.h"

#include <string.h>

void indexing_describe(const Node *node, Indexing *out) {
    const Value *self = node->args[0].tensor;
    const Arg *list = &node->args[1];
    const Sym *wide[FERRY_MAX_RANK];
    uint32_t next = 0, kept = 0;
    *out = (Indexing){0};
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        const Value *index = list->tensors.items[i];
        if (!index) continue;
        out->dims |= 1u << i;
        out->items[out->count++] = index;
        if (index->rank > out->rank) {
            memmove(wide + index->rank - out->rank, wide, out->rank * sizeof *wide);
            for (uint32_t d = 0; d < index->rank - out->rank; d++) wide[d] = NULL;
            out->rank = index->rank;
        }
        for (uint32_t d = 0; d < index->rank; d++) {
            const Sym **size = &wide[out->rank - index->rank + d];
            *size = *size ? infer_broadcast(*size, index->shape[d]) : index->shape[d];
        }
    }
    out->place = infer_index_place(out->dims);
    out->chosen = self->rank - out->count + out->rank;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t d = 0; d < self->rank; d++) {
            if ((out->dims >> d & 1) == pass) continue;
            out->first[next++] = d;
            if (pass) out->shape[kept < out->place ? kept : kept + out->rank] = self->shape[d];
            kept += pass;
        }
    }
    memcpy(out->shape + out->place, wide, out->rank * sizeof *wide);
}

bool indexing_in_order(const int64_t *dims, uint32_t rank) {
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] != d) return false;
    }
    return true;
}

void indexing_order(const Indexing *indexing, int64_t *there, int64_t *back) {
    for (uint32_t d = 0; d < indexing->chosen; d++) {
        uint32_t end = indexing->place + indexing->rank;
        there[d] = d < indexing->place ? d + indexing->rank : d < end ? d - indexing->place : d;
        back[there[d]] = d;
    }
}
