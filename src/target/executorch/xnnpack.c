/* The graph of an XNNPACK delegate: a header and a FlatBuffer (identifier XN01). Weights are named data of
 * the file. A value that is read or written outside has the number of its argument in
 * the call as its external id. */
#include "target/executorch/xnnpack.h"
#include "base/dtype.h"
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_SIZE = 32, HEADER_FIELDS = 30, DATA_ALIGNMENT = 16 };
enum { EXTERNAL_INPUT = 1, EXTERNAL_OUTPUT = 2 };
enum { NODE_TRANSPOSE = 5 };
static const uint32_t INTERNAL = UINT32_MAX;

/* ---- values ---- */

static uint32_t define(Xnn *x, ferry_dtype dtype, uint32_t rank, const Sym *const *shape,
                       uint32_t constant, uint32_t external, uint32_t flags) {
    uint32_t dims[FERRY_MAX_RANK], id = (uint32_t)x->values.count;
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = (uint32_t)bounds_upper(&x->p->bounds, shape[d]);
    }
    FlatRef sizes = flat_vector(&x->b, dims, sizeof *dims, rank);
    FlatRef tensor = FLAT_TABLE(&x->b, FLAT_16(0, dtype == FERRY_F16 ? 2 : 1), FLAT_32(1, rank),
                                FLAT_REF(2, sizes), FLAT_32(3, constant), FLAT_32(4, external),
                                FLAT_32(5, flags), FLAT_32(6, id));
    VEC_PUSH(&x->values, FLAT_TABLE(&x->b, FLAT_8(0, 1), FLAT_REF(1, tensor)));
    return id;
}

uint32_t xnn_temp(Xnn *x, ferry_dtype dtype, uint32_t rank, const Sym *const *shape) {
    return define(x, dtype, rank, shape, 0, INTERNAL, 0);
}

/* An argument of the call. */
static uint32_t external(Xnn *x, const Value *value, PteValue arg, uint32_t flag) {
    uint32_t number = (uint32_t)x->args.count;
    VEC_PUSH(&x->args, arg);
    if (flag == EXTERNAL_INPUT)
        VEC_PUSH(&x->inputs, number);
    else
        VEC_PUSH(&x->outputs, number);
    return define(x, value->dtype, value->rank, value->shape, 0, number, flag);
}

uint32_t xnn_input(Xnn *x, const Value *value) {
    static const int64_t to_plain[] = {0, 3, 1, 2};
    uint32_t *known = &x->plain[value->id];
    if (*known) return *known - 1;
    if (x->last[value->id]) {
        *known = xnn_temp(x, value->dtype, value->rank, value->shape) + 1;
        xnn_transpose(x, x->last[value->id] - 1, *known - 1, to_plain, 4);
    } else if (value_fixed(value)) {
        *known = xnn_weight(x, value->recipe, value->name) + 1;
    } else {
        *known = external(x, value, pte_value(x->p, value), EXTERNAL_INPUT) + 1;
    }
    return *known - 1;
}

uint32_t xnn_output(Xnn *x, const Value *value) {
    uint32_t *known = &x->plain[value->id];
    if (*known) return *known - 1;
    bool escapes = x->partition->escapes[value->id];
    *known = 1 + (escapes ? external(x, value, pte_output(x->p, value), EXTERNAL_OUTPUT)
                          : xnn_temp(x, value->dtype, value->rank, value->shape));
    return *known - 1;
}

/* ---- channels last ---- */

static uint32_t last_temp(Xnn *x, const Value *value) {
    const Sym *const *s = value->shape;
    return xnn_temp(x, value->dtype, 4, (const Sym *const[]){s[0], s[2], s[3], s[1]});
}

bool xnn_has_channels_last(const Xnn *x, const Value *value) {
    return x->last[value->id] != 0;
}

uint32_t xnn_channels_last(Xnn *x, const Value *value) {
    static const int64_t to_last[] = {0, 2, 3, 1};
    uint32_t *known = &x->last[value->id];
    if (*known) return *known - 1;
    uint32_t from = xnn_input(x, value), to = last_temp(x, value);
    xnn_transpose(x, from, to, to_last, 4);
    *known = to + 1;
    return to;
}

uint32_t xnn_output_channels_last(Xnn *x, const Value *value) {
    uint32_t to = last_temp(x, value);
    x->last[value->id] = to + 1;
    return to;
}

/* ---- constants ---- */

static uint32_t constant(Xnn *x, ferry_dtype dtype, uint32_t rank, const int64_t *shape) {
    const Sym *sizes[FERRY_MAX_RANK];
    SymTable *symbols = &x->p->program->symbols;
    for (uint32_t d = 0; d < rank; d++) sizes[d] = sym_const(symbols, shape[d]);
    return define(x, dtype, rank, sizes, (uint32_t)x->data.count - 1, INTERNAL, 0);
}

uint32_t xnn_weight(Xnn *x, const Recipe *recipe, const char *name) {
    FlatRef key = flat_string(&x->b, pte_named(x->p, recipe, name));
    VEC_PUSH(&x->data, FLAT_TABLE(&x->b, FLAT_64(0, UINT64_MAX),
                                  FLAT_64(1, recipe_bytes_size(recipe)), FLAT_REF(2, key)));
    return constant(x, recipe->dtype, recipe->rank, recipe->shape);
}

/* The blob itself is let go when the delegate is made, so that small constants are named data as well. */
uint32_t xnn_numbers(Xnn *x, ferry_dtype dtype, uint32_t rank, double number, int64_t count) {
    const int64_t shape[] = {1, count};
    Pte *p = x->p;
    size_t size = ferry_dtype_size(dtype);
    unsigned char *bytes = arena_array(&p->arena, (size_t)count, size);
    if (!bytes) return 0;
    for (int64_t i = 0; i < count; i++) {
        dtype_convert(FERRY_F64, &number, dtype, bytes + (size_t)i * size, 1);
    }
    for (size_t i = 0; i < p->numbers.count; i++) {
        const Recipe *known = p->numbers.items[i];
        bool same = known->dtype == dtype && known->rank == rank &&
                    known->shape[rank - 1] == count &&
                    memcmp(known->parts[0].base, bytes, (size_t)count * size) == 0;
        if (same) return xnn_weight(x, known, "number");
    }
    const Recipe *recipe = recipe_bytes(&p->arena, bytes, dtype, rank, shape + 2 - rank);
    if (!recipe) return 0;
    VEC_PUSH(&p->numbers, recipe);
    return xnn_weight(x, recipe, "number");
}

/* ---- nodes ---- */

void xnn_node(Xnn *x, uint8_t type, FlatRef table) {
    VEC_PUSH(&x->nodes, FLAT_TABLE(&x->b, FLAT_8(0, type), FLAT_REF(1, table)));
}

void xnn_clamped_node(Xnn *x, uint8_t type, FlatRef table, double low, double high) {
    FlatRef range = FLAT_TABLE(&x->b, FLAT_FLOAT(0, (float)low), FLAT_FLOAT(1, (float)high));
    VEC_PUSH(&x->nodes, FLAT_TABLE(&x->b, FLAT_8(0, type), FLAT_REF(1, table), FLAT_REF(3, range)));
}

void xnn_transpose(Xnn *x, uint32_t from, uint32_t to, const int64_t *dims, uint32_t rank) {
    uint32_t order[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = (uint32_t)(dims[d] < 0 ? dims[d] + rank : dims[d]);
    }
    FlatRef permutation = flat_vector(&x->b, order, sizeof *order, rank);
    xnn_node(x, NODE_TRANSPOSE,
             FLAT_TABLE(&x->b, FLAT_32(0, rank), FLAT_REF(1, permutation), FLAT_32(2, from),
                        FLAT_32(3, to), FLAT_32(4, 0)));
}

/* ---- the blob ---- */

static void put(unsigned char *place, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) place[i] = (unsigned char)(value >> 8 * i);
}

static unsigned char *finish(Xnn *x) {
    FlatBuilder *b = &x->b;
    FlatRef version = flat_string(b, "0");
    FlatRef nodes = flat_refs(b, x->nodes.items, x->nodes.count);
    FlatRef values = flat_refs(b, x->values.items, x->values.count);
    FlatRef inputs = flat_vector(b, x->inputs.items, sizeof *x->inputs.items, x->inputs.count);
    FlatRef outputs = flat_vector(b, x->outputs.items, sizeof *x->outputs.items, x->outputs.count);
    FlatRef data = flat_refs(b, x->data.items, x->data.count);
    FlatRef root = FLAT_TABLE(b, FLAT_REF(0, version), FLAT_REF(1, nodes), FLAT_REF(2, values),
                              FLAT_32(3, x->args.count), FLAT_REF(4, inputs), FLAT_REF(5, outputs),
                              FLAT_REF(8, data));
    return flat_finish(b, root, "XN01", 0);
}

static Delegate assemble(Xnn *x) {
    const unsigned char *graph = finish(x);
    size_t padded = (x->b.length + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    size_t data = HEADER_SIZE + padded, length = data;
    unsigned char *bytes = graph ? arena_alloc(&x->p->arena, length) : NULL;
    if (!bytes) return (Delegate){0};
    memcpy(bytes + 4, "XH00", 4);
    put(bytes + 8, HEADER_FIELDS, 2);
    put(bytes + 10, HEADER_SIZE, 4);
    put(bytes + 14, x->b.length, 4);
    put(bytes + 18, data, 4);
    put(bytes + 22, 0, 8);
    memcpy(bytes + HEADER_SIZE, graph, x->b.length);
    return (Delegate){bytes, length};
}

/* What was only made with channels last and is read outside. */
static void make_plain(Xnn *x, const Node *node) {
    static const int64_t to_plain[] = {0, 3, 1, 2};
    const Value *value = node->outputs[0];
    if (!x->last[value->id] || x->plain[value->id]) return;
    if (!x->partition->escapes[value->id]) return;
    xnn_transpose(x, x->last[value->id] - 1, xnn_output(x, value), to_plain, 4);
}

static void add_delegate(Pte *p, const Partition *partition, uint32_t level) {
    Xnn x = {.p = p, .partition = partition};
    x.plain = calloc(p->program->value_count, sizeof *x.plain);
    x.last = calloc(p->program->value_count, sizeof *x.last);
    VEC_PUSH(&x.data, FLAT_TABLE(&x.b, FLAT_64(0, 0))); /* 0 stands for no constant */
    for (const Node *node = p->program->first; node && x.plain && x.last; node = node->next) {
        uint32_t id = node->outputs[0]->id;
        if (!partition->taken[id] || partition->levels[id] != level) continue;
        p->node = node;
        xnn_add_node(&x, node);
        make_plain(&x, node);
    }
    p->node = NULL;
    Delegate delegate = assemble(&x);
    if (!x.plain || !x.last || !delegate.bytes || x.nodes.failed || x.values.failed ||
        x.data.failed || x.args.failed || x.inputs.failed || x.outputs.failed) {
        pte_fail(p, FERRY_OUT_OF_MEMORY, "out of memory");
    }
    if (p->status == FERRY_OK) pte_delegate(p, delegate, x.args.items, x.args.count);
    flat_free(&x.b);
    free(x.plain);
    free(x.last);
    VEC_FREE(&x.nodes);
    VEC_FREE(&x.values);
    VEC_FREE(&x.data);
    VEC_FREE(&x.args);
    VEC_FREE(&x.inputs);
    VEC_FREE(&x.outputs);
}

const Backend xnnpack_backend = {.name = "xnnpack",
                                 .id = "XnnpackBackend",
                                 .has = xnnpack_has,
                                 .takes = xnnpack_takes,
                                 .decomposes = xnnpack_decomposes,
                                 .prepare = pass_broadcast_attention,
                                 .multiplies_transposed = true,
                                 .delegate = add_delegate};
