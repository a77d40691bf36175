/* Towers of CLIP and SigLIP inside multimodal models, and the projectors behind them. */
#include "source/checkpoint/multimodal.h"

#include <math.h>
#include <string.h>

static const char *const tower_names[] = {"vision_tower.vision_model", "vision_tower", NULL};

/* ---- towers ---- */

/* The object of vision_config must say which tower it is of. */
static ClipKind tower_kind(Model *m) {
    const char *type = config_string_or(m, "model_type", "");
    if (strcmp(type, "clip_vision_model") == 0) return CLIP;
    if (strcmp(type, "siglip_vision_model") == 0) return SIGLIP;
    build_fail(&m->b, FERRY_UNSUPPORTED,
               "%s: expected the \"model_type\" clip_vision_model or siglip_vision_model, found "
               "\"%s\"",
               m->config_path, type);
    return CLIP;
}

/* The numbers of the hidden states that vision_feature_layer names, counted from the front; false for a
 * bad one. */
static bool feature_layer(Model *m, json_t *value, int64_t states, int64_t *out) {
    int64_t layer = json_integer_value(value);
    if (layer < 0) layer += states;
    if (json_is_integer(value) && layer >= 0 && layer < states) {
        *out = layer;
        return true;
    }
    build_fail(&m->b, FERRY_BAD_FORMAT,
               "%s: expected \"vision_feature_layer\" to name hidden states of the vision tower, "
               "which has %lld",
               m->config_path, (long long)states);
    return false;
}

static void select_states(Model *m, const Vision *vision, bool *selected) {
    int64_t states = vision->encoder.layers + 1, layer = states - 2;
    json_t *layers = config_get(m, "vision_feature_layer");
    size_t count = json_is_array(layers) ? json_array_size(layers) : 1;
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_is_array(layers) ? json_array_get(layers, i) : layers;
        if (value && !feature_layer(m, value, states, &layer)) return;
        selected[layer] = true;
    }
}

/* hidden_states: a tuple with the selected ones, and None for the others. */
static const Tree *output_states(Model *m, const Vision *vision, uint32_t first) {
    Program *program = m->b.program;
    Arena *arena = &program->arena;
    uint32_t states = (uint32_t)vision->encoder.layers + 1;
    const Tree **leaves = ARENA_ARRAY(arena, const Tree *, states);
    bool *selected = ARENA_ARRAY(arena, bool, states);
    if (!leaves || !selected) return NULL;
    select_states(m, vision, selected);
    for (uint32_t i = 0; i < states; i++) {
        const char *name = arena_format(arena, "hidden_states.%u", i);
        leaves[i] = tree_leaf(arena);
        if (selected[i])
            build_output(&m->b, name, vision->states[i]);
        else
            VEC_PUSH(&program->output_constants, ((ConstantLeaf){first + i, name, "null"}));
    }
    return tree_tuple(arena, leaves, states);
}

/* The tower on pixel_values; with the hidden states that the projector takes, when `states`. */
static void image_encoder(Model *m, bool states) {
    static const char *const classes[] = {
        [CLIP] = "CLIPVisionModel", [SIGLIP] = "SiglipVisionModel"};
    static const char *const keys[] = {"last_hidden_state", "pooler_output", "hidden_states"};
    model_default_inputs(m, (const char *const[]){"pixel_values", NULL});
    ModelPart outer = model_enter(m, "vision_config", tower_names);
    ClipKind kind = tower_kind(m);
    Vision vision = clip_vision_config(m, kind, "vision_tower");
    ClipOutput output = clip_vision(&vision, kind, vision_pixels(&vision, "images"));
    config_accept(m, "projection_dim");
    model_leave(m, outer);
    m->b.program->architecture = classes[kind];
    if (!build_ok(&m->b)) return;
    const Tree *trees[3] = {NULL};
    const char *names[3];
    uint32_t count = 0;
    build_output(&m->b, names[count++] = keys[0], output.hidden);
    if (output.pooled) build_output(&m->b, names[count++] = keys[1], output.pooled);
    if (states) {
        trees[count] = output_states(m, &vision, count);
        names[count++] = keys[2];
    }
    model_output_tree(m, "BaseModelOutputWithPooling", names, trees, count);
}

void llava_image_encoder(Model *m) {
    image_encoder(m, true);
}

void siglip_image_encoder(Model *m) {
    image_encoder(m, false);
}

/* ---- projectors ---- */

static const Sym *patches(Model *m) {
    return sym_symbol(&m->b.program->symbols, "patches", 1, SYM_UNBOUNDED);
}

/* Inside the part multi_modal_projector. */
static ModelPart enter_projector(Model *m) {
    return model_enter(m, NULL, (const char *const[]){"multi_modal_projector", NULL});
}

void llava_projector(Model *m) {
    bool bias = config_bool_or(m, "multimodal_projector_bias", true);
    const char *activation = config_string_or(m, "projector_hidden_act", "gelu");
    ModelPart outer = enter_projector(m);
    int64_t in = model_size(m, 1, "linear_1.weight"), out = model_size(m, 0, "linear_1.weight");
    Value *x = multimodal_features(m, "image_features", patches(m), in);
    x = model_activation(m, model_linear(m, x, out, bias, "linear_1"), activation);
    x = model_linear(m, x, out, bias, "linear_2");
    model_leave(m, outer);
    multimodal_output(m, "LlavaMultiModalProjector", x);
}

void paligemma_projector(Model *m) {
    ModelPart outer = enter_projector(m);
    int64_t in = model_size(m, 1, "linear.weight"), out = model_size(m, 0, "linear.weight");
    Value *x = multimodal_features(m, "image_features", patches(m), in);
    x = model_linear(m, x, out, true, "linear");
    model_leave(m, outer);
    multimodal_output(m, "PaliGemmaMultiModalProjector", x);
}

/* The mean of squares of patches, [images, tokens, hidden]. */
static Value *pool_patches(Model *m, Value *x, int64_t side, int64_t tokens) {
    Builder *b = &m->b;
    const int64_t kernel[2] = {side / tokens, side / tokens}, none[2] = {0, 0};
    const Sym *images = build_dim(b, x, 0), *hidden = build_dim(b, x, 2);
    const Sym *grid[4] = {images, hidden, build_const(b, side), build_const(b, side)};
    x = build_view(b, build_transpose(b, x, 1, 2), grid, 4);
    const Arg args[] = {arg_tensor(x), arg_ints(b, kernel, 2), arg_ints(b, kernel, 2),
                        arg_ints(b, none, 2)};
    x = build_op(b, OP_AVG_POOL, args, 4);
    x = build_view(b, x, (const Sym *const[]){images, hidden, build_const(b, -1)}, 3);
    return build_transpose(b, x, 1, 2);
}

void gemma3_projector(Model *m) {
    int64_t tokens = (int64_t)sqrt((double)config_size_or(m, "mm_tokens_per_image", 256));
    ModelPart outer = model_enter(m, "vision_config", tower_names);
    Vision vision = clip_vision_config(m, SIGLIP, "vision_tower");
    config_accept_all(m);
    model_leave(m, outer);
    int64_t side = vision.image[0] / vision.patch[0], hidden = vision.encoder.hidden;
    if (tokens < 1 || tokens > side) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: \"mm_tokens_per_image\": %lld x %lld tokens do not fit %lld x %lld patches",
                   m->config_path, (long long)tokens, (long long)tokens, (long long)side,
                   (long long)side);
        return;
    }
    outer = enter_projector(m);
    int64_t out = model_size(m, 1, "mm_input_projection_weight");
    Value *x = multimodal_features(m, "vision_outputs", build_const(&m->b, side * side), hidden);
    x = build_to(&m->b, pool_patches(m, x, side, tokens), FERRY_F32);
    Value *weight = build_to(&m->b, model_vector(m, hidden, "mm_soft_emb_norm.weight"), FERRY_F32);
    x = build_rms_norm(&m->b, x, build_scalar(&m->b, OP_ADD_SCALAR, weight, 1), vision.encoder.eps);
    x = build_matmul(&m->b, build_to(&m->b, x, m->dtype),
                     model_matrix(m, hidden, out, "mm_input_projection_weight"));
    model_leave(m, outer);
    multimodal_output(m, "Gemma3MultiModalProjector", x);
}
