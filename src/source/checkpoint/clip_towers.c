/* The towers: embeddings, pre-norm layers, and a pooling of their own each. */
#include "source/checkpoint/clip.h"

#include <math.h>

static const PreNormNames clip_layer = {
    .layers = "encoder.layers",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .output = "self_attn.out_proj",
    .attention_norm = "layer_norm1",
    .mlp_norm = "layer_norm2",
    .up = "mlp.fc1",
    .down = "mlp.fc2",
};

static const VisionTraits vision_traits[] = {
    [CLIP] = {.patch = "embeddings.patch_embedding",
              .class_token = "embeddings.class_embedding",
              .positions = "embeddings.position_embedding.weight",
              .pre_norm = "pre_layrnorm", /* so spelt */
              .post_norm = "post_layernorm",
              .layer = &clip_layer,
              .defaults = {768, 3072, 12, 12, 1e-5, "quick_gelu"},
              .image_size = 224,
              .patch_size = 32},
    [SIGLIP] = {.patch = "embeddings.patch_embedding",
                .patch_bias = true,
                .positions = "embeddings.position_embedding.weight",
                .post_norm = "post_layernorm",
                .layer = &clip_layer,
                .defaults = {768, 3072, 12, 12, 1e-6, "gelu_pytorch_tanh"},
                .image_size = 224,
                .patch_size = 16},
    [NAVIT] = {.patch = "embeddings.patch_embedding",
               .patch_bias = true,
               .positions = "embeddings.position_embedding.weight",
               .post_norm = "post_layernorm",
               .layer = &clip_layer,
               .defaults = {1152, 3072, 16, 12, 1e-6, "gelu_pytorch_tanh"},
               .image_size = 224,
               .patch_size = 32,
               .size = SIZE_PATCHES},
};

/* ---- images ---- */

Vision clip_vision_config(Model *m, ClipKind kind, const char *scope) {
    return vision_config(m, &vision_traits[kind], scope);
}

/* What one learned query, the probe, sees of all patches; then a residual feed-forward. */
static Value *attention_pooling(Vision *vision, Value *x) {
    Model *m = vision->m;
    Builder *b = &m->b;
    const PreNorm *encoder = &vision->encoder;
    int64_t hidden = encoder->hidden, size = hidden / encoder->heads;
    const char *outer = build_scope(b, "%s.head", encoder->scope);
    Value *weight = model_matrix(m, 3 * hidden, hidden, "head.attention.in_proj_weight");
    Value *bias = model_vector(m, 3 * hidden, "head.attention.in_proj_bias");
    Value *probe = model_weight(m, 3, (const int64_t[]){1, 1, hidden}, "head.probe");
    const Sym *const one[3] = {build_dim(b, x, 0), build_const(b, 1), build_const(b, hidden)};
    Value *heads[3] = {probe, x, x};
    for (int i = 0; i < 3; i++) {
        Value *rows = build_slice_const(b, weight, 0, i * hidden, (i + 1) * hidden);
        Value *offset = build_slice_const(b, bias, 0, i * hidden, (i + 1) * hidden);
        Value *projected = build_linear(b, heads[i], rows, offset);
        if (i == 0) projected = build_expand(b, projected, one, 3);
        heads[i] = model_split_heads(m, projected, encoder->heads, size);
    }
    Value *seen =
        build_attention(b, heads[0], heads[1], heads[2], NULL, false, 1 / sqrt((double)size));
    x = model_linear(m, model_merge_heads(m, seen), hidden, true, "head.attention.out_proj");
    Value *normed = model_layer_norm(m, x, true, encoder->eps, "head.layernorm");
    x = build_add(b, x, prenorm_mlp(encoder, normed, "head"));
    x = build_select(b, x, 1, 0);
    b->scope = outer;
    return x;
}

ClipOutput clip_vision(Vision *vision, ClipKind kind, Value *pixels) {
    Model *m = vision->m;
    Value *x = vision_layers(vision, vision_embed(vision, pixels));
    if (kind == CLIP) return (ClipOutput){x, vision_norm(vision, build_select(&m->b, x, 1, 0))};
    x = vision_norm(vision, x);
    bool pools = config_bool_or(m, "vision_use_head", true);
    return (ClipOutput){x, pools ? attention_pooling(vision, x) : NULL};
}

/* ---- text ---- */

/* The row of each sequence's end of text. An end token of 2 is a mistake of early configurations, for
 * which the class takes the highest token. */
static Value *end_of_text(Model *m, Value *hidden, Value *ids) {
    Builder *b = &m->b;
    int64_t end = config_int_or(m, "eos_token_id", 49407);
    if (end != 2) ids = build_to(b, build_scalar(b, OP_EQ_SCALAR, ids, (double)end), FERRY_I64);
    Value *last = build_reduce(b, OP_ARGMAX, ids, 1, true);
    const Sym *size[3] = {m->batch, build_const(b, 1), build_dim(b, hidden, 2)};
    Value *index = build_expand(b, build_unsqueeze(b, last, 2), size, 3);
    return build_squeeze(b, build_gather(b, hidden, 1, index), 1);
}

static Value *embed(Model *m, int64_t hidden, int64_t vocabulary, int64_t positions, Value **ids) {
    Value *words = model_matrix(m, vocabulary, hidden, "embeddings.token_embedding.weight");
    Value *places = model_matrix(m, positions, hidden, "embeddings.position_embedding.weight");
    Value *x = model_embed_inputs(m, words, ids);
    if (!*ids && build_ok(&m->b)) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT, "expected input_ids among the inputs");
    }
    return build_add(&m->b, x, build_embedding(&m->b, places, model_positions(m)));
}

ClipOutput clip_text(Model *m, ClipKind kind, const char *scope) {
    static const PreNormDefaults defaults[] = {
        [CLIP] = {512, 2048, 8, 12, 1e-5, "quick_gelu"},
        [SIGLIP] = {768, 3072, 12, 12, 1e-6, "gelu_pytorch_tanh"},
    };
    Builder *b = &m->b;
    Value *ids;
    PreNorm encoder = prenorm_config(m, &clip_layer, &defaults[kind]);
    int64_t vocabulary = config_size_or(m, "vocab_size", kind == CLIP ? 49408 : 32000);
    int64_t positions = config_size_or(m, "max_position_embeddings", kind == CLIP ? 77 : 64);
    encoder.scope = scope;
    const char *outer = build_scope(b, "%s.embeddings", scope);
    Value *x = embed(m, encoder.hidden, vocabulary, positions, &ids);
    build_scope(b, "%s", scope);
    Value *padding = model_padding_mask(m);
    bool causal = kind == CLIP;
    encoder.causal = causal && !padding;
    if (padding) encoder.mask = model_mask(m, padding, causal, 0);
    for (int64_t i = 0; i < encoder.layers && build_ok(b); i++) x = prenorm_layer(&encoder, x, i);
    x = model_layer_norm(m, x, true, encoder.eps, "final_layer_norm");
    Value *pooled = NULL;
    if (kind == CLIP) {
        pooled = end_of_text(m, x, ids);
    } else {
        int64_t size = config_size_or(m, "projection_size", encoder.hidden);
        Value *last = build_squeeze(b, build_slice_const(b, x, 1, -1, INT64_MAX), 1);
        pooled = model_linear(m, last, size, true, "head");
    }
    b->scope = outer;
    return (ClipOutput){x, pooled};
}
