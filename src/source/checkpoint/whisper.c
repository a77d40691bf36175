/* Whisper: an encoder of log-mel spectra of one fixed length, and a decoder like that of BART's relatives. */
#include "source/checkpoint/audio.h"
#include "source/checkpoint/bart.h"
#include "source/checkpoint/families.h"

/* Of other classes than the ones here, of training, and of generation; and of the stack that a component
 * does not have. */
static const char *const ignored[] = {
    "apply_spec_augment",     "classifier_proj_size", "forced_decoder_ids",  "mask_feature_length",
    "mask_feature_min_masks", "mask_feature_prob",    "mask_time_length",    "mask_time_min_masks",
    "mask_time_prob",         "max_target_positions", "median_filter_width", "num_mel_bins",
    "use_weighted_layer_sum",
};

static Value *encode(Bart *bart, int64_t length) {
    Model *m = bart->m;
    build_scope(&m->b, "%s.encoder", m->family->base_prefix);
    ModelPart outer = model_enter(m, NULL, (const char *const[]){"encoder", NULL});
    Value *x = audio_embed(m, config_size_or(m, "num_mel_bins", 80), length, bart->width);
    model_leave(m, outer);
    return bart_encoder_layers(bart, x, NULL);
}

static Value *decode(Bart *bart, Value *words) {
    Model *m = bart->m;
    int64_t rows = config_size_or(m, "max_target_positions", 448);
    build_scope(&m->b, "%s.decoder", m->family->base_prefix);
    Value *x = model_embed_inputs(m, words, NULL);
    Value *table = model_matrix(m, rows, bart->width, "decoder.embed_positions.weight");
    x = build_add(&m->b, x, build_embedding(&m->b, table, model_positions(m)));
    return bart_decoder_layers(bart, x, seq2seq_decoder_mask(&bart->s));
}

static void build_whisper(Model *m) {
    Bart bart = bart_start(m);
    bart.s.main_input = "input_features";
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) config_accept(m, ignored[i]);
    int64_t length = config_size_or(m, "max_source_positions", 1500);
    seq2seq_start(&bart.s);
    if (!build_ok(&m->b)) return;
    Value *encoded = seq2seq_has_encoder(&bart.s) ? encode(&bart, length) : NULL;
    if (seq2seq_is_encoder(&bart.s)) {
        seq2seq_output_encoder(&bart.s, encoded);
        return;
    }
    if (!build_ok(&m->b)) return;
    seq2seq_enter_decoder(&bart.s, encoded, build_const(&m->b, length), bart.width,
                          bart.decoder.layers);
    Value *words =
        model_matrix(m, bart.decoder.vocabulary, bart.width, "decoder.embed_tokens.weight");
    bart_outputs(&bart, decode(&bart, words), words);
}

static const BartTraits whisper = {.norm_first = true,
                                   .no_key_bias = true,
                                   .activation = "gelu",
                                   .vocabulary = 51865,
                                   .width = 384,
                                   .layers = 4,
                                   .heads = 6,
                                   .inner = 1536,
                                   .pad = 50256,
                                   .logits = "proj_out.weight"};

const Family whisper_families[] = {
    {"whisper", "Whisper", "model", build_whisper, 1u << TASK_FEATURES | 1u << TASK_SPEECH_TO_TEXT,
     &whisper, seq2seq_components},
    {0},
};
