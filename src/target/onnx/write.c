/* Writing the model: initializers first (large ones to the data file, streamed), then the graph.
 *
 * ModelProto
 *   ir_version, producer, opset_import, metadata_props
 *   graph: node*, initializer*, input*, output*, value_info*
 * A tensor of more than 256 bytes lives in the data file, at an offset that is a multiple of 64 (of
 * 4096 from a mebibyte on, so that it can be mapped), in the order of the program's weights. */
#include "base/error.h"
#include "format/protobuf.h"
#include "pass/pass.h"
#include "target/onnx/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INLINE_LIMIT = 256 };

/* ---- legalization ---- */

static bool accepts(const void *context, const Node *node) {
    return onnx_accepts(context, node);
}

static void find_lowerings(Onnx *o) {
    for (int op = 0; op < OP_COUNT; op++)
        o->lowerings[op] = onnx_lowering(o->options->registry, (Op)op);
}

ferry_status onnx_legalize(Program *program, const OnnxOptions *options, ferry_error *error) {
    Onnx probe = {.options = options};
    find_lowerings(&probe);
    return pass_legalize(program, options->registry, "onnx", accepts, &probe, error);
}

/* ---- where weights go ---- */

typedef struct Placement {
    uint64_t offset, size;  /* in the data file, or in `file` */
    const MappedFile *file; /* linked */
    const char *shared;     /* the data file of another program, which has the weight already */
} Placement;

static bool is_inline(const Value *weight, const OnnxOptions *options) {
    const MappedFile *file;
    uint64_t offset;
    bool linked = options->link && recipe_is_verbatim(weight->recipe, &file, &offset);
    return !linked && recipe_bytes_size(weight->recipe) <= INLINE_LIMIT;
}

static uint64_t align(uint64_t offset, uint64_t size) {
    uint64_t alignment = size >= 1 << 20 ? 4096 : 64;
    return (offset + alignment - 1) / alignment * alignment;
}

/* The placement of a weight that is not inline; `*position` is the end of the data file so far. */
static Placement place(const Value *weight, const OnnxOptions *options, uint64_t *position) {
    Placement placement = {.size = recipe_bytes_size(weight->recipe)};
    if (options->link && recipe_is_verbatim(weight->recipe, &placement.file, &placement.offset)) {
        return placement;
    }
    const SharedWeight *known = shared_find(options->shared, weight->recipe);
    if (known) {
        placement.shared = known->file;
        placement.offset = known->offset;
        return placement;
    }
    placement.offset = align(*position, placement.size);
    *position = placement.offset + placement.size;
    return placement;
}

uint64_t onnx_data_size(const Program *program, const OnnxOptions *options) {
    uint64_t position = 0;
    for (size_t i = 0; i < program->weights.count; i++) {
        if (!is_inline(program->weights.items[i], options)) {
            place(program->weights.items[i], options, &position);
        }
    }
    return position;
}

/* ---- initializers ---- */

static void append_entry(Buffer *out, uint32_t field, const char *key, const char *value) {
    size_t mark = proto_open(out, field);
    proto_string(out, ENTRY_KEY, key);
    proto_string(out, ENTRY_VALUE, value);
    proto_close(out, mark);
}

/* The path of a linked file from the model; NULL when it is not below the model's folder. */
static const char *linked_path(Onnx *o, const MappedFile *file) {
    if (file != o->linked_file) {
        o->linked_file = file;
        o->linked_path = path_within(&o->arena, o->options->directory, file->path);
    }
    return o->linked_path;
}

static void append_external(Onnx *o, const Placement *placement) {
    char number[32];
    Buffer *out = &o->initializers;
    const char *location = placement->shared ? placement->shared : o->options->data_name;
    if (placement->file) {
        location = linked_path(o, placement->file);
        if (!location) {
            onnx_fail(
                o, FERRY_UNSUPPORTED,
                "%s is not inside %s, or is a symbolic link that leads out of it: ONNX Runtime "
                "reads linked weights only at or below the model's folder; export into the "
                "checkpoint's own directory or a parent of it, or use --weights copy",
                placement->file->path, o->options->directory);
            return;
        }
    }
    append_entry(out, TENSOR_EXTERNAL_DATA, "location", location);
    snprintf(number, sizeof number, "%" PRIu64, placement->offset);
    append_entry(out, TENSOR_EXTERNAL_DATA, "offset", number);
    snprintf(number, sizeof number, "%" PRIu64, placement->size);
    append_entry(out, TENSOR_EXTERNAL_DATA, "length", number);
    proto_int(out, TENSOR_DATA_LOCATION, LOCATION_EXTERNAL);
}

/* `placement` NULL: the data goes inline. */
static void append_initializer(Onnx *o, const Value *weight, const Placement *placement) {
    const Recipe *recipe = weight->recipe;
    Buffer *out = &o->initializers;
    size_t mark = proto_open(out, GRAPH_INITIALIZER);
    for (uint32_t d = 0; d < recipe->rank; d++) proto_int(out, TENSOR_DIMS, recipe->shape[d]);
    proto_int(out, TENSOR_DATA_TYPE, onnx_dtype(recipe->dtype));
    proto_string(out, TENSOR_NAME, onnx_name(o, weight));
    if (placement) {
        append_external(o, placement);
    } else {
        unsigned char bytes[INLINE_LIMIT];
        recipe_read(recipe, 0, recipe_count(recipe), bytes);
        proto_bytes(out, TENSOR_RAW_DATA, bytes, (size_t)recipe_bytes_size(recipe));
    }
    proto_close(out, mark);
    o->initializer_count++;
}

static ferry_status write_initializers(Onnx *o, OutputFile *data, uint64_t *data_bytes) {
    Program *program = o->program;
    StreamItem *items = ARENA_ARRAY(&o->arena, StreamItem, program->weights.count);
    const OnnxOptions *options = o->options;
    size_t count = 0;
    *data_bytes = 0;
    if (!items) return onnx_fail(o, FERRY_OUT_OF_MEMORY, "out of memory");
    for (size_t i = 0; i < program->weights.count; i++) {
        const Value *weight = program->weights.items[i];
        if (is_inline(weight, options)) {
            append_initializer(o, weight, NULL);
            continue;
        }
        Placement placement = place(weight, options, data_bytes);
        append_initializer(o, weight, &placement);
        if (placement.file || placement.shared) continue;
        items[count++] = (StreamItem){weight->recipe, placement.offset};
    }
    for (size_t i = 0; options->shared && i < count; i++) {
        if (!shared_add(options->shared, items[i].recipe, options->data_name, items[i].offset))
            return onnx_fail(o, FERRY_OUT_OF_MEMORY, "out of memory");
    }
    if (o->status != FERRY_OK || *data_bytes == 0) return o->status;
    o->status = stream_write(items, count, options->pool, data, options->progress,
                             options->progress_context, o->error);
    return o->status;
}

/* ---- the graph ---- */

/* Give the values that become inputs and outputs their names. An output that is an input, a weight,
 * or another output too is copied by an Identity; `copied[i]` says so. */
static bool name_ports(Onnx *o, bool *copied) {
    Program *program = o->program;
    o->names = ARENA_ARRAY(&o->arena, const char *, program->value_count);
    if (!o->names) return false;
    for (size_t i = 0; i < program->inputs.count; i++) {
        o->names[program->inputs.items[i].value->id] = signature_input(program, i);
    }
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Value *value = program->outputs.items[i].value;
        copied[i] = value->kind != VALUE_NODE || o->names[value->id];
        if (!copied[i]) o->names[value->id] = signature_output(program, i);
    }
    return true;
}

static void lower_nodes(Onnx *o, const bool *copied) {
    Program *program = o->program;
    for (const Node *node = program->first; node && o->status == FERRY_OK; node = node->next) {
        onnx_lower(o, node);
        for (uint32_t i = 0; i < node->output_count; i++) {
            const Value *value = node->outputs[i];
            if (o->names[value->id]) continue; /* an output: declared as such */
            onnx_value_info(&o->value_info, GRAPH_VALUE_INFO, value->name, value->dtype,
                            value->rank, value->shape);
        }
    }
    o->node = NULL;
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (!copied[i]) continue;
        const char *from = onnx_name(o, program->outputs.items[i].value);
        const char *to = signature_output(program, i);
        onnx_node(o, "Identity", &from, 1, &to, 1, NULL, 0);
    }
}

static void append_ports(Buffer *graph, uint32_t field, Program *program, const Port *ports,
                         size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *name =
            field == GRAPH_INPUT ? signature_input(program, i) : signature_output(program, i);
        const Value *value = ports[i].value;
        onnx_value_info(graph, field, name, value->dtype, value->rank, value->shape);
    }
}

/* A state is an initializer and an input: what it holds at first is the default. */
static void append_states(Buffer *graph, const Program *program) {
    for (size_t i = 0; i < program->weights.count; i++) {
        const Value *weight = program->weights.items[i];
        if (weight->kind != VALUE_STATE) continue;
        onnx_value_info(graph, GRAPH_INPUT, weight->name, weight->dtype, weight->rank,
                        weight->shape);
    }
}

/* ---- the model ---- */

/* The lowest IR version of the ONNX release that introduced an opset. */
static int ir_version(int opset) {
    static const int versions[] = {8, 9, 9, 10, 10, 11, 12};
    return versions[opset - ONNX_MIN_OPSET];
}

static void append_opset(Buffer *model, const char *domain, int version) {
    size_t opset = proto_open(model, MODEL_OPSET_IMPORT);
    proto_string(model, OPSET_DOMAIN, domain);
    proto_int(model, OPSET_VERSION, version);
    proto_close(model, opset);
}

static void append_model(Onnx *o, Buffer *model) {
    Program *program = o->program;
    proto_int(model, MODEL_IR_VERSION, ir_version(o->options->opset));
    proto_string(model, MODEL_PRODUCER_NAME, "tensorferry");
    proto_string(model, MODEL_PRODUCER_VERSION, ferry_version());
    size_t graph = proto_open(model, MODEL_GRAPH);
    buffer_append(model, o->nodes.bytes, o->nodes.length);
    proto_string(model, GRAPH_NAME, "main_graph");
    buffer_append(model, o->initializers.bytes, o->initializers.length);
    append_ports(model, GRAPH_INPUT, program, program->inputs.items, program->inputs.count);
    append_states(model, program);
    append_ports(model, GRAPH_OUTPUT, program, program->outputs.items, program->outputs.count);
    buffer_append(model, o->value_info.bytes, o->value_info.length);
    proto_close(model, graph);
    append_opset(model, "", o->options->opset);
    for (size_t i = 0; i < o->domains.count; i++)
        append_opset(model, o->domains.items[i].name, o->domains.items[i].version);
    append_entry(model, MODEL_METADATA_PROPS, "architecture", program->architecture);
    append_entry(model, MODEL_METADATA_PROPS, "model_type", program->model_type);
    append_entry(model, MODEL_METADATA_PROPS, "dtype", ferry_dtype_name(program->dtype));
}

static void onnx_free(Onnx *o) {
    buffer_free(&o->nodes);
    buffer_free(&o->initializers);
    buffer_free(&o->value_info);
    VEC_FREE(&o->domains);
    map_free(&o->constants);
    map_free(&o->sizes);
    map_free(&o->pairs);
    arena_free(&o->arena);
}

ferry_status onnx_write(Program *program, const OnnxOptions *options, OutputFile *model,
                        OutputFile *data, OnnxSizes *sizes, ferry_error *error) {
    Onnx o = {.program = program, .options = options, .error = error};
    Buffer bytes = {0};
    find_lowerings(&o);
    bool *copied = ARENA_ARRAY(&o.arena, bool, program->outputs.count);
    o.dimensions = signature_dimensions(program, &o.arena);
    if (!copied || !o.dimensions || !name_ports(&o, copied)) {
        onnx_fail(&o, FERRY_OUT_OF_MEMORY, "out of memory");
    }
    if (o.status == FERRY_OK) lower_nodes(&o, copied);
    if (o.status == FERRY_OK) write_initializers(&o, data, &sizes->data_bytes);
    if (o.status == FERRY_OK) append_model(&o, &bytes);
    if (o.status == FERRY_OK && bytes.length > INT32_MAX) {
        onnx_fail(&o, FERRY_UNSUPPORTED, "the graph without weights exceeds 2 GiB");
    }
    if (o.nodes.failed || o.initializers.failed || o.value_info.failed || bytes.failed ||
        o.domains.failed || o.constants.failed || o.sizes.failed || o.arena.failed) {
        onnx_fail(&o, FERRY_OUT_OF_MEMORY, "out of memory");
    }
    if (o.status == FERRY_OK) o.status = output_write(model, 0, bytes.bytes, bytes.length, error);
    sizes->model_bytes = bytes.length;
    sizes->nodes = o.node_count;
    sizes->initializers = o.initializer_count;
    buffer_free(&bytes);
    onnx_free(&o);
    return o.status;
}
