/* Rotary position embedding. ONNX's operator takes one cosine and one sine for every pair of features, where a
 * program has one for every feature: where those of a pair are the same by their making, one is left out. */
#include "target/onnx/lower.h"

static bool doubles(const Node *cat, const Value *out, bool interleaved) {
    const Arg *parts = &cat->args[0];
    if (parts->tensors.count != 2 || parts->tensors.items[0] != parts->tensors.items[1])
        return false;
    const Value *part = parts->tensors.items[0];
    uint32_t last = part->rank - 1;
    if (lower_dim(cat, 1, part->rank) != last) return false;
    return !interleaved || (sym_is_value(part->shape[last], 1) && out->rank + 1 == part->rank);
}

/* Is it made of numbers for the pairs: the list of them twice, or, when `interleaved`, every one twice? */
static bool is_same_in_pairs(const Value *x, bool interleaved) {
    for (const Node *node; (node = x->producer); x = node->args[0].tensor) {
        switch (node->op) {
        case OP_COS:
        case OP_SIN:
        case OP_TO:
        case OP_MUL_SCALAR: break;
        case OP_UNSQUEEZE:
            if (lower_dim(node, 1, x->rank) == x->rank - 1) return false;
            break;
        case OP_VIEW:
            node = interleaved ? node->args[0].tensor->producer : NULL;
            return node && node->op == OP_CAT && doubles(node, x, true);
        case OP_CAT: return !interleaved && doubles(node, x, false);
        default: return false;
        }
    }
    return false;
}

/* x [batch, heads, length, size], cos and sin [batch or 1, 1, length, width] */
bool takes_rotary(const Node *node) {
    const Value *x = lower_tensor(node, 0);
    if (x->rank != 4 || x->dtype == FERRY_F64 || !sym_is_const(x->shape[1])) return false;
    for (uint32_t i = 1; i < 3; i++) {
        const Value *table = lower_tensor(node, i);
        if (table->rank != 4 || !sym_is_value(table->shape[1], 1)) return false;
        if (table->shape[2] != x->shape[2]) return false;
        if (table->shape[0] != x->shape[0] && !sym_is_value(table->shape[0], 1)) return false;
        if (!is_same_in_pairs(table, node->args[3].boolean)) return false;
    }
    return true;
}

/* One number for each pair, [batch, length, width / 2]; made once for all that use it. */
static const char *pairs_of(Onnx *o, const Node *node, uint32_t i) {
    const Value *x = lower_tensor(node, 0), *table = lower_tensor(node, i);
    const void *key[] = {table, x->shape[0]};
    const char *name = map_get(&o->pairs, key, sizeof key);
    if (name) return name;
    bool interleaved = node->args[3].boolean;
    const int64_t width = table->shape[3]->value, step = interleaved ? 2 : 1;
    const int64_t start = 0, end = interleaved ? width : width / 2, axis = 3, heads = 1;
    const Sym *half = sym_const(&o->program->symbols, width / 2);
    const Sym *sliced[] = {table->shape[0], table->shape[1], table->shape[2], half};
    const Sym *shape[] = {table->shape[0], table->shape[2], half};
    const char *slice[] = {onnx_name(o, table), onnx_ints(o, &start, 1), onnx_ints(o, &end, 1),
                           onnx_ints(o, &axis, 1), onnx_ints(o, &step, 1)};
    const char *squeeze[] = {onnx_helper(o, "Slice", slice, 5, NULL, 0, table->dtype, 4, sliced),
                             onnx_ints(o, &heads, 1)};
    name = onnx_helper(o, "Squeeze", squeeze, 2, NULL, 0, table->dtype, 3, shape);
    if (shape[0] != x->shape[0]) {
        shape[0] = x->shape[0];
        const char *expand[] = {name, onnx_shape(o, shape, 3)};
        name = onnx_helper(o, "Expand", expand, 2, NULL, 0, table->dtype, 3, shape);
    }
    void *kept = arena_copy(&o->arena, key, sizeof key);
    if (kept) map_set(&o->pairs, kept, sizeof key, (void *)(uintptr_t)name);
    return name;
}

void lower_rotary(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0);
    int64_t width = lower_tensor(node, 1)->shape[3]->value;
    bool whole = sym_is_value(x->shape[3], width);
    const char *inputs[] = {lower_input(o, node, 0), pairs_of(o, node, 1), pairs_of(o, node, 2)};
    const Attr attrs[] = {ATTR_I("interleaved", node->args[3].boolean),
                          ATTR_I("num_heads", x->shape[1]->value),
                          ATTR_I("rotary_embedding_dim", whole ? 0 : width)};
    RESULT(o, "RotaryEmbedding", inputs, attrs);
}
