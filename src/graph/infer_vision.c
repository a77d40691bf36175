/* Type rules of convolutions, pooling, normalization by statistics, padding and resizing. */
#include "graph/infer_rules.h"

static const Sym *plus(Infer *in, const Sym *sym, int64_t value) {
    return sym_add(&in->program->symbols, sym, constant(in, value));
}

/* A list of `count` constants, each at least `least`. */
static ferry_status require_constants(Infer *in, uint32_t arg, uint32_t count, int64_t least) {
    const Arg *list = &in->args[arg];
    const char *name = op_schema(in->op)->args[arg].name;
    if (list->integers.count != count) {
        return REJECT(in, "expected %u numbers in %s, found %u", count, name, list->integers.count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const Sym *sym = list->integers.items[i];
        if (sym_is_const(sym) && sym->value >= least && sym->value <= INT32_MAX) continue;
        return REJECT(in, "%s: expected constants of %lld or more, found %s", name,
                      (long long)least, infer_text(in, sym));
    }
    return FERRY_OK;
}

static int64_t entry(const Infer *in, uint32_t arg, uint32_t i) {
    return in->args[arg].integers.items[i]->value;
}

static ferry_status require_float(Infer *in, const Value *value) {
    if (ferry_dtype_is_float(value->dtype)) return FERRY_OK;
    return REJECT(in, "expected a floating-point tensor, found %s", ferry_dtype_name(value->dtype));
}

/* A size of the result, which cannot be below `least`. */
static ferry_status set_size(Infer *in, uint32_t dim, const Sym *size, int64_t least) {
    in->outputs[0].shape[dim] = size;
    if (size->upper >= least) return FERRY_OK;
    return REJECT(in, "dimension %u of the result would be %s: the input is too small", dim,
                  infer_text(in, size));
}

/* ---- convolution ---- */

static ferry_status convolution_weight(Infer *in, uint32_t spatial) {
    const Value *input = tensor(in, 0), *weight = tensor(in, 1);
    if (weight->rank != input->rank || weight->dtype != input->dtype) {
        return REJECT(in, "input and weight differ in rank or dtype");
    }
    for (uint32_t d = 0; d < spatial + 2; d++) {
        const Sym *size = weight->shape[d];
        if (!sym_is_const(size) || size->value < 1 || size->value > INT32_MAX) {
            return REJECT(in, "expected a weight of constant sizes, found %s",
                          infer_text(in, size));
        }
    }
    const Sym *groups = in->args[8].integer;
    if (!sym_is_const(groups) || groups->value < 1 ||
        weight->shape[0]->value % groups->value != 0) {
        return REJECT(in, "%s groups do not divide the channels of the weight",
                      infer_text(in, groups));
    }
    return FERRY_OK;
}

/* The size of dimension `i` of the windows' positions, or of the transposed result. */
static const Sym *convolved_size(Infer *in, uint32_t i) {
    const Value *input = tensor(in, 0), *weight = tensor(in, 1);
    SymTable *table = &in->program->symbols;
    int64_t stride = entry(in, 3, i), padding = entry(in, 4, i), dilation = entry(in, 5, i);
    int64_t reach = dilation * (weight->shape[i + 2]->value - 1);
    const Sym *size = input->shape[i + 2];
    if (in->args[6].boolean) {
        size = sym_mul(table, plus(in, size, -1), constant(in, stride));
        return plus(in, size, reach + 1 - 2 * padding + entry(in, 7, i));
    }
    size = sym_floordiv(table, plus(in, size, 2 * padding - reach - 1), constant(in, stride));
    return plus(in, size, 1);
}

ferry_status infer_convolution(Infer *in) {
    const Value *input = tensor(in, 0), *weight = tensor(in, 1);
    if (input->rank < 3 || input->rank > 5) {
        return REJECT(in, "expected an input of rank 3 to 5, found %u", input->rank);
    }
    uint32_t spatial = input->rank - 2;
    bool transposed = in->args[6].boolean;
    TRY(require_float(in, input));
    TRY(convolution_weight(in, spatial));
    TRY(require_constants(in, 3, spatial, 1));
    TRY(require_constants(in, 4, spatial, 0));
    TRY(require_constants(in, 5, spatial, 1));
    TRY(require_constants(in, 7, spatial, 0));
    int64_t groups = in->args[8].integer->value;
    const Sym *mine = constant(in, weight->shape[1]->value * groups);
    const Sym *channels = transposed ? weight->shape[0] : mine;
    TRY(infer_require_equal(in, "channels of the input and the weight", input->shape[1], channels));
    same_as(in, input);
    in->outputs[0].shape[1] = transposed ? mine : weight->shape[0];
    if (in->args[2].kind == VALUE_TENSOR) {
        const Value *bias = tensor(in, 2);
        if (bias->rank != 1 || bias->dtype != input->dtype) return REJECT(in, "unsuitable bias");
        TRY(infer_require_equal(in, "channels of the bias and the weight", bias->shape[0],
                                in->outputs[0].shape[1]));
    }
    for (uint32_t i = 0; i < spatial; i++) TRY(set_size(in, i + 2, convolved_size(in, i), 0));
    return FERRY_OK;
}

/* ---- pooling ---- */

/* How many windows fit. With `ceil` the last one may reach beyond the padding, but must start before
 * the padding at the end does. */
static const Sym *pooled_size(Infer *in, const Sym *size, uint32_t i, int64_t reach, bool ceil) {
    SymTable *table = &in->program->symbols;
    int64_t stride = entry(in, 2, i), padding = entry(in, 3, i);
    const Sym *step = constant(in, stride);
    const Sym *last = plus(in, size, 2 * padding - reach - 1 + (ceil ? stride - 1 : 0));
    const Sym *count = plus(in, sym_floordiv(table, last, step), 1);
    if (!ceil || reach + 1 >= padding + stride) return count;
    return sym_min(table, count, sym_floordiv(table, plus(in, size, padding + stride - 1), step));
}

ferry_status infer_pool(Infer *in) {
    const Value *self = tensor(in, 0);
    bool dilated = in->op == OP_MAX_POOL;
    if (self->rank != 4) return REJECT(in, "expected an input of rank 4, found %u", self->rank);
    TRY(require_float(in, self));
    TRY(require_constants(in, 1, 2, 1));
    TRY(require_constants(in, 2, 2, 1));
    TRY(require_constants(in, 3, 2, 0));
    if (dilated) TRY(require_constants(in, 4, 2, 1));
    same_as(in, self);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t kernel = entry(in, 1, i), dilation = dilated ? entry(in, 4, i) : 1;
        if (entry(in, 3, i) * 2 > kernel) return REJECT(in, "padding of more than half a window");
        const Sym *size = pooled_size(in, self->shape[i + 2], i, dilation * (kernel - 1),
                                      in->args[dilated ? 5 : 4].boolean);
        TRY(set_size(in, i + 2, size, 0));
    }
    return FERRY_OK;
}

/* ---- normalization ---- */

/* An optional vector of one number per channel. */
static ferry_status require_channels(Infer *in, uint32_t arg) {
    if (in->args[arg].kind != VALUE_TENSOR) return FERRY_OK;
    const Value *input = tensor(in, 0), *vector = tensor(in, arg);
    if (vector->rank != 1 || vector->dtype != input->dtype) {
        return REJECT(in, "%s must be of rank 1 and the dtype of the input",
                      op_schema(in->op)->args[arg].name);
    }
    return infer_require_equal(in, "channels", vector->shape[0], input->shape[1]);
}

ferry_status infer_batch_norm(Infer *in) {
    if (tensor(in, 0)->rank < 2) return REJECT(in, "expected an input of rank 2 or more");
    if (in->args[5].boolean) return REJECT(in, "statistics of the batch: export in eval mode");
    for (uint32_t arg = 1; arg <= 4; arg++) TRY(require_channels(in, arg));
    return infer_float_unary(in);
}

ferry_status infer_group_norm(Infer *in) {
    const Value *input = tensor(in, 0);
    if (input->rank < 2) return REJECT(in, "expected an input of rank 2 or more");
    const Sym *groups = in->args[1].integer, *channels = input->shape[1];
    if (!sym_is_const(groups) || groups->value < 1 || !sym_is_const(channels) ||
        channels->value % groups->value != 0) {
        return REJECT(in, "%s groups do not divide %s channels", infer_text(in, groups),
                      infer_text(in, channels));
    }
    TRY(require_channels(in, 2));
    TRY(require_channels(in, 3));
    return infer_float_unary(in);
}

/* ---- padding and resizing ---- */

ferry_status infer_pad(Infer *in) {
    const Value *self = tensor(in, 0);
    const Arg *pad = &in->args[1];
    SymTable *table = &in->program->symbols;
    static const char *const modes[] = {"constant", "reflect", "replicate"};
    bool known = false;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        known = known || strcmp(in->args[2].string, modes[i]) == 0;
    if (!known) return REJECT(in, "\"%s\" is not a mode", in->args[2].string);
    if (pad->integers.count % 2 != 0 || pad->integers.count / 2 > self->rank) {
        return REJECT(in, "%u numbers do not pad a tensor of rank %u", pad->integers.count,
                      self->rank);
    }
    same_as(in, self);
    for (uint32_t i = 0; i < pad->integers.count / 2; i++) {
        uint32_t dim = self->rank - 1 - i;
        const Sym *size = sym_add(table, self->shape[dim], pad->integers.items[2 * i]);
        TRY(set_size(in, dim, sym_add(table, size, pad->integers.items[2 * i + 1]), 0));
    }
    return FERRY_OK;
}

ferry_status infer_upsample(Infer *in) {
    const Value *input = tensor(in, 0);
    if (input->rank != 4 || in->args[1].integers.count != 2) {
        return REJECT(in, "expected an input of rank 4 and two sizes");
    }
    TRY(infer_require_sizes(in, 1));
    TRY(require_float(in, input));
    same_as(in, input);
    in->outputs[0].shape[2] = in->args[1].integers.items[0];
    in->outputs[0].shape[3] = in->args[1].integers.items[1];
    return FERRY_OK;
}

ferry_status infer_grid_sampler(Infer *in) {
    const Value *input = tensor(in, 0), *grid = tensor(in, 1);
    if (input->rank != 4 || grid->rank != 4 || !sym_is_value(grid->shape[3], 2)) {
        return REJECT(in, "expected an input [N, C, H, W] and a grid [N, h, w, 2]");
    }
    if (grid->dtype != input->dtype) return REJECT(in, "input and grid differ in dtype");
    for (uint32_t arg = 2; arg <= 3; arg++) {
        const Sym *mode = in->args[arg].integer;
        if (sym_is_const(mode) && mode->value >= 0 && mode->value <= 2) continue;
        return REJECT(in, "%s is not a mode", infer_text(in, mode));
    }
    TRY(infer_require_equal(in, "batches of the input and the grid", input->shape[0],
                            grid->shape[0]));
    TRY(require_float(in, input));
    same_as(in, input);
    in->outputs[0].shape[2] = grid->shape[1];
    in->outputs[0].shape[3] = grid->shape[2];
    return FERRY_OK;
}
