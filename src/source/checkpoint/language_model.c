/* The language model of a multimodal model, which is the decoder that text_config describes:
 *
 *   embed_tokens    input_ids to inputs_embeds, among which features of images and audio are put
 *   language_model  inputs_embeds to last_hidden_state and a cache
 *   lm_head         hidden states to logits
 *   decode          tokens and a cache to logits and a cache
 *
 * While it is built, the model is one of the decoder's family: with its traits, its part of the
 * configuration, and its prefix for weights, which differs between releases. */
#include "source/checkpoint/decoder.h"
#include "source/checkpoint/multimodal.h"

#include <string.h>

/* Sizes that a text_config may leave out, as that of an early LLaVA does. */
static const struct {
    const char *model_type;
    int64_t vocabulary, hidden, intermediate, layers, heads;
} sizes[] = {
    {"llama", 32000, 4096, 11008, 32, 32},
    {"mistral", 32000, 4096, 14336, 32, 32},
    {"qwen2", 151936, 4096, 22016, 32, 32},
    {"qwen3", 151936, 4096, 22016, 32, 32},
    {"gemma", 256000, 3072, 24576, 28, 16},
    {"gemma2", 256000, 2304, 9216, 26, 8},
    {"gemma3_text", 262208, 2304, 9216, 26, 8},
    {"qwen2_vl_text", 152064, 8192, 29568, 80, 64},
    {"qwen2_5_vl_text", 152064, 8192, 29568, 80, 64},
    {"qwen3_vl_text", 151936, 4096, 22016, 32, 32},
};

/* ---- configuration ---- */

static json_t *default_sizes(const char *model_type) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(sizes[i].model_type, model_type) != 0) continue;
        return json_pack("{s:I,s:I,s:I,s:I,s:I}", "vocab_size", (json_int_t)sizes[i].vocabulary,
                         "hidden_size", (json_int_t)sizes[i].hidden, "intermediate_size",
                         (json_int_t)sizes[i].intermediate, "num_hidden_layers",
                         (json_int_t)sizes[i].layers, "num_attention_heads",
                         (json_int_t)sizes[i].heads);
    }
    return json_object();
}

/* Go into text_config: with the sizes that it leaves out, and what the whole says of tied embeddings, which
 * counts. Early configurations have no such object: then the keys stand in the whole. */
static void enter_config(Model *m, const char *model_type) {
    json_t *text = config_get(m, "text_config");
    if (!json_is_object(text)) return;
    bool tied = config_bool_or(m, "tie_word_embeddings", false);
    json_t *made = default_sizes(model_type);
    bool failed = !made || json_object_update(made, text) != 0;
    if (!failed && tied)
        failed = json_object_set_new(made, "tie_word_embeddings", json_true()) != 0;
    if (failed) {
        json_decref(made);
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    config_enter_made(m, "text_config", made);
}

/* The family of the decoder, with the prefix that its weights have here. */
static const Family *find_family(Model *m, const char *model_type) {
    static const char *const prefixes[] = {"model.language_model", "language_model.model",
                                           "model.text_model", "text_model", "language_model"};
    const Family *found = decoder_parts;
    while (found->model_type && strcmp(found->model_type, model_type) != 0) found++;
    if (!found->model_type) found = registry_find(m->registry, EXTENSION_FAMILY, model_type);
    if (!found || found->build != decoder_build) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: text_config: \"model_type\": \"%s\" is not supported as the language model "
                   "of %s",
                   m->config_path, model_type, m->family->model_type);
        return NULL;
    }
    Family *family = ARENA_ARRAY(&m->b.program->arena, Family, 1);
    if (!family) return NULL;
    *family = *found;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *norm = arena_format(&m->b.program->arena, "%s.norm.weight", prefixes[i]);
        if (!checkpoint_find(m->checkpoint, norm)) continue;
        family->base_prefix = prefixes[i];
        break;
    }
    return family;
}

/* ---- components ---- */

static void build_embedding_component(Model *m, int64_t hidden) {
    model_default_inputs(m, (const char *const[]){"input_ids", NULL});
    Value *ids, *x = model_embed_inputs(m, decoder_embedding(m, hidden), &ids);
    x = decoder_scale_embedding(m, x, ids, hidden);
    model_output_one(m, "builtins.dict", "inputs_embeds", x);
    m->b.program->architecture = "Embedding";
    config_accept_all(m);
}

static void build_head(Model *m, int64_t hidden) {
    const Sym *shape[3] = {m->batch, m->sequence, build_const(&m->b, hidden)};
    model_default_inputs(m, (const char *const[]){"input", NULL});
    Value *x = model_input(m, "input", m->dtype, 3, shape);
    if (!x) {
        build_fail(&m->b, FERRY_INVALID_ARGUMENT, "expected input among the inputs");
        return;
    }
    Value *weight = model_output_embedding(m, DECODER_OUTPUT, decoder_embedding(m, hidden));
    multimodal_output(m, "Linear", build_linear(&m->b, x, weight, NULL));
    config_accept_all(m);
}

/* How many layers take features of an image. */
static int64_t visual_layers(Model *m) {
    static const int64_t otherwise = 3;
    ModelPart outer = model_enter(m, "vision_config", (const char *const[]){"", NULL});
    json_t *list = config_get(m, "deepstack_visual_indexes");
    int64_t count = json_is_array(list) ? (int64_t)json_array_size(list) : otherwise;
    config_accept_all(m);
    model_leave(m, outer);
    return count;
}

static void build_language_model(Model *m, const Multimodal *family) {
    static const char *const plain[] = {"attention_mask", "position_ids", "inputs_embeds", NULL};
    static const char *const deep[] = {"attention_mask",          "position_ids",
                                       "inputs_embeds",           "visual_pos_masks",
                                       "deepstack_visual_embeds", NULL};
    m->task = TASK_FEATURES;
    m->masks_given = family->both_ways;
    model_default_inputs(m, m->visual_layers ? deep : plain);
    decoder_build(m);
    m->b.program->architecture =
        arena_format(&m->b.program->arena, "%sModel", m->family->class_prefix);
}

static void build_decode(Model *m, const Multimodal *family) {
    m->task = TASK_CAUSAL_LM;
    m->output_class = family->output;
    model_default_inputs(
        m, (const char *const[]){"input_ids", "attention_mask", "position_ids", NULL});
    decoder_build(m);
}

bool language_model_build(Model *m, const Multimodal *family, const char *name) {
    static const char *const names[] = {"embed_tokens", "lm_head", "language_model", "decode"};
    size_t which = 0;
    while (which < 4 && strcmp(names[which], name) != 0) which++;
    if (which == 4) return false;
    const ModelPart whole = {m->config, m->config_path, m->part_prefix};
    const Family *outer = m->family;
    const Task task = m->task;
    json_t *text = config_get(m, "text_config");
    const char *model_type = json_string_value(json_object_get(text, "model_type"));
    if (!model_type) model_type = family->text;
    if (family->deepstack && which == 2) m->visual_layers = visual_layers(m);
    const Family *decoder = find_family(m, model_type);
    if (decoder) {
        enter_config(m, model_type);
        m->family = decoder;
        config_accept(m, "num_image_tokens");
        config_accept(m, "use_bidirectional_attention"); /* masks tell */
        int64_t hidden = config_int(m, "hidden_size");
        if (which == 0) build_embedding_component(m, hidden);
        if (which == 1) build_head(m, hidden);
        if (which == 2) build_language_model(m, family);
        if (which == 3) build_decode(m, family);
    }
    model_leave(m, whole);
    m->family = outer;
    m->task = task;
    return true;
}
