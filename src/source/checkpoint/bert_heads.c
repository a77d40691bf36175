/* The heads of BERT and its relatives. */
#include "source/checkpoint/bert.h"

/* The hidden state of the first token, [batch, hidden]. */
static Value *first_token(Bert *bert, Value *hidden) {
    return build_select(&bert->m->b, hidden, 1, 0);
}

static Value *pool(Bert *bert, Value *hidden) {
    Model *m = bert->m;
    const char *name = bert->traits->pooler;
    const char *outer = build_scope(&m->b, "%s.pooler", m->family->base_prefix);
    Value *first = first_token(bert, hidden);
    Value *pooled =
        model_activation(m, model_linear(m, first, bert->hidden, true, "%s", name), "tanh");
    m->b.scope = outer;
    return pooled;
}

static void output_features(Bert *bert, Value *hidden) {
    Model *m = bert->m;
    static const char *const keys[2] = {"last_hidden_state", "pooler_output"};
    const char *pooler = bert->traits->pooler;
    bool pools = pooler && model_has(m, "%s.weight", pooler);
    build_output(&m->b, keys[0], hidden);
    if (pools) build_output(&m->b, keys[1], pool(bert, hidden));
    model_output_tree(m, bert->traits->features_class, keys, (const Tree *const[]){NULL, NULL},
                      pools ? 2 : 1);
}

static void output_predictions(Bert *bert, Value *hidden) {
    Model *m = bert->m;
    const BertPredictionHead *head = &bert->traits->prediction;
    const char *activation = head->activation ? head->activation : bert->activation;
    const char *outer = build_scope(&m->b, "%s", head->dense);
    Value *x = model_head_linear(m, hidden, bert->embedding, true, head->dense);
    x = model_activation(m, x, activation);
    x = model_head_layer_norm(m, x, true, bert->eps, head->norm);
    build_scope(&m->b, "%s", head->decoder);
    const char *weight = arena_format(&m->b.program->arena, "%s.weight", head->decoder);
    const char *bias = arena_format(&m->b.program->arena, "%s.bias", head->decoder);
    if (head->bias && !model_has(m, "%s", bias)) bias = head->bias;
    x = build_linear(&m->b, x, model_output_embedding(m, weight, bert->words),
                     model_head_weight(m, 1, &bert->vocabulary, bias));
    model_output_one(m, "MaskedLMOutput", "logits", x);
    m->b.scope = outer;
}

static void output_class(Bert *bert, Value *hidden) {
    Model *m = bert->m;
    const BertClassifier *head = &bert->traits->classifier;
    Value *x;
    if (head->dense) {
        const char *outer = build_scope(&m->b, "%s", head->dense);
        x = model_head_linear(m, first_token(bert, hidden), bert->hidden, true, head->dense);
        x = model_activation(m, x, head->activation);
        m->b.scope = outer;
    } else {
        x = pool(bert, hidden);
    }
    x = model_head_linear(m, x, config_labels(m), true, head->projection);
    model_output_one(m, "SequenceClassifierOutput", "logits", x);
}

void bert_outputs(Bert *bert, Value *hidden) {
    Model *m = bert->m;
    switch (m->task) {
    case TASK_MASKED_LM: output_predictions(bert, hidden); break;
    case TASK_SEQUENCE_CLASSIFICATION: output_class(bert, hidden); break;
    case TASK_TOKEN_CLASSIFICATION: {
        Value *logits = model_head_linear(m, hidden, config_labels(m), true, "classifier");
        model_output_one(m, "TokenClassifierOutput", "logits", logits);
        break;
    }
    case TASK_QUESTION_ANSWERING:
        model_output_answers(m, model_head_linear(m, hidden, 2, true, "qa_outputs"));
        break;
    default: output_features(bert, hidden); break;
    }
}
