/* Masks, caches and the heads of decoder models. */
#include "source/checkpoint/attention.h"

#include <string.h>

/* ---- masks ---- */

/* keys allowed by position: bool [sequence, keys] */
static Value *position_mask(Model *m, bool causal, int64_t window) {
    Builder *b = &m->b;
    Value *range = build_arange(b, build_const(b, 0), model_key_count(m), FERRY_I64);
    Value *queries = build_unsqueeze(b, model_slots(m), 1), *keys = build_unsqueeze(b, range, 0);
    Value *allowed = NULL;
    if (causal) allowed = build_binary(b, OP_LE, keys, queries);
    if (window > 0) {
        Value *distance = build_sub(b, queries, keys);
        if (!causal) distance = build_unary(b, OP_ABS, distance);
        Value *near = build_scalar(b, OP_LT_SCALAR, distance, (double)window);
        allowed = allowed ? build_binary(b, OP_AND, allowed, near) : near;
    }
    return allowed;
}

/* The mask that the caller of a step with a static cache gives, [batch, 1, sequence, keys]: of every
 * kind of layer, where the class tells them apart. */
static Value *given_mask(Model *m, int64_t window) {
    const char *whole = arena_format(&m->b.program->arena, "%sattention_mask", m->input_prefix);
    const char *name = !m->masks_by_type ? whole
                       : window > 0      ? "attention_mask.sliding_attention"
                                         : "attention_mask.full_attention";
    const Sym *shape[4] = {m->batch, build_const(&m->b, 1), m->sequence, model_key_count(m)};
    Value *known = map_find(&m->b.program->names, name);
    return known ? known : build_input(&m->b, name, FERRY_BOOL, 4, shape);
}

bool model_is_causal(const Model *m, const Value *mask) {
    return !mask && !model_takes_cache(m);
}

/* Without mask and cache Transformers takes a restart of the positions for the start of another packed
 * sequence, and keeps the sequences apart: bool [batch, 1, sequence, sequence], or NULL. */
static Value *packed_mask(Model *m) {
    Builder *b = &m->b;
    Value *given = map_find(&b->program->names, "position_ids");
    if (!given || model_keeps_cache(m) || given->rank != 2 || sym_is_value(m->sequence, 1))
        return NULL;
    Value *positions = build_to(b, given, FERRY_I64);
    Value *later = build_slice_const(b, positions, 1, 1, INT64_MAX);
    Value *earlier = build_slice_const(b, positions, 1, 0, -1);
    Value *steps = build_sub(b, later, earlier);
    Value *restarts = build_to(b, build_scalar(b, OP_NE_SCALAR, steps, 1), FERRY_I64);
    Value *first = build_scalar(b, OP_MUL_SCALAR, build_slice_const(b, positions, 1, 0, 1), 0);
    Value *which = build_cumsum(b, build_cat(b, (Value *const[]){first, restarts}, 2, 1), 1);
    Value *same =
        build_binary(b, OP_EQ, build_unsqueeze(b, which, 2), build_unsqueeze(b, which, 1));
    return build_unsqueeze(b, same, 1);
}

Value *model_mask(Model *m, Value *padding, bool causal, int64_t window) {
    Builder *b = &m->b;
    if (padding)
        padding = build_unsqueeze(b, build_unsqueeze(b, padding, 1), 1);
    else if (causal)
        padding = packed_mask(m);
    if (model_masks_whole(m)) return given_mask(m, window);
    bool every_key = causal && model_takes_cache(m) && sym_is_value(m->sequence, 1);
    if (!padding && window <= 0 && (every_key || !model_takes_cache(m))) return NULL;
    if ((!causal || every_key) && window <= 0) return padding;
    Value *allowed = position_mask(m, causal, window);
    allowed = build_unsqueeze(b, build_unsqueeze(b, allowed, 0), 0);
    return padding ? build_binary(b, OP_AND, allowed, padding) : allowed;
}

Value *model_lowest(Model *m) {
    double lowest = m->dtype == FERRY_F16 ? -65504.0 : -3.3895313892515355e38;
    return build_full(&m->b, NULL, 0, lowest, m->dtype);
}

Value *model_additive_mask(Model *m, Value *allowed, Value *bias) {
    if (!bias) bias = build_full(&m->b, NULL, 0, 0, m->dtype);
    return build_where(&m->b, allowed, bias, model_lowest(m));
}

Value *model_causal_mask(Model *m, int64_t window) {
    Value *allowed = position_mask(m, true, window);
    return build_unsqueeze(&m->b, build_unsqueeze(&m->b, allowed, 0), 0);
}

Value *model_packing_mask(Model *m) {
    Builder *b = &m->b;
    const Value *given = map_find(&b->program->names, "position_ids");
    if (!given || given->kind != VALUE_INPUT || model_keeps_cache(m)) return NULL;
    if (map_find(&b->program->names, "attention_mask")) return NULL;
    Value *positions = model_positions(m);
    Value *before = build_slice_const(b, positions, 1, 0, -1);
    Value *after = build_slice_const(b, positions, 1, 1, INT64_MAX);
    Value *begins = build_scalar(b, OP_NE_SCALAR, build_sub(b, after, before), 1);
    const Sym *first[2] = {build_dim(b, positions, 0), build_const(b, 1)};
    Value *parts[2] = {build_full(b, first, 2, 0, FERRY_I64), build_to(b, begins, FERRY_I64)};
    Value *number = build_unsqueeze(b, build_cumsum(b, build_cat(b, parts, 2, 1), 1), 1);
    return build_binary(b, OP_EQ, build_unsqueeze(b, number, 3), build_unsqueeze(b, number, 2));
}

bool model_layer_slides(Model *m, int64_t layer, bool otherwise) {
    json_t *types = config_get(m, "layer_types");
    if (!types) return otherwise;
    json_t *type = json_array_get(types, (size_t)layer);
    const char *name = json_string_value(type);
    if (name && strcmp(name, "sliding_attention") == 0) return true;
    if (!name || strcmp(name, "full_attention") != 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: \"layer_types\": expected full_attention or sliding_attention for layer "
                   "%lld, found %s",
                   m->config_path, (long long)layer, name ? name : json_kind(type));
    }
    return false;
}

/* ---- heads of attention ---- */

Value *model_split_heads(Model *m, Value *x, int64_t heads, int64_t size) {
    const Sym *shape[4] = {build_dim(&m->b, x, 0), build_dim(&m->b, x, 1),
                           build_const(&m->b, heads), build_const(&m->b, size)};
    return build_transpose(&m->b, build_view(&m->b, x, shape, 4), 1, 2);
}

Value *model_merge_heads(Model *m, Value *x) {
    Value *rows = build_transpose(&m->b, x, 1, 2);
    const Sym *shape[3] = {build_dim(&m->b, rows, 0), build_dim(&m->b, rows, 1),
                           build_const(&m->b, -1)};
    return build_view(&m->b, rows, shape, 3);
}

/* ---- heads of models ---- */

/* The row of the last token that is not padding, [batch, labels]; without a padding token or without
 * ids, the last row. */
static Value *pool_last_token(Model *m, Value *logits, const DecoderHead *head) {
    Builder *b = &m->b;
    int64_t pad = config_int_or(m, "pad_token_id", head->pad);
    bool pads = config_has(m, "pad_token_id") || (head->pads && !config_is_null(m, "pad_token_id"));
    if (!head->ids || !pads) {
        if (!sym_is_value(m->batch, 1)) {
            model_note(m, "the model has no padding token: rows must have equal lengths");
        }
        Value *last = build_slice_const(b, logits, 1, -1, INT64_MAX);
        return build_squeeze(b, last, 1);
    }
    Value *is_token = build_to(b, build_scalar(b, OP_NE_SCALAR, head->ids, (double)pad), FERRY_I64);
    Value *range =
        build_unsqueeze(b, build_arange(b, build_const(b, 0), m->sequence, FERRY_I64), 0);
    Value *last = build_reduce(b, OP_ARGMAX, build_mul(b, is_token, range), 1, true);
    const Sym *size[3] = {m->batch, build_const(b, 1), build_dim(b, logits, 2)};
    Value *index = build_expand(b, build_unsqueeze(b, last, 2), size, 3);
    return build_squeeze(b, build_gather(b, logits, 1, index), 1);
}

static void output_language_model(Model *m, Value *hidden, const DecoderHead *head) {
    Value *weight = model_output_embedding(m, head->output_name, head->embedding);
    Value *bias = NULL;
    if (head->output_bias) {
        const int64_t vocabulary = build_dim(&m->b, weight, 0)->value;
        bias = model_head_weight(m, 1, &vocabulary, head->output_bias);
    }
    Value *logits = build_linear(&m->b, hidden, weight, bias);
    if (head->scale_logits) logits = head->scale_logits(m, logits);
    build_output(&m->b, "logits", logits);
}

void model_output_answers(Model *m, Value *logits) {
    static const char *const names[2] = {"start_logits", "end_logits"};
    Value *parts[2];
    build_split(&m->b, logits, (const int64_t[]){1, 1}, 2, -1, parts);
    for (int i = 0; i < 2; i++) build_output(&m->b, names[i], build_squeeze(&m->b, parts[i], -1));
    model_output_tree(m, "QuestionAnsweringModelOutput", names, (const Tree *const[]){NULL, NULL},
                      2);
}

void model_decoder_outputs(Model *m, Value *hidden, const DecoderHead *head) {
    const char *type = NULL, *key = "logits";
    const char *classifier = head->token_classifier ? head->token_classifier : "score";
    bool with_cache = model_keeps_cache(m);
    switch (m->task) {
    case TASK_CAUSAL_LM:
        output_language_model(m, hidden, head);
        type = m->output_class          ? m->output_class
               : head->cross_attentions ? "CausalLMOutputWithCrossAttentions"
               : head->experts          ? "MoeCausalLMOutputWithPast"
                                        : "CausalLMOutputWithPast";
        break;
    case TASK_SEQUENCE_CLASSIFICATION: {
        Value *logits = model_head_linear(m, hidden, config_labels(m), false, "score");
        build_output(&m->b, key, pool_last_token(m, logits, head));
        type = "SequenceClassifierOutputWithPast";
        break;
    }
    case TASK_TOKEN_CLASSIFICATION:
        build_output(&m->b, key, model_head_linear(m, hidden, config_labels(m), true, classifier));
        type = "TokenClassifierOutput";
        with_cache = false;
        break;
    case TASK_QUESTION_ANSWERING:
        model_output_answers(m, model_head_linear(m, hidden, 2, true, "qa_outputs"));
        return;
    default:
        build_output(&m->b, "last_hidden_state", hidden);
        type = head->cross_attentions ? "BaseModelOutputWithPastAndCrossAttentions"
               : head->experts        ? "MoeModelOutputWithPast"
                                      : "BaseModelOutputWithPast";
        key = "last_hidden_state";
        break;
    }
    if (!with_cache) {
        model_output_tree(m, type, &key, (const Tree *const[]){NULL}, 1);
        return;
    }
    const char *const keys[2] = {key, "cache"};
    const Tree *cache = model_output_cache(m, head->cache, head->layers);
    if (cache) model_output_tree(m, type, keys, (const Tree *const[]){NULL, cache}, 2);
}
