/* Writing the file.
 *
 *   8 bytes      the root of the program, "ET12"
 *   32 bytes     the extended header: where the program ends and the segments begin
 *   ...          the program, a FlatBuffer
 *   segment 0    constants, each at a multiple of 16
 *   segments     the blobs of delegates, then the weights that they look up by name
 *   last         what states hold at first, each at a multiple of 16
 *
 * Segments begin at multiples of 128. Weights are streamed to their places. */
#include "base/error.h"
#include "format/flatbuffer.h"
#include "pass/pass.h"
#include "target/executorch/backend.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_SIZE = 32, SEGMENT_ALIGNMENT = 128, CONSTANT_ALIGNMENT = 16 };
enum { PLANNED_LIMIT = 1 << 29 }; /* more memory is only planned where bounds ask for it */

/* The convolution kernel has one or two dimensions. */
static bool accepts(const void *context, const Node *node) {
    const ExecutorchOptions *options = context;
    const Backend *backend = options->backend;
    if (backend && backend->takes(node)) return true;
    if (backend && backend->decomposes(node)) return false;
    /* These kernels add up squares in the numbers' own precision, which float16 overflows. */
    bool sums = node->op == OP_LAYER_NORM || node->op == OP_GROUP_NORM;
    if (sums && node->outputs[0]->dtype == FERRY_F16) return false;
    if (node->op == OP_CONVOLUTION && node->args[0].tensor->rank > 4) return false;
    return executorch_supports(node->op);
}

const Backend *executorch_backend(const char *name) {
    static const Backend *const backends[] = {&xnnpack_backend, &mlx_backend};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    }
    return NULL;
}

bool executorch_delegates_op(const Backend *backend, Op op) {
    return backend->has(op);
}

ferry_status executorch_legalize(Program *program, const Registry *registry,
                                 const ExecutorchOptions *options, ferry_error *error) {
    const Backend *backend = options->backend;
    outputs_keep_inputs(program);
    TRY(pass_share_heads(program, error));
    if (backend && backend->prepare) TRY(backend->prepare(program, error));
    return pass_legalize(program, registry, "executorch", accepts, options, error);
}

static uint64_t align(uint64_t offset, uint64_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

/* ---- instructions ---- */

static PteValue add_input(Pte *p, const Value *input) {
    PteValue value = pte_output(p, input);
    if (p->status != FERRY_OK) return 0;
    Slot *slot = &p->slots.items[value];
    slot->unplanned = p->options->unplanned_inputs;
    slot->used = true;
    return value;
}

/* A keyword that the program was traced with: the runtime asks for the same value again. It has no
 * strings, in whose place it takes None. */
static PteValue add_constant(Pte *p, const char *json) {
    char *end;
    if (strcmp(json, "true") == 0 || strcmp(json, "false") == 0) return pte_bool(p, *json == 't');
    if (*json == 'n' || *json == '"') return pte_null(p);
    if (!strpbrk(json, ".eEN")) return pte_int(p, strtoll(json, &end, 10));
    return pte_double(p, strtod(json, &end));
}

/* Every leaf of the arguments is an input: a tensor or a constant. */
static void add_inputs(Pte *p) {
    const Program *program = p->program;
    size_t port = 0, constant = 0, count = program->inputs.count + program->input_constants.count;
    for (size_t leaf = 0; leaf < count && p->status == FERRY_OK; leaf++) {
        bool fixed = constant < program->input_constants.count &&
                     (program->input_constants.items[constant].leaf == leaf ||
                      port == program->inputs.count);
        p->inputs[leaf] = fixed ? add_constant(p, program->input_constants.items[constant++].json)
                                : add_input(p, program->inputs.items[port++].value);
    }
}

static void add_argument(void *context, Value **use) {
    Pte *p = context;
    pte_delegate(p, (Delegate){0}, ARGS(pte_value(p, *use)));
}

/* What only a backend computes, where nothing but memory counts: it is made, and its inputs are there. */
static void add_stand_in(Pte *p, const Node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        pte_delegate(p, (Delegate){0}, ARGS(pte_output(p, node->outputs[i])));
    }
    node_each_tensor((Node *)node, add_argument, p);
}

static void add_kernels(Pte *p, const Partition *partition, uint32_t level) {
    for (const Node *node = p->program->first; node && p->status == FERRY_OK; node = node->next) {
        uint32_t id = node->outputs[0]->id;
        if (partition->taken[id] || partition->levels[id] != level) continue;
        if (p->measuring && !executorch_supports(node->op))
            add_stand_in(p, node);
        else
            pte_lower(p, node);
    }
    p->node = NULL;
}

static void add_instructions(Pte *p) {
    Partition partition;
    if (!partition_make(p, p->options->backend, &partition)) return;
    p->folded = partition.folded;
    add_inputs(p);
    for (uint32_t level = 0; level <= partition.last && p->status == FERRY_OK; level++) {
        if (level > 0) p->options->backend->delegate(p, &partition, level);
        add_kernels(p, &partition, level);
    }
    if (p->status == FERRY_OK) pte_add_outputs(p);
    if (p->status == FERRY_OK) pte_plan(p);
}

/* ---- the file ---- */

typedef struct Layout {
    Segment *segments;          /* offsets from the end of the program */
    uint64_t *constant_offsets; /* in segment 0; the first is that of a placeholder */
    uint64_t *initial_offsets;  /* in the last segment; the first too */
    uint64_t size;
} Layout;

/* The named data with the same bytes as a constant, so that they are stored once; or NULL. */
static const NamedData *find_named(Pte *p, const Recipe *constant) {
    PteValue known = pte_recipe(p, 'n', constant, -1);
    return known >= 0 ? &p->named.items[known] : NULL;
}

/* The last segment; returns its end. */
static uint64_t lay_out_initials(const Pte *p, Layout *layout, uint64_t position) {
    uint64_t start = align(position, SEGMENT_ALIGNMENT), size = 0;
    for (size_t i = 0; i < p->initials.count; i++) {
        size = align(size, CONSTANT_ALIGNMENT);
        layout->initial_offsets[i + 1] = size;
        size += recipe_bytes_size(p->initials.items[i]);
    }
    layout->segments[pte_segment_count(p) - 1] = (Segment){start, size};
    return start + size;
}

/* A weight that kernels and delegates read is a constant, and its segment is a part of theirs. */
static bool lay_out(Pte *p, Layout *layout) {
    size_t count = 1 + p->delegates.count + p->named.count;
    layout->segments = ARENA_ARRAY(&p->arena, Segment, pte_segment_count(p));
    layout->constant_offsets = ARENA_ARRAY(&p->arena, uint64_t, p->constants.count + 1);
    layout->initial_offsets = ARENA_ARRAY(&p->arena, uint64_t, p->initials.count + 1);
    if (!layout->segments || !layout->constant_offsets || !layout->initial_offsets) return false;
    Segment *named = layout->segments + 1 + p->delegates.count;
    uint64_t position = 0;
    for (size_t i = 0; i < p->constants.count; i++) {
        const NamedData *twin = find_named(p, p->constants.items[i]);
        uint64_t size = recipe_bytes_size(p->constants.items[i]);
        position = align(position, twin ? SEGMENT_ALIGNMENT : CONSTANT_ALIGNMENT);
        layout->constant_offsets[i + 1] = position;
        if (twin) named[twin - p->named.items] = (Segment){position, size};
        position += size;
    }
    layout->segments[0] = (Segment){0, position};
    for (size_t i = 1; i < count; i++) {
        bool is_blob = i <= p->delegates.count;
        if (layout->segments[i].size) continue;
        uint64_t size = is_blob
                            ? p->delegates.items[i - 1].length
                            : recipe_bytes_size(p->named.items[i - 1 - p->delegates.count].recipe);
        position = align(position, SEGMENT_ALIGNMENT);
        layout->segments[i] = (Segment){position, size};
        position += size;
    }
    layout->size = p->initials.count ? lay_out_initials(p, layout, position) : position;
    return true;
}

static void put(unsigned char *place, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) place[i] = (unsigned char)(value >> 8 * i);
}

/* Weights go to their places behind `base`. */
static ferry_status write_weights(Pte *p, const Layout *layout, uint64_t base, OutputFile *file) {
    size_t count = p->constants.count;
    StreamItem *items =
        ARENA_ARRAY(&p->arena, StreamItem, count + p->named.count + p->initials.count);
    if (!items) return error_memory(p->error, file->path, 0);
    for (size_t i = 0; i < count; i++) {
        items[i] = (StreamItem){p->constants.items[i], base + layout->constant_offsets[i + 1]};
    }
    for (size_t i = 0; i < p->named.count; i++) {
        uint64_t offset = layout->segments[1 + p->delegates.count + i].offset;
        if (offset < layout->segments[0].size) continue; /* a constant */
        items[count++] = (StreamItem){p->named.items[i].recipe, base + offset};
    }
    uint64_t initials = layout->segments[pte_segment_count(p) - 1].offset;
    for (size_t i = 0; i < p->initials.count; i++) {
        uint64_t offset = initials + layout->initial_offsets[i + 1];
        items[count++] = (StreamItem){p->initials.items[i], base + offset};
    }
    return stream_write(items, count, p->options->pool, file, p->options->progress,
                        p->options->progress_context, p->error);
}

/* XNNPACK may read a little behind the last weight. */
static ferry_status write_file(Pte *p, const Layout *layout, unsigned char *bytes, size_t length,
                               OutputFile *file) {
    static const char slack[64];
    uint64_t base = align(length, SEGMENT_ALIGNMENT);
    memcpy(bytes + 8, "eh00", 4);
    put(bytes + 12, HEADER_SIZE, 4);
    put(bytes + 16, length, 8);
    put(bytes + 24, base, 8);
    put(bytes + 32, layout->size, 8);
#ifdef FERRY_VERIFY
    TRY(executorch_verify(file->path, bytes, length, base + layout->size, p->error));
#endif
    TRY(output_write(file, 0, bytes, length, p->error));
    for (size_t i = 0; i < p->delegates.count; i++) {
        const Delegate *delegate = &p->delegates.items[i];
        TRY(output_write(file, base + layout->segments[1 + i].offset, delegate->bytes,
                         delegate->length, p->error));
    }
    TRY(output_write(file, base + layout->size, slack, sizeof slack, p->error));
    return write_weights(p, layout, base, file);
}

static bool prepare(Pte *p, Floors floors) {
    Program *program = p->program;
    p->values = ARENA_ARRAY(&p->arena, PteValue, program->value_count);
    p->inputs =
        ARENA_ARRAY(&p->arena, PteValue, program->inputs.count + program->input_constants.count);
    p->is_output = ARENA_ARRAY(&p->arena, bool, program->value_count);
    p->updates = ARENA_ARRAY(&p->arena, bool, program->value_count);
    p->outputs = ARENA_ARRAY(&p->arena, PteValue, program->outputs.count);
    p->dimensions = signature_dimensions(program, &p->arena);
    for (size_t i = 0; p->is_output && i < program->outputs.count; i++) {
        p->is_output[program->outputs.items[i].value->id] = true;
    }
    if (p->updates) pte_mark_updates(p);
    return p->values && p->inputs && p->is_output && p->updates && p->outputs && p->dimensions &&
           bounds_init(&p->bounds, program, &p->arena, floors);
}

static bool exhausted(const Pte *p) {
    return p->arena.failed || p->slots.failed || p->instructions.failed || p->operators.failed ||
           p->constants.failed || p->initials.failed || p->delegates.failed || p->named.failed ||
           p->numbers.failed || p->known.failed || p->bounds.known.failed;
}

static void pte_free(Pte *p) {
    VEC_FREE(&p->slots);
    VEC_FREE(&p->instructions);
    VEC_FREE(&p->operators);
    VEC_FREE(&p->constants);
    VEC_FREE(&p->initials);
    VEC_FREE(&p->delegates);
    VEC_FREE(&p->named);
    VEC_FREE(&p->numbers);
    map_free(&p->known);
    map_free(&p->bounds.known);
    arena_free(&p->arena);
}

/* The memory that the program takes with this cap, in kernels: delegates take theirs beside the plan. */
static ferry_status measure(Program *program, Floors floors, uint64_t *bytes, ferry_error *error) {
    const ExecutorchOptions options = {0};
    Pte p = {.program = program, .options = &options, .measuring = true, .error = error};
    if (prepare(&p, floors)) add_instructions(&p);
    if (exhausted(&p)) pte_fail(&p, FERRY_OUT_OF_MEMORY, "out of memory");
    *bytes = p.planned;
    pte_free(&p);
    return p.status;
}

ferry_status executorch_bound(Program *program, const char **caps, ferry_error *error) {
    Buffer text = {0};
    uint64_t bytes;
    Floors floors = bounds_floors(program);
    *caps = NULL;
    do {
        TRY(measure(program, floors, &bytes, error));
    } while (bytes > PLANNED_LIMIT && bounds_shrink(&floors));
    if (!bounds_fix(program, floors, &text)) program->arena.failed = true;
    if (text.length) *caps = arena_string(&program->arena, buffer_string(&text));
    buffer_free(&text);
    return program_health(program, error);
}

ferry_status executorch_write(Program *program, const ExecutorchOptions *options, OutputFile *file,
                              ExecutorchSizes *sizes, ferry_error *error) {
    Pte p = {.program = program, .options = options, .error = error};
    FlatBuilder builder = {0};
    Layout layout = {0};
    unsigned char *bytes = NULL;
    if (prepare(&p, (Floors){0})) add_instructions(&p);
    if (p.status == FERRY_OK && !exhausted(&p) && lay_out(&p, &layout)) {
        bytes = pte_serialize(&p, &builder, layout.segments, layout.constant_offsets,
                              layout.initial_offsets);
    }
    if (p.status == FERRY_OK && (!bytes || exhausted(&p)))
        pte_fail(&p, FERRY_OUT_OF_MEMORY, "out of memory, or a program of more than 2 GiB");
    if (p.status == FERRY_OK) p.status = write_file(&p, &layout, bytes, builder.length, file);
    *sizes = (ExecutorchSizes){
        .program_bytes = builder.length,
        .weight_bytes = layout.size,
        .planned_bytes = p.planned,
        .instructions = (uint32_t)p.instructions.count,
        .delegates = (uint32_t)p.delegates.count,
        .weights = (uint32_t)(p.constants.count + p.named.count + p.initials.count)};
    flat_free(&builder);
    pte_free(&p);
    return p.status;
}
