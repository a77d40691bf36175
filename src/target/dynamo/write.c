/* Writing the archive: weights first, streamed, then the documents that describe them.
 *
 *   model/data/weights/weight_N                 raw bytes, at multiples of 64
 *   model/data/weights/model_weights_config.json
 *   model/data/constants/tensor_N, model_constants_config.json
 *   model/models/model.json
 *   model/data/sample_inputs/model.pt           empty: torch needs the entry, not its content
 *   model/archive_format, archive_version, byteorder, .data/version */
#include "base/error.h"
#include "format/zip_write.h"
#include "pass/pass.h"
#include "target/dynamo/serialize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, CHUNK_BYTES = 1 << 20 };

/* Does every row of the matrix, and of every matrix, begin at a multiple of 16 bytes? */
static bool is_aligned(const Value *matrices) {
    const Sym *columns = matrices->shape[matrices->rank - 1];
    uint64_t size = ferry_dtype_size(matrices->dtype);
    return sym_is_const(columns) && (uint64_t)columns->value * size % 16 == 0;
}

/* What torch has, on the operands that it takes. */
static bool accepts(const void *context, const Node *node) {
    (void)context;
    if (node->op == OP_GROUPED_MM)
        return is_aligned(node->args[0].tensor) && is_aligned(node->args[1].tensor);
    return strncmp(op_name(node->op), "aten::", 6) == 0;
}

ferry_status dynamo_legalize(Program *program, const Registry *registry, ferry_error *error) {
    return pass_legalize(program, registry, "dynamo", accepts, NULL, error);
}

/* ---- weights ---- */

typedef struct Archive {
    Serializer *s;
    const DynamoOptions *options;
    ZipWriter *zip;
    uint32_t *records; /* by weight: the number in its record's name */
    bool *shared;      /* by weight: an earlier one wrote the record */
    uint64_t done, total;
    ferry_error *error;
} Archive;

static ferry_status stream(Archive *archive, const Value *weight) {
    const Recipe *recipe = weight->recipe;
    uint64_t count = recipe_count(recipe), size = ferry_dtype_size(recipe->dtype);
    uint64_t step = CHUNK_BYTES / size;
    const DynamoOptions *options = archive->options;
    void *buffer = malloc(CHUNK_BYTES);
    ferry_status status =
        buffer ? FERRY_OK : error_memory(archive->error, weight->name, CHUNK_BYTES);
    for (uint64_t first = 0; first < count && status == FERRY_OK; first += step) {
        uint64_t length = count - first < step ? count - first : step;
        recipe_read(recipe, first, length, buffer);
        recipe_forget(recipe, first, length);
        status = zip_writer_append(archive->zip, buffer, length * size, archive->error);
        archive->done += length * size;
        if (options->progress &&
            options->progress(options->progress_context, archive->done, archive->total)) {
            status = error_set(archive->error, FERRY_CANCELLED, weight->name,
                               "interrupted; nothing was written");
        }
    }
    free(buffer);
    return status;
}

/* The first weight before number `index` that has the same elements, or `index` itself. A state shares
 * with nothing: it is written. */
static size_t first_same(const Program *program, Map *seen, size_t index) {
    Value *const *weight = &program->weights.items[index];
    const unsigned char *const *base = &(*weight)->recipe->parts[0].base;
    Value *const *known = map_get(seen, base, sizeof *base);
    if (!known) map_set(seen, base, sizeof *base, (void *)(uintptr_t)weight);
    bool same = known && recipe_equal((*weight)->recipe, (*known)->recipe) &&
                in_state(*weight) == in_state(*known) && (*weight)->kind != VALUE_STATE &&
                (*known)->kind != VALUE_STATE;
    return same ? (size_t)(known - program->weights.items) : index;
}

/* Number the records; tied weights share one. */
static ferry_status place_weights(Archive *archive) {
    const Program *program = archive->s->program;
    uint32_t counts[2] = {0, 0};
    Map seen = {0};
    archive->records = ARENA_ARRAY(&archive->s->arena, uint32_t, program->weights.count);
    archive->shared = ARENA_ARRAY(&archive->s->arena, bool, program->weights.count);
    bool failed = !archive->records || !archive->shared;
    for (size_t i = 0; i < program->weights.count && !failed; i++) {
        const Value *weight = program->weights.items[i];
        size_t first = first_same(program, &seen, i);
        archive->shared[i] = first != i;
        archive->records[i] = first != i ? archive->records[first] : counts[in_state(weight)]++;
        if (first == i) archive->total += recipe_bytes_size(weight->recipe);
    }
    failed = failed || seen.failed;
    map_free(&seen);
    return failed ? error_memory(archive->error, program->architecture, 0) : FERRY_OK;
}

static ferry_status write_record(Archive *archive, const Value *weight, uint32_t number) {
    char name[64];
    snprintf(name, sizeof name,
             in_state(weight) ? "model/data/weights/weight_%u" : "model/data/constants/tensor_%u",
             number);
    TRY(zip_writer_open(archive->zip, name, recipe_bytes_size(weight->recipe), ALIGNMENT,
                        archive->error));
    TRY(stream(archive, weight));
    return zip_writer_close(archive->zip, archive->error);
}

static ferry_status write_weights(Archive *archive) {
    const Program *program = archive->s->program;
    for (size_t i = 0; i < program->weights.count; i++) {
        if (archive->shared[i]) continue;
        TRY(write_record(archive, program->weights.items[i], archive->records[i]));
    }
    return FERRY_OK;
}

/* ---- documents ---- */

static ferry_status add_document(Archive *archive, const char *name, Buffer *document) {
    ferry_status status = document->failed
                              ? error_memory(archive->error, name, 0)
                              : zip_writer_add(archive->zip, name, buffer_string(document),
                                               document->length, archive->error);
    buffer_free(document);
    return status;
}

static ferry_status write_documents(Archive *archive, uint64_t *graph_bytes) {
    static const char *const notes[][2] = {
        {"model/data/sample_inputs/model.pt", ""},
        {"model/archive_format", "pt2"},
        {"model/archive_version", "0"},
        {"model/byteorder", "little"},
        {"model/.data/version", "6\n"},
    };
    Buffer program = {0}, weights = {0}, constants = {0};
    document_weights(archive->s, archive->records, false, &weights);
    TRY(add_document(archive, "model/data/weights/model_weights_config.json", &weights));
    document_weights(archive->s, archive->records, true, &constants);
    TRY(add_document(archive, "model/data/constants/model_constants_config.json", &constants));
    document_program(archive->s, &program);
    *graph_bytes = program.length;
    TRY(add_document(archive, "model/models/model.json", &program));
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        TRY(zip_writer_add(archive->zip, notes[i][0], notes[i][1], strlen(notes[i][1]),
                           archive->error));
    }
    return zip_writer_finish(archive->zip, archive->error);
}

/* ---- the graph ---- */

/* The order of the signature: parameters, buffers, constants. */
static void order_weights(Serializer *s) {
    Program *program = s->program;
    size_t count = program->weights.count, next = 0;
    Value **ordered = ARENA_ARRAY(&s->arena, Value *, count);
    for (ValueKind kind = VALUE_PARAMETER; ordered && kind <= VALUE_CONSTANT; kind++) {
        for (size_t i = 0; i < count; i++) {
            if (value_role(program->weights.items[i]) == kind)
                ordered[next++] = program->weights.items[i];
        }
    }
    if (next) memcpy(program->weights.items, ordered, next * sizeof *ordered);
}

static bool serializer_start(Serializer *s) {
    Program *program = s->program;
    order_weights(s);
    s->names = ARENA_ARRAY(&s->arena, const char *, program->value_count);
    s->strides = (const Sym *const **)ARENA_ARRAY(&s->arena, const Sym **, program->value_count);
    size_t symbols = program->symbols.symbols.count;
    s->symbol_names = ARENA_ARRAY(&s->arena, const char *, symbols);
    s->symbol_value = ARENA_ARRAY(&s->arena, const Value *, symbols);
    s->symbol_dim = ARENA_ARRAY(&s->arena, int, symbols);
    s->samples = ARENA_ARRAY(&s->arena, int64_t, symbols);
    s->uses = program_uses(program, &s->arena);
    s->left = ARENA_ARRAY(&s->arena, const char *, program->outputs.count);
    s->results = ARENA_ARRAY(&s->arena, const char *, program->outputs.count);
    return s->names && s->strides && s->symbol_names && s->symbol_value && s->symbol_dim &&
           s->samples && s->uses && s->left && s->results;
}

static void serialize_graph(Serializer *s, const DynamoOptions *options) {
    static const char *const prefixes[] = {[VALUE_PARAMETER] = "p",
                                           [VALUE_PERSISTENT_BUFFER] = "b",
                                           [VALUE_BUFFER] = "b",
                                           [VALUE_CONSTANT] = "c"};
    Program *program = s->program;
    for (size_t i = 0; i < program->inputs.count; i++)
        symbols_note(s, program->inputs.items[i].value);
    for (size_t i = 0; i < program->sources.count; i++) {
        const SymSource *source = &program->sources.items[i];
        s->symbol_value[source->symbol->value] = source->value;
        s->symbol_dim[source->symbol->value] = source->dim;
    }
    symbols_name(s);
    for (size_t i = 0; i < program->weights.count; i++) {
        const Value *weight = program->weights.items[i];
        s->names[weight->id] = serialize_name(
            s, arena_format(&s->arena, "%s_%s", prefixes[value_role(weight)], weight->name));
        s->strides[weight->id] = strides_contiguous(s, weight->rank, weight->shape);
        serialize_tensor(s, weight, false);
    }
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Port *port = &program->inputs.items[i];
        s->names[port->value->id] = serialize_name(s, port->name);
        s->strides[port->value->id] = strides_contiguous(s, port->value->rank, port->value->shape);
        serialize_tensor(s, port->value, false);
    }
    if (options->deferred_asserts) sizes_assert_bounds(s);
    for (const Node *node = program->first; node && s->status == FERRY_OK; node = node->next) {
        if (!results_skip(s, node)) serialize_node(s, node);
    }
    if (s->status == FERRY_OK) results_prepare(s);
}

static void serializer_free(Serializer *s) {
    buffer_free(&s->nodes);
    buffer_free(&s->tensors);
    buffer_free(&s->sizes);
    buffer_free(&s->bools);
    map_free(&s->taken);
    map_free(&s->size_names);
    arena_free(&s->arena);
}

static ferry_status write_archive(Archive *archive, DynamoSizes *sizes) {
    Serializer *s = archive->s;
    if (!archive->zip) return error_memory(archive->error, s->program->architecture, 0);
    TRY(place_weights(archive));
    TRY(write_weights(archive));
    TRY(write_documents(archive, &sizes->graph_bytes));
    sizes->weight_bytes = archive->total;
    sizes->nodes = s->node_count;
    sizes->weights = (uint32_t)s->program->weights.count;
    return FERRY_OK;
}

ferry_status dynamo_write(Program *program, const DynamoOptions *options, OutputFile *file,
                          DynamoSizes *sizes, ferry_error *error) {
    Serializer s = {.program = program, .error = error};
    if (!serializer_start(&s)) s.status = error_memory(error, program->architecture, 0);
    if (s.status == FERRY_OK) serialize_graph(&s, options);
    bool failed = s.nodes.failed || s.tensors.failed || s.sizes.failed || s.bools.failed ||
                  s.taken.failed || s.size_names.failed || s.arena.failed;
    if (s.status == FERRY_OK && failed) s.status = error_memory(error, program->architecture, 0);
    if (s.status == FERRY_OK) s.status = program_health(program, error); /* strides grow, too */
    if (s.status == FERRY_OK) {
        Archive archive = {
            .s = &s, .options = options, .zip = zip_writer_new(file), .error = error};
        s.status = write_archive(&archive, sizes);
        zip_writer_free(archive.zip);
    }
    ferry_status status = s.status;
    serializer_free(&s);
    return status;
}
