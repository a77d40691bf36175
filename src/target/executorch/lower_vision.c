/* Lowerings of operations on images and other channels. */
#include "target/executorch/lower.h"

#include <string.h>

/* A kernel that has two results besides the one that is read, of `rank` and `shape`. */
static void with_statistics(Pte *p, const Node *node, const PteValue *args, uint32_t count,
                            uint32_t rank, const Sym *const *shape) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    PteValue all[16];
    memcpy(all, args, count * sizeof *args);
    all[count] = pte_output(p, node->outputs[0]);
    all[count + 1] = pte_temp(p, dtype, rank, shape);
    all[count + 2] = pte_temp(p, dtype, rank, shape);
    all[count + 3] = pte_list(p, SLOT_TENSORS, all + count, 3);
    pte_call(p, node_kernel(node), all, count + 4);
}

/* The statistics of a run without training are empty. */
void pte_lower_batch_norm(Pte *p, const Node *node) {
    const Sym *none = sym_const(&p->program->symbols, 0);
    PteValue args[7];
    for (uint32_t i = 0; i < 5; i++) args[i] = pte_node_arg(p, node, i);
    args[5] = pte_double(p, node_number(node, 6));
    args[6] = pte_double(p, node_number(node, 7));
    with_statistics(p, node, args, 7, 1, pte_shape(p, &none, 1));
}

void pte_lower_group_norm(Pte *p, const Node *node) {
    const Value *x = node_tensor(node, 0);
    SymTable *symbols = &p->program->symbols;
    const Sym *places = shape_count(symbols, x->rank - 2, x->shape + 2);
    const Sym *shape[] = {x->shape[0], node->args[1].integer};
    const PteValue args[] = {pte_value(p, x),          pte_node_arg(p, node, 2),
                             pte_node_arg(p, node, 3), pte_size(p, x->shape[0]),
                             pte_size(p, x->shape[1]), pte_size(p, places),
                             pte_node_arg(p, node, 1), pte_node_arg(p, node, 4)};
    with_statistics(p, node, args, 8, 2, pte_shape(p, shape, 2));
}

/* The kernel also returns where it found the maxima. */
void pte_lower_max_pool(Pte *p, const Node *node) {
    const Value *out = node->outputs[0];
    PteValue args[9];
    for (uint32_t i = 0; i < 6; i++) args[i] = pte_node_arg(p, node, i);
    args[6] = pte_output(p, out);
    args[7] = pte_temp(p, FERRY_I64, out->rank, out->shape);
    args[8] = pte_list(p, SLOT_TENSORS, args + 6, 2);
    pte_call(p, node_kernel(node), args, 9);
}

/* No divisor of its own. */
void pte_lower_avg_pool(Pte *p, const Node *node) {
    PteValue args[7];
    for (uint32_t i = 0; i < 6; i++) args[i] = pte_node_arg(p, node, i);
    args[6] = pte_null(p);
    pte_result(p, node_kernel(node), pte_output(p, node->outputs[0]), args, 7);
}

/* A size that is at least 0: of a padding that may be negative, what is added or, `minus`, taken away. */
static const Sym *part_of_pad(Pte *p, const Sym *pad, bool minus) {
    SymTable *symbols = &p->program->symbols;
    const Sym *zero = sym_const(symbols, 0);
    return sym_max(symbols, zero, minus ? sym_sub(symbols, zero, pad) : pad);
}

/* Negative padding takes elements away, which the kernel does not do. */
static void pad_constant(Pte *p, const Node *node) {
    const Value *x = node_tensor(node, 0);
    const Arg *pads = &node->args[1];
    SymTable *symbols = &p->program->symbols;
    const Sym *added[2 * FERRY_MAX_RANK], *shape[FERRY_MAX_RANK];
    PteValue from = pte_value(p, x), one = pte_int(p, 1);
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    for (uint32_t i = 0; i < pads->integers.count; i += 2) {
        const Sym *before = pads->integers.items[i], *after = pads->integers.items[i + 1];
        uint32_t dim = x->rank - 1 - i / 2;
        added[i] = part_of_pad(p, before, false);
        added[i + 1] = part_of_pad(p, after, false);
        if (before->lower >= 0 && after->lower >= 0) continue;
        const Sym *start = part_of_pad(p, before, true);
        const Sym *end = sym_sub(symbols, shape[dim], part_of_pad(p, after, true));
        shape[dim] = sym_sub(symbols, end, start);
        from = pte_result(p, "aten::slice_copy.Tensor_out",
                          pte_temp(p, x->dtype, x->rank, pte_shape(p, shape, x->rank)),
                          ARGS(from, pte_int(p, dim), pte_size(p, start), pte_size(p, end), one));
    }
    RESULT(p, node, node_kernel(node), from, pte_sizes(p, added, pads->integers.count),
           pte_node_arg(p, node, 3));
}

/* "aten::reflection_pad2d.out", by the number of padded dimensions */
void pte_lower_pad(Pte *p, const Node *node) {
    const char *mode = node->args[2].string;
    if (strcmp(mode, "constant") == 0) {
        pad_constant(p, node);
        return;
    }
    const char *name = strcmp(mode, "reflect") == 0     ? "reflection"
                       : strcmp(mode, "replicate") == 0 ? "replication"
                                                        : mode;
    const char *kernel =
        arena_format(&p->arena, "aten::%s_pad%ud.out", name, node->args[1].integers.count / 2);
    RESULT(p, node, kernel, pte_node_arg(p, node, 0), pte_node_arg(p, node, 1));
}

/* By the size alone, or by the factors where they are given: then they also place the elements. */
void pte_lower_upsample(Pte *p, const Node *node) {
    bool bilinear = node->op == OP_UPSAMPLE_BILINEAR;
    uint32_t first = bilinear ? 3 : 2;
    PteValue size = pte_node_arg(p, node, 1), factors = pte_null(p), args[4];
    const Arg *scales = &node->args[first];
    bool corners = bilinear && node->args[2].boolean;
    if (scales[0].kind == VALUE_FLOAT && scales[1].kind == VALUE_FLOAT && !corners) {
        factors = pte_doubles(p, (const double[]){scales[0].number, scales[1].number}, 2);
        size = pte_null(p);
    }
    uint32_t count = 0;
    args[count++] = pte_node_arg(p, node, 0);
    args[count++] = size;
    if (bilinear) args[count++] = pte_node_arg(p, node, 2);
    args[count++] = factors;
    pte_result(p, node_kernel(node), pte_output(p, node->outputs[0]), args, count);
}
