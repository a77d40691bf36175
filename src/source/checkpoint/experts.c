/* Mixture of experts: routing, and the products with the experts that were chosen.
 *
 * Tokens are put in the order of their experts, so that the rows of each expert follow each other, and
 * aten::_grouped_mm multiplies each group of rows with the matrix of its expert. No expert is computed
 * for a token that was not routed to it, whatever the number of tokens, and no weight is gathered. */
#include "source/checkpoint/experts.h"
#include "source/checkpoint/decoder.h"
#include "source/checkpoint/expert_weights.h"

#include <math.h>

enum { MAX_EXPERTS = 1024 };

/* ---- configuration ---- */

static bool is_listed(json_t *list, int64_t number) {
    size_t index;
    json_t *entry;
    json_array_foreach(list, index, entry) {
        if (json_integer_value(entry) == number) return true;
    }
    return false;
}

/* Which layers have experts. */
static void read_sparse(Decoder *d) {
    Model *m = d->m;
    SparseRule rule = d->traits->experts->sparse;
    Experts *experts = d->experts;
    int64_t step = 1, first = 0, period = 1, offset = 0;
    json_t *dense = NULL;
    if (rule == SPARSE_STEP) {
        step = config_size_or(m, "decoder_sparse_step", 1);
        dense = config_get(m, "mlp_only_layers");
    }
    if (rule == SPARSE_LATER)
        first = config_int_or(m, "first_k_dense_replace", d->traits->experts->dense);
    if (rule == SPARSE_PERIOD) {
        period = config_size_or(m, "expert_layer_period", 2);
        offset = config_int_or(m, "expert_layer_offset", 1);
        if (experts->count == 1) first = d->layers;
    }
    for (int64_t i = 0; i < d->layers; i++) {
        experts->sparse[i] = i >= first && (i + 1) % step == 0 && !is_listed(dense, i) &&
                             (period == 1 || i % period == offset);
    }
}

/* The choice among groups of experts. */
static void read_groups(Decoder *d) {
    Model *m = d->m;
    Experts *experts = d->experts;
    const ExpertTraits *traits = d->traits->experts;
    experts->factor = config_float_or(m, "routed_scaling_factor", traits->factor);
    experts->groups = config_size_or(m, "n_group", traits->groups);
    experts->chosen_groups = config_size_or(m, "topk_group", traits->chosen_groups);
    config_require_string(m, "topk_method", "noaux_tc");
    config_require_string(m, "scoring_func", "sigmoid");
    config_accept(m, "moe_layer_freq"); /* the class looks at first_k_dense_replace alone */
    int64_t each = experts->count / experts->groups;
    bool fits = experts->count % experts->groups == 0 && experts->chosen_groups <= experts->groups;
    if (experts->groups > 1) fits &= each >= 2 && experts->chosen <= each * experts->chosen_groups;
    if (fits) return;
    build_fail(
        &m->b, FERRY_BAD_FORMAT,
        "%s: %lld experts in %lld groups, %lld of %lld groups chosen (n_group, topk_group), do "
        "not fit together",
        m->config_path, (long long)experts->count, (long long)experts->groups,
        (long long)experts->chosen_groups, (long long)experts->groups);
    experts->groups = experts->chosen_groups = 1;
}

void experts_read(Decoder *d) {
    Model *m = d->m;
    const ExpertTraits *traits = d->traits->experts;
    Experts *experts = ARENA_NEW(&m->b.program->arena, Experts);
    if (experts) experts->sparse = arena_alloc(&m->b.program->arena, (size_t)d->layers);
    if (!experts || !experts->sparse) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    d->experts = experts;
    int64_t count = traits->count;
    if (traits->count_keys[1]) count = config_size_or(m, traits->count_keys[1], count);
    experts->count = config_size_or(m, traits->count_keys[0], count);
    if (experts->count > MAX_EXPERTS) {
        build_fail(&m->b, FERRY_UNSUPPORTED, "%s: expected at most %d experts, found %lld",
                   m->config_path, MAX_EXPERTS, (long long)experts->count);
        experts->count = 1;
    }
    experts->chosen = config_size_or(m, "num_experts_per_tok", traits->chosen);
    experts->size =
        traits->size ? config_size_or(m, "moe_intermediate_size", traits->size) : d->intermediate;
    experts->normalizes = traits->normalize;
    if (traits->normalize_key)
        experts->normalizes = config_bool_or(m, traits->normalize_key, traits->normalize);
    experts->factor = 1;
    if (traits->shared == SHARED_GATED) {
        experts->shared_size =
            config_size_or(m, "shared_expert_intermediate_size", traits->shared_size);
    } else if (traits->shared == SHARED_PLAIN) {
        experts->shared_size = experts->size * config_size_or(m, "n_shared_experts", 1);
    }
    if (traits->clamped) {
        experts->alpha = config_float_or(m, "swiglu_alpha", 1.702);
        experts->limit = config_float_or(m, "swiglu_limit", 7);
        config_accept(m, "experts_per_token"); /* as the publisher spelled keys that are also */
        config_accept(m, "initial_context_length"); /* there in the spelling of Transformers */
    }
    bool dense = traits->sparse == SPARSE_PERIOD && experts->count == 1;
    if (experts->chosen > experts->count && !dense) {
        build_fail(
            &m->b, FERRY_BAD_FORMAT,
            "%s: expected \"num_experts_per_tok\" to be at most the number of experts, %lld, "
            "found %lld",
            m->config_path, (long long)experts->count, (long long)experts->chosen);
        experts->chosen = experts->count;
    }
    config_require_bool(m, "output_router_logits", false);
    read_sparse(d);
    if (traits->router == ROUTER_SIGMOID) read_groups(d);
}

/* ---- routing ---- */

typedef struct Routing {
    Value *experts, *weights; /* [tokens, chosen] */
} Routing;

typedef struct Ordered {
    Value *values, *indices;
} Ordered;

/* The `count` largest or smallest elements along the last dimension, in order. */
static Ordered take(Builder *b, Value *x, const Sym *count, bool largest) {
    const Arg args[] = {arg_tensor(x), arg_sym(count), arg_int(b, -1), arg_bool(largest)};
    Node *node = build_node(b, OP_TOPK, args, 4);
    return node ? (Ordered){node->outputs[0], node->outputs[1]} : (Ordered){&b->poison, &b->poison};
}

static Value *router_logits(Decoder *d, Value *x, const char *name, bool float32) {
    Model *m = d->m;
    Value *weight = model_matrix(m, d->experts->count, d->hidden, "%s.weight", name);
    Value *bias = NULL;
    if (d->traits->experts->router == ROUTER_CHOSEN)
        bias = model_vector(m, d->experts->count, "%s.bias", name);
    if (!float32) return build_linear(&m->b, x, weight, bias);
    return build_linear(&m->b, build_to(&m->b, x, FERRY_F32), build_to(&m->b, weight, FERRY_F32),
                        bias);
}

/* Minus infinity for the experts that are not in one of the best groups; a group is as good as its two
 * best experts together. `scores` is [tokens, experts]. */
static Value *hide_groups(Decoder *d, Value *scores) {
    Builder *b = &d->m->b;
    const Experts *experts = d->experts;
    const Sym *groups = build_const(b, experts->groups);
    const Sym *shape[] = {build_dim(b, scores, 0), groups,
                          build_const(b, experts->count / experts->groups)};
    const Sym *flat[] = {shape[0], build_const(b, experts->count)};
    Value *grouped = build_view(b, scores, shape, 3);
    Value *quality =
        build_reduce(b, OP_SUM, take(b, grouped, build_const(b, 2), true).values, -1, false);
    Value *best = take(b, quality, build_const(b, experts->chosen_groups), true).indices;
    Value *numbers = build_arange(b, build_const(b, 0), groups, FERRY_I64);
    Value *kept =
        build_binary(b, OP_EQ, build_unsqueeze(b, best, 1), build_unsqueeze(b, numbers, 1));
    kept = build_reduce(b, OP_ANY, kept, -1, true);
    Value *hidden = build_full(b, NULL, 0, -INFINITY, scores->dtype);
    return build_view(b, build_where(b, kept, grouped, hidden), flat, 2);
}

/* x [tokens, hidden] */
static Routing route(Decoder *d, Value *x, const char *name) {
    Model *m = d->m;
    Builder *b = &m->b;
    const Experts *experts = d->experts;
    RouterKind kind = d->traits->experts->router;
    const Sym *chosen = build_const(b, experts->chosen);
    Value *logits = router_logits(d, x, name, kind == ROUTER_SIGMOID);
    if (kind == ROUTER_CHOSEN) {
        Ordered best = take(b, logits, chosen, true);
        return (Routing){best.indices, build_softmax(b, best.values, -1)};
    }
    Routing routing;
    double least = 0;
    if (kind == ROUTER_SOFTMAX) {
        Ordered best = take(b, build_softmax(b, build_to(b, logits, FERRY_F32), -1), chosen, true);
        routing = (Routing){best.indices, best.values};
    } else {
        Value *scores = build_unary(b, OP_SIGMOID, logits);
        const Recipe *recipe =
            model_recipe(m, 1, &experts->count, "%s.e_score_correction_bias", name);
        Value *correction =
            model_made_weight(m, recipe, FERRY_F32, "%s.e_score_correction_bias", name);
        Value *choice = build_add(b, scores, correction);
        if (experts->chosen_groups < experts->groups) choice = hide_groups(d, choice);
        routing.experts = take(b, choice, chosen, true).indices;
        routing.weights = build_gather(b, scores, 1, routing.experts);
        least = 1e-20;
    }
    if (experts->normalizes) {
        Value *sum = build_reduce(b, OP_SUM, routing.weights, -1, true);
        if (least > 0) sum = build_scalar(b, OP_ADD_SCALAR, sum, least);
        routing.weights = build_binary(b, OP_DIV, routing.weights, sum);
    }
    if (experts->factor != 1)
        routing.weights = build_scalar(b, OP_MUL_SCALAR, routing.weights, experts->factor);
    return routing;
}

/* ---- products ---- */

/* Pairs of a token and an expert, in the order of the experts. */
typedef struct Pairs {
    const Sym *count;
    Value *experts; /* [pairs] */
    Value *order;   /* [pairs], their places in [tokens, chosen] */
    Value *ends;    /* int32 [experts], where the pairs of each expert end */
} Pairs;

static Value *pick(Builder *b, Value *x, Value *index) {
    return build_op(b, OP_INDEX_SELECT,
                    (const Arg[]){arg_tensor(x), arg_int(b, 0), arg_tensor(index)}, 3);
}

static Pairs sort_pairs(Decoder *d, const Routing *routing) {
    Builder *b = &d->m->b;
    Pairs pairs = {.count = sym_mul(&b->program->symbols, build_dim(b, routing->experts, 0),
                                    build_const(b, d->experts->chosen))};
    Value *flat = build_view(b, routing->experts, &pairs.count, 1);
    Ordered sorted = take(b, flat, pairs.count, false);
    Value *numbers =
        build_arange(b, build_const(b, 0), build_const(b, d->experts->count), FERRY_I64);
    Value *within =
        build_binary(b, OP_LE, build_unsqueeze(b, flat, 0), build_unsqueeze(b, numbers, 1));
    Value *ends = build_reduce(b, OP_SUM, build_to(b, within, FERRY_I64), 1, false);
    pairs.experts = sorted.values;
    pairs.order = sorted.indices;
    pairs.ends = build_to(b, ends, FERRY_I32);
    return pairs;
}

/* Each row times the matrix of its expert. */
static Value *multiply(Builder *b, Value *rows, const Pairs *pairs,
                       const ExpertMatrices *matrices) {
    const Arg args[] = {arg_tensor(rows), arg_tensor(matrices->weight), arg_tensor(pairs->ends)};
    Value *product = build_op(b, OP_GROUPED_MM, args, 3);
    if (!matrices->bias) return product;
    return build_add(b, product, pick(b, matrices->bias, pairs->experts));
}

/* (clamp(up) + 1) * clamp(gate) * sigmoid(alpha * clamp(gate)), where gate has no lower bound. */
static Value *clamped_gate(Builder *b, const Experts *experts, Value *gate, Value *up) {
    gate = build_clamp(b, gate, arg_none(), arg_float(experts->limit));
    up = build_clamp(b, up, arg_float(-experts->limit), arg_float(experts->limit));
    Value *share = build_unary(b, OP_SIGMOID, build_scalar(b, OP_MUL_SCALAR, gate, experts->alpha));
    return build_mul(b, build_scalar(b, OP_ADD_SCALAR, up, 1), build_mul(b, gate, share));
}

/* The sum of what the chosen experts make of each row of x [tokens, hidden]. */
static Value *run_experts(Decoder *d, Value *x, const Routing *routing, const char *name) {
    Model *m = d->m;
    Builder *b = &m->b;
    const Experts *experts = d->experts;
    const Sym *tokens = build_dim(b, x, 0), *chosen = build_const(b, experts->chosen);
    const Sym *shape[] = {tokens, chosen, build_const(b, d->hidden)};
    ExpertWeights weights = expert_weights(d, name);
    Pairs pairs = sort_pairs(d, routing);
    Value *token = pairs.order;
    if (experts->chosen > 1) {
        Value *divisor = build_full(b, NULL, 0, (double)experts->chosen, FERRY_I64);
        token = build_binary(b, OP_FLOOR_DIVIDE, token, divisor);
    }
    Value *rows = pick(b, x, token);
    Value *gate = multiply(b, rows, &pairs, &weights.gate);
    Value *up = multiply(b, rows, &pairs, &weights.up);
    Value *inner = d->traits->experts->clamped
                       ? clamped_gate(b, experts, gate, up)
                       : build_mul(b, model_activation(m, gate, d->activation), up);
    Value *result = multiply(b, inner, &pairs, &weights.down);
    Value *places = take(b, pairs.order, pairs.count, false).indices;
    result = build_view(b, pick(b, result, places), shape, 3);
    ferry_dtype dtype = routing->weights->dtype; /* float32, also beside half precisions */
    result = build_mul(b, build_to(b, result, dtype), build_unsqueeze(b, routing->weights, -1));
    return build_to(b, build_reduce(b, OP_SUM, result, 1, false), x->dtype);
}

Value *experts_layer(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    Builder *b = &m->b;
    const ExpertTraits *traits = d->traits->experts;
    Arena *arena = &b->program->arena;
    const char *module = arena_format(arena, "layers.%lld.mlp", (long long)layer);
    const char *old = arena_format(arena, "layers.%lld.%s", (long long)layer, traits->module);
    if (model_has(m, "%s.%s.weight", old, traits->router_name)) module = old;
    const char *outer = build_scope(b, "%s.%s", m->family->base_prefix, module);
    const Sym *flat[] = {sym_mul(&b->program->symbols, build_dim(b, x, 0), build_dim(b, x, 1)),
                         build_const(b, d->hidden)};
    Value *rows = build_view(b, x, flat, 2);
    Routing routing = route(d, rows, arena_format(arena, "%s.%s", module, traits->router_name));
    Value *result = run_experts(d, rows, &routing, arena_format(arena, "%s.experts", module));
    if (traits->shared != SHARED_NONE) {
        bool gated = traits->shared == SHARED_GATED;
        const char *name =
            arena_format(arena, "%s.%s", module, gated ? "shared_expert" : "shared_experts");
        Value *shared = decoder_mlp(d, rows, d->experts->shared_size, name);
        if (gated) {
            Value *share = model_linear(m, rows, 1, false, "%s.shared_expert_gate", module);
            shared = build_mul(b, build_unary(b, OP_SIGMOID, share), shared);
        }
        result = build_add(b, result, shared);
    }
    b->scope = outer;
    return build_view(b, result, x->shape, 3);
}
