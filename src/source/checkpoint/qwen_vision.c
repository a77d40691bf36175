/* The vision encoders of Qwen2-VL, Qwen2.5-VL and Qwen3-VL.
 *
 * Patches of all images, and of all frames of videos, come as rows of one matrix, with the grid (frames,
 * rows, columns) of each image. Which image, frame and place a row has is computed from the grids in
 * the program, so that images of different sizes go together; attention stays within a frame, or
 * within a window of one. Patches come in squares of merge x merge, which the merger makes one of. */
#include "source/checkpoint/multimodal.h"
#include "source/checkpoint/qwen_vision.h"

#include <math.h>
#include <string.h>

static const QwenTraits qwen2_traits = {
    .architecture = "Qwen2VisionTransformerPretrainedModel",
    .hidden_key = "embed_dim",
    .hidden = 1280,
    .depth = 32,
    .patch = 14,
    .out_key = "hidden_size",
    .activation = "quick_gelu",
    .up = "mlp.fc1",
    .down = "mlp.fc2",
    .merger = {"ln_q", "mlp.0", "mlp.2"},
};

static const QwenTraits qwen2_5_traits = {
    .architecture = "Qwen2_5_VisionTransformerPretrainedModel",
    .hidden_key = "hidden_size",
    .hidden = 3584,
    .depth = 32,
    .patch = 14,
    .intermediate = 3420,
    .out_key = "out_hidden_size",
    .activation = "silu",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .merger = {"ln_q", "mlp.0", "mlp.2"},
    .rms = true,
    .windows = true,
};

static const QwenTraits qwen3_traits = {
    .architecture = "Qwen3VLVisionModel",
    .hidden_key = "hidden_size",
    .hidden = 1152,
    .depth = 27,
    .patch = 16,
    .intermediate = 4304,
    .out_key = "out_hidden_size",
    .activation = "gelu_pytorch_tanh",
    .up = "mlp.linear_fc1",
    .down = "mlp.linear_fc2",
    .merger = {"norm", "linear_fc1", "linear_fc2"},
    .patch_bias = true,
    .positions = true,
};

/* ---- configuration ---- */

static void reject_other_rope(Model *m, double *theta) {
    json_t *rope = config_get(m, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    json_t *base = json_object_get(rope, "rope_theta");
    *theta = json_is_number(base) ? json_number_value(base) : 10000;
    if (type && strcmp(type, "axial") != 0 && strcmp(type, "default") != 0) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: \"rope_parameters\": expected the type axial, found \"%s\"", m->config_path,
                   type);
    }
}

/* The widths of a patch and of a cell must be sizes too. */
static void check_sizes(Qwen *q) {
    double patch = (double)q->channels * (double)q->frames * (double)q->patch * (double)q->patch;
    double cell = (double)q->hidden * (double)q->merge * (double)q->merge;
    if (patch <= 0x1p30 && cell <= 0x1p30) return;
    build_fail(&q->m->b, FERRY_BAD_FORMAT,
               "%s: patches of \"patch_size\" and \"temporal_patch_size\", or cells of "
               "\"spatial_merge_size\", are too large",
               q->m->config_path);
    q->patch = q->merge = q->frames = q->channels = 1;
}

static Qwen read_config(Model *m, const QwenTraits *traits) {
    static const char *const unused[] = {"in_chans", "spatial_patch_size", "tokens_per_second"};
    Qwen q = {
        .m = m,
        .traits = traits,
        .hidden = config_size_or(m, traits->hidden_key, traits->hidden),
        .layers = config_size_or(m, "depth", traits->depth),
        .heads = config_size_or(m, "num_heads", 16),
        .out = config_size_or(m, traits->out_key, 3584),
        .patch = config_size_or(m, "patch_size", traits->patch),
        .frames = config_size_or(m, "temporal_patch_size", 2),
        .channels = config_size_or(m, "in_channels", 3),
        .merge = config_size_or(m, "spatial_merge_size", 2),
        .activation = config_string_or(m, "hidden_act", traits->activation),
    };
    q.intermediate = traits->intermediate
                         ? config_size_or(m, "intermediate_size", traits->intermediate)
                         : config_scaled(m, q.hidden, "mlp_ratio", 4);
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) config_accept(m, unused[i]);
    reject_other_rope(m, &q.theta);
    check_sizes(&q);
    if (q.hidden % (4 * q.heads) != 0) {
        build_fail(&m->b, FERRY_BAD_FORMAT,
                   "%s: expected \"%s\" to be a multiple of 4 \"num_heads\", %lld", m->config_path,
                   traits->hidden_key, (long long)(4 * q.heads));
    }
    return q;
}

/* Is `layer` in the list of layers that is called `key`? At which place? -1: it is not. */
static int64_t listed_at(Model *m, const char *key, const int64_t *otherwise, size_t count,
                         int64_t layer) {
    json_t *list = config_get(m, key);
    if (list) count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        if ((list ? json_integer_value(json_array_get(list, i)) : otherwise[i]) == layer)
            return (int64_t)i;
    }
    return -1;
}

/* ---- blocks ---- */

static Value *norm(const Qwen *q, Value *x, const char *name) {
    Model *m = q->m;
    if (!q->traits->rms) return model_layer_norm(m, x, true, 1e-6, "%s", name);
    int64_t size = build_dim(&m->b, x, -1)->value;
    return build_rms_norm(&m->b, x, model_vector(m, size, "%s.weight", name), 1e-6);
}

/* Rotated in float32, whatever the dtype of the computation. */
static Value *rotate(const Qwen *q, Value *x, const QwenGrid *grid) {
    Builder *b = &q->m->b;
    Value *turned = build_rotary(b, build_to(b, x, FERRY_F32), grid->cos, grid->sin, false);
    return build_to(b, turned, q->m->dtype);
}

static Value *attend(const Qwen *q, Value *x, const QwenGrid *grid, Value *mask,
                     const char *block) {
    Model *m = q->m;
    const int64_t sizes[3] = {q->hidden, q->hidden, q->hidden};
    int64_t size = q->hidden / q->heads;
    Value *parts[3];
    build_split(&m->b, model_linear(m, x, 3 * q->hidden, true, "%s.attn.qkv", block), sizes, 3, -1,
                parts);
    for (int i = 0; i < 3; i++) parts[i] = model_split_heads(m, parts[i], q->heads, size);
    Value *query = rotate(q, parts[0], grid), *key = rotate(q, parts[1], grid);
    Value *seen = build_attention(&m->b, query, key, parts[2], mask, false, 1 / sqrt((double)size));
    return model_linear(m, model_merge_heads(m, seen), q->hidden, true, "%s.attn.proj", block);
}

static Value *feed_forward(const Qwen *q, Value *x, const char *block) {
    Model *m = q->m;
    const QwenTraits *t = q->traits;
    Value *wide = model_linear(m, x, q->intermediate, true, "%s.%s", block, t->up);
    if (t->gate) {
        Value *gate = model_linear(m, x, q->intermediate, true, "%s.%s", block, t->gate);
        wide = build_mul(&m->b, model_activation(m, gate, q->activation), wide);
    } else {
        wide = model_activation(m, wide, q->activation);
    }
    return model_linear(m, wide, q->hidden, true, "%s.%s", block, t->down);
}

static Value *build_block(const Qwen *q, Value *x, const QwenGrid *grid, Value *mask, int64_t i) {
    Model *m = q->m;
    const char *block = arena_format(&m->b.program->arena, "blocks.%lld", (long long)i);
    const char *outer = build_scope(&m->b, "visual.%s", block);
    const char *first = arena_format(&m->b.program->arena, "%s.norm1", block);
    const char *second = arena_format(&m->b.program->arena, "%s.norm2", block);
    x = build_add(&m->b, x, attend(q, norm(q, x, first), grid, mask, block));
    x = build_add(&m->b, x, feed_forward(q, norm(q, x, second), block));
    m->b.scope = outer;
    return x;
}

/* [1, patches, hidden] -> [cells, out]; the norm is over patches, or over whole cells when `cells`. */
static Value *merge(const Qwen *q, Value *x, const char *name, bool cells) {
    Model *m = q->m;
    Builder *b = &m->b;
    Arena *arena = &b->program->arena;
    int64_t width = q->hidden * q->merge * q->merge;
    const char *outer = build_scope(b, "visual.%s", name);
    const char *first = arena_format(arena, "%s.%s", name, q->traits->merger.norm);
    const Sym *shape[2] = {build_const(b, -1), build_const(b, width)};
    if (cells) x = build_view(b, x, shape, 2);
    x = norm(q, x, first);
    if (!cells) x = build_view(b, x, shape, 2);
    x = model_linear(m, x, width, true, "%s.%s", name, q->traits->merger.up);
    x = model_linear(m, build_gelu(b, x, false), q->out, true, "%s.%s", name,
                     q->traits->merger.down);
    b->scope = outer;
    return x;
}

/* ---- the encoder ---- */

/* Patches are the size of the convolution's kernel, which is a matrix then. */
static Value *embed(const Qwen *q, Value *patches) {
    Model *m = q->m;
    Builder *b = &m->b;
    const char *outer = build_scope(b, "visual.patch_embed");
    const int64_t kernel[5] = {q->hidden, q->channels, q->frames, q->patch, q->patch};
    const Sym *flat[2] = {build_const(b, q->hidden), build_const(b, -1)};
    Value *weight = build_view(b, model_weight(m, 5, kernel, "patch_embed.proj.weight"), flat, 2);
    Value *bias =
        q->traits->patch_bias ? model_vector(m, q->hidden, "patch_embed.proj.bias") : NULL;
    Value *x = build_unsqueeze(b, build_linear(b, patches, weight, bias), 0);
    b->scope = outer;
    return x;
}

typedef struct Features {
    Value *items[64]; /* of Qwen3: what the language model adds in its first layers */
    uint32_t count;
} Features;

static Value *build_blocks(const Qwen *q, Value *x, const QwenGrid *grid, Features *features) {
    static const int64_t full[] = {7, 15, 23, 31}, deep[] = {8, 16, 24};
    Model *m = q->m;
    for (int64_t i = 0; i < q->layers && build_ok(&m->b); i++) {
        bool whole = !q->traits->windows || listed_at(m, "fullatt_block_indexes", full, 4, i) >= 0;
        x = build_block(q, x, grid, whole ? grid->frame_mask : grid->window_mask, i);
        int64_t place =
            q->traits->positions ? listed_at(m, "deepstack_visual_indexes", deep, 3, i) : -1;
        if (place < 0 || features->count == 64) continue;
        const char *name =
            arena_format(&m->b.program->arena, "deepstack_merger_list.%lld", (long long)place);
        features->items[features->count++] = merge(q, x, name, true);
    }
    return x;
}

static void output(const Qwen *q, Value *hidden, Value *pooled, const Features *features) {
    static const char *const keys[3] = {"last_hidden_state", "pooler_output", "deepstack_features"};
    Model *m = q->m;
    Arena *arena = &m->b.program->arena;
    const Tree *leaves[64], *list = NULL;
    build_output(&m->b, keys[0], hidden);
    build_output(&m->b, keys[1], pooled);
    for (uint32_t i = 0; i < features->count; i++) {
        leaves[i] = tree_leaf(arena);
        build_output(&m->b, arena_format(arena, "%s.%u", keys[2], i), features->items[i]);
    }
    if (q->traits->positions)
        list = tree_node(arena, "builtins.list", "null", leaves, features->count);
    model_output_tree(m,
                      list ? "transformers.models.qwen3_vl.modeling_qwen3_vl."
                             "BaseModelOutputWithDeepstackFeatures"
                           : "BaseModelOutputWithPooling",
                      keys, (const Tree *const[]){NULL, NULL, list}, list ? 3 : 2);
    m->b.program->architecture = q->traits->architecture;
}

static void image_encoder(Model *m, const QwenTraits *traits) {
    Builder *b = &m->b;
    SymTable *symbols = &b->program->symbols;
    model_default_inputs(m, (const char *const[]){"hidden_states", "grid_thw", NULL});
    ModelPart outer = model_enter(m, "vision_config", (const char *const[]){"visual", NULL});
    Qwen q = read_config(m, traits);
    const Sym *rows[2] = {sym_symbol(symbols, "patches", q.merge * q.merge, SYM_UNBOUNDED),
                          build_const(b, q.channels * q.frames * q.patch * q.patch)};
    const Sym *grids[2] = {sym_symbol(symbols, "images", 1, SYM_UNBOUNDED), build_const(b, 3)};
    Value *patches = model_input(m, "hidden_states", m->dtype, 2, rows);
    Value *given = model_input(m, "grid_thw", FERRY_I64, 2, grids);
    if (!patches || !given) {
        build_fail(b, FERRY_INVALID_ARGUMENT,
                   "expected hidden_states and grid_thw among the inputs");
        return;
    }
    Value *x = embed(&q, patches);
    const char *scope = build_scope(b, "visual");
    QwenGrid grid = qwen_grid(&q, build_dim(b, patches, 0), build_to(b, given, FERRY_I64));
    if (traits->positions) x = build_add(b, x, qwen_positions(&q, &grid));
    b->scope = scope;
    Features features = {.count = 0};
    x = build_blocks(&q, x, &grid, &features);
    Value *pooled = merge(&q, x, "merger", false);
    x = build_squeeze(b, x, 0);
    if (traits->windows) x = qwen_window_order(&q, x, &grid);
    model_leave(m, outer);
    output(&q, x, pooled, &features);
}

void qwen2_image_encoder(Model *m) {
    image_encoder(m, &qwen2_traits);
}

void qwen2_5_image_encoder(Model *m) {
    image_encoder(m, &qwen2_5_traits);
}

void qwen3_image_encoder(Model *m) {
    image_encoder(m, &qwen3_traits);
}
