/* The beginning of encoders of audio, and the components of Qwen2-Audio. */
#include "source/checkpoint/audio.h"
#include "source/checkpoint/multimodal.h"
#include "source/checkpoint/prenorm.h"

/* ---- spectra ---- */

/* A convolution over three frames, and GELU. */
static Value *convolve(Model *m, Value *x, int64_t width, int64_t stride, const char *name) {
    const int64_t one = 1, shape[3] = {width, build_dim(&m->b, x, 1)->value, 3};
    Value *weight = model_weight(m, 3, shape, "%s.weight", name);
    Value *bias = model_vector(m, width, "%s.bias", name);
    return build_gelu(&m->b, build_convolution(&m->b, x, weight, bias, &stride, &one), false);
}

Value *audio_embed(Model *m, int64_t bins, int64_t length, int64_t width) {
    Builder *b = &m->b;
    const Sym *shape[3] = {m->batch, build_const(b, bins), build_const(b, 2 * length)};
    Value *x = model_input(m, "input_features", m->dtype, 3, shape);
    if (!x) {
        return build_fail(b, FERRY_INVALID_ARGUMENT, "expected input_features among the inputs");
    }
    if (!sym_is_value(build_dim(b, x, 1), bins) || !sym_is_value(build_dim(b, x, 2), 2 * length)) {
        return build_fail(b, FERRY_INVALID_ARGUMENT,
                          "%s takes input_features of %lld mel bins and %lld frames: pad them",
                          m->family->class_prefix, (long long)bins, (long long)(2 * length));
    }
    m->batch = build_dim(b, x, 0);
    x = convolve(m, convolve(m, x, width, 1, "conv1"), width, 2, "conv2");
    return build_add(b, build_transpose(b, x, 1, 2),
                     model_matrix(m, length, width, "embed_positions.weight"));
}

/* ---- Qwen2-Audio ---- */

static const PreNormNames audio_layer = {
    .layers = "layers",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .output = "self_attn.out_proj",
    .attention_norm = "self_attn_layer_norm",
    .mlp_norm = "final_layer_norm",
    .up = "fc1",
    .down = "fc2",
};

static PreNorm read_config(Model *m) {
    PreNorm encoder = {
        .m = m,
        .names = &audio_layer,
        .scope = "audio_tower",
        .hidden = config_size_or(m, "d_model", 1280),
        .intermediate = config_size_or(m, "encoder_ffn_dim", 5120),
        .heads = config_size_or(m, "encoder_attention_heads", 20),
        .layers = config_size_or(m, "encoder_layers", 32),
        .eps = 1e-5,
        .activation = config_string_or(m, "activation_function", "gelu"),
        .query_bias = true,
        .value_bias = true,
        .clamps = true,
    };
    config_accept(m, "scale_embedding"); /* read by the decoder only */
    config_accept(m, "encoder_layerdrop");
    config_accept(m, "activation_dropout");
    if (encoder.hidden % encoder.heads != 0) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"d_model\" to be a multiple of \"encoder_attention_heads\", %lld",
                   m->config_path, (long long)encoder.heads);
    }
    return encoder;
}

/* The mean of every two frames, [batch, frames / 2, size]. */
static Value *average_pairs(Model *m, Value *x, int64_t frames) {
    Builder *b = &m->b;
    const Sym *pairs[4] = {build_dim(b, x, 0), build_const(b, frames / 2), build_const(b, 2),
                           build_dim(b, x, 2)};
    if (frames % 2) x = build_slice_const(b, x, 1, 0, frames - 1);
    return build_reduce(b, OP_MEAN, build_view(b, x, pairs, 4), 2, false);
}

static Value *encode(Model *m) {
    Builder *b = &m->b;
    PreNorm encoder = read_config(m);
    int64_t bins = config_size_or(m, "num_mel_bins", 128);
    int64_t positions = config_size_or(m, "max_source_positions", 1500);
    const Sym *places = build_const(b, positions);
    const char *outer = build_scope(b, "%s", encoder.scope);
    Value *x = audio_embed(m, bins, positions, encoder.hidden);
    encoder.mask = model_input(m, "attention_mask", FERRY_BOOL, 4,
                               (const Sym *const[]){m->batch, build_const(b, 1), places, places});
    for (int64_t i = 0; i < encoder.layers && build_ok(b); i++) x = prenorm_layer(&encoder, x, i);
    x = model_layer_norm(m, average_pairs(m, x, positions), true, encoder.eps, "layer_norm");
    b->scope = outer;
    return x;
}

void qwen2_audio_encoder(Model *m) {
    model_default_inputs(m, (const char *const[]){"input_features", "attention_mask", NULL});
    ModelPart outer = model_enter(m, "audio_config", (const char *const[]){"audio_tower", NULL});
    Value *x = encode(m);
    model_leave(m, outer);
    model_output_one(m, "BaseModelOutput", "last_hidden_state", x);
    m->b.program->architecture = "Qwen2AudioEncoder";
}

void qwen2_audio_projector(Model *m) {
    const Sym *frames = sym_symbol(&m->b.program->symbols, "frames", 1, SYM_UNBOUNDED);
    ModelPart outer = model_enter(m, NULL, (const char *const[]){"multi_modal_projector", NULL});
    int64_t in = model_size(m, 1, "linear.weight"), out = model_size(m, 0, "linear.weight");
    Value *x = multimodal_features(m, "audio_features", frames, in);
    x = model_linear(m, x, out, true, "linear");
    model_leave(m, outer);
    multimodal_output(m, "Qwen2AudioMultiModalProjector", x);
}
