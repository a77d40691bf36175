/* The multimodal families. */
#include "source/checkpoint/multimodal.h"
#include "source/checkpoint/families.h"

#include <string.h>

/* What only other components read; and, where the keys of the language model stand beside the others, those. */
static void accept_others(Model *m) {
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
    if (!config_has(m, "text_config")) config_accept_all(m);
}

void multimodal_build(Model *m) {
    const char *wanted = m->request->component;
    const Multimodal *family = m->family->traits;
    if (!wanted) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "the model type %s is exported in components: use --generation, or --component",
                   m->family->model_type);
        return;
    }
    if (!language_model_build(m, family, wanted)) {
        for (const Component *part = family->encoders; part->name; part++) {
            if (strcmp(part->name, wanted) == 0) part->build(m);
        }
    }
    accept_others(m);
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

#define ONE_CLASS(folder, name)                                                                    \
    "transformers.models." folder ".modeling_" folder "." name "CausalLMOutputWithPast"
#define PROJECTED(encoder, projector)                                                              \
    .encoders = {{"image_encoder", encoder}, {"multi_modal_projector", projector}}
#define CONNECTED                                                                                  \
    .encoders = {{"image_encoder", idefics3_image_encoder}, {"connector", idefics3_connector}}

static const Multimodal llava = {PROJECTED(llava_image_encoder, llava_projector), .text = "llama",
                                 .output = ONE_CLASS("llava", "Llava")};
static const Multimodal gemma3 = {PROJECTED(siglip_image_encoder, gemma3_projector),
                                  .text = "gemma3_text", .output = ONE_CLASS("gemma3", "Gemma3"),
                                  .both_ways = true};
static const Multimodal paligemma = {PROJECTED(siglip_image_encoder, paligemma_projector),
                                     .text = "gemma", .output = ONE_CLASS("paligemma", "PaliGemma"),
                                     .both_ways = true, .caps_logits = true};
static const Multimodal idefics3 = {CONNECTED, .text = "llama",
                                    .output = ONE_CLASS("idefics3", "Idefics3")};
static const Multimodal smolvlm = {CONNECTED, .text = "llama",
                                   .output = ONE_CLASS("smolvlm", "SmolVLM")};
static const Multimodal qwen2_vl = {.encoders = {{"image_encoder", qwen2_image_encoder}},
                                    .text = "qwen2_vl_text",
                                    .output = "MultimodalCausalLMOutputWithPast"};
static const Multimodal qwen2_5_vl = {.encoders = {{"image_encoder", qwen2_5_image_encoder}},
                                      .text = "qwen2_5_vl_text",
                                      .output = "MultimodalCausalLMOutputWithPast"};
static const Multimodal qwen3_vl = {.encoders = {{"image_encoder", qwen3_image_encoder}},
                                    .text = "qwen3_vl_text",
                                    .output = "MultimodalCausalLMOutputWithPast",
                                    .deepstack = true};
static const Multimodal qwen2_audio = {
    .encoders = {{"audio_encoder", qwen2_audio_encoder},
                 {"multi_modal_projector", qwen2_audio_projector}},
    .text = "qwen2",
    .output = ONE_CLASS("qwen2_audio", "Qwen2Audio")};

#define LANGUAGE "embed_tokens", "language_model", "lm_head", "decode", NULL

static const char *const projected[] = {"image_encoder", "multi_modal_projector", LANGUAGE};
static const char *const connected[] = {"image_encoder", "connector", LANGUAGE};
static const char *const merged[] = {"image_encoder", LANGUAGE};
static const char *const heard[] = {"audio_encoder", "multi_modal_projector", LANGUAGE};

enum { IMAGE_TEXT = 1 << TASK_IMAGE_TEXT, AUDIO_TEXT = 1 << TASK_AUDIO_TEXT };

const Family multimodal_families[] = {
    {"llava", "Llava", "model", multimodal_build, IMAGE_TEXT, &llava, projected},
    {"gemma3", "Gemma3", "model", multimodal_build, IMAGE_TEXT, &gemma3, projected},
    {"paligemma", "PaliGemma", "model", multimodal_build, IMAGE_TEXT, &paligemma, projected},
    {"idefics3", "Idefics3", "model", multimodal_build, IMAGE_TEXT, &idefics3, connected},
    {"smolvlm", "SmolVLM", "model", multimodal_build, IMAGE_TEXT, &smolvlm, connected},
    {"qwen2_vl", "Qwen2VL", "model", multimodal_build, IMAGE_TEXT, &qwen2_vl, merged},
    {"qwen2_5_vl", "Qwen2_5_VL", "model", multimodal_build, IMAGE_TEXT, &qwen2_5_vl, merged},
    {"qwen3_vl", "Qwen3VL", "model", multimodal_build, IMAGE_TEXT, &qwen3_vl, merged},
    {"qwen2_audio", "Qwen2Audio", "model", multimodal_build, AUDIO_TEXT, &qwen2_audio, heard},
    {0},
};
