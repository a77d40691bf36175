/* CLIP and SigLIP: both towers, one of them, or the vision tower with a classifier. */
#include "source/checkpoint/clip.h"
#include "source/checkpoint/families.h"

#include <string.h>

typedef struct ClipTraits {
    ClipKind kind;
    const char *module; /* of the output classes */
    const char *prefix; /* of their names */
    bool alone;         /* the checkpoint's configuration is that of one tower */
} ClipTraits;

static const ClipTraits clip_traits = {CLIP, "transformers.models.clip.modeling_clip", "CLIP",
                                       false};
static const ClipTraits clip_tower_traits = {CLIP, "transformers.models.clip.modeling_clip", "CLIP",
                                             true};
static const ClipTraits siglip_traits = {SIGLIP, "transformers.models.siglip.modeling_siglip",
                                         "Siglip", false};
static const ClipTraits siglip_tower_traits = {SIGLIP, "transformers.models.siglip.modeling_siglip",
                                               "Siglip", true};

static const char *const vision_keys[2] = {"last_hidden_state", "pooler_output"};

static const ClipTraits *traits_of(const Model *m) {
    return m->family->traits;
}

/* ---- parts ---- */

/* Go into a tower. Some published files have its configuration as `<key>_dict` too, which overrides
 * the other as a whole. */
static ModelPart enter(Model *m, const char *key, const char *name) {
    const char *const prefixes[] = {name, "", NULL};
    const char *override = arena_format(&m->b.program->arena, "%s_dict", key);
    if (traits_of(m)->alone) return model_enter(m, NULL, prefixes);
    bool overridden = config_has(m, override);
    config_accept(m, key);
    return model_enter(m, overridden ? override : key, prefixes);
}

/* The other tower is no part of this program. */
static void leave_out(Model *m, const char *key) {
    config_accept(m, key);
    config_accept(m, arena_format(&m->b.program->arena, "%s_dict", key));
    config_accept(m, "projection_dim");
}

typedef struct Tower {
    ClipOutput output;
    int64_t projection; /* projection_dim of its own configuration */
} Tower;

static Tower build_vision(Model *m, const char *batch) {
    ClipKind kind = traits_of(m)->kind;
    ModelPart outer = enter(m, "vision_config", "vision_model");
    Vision vision = clip_vision_config(m, kind, "vision_model");
    Tower tower = {clip_vision(&vision, kind, vision_pixels(&vision, batch)),
                   config_size_or(m, "projection_dim", 512)};
    model_leave(m, outer);
    return tower;
}

static Tower build_text(Model *m) {
    ModelPart outer = enter(m, "text_config", "text_model");
    Tower tower = {clip_text(m, traits_of(m)->kind, "text_model"),
                   config_size_or(m, "projection_dim", 512)};
    model_leave(m, outer);
    return tower;
}

/* ---- outputs ---- */

/* The outputs of a tower, below `path`. */
static const Tree *output_tower(Model *m, const char *path, const ClipOutput *output) {
    Arena *arena = &m->b.program->arena;
    const Tree *leaves[2] = {tree_leaf(arena), tree_leaf(arena)};
    build_output(&m->b, tree_path(arena, path, vision_keys[0]), output->hidden);
    if (output->pooled) build_output(&m->b, tree_path(arena, path, vision_keys[1]), output->pooled);
    return tree_mapping(arena, "transformers.modeling_outputs.BaseModelOutputWithPooling",
                        vision_keys, leaves, output->pooled ? 2 : 1);
}

static void output_class(Model *m, const char *suffix, const char *const *keys,
                         const Tree *const *trees, uint32_t count) {
    const ClipTraits *traits = traits_of(m);
    const char *type =
        arena_format(&m->b.program->arena, "%s.%s%s", traits->module, traits->prefix, suffix);
    model_output_tree(m, type, keys, trees, count);
}

/* x divided by its length. */
static Value *normalize(Builder *b, Value *x) {
    Value *squares = build_reduce(b, OP_SUM, build_scalar(b, OP_POW_SCALAR, x, 2), -1, true);
    return build_binary(b, OP_DIV, x, build_scalar(b, OP_POW_SCALAR, squares, 0.5));
}

/* A number among the weights: a scalar in CLIP, a vector of one in SigLIP. */
static Value *number(Model *m, const char *name) {
    const int64_t one = 1;
    return model_head_weight(m, traits_of(m)->kind == CLIP ? 0 : 1, &one, name);
}

static void output_similarity(Model *m) {
    static const char *const keys[] = {"logits_per_image",  "logits_per_text",
                                       "text_embeds",       "image_embeds",
                                       "text_model_output", "vision_model_output"};
    Builder *b = &m->b;
    bool projects = traits_of(m)->kind == CLIP;
    int64_t size = projects ? config_size_or(m, "projection_dim", 512) : 0;
    Tower text = build_text(m), vision = build_vision(m, "image_batch");
    config_accept(m, "logit_scale_init_value");
    if (!vision.output.pooled) {
        build_fail(b, FERRY_UNSUPPORTED,
                   "%s: images without \"vision_use_head\" cannot be compared with texts",
                   m->config_path);
        return;
    }
    if (projects) {
        ClipOutput *image = &vision.output, *words = &text.output;
        image->pooled = model_head_linear(m, image->pooled, size, false, "visual_projection");
        words->pooled = model_head_linear(m, words->pooled, size, false, "text_projection");
    }
    Value *image = normalize(b, vision.output.pooled), *words = normalize(b, text.output.pooled);
    Value *logits = build_matmul(b, words, build_transpose(b, image, 0, 1));
    logits = build_mul(b, logits, build_unary(b, OP_EXP, number(m, "logit_scale")));
    if (!projects) logits = build_add(b, logits, number(m, "logit_bias"));
    build_output(b, keys[0], build_transpose(b, logits, 0, 1));
    build_output(b, keys[1], logits);
    build_output(b, keys[2], words);
    build_output(b, keys[3], image);
    const Tree *trees[6] = {NULL};
    trees[4] = output_tower(m, keys[4], &text.output);
    trees[5] = output_tower(m, keys[5], &vision.output);
    if (trees[4] && trees[5]) output_class(m, "Output", keys, trees, 6);
}

/* A tower and the projection of its pooled output. */
static void output_embedding(Model *m, const Tower *tower, const char *weight, const char *key,
                             const char *suffix) {
    const char *const keys[2] = {key, "last_hidden_state"};
    build_output(&m->b, key,
                 model_head_linear(m, tower->output.pooled, tower->projection, false, weight));
    build_output(&m->b, keys[1], tower->output.hidden);
    output_class(m, suffix, keys, (const Tree *const[]){NULL, NULL}, 2);
}

/* The labels from the mean of the patches. */
static void output_labels(Model *m, Value *hidden) {
    bool has_class_token = traits_of(m)->kind == CLIP;
    if (has_class_token) hidden = build_slice_const(&m->b, hidden, 1, 1, INT64_MAX);
    Value *mean = build_reduce(&m->b, OP_MEAN, hidden, 1, false);
    model_output_one(m, "ImageClassifierOutput", "logits",
                     model_head_linear(m, mean, config_labels(m), true, "classifier"));
}

static void output_features(Model *m, const Tower *tower) {
    m->b.program->output_tree = output_tower(m, "", &tower->output);
}

/* ---- families ---- */

/* Does this class have a text tower, and a vision tower? */
static bool has_text(const Model *m) {
    return m->task == TASK_TEXT_FEATURES || m->task == TASK_TEXT_EMBEDDING ||
           (m->task == TASK_FEATURES && strstr(m->family->model_type, "text"));
}

static bool has_both(const Model *m) {
    bool plain = m->task == TASK_FEATURES || m->task == TASK_ZERO_SHOT_IMAGE;
    return plain && !traits_of(m)->alone;
}

static void build_one_tower(Model *m) {
    bool text = has_text(m);
    Tower tower = text ? build_text(m) : build_vision(m, "batch");
    leave_out(m, text ? "vision_config" : "text_config");
    config_accept(m, "logit_scale_init_value");
    switch (m->task) {
    case TASK_TEXT_EMBEDDING:
        output_embedding(m, &tower, "text_projection", "text_embeds", "TextModelOutput");
        break;
    case TASK_IMAGE_EMBEDDING:
        output_embedding(m, &tower, "visual_projection", "image_embeds", "VisionModelOutput");
        break;
    case TASK_IMAGE_CLASSIFICATION: output_labels(m, tower.output.hidden); break;
    default: output_features(m, &tower); break;
    }
}

static void clip_build(Model *m) {
    static const char *const text[] = {"input_ids", "attention_mask", NULL};
    static const char *const image[] = {"pixel_values", NULL};
    static const char *const both[] = {"input_ids", "pixel_values", "attention_mask", NULL};
    model_default_inputs(m, has_both(m) ? both : has_text(m) ? text : image);
    if (has_both(m))
        output_similarity(m);
    else
        build_one_tower(m);
}

enum {
    SIMILARITY = 1 << TASK_FEATURES | 1 << TASK_ZERO_SHOT_IMAGE,
    TOWERS = 1 << TASK_TEXT_FEATURES | 1 << TASK_IMAGE_FEATURES | 1 << TASK_IMAGE_CLASSIFICATION,
    PROJECTIONS = 1 << TASK_TEXT_EMBEDDING | 1 << TASK_IMAGE_EMBEDDING,
    TEXT = 1 << TASK_FEATURES | 1 << TASK_TEXT_FEATURES,
    IMAGE = 1 << TASK_FEATURES | 1 << TASK_IMAGE_FEATURES,
    TEXT_PROJECTION = TEXT | 1 << TASK_TEXT_EMBEDDING,
    IMAGE_PROJECTION = IMAGE | 1 << TASK_IMAGE_EMBEDDING,
};

const Family clip_families[] = {
    {"clip", "CLIP", "clip", clip_build, SIMILARITY | TOWERS | PROJECTIONS, &clip_traits, NULL},
    {"clip_text_model", "CLIP", "text_model", clip_build, TEXT_PROJECTION, &clip_tower_traits,
     NULL},
    {"clip_vision_model", "CLIP", "vision_model", clip_build, IMAGE_PROJECTION, &clip_tower_traits,
     NULL},
    {"siglip", "Siglip", "siglip", clip_build, SIMILARITY | TOWERS, &siglip_traits, NULL},
    {"siglip_text_model", "Siglip", "text_model", clip_build, TEXT, &siglip_tower_traits, NULL},
    {"siglip_vision_model", "Siglip", "vision_model", clip_build, IMAGE, &siglip_tower_traits,
     NULL},
    {0},
};
