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

/* Where the linked file has the weight; what it has not is computed, when that is small. */
static IrPort linked_weight(Ir *ir, const Value *weight) {
    const Recipe *recipe = weight->recipe;
    const MappedFile *file;
    uint64_t offset, size = recipe_bytes_size(recipe);
    if (recipe_is_verbatim(recipe, &file, &offset)) {
        return ir_const(ir, recipe->dtype, recipe->rank, recipe->shape, offset, size);
    }
    if (size > INLINE_LIMIT) {
        ir_fail(ir, FERRY_UNSUPPORTED,
                "%s is not in the checkpoint as the model uses it and has more than %d bytes; use "
                "--weights copy",
                weight->name, INLINE_LIMIT);
        return (IrPort){0};
    }
    void *bytes = arena_alloc(&ir->arena, size);
    if (!bytes) return (IrPort){0};
    recipe_read(recipe, 0, recipe_count(recipe), bytes);
    return ir_constant(ir, recipe->dtype, recipe->rank, recipe->shape, bytes, size);
}

/* ---- layers ---- */

IrPort ir_weight(Ir *ir, const Value *weight) {
    ir->label = weight->name;
    ir->weight_count++;
    IrPort port;
    if (ir->options->link) {
        port = linked_weight(ir, weight);
    } else {
        const Recipe *recipe = ir->stored[weight->id];
        port = ir_const(ir, recipe->dtype, recipe->rank, recipe->shape, ir->offsets[weight->id],
                        recipe_bytes_size(recipe));
        if (recipe->dtype != weight->dtype) port = ir_decompress(ir, port, weight->dtype);
    }
    ir->label = NULL;
    return port;
}

/* ---- the file ---- */

bool weights_place(Ir *ir) {
    const Program *program = ir->program;
    ir->offsets = ARENA_ARRAY(&ir->arena, uint64_t, program->value_count);
    ir->stored = ARENA_ARRAY(&ir->arena, const Recipe *, program->value_count);
    if (!ir->offsets || !ir->stored) return false;
    for (size_t i = 0; i < program->weights.count; i++) {
        const Value *weight = program->weights.items[i];
        const Recipe *recipe = stored(&ir->arena, ir->options, weight->recipe);
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
