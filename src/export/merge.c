/* Generation with images and audio.
 *
 * The prompt goes through embed_tokens; the rows of tokens that stand for an image or audio are replaced by
 * features, which encoder and projector make; language_model takes the result, and lm_head makes scores of
 * its last row. Its cache goes to decode, which takes the tokens that follow. Where the runtime keeps caches,
 * language_model keeps it and takes those too. */
#include "export/merge.h"
#include "base/dtype.h"
#include "base/error.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

static const MergeRule rules[] = {
    {.model_type = "llava", .features = FEATURES_LAYERS, .tokens = {32000, -1, -1}},
    {.model_type = "gemma3", .tokens = {262144, -1, -1}, .blocks = BLOCKS_IMAGES},
    {.model_type = "paligemma",
     .tokens = {256000, -1, -1},
     .blocks = BLOCKS_PREFIX,
     .first_position = 1,
     .caps_logits = true},
    {.model_type = "idefics3", .tokens = {128257, -1, -1}, .nested = true},
    {.model_type = "smolvlm", .tokens = {128257, -1, -1}, .nested = true},
    {.model_type = "qwen2_vl",
     .features = FEATURES_MERGED,
     .tokens = {151655, 151656, -1},
     .grids = true},
    {.model_type = "qwen2_5_vl",
     .features = FEATURES_MERGED,
     .tokens = {151655, 151656, -1},
     .grids = true,
     .time = TIME_SECONDS},
    {.model_type = "qwen3_vl",
     .features = FEATURES_MERGED,
     .tokens = {151655, 151656, -1},
     .grids = true,
     .time = TIME_TEXT},
    {.model_type = "qwen2_audio", .tokens = {-1, -1, 151646}},
};

int64_t merge_integer(const Merge *merge, const char *part, const char *key, int64_t otherwise) {
    const json_t *object = part ? json_object_get(merge->config, part) : merge->config;
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

int64_t merge_element(const ferry_tensor *tensor, int64_t i) {
    int64_t value;
    size_t size = ferry_dtype_size(tensor->dtype);
    dtype_convert(tensor->dtype, (const unsigned char *)tensor->data + (size_t)i * size, FERRY_I64,
                  &value, 1);
    return value;
}

/* ---- opening ---- */

static ferry_status read_config(Generator *g, Merge *merge) {
    static const char *const keys[MEDIA][2] = {{"image_token_id", "image_token_index"},
                                               {"video_token_id", "video_token_index"},
                                               {"audio_token_id", "audio_token_index"}};
    const char *path = path_join(&merge->arena, g->exported->directory, "config.json");
    TRY(json_read_object(path, &merge->config, g->error));
    const char *type = json_string_value(json_object_get(merge->config, "model_type"));
    for (size_t i = 0; type && i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(type, rules[i].model_type) == 0) merge->rule = &rules[i];
    }
    if (!merge->rule) {
        return error_set(
            g->error, FERRY_UNSUPPORTED, path,
            "model type \"%s\": it is not known how images and audio go into its prompt",
            type ? type : "");
    }
    for (int medium = 0; medium < MEDIA; medium++) {
        int64_t token = merge_integer(merge, NULL, keys[medium][1], merge->rule->tokens[medium]);
        merge->tokens[medium] = merge_integer(merge, NULL, keys[medium][0], token);
    }
    const json_t *text = json_object_get(merge->config, "text_config");
    const json_t *softcap = json_object_get(text, "final_logit_softcapping");
    const char *kind = json_string_value(json_object_get(text, "model_type"));
    if (merge->rule->caps_logits && softcap)
        merge->softcap = json_number_value(softcap);
    else if (merge->rule->caps_logits && kind && strcmp(kind, "gemma2") == 0)
        merge->softcap = 30; /* of the class, where the configuration does not say it */
    return FERRY_OK;
}

static ferry_status missing(const Generator *g, const char *name) {
    return error_set(g->error, FERRY_UNSUPPORTED, g->exported->directory,
                     "the export has no component \"%s\": export the model with --generation",
                     name);
}

ferry_status merge_open(Generator *g) {
    Step *embed = NULL;
    TRY(generator_open_step(g, "embed_tokens", &embed));
    if (!embed) return FERRY_OK;
    Merge *merge = calloc(1, sizeof *merge);
    if (!merge) {
        step_close(embed);
        return error_memory(g->error, "merge", sizeof *merge);
    }
    g->merge = merge;
    merge->embed = embed;
    TRY(read_config(g, merge));
    TRY(generator_open_step(g, "language_model", &merge->model));
    TRY(generator_open_step(g, "lm_head", &merge->head));
    if (!merge->model || !merge->head)
        return missing(g, merge->model ? "lm_head" : "language_model");
    if (step_is_stateful(merge->model)) {
        g->decode = merge->model;
        g->feed.cache_length = step_component(g->decode)->manifest.static_cache;
    } else {
        g->prefill = merge->model;
    }
    return FERRY_OK;
}

void merge_close(Generator *g) {
    Merge *merge = g->merge;
    if (!merge) return;
    step_close(merge->encoder);
    step_close(merge->projector);
    step_close(merge->embed);
    step_close(merge->head);
    if (merge->model != g->prefill && merge->model != g->decode) step_close(merge->model);
    ferry_tensors_free(merge->made);
    ferry_tensors_free(merge->given);
    json_decref(merge->config);
    arena_free(&merge->arena);
    free(merge);
}

/* ---- the prompt ---- */

bool merge_stands_for_media(const Generator *g, int64_t token) {
    for (int medium = 0; medium < MEDIA; medium++) {
        if (token == g->merge->tokens[medium]) return true;
    }
    return false;
}

/* The number of tokens must be that of the features. */
static ferry_status check_count(Generator *g, int medium, int64_t tokens) {
    static const char *const names[MEDIA] = {"images", "videos", "audio"};
    int64_t features = g->merge->features[medium].count;
    if (tokens == features) return FERRY_OK;
    return error_set(g->error, FERRY_INVALID_ARGUMENT, "input_ids",
                     "%lld tokens stand for %s (token %lld), and there are %lld features for them",
                     (long long)tokens, names[medium], (long long)g->merge->tokens[medium],
                     (long long)features);
}

static ferry_status find_sources(Generator *g) {
    Merge *merge = g->merge;
    int64_t counts[MEDIA] = {0};
    merge->sources = ARENA_ARRAY(&merge->arena, Source, (size_t)(g->feed.batch * g->prompt));
    if (!merge->sources) return error_memory(g->error, "tokens", 0);
    for (int64_t row = 0; row < g->feed.batch; row++) {
        for (int64_t slot = 0; slot < g->prompt; slot++) {
            int64_t token = g->tokens[row * g->limit + slot];
            Source *source = &merge->sources[row * g->prompt + slot];
            *source = (Source){.medium = -1};
            if (row % generator_beams(g)) *source = source[-g->prompt];
            if (row % generator_beams(g)) continue;
            for (int medium = 0; medium < MEDIA; medium++) {
                if (token != merge->tokens[medium] || !merge->features[medium].rows) continue;
                *source = (Source){medium, counts[medium]++};
            }
        }
    }
    for (int medium = 0; medium < MEDIA; medium++) TRY(check_count(g, medium, counts[medium]));
    return FERRY_OK;
}

/* Number the blocks that token_type_ids makes of the prompt; later tokens are in none. */
static ferry_status find_blocks(Generator *g) {
    BlockRule rule = g->merge->rule->blocks;
    const ferry_tensor *types = ferry_tensors_find(g->given, "token_type_ids");
    if (rule == BLOCKS_NONE || !types) return FERRY_OK;
    if (ferry_dtype_is_float(types->dtype) || types->rank != 2 ||
        types->shape[0] != g->feed.batch / generator_beams(g) || types->shape[1] != g->prompt) {
        return error_set(g->error, FERRY_INVALID_ARGUMENT, "token_type_ids",
                         "expected integers of the shape of input_ids");
    }
    int64_t *blocks = ARENA_ARRAY(&g->arena, int64_t, (size_t)(g->feed.batch * g->limit));
    if (!blocks) return error_memory(g->error, "blocks", 0);
    for (int64_t row = 0; row < g->feed.batch; row++) {
        int64_t first = row / generator_beams(g) * g->prompt;
        int64_t block = 0;
        for (int64_t slot = 0; slot < g->limit; slot++) {
            bool inside =
                slot < g->prompt && merge_element(types, first + slot) == (rule == BLOCKS_IMAGES);
            bool before = slot > 0 && blocks[row * g->limit + slot - 1] >= 0;
            if (inside && !before && rule == BLOCKS_IMAGES) block++;
            blocks[row * g->limit + slot] = inside ? block : -1;
        }
    }
    g->feed.blocks = blocks;
    g->feed.blocks_slide = rule == BLOCKS_IMAGES;
    return FERRY_OK;
}

ferry_status merge_take(Generator *g) {
    Merge *merge = g->merge;
    merge->made = ferry_tensors_new();
    if (!merge->made) return error_memory(g->error, "features", 0);
    TRY(features_encode(g));
    TRY(find_sources(g));
    TRY(find_blocks(g));
    g->feed.first_position = merge->rule->first_position;
    return merge->rule->grids ? places_compute(g) : FERRY_OK;
}
