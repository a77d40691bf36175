/* What encoder-decoder models are used for besides generation: classes that feed the encoder's own tokens,
 * shifted, to the decoder, and put a head on its hidden states. */
#include "source/checkpoint/seq2seq.h"

#include <string.h>

/* ---- the decoder's tokens ---- */

/* Row by row the last token that is not padding, [batch, 1]. */
static Value *last_token(Seq2Seq *s, Value *ids) {
    Builder *b = &s->m->b;
    Value *kept = build_scalar(b, OP_NE_SCALAR, ids, (double)s->pad);
    Value *count = build_reduce(b, OP_SUM, build_to(b, kept, FERRY_I64), 1, true);
    return build_gather(b, ids, 1, build_scalar(b, OP_ADD_SCALAR, count, -1));
}

static Value *start_token(Seq2Seq *s, Value *ids) {
    Model *m = s->m;
    if (s->wraps) return last_token(s, ids);
    const Sym *shape[2] = {build_dim(&m->b, ids, 0), build_const(&m->b, 1)};
    if (!config_has(m, "decoder_start_token_id") && s->start < 0) {
        build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                   "%s: without decoder_input_ids among the inputs, the key "
                   "\"decoder_start_token_id\" is needed",
                   m->config_path);
    }
    int64_t start = config_int_or(m, "decoder_start_token_id", s->start);
    return build_full(&m->b, shape, 2, (double)start, FERRY_I64);
}

static bool is_asked_for(const Model *m, const char *name) {
    for (size_t i = 0; i < m->input_count; i++) {
        if (strcmp(m->inputs[i].name, name) == 0) return true;
    }
    return false;
}

Value *seq2seq_embed_decoder(Seq2Seq *s, Value *words, Value **ids) {
    Model *m = s->m;
    Builder *b = &m->b;
    bool given = is_asked_for(m, "decoder_input_ids") || is_asked_for(m, "decoder_inputs_embeds");
    if (given || !s->ids || !(s->shifts || seq2seq_has_head(s)))
        return model_embed_inputs(m, words, ids);
    Value *parts[2] = {start_token(s, s->ids), build_slice_const(b, s->ids, 1, 0, -1)};
    Value *shifted = build_cat(b, parts, 2, 1);
    m->batch = build_dim(b, shifted, 0);
    m->sequence = build_dim(b, s->ids, 1);
    if (ids) *ids = shifted;
    return build_embedding(b, words, shifted);
}

/* ---- heads ---- */

bool seq2seq_has_head(const Seq2Seq *s) {
    return s->m->task == TASK_SEQUENCE_CLASSIFICATION || s->m->task == TASK_QUESTION_ANSWERING;
}

/* The hidden state at the last end of a sentence, [batch, features]. */
static Value *sentence(Seq2Seq *s, Value *hidden) {
    Model *m = s->m;
    Builder *b = &m->b;
    if (!s->ids) {
        return build_fail(
            b, FERRY_INVALID_ARGUMENT,
            "%s looks for the end of the sentence: expected input_ids among the inputs",
            b->program->architecture);
    }
    int64_t eos = config_int_or(m, "eos_token_id", s->eos);
    Value *ends = build_to(b, build_scalar(b, OP_EQ_SCALAR, s->ids, (double)eos), FERRY_I64);
    Value *range = build_arange(b, build_const(b, 0), build_dim(b, s->ids, 1), FERRY_I64);
    Value *last =
        build_reduce(b, OP_ARGMAX, build_mul(b, ends, build_unsqueeze(b, range, 0)), 1, true);
    const Sym *size[3] = {m->batch, build_const(b, 1), build_dim(b, hidden, 2)};
    Value *index = build_expand(b, build_unsqueeze(b, last, 2), size, 3);
    return build_squeeze(b, build_gather(b, hidden, 1, index), 1);
}

static void output_class(Seq2Seq *s, Value *hidden) {
    static const char *const name = "logits";
    Model *m = s->m;
    bool counted = config_has(m, "num_labels") || config_has(m, "id2label");
    int64_t labels = counted ? config_labels(m) : s->labels;
    Value *x = sentence(s, hidden);
    x = model_head_linear(m, x, build_dim(&m->b, hidden, 2)->value, true,
                          "classification_head.dense");
    x = model_head_linear(m, build_unary(&m->b, OP_TANH, x), labels, true,
                          "classification_head.out_proj");
    seq2seq_output_fields(s, "Seq2SeqSequenceClassifierOutput", &name, &x, 1);
}

static void output_answer(Seq2Seq *s, Value *hidden) {
    static const char *const names[2] = {"start_logits", "end_logits"};
    Builder *b = &s->m->b;
    Value *parts[2];
    build_split(b, model_head_linear(s->m, hidden, 2, true, "qa_outputs"), (const int64_t[]){1, 1},
                2, -1, parts);
    for (int i = 0; i < 2; i++) parts[i] = build_squeeze(b, parts[i], -1);
    seq2seq_output_fields(s, "Seq2SeqQuestionAnsweringModelOutput", names, parts, 2);
}

void seq2seq_output_head(Seq2Seq *s, Value *hidden) {
    s->m->b.scope = "";
    if (s->m->task == TASK_QUESTION_ANSWERING)
        output_answer(s, hidden);
    else
        output_class(s, hidden);
}
