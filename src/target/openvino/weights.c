/* Weights: where each is in the .bin, its Const, and the writing.
 *
 * Half precisions stay as the checkpoint has them, also where the computation is float32: a Const of
 * the stored type and a Convert, which the CPU plugin does inside of its products. The .bin holds the
 * weights in the order of the program, each at a multiple of 64 (of 4096 from a mebibyte on, so that it
 * can be mapped), then the pool of small constants. */
#include "target/openvino/weights.h"
#include "base/error.h"

enum { COMPRESS_MIN_ELEMENTS = 16, INLINE_LIMIT = 1 << 16 };

/* The recipe of what is stored for a weight. */
static const Recipe *stored(Arena *arena, const OpenvinoOptions *options, const Recipe *recipe) {
    ferry_dtype source = recipe->parts[0].dtype;
    if (recipe->dtype != FERRY_F32) return recipe;
    if (source == FERRY_F16 || source == FERRY_BF16) return recipe_cast(arena, recipe, source);
    if (options->compress_to_fp16 && recipe_count(recipe) >= COMPRESS_MIN_ELEMENTS) {
        const Recipe *half = recipe_cast(arena, recipe, FERRY_F16);
        if (half) return half;
    }
    return recipe;
}

static uint64_t align(uint64_t offset, uint64_t size) {
    uint64_t alignment = size >= 1 << 20 ? 4096 : 64;
    return (offset + alignment - 1) / alignment * alignment;
}

uint64_t openvino_bin_size(const Program *program, const OpenvinoOptions *options) {
    Arena scratch = {0};
    uint64_t position = 0;
    for (size_t i = 0; i < program->weights.count; i++) {
        const Recipe *recipe = stored(&scratch, options, program->weights.items[i]->recipe);
        if (!recipe) break;
        uint64_t size = recipe_bytes_size(recipe);
        position = align(position, size) + size;
    }
    arena_free(&scratch);
    return position;
}

/* ---- linking ---- */

ferry_status openvino_linked_file(const Program *program, const MappedFile **file,
                                  ferry_error *error) {
    *file = NULL;
    for (size_t i = 0; i < program->weights.count; i++) {
        const MappedFile *found;
        uint64_t offset;
        const Value *weight = program->weights.items[i];
        if (!recipe_is_verbatim(weight->recipe, &found, &offset)) continue;
        if (*file && found != *file) {
            return error_set(error, FERRY_UNSUPPORTED, found->path,
                             "an OpenVINO model has one weights file, and this checkpoint is in "
                             "several: linking needs all weights in one; use --weights copy");
        }
        *file = found;
    }
    if (*file) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, program->architecture,
                     "no weight is used as it is in a file, so there is nothing to link to; use "
                     "--weights copy");
}

/* Where the linked file has the tensor; what it has not is computed, when that is small. */
static IrPort linked_tensor(Ir *ir, const char *name, const Recipe *recipe) {
    const MappedFile *file;
    uint64_t offset, size = recipe_bytes_size(recipe);
    if (recipe_is_verbatim(recipe, &file, &offset)) {
        return ir_const(ir, recipe->dtype, recipe->rank, recipe->shape, offset, size);
    }
    if (size > INLINE_LIMIT) {
        ir_fail(ir, FERRY_UNSUPPORTED,
                "%s is not in the checkpoint as the model uses it and has more than %d bytes; use "
                "--weights copy",
                name, INLINE_LIMIT);
        return (IrPort){0};
    }
    void *bytes = arena_alloc(&ir->arena, size);
    if (!bytes) return (IrPort){0};
    recipe_read(recipe, 0, recipe_count(recipe), bytes);
    return ir_constant(ir, recipe->dtype, recipe->rank, recipe->shape, bytes, size);
}

/* ---- layers ---- */

static IrPort stored_tensor(Ir *ir, const Value *weight, const Recipe *recipe, uint64_t offset) {
    IrPort port =
        ir_const(ir, recipe->dtype, recipe->rank, recipe->shape, offset, recipe_bytes_size(recipe));
    return recipe->dtype == weight->dtype ? port : ir_decompress(ir, port, weight->dtype);
}

IrPort ir_weight(Ir *ir, const Value *weight) {
    ir->label = weight->name;
    ir->weight_count++;
    IrPort port = ir->options->link
                      ? linked_tensor(ir, weight->name, weight->recipe)
                      : stored_tensor(ir, weight, ir->stored[weight->id], ir->offsets[weight->id]);
    ir->label = NULL;
    return port;
}

/* [groups, in, out] -> [groups, out, in] */
static const Recipe *turn(Arena *arena, const Recipe *recipe) {
    return recipe_permute(arena, recipe, (const int64_t[]){0, 2, 1});
}

/* One of the matrices, without the dimension of the groups. */
static const Recipe *group_of(Arena *arena, const Recipe *recipe, int64_t group) {
    const Recipe *part = recipe_slice(arena, recipe, 0, group, group + 1);
    return part ? recipe_select(arena, part, 0, 0) : NULL;
}

IrPort ir_group_weight(Ir *ir, const Value *weight, int64_t group) {
    Arena *arena = &ir->arena;
    const Recipe *part = group_of(arena, ir->stored[weight->id], group);
    if (!part) return (IrPort){0};
    if (group == 0) ir->weight_count++;
    ir->label = arena_format(arena, "%s.%lld", weight->name, (long long)group);
    uint64_t place = (uint64_t)group * recipe_bytes_size(part);
    IrPort port = ir->options->link
                      ? linked_tensor(ir, ir->label, part)
                      : stored_tensor(ir, weight, part, ir->offsets[weight->id] + place);
    ir->label = NULL;
    return port;
}

/* ---- the file ---- */

/* Find the weights that nothing but grouped products read: OpenVINO takes their matrices as linear
 * layers have them, [out, in], from where they are in the file. */
static bool find_turned(Ir *ir) {
    Program *program = ir->program;
    uint32_t *uses = program_uses(program, &ir->arena);
    uint32_t *grouped = ARENA_ARRAY(&ir->arena, uint32_t, program->value_count);
    ir->turned = ARENA_ARRAY(&ir->arena, bool, program->value_count);
    if (!uses || !grouped || !ir->turned) return false;
    for (const Node *node = program->first; node; node = node->next) {
        if (node->op != OP_GROUPED_MM) continue;
        const Value *weight = node->args[1].tensor;
        grouped[weight->id]++;
        ir->turned[weight->id] = weight->recipe && grouped[weight->id] == uses[weight->id];
    }
    return true;
}

bool weights_place(Ir *ir) {
    const Program *program = ir->program;
    if (!find_turned(ir)) return false;
    ir->offsets = ARENA_ARRAY(&ir->arena, uint64_t, program->value_count);
    ir->stored = ARENA_ARRAY(&ir->arena, const Recipe *, program->value_count);
    if (!ir->offsets || !ir->stored) return false;
    for (size_t i = 0; i < program->weights.count; i++) {
        const Value *weight = program->weights.items[i];
        const Recipe *recipe = weight->recipe;
        if (!ir->options->link) recipe = stored(&ir->arena, ir->options, recipe);
        if (recipe && ir->turned[weight->id]) recipe = turn(&ir->arena, recipe);
        if (!recipe) return false;
        uint64_t size = recipe_bytes_size(recipe);
        ir->stored[weight->id] = recipe;
        ir->offsets[weight->id] = align(ir->pool_offset, size);
        ir->pool_offset = ir->offsets[weight->id] + size;
    }
    ir->pool_offset = align(ir->pool_offset, 0);
    return true;
}

ferry_status weights_write(Ir *ir, OutputFile *bin) {
    const Program *program = ir->program;
    const OpenvinoOptions *options = ir->options;
    size_t count = program->weights.count;
    StreamItem *items = ARENA_ARRAY(&ir->arena, StreamItem, count);
    if (!items) return ir_fail(ir, FERRY_OUT_OF_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const Value *weight = program->weights.items[i];
        items[i] = (StreamItem){ir->stored[weight->id], ir->offsets[weight->id]};
    }
    ir->status = stream_write(items, count, options->pool, bin, options->progress,
                              options->progress_context, ir->error);
    if (ir->status == FERRY_OK) {
        ir->status = output_write(bin, ir->pool_offset, ir->pool.bytes, ir->pool.length, ir->error);
    }
    return ir->status;
}
