/* Recurrences without loops. */
#include "source/checkpoint/scan.h"

#include <math.h>

enum {
    STEPPED = 16, /* tokens of a chunk whose states follow one by one */
    LEVELS = 2,   /* chunks, and chunks of chunks; what is left is carried all at once */
    WEIGHTED = 64 /* tokens of a chunk that are weighted with the decays between them */
};

/* x with zeros behind it, `size` along dimension 1. A token of zeros has the decay 1 and no input, so the
 * state stays what it was. */
static Value *pad(Builder *b, Value *x, const Sym *size) {
    const Sym *shape[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) shape[d] = x->shape[d];
    shape[1] = sym_sub(&b->program->symbols, size, x->shape[1]);
    Value *zeros = build_full(b, shape, x->rank, 0, x->dtype);
    return build_cat(b, (Value *const[]){x, zeros}, 2, 1);
}

/* The first `count` entries of dimension `dim`, which are there; of a slice the type would not say so. */
static Value *first_entries(Builder *b, Value *x, int dim, const Sym *count) {
    if (build_dim(b, x, dim) == count) return x;
    Value *places = build_arange(b, build_const(b, 0), count, FERRY_I64);
    const Arg args[] = {arg_tensor(x), arg_int(b, dim), arg_tensor(places)};
    return build_op(b, OP_INDEX_SELECT, args, 3);
}

/* How many chunks hold `length` tokens and one more at least, which is padding. */
static const Sym *chunk_count(Builder *b, const Sym *length, int64_t size) {
    SymTable *symbols = &b->program->symbols;
    return sym_add(symbols, sym_floordiv(symbols, length, build_const(b, size)), build_const(b, 1));
}

/* exp(log[s + 1] + ... + log[t]) at [..., t, s], what is left at t of the state at s; 0 for t < s. The
 * sums are made for each s, since a difference of two long ones would lose digits. */
static Value *decays(Builder *b, Value *log) {
    Value *range = build_arange(b, build_const(b, 0), build_dim(b, log, -1), FERRY_I64);
    Value *later = build_unsqueeze(b, range, 1), *earlier = build_unsqueeze(b, range, 0);
    Value *zero = build_full(b, NULL, 0, 0, log->dtype);
    Value *nothing = build_full(b, NULL, 0, -INFINITY, log->dtype);
    Value *terms =
        build_where(b, build_binary(b, OP_GT, later, earlier), build_unsqueeze(b, log, -1), zero);
    Value *sums = build_cumsum(b, terms, -2);
    sums = build_where(b, build_binary(b, OP_GE, later, earlier), sums, nothing);
    return build_unary(b, OP_EXP, sums);
}

/* The states before the first input and after each: from log decays [batch, n, length], inputs [batch, n,
 * length, k] and the first state [batch, n, k] to [batch, n, length + 1, k]. */
static Value *carry(Builder *b, Value *log, Value *inputs, Value *first) {
    const Sym *shape[] = {build_dim(b, log, 0), build_dim(b, log, 1), build_const(b, 1)};
    Value *none = build_full(b, shape, 3, 0, log->dtype);
    log = build_cat(b, (Value *const[]){none, log}, 2, 2);
    inputs = build_cat(b, (Value *const[]){build_unsqueeze(b, first, 2), inputs}, 2, 2);
    return build_matmul(b, decays(b, log), inputs);
}

/* ---- a decay for each channel and state ---- */

/* The states after each input, all at once: like `stepped`. */
static Value *carried(Builder *b, Value *log, Value *inputs, Value *first) {
    Value *columns = build_unsqueeze(b, build_transpose(b, inputs, 1, 2), -1);
    Value *states = carry(b, build_transpose(b, log, 1, 2), columns, build_unsqueeze(b, first, -1));
    states = build_slice_const(b, build_squeeze(b, states, -1), 2, 1, INT64_MAX);
    return build_transpose(b, states, 1, 2);
}

/* The states after each input, and after some tokens of padding: log decays and inputs are [batch, length,
 * n], the first state is [batch, n]. */
static Value *stepped(Builder *b, Value *log, Value *inputs, Value *first, int levels) {
    if (levels == 0) return carried(b, log, inputs, first);
    SymTable *symbols = &b->program->symbols;
    const Sym *count = chunk_count(b, build_dim(b, log, 1), STEPPED);
    const Sym *padded = sym_mul(symbols, count, build_const(b, STEPPED));
    const Sym *cut[] = {build_dim(b, log, 0), count, build_const(b, STEPPED), build_dim(b, log, 2)};
    const Sym *flat[] = {cut[0], padded, cut[3]};
    log = build_view(b, pad(b, log, padded), cut, 4);
    inputs = build_view(b, pad(b, inputs, padded), cut, 4);

    /* As if each chunk began at zero. */
    int64_t ones[STEPPED];
    Value *decay[STEPPED], *state[STEPPED];
    for (int i = 0; i < STEPPED; i++) ones[i] = 1;
    build_split(b, build_unary(b, OP_EXP, log), ones, STEPPED, 2, decay);
    build_split(b, inputs, ones, STEPPED, 2, state);
    for (int i = 1; i < STEPPED; i++)
        state[i] = build_add(b, build_mul(b, decay[i], state[i - 1]), state[i]);

    /* And what is left of the state that it begins with. */
    Value *since = build_cumsum(b, log, 2);
    Value *ends = stepped(b, build_select(b, since, 2, STEPPED - 1),
                          build_squeeze(b, state[STEPPED - 1], 2), first, levels - 1);
    Value *begins = build_cat(b, (Value *const[]){build_unsqueeze(b, first, 1), ends}, 2, 1);
    begins = build_unsqueeze(b, first_entries(b, begins, 1, count), 2);
    Value *left = build_mul(b, build_unary(b, OP_EXP, since), begins);
    return build_view(b, build_add(b, build_cat(b, state, STEPPED, 2), left), flat, 3);
}

static Value *last_entry(Builder *b, Value *x, int dim) {
    return build_squeeze(b, build_slice_const(b, x, dim, -1, INT64_MAX), dim);
}

Scan scan_channels(Builder *b, const ScanInputs *inputs) {
    const Sym *length = build_dim(b, inputs->x, 1);
    const Sym *channels = build_dim(b, inputs->rates, 0), *size = build_dim(b, inputs->rates, 1);
    const Sym *batch = build_dim(b, inputs->x, 0);
    const Sym *n = sym_mul(&b->program->symbols, channels, size);
    Value *log = build_mul(b, build_unsqueeze(b, inputs->steps, 3), inputs->rates);
    Value *weighted = build_mul(b, inputs->steps, inputs->x);
    Value *added = build_mul(b, build_unsqueeze(b, weighted, 3), build_unsqueeze(b, inputs->in, 2));
    Value *states, *out = inputs->out;
    if (sym_is_value(length, 1)) {
        Value *left =
            build_mul(b, build_unary(b, OP_EXP, log), build_unsqueeze(b, inputs->state, 1));
        states = build_add(b, left, added);
    } else {
        const Sym *flat[] = {batch, length, n}, *first[] = {batch, n};
        states = stepped(b, build_view(b, log, flat, 3), build_view(b, added, flat, 3),
                         build_view(b, inputs->state, first, 2), LEVELS);
        const Sym *shape[] = {batch, build_dim(b, states, 1), channels, size};
        states = build_view(b, states, shape, 4);
        out = pad(b, out, shape[1]);
    }
    Value *y = build_squeeze(b, build_matmul(b, states, build_unsqueeze(b, out, 3)), 3);
    return (Scan){first_entries(b, y, 1, length), last_entry(b, states, 1)};
}

/* ---- a decay for each head ---- */

/* One step: x [batch, heads, width] with in and out [batch, groups, size]. */
static Scan step_heads(Builder *b, const ScanInputs *inputs) {
    const Sym *heads = build_dim(b, inputs->x, 2), *groups = build_dim(b, inputs->in, 2);
    const Sym *size = build_dim(b, inputs->in, 3), *one = build_const(b, 1);
    const Sym *each = sym_floordiv(&b->program->symbols, heads, groups);
    const Sym *batch = build_dim(b, inputs->x, 0), *width = build_dim(b, inputs->x, 3);
    const Sym *grouped[] = {batch, groups, each, width, size};
    const Sym *whole[] = {batch, heads, width, size};
    const Sym *per_head[] = {batch, groups, each, one, one};
    const Sym *columns[] = {batch, groups, each, width, one};
    const Sym *row[] = {batch, groups, one, one, size}, *column[] = {batch, groups, one, size, one};
    Value *steps = build_view(b, inputs->steps, per_head, 5);
    Value *rates = build_view(b, inputs->rates, per_head + 1, 4);
    Value *decay = build_unary(b, OP_EXP, build_mul(b, steps, rates));
    Value *x = build_mul(b, build_view(b, inputs->x, columns, 5), steps);
    Value *added = build_mul(b, x, build_view(b, inputs->in, row, 5));
    Value *state = build_mul(b, build_view(b, inputs->state, grouped, 5), decay);
    state = build_add(b, state, added);
    Value *y = build_matmul(b, state, build_view(b, inputs->out, column, 5));
    return (Scan){build_view(b, y, inputs->x->shape, 4), build_view(b, state, whole, 4)};
}

/* The sizes of a scan in chunks. Chunks of all groups are a batch of their own: `all` of them. */
typedef struct Chunks {
    const Sym *batch, *count, *tokens, *groups, *each, *all, *padded;
} Chunks;

/* x [batch, length, groups * each, k] as [all, each, tokens, k]; `each` is 1 for what a group shares. */
static Value *cut(Builder *b, const Chunks *c, Value *x, const Sym *each) {
    const Sym *k = build_dim(b, x, 3);
    const Sym *shape[] = {c->batch, c->count, c->tokens, c->groups, each, k};
    const Sym *flat[] = {c->all, each, c->tokens, k};
    Value *chunks = build_view(b, pad(b, x, c->padded), shape, 6);
    chunks = build_permute(b, chunks, (const int64_t[]){0, 1, 3, 4, 2, 5});
    return build_view(b, chunks, flat, 4);
}

/* The states at the beginning of each chunk, [all, each, size, width]; scan->state, which is before the first,
 * becomes the one after the last. `decay` [all, each] is that of whole chunks, as a logarithm; `ends` are
 * the states at their ends, as if each had begun at zero. */
static Value *carry_chunks(Builder *b, const Chunks *c, Value *decay, Value *ends, Scan *scan) {
    SymTable *symbols = &b->program->symbols;
    const Sym *heads = sym_mul(symbols, c->groups, c->each);
    const Sym *size = build_dim(b, ends, 2), *width = build_dim(b, ends, 3);
    const Sym *n = sym_mul(symbols, size, width);
    const Sym *by_chunk[] = {c->batch, c->count, heads}, *flat[] = {c->batch, c->count, heads, n};
    const Sym *one[] = {c->batch, heads, n}, *state[] = {c->batch, heads, size, width};
    const Sym *cut[] = {c->all, c->each, size, width};
    Value *before = build_view(b, build_transpose(b, scan->state, 2, 3), one, 3);
    Value *log = build_transpose(b, build_view(b, decay, by_chunk, 3), 1, 2);
    Value *inputs = build_transpose(b, build_view(b, ends, flat, 4), 1, 2);
    Value *states = carry(b, log, inputs, before);
    Value *last = build_view(b, last_entry(b, states, 2), state, 4);
    scan->state = build_transpose(b, last, 2, 3);
    Value *begins = build_transpose(b, first_entries(b, states, 2, c->count), 1, 2);
    return build_view(b, begins, cut, 4);
}

Scan scan_heads(Builder *b, const ScanInputs *inputs) {
    SymTable *symbols = &b->program->symbols;
    const Sym *heads = build_dim(b, inputs->x, 2), *length = build_dim(b, inputs->x, 1);
    if (sym_is_value(length, 1)) return step_heads(b, inputs);
    Chunks c = {.batch = build_dim(b, inputs->x, 0),
                .count = chunk_count(b, length, WEIGHTED),
                .tokens = build_const(b, WEIGHTED),
                .groups = build_dim(b, inputs->in, 2)};
    c.each = sym_floordiv(symbols, heads, c.groups);
    c.all = sym_mul(symbols, sym_mul(symbols, c.batch, c.count), c.groups);
    c.padded = sym_mul(symbols, c.count, c.tokens);
    Value *steps = build_unsqueeze(b, inputs->steps, 3),
          *rates = build_unsqueeze(b, inputs->rates, 1);
    Value *x = cut(b, &c, build_mul(b, inputs->x, steps), c.each);
    Value *log = build_squeeze(b, cut(b, &c, build_mul(b, steps, rates), c.each), 3);
    Value *in = cut(b, &c, inputs->in, build_const(b, 1));
    Value *out = cut(b, &c, inputs->out, build_const(b, 1));

    /* Inside chunks. */
    Value *decay = decays(b, log);
    Value *pairs = build_matmul(b, out, build_transpose(b, in, 2, 3));
    Value *y = build_matmul(b, build_mul(b, pairs, decay), x);

    /* Between them. */
    Value *left = build_unsqueeze(b, build_select(b, decay, 2, WEIGHTED - 1), 3);
    Value *ends = build_matmul(b, build_transpose(b, in, 2, 3), build_mul(b, x, left));
    Value *since = build_cumsum(b, log, 2);
    Scan scan = {.state = inputs->state};
    Value *begins = carry_chunks(b, &c, build_select(b, since, 2, WEIGHTED - 1), ends, &scan);
    Value *carried_in = build_mul(b, build_matmul(b, out, begins),
                                  build_unsqueeze(b, build_unary(b, OP_EXP, since), 3));
    y = build_add(b, y, carried_in);

    const Sym *shape[] = {c.batch, c.count, c.groups, c.each, c.tokens, build_dim(b, y, 3)};
    const Sym *flat[] = {c.batch, c.padded, heads, shape[5]};
    y = build_permute(b, build_view(b, y, shape, 6), (const int64_t[]){0, 1, 4, 2, 3, 5});
    scan.y = first_entries(b, build_view(b, y, flat, 4), 1, length);
    return scan;
}
