#include "target/reshape.h"

bool reshape_target(const Value *from, const Value *to, int64_t *target) {
    uint32_t unknown = 0;
    for (uint32_t d = 0; d < to->rank; d++) {
        if (sym_is_const(to->shape[d])) {
            target[d] = to->shape[d]->value;
            if (target[d] == 0) return false;
        } else if (d < from->rank && from->shape[d] == to->shape[d]) {
            target[d] = 0;
        } else {
            target[d] = -1;
            unknown++;
        }
    }
    return unknown <= 1;
}
