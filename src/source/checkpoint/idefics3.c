/* Idefics3 and SmolVLM: a SigLIP tower for images of any size, whose patches may be padding, and the
 * connector that shuffles squares of patches into the features. */
#include "source/checkpoint/multimodal.h"

#include <math.h>

/* ---- positions ---- */

/* Where the buckets of the coordinates 0 to 1 begin, but for the first: [buckets - 1] in float32, as
 * torch.arange counts them. */
static Value *bucket_starts(Model *m, int64_t buckets) {
    float *starts =
        build_ok(&m->b) ? ARENA_ARRAY(&m->b.program->arena, float, (size_t)buckets) : NULL;
    double step = 1.0 / (double)buckets;
    if (!build_ok(&m->b)) return &m->b.poison;
    if (!starts) return build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    for (int64_t i = 0; i < buckets - 1; i++) starts[i] = (float)(step + (double)i * step);
    return build_constant(&m->b, VALUE_CONSTANT, "position_buckets", FERRY_F32, 1,
                          (const int64_t[]){buckets - 1}, starts);
}

/* The bucket of each row (of the rest of the mask [images, rows, columns] when `dim` is 1) or column (2) of
 * patches, [images, length]: its place among those of the image that are not padding. */
static Value *buckets_along(Model *m, Value *mask, int dim, Value *starts) {
    Builder *b = &m->b;
    Value *edge = build_select(b, mask, 3 - dim, 0);
    Value *count = build_reduce(b, OP_SUM, build_to(b, edge, FERRY_I64), 1, true);
    Value *step = build_unary(b, OP_RECIPROCAL, build_to(b, count, FERRY_F32));
    Value *range = build_arange(b, build_const(b, 0), build_dim(b, mask, dim), FERRY_I64);
    Value *place = build_mul(b, build_unsqueeze(b, build_to(b, range, FERRY_F32), 0), step);
    place = build_clamp(b, place, arg_none(), arg_float(1 - 1e-6));
    Value *begun = build_binary(b, OP_GE, build_unsqueeze(b, place, 2), starts);
    return build_reduce(b, OP_SUM, build_to(b, begun, FERRY_I64), 2, false);
}

/* The positions' embeddings [images, patches, hidden]; padding has that of the first. */
static Value *positions(Vision *vision, Value *mask) {
    Model *m = vision->m;
    Builder *b = &m->b;
    int64_t side = vision->image[0] / vision->patch[0];
    Value *table =
        model_matrix(m, side * side, vision->encoder.hidden, "%s", vision->traits->positions);
    Value *starts = bucket_starts(m, side);
    Value *rows = build_scalar(b, OP_MUL_SCALAR, buckets_along(m, mask, 1, starts), (double)side);
    Value *columns = buckets_along(m, mask, 2, starts);
    Value *place = build_add(b, build_unsqueeze(b, rows, 2), build_unsqueeze(b, columns, 1));
    place = build_mul(b, place, build_to(b, mask, FERRY_I64));
    const Sym *flat[2] = {build_dim(b, mask, 0), build_const(b, -1)};
    return build_embedding(b, table, build_view(b, place, flat, 2));
}

/* ---- the components ---- */

void idefics3_image_encoder(Model *m) {
    Builder *b = &m->b;
    model_default_inputs(m, (const char *const[]){"pixel_values", "patch_attention_mask", NULL});
    ModelPart outer = model_enter(m, "vision_config", (const char *const[]){"vision_model", NULL});
    Vision vision = clip_vision_config(m, NAVIT, "vision_model");
    const char *scope = build_scope(b, "vision_model.embeddings");
    Value *grid = vision_patches(&vision, vision_pixels(&vision, "images"));
    if (!build_ok(b)) return;
    const Sym *shape[3] = {grid->shape[0], grid->shape[1], grid->shape[2]};
    Value *mask = model_input(m, "patch_attention_mask", FERRY_BOOL, 3, shape);
    if (!mask) mask = build_full(b, shape, 3, 1, FERRY_BOOL);
    mask = build_to(b, mask, FERRY_BOOL);
    const Sym *rows[3] = {shape[0], build_const(b, -1), build_const(b, vision.encoder.hidden)};
    Value *x = build_add(b, build_view(b, grid, rows, 3), positions(&vision, mask));
    Value *seen = build_view(b, mask, rows, 2);
    vision.encoder.mask = build_unsqueeze(b, build_unsqueeze(b, seen, 1), 1);
    b->scope = scope;
    x = vision_norm(&vision, vision_layers(&vision, x));
    model_leave(m, outer);
    model_output_one(m, "BaseModelOutputWithPooling", "last_hidden_state", x);
    b->program->architecture =
        arena_format(&b->program->arena, "%sVisionTransformer", m->family->class_prefix);
}

/* [images, side * side, hidden] -> [images, (side / scale)^2, hidden * scale^2] */
static Value *pixel_shuffle(Model *m, Value *x, int64_t side, int64_t scale) {
    Builder *b = &m->b;
    const Sym *images = build_dim(b, x, 0), *hidden = build_dim(b, x, 2);
    const Sym *cell = build_const(b, scale), *cells = build_const(b, side / scale);
    const Sym *split[6] = {images, cells, cell, cells, cell, hidden};
    const Sym *joined[3] = {images, build_const(b, (side / scale) * (side / scale)),
                            build_const(b, -1)};
    x = build_permute(b, build_view(b, x, split, 6), (const int64_t[]){0, 1, 3, 2, 4, 5});
    return build_view(b, x, joined, 3);
}

void idefics3_connector(Model *m) {
    int64_t scale = config_size_or(m, "scale_factor", 2);
    ModelPart outer = model_enter(m, "vision_config", (const char *const[]){"", NULL});
    Vision vision = clip_vision_config(m, NAVIT, "vision_model");
    config_accept_all(m);
    model_leave(m, outer);
    int64_t side = vision.image[0] / vision.patch[0];
    Value *x = multimodal_features(m, "image_hidden_states", build_const(&m->b, side * side),
                                   vision.encoder.hidden);
    if (!build_ok(&m->b)) return;
    if (sym_is_const(x->shape[1])) side = (int64_t)sqrt((double)x->shape[1]->value);
    if (!sym_is_value(x->shape[1], side * side) || side % scale != 0) {
        build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                   "expected image_hidden_states of a square of patches, its side a multiple of "
                   "\"scale_factor\", %lld",
                   (long long)scale);
        return;
    }
    outer = model_enter(m, NULL, (const char *const[]){"connector.modality_projection", NULL});
    x = model_linear(m, pixel_shuffle(m, x, side, scale), model_size(m, 0, "proj.weight"), false,
                     "proj");
    model_leave(m, outer);
    multimodal_output(m, arena_format(&m->b.program->arena, "%sConnector", m->family->class_prefix),
                      x);
}
