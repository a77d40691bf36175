/* Strides of new tensors. What works element by element keeps the order of dimensions that its
 * arguments have in memory, and so does CPU attention with its query; image operations keep channels
 * last; nonzero finds one dimension after the other; everything else makes dense, row-major tensors.
 * Comparisons of symbolic strides are decided by the sample sizes. */
#include "target/dynamo/serialize.h"

#include <string.h>

/* Dense strides for dimensions that are in memory in the order `order`, the innermost first. */
static const Sym *const *dense(Serializer *s, uint32_t rank, const Sym *const *shape,
                               const uint32_t *order) {
    SymTable *table = &s->program->symbols;
    const Sym **strides = ARENA_ARRAY(&s->arena, const Sym *, rank);
    const Sym *stride = sym_const(table, 1);
    for (uint32_t i = 0; strides && i < rank; i++) {
        strides[order[i]] = stride;
        stride = sym_mul(table, stride, sym_max(table, shape[order[i]], sym_const(table, 1)));
    }
    return strides;
}

const Sym *const *strides_contiguous(Serializer *s, uint32_t rank, const Sym *const *shape) {
    uint32_t order[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) order[d] = rank - 1 - d;
    return dense(s, rank, shape, order);
}

/* Tensor.is_contiguous: the strides of dimensions of one element do not count. */
static bool is_contiguous(const Serializer *s, const Value *value) {
    int64_t stride = 1;
    for (uint32_t d = value->rank; d-- > 0;) {
        int64_t size = symbols_sample(s, value->shape[d]);
        if (size != 1 && symbols_sample(s, s->strides[value->id][d]) != stride) return false;
        stride *= size;
    }
    return true;
}

/* ---- element by element: the order that TensorIterator chooses ---- */

typedef struct Operands {
    int64_t strides[4][FERRY_MAX_RANK]; /* 0: repeated along the dimension */
    uint32_t count;
    int64_t shape[FERRY_MAX_RANK];
} Operands;

static void add_operand(const Serializer *s, const Value *operand, const Value *out, Operands *in) {
    if (in->count == sizeof in->strides / sizeof *in->strides) return;
    int64_t *strides = in->strides[in->count++];
    uint32_t fresh = out->rank - operand->rank;
    for (uint32_t d = 0; d < out->rank; d++) {
        bool repeats = d < fresh || (sym_is_value(operand->shape[d - fresh], 1) &&
                                     !sym_is_value(out->shape[d], 1));
        strides[d] = repeats ? 0 : symbols_sample(s, s->strides[operand->id][d - fresh]);
    }
}

/* Whether dimension `a` must be outside of `b` (1), inside (-1), or does not care (0). */
static int compare(const Operands *in, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < in->count; i++) {
        int64_t left = in->strides[i][a], right = in->strides[i][b];
        if (left == 0 || right == 0) continue;
        if (left != right) return left < right ? -1 : 1;
        if (in->shape[a] > in->shape[b]) return 1;
    }
    return 0;
}

static bool has_shape(const Serializer *s, const Value *operand, const Value *out) {
    if (operand->rank != out->rank) return false;
    for (uint32_t d = 0; d < out->rank; d++) {
        if (symbols_sample(s, operand->shape[d]) != symbols_sample(s, out->shape[d])) return false;
    }
    return true;
}

/* `count` of the node's first arguments are operands, as far as they are tensors. */
static const Sym *const *ordered(Serializer *s, const Node *node, uint32_t count,
                                 const Value *out) {
    Operands in = {0};
    uint32_t order[FERRY_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        if (node->args[i].kind == VALUE_TENSOR) add_operand(s, node->args[i].tensor, out, &in);
    }
    for (uint32_t d = 0; d < out->rank; d++) in.shape[d] = symbols_sample(s, out->shape[d]);
    for (uint32_t d = 0; d < out->rank; d++) order[d] = out->rank - 1 - d;
    for (uint32_t i = 1; i < out->rank; i++) {
        for (uint32_t at = i, inner = i; inner-- > 0;) {
            int outside = compare(&in, order[inner], order[at]);
            if (outside < 0) break;
            if (outside == 0) continue;
            uint32_t moved = order[at];
            order[at] = order[inner];
            order[inner] = moved;
            at = inner;
        }
    }
    return dense(s, out->rank, out->shape, order);
}

/* Contiguous operands of one shape need no order. */
static const Sym *const *elementwise(Serializer *s, const Node *node, uint32_t count,
                                     const Value *out) {
    bool plain = true;
    for (uint32_t i = 0; i < count && plain; i++) {
        const Value *operand = node->args[i].tensor;
        if (node->args[i].kind == VALUE_TENSOR)
            plain = has_shape(s, operand, out) && is_contiguous(s, operand);
    }
    return plain ? strides_contiguous(s, out->rank, out->shape) : ordered(s, node, count, out);
}

static bool is_elementwise(Op op) {
    return op >= OP_ADD && op <= OP_WHERE;
}

/* The CPU's flash kernel serves four dimensions and equal head sizes, and writes in the order of the
 * query; otherwise attention is made of matmuls. */
static bool follows_query(const Node *node) {
    const Value *query = node->args[0].tensor, *value = node->args[2].tensor;
    return query->rank == 4 && query->shape[3] == value->shape[3];
}

/* ---- images: channels last in, channels last out ---- */

/* at::is_channels_last_strides_2d */
static bool is_channels_last(const Serializer *s, const Value *value) {
    static const uint32_t order[] = {1, 3, 2, 0};
    const Sym *const *strides = s->strides[value->id];
    int64_t least = 0;
    if (value->rank != 4 || sym_is_value(strides[1], 0)) return false;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t size = symbols_sample(s, value->shape[order[i]]);
        int64_t stride = symbols_sample(s, strides[order[i]]);
        if (size == 0 || stride < least) return false;
        if (order[i] == 0 && least == symbols_sample(s, strides[1])) return false;
        least = size > 1 ? stride * size : stride;
    }
    return true;
}

/* Operations whose result takes the memory format of their arguments: all of them for cat, any of the
 * first two for convolution, the first otherwise. */
static bool keeps_channels_last(const Serializer *s, const Node *node) {
    const Arg *first = &node->args[0];
    bool all = true;
    switch (node->op) {
    case OP_CAT:
        for (uint32_t i = 0; i < first->tensors.count; i++)
            all = all && is_channels_last(s, first->tensors.items[i]);
        return all;
    case OP_CONVOLUTION:
        return is_channels_last(s, first->tensor) || is_channels_last(s, node->args[1].tensor);
    case OP_MAX_POOL:
    case OP_AVG_POOL:
    case OP_GROUP_NORM:
    case OP_PAD:
    case OP_UPSAMPLE_NEAREST:
    case OP_UPSAMPLE_NEAREST_EXACT:
    case OP_UPSAMPLE_BILINEAR:
    case OP_UPSAMPLE_BICUBIC:
    case OP_UPSAMPLE_BILINEAR_AA:
    case OP_UPSAMPLE_BICUBIC_AA: return is_channels_last(s, first->tensor);
    default: return false;
    }
}

static const Sym *const *infer(Serializer *s, const Node *node, const Value *self,
                               const Value *out) {
    const Sym *const *strides = self ? strides_view(s, node, self, out) : NULL;
    if (strides) return strides;
    if (is_elementwise(node->op)) return elementwise(s, node, op_schema(node->op)->arg_count, out);
    if (node->op == OP_BATCH_NORM) return elementwise(s, node, 1, out);
    if (node->op == OP_ATTENTION && follows_query(node)) return ordered(s, node, 1, out);
    static const uint32_t channels_last[] = {1, 3, 2, 0}, transposed[] = {0, 1};
    if (out->rank == 4 && keeps_channels_last(s, node))
        return dense(s, 4, out->shape, channels_last);
    if (node->op == OP_NONZERO) return dense(s, 2, out->shape, transposed);
    return strides_contiguous(s, out->rank, out->shape);
}

void strides_infer(Serializer *s, const Node *node) {
    const Value *self = node->args[0].kind == VALUE_TENSOR ? node->args[0].tensor : NULL;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *out = node->outputs[i];
        s->strides[out->id] = infer(s, node, self, out);
    }
}
