/* From images and audio to features: what is given goes through the encoder, and what that makes of it
 * through the projector, if there is one. */
#include "base/dtype.h"
#include "base/error.h"
#include "export/merge.h"
#include "format/json.h"
#include "format/tensors.h"

#include <stdio.h>
#include <string.h>

/* A medium, and what its inputs are called. */
typedef struct Medium {
    const char *values, *grids, *mask;
} Medium;

static const Medium media[MEDIA] = {
    [IMAGES] = {"pixel_values", "image_grid_thw", "pixel_attention_mask"},
    [VIDEOS] = {"pixel_values_videos", "video_grid_thw", NULL},
    [AUDIO] = {"input_features", NULL, "feature_attention_mask"},
};

/* What the encoder is given of one medium. */
typedef struct Encoding {
    Generator *g;
    const Medium *medium;
    int64_t count;          /* of images or pieces of audio */
    const int64_t *lengths; /* of pieces of audio, in features that count; NULL: they all do */
    ferry_tensors *inputs;  /* of the encoder */
    ferry_tensors *outputs;
} Encoding;

static ferry_status invalid(const Encoding *e, const char *name, const char *expected) {
    return error_set(e->g->error, FERRY_INVALID_ARGUMENT, name, "expected %s", expected);
}

/* ---- what goes into the encoder ---- */

/* A tensor for the input `keyword` of a component, in the dtype that it has there, from `from`. */
static ferry_status add_as(Encoding *e, const Step *step, const char *keyword,
                           const ferry_tensor *from, size_t rank, const int64_t *shape,
                           ferry_tensor **out) {
    const StepPort *port = step_find(step, keyword);
    ferry_dtype dtype = port && ferry_dtype_is_float(from->dtype) ? port->port->dtype : from->dtype;
    return ferry_tensors_add(e->inputs, keyword, dtype, rank, shape, out, e->g->error);
}

/* The values as they are, but for their dtype. */
static ferry_status add_values(Encoding *e, const char *keyword) {
    const ferry_tensor *values = ferry_tensors_find(e->g->given, e->medium->values);
    ferry_tensor *out;
    TRY(add_as(e, e->g->merge->encoder, keyword, values, values->rank, values->shape, &out));
    dtype_convert(values->dtype, values->data, out->dtype, out->data, ferry_tensor_count(values));
    e->count = values->rank ? values->shape[0] : 0;
    return FERRY_OK;
}

/* The grids of the images, which must have as many patches as there are. */
static ferry_status add_grids(Encoding *e, const char *keyword) {
    const ferry_tensor *grids = ferry_tensors_find(e->g->given, e->medium->grids);
    if (!grids || grids->dtype != FERRY_I64 || grids->rank != 2 || grids->shape[1] != 3)
        return invalid(e, e->medium->grids,
                       "int64 [images, 3]: frames, rows and columns of patches");
    int64_t patches = 0;
    for (int64_t i = 0; i < grids->shape[0]; i++) {
        const int64_t *grid = (const int64_t *)grids->data + 3 * i;
        patches += grid[0] * grid[1] * grid[2];
    }
    if (patches != e->count) {
        return error_set(e->g->error, FERRY_INVALID_ARGUMENT, e->medium->grids,
                         "the images have %lld patches, and %s has %lld", (long long)patches,
                         e->medium->values, (long long)e->count);
    }
    return tensors_lend(e->inputs, keyword, grids, e->g->error);
}

/* Is there anything but zeros? */
static bool is_image(const ferry_tensor *values, int64_t i, size_t size) {
    size_t width = ferry_dtype_size(values->dtype);
    for (size_t at = (size_t)i * size; at < (size_t)(i + 1) * size; at++) {
        float value;
        dtype_convert(values->dtype, (const unsigned char *)values->data + at * width, FERRY_F32,
                      &value, 1);
        if (value != 0) return true;
    }
    return false;
}

/* Which patches of the images that are there have pixels that are no padding: [images, rows, columns]. */
static ferry_status add_patch_mask(Encoding *e, const int64_t *images, const ferry_tensor *values) {
    const ferry_tensor *mask = ferry_tensors_find(e->g->given, e->medium->mask);
    int64_t patch = merge_integer(e->g->merge, "vision_config", "patch_size", 32);
    int64_t height = values->shape[3], width = values->shape[4];
    if (patch < 1 || patch > height || patch > width)
        return invalid(e, e->medium->values, "images of at least one patch");
    const int64_t shape[3] = {e->count, height / patch, width / patch};
    if (mask && (mask->rank != 4 || memcmp(mask->shape, values->shape, 2 * sizeof(int64_t)) ||
                 mask->shape[2] != height || mask->shape[3] != width))
        return invalid(e, e->medium->mask, "[batch, images, height, width] as of pixel_values");
    ferry_tensor *out;
    TRY(ferry_tensors_add(e->inputs, "patch_attention_mask", FERRY_BOOL, 3, shape, &out,
                          e->g->error));
    unsigned char *seen = out->data;
    if (!mask) memset(seen, 1, ferry_tensor_count(out));
    for (int64_t at = 0; mask && at < e->count * height * width; at++) {
        int64_t row = at / width % height / patch, column = at % width / patch;
        int64_t from = images[at / (height * width)] * height * width + at % (height * width);
        if (row >= shape[1] || column >= shape[2] || !merge_element(mask, from)) continue;
        seen[(at / (height * width) * shape[1] + row) * shape[2] + column] = 1;
    }
    return FERRY_OK;
}

/* Images [batch, images, channels, height, width], of which those that are all 0 fill up the rows. */
static ferry_status add_nested(Encoding *e) {
    Generator *g = e->g;
    const ferry_tensor *values = ferry_tensors_find(g->given, e->medium->values);
    if (values->rank != 5)
        return invalid(e, e->medium->values, "[batch, images, channels, height, width]");
    int64_t all = values->shape[0] * values->shape[1];
    size_t size = all ? ferry_tensor_count(values) / (size_t)all : 0;
    int64_t *images = ARENA_ARRAY(&g->merge->arena, int64_t, (size_t)all + 1);
    if (!images) return error_memory(g->error, "images", 0);
    for (int64_t i = 0; i < all; i++) {
        if (is_image(values, i, size)) images[e->count++] = i;
    }
    if (e->count == 0) return invalid(e, e->medium->values, "an image that is not empty");
    const int64_t shape[4] = {e->count, values->shape[2], values->shape[3], values->shape[4]};
    ferry_tensor *out;
    TRY(add_as(e, g->merge->encoder, "pixel_values", values, 4, shape, &out));
    for (int64_t i = 0; i < e->count; i++) {
        dtype_convert(values->dtype,
                      (const unsigned char *)values->data +
                          (size_t)images[i] * size * ferry_dtype_size(values->dtype),
                      out->dtype,
                      (unsigned char *)out->data + (size_t)i * size * ferry_dtype_size(out->dtype),
                      size);
    }
    return add_patch_mask(e, images, values);
}

/* Audio, with the mask of the places of the encoder that are no silence at the end, and how many features each
 * piece has. */
static ferry_status add_audio(Encoding *e) {
    Generator *g = e->g;
    const ferry_tensor *mask = ferry_tensors_find(g->given, e->medium->mask);
    TRY(add_values(e, "input_features"));
    const ferry_tensor *values = ferry_tensors_find(e->inputs, "input_features");
    if (values->rank != 3) return invalid(e, e->medium->values, "[pieces, mels, frames]");
    if (mask &&
        (mask->rank != 2 || ferry_dtype_is_float(mask->dtype) || mask->shape[0] != e->count))
        return invalid(e, e->medium->mask, "integers [pieces, frames]");
    int64_t places = (values->shape[2] - 1) / 2 + 1;
    const int64_t shape[4] = {e->count, 1, places, places};
    int64_t *lengths = ARENA_ARRAY(&g->merge->arena, int64_t, (size_t)e->count + 1);
    ferry_tensor *seen;
    if (!lengths) return error_memory(g->error, "audio", 0);
    TRY(ferry_tensors_add(e->inputs, "attention_mask", FERRY_BOOL, 4, shape, &seen, g->error));
    for (int64_t i = 0; i < e->count; i++) {
        int64_t frames = mask ? 0 : values->shape[2];
        for (int64_t f = 0; mask && f < mask->shape[1]; f++)
            frames += merge_element(mask, i * mask->shape[1] + f) != 0;
        int64_t length = frames > 0 ? (frames - 1) / 2 + 1 : 0;
        lengths[i] = length > 1 ? (length - 2) / 2 + 1 : 0;
        for (int64_t at = 0; at < places * places; at++)
            ((unsigned char *)seen->data)[i * places * places + at] = at % places < length;
    }
    e->lengths = lengths;
    return FERRY_OK;
}

static ferry_status make_inputs(Encoding *e) {
    const MergeRule *rule = e->g->merge->rule;
    if (rule->nested) return add_nested(e);
    if (e->medium == &media[AUDIO]) return add_audio(e);
    if (!rule->grids) return add_values(e, "pixel_values");
    TRY(add_values(e, "hidden_states"));
    return add_grids(e, "grid_thw");
}

/* ---- what comes out ---- */

static ferry_status find_output(const Encoding *e, const char *name, const ferry_tensor **out) {
    *out = ferry_tensors_find(e->outputs, name);
    if (*out && (*out)->rank >= 2 && (*out)->rank <= 3) return FERRY_OK;
    return error_set(e->g->error, FERRY_BAD_FORMAT, e->g->exported->directory,
                     "expected the encoder to return \"%s\"", name);
}

/* The hidden states of layer `layer`, counted from the end when it is negative, as the export names them. */
static ferry_status find_layer(const Encoding *e, int64_t layer, const ferry_tensor **out) {
    char name[64];
    int64_t layers = merge_integer(e->g->merge, "vision_config", "num_hidden_layers", 24);
    snprintf(name, sizeof name, "hidden_states.%lld",
             (long long)(layer < 0 ? layer + layers + 1 : layer));
    return find_output(e, name, out);
}

/* The states of the layers that vision_feature_layer names side by side, without the class's token unless
 * the strategy is to keep it. */
static ferry_status select_layers(Encoding *e, const char *keyword, ferry_tensors *into) {
    const json_t *config = e->g->merge->config;
    const json_t *list = json_object_get(config, "vision_feature_layer");
    const char *strategy =
        json_string_value(json_object_get(config, "vision_feature_select_strategy"));
    int64_t first = !strategy || strcmp(strategy, "default") == 0;
    size_t count = json_is_array(list) ? json_array_size(list) : 1;
    ferry_tensor *out = NULL;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_is_array(list) ? json_array_get(list, i) : list;
        const ferry_tensor *states;
        TRY(find_layer(e, entry ? json_integer_value(entry) : -2, &states));
        int64_t rows = states->shape[1] - first;
        size_t size = (size_t)states->shape[2] * ferry_dtype_size(states->dtype);
        if (!out) {
            const int64_t shape[3] = {states->shape[0], rows, states->shape[2] * (int64_t)count};
            TRY(ferry_tensors_add(into, keyword, states->dtype, 3, shape, &out, e->g->error));
        }
        for (int64_t row = 0; row < states->shape[0] * rows; row++) {
            int64_t from = row / rows * states->shape[1] + row % rows + first;
            memcpy((unsigned char *)out->data + ((size_t)row * count + i) * size,
                   (const unsigned char *)states->data + (size_t)from * size, size);
        }
    }
    return FERRY_OK;
}

static ferry_status project(Encoding *e) {
    Merge *merge = e->g->merge;
    const StepPort *port = step_input(merge->projector, 0);
    const ferry_tensor *hidden;
    ferry_tensors *inputs = ferry_tensors_new(), *outputs = NULL;
    ferry_status status = inputs ? FERRY_OK : error_memory(e->g->error, "features", 0);
    if (status == FERRY_OK && merge->rule->features == FEATURES_LAYERS) {
        status = select_layers(e, port->keyword, inputs);
    } else if (status == FERRY_OK) {
        status = find_output(e, "last_hidden_state", &hidden);
        if (status == FERRY_OK) status = tensors_lend(inputs, port->keyword, hidden, e->g->error);
    }
    if (status == FERRY_OK) status = step_run(merge->projector, inputs, &outputs, e->g->error);
    ferry_tensors_free(inputs);
    if (status != FERRY_OK) return status;
    ferry_tensors_free(e->outputs);
    e->outputs = outputs;
    return FERRY_OK;
}

/* `rows` as rows of features, those of audio that are no silence. */
static ferry_status take_rows(Encoding *e, const ferry_tensor *rows, Features *features) {
    Generator *g = e->g;
    int64_t each = rows->rank == 3 ? rows->shape[1] : 1, size = rows->shape[rows->rank - 1];
    size_t bytes = (size_t)size * ferry_dtype_size(rows->dtype);
    int64_t count = 0;
    for (int64_t i = 0; i < rows->shape[0]; i++)
        count += e->lengths && e->lengths[i] < each ? e->lengths[i] : each;
    const int64_t shape[2] = {count, size};
    ferry_tensor *out;
    TRY(ferry_tensors_add(g->merge->made, e->medium->values, rows->dtype, 2, shape, &out,
                          g->error));
    features->rows = out;
    for (int64_t i = 0, to = 0; i < rows->shape[0]; i++) {
        int64_t kept = e->lengths && e->lengths[i] < each ? e->lengths[i] : each;
        memcpy((unsigned char *)out->data + (size_t)to * bytes,
               (const unsigned char *)rows->data + (size_t)(i * each) * bytes,
               (size_t)kept * bytes);
        to += kept;
    }
    features->count = count;
    return FERRY_OK;
}

/* What the encoder makes for layers of the language model besides. */
static ferry_status take_deep(Encoding *e, Features *features) {
    static const char prefix[] = "deepstack_features.";
    Merge *merge = e->g->merge;
    size_t count = ferry_tensors_count(e->outputs);
    features->deep = ARENA_ARRAY(&merge->arena, const ferry_tensor *, count + 1);
    if (!features->deep) return error_memory(e->g->error, "features", 0);
    for (size_t i = 0; i < count; i++) {
        const ferry_tensor *output = ferry_tensors_at(e->outputs, i);
        if (strncmp(output->name, prefix, sizeof prefix - 1) != 0 || output->rank != 2) continue;
        features->deep[features->deep_count++] = output;
    }
    return features->deep_count ? tensors_keep(merge->made, e->outputs, e->g->error) : FERRY_OK;
}

static ferry_status encode(Encoding *e, Features *features) {
    Merge *merge = e->g->merge;
    const ferry_tensor *rows;
    bool merged = merge->rule->features == FEATURES_MERGED;
    TRY(make_inputs(e));
    TRY(step_run(merge->encoder, e->inputs, &e->outputs, e->g->error));
    if (!merged) TRY(project(e));
    TRY(find_output(e, merged ? "pooler_output" : "output", &rows));
    TRY(take_rows(e, rows, features));
    return merged ? take_deep(e, features) : FERRY_OK;
}

/* Open the encoder, and the projector where there must be one. */
static ferry_status open_encoder(Generator *g, int medium) {
    Merge *merge = g->merge;
    const char *name = medium == AUDIO ? "audio_encoder" : "image_encoder";
    if (merge->encoder) return FERRY_OK;
    TRY(generator_open_step(g, name, &merge->encoder));
    TRY(generator_open_step(g, "multi_modal_projector", &merge->projector));
    if (!merge->projector) TRY(generator_open_step(g, "connector", &merge->projector));
    bool projected = merge->rule->features == FEATURES_MERGED || merge->projector;
    if (merge->encoder && projected) return FERRY_OK;
    return error_set(g->error, FERRY_UNSUPPORTED, g->exported->directory,
                     "the export has no component \"%s\" for \"%s\": export the model with "
                     "--generation",
                     merge->encoder ? "multi_modal_projector" : name, media[medium].values);
}

ferry_status features_encode(Generator *g) {
    for (int medium = 0; medium < MEDIA; medium++) {
        if (!ferry_tensors_find(g->given, media[medium].values)) continue;
        if (g->merge->tokens[medium] < 0) {
            return error_set(g->error, FERRY_INVALID_ARGUMENT, media[medium].values,
                             "model type %s does not take this input", g->merge->rule->model_type);
        }
        TRY(open_encoder(g, medium));
        Encoding e = {.g = g, .medium = &media[medium], .inputs = ferry_tensors_new()};
        ferry_status status = e.inputs ? encode(&e, &g->merge->features[medium])
                                       : error_memory(g->error, "images", 0);
        ferry_tensors_free(e.inputs);
        ferry_tensors_free(e.outputs);
        TRY(status);
    }
    return FERRY_OK;
}
