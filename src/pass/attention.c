/* Attention for targets whose operation has less than ATen's: no grouped heads, no bool masks, no
 * implied causal mask. The operation stays whole; what it is given changes. */
#include "pass/attention.h"
#include "pass/pass.h"
#include "pass/replace.h"

/* The most negative finite number of a dtype, which a mask adds to a score. */
static double lowest(ferry_dtype dtype) {
    if (dtype == FERRY_F16) return -65504.0;
    if (dtype == FERRY_BF16) return -3.3895313892515355e38;
    return -3.4028234663852886e38;
}

Value *attention_causal_mask(Builder *b, const Sym *queries, const Sym *keys) {
    Value *rows = build_unsqueeze(b, build_arange(b, build_const(b, 0), queries, FERRY_I64), 1);
    Value *columns = build_unsqueeze(b, build_arange(b, build_const(b, 0), keys, FERRY_I64), 0);
    Value *visible = build_binary(b, OP_LE, columns, rows);
    return build_unsqueeze(b, build_unsqueeze(b, visible, 0), 0);
}

Value *attention_added_mask(Builder *b, Value *mask, ferry_dtype dtype) {
    Value *none = build_full(b, NULL, 0, 0, dtype);
    Value *hidden = build_full(b, NULL, 0, lowest(dtype), dtype);
    return build_where(b, mask, none, hidden);
}

/* ---- shared heads ---- */

/* [batch, groups, length, size], of which `x` has each group several times in a row; NULL: it has not. */
static Value *before_repeating(const Value *x) {
    const Node *view = x->producer, *expand, *start;
    if (!view || view->op != OP_VIEW || x->rank != 4) return NULL;
    expand = view->args[0].tensor->producer;
    if (!expand || expand->op != OP_EXPAND) return NULL;
    const Value *wide = expand->outputs[0], *narrow = expand->args[0].tensor;
    start = narrow->producer;
    if (!start || (start->op != OP_UNSQUEEZE && start->op != OP_VIEW)) return NULL;
    Value *shared = start->args[0].tensor;
    bool fits = wide->rank == 5 && narrow->rank == 5 && shared->rank == 4 &&
                sym_is_value(narrow->shape[2], 1);
    for (uint32_t d = 0; d < 4 && fits; d++) {
        uint32_t there = d < 2 ? d : d + 1;
        fits = shared->shape[d] == narrow->shape[there] && shared->shape[d] == wide->shape[there] &&
               (d == 1 || shared->shape[d] == x->shape[d]);
    }
    return fits ? shared : NULL;
}

static void share_attention(Node *node) {
    Value *key = before_repeating(node->args[1].tensor);
    Value *value = before_repeating(node->args[2].tensor);
    if (!key || !value || key->shape[1] != value->shape[1]) return;
    node->args[1].tensor = key;
    node->args[2].tensor = value;
    node->args[6] = arg_bool(true);
}

static bool swaps_last_of_four(const Node *node) {
    static const int64_t swapped[] = {0, 1, 3, 2};
    for (uint32_t d = 0; d < 4; d++) {
        if (!sym_is_value(node->args[1].integers.items[d], swapped[d])) return false;
    }
    return true;
}

/* The rows of a group's heads times what they share, as one matrix; NULL: nothing is shared. */
static Value *share_product(Builder *b, const Node *node) {
    Value *rows = node->args[0].tensor, *repeated = node->args[1].tensor;
    const Value *out = node->outputs[0];
    const Node *maker = repeated->producer;
    if (rows->rank != 4 || repeated->rank != 4) return NULL;
    bool swapped = maker && maker->op == OP_PERMUTE && swaps_last_of_four(maker);
    Value *shared = before_repeating(swapped ? maker->args[0].tensor : repeated);
    if (!shared || rows->shape[0] != shared->shape[0]) return NULL;
    if (rows->shape[1] != repeated->shape[1]) return NULL;
    SymTable *symbols = &b->program->symbols;
    const Sym *heads = sym_floordiv(symbols, rows->shape[1], shared->shape[1]);
    const Sym *shape[] = {rows->shape[0], shared->shape[1], sym_mul(symbols, heads, rows->shape[2]),
                          rows->shape[3]};
    if (swapped) shared = build_transpose(b, shared, 2, 3);
    Value *product = build_matmul(b, build_view(b, rows, shape, 4), shared);
    return build_view(b, product, out->shape, 4);
}

ferry_status pass_share_heads(Program *program, ferry_error *error) {
    Replacements map = {0};
    ferry_status status = FERRY_OK;
    for (Node *node = program->first, *next; node && status == FERRY_OK; node = next) {
        next = node->next;
        if (node->op == OP_ATTENTION) share_attention(node);
        if (node->op != OP_MATMUL) continue;
        Builder b = build_start(program, error);
        b.before = node;
        b.scope = node->scope;
        Value *value = share_product(&b, node);
        status = build_finish(&b);
        if (status == FERRY_OK && value)
            status = replace_node(program, &map, node, value, "shared heads", error);
    }
    return replace_finish(program, &map, status, error);
}

/* Each head `times` times in a row: [batch, heads, length, size] to as many heads as queries have. */
static Value *repeat_heads(Builder *b, Value *x, const Sym *heads) {
    SymTable *symbols = &b->program->symbols;
    const Sym *wide[] = {x->shape[0], x->shape[1], sym_floordiv(symbols, heads, x->shape[1]),
                         x->shape[2], x->shape[3]};
    const Sym *shape[] = {x->shape[0], heads, x->shape[2], x->shape[3]};
    if (x->shape[1] == heads) return x;
    return build_view(b, build_expand(b, build_unsqueeze(b, x, 2), wide, 5), shape, 4);
}

/* What to multiply a context [..., queries, size] by: 0 in the rows in which an added mask hides everything,
 * else 1. */
static Value *attended_rows(Builder *b, Value *mask, const Sym *size) {
    Value *best = build_reduce(b, OP_AMAX, mask, -1, true);
    Value *ones = build_full(b, &size, 1, 1, mask->dtype);
    Value *zeros = build_full(b, &size, 1, 0, mask->dtype);
    return build_where(b, build_scalar(b, OP_GE_SCALAR, best, 0), ones, zeros);
}

/* The same attention with less asked of it. Rows that a bool mask hides entirely are zeros, as ATen has
 * them. The factor has a number for every feature, and is told by the added mask, which so has two
 * readers: for the CPU plugin of OpenVINO takes what it can into the attention, and then errs (2026.4:
 * with heads of 128 and more, a product with one number per row is wrong; x - x * hidden crashes where
 * sizes are fixed). */
static Value *plain(Builder *b, const Node *node) {
    Value *query = node->args[0].tensor, *key = node->args[1].tensor;
    Value *mask = node->args[3].kind == VALUE_TENSOR ? node->args[3].tensor : NULL;
    Value *attended = NULL;
    bool causal = node->args[4].boolean; /* every row sees the first column at least */
    if (causal) mask = attention_causal_mask(b, query->shape[2], key->shape[2]);
    if (mask && mask->dtype == FERRY_BOOL) {
        mask = attention_added_mask(b, mask, query->dtype);
        if (!causal) attended = attended_rows(b, mask, node->outputs[0]->shape[3]);
    }
    Value *value = repeat_heads(b, node->args[2].tensor, query->shape[1]);
    const Arg args[] = {
        arg_tensor(query), arg_tensor(repeat_heads(b, key, query->shape[1])),
        arg_tensor(value), arg_tensor(mask),
        arg_bool(false),   node->args[5],
        arg_bool(false),
    };
    Value *context = build_op(b, OP_ATTENTION, args, 7);
    return attended ? build_mul(b, context, attended) : context;
}

ferry_status pass_plain_attention(Program *program, ferry_error *error) {
    Replacements map = {0};
    ferry_status status = FERRY_OK;
    for (Node *node = program->first, *next; node && status == FERRY_OK; node = next) {
        next = node->next;
        if (node->op != OP_ATTENTION) continue;
        Builder b = build_start(program, error);
        b.before = node;
        b.scope = node->scope;
        Value *value = plain(&b, node);
        status = build_finish(&b);
        if (status == FERRY_OK)
            status = replace_node(program, &map, node, value, "plain attention", error);
    }
    return replace_finish(program, &map, status, error);
}
