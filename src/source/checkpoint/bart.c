/* BART and its relatives: bart, mbart, marian, pegasus, m2m_100. */
#include "source/checkpoint/bart.h"
#include "source/checkpoint/families.h"

#include <math.h>
#include <string.h>

/* ---- configuration ---- */

/* Options of fairseq's models that older configurations list; the classes do not read them. */
static const char *const ignored[] = {
    "add_bias_logits",
    "add_final_layer_norm",
    "classif_dropout",
    "do_blenderbot_90_layernorm",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "normalize_before",
    "normalize_embedding",
    "output_past",
    "save_step",
    "static_position_embeddings",
};

static int64_t or_else(int64_t size, int64_t otherwise) {
    return size ? size : otherwise;
}

static void check_heads(Bart *bart, const BartStack *stack) {
    if (bart->width % stack->heads == 0) return;
    build_fail(&bart->m->b, FERRY_BAD_FORMAT, "%s: %lld features do not fit %lld heads of the %s",
               bart->m->config_path, (long long)bart->width, (long long)stack->heads, stack->name);
}

Bart bart_start(Model *m) {
    const BartTraits *traits = m->family->traits;
    const int64_t layers = or_else(traits->layers, 12), heads = or_else(traits->heads, 16);
    const int64_t inner = or_else(traits->inner, 4096);
    int64_t vocabulary = config_size_or(m, "vocab_size", traits->vocabulary);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) config_accept(m, ignored[i]);
    Bart bart = {
        .m = m,
        .traits = traits,
        .encoder = {"encoder", vocabulary,
                    seq2seq_size(m, "encoder_layers", "num_hidden_layers", layers),
                    seq2seq_size(m, "encoder_attention_heads", "num_attention_heads", heads),
                    config_size_or(m, "encoder_ffn_dim", inner)},
        .decoder = {"decoder", vocabulary, config_size_or(m, "decoder_layers", layers),
                    config_size_or(m, "decoder_attention_heads", heads),
                    config_size_or(m, "decoder_ffn_dim", inner)},
        .width = seq2seq_size(m, "d_model", "hidden_size", or_else(traits->width, 1024)),
        .pad = config_int_or(m, "pad_token_id", traits->pad),
        .scale = 1,
        .activation = config_string_or(m, "activation_function", traits->activation)};
    bart.s = (Seq2Seq){.m = m, .encoder_outputs = "BaseModelOutput"};
    if (config_bool_or(m, "scale_embedding", traits->scales)) bart.scale = sqrt((double)bart.width);
    check_heads(&bart, &bart.encoder);
    check_heads(&bart, &bart.decoder);
    return bart;
}

/* ---- positions ---- */

static float *new_table(Bart *bart, int64_t rows) {
    float *table = NULL;
    if (rows * bart->width < 1 << 24)
        table = ARENA_ARRAY(&bart->m->b.program->arena, float, (size_t)(rows * bart->width));
    if (!table)
        build_fail(&bart->m->b, FERRY_OUT_OF_MEMORY, "no memory for %lld positions",
                   (long long)rows);
    return table;
}

static Value *table_value(Bart *bart, const float *table, int64_t rows) {
    const int64_t shape[2] = {rows, bart->width};
    if (!table) return &bart->m->b.poison;
    Value *value = build_constant(&bart->m->b, VALUE_CONSTANT, "sinusoidal_positions", FERRY_F32, 2,
                                  shape, table);
    return build_to(&bart->m->b, value, bart->m->dtype);
}

/* Sines of the even frequencies, then cosines of the odd ones, in float64. */
static Value *sine_table(Bart *bart, int64_t rows) {
    int64_t width = bart->width, half = (width + 1) / 2;
    float *table = new_table(bart, rows);
    for (int64_t row = 0; table && row < rows; row++) {
        for (int64_t i = 0; i < width; i++) {
            int64_t pair = i < half ? i : i - half;
            double angle = (double)row / pow(10000, (double)(2 * pair) / (double)width);
            table[row * width + i] = (float)(i < half ? sin(angle) : cos(angle));
        }
    }
    return table_value(bart, table, rows);
}

/* Sines, then cosines of the same frequencies, in float32; the row of padding is zero. */
static Value *token_table(Bart *bart, int64_t rows) {
    int64_t width = bart->width, half = width / 2;
    float step = (float)-(log(10000) / (double)(half - 1));
    float *table = new_table(bart, rows);
    for (int64_t row = 0; table && row < rows; row++) {
        for (int64_t i = 0; i < width; i++) {
            int64_t pair = i < half ? i : i - half;
            float angle = (float)row * (float)exp((double)((float)pair * step));
            double value = i < half ? sin((double)angle) : i < 2 * half ? cos((double)angle) : 0;
            table[row * width + i] = row == bart->pad ? 0 : (float)value;
        }
    }
    return table_value(bart, table, rows);
}

/* The number of tokens up to each, counted on from what is cached, behind the padding's number, which is
 * that of padding. */
static Value *token_positions(Bart *bart, Value *ids) {
    Model *m = bart->m;
    Builder *b = &m->b;
    const Sym *cached[1] = {build_const(b, 1)};
    Value *first = build_slice(b, model_slots(m), 0, build_const(b, 0), cached[0]);
    if (!ids) return build_scalar(b, OP_ADD_SCALAR, model_positions(m), (double)bart->pad + 1);
    Value *kept = build_to(b, build_scalar(b, OP_NE_SCALAR, ids, (double)bart->pad), FERRY_I64);
    Value *count = build_add(b, build_cumsum(b, kept, 1), first);
    return build_scalar(b, OP_ADD_SCALAR, build_mul(b, count, kept), (double)bart->pad);
}

static Value *embed_positions(Bart *bart, const BartStack *stack, Value *ids) {
    enum { OFFSET = 2 };
    Model *m = bart->m;
    Builder *b = &m->b;
    int64_t rows = config_size_or(m, "max_position_embeddings", 1024);
    const char *name = bart_name(bart, stack, "embed_positions.weight");
    switch (bart->traits->positions) {
    case BART_LEARNED: {
        Value *table = model_matrix(m, rows + OFFSET, bart->width, "%s", name);
        Value *positions = build_scalar(b, OP_ADD_SCALAR, model_slots(m), OFFSET);
        return build_embedding(b, table, positions);
    }
    case BART_SINES: {
        Value *table = model_has(m, "%s", name) ? model_matrix(m, rows, bart->width, "%s", name)
                                                : sine_table(bart, rows);
        return build_embedding(b, table, model_slots(m));
    }
    case BART_TOKENS:
        if (bart->width < 4) {
            return build_fail(b, FERRY_UNSUPPORTED,
                              "%s: %lld features have no sinusoidal positions", m->config_path,
                              (long long)bart->width);
        }
        return build_embedding(b, token_table(bart, rows + OFFSET), token_positions(bart, ids));
    }
    return NULL;
}

/* ---- the whole model ---- */

/* Embedded tokens and positions; of the decoder, `*words` is the table. */
static Value *embed(Bart *bart, const BartStack *stack, Value **words) {
    Model *m = bart->m;
    Builder *b = &m->b;
    build_scope(b, "%s.%s", m->family->base_prefix, stack->name);
    Value *ids, *table = seq2seq_embedding(&bart->s, stack->name, stack->vocabulary, bart->width);
    Value *x = words ? seq2seq_embed_decoder(&bart->s, table, &ids)
                     : model_embed_inputs(m, table, &bart->s.ids);
    if (!words) ids = bart->s.ids;
    if (bart->scale != 1 && (ids || bart->traits->scales_embeds))
        x = build_scalar(b, OP_MUL_SCALAR, x, bart->scale);
    if (!build_ok(b)) return x;
    x = build_add(b, x, embed_positions(bart, stack, ids));
    if (words) *words = table;
    if (!bart->traits->embedding_norm) return x;
    return model_layer_norm(m, x, true, 1e-5, "%s.layernorm_embedding", stack->name);
}

void bart_outputs(Bart *bart, Value *hidden, Value *words) {
    Model *m = bart->m;
    const char *name = bart->traits->logits ? bart->traits->logits : "lm_head.weight";
    if (m->task == TASK_FEATURES) {
        seq2seq_outputs(&bart->s, hidden);
        return;
    }
    if (seq2seq_has_head(&bart->s)) {
        seq2seq_output_head(&bart->s, hidden);
        return;
    }
    Value *tied = seq2seq_shared_embedding(&bart->s, words);
    Value *logits = build_linear(&m->b, hidden, model_output_embedding(m, name, tied), NULL);
    if (bart->traits->logits_bias && model_has(m, "final_logits_bias")) {
        const int64_t shape[2] = {1, bart->decoder.vocabulary};
        Value *bias = model_head_weight(m, 2, shape, "final_logits_bias");
        logits = build_add(&m->b, logits, bias);
    }
    seq2seq_outputs(&bart->s, logits);
}

static void build_bart(Model *m) {
    Bart bart = bart_start(m);
    bart.s.main_input = "input_ids";
    bart.s.masked = true;
    bart.s.shifts = bart.traits->shifts;
    bart.s.wraps = bart.traits->wraps;
    bart.s.start = bart.s.eos = 2;
    bart.s.pad = bart.pad;
    bart.s.labels = bart.traits->wraps ? 2 : 3;
    if (bart.traits->splits) {
        int64_t other = config_size_or(m, "decoder_vocab_size", bart.encoder.vocabulary);
        if (!config_bool_or(m, "share_encoder_decoder_embeddings", true))
            bart.decoder.vocabulary = other;
    }
    seq2seq_start(&bart.s);
    Value *encoded = NULL, *words = NULL;
    if (seq2seq_has_encoder(&bart.s) && build_ok(&m->b)) {
        Value *x = embed(&bart, &bart.encoder, NULL);
        Value *mask = model_mask(m, model_padding_mask(m), false, 0);
        encoded = bart_encoder_layers(&bart, x, mask);
    }
    if (seq2seq_is_encoder(&bart.s)) {
        seq2seq_output_encoder(&bart.s, encoded);
        return;
    }
    if (!build_ok(&m->b)) return;
    seq2seq_enter_decoder(&bart.s, encoded, NULL, bart.width, bart.decoder.layers);
    Value *x = embed(&bart, &bart.decoder, &words);
    if (!build_ok(&m->b)) return;
    bart_outputs(&bart, bart_decoder_layers(&bart, x, seq2seq_decoder_mask(&bart.s)), words);
}

/* ---- model types ---- */

static const BartTraits bart = {.positions = BART_LEARNED,
                                .shifts = true,
                                .embedding_norm = true,
                                .logits_bias = true,
                                .activation = "gelu",
                                .vocabulary = 50265,
                                .pad = 1};
static const BartTraits mbart = {.positions = BART_LEARNED,
                                 .shifts = true,
                                 .wraps = true,
                                 .norm_first = true,
                                 .embedding_norm = true,
                                 .logits_bias = true,
                                 .activation = "gelu",
                                 .vocabulary = 50265,
                                 .pad = 1};
static const BartTraits marian = {.positions = BART_SINES,
                                  .scales_embeds = true,
                                  .logits_bias = true,
                                  .splits = true,
                                  .activation = "gelu",
                                  .vocabulary = 58101,
                                  .pad = 58100};
static const BartTraits pegasus = {.positions = BART_SINES,
                                   .norm_first = true,
                                   .scales_embeds = true,
                                   .logits_bias = true,
                                   .activation = "gelu",
                                   .vocabulary = 50265,
                                   .pad = 0};
static const BartTraits m2m_100 = {.positions = BART_TOKENS,
                                   .norm_first = true,
                                   .scales = true,
                                   .activation = "relu",
                                   .vocabulary = 128112,
                                   .pad = 1};

enum {
    TASKS = 1u << TASK_FEATURES | 1u << TASK_TEXT_TO_TEXT,
    HEADS = 1u << TASK_SEQUENCE_CLASSIFICATION | 1u << TASK_QUESTION_ANSWERING,
};

const Family bart_families[] = {
    {"bart", "Bart", "model", build_bart, TASKS | HEADS, &bart, seq2seq_components},
    {"mbart", "MBart", "model", build_bart, TASKS | HEADS, &mbart, seq2seq_components},
    {"marian", "Marian", "model", build_bart, TASKS, &marian, seq2seq_components},
    {"pegasus", "Pegasus", "model", build_bart, TASKS, &pegasus, seq2seq_components},
    {"m2m_100", "M2M100", "model", build_bart, TASKS, &m2m_100, seq2seq_components},
    {0},
};
