/* The multimodal families. */
#include "source/checkpoint/multimodal.h"
#include "source/checkpoint/families.h"

#include <string.h>

void multimodal_build(Model *m) {
    const char *wanted = m->request->component;
    if (!wanted) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "the model type %s is exported in components: use --generation, or --component",
                   m->family->model_type);
        return;
    }
    for (const Component *part = m->family->traits; part->name; part++) {
        if (strcmp(part->name, wanted) == 0) part->build(m);
    }
    /* what only other components read */
    static const char *const keys[] = {
        "text_config",
        "vision_config",
        "audio_config",
        "scale_factor",
        "hidden_size",
        "projection_dim",
        "image_token_index",
        "image_seq_length",
        "audio_token_index",
        "boi_token_index",
        "eoi_token_index",
        "mm_tokens_per_image",
        "num_image_tokens",
        "ignore_index",
        "projector_hidden_act",
        "vision_feature_layer",
        "multimodal_projector_bias",
        "vision_feature_select_strategy",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) config_accept(m, keys[i]);
}

Value *multimodal_features(Model *m, const char *name, const Sym *length, int64_t size) {
    const Sym *images = sym_symbol(&m->b.program->symbols, "images", 1, SYM_UNBOUNDED);
    model_default_inputs(m, (const char *const[]){name, NULL});
    return model_input(m, name, m->dtype, 3,
                       (const Sym *const[]){images, length, build_const(&m->b, size)});
}

void multimodal_output(Model *m, const char *class_name, Value *value) {
    build_output(&m->b, "output", value);
    m->b.program->output_tree = tree_leaf(&m->b.program->arena);
    m->b.program->architecture = class_name;
}

static const Component llava[] = {
    {"image_encoder", llava_image_encoder},
    {"multi_modal_projector", llava_projector},
    {0},
};
static const Component gemma3[] = {
    {"image_encoder", siglip_image_encoder},
    {"multi_modal_projector", gemma3_projector},
    {0},
};
static const Component paligemma[] = {
    {"image_encoder", siglip_image_encoder},
    {"multi_modal_projector", paligemma_projector},
    {0},
};
static const Component idefics3[] = {
    {"image_encoder", idefics3_image_encoder},
    {"connector", idefics3_connector},
    {0},
};
static const Component qwen2_vl[] = {{"image_encoder", qwen2_image_encoder}, {0}};
static const Component qwen2_5_vl[] = {{"image_encoder", qwen2_5_image_encoder}, {0}};
static const Component qwen3_vl[] = {{"image_encoder", qwen3_image_encoder}, {0}};
static const Component qwen2_audio[] = {
    {"audio_encoder", qwen2_audio_encoder},
    {"multi_modal_projector", qwen2_audio_projector},
    {0},
};

static const char *const projected[] = {"image_encoder", "multi_modal_projector", NULL};
static const char *const connected[] = {"image_encoder", "connector", NULL};
static const char *const merged[] = {"image_encoder", NULL};
static const char *const heard[] = {"audio_encoder", "multi_modal_projector", NULL};

enum { IMAGE_TEXT = 1 << TASK_IMAGE_TEXT, AUDIO_TEXT = 1 << TASK_AUDIO_TEXT };

const Family multimodal_families[] = {
    {"llava", "Llava", "model", multimodal_build, IMAGE_TEXT, llava, projected},
    {"gemma3", "Gemma3", "model", multimodal_build, IMAGE_TEXT, gemma3, projected},
    {"paligemma", "PaliGemma", "model", multimodal_build, IMAGE_TEXT, paligemma, projected},
    {"idefics3", "Idefics3", "model", multimodal_build, IMAGE_TEXT, idefics3, connected},
    {"smolvlm", "SmolVLM", "model", multimodal_build, IMAGE_TEXT, idefics3, connected},
    {"qwen2_vl", "Qwen2VL", "model", multimodal_build, IMAGE_TEXT, qwen2_vl, merged},
    {"qwen2_5_vl", "Qwen2_5_VL", "model", multimodal_build, IMAGE_TEXT, qwen2_5_vl, merged},
    {"qwen3_vl", "Qwen3VL", "model", multimodal_build, IMAGE_TEXT, qwen3_vl, merged},
    {"qwen2_audio", "Qwen2Audio", "model", multimodal_build, AUDIO_TEXT, qwen2_audio, heard},
    {0},
};
