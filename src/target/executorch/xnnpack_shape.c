/* Rows of operations that rearrange elements. */
#include "target/executorch/xnnpack_rows.h"

#include <string.h>

enum { MAX_CAT = 5 };

static uint32_t count_dynamic(const Value *value) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < value->rank; d++) count += !sym_is_const(value->shape[d]);
    return count;
}

bool xnn_takes_reshape(const Node *node) {
    const Value *out = node->outputs[0];
    for (uint32_t d = 0; d < out->rank; d++) {
        if (sym_is_value(out->shape[d], 0)) return false;
    }
    return count_dynamic(out) <= 1;
}

/* 0 stands for the size that follows from the others. */
void xnn_reshape(Xnn *x, uint32_t from, uint32_t to, uint32_t rank, const Sym *const *shape) {
    uint32_t sizes[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = sym_is_const(shape[d]) ? (uint32_t)shape[d]->value : 0;
    }
    FlatRef list = flat_vector(&x->b, sizes, sizeof *sizes, rank);
    xnn_node(x, XNN_RESHAPE,
             FLAT_TABLE(&x->b, FLAT_32(0, rank), FLAT_REF(1, list), FLAT_32(2, from),
                        FLAT_32(3, to), FLAT_32(4, 0)));
}

void xnn_add_reshape(Xnn *x, const Node *node) {
    const Value *out = node->outputs[0];
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_reshape(x, from, xnn_output(x, out), out->rank, out->shape);
}

void xnn_add_permute(Xnn *x, const Node *node) {
    const Arg *list = &node->args[1];
    int64_t dims[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < list->integers.count; d++) dims[d] = list->integers.items[d]->value;
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_transpose(x, from, xnn_output(x, node->outputs[0]), dims, list->integers.count);
}

bool xnn_takes_cat(const Node *node) {
    uint32_t count = node->args[0].tensors.count;
    return count >= 2 && count <= MAX_CAT;
}

void xnn_add_cat(Xnn *x, const Node *node) {
    static const uint8_t types[] = {XNN_CAT2, XNN_CAT3, XNN_CAT4, XNN_CAT5};
    const Arg *parts = &node->args[0];
    uint32_t ids[MAX_CAT], count = parts->tensors.count;
    for (uint32_t i = 0; i < MAX_CAT; i++) {
        ids[i] = i < count ? xnn_input(x, parts->tensors.items[i]) : UINT32_MAX;
    }
    uint32_t to = xnn_output(x, node->outputs[0]);
    xnn_node(x, types[count - 2],
             FLAT_TABLE(&x->b, FLAT_32(0, node_dim(node, 1, node->outputs[0]->rank)),
                        FLAT_32(1, ids[0]), FLAT_32(2, ids[1]), FLAT_32(3, ids[2]),
                        FLAT_32(4, ids[3]), FLAT_32(5, to), FLAT_32(6, 0), FLAT_32(7, ids[4])));
}

/* `size` elements of a static dimension; the others stay whatever they are (offset 0, size 0). */
static void slice(Xnn *x, uint32_t from, uint32_t to, uint32_t rank, uint32_t dim, int64_t start,
                  int64_t size) {
    uint32_t offsets[FERRY_MAX_RANK] = {0}, sizes[FERRY_MAX_RANK] = {0};
    offsets[dim] = (uint32_t)start;
    sizes[dim] = (uint32_t)size;
    FlatRef starts = flat_vector(&x->b, offsets, sizeof *offsets, rank);
    FlatRef lengths = flat_vector(&x->b, sizes, sizeof *sizes, rank);
    xnn_node(x, XNN_SLICE,
             FLAT_TABLE(&x->b, FLAT_32(0, rank), FLAT_REF(1, starts), FLAT_REF(2, lengths),
                        FLAT_32(3, from), FLAT_32(4, to), FLAT_32(5, 0)));
}

bool xnn_takes_slice(const Node *node) {
    const Value *from = node_tensor(node, 0), *to = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, from->rank);
    if (!sym_is_const(from->shape[dim]) || !sym_is_const(to->shape[dim])) return false;
    return sym_is_const(node->args[2].integer) && node_int(node, 2) >= 0 &&
           sym_is_value(node->args[4].integer, 1) && to->shape[dim]->value > 0;
}

void xnn_add_slice(Xnn *x, const Node *node) {
    const Value *to = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, to->rank), from = xnn_input(x, node_tensor(node, 0));
    slice(x, from, xnn_output(x, to), to->rank, dim, node_int(node, 2), to->shape[dim]->value);
}

bool xnn_takes_split(const Node *node) {
    const Arg *sizes = &node->args[1];
    for (uint32_t i = 0; i < sizes->integers.count; i++) {
        const Sym *size = sizes->integers.items[i];
        if (!sym_is_const(size) || size->value == 0) return false;
    }
    return true;
}

void xnn_add_split(Xnn *x, const Node *node) {
    const Value *whole = node_tensor(node, 0);
    uint32_t dim = (uint32_t)node_dim(node, 2, whole->rank), from = xnn_input(x, whole);
    int64_t start = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *part = node->outputs[i];
        int64_t size = part->shape[dim]->value;
        slice(x, from, xnn_output(x, part), part->rank, dim, start, size);
        start += size;
    }
}

/* A slice of one, without its dimension. */
bool xnn_takes_select(const Node *node) {
    const Value *from = node_tensor(node, 0);
    const Sym *size = from->shape[node_dim(node, 1, from->rank)], *index = node->args[2].integer;
    return sym_is_const(size) && sym_is_const(index) && xnn_takes_reshape(node);
}

void xnn_add_select(Xnn *x, const Node *node) {
    const Value *from = node_tensor(node, 0), *out = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, from->rank), whole = xnn_input(x, from);
    int64_t index = node_int(node, 2);
    const Sym *sizes[FERRY_MAX_RANK];
    if (index < 0) index += from->shape[dim]->value;
    memcpy(sizes, from->shape, from->rank * sizeof *sizes);
    sizes[dim] = sym_const(&x->p->program->symbols, 1);
    uint32_t part = xnn_temp(x, out->dtype, from->rank, sizes);
    slice(x, whole, part, from->rank, dim, index, 1);
    xnn_reshape(x, part, xnn_output(x, out), out->rank, out->shape);
}

bool xnn_takes_pad(const Node *node) {
    const Arg *pads = &node->args[1];
    if (strcmp(node->args[2].string, "constant") != 0 || !xnn_is_number(&node->args[3]))
        return false;
    for (uint32_t i = 0; i < pads->integers.count; i++) {
        const Sym *pad = pads->integers.items[i];
        if (!sym_is_const(pad) || pad->value < 0) return false;
    }
    return true;
}

void xnn_add_pad(Xnn *x, const Node *node) {
    const Arg *pads = &node->args[1];
    uint32_t before[FERRY_MAX_RANK] = {0}, after[FERRY_MAX_RANK] = {0};
    uint32_t rank = node->outputs[0]->rank;
    for (uint32_t i = 0; i < pads->integers.count; i += 2) {
        before[rank - 1 - i / 2] = (uint32_t)pads->integers.items[i]->value;
        after[rank - 1 - i / 2] = (uint32_t)pads->integers.items[i + 1]->value;
    }
    uint32_t from = xnn_input(x, node_tensor(node, 0)), to = xnn_output(x, node->outputs[0]);
    FlatRef first = flat_vector(&x->b, before, sizeof *before, rank);
    FlatRef behind = flat_vector(&x->b, after, sizeof *after, rank);
    xnn_node(x, XNN_PAD,
             FLAT_TABLE(&x->b, FLAT_REF(0, first), FLAT_REF(1, behind),
                        FLAT_FLOAT(2, (float)node_number(node, 3)), FLAT_32(3, from),
                        FLAT_32(4, to), FLAT_32(5, 0)));
}
