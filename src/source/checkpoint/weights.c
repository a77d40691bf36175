/* The weights of a checkpoint by their names, and what is made of them. */
#include "source/checkpoint/families.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The tensor called `name`, also under its old spelling (LayerNorm.gamma, LayerNorm.beta). */
static const CheckpointTensor *find_spelled(Model *m, const char *name) {
    const CheckpointTensor *found = checkpoint_find(m->checkpoint, name);
    if (found) return found;
    static const char *const spellings[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                               {"LayerNorm.bias", "LayerNorm.beta"}};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(name), end = strlen(spellings[i][0]);
        if (length < end || strcmp(name + length - end, spellings[i][0]) != 0) continue;
        const char *old = arena_format(&m->b.program->arena, "%.*s%s", (int)(length - end), name,
                                       spellings[i][1]);
        return checkpoint_find(m->checkpoint, old);
    }
    return NULL;
}

/* What names of the base model begin with: the class's prefix, nothing (as the base class saves it), or
 * what some heads and fine-tuning tools put there. */
enum { BASE_PREFIXES = 6 };

static const char *base_prefix(const Model *m, size_t i) {
    static const char *const others[BASE_PREFIXES - 1] = {
        "", "model", "transformer", "base_model.model", "base_model.model.model"};
    return i == 0 ? m->family->base_prefix : others[i - 1];
}

/* "a.b" of "a" and "b", each of which may be empty. */
static const char *join_names(Model *m, const char *a, const char *b) {
    return arena_format(&m->b.program->arena, "%s%s%s", a, *a && *b ? "." : "", b);
}

/* The tensor called `name` in the present part of the base model. */
static const CheckpointTensor *find_base(Model *m, const char *name) {
    name = join_names(m, m->part_prefix, name);
    for (size_t i = 0; i < BASE_PREFIXES; i++) {
        const CheckpointTensor *found = find_spelled(m, join_names(m, base_prefix(m, i), name));
        if (found) return found;
    }
    return NULL;
}

/* Has the checkpoint tensors below this prefix in the base model? */
static bool has_below(Model *m, const char *prefix) {
    if (!*prefix) return true;
    for (size_t i = 0; i < BASE_PREFIXES; i++) {
        const char *full =
            arena_format(&m->b.program->arena, "%s.", join_names(m, base_prefix(m, i), prefix));
        size_t length = strlen(full);
        for (size_t t = 0; t < m->checkpoint->tensor_count; t++) {
            const char *name = m->checkpoint->tensors[t].name;
            if (strncmp(name, full, length) == 0) return true;
        }
    }
    return false;
}

ModelPart model_enter(Model *m, const char *key, const char *const *prefixes) {
    const ModelPart outer = {m->config, m->config_path, m->part_prefix};
    const char *prefix = NULL;
    for (size_t i = 0; prefixes[i]; i++) {
        prefix = join_names(m, outer.part_prefix, prefixes[i]);
        if (has_below(m, prefix)) break;
    }
    m->part_prefix = prefix;
    if (key) config_enter(m, key);
    return outer;
}

void model_leave(Model *m, ModelPart outer) {
    m->config = outer.config;
    m->config_path = outer.config_path;
    m->part_prefix = outer.part_prefix;
}

/* A tensor outside the base model: as it is called, as fine-tuning tools save it, or in the whole language
 * model that older multimodal models contain. */
static const CheckpointTensor *find_head(Model *m, const char *name) {
    static const char *const prefixes[] = {"", "base_model.model", "language_model"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const CheckpointTensor *found = find_spelled(m, join_names(m, prefixes[i], name));
        if (found) return found;
    }
    return NULL;
}

static void print_sizes(Buffer *buffer, uint32_t rank, const int64_t *shape) {
    buffer_text(buffer, "[");
    for (uint32_t d = 0; d < rank; d++) {
        buffer_format(buffer, "%s%" PRId64, d ? ", " : "", shape[d]);
    }
    buffer_text(buffer, "]");
}

static void wrong_shape(Model *m, const CheckpointTensor *found, uint32_t rank,
                        const int64_t *shape) {
    Buffer text = {0};
    buffer_format(&text, "%s: tensor \"%s\": expected the shape ", found->shard->file.path,
                  found->name);
    print_sizes(&text, rank, shape);
    buffer_text(&text, ", found ");
    print_sizes(&text, found->rank, found->shape);
    build_fail(&m->b, FERRY_BAD_FORMAT, "%s", buffer_string(&text));
    buffer_free(&text);
}

/* What the file has; NULL after a failure. */
static const Recipe *read_tensor(Model *m, const CheckpointTensor *tensor, uint32_t rank,
                                 const int64_t *shape) {
    if (!build_ok(&m->b)) return NULL;
    if (tensor->rank != rank || memcmp(tensor->shape, shape, rank * sizeof *shape) != 0) {
        wrong_shape(m, tensor, rank, shape);
        return NULL;
    }
    const Recipe *recipe = checkpoint_recipe(&m->b.program->arena, tensor);
    if (!recipe) build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    return recipe;
}

static Value *made_weight(Model *m, const Recipe *recipe, ferry_dtype dtype, const char *name) {
    if (!build_ok(&m->b)) return &m->b.poison;
    Value *value = program_weight(m->b.program, VALUE_PARAMETER, name, recipe);
    if (!value) return build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    return ferry_dtype_is_float(value->dtype) ? build_to(&m->b, value, dtype) : value;
}

/* The value of a tensor of the file in the dtype of the computation, made once per tensor. */
static Value *load(Model *m, const CheckpointTensor *found, uint32_t rank, const int64_t *shape) {
    const Recipe *recipe = read_tensor(m, found, rank, shape);
    if (!recipe) return &m->b.poison;
    Value *value = map_find(&m->weights, found->name);
    if (value) return value;
    value = made_weight(m, recipe, m->dtype, found->name);
    map_put(&m->weights, found->name, value);
    return value;
}

static Value *missing(Model *m, const char *name) {
    return build_fail(&m->b, FERRY_BAD_FORMAT,
                      "%s: the weight \"%s\" of %s is in none of the files",
                      m->checkpoint->directory, name, m->b.program->architecture);
}

static Value *base_weight(Model *m, uint32_t rank, const int64_t *shape, const char *name) {
    if (!build_ok(&m->b)) return &m->b.poison;
    const CheckpointTensor *found = find_base(m, name);
    if (found) return load(m, found, rank, shape);
    const char *part = join_names(m, m->part_prefix, name);
    return missing(m, join_names(m, m->family->base_prefix, part));
}

/* The printf-formatted name that the varargs of the callers make. */
#define FORMAT_NAME(m, name)                                                                       \
    va_list name_args;                                                                             \
    va_start(name_args, name);                                                                     \
    name = arena_vformat(&(m)->b.program->arena, name, name_args);                                 \
    va_end(name_args)

Value *model_weight(Model *m, uint32_t rank, const int64_t *shape, const char *name, ...) {
    FORMAT_NAME(m, name);
    return base_weight(m, rank, shape, name);
}

const Recipe *model_recipe(Model *m, uint32_t rank, const int64_t *shape, const char *name, ...) {
    FORMAT_NAME(m, name);
    if (!build_ok(&m->b)) return NULL;
    const CheckpointTensor *found = find_base(m, name);
    if (found) return read_tensor(m, found, rank, shape);
    missing(m, arena_format(&m->b.program->arena, "%s.%s", m->family->base_prefix, name));
    return NULL;
}

Value *model_made_weight(Model *m, const Recipe *recipe, ferry_dtype dtype, const char *name, ...) {
    FORMAT_NAME(m, name);
    name = arena_format(&m->b.program->arena, "%s.%s", m->family->base_prefix, name);
    return made_weight(m, recipe, dtype, name);
}

Value *model_vector(Model *m, int64_t size, const char *name, ...) {
    FORMAT_NAME(m, name);
    return base_weight(m, 1, &size, name);
}

Value *model_matrix(Model *m, int64_t rows, int64_t columns, const char *name, ...) {
    FORMAT_NAME(m, name);
    return base_weight(m, 2, (const int64_t[]){rows, columns}, name);
}

int64_t model_size(Model *m, uint32_t dim, const char *name) {
    if (!build_ok(&m->b)) return 1;
    const CheckpointTensor *found = find_base(m, name);
    if (found && dim < found->rank && found->shape[dim] > 0) return found->shape[dim];
    missing(m, join_names(m, m->part_prefix, name));
    return 1;
}

bool model_has(Model *m, const char *name, ...) {
    FORMAT_NAME(m, name);
    return find_base(m, name) != NULL;
}

static int64_t features(Model *m, const Value *x) {
    return build_dim(&m->b, x, -1)->value;
}

Value *model_linear(Model *m, Value *x, int64_t out, bool bias, const char *name, ...) {
    FORMAT_NAME(m, name);
    Value *weight = model_matrix(m, out, features(m, x), "%s.weight", name);
    return build_linear(&m->b, x, weight, bias ? model_vector(m, out, "%s.bias", name) : NULL);
}

Value *model_layer_norm(Model *m, Value *x, bool bias, double eps, const char *name, ...) {
    FORMAT_NAME(m, name);
    int64_t size = features(m, x);
    Value *weight = model_vector(m, size, "%s.weight", name);
    return build_layer_norm(&m->b, x, weight, bias ? model_vector(m, size, "%s.bias", name) : NULL,
                            eps);
}

Value *model_head_weight(Model *m, uint32_t rank, const int64_t *shape, const char *name) {
    if (!build_ok(&m->b)) return &m->b.poison;
    const CheckpointTensor *found = find_head(m, name);
    return found ? load(m, found, rank, shape) : missing(m, name);
}

Value *model_head_linear(Model *m, Value *x, int64_t out, bool bias, const char *name) {
    Arena *arena = &m->b.program->arena;
    const int64_t shape[2] = {out, features(m, x)};
    Value *weight = model_head_weight(m, 2, shape, arena_format(arena, "%s.weight", name));
    Value *offset =
        bias ? model_head_weight(m, 1, &out, arena_format(arena, "%s.bias", name)) : NULL;
    return build_linear(&m->b, x, weight, offset);
}

Value *model_head_layer_norm(Model *m, Value *x, bool bias, double eps, const char *name) {
    Arena *arena = &m->b.program->arena;
    int64_t size = features(m, x);
    Value *weight = model_head_weight(m, 1, &size, arena_format(arena, "%s.weight", name));
    Value *offset =
        bias ? model_head_weight(m, 1, &size, arena_format(arena, "%s.bias", name)) : NULL;
    return build_layer_norm(&m->b, x, weight, offset, eps);
}

/* The checkpoint's tensor behind a weight, before any conversion. */
static const CheckpointTensor *origin(Model *m, const Value *value) {
    if (value->producer && value->producer->op == OP_TO) value = value->producer->args[0].tensor;
    return checkpoint_find(m->checkpoint, value->name);
}

Value *model_output_embedding(Model *m, const char *name, Value *tied) {
    bool denied =
        config_get(m, "tie_word_embeddings") && !config_bool_or(m, "tie_word_embeddings", true);
    if (build_ok(&m->b) && !find_head(m, name) && denied) {
        return build_fail(
            &m->b, FERRY_BAD_FORMAT,
            "%s: \"tie_word_embeddings\" is false, but the weight \"%s\" is in none of "
            "the files; if the model is tied, set the key to true",
            m->config_path, name);
    }
    return model_tied_weight(m, name, tied);
}

Value *model_tied_weight(Model *m, const char *name, Value *tied) {
    if (!build_ok(&m->b)) return &m->b.poison;
    const CheckpointTensor *own = find_head(m, name), *shared = origin(m, tied);
    if (!own || !shared) return own ? load(m, own, 2, own->shape) : tied;
    const int64_t shape[2] = {tied->shape[0]->value, tied->shape[1]->value};
    if (checkpoint_same(own, shared)) return tied;
    if (config_bool_or(m, "tie_word_embeddings", false)) {
        model_note(m,
                   "\"%s\" differs from the input embedding although tie_word_embeddings is "
                   "true: the file's own weight is used",
                   name);
    }
    return load(m, own, 2, shape);
}
