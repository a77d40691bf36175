/* Rows of convolution and pooling, which work with channels last. */
#include "target/executorch/xnnpack_rows.h"

static uint32_t entry(const Node *node, uint32_t arg, uint32_t i) {
    return (uint32_t)node->args[arg].integers.items[i]->value;
}

static bool is_depthwise(const Node *node) {
    const Value *weight = node_tensor(node, 1);
    return node_int(node, 8) > 1 && sym_is_value(weight->shape[1], 1);
}

bool xnn_takes_convolution(const Node *node) {
    const Value *weight = node_tensor(node, 1), *bias = node_tensor(node, 2);
    return xnn_is_static(weight, 4) && (!bias || xnn_is_static(bias, 1)) &&
           !node->args[6].boolean && node_tensor(node, 0)->rank == 4;
}

/* Filters are [out, height, width, in]; of a depthwise convolution [1, height, width, out]. The bias is
 * float32. */
void xnn_add_convolution(Xnn *x, const Node *node) {
    static const int64_t dense[] = {0, 2, 3, 1}, wise[] = {1, 2, 3, 0};
    const Value *weight = node_tensor(node, 1), *bias = node_tensor(node, 2);
    Arena *arena = &x->p->program->arena;
    bool depthwise = is_depthwise(node);
    const Recipe *filter = recipe_permute(arena, weight->recipe, depthwise ? wise : dense);
    if (!filter || (bias && !recipe_cast(arena, bias->recipe, FERRY_F32))) {
        pte_fail(x->p, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    uint32_t groups = (uint32_t)node_int(node, 8), out = (uint32_t)weight->shape[0]->value;
    uint32_t from = xnn_channels_last(x, node_tensor(node, 0));
    uint32_t id = xnn_weight(x, filter, weight->name);
    const Recipe *wide = bias ? recipe_cast(arena, bias->recipe, FERRY_F32) : NULL;
    uint32_t added = wide ? xnn_weight(x, wide, bias->name) : UINT32_MAX;
    uint32_t to = xnn_output_channels_last(x, node->outputs[0]);
    uint32_t pad[] = {entry(node, 4, 0), entry(node, 4, 1)};
    xnn_node(x, depthwise ? XNN_DEPTHWISE : XNN_CONV,
             FLAT_TABLE(&x->b, FLAT_32(0, pad[0]), FLAT_32(1, pad[1]), FLAT_32(2, pad[0]),
                        FLAT_32(3, pad[1]), FLAT_32(4, weight->shape[2]->value),
                        FLAT_32(5, weight->shape[3]->value), FLAT_32(6, entry(node, 3, 0)),
                        FLAT_32(7, entry(node, 3, 1)), FLAT_32(8, entry(node, 5, 0)),
                        FLAT_32(9, entry(node, 5, 1)), FLAT_32(10, weight->shape[1]->value),
                        FLAT_32(11, out / groups), FLAT_32(12, groups), FLAT_32(13, 0),
                        FLAT_32(14, 0), FLAT_32(15, from), FLAT_32(16, id), FLAT_32(17, added),
                        FLAT_32(18, to), FLAT_32(19, 0)));
}

/* XNNPACK's average leaves padding out, and its windows overlap or touch. */
bool xnn_takes_pool(const Node *node) {
    bool average = node->op == OP_AVG_POOL;
    const Arg *ceil_mode = &node->args[average ? 4 : 5];
    if (ceil_mode->boolean || node_tensor(node, 0)->rank != 4) return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (entry(node, 2, i) > entry(node, 1, i)) return false;
        if (average && entry(node, 3, i) != 0) return false;
    }
    return entry(node, 1, 0) * entry(node, 1, 1) > 1;
}

void xnn_add_pool(Xnn *x, const Node *node) {
    bool average = node->op == OP_AVG_POOL;
    uint32_t from = xnn_channels_last(x, node_tensor(node, 0));
    uint32_t to = xnn_output_channels_last(x, node->outputs[0]);
    uint32_t pad[] = {entry(node, 3, 0), entry(node, 3, 1)};
    uint32_t dilation[] = {average ? 1 : entry(node, 4, 0), average ? 1 : entry(node, 4, 1)};
    xnn_node(x, xnn_type(node),
             FLAT_TABLE(&x->b, FLAT_32(0, pad[0]), FLAT_32(1, pad[1]), FLAT_32(2, pad[0]),
                        FLAT_32(3, pad[1]), FLAT_32(4, entry(node, 1, 0)),
                        FLAT_32(5, entry(node, 1, 1)), FLAT_32(6, entry(node, 2, 0)),
                        FLAT_32(7, entry(node, 2, 1)), FLAT_32(8, dilation[0]),
                        FLAT_32(9, dilation[1]), FLAT_32(10, from), FLAT_32(11, to),
                        FLAT_32(12, 0)));
}
