/* ViT and DINOv2. */
#include "source/checkpoint/families.h"
#include "source/checkpoint/vision.h"

typedef struct VitTraits {
    VisionTraits vision;
    bool layer_scale;   /* DINOv2: scaled residuals, sizes by ratio, perhaps gated */
    const char *pooler; /* dense layer on the class token; NULL: the class token itself */
} VitTraits;

static const PreNormNames vit_layer = {
    .layers = "encoder.layer",
    .query = "attention.attention.query",
    .key = "attention.attention.key",
    .value = "attention.attention.value",
    .output = "attention.output.dense",
    .attention_norm = "layernorm_before",
    .mlp_norm = "layernorm_after",
    .up = "intermediate.dense",
    .down = "output.dense",
};

static const PreNormNames dinov2_layer = {
    .layers = "encoder.layer",
    .query = "attention.attention.query",
    .key = "attention.attention.key",
    .value = "attention.attention.value",
    .output = "attention.output.dense",
    .attention_norm = "norm1",
    .mlp_norm = "norm2",
    .up = "mlp.fc1",
    .down = "mlp.fc2",
    .gate_up = "mlp.weights_in",
    .gate_down = "mlp.weights_out",
    .attention_scale = "layer_scale1.lambda1",
    .mlp_scale = "layer_scale2.lambda1",
};

#define VIT_EMBEDDINGS                                                                             \
    .patch = "embeddings.patch_embeddings.projection", .patch_bias = true,                         \
    .class_token = "embeddings.cls_token", .positions = "embeddings.position_embeddings",          \
    .listed = true, .post_norm = "layernorm", .image_size = 224

static const VitTraits vit_traits = {
    .vision = {VIT_EMBEDDINGS, .layer = &vit_layer, .defaults = {768, 3072, 12, 12, 1e-12, "gelu"},
               .patch_size = 16},
    .pooler = "pooler.dense",
};

static const VitTraits dinov2_traits = {
    .vision = {VIT_EMBEDDINGS, .layer = &dinov2_layer, .defaults = {768, 0, 12, 12, 1e-6, "gelu"},
               .patch_size = 14, .size = SIZE_ANY, .float32 = true},
    .layer_scale = true,
};

/* Keys of other classes of the model type, and of training. */
static void accept_unused(Model *m) {
    static const char *const unused[] = {
        "encoder_stride", "layerscale_value", "drop_path_rate",
        "use_mask_token", "apply_layernorm",  "reshape_hidden_states",
        "out_features",   "out_indices",      "stage_names",
    };
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) config_accept(m, unused[i]);
}

static Vision read_config(Model *m) {
    const VitTraits *traits = m->family->traits;
    Vision vision = vision_config(m, &traits->vision, m->family->base_prefix);
    PreNorm *encoder = &vision.encoder;
    bool bias = config_bool_or(m, "qkv_bias", true);
    encoder->query_bias = encoder->key_bias = encoder->value_bias = bias;
    accept_unused(m);
    if (!traits->layer_scale) return vision;
    encoder->intermediate = config_scaled(m, encoder->hidden, "mlp_ratio", 4);
    encoder->gated = config_bool_or(m, "use_swiglu_ffn", false);
    if (encoder->gated) /* two thirds, rounded up to a multiple of 8 */
        encoder->intermediate = (encoder->intermediate * 2 / 3 + 7) / 8 * 8;
    return vision;
}

static void output_features(Vision *vision, Value *hidden) {
    static const char *const keys[2] = {"last_hidden_state", "pooler_output"};
    Model *m = vision->m;
    const VitTraits *traits = m->family->traits;
    bool pools = !traits->pooler || model_has(m, "%s.weight", traits->pooler);
    int64_t size = config_size_or(m, "pooler_output_size", vision->encoder.hidden);
    const char *activation = config_string_or(m, "pooler_act", "tanh");
    build_output(&m->b, keys[0], hidden);
    if (pools) {
        Value *pooled = build_select(&m->b, hidden, 1, 0);
        if (traits->pooler) {
            const char *outer = build_scope(&m->b, "%s.pooler", m->family->base_prefix);
            pooled = model_linear(m, pooled, size, true, "%s", traits->pooler);
            pooled = model_activation(m, pooled, activation);
            m->b.scope = outer;
        }
        build_output(&m->b, keys[1], pooled);
    }
    model_output_tree(m, "BaseModelOutputWithPooling", keys, (const Tree *const[]){NULL, NULL},
                      pools ? 2 : 1);
}

static void output_class(Vision *vision, Value *hidden) {
    Model *m = vision->m;
    const VitTraits *traits = m->family->traits;
    Value *x = build_select(&m->b, hidden, 1, 0);
    if (traits->layer_scale) { /* the class token, and the mean of the patches */
        Value *patches = build_slice_const(&m->b, hidden, 1, 1, INT64_MAX);
        Value *both[2] = {x, build_reduce(&m->b, OP_MEAN, patches, 1, false)};
        x = build_cat(&m->b, both, 2, 1);
    }
    config_accept(m, "pooler_output_size");
    config_accept(m, "pooler_act");
    x = model_head_linear(m, x, config_labels(m), true, "classifier");
    model_output_one(m, "ImageClassifierOutput", "logits", x);
}

static void vit_build(Model *m) {
    model_default_inputs(m, (const char *const[]){"pixel_values", NULL});
    Vision vision = read_config(m);
    Value *x = vision_embed(&vision, vision_pixels(&vision, "batch"));
    x = vision_norm(&vision, vision_layers(&vision, x));
    if (m->task == TASK_IMAGE_CLASSIFICATION)
        output_class(&vision, x);
    else
        output_features(&vision, x);
}

enum {
    VIT_TASKS = 1 << TASK_FEATURES | 1 << TASK_IMAGE_FEATURES | 1 << TASK_IMAGE_CLASSIFICATION,
};

const Family vit_families[] = {
    {"vit", "ViT", "vit", vit_build, VIT_TASKS, &vit_traits, NULL},
    {"dinov2", "Dinov2", "dinov2", vit_build, VIT_TASKS, &dinov2_traits, NULL},
    {0},
};
