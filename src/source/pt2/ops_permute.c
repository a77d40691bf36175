/* Translations of permutations of dimensions, with the way back of a write through each. */
#include "source/pt2/reader.h"

#include <string.h>

/* Dimensions counted from the front. Fails when one is outside the tensor or comes twice. */
static uint32_t read_dims(Call *c, const char *name, uint32_t rank, int64_t *dims) {
    uint32_t count = take_ints(c, name, dims, FERRY_MAX_RANK);
    unsigned seen = 0;
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        if (dims[i] < 0) dims[i] += rank;
        if (dims[i] < 0 || dims[i] >= rank || seen >> dims[i] & 1)
            take_fail(c, FERRY_BAD_FORMAT, "\"%s\" is no list of dimensions of a tensor of rank %u",
                      name, rank);
        else
            seen |= 1u << dims[i];
    }
    return build_ok(c->b) ? count : 0;
}

static void read_permute(Call *c, uint32_t rank, int64_t *dims) {
    uint32_t count = read_dims(c, "dims", rank, dims);
    if (count != rank)
        take_fail(c, FERRY_BAD_FORMAT, "expected %u dimensions, found %u", rank, count);
}

static void swap(int64_t *dims, uint32_t first, uint32_t second) {
    int64_t kept = dims[first];
    dims[first] = dims[second];
    dims[second] = kept;
}

static void read_transpose(Call *c, uint32_t rank, int64_t *dims) {
    const char *first = take_has(c, "axis0") ? "axis0" : "dim0";
    const char *second = take_has(c, "axis1") ? "axis1" : "dim1";
    swap(dims, take_dim(c, first, 0, rank), take_dim(c, second, 0, rank));
}

/* The last two dimensions change places: mT, adjoint of real numbers. */
static void read_last_two(Call *c, uint32_t rank, int64_t *dims) {
    if (rank >= 2)
        swap(dims, rank - 2, rank - 1);
    else
        take_fail(c, FERRY_BAD_FORMAT, "expected a matrix, found a tensor of rank %u", rank);
}

static void read_reversed(Call *c, uint32_t rank, int64_t *dims) {
    (void)c;
    for (uint32_t d = 0; d < rank; d++) dims[d] = rank - 1 - d;
}

/* Dimension source[i] goes to destination[i]; the others keep their order. */
static void read_movedim(Call *c, uint32_t rank, int64_t *dims) {
    int64_t from[FERRY_MAX_RANK], to[FERRY_MAX_RANK];
    uint32_t count = read_dims(c, "source", rank, from);
    if (read_dims(c, "destination", rank, to) != count)
        take_fail(c, FERRY_BAD_FORMAT, "\"source\" and \"destination\" differ in length");
    if (!build_ok(c->b)) return;
    unsigned moved = 0;
    for (uint32_t d = 0; d < rank; d++) dims[d] = -1;
    for (uint32_t i = 0; i < count; i++) {
        dims[to[i]] = from[i];
        moved |= 1u << from[i];
    }
    for (uint32_t d = 0, next = 0; d < rank; d++) {
        if (dims[d] >= 0) continue;
        while (moved >> next & 1) next++;
        dims[d] = next++;
    }
}

/* The permutation of a call, for a tensor of `rank` dimensions. */
static void read_permutation(Call *c, uint32_t rank, int64_t *dims) {
    static const struct {
        const char *target;
        void (*read)(Call *c, uint32_t rank, int64_t *dims);
    } readers[] = {
        {"aten.permute.", read_permute},    {"aten.transpose.", read_transpose},
        {"aten.swapaxes.", read_transpose}, {"aten.swapdims.", read_transpose},
        {"aten.movedim.", read_movedim},    {"aten.moveaxis.", read_movedim},
        {"aten.mT.", read_last_two},        {"aten.mH.", read_last_two},
        {"aten.adjoint.", read_last_two},   {"aten.t.", read_reversed},
        {"aten.numpy_T.", read_reversed},
    };
    for (uint32_t d = 0; d < rank; d++) dims[d] = d;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        size_t length = strlen(readers[i].target);
        if (strncmp(c->how->target, readers[i].target, length) == 0) readers[i].read(c, rank, dims);
    }
}

static void translate_permute(Call *c) {
    Value *self = take_self(c);
    int64_t dims[FERRY_MAX_RANK];
    read_permutation(c, self->rank, dims);
    if (build_ok(c->b)) result_set(c, 0, build_permute(c->b, self, dims));
}

static Value *write_permuted(Call *c, Value *base, Value *updated, uint32_t index) {
    int64_t dims[FERRY_MAX_RANK], back[FERRY_MAX_RANK] = {0};
    (void)index;
    read_permutation(c, base->rank, dims);
    for (uint32_t d = 0; d < base->rank && build_ok(c->b); d++) back[dims[d]] = d;
    return build_permute(c->b, updated, back);
}

#define PERMUTATION(target)                                                                        \
    { target, translate_permute, OP_COUNT, ALIAS_ALWAYS, write_permuted }

const Translation translate_permutations[] = {
    PERMUTATION("aten.permute.default"),  PERMUTATION("aten.transpose.int"),
    PERMUTATION("aten.t.default"),        PERMUTATION("aten.numpy_T.default"),
    PERMUTATION("aten.swapaxes.default"), PERMUTATION("aten.swapdims.default"),
    PERMUTATION("aten.movedim.int"),      PERMUTATION("aten.movedim.intlist"),
    PERMUTATION("aten.moveaxis.int"),     PERMUTATION("aten.moveaxis.intlist"),
    PERMUTATION("aten.mT.default"),       PERMUTATION("aten.mH.default"),
    PERMUTATION("aten.adjoint.default"),  {0},
};
