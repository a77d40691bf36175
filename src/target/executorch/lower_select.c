/* Lowerings of operations that pick, order and reduce elements. */
#include "target/executorch/lower.h"

#include <string.h>

/* No padding index, no scaling by frequency, dense. */
void pte_lower_embedding(Pte *p, const Node *node) {
    PteValue no = pte_bool(p, false);
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_int(p, -1), no, no);
}

void pte_lower_gather(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_node_arg(p, node, 2), pte_bool(p, false));
}

void pte_lower_nonzero(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0));
}

/* Sorted, as ATen's are. */
void pte_lower_topk(Pte *p, const Node *node) {
    PteValue x = pte_node_arg(p, node, 0), k = pte_node_arg(p, node, 1);
    PteValue dim = pte_node_arg(p, node, 2), largest = pte_node_arg(p, node, 3);
    const PteValue both[] = {pte_output(p, node->outputs[0]), pte_output(p, node->outputs[1])};
    pte_call(p, node_kernel(node),
             ARGS(x, k, dim, largest, pte_bool(p, true), both[0], both[1],
                  pte_list(p, SLOT_TENSORS, both, 2)));
}

/* ---- indexing by tensors ---- */

/* The index tensors of a node, one for each leading dimension, or none. */
static PteValue indices(Pte *p, const Arg *list) {
    PteValue *items = ARENA_ARRAY(&p->arena, PteValue, list->tensors.count);
    if (!items) return 0;
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        const Value *index = list->tensors.items[i];
        items[i] = index ? pte_value(p, index) : -1;
    }
    return pte_list(p, SLOT_OPTIONAL_TENSORS, items, list->tensors.count);
}

void pte_lower_index(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), indices(p, &node->args[1]));
}

/* The kernel that writes in place does not count from the end: a negative index is made positive. */
static PteValue from_the_start(Pte *p, const Value *index, const Sym *size) {
    PteValue from = pte_value(p, index), one = pte_int(p, 1);
    PteValue negative = pte_temp(p, FERRY_BOOL, index->rank, index->shape);
    PteValue behind = pte_like(p, index), positive = pte_like(p, index);
    pte_result(p, "aten::lt.Scalar_out", negative, ARGS(from, pte_int(p, 0)));
    pte_result(p, "aten::add.Scalar_out", behind, ARGS(from, pte_size(p, size), one));
    return pte_result(p, "aten::where.self_out", positive, ARGS(negative, behind, from));
}

/* It wants all dimensions: those of size 1 in front, too. */
static PteValue full_rank(Pte *p, PteValue rows, uint32_t rank) {
    const Slot *slot = &p->slots.items[rows];
    const Sym *sizes[FERRY_MAX_RANK];
    if (slot->rank >= rank || slot->varies) return rows;
    uint32_t missing = rank - slot->rank;
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = d < missing ? sym_const(&p->program->symbols, 1) : slot->shape[d - missing];
    }
    return pte_view(p, rows, rank, pte_shape(p, sizes, rank));
}

void pte_lower_index_put(Pte *p, const Node *node) {
    const Arg *list = &node->args[1];
    const Value *into = node_tensor(node, 0), *index = NULL;
    PteValue items[FERRY_MAX_RANK];
    uint32_t found = 0, dim = 0;
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        items[i] = -1;
        if (!list->tensors.items[i]) continue;
        index = list->tensors.items[dim = i];
        found++;
    }
    bool in_place = p->updates[node->outputs[0]->id] && found == 1 && index->rank == 1 &&
                    (index->dtype == FERRY_I64 || index->dtype == FERRY_I32);
    PteValue places;
    if (in_place) {
        items[dim] = from_the_start(p, index, into->shape[dim]);
        places = pte_list(p, SLOT_OPTIONAL_TENSORS, items, list->tensors.count);
    } else {
        places = indices(p, list);
    }
    PteValue rows = pte_node_arg(p, node, 2);
    if (in_place) rows = full_rank(p, rows, into->rank);
    RESULT(p, node, node_kernel(node), pte_value(p, into), places, rows, pte_node_arg(p, node, 3));
}

/* Rows of `source` go where the index says: index_put with nothing before the dimension. */
void pte_lower_index_copy(Pte *p, const Node *node) {
    PteValue items[FERRY_MAX_RANK];
    uint32_t dim = (uint32_t)node_dim(node, 1, node->outputs[0]->rank);
    for (uint32_t d = 0; d < dim; d++) items[d] = -1;
    items[dim] = pte_node_arg(p, node, 2);
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0),
           pte_list(p, SLOT_OPTIONAL_TENSORS, items, dim + 1), pte_node_arg(p, node, 3),
           pte_bool(p, false));
}

void pte_lower_scatter_reduce(Pte *p, const Node *node) {
    if (strcmp(node->args[4].string, "sum") != 0) {
        pte_fail(p, FERRY_UNSUPPORTED,
                 "the ExecuTorch runtime has no kernel aten::scatter_reduce.two_out, which %s "
                 "with reduce=\"%s\" needs",
                 op_name(node->op), node->args[4].string);
        return;
    }
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_node_arg(p, node, 2), pte_node_arg(p, node, 3));
}

/* ---- reduction ---- */

/* In the dtype that the result has. */
void pte_lower_reduce(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_node_arg(p, node, 2), pte_null(p));
}

void pte_lower_cumsum(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_null(p));
}

void pte_lower_softmax(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_bool(p, false));
}
