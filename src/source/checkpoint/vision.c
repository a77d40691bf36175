/* Embedding images and encoding their patches. */
#include "source/checkpoint/vision.h"

#include <math.h>
#include <string.h>

void config_pair(Model *m, const char *key, int64_t otherwise, int64_t out[2]) {
    json_t *value = config_get(m, key);
    out[0] = out[1] = otherwise;
    if (!json_is_array(value)) {
        out[0] = out[1] = config_size_or(m, key, otherwise);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        json_int_t size = json_integer_value(json_array_get(value, i));
        if (json_array_size(value) == 2 && size > 0 && size <= 1 << 20) {
            out[i] = size;
            continue;
        }
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"%s\" to be a size or a height and a width", m->config_path, key);
        return;
    }
}

Vision vision_config(Model *m, const VisionTraits *traits, const char *scope) {
    Vision vision = {.m = m,
                     .traits = traits,
                     .encoder = prenorm_config(m, traits->layer, &traits->defaults),
                     .channels = config_size_or(m, "num_channels", 3)};
    vision.encoder.scope = scope;
    config_pair(m, "image_size", traits->image_size, vision.image);
    config_pair(m, "patch_size", traits->patch_size, vision.patch);
    for (int i = 0; i < 2; i++) {
        if (vision.patch[i] <= vision.image[i]) continue;
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: \"patch_size\", %lld, is larger than \"image_size\", %lld", m->config_path,
                   (long long)vision.patch[i], (long long)vision.image[i]);
        vision.patch[i] = vision.image[i];
    }
    return vision;
}

Value *vision_pixels(Vision *vision, const char *batch) {
    static const char *const names[2] = {"height", "width"}, *const counts[2] = {"rows", "columns"};
    Model *m = vision->m;
    SymTable *symbols = &m->b.program->symbols;
    const Sym *shape[4] = {sym_symbol(symbols, batch, 1, SYM_UNBOUNDED),
                           build_const(&m->b, vision->channels)};
    for (int i = 0; i < 2; i++) {
        const Sym *patch = build_const(&m->b, vision->patch[i]);
        shape[2 + i] = build_const(&m->b, vision->image[i]);
        if (vision->traits->size == SIZE_ANY)
            shape[2 + i] = sym_symbol(symbols, names[i], vision->patch[i], SYM_UNBOUNDED);
        if (vision->traits->size == SIZE_PATCHES)
            shape[2 + i] =
                sym_mul(symbols, patch, sym_symbol(symbols, counts[i], 1, SYM_UNBOUNDED));
    }
    Value *pixels = model_input(m, "pixel_values", m->dtype, 4, shape);
    if (!pixels) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT, "expected pixel_values among the inputs");
    }
    return pixels;
}

Value *vision_patches(Vision *vision, Value *pixels) {
    Model *m = vision->m;
    Builder *b = &m->b;
    const VisionTraits *traits = vision->traits;
    const int64_t none[2] = {0, 0};
    const int64_t shape[4] = {vision->encoder.hidden, vision->channels, vision->patch[0],
                              vision->patch[1]};
    Value *bias = traits->patch_bias ? model_vector(m, shape[0], "%s.bias", traits->patch) : NULL;
    Value *weight = model_weight(m, 4, shape, "%s.weight", traits->patch);
    Value *x = build_convolution(b, pixels, weight, bias, vision->patch, none);
    return build_permute(b, x, (const int64_t[]){0, 2, 3, 1});
}

/* The weight called `name` as [1, rows, hidden]. */
static Value *table(Vision *vision, int64_t rows, const char *name, bool is_vector) {
    Model *m = vision->m;
    int64_t hidden = vision->encoder.hidden;
    const int64_t shape[3] = {1, rows, hidden};
    if (vision->traits->listed) return model_weight(m, 3, shape, "%s", name);
    Value *rest = model_weight(m, is_vector ? 1 : 2, is_vector ? &hidden : shape + 1, "%s", name);
    if (is_vector) rest = build_unsqueeze(&m->b, rest, 0);
    return build_unsqueeze(&m->b, rest, 0);
}

/* The positions [1, side * side, hidden] of the pretraining images for another grid of patches. */
static Value *interpolate(Vision *vision, Value *positions, int64_t count, const Sym *const *grid) {
    Builder *b = &vision->m->b;
    ferry_dtype dtype = positions->dtype;
    int64_t side = (int64_t)sqrt((double)count);
    if (side * side != count) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "%s: positions of images that are not square cannot be interpolated: "
                          "pixel_values must have the configured size, %lld x %lld",
                          vision->m->config_path, (long long)vision->image[0],
                          (long long)vision->image[1]);
    }
    const Sym *square[4] = {build_const(b, 1), build_const(b, side), build_const(b, side),
                            build_const(b, vision->encoder.hidden)};
    Value *x = build_permute(b, build_view(b, positions, square, 4), (const int64_t[]){0, 3, 1, 2});
    if (vision->traits->float32) x = build_to(b, x, FERRY_F32);
    const Arg args[] = {arg_tensor(x), arg_syms(b, grid, 2), arg_bool(false)};
    x = build_to(b, build_op(b, OP_UPSAMPLE_BICUBIC, args, 3), dtype);
    const Sym *rows[3] = {square[0], build_const(b, -1), square[3]};
    return build_view(b, build_permute(b, x, (const int64_t[]){0, 2, 3, 1}), rows, 3);
}

/* Has the image the size whose positions the table holds? */
static bool has_own_size(const Vision *vision, const Value *pixels, const Sym *const *grid) {
    if (vision->traits->size == SIZE_ANY) {
        return pixels->shape[2] == pixels->shape[3] &&
               sym_is_value(grid[0], vision->image[0] / vision->patch[0]) &&
               sym_is_value(grid[1], vision->image[1] / vision->patch[1]);
    }
    return sym_is_value(pixels->shape[2], vision->image[0]) &&
           sym_is_value(pixels->shape[3], vision->image[1]);
}

Value *vision_embed(Vision *vision, Value *pixels) {
    Model *m = vision->m;
    Builder *b = &m->b;
    const VisionTraits *traits = vision->traits;
    const char *outer = build_scope(b, "%s.embeddings", vision->encoder.scope);
    int64_t count = (vision->image[0] / vision->patch[0]) * (vision->image[1] / vision->patch[1]);
    int64_t first = traits->class_token ? 1 : 0;
    Value *positions = table(vision, first + count, traits->positions, false);
    Value *x = vision_patches(vision, pixels);
    if (!build_ok(b)) return x;
    const Sym *batch = build_dim(b, x, 0);
    const Sym *const grid[2] = {build_dim(b, x, 1), build_dim(b, x, 2)};
    const Sym *const rows[3] = {batch, build_const(b, -1), build_dim(b, x, 3)};
    x = build_view(b, x, rows, 3);
    if (first) {
        const Sym *const size[3] = {batch, build_const(b, 1), rows[2]};
        Value *token = build_expand(b, table(vision, 1, traits->class_token, true), size, 3);
        x = build_cat(b, (Value *const[]){token, x}, 2, 1);
    }
    if (!has_own_size(vision, pixels, grid)) {
        Value *patches = first ? build_slice_const(b, positions, 1, 1, INT64_MAX) : positions;
        patches = interpolate(vision, patches, count, grid);
        Value *token = first ? build_slice_const(b, positions, 1, 0, 1) : NULL;
        positions = first ? build_cat(b, (Value *const[]){token, patches}, 2, 1) : patches;
    }
    x = build_add(b, x, positions);
    if (traits->pre_norm)
        x = model_layer_norm(m, x, true, vision->encoder.eps, "%s", traits->pre_norm);
    b->scope = outer;
    return x;
}

Value *vision_layers(Vision *vision, Value *x) {
    int64_t layers = vision->encoder.layers;
    Arena *arena = &vision->m->b.program->arena;
    vision->states = ARENA_ARRAY(arena, Value *, (size_t)layers + 1);
    if (!vision->states) return build_fail(&vision->m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    for (int64_t i = 0; i < layers && build_ok(&vision->m->b); i++) {
        vision->states[i] = x;
        x = prenorm_layer(&vision->encoder, x, i);
    }
    return vision->states[layers] = x;
}

Value *vision_norm(Vision *vision, Value *x) {
    Model *m = vision->m;
    const char *outer =
        build_scope(&m->b, "%s.%s", vision->encoder.scope, vision->traits->post_norm);
    x = model_layer_norm(m, x, true, vision->encoder.eps, "%s", vision->traits->post_norm);
    m->b.scope = outer;
    return x;
}
