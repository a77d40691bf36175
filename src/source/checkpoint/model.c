/* The services of model.h, but for the configuration (config.c), the activations (activation.c) and the
 * list of families (families.c). */
#include "source/checkpoint/cache.h"
#include "source/checkpoint/families.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_note(Model *m, const char *format, ...) {
    if (!m->request->note || !build_ok(&m->b)) return;
    va_list args;
    va_start(args, format);
    m->request->note(m->request->note_context, arena_vformat(&m->b.program->arena, format, args));
    va_end(args);
}

/* ---- weights ---- */

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

/* ---- inputs and outputs ---- */

/* Is this the input `stem` of the part that reads tokens: "input_ids", or "decoder_input_ids"? */
static bool is_input(const Model *m, const char *name, const char *stem) {
    size_t length = strlen(m->input_prefix);
    return strncmp(name, m->input_prefix, length) == 0 && strcmp(name + length, stem) == 0;
}

static const char *input_name(Model *m, const char *stem) {
    return arena_format(&m->b.program->arena, "%s%s", m->input_prefix, stem);
}

Value *model_input(Model *m, const char *name, ferry_dtype dtype, uint32_t rank,
                   const Sym *const *shape) {
    for (size_t i = 0; i < m->input_count; i++) {
        InputRequest *request = &m->inputs[i];
        if (strcmp(request->name, name) != 0) continue;
        if (request->rank && request->rank != rank) {
            return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                              "the input \"%s\" has %u dimensions, expected %u", name,
                              request->rank, rank);
        }
        Value *known = map_find(&m->b.program->names, name);
        if (known && known->kind == VALUE_INPUT) return known;
        if (request->dtype && !ferry_dtype_is_float(dtype)) dtype = request->dtype;
        return build_input(&m->b, name, dtype, rank, request->rank ? request->shape : shape);
    }
    return NULL;
}

Value *model_input_leaf(Model *m, const char *name, const char *leaf, ferry_dtype dtype,
                        uint32_t rank, const Sym *const *shape) {
    const char *full = arena_format(&m->b.program->arena, "%s.%s", name, leaf);
    bool asked = false;
    for (size_t i = 0; i < m->input_count; i++) {
        const InputRequest *input = &m->inputs[i];
        asked |= strcmp(input->name, name) == 0;
        if (strcmp(input->name, full) == 0 && input->rank == rank) shape = input->shape;
    }
    return asked ? build_input(&m->b, full, dtype, rank, shape) : NULL;
}

static Value *as_int64(Model *m, Value *x) {
    return x ? build_to(&m->b, x, FERRY_I64) : NULL;
}

Value *model_embed_inputs(Model *m, Value *table, Value **ids) {
    const Sym *shape[3] = {m->batch, m->sequence, build_dim(&m->b, table, 1)};
    const char *prefix = m->input_prefix;
    Value *input_ids = model_input(m, input_name(m, "input_ids"), FERRY_I64, 2, shape);
    Value *embeds = model_input(m, input_name(m, "inputs_embeds"), m->dtype, 3, shape);
    if (input_ids && embeds) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                          "expected either %sinput_ids or %sinputs_embeds as an input, found both",
                          prefix, prefix);
    }
    if (!input_ids && !embeds) {
        return build_fail(&m->b, FERRY_INVALID_ARGUMENT,
                          "expected %sinput_ids or %sinputs_embeds among the inputs", prefix,
                          prefix);
    }
    Value *given = input_ids ? input_ids : embeds;
    m->batch = build_dim(&m->b, given, 0);
    m->sequence = build_dim(&m->b, given, 1);
    if (ids) *ids = as_int64(m, input_ids);
    return input_ids ? build_embedding(&m->b, table, input_ids) : embeds;
}

Value *model_positions(Model *m) {
    Value *given = model_input(m, input_name(m, "position_ids"), FERRY_I64, 2,
                               (const Sym *const[]){m->batch, m->sequence});
    if (given) return as_int64(m, given);
    return build_unsqueeze(&m->b, model_slots(m), 0);
}

bool model_masks_whole(const Model *m) {
    bool fixed = model_takes_cache(m) && m->request->static_cache > 0;
    return m->masks_given || (fixed && !m->masks_keys);
}

Value *model_padding_mask(Model *m) {
    if (model_masks_whole(m)) return NULL;
    return model_mask_input(m, input_name(m, "attention_mask"), model_key_count(m));
}

Value *model_mask_input(Model *m, const char *name, const Sym *keys) {
    Value *given = model_input(m, name, FERRY_I64, 2, (const Sym *const[]){m->batch, keys});
    if (!given) return NULL;
    return given->dtype == FERRY_BOOL ? given : build_scalar(&m->b, OP_NE_SCALAR, given, 0);
}

void model_output_tree(Model *m, const char *type, const char *const *keys,
                       const Tree *const *trees, uint32_t count) {
    Arena *arena = &m->b.program->arena;
    const Tree *children[16];
    for (uint32_t i = 0; i < count; i++) children[i] = trees[i] ? trees[i] : tree_leaf(arena);
    bool whole = strchr(type, '.') != NULL;
    const char *full = whole ? type : arena_format(arena, "transformers.modeling_outputs.%s", type);
    m->b.program->output_tree = tree_mapping(arena, full, keys, children, count);
}

void model_output_one(Model *m, const char *type, const char *key, Value *value) {
    build_output(&m->b, key, value);
    model_output_tree(m, type, &key, (const Tree *const[]){NULL}, 1);
}

/* ---- building ---- */

static bool supports(const Family *family, Task task) {
    return (family->tasks >> task & 1u) != 0;
}

/* "LlamaForCausalLM", but for the classes that are not called so. */
static const char *class_name(Model *m, Task task) {
    static const struct {
        const char *model_type;
        Task task;
        const char *name;
    } irregular[] = {
        {"gpt2", TASK_CAUSAL_LM, "GPT2LMHeadModel"},
        {"marian", TASK_TEXT_TO_TEXT, "MarianMTModel"},
        {"gemma3_text", TASK_FEATURES, "Gemma3TextModel"},
        {"vit", TASK_IMAGE_FEATURES, "ViTModel"},
        {"dinov2", TASK_IMAGE_FEATURES, "Dinov2Model"},
        {"clip_text_model", TASK_FEATURES, "CLIPTextModel"},
        {"clip_vision_model", TASK_FEATURES, "CLIPVisionModel"},
        {"siglip_text_model", TASK_FEATURES, "SiglipTextModel"},
        {"siglip_vision_model", TASK_FEATURES, "SiglipVisionModel"},
        {"gemma3_text", TASK_SEQUENCE_CLASSIFICATION, "Gemma3TextForSequenceClassification"},
    };
    for (size_t i = 0; i < sizeof irregular / sizeof *irregular; i++) {
        if (irregular[i].task == task && !strcmp(irregular[i].model_type, m->family->model_type))
            return irregular[i].name;
    }
    return arena_format(&m->b.program->arena, "%s%s", m->family->class_prefix, task_suffix(task));
}

/* The task of the class called `name`; of several, one that the family supports. */
static bool task_of_class(Model *m, const char *name, Task *out) {
    bool found = false;
    for (int task = 0; task < TASK_COUNT; task++) {
        if (strcmp(name, class_name(m, (Task)task)) != 0) continue;
        if (!found) *out = (Task)task;
        found = true;
        if (!supports(m->family, (Task)task)) continue;
        *out = (Task)task;
        break;
    }
    return found;
}

static void choose_task(Model *m) {
    json_t *classes = config_get(m, "architectures");
    const char *name = m->request->architecture;
    if (!name) name = json_string_value(json_array_get(classes, 0));
    if (classes && !json_is_array(classes)) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"architectures\" to be a list, found %s",
                   m->config_path, json_kind(classes));
    }
    if (m->request->has_task)
        m->task = m->request->task;
    else if (!name)
        m->task = TASK_FEATURES;
    else if (!task_of_class(m, name, &m->task)) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the class \"%s\" is not supported for model type %s; choose a task with "
                   "--task, or export its torch.export program (.pt2)",
                   m->config_path, name, m->family->model_type);
    }
    if (!supports(m->family, m->task)) {
        build_fail(&m->b, FERRY_UNSUPPORTED, "model type %s has no support for the task %s",
                   m->family->model_type, task_name(m->task));
    }
    m->b.program->architecture = class_name(m, m->task);
}

enum { MAX_KEYWORDS = 72 };

/* Is the input called `name` the keyword, or a leaf of it: "attention_mask.full_attention"? */
static bool is_leaf_of(const char *name, const char *keyword) {
    size_t length = strlen(keyword);
    return strncmp(name, keyword, length) == 0 && (!name[length] || name[length] == '.');
}

/* The structure of a keyword whose inputs, from `first` on, are `count` in number. */
static const Tree *keyword_tree(Model *m, const char *keyword, size_t first, size_t count) {
    Arena *arena = &m->b.program->arena;
    const Port *ports = m->b.program->inputs.items + first;
    if (strcmp(keyword, "cache") == 0) return m->cache_tree;
    if (count == 1 && strcmp(ports->name, keyword) == 0) return tree_leaf(arena);
    const Tree **leaves = ARENA_ARRAY(arena, const Tree *, count);
    const char **keys = ARENA_ARRAY(arena, const char *, count);
    if (!leaves || !keys) return NULL;
    for (size_t i = 0; i < count; i++) {
        keys[i] = ports[i].name + strlen(keyword) + 1;
        leaves[i] = tree_leaf(arena);
    }
    if (strcmp(keys[0], "0") == 0)
        return tree_node(arena, "builtins.list", "null", leaves, (uint32_t)count);
    bool encoded = strcmp(keyword, "encoder_outputs") == 0;
    const char *type = encoded ? m->encoder_outputs : "builtins.dict";
    return tree_mapping(arena, type, keys, leaves, (uint32_t)count);
}

/* The order of the inputs in the program is the order in which they were asked for. */
static void order_inputs(Model *m) {
    Program *program = m->b.program;
    const Tree *trees[MAX_KEYWORDS];
    const char *names[MAX_KEYWORDS];
    uint32_t keywords = 0;
    size_t next = 0;
    for (size_t i = 0; i < m->input_count && i < MAX_KEYWORDS && build_ok(&m->b); i++) {
        const char *keyword = m->inputs[i].name;
        size_t first = next;
        for (size_t j = next; j < program->inputs.count; j++) {
            Port port = program->inputs.items[j];
            if (!is_leaf_of(port.name, keyword)) continue;
            for (size_t k = j; k > next; k--)
                program->inputs.items[k] = program->inputs.items[k - 1];
            program->inputs.items[next++] = port;
        }
        if (next == first && m->inputs[i].optional) continue;
        if (next == first) {
            build_fail(&m->b, FERRY_INVALID_ARGUMENT, "%s does not take the input \"%s\"",
                       program->architecture, keyword);
            return;
        }
        names[keywords] = keyword;
        trees[keywords++] = keyword_tree(m, keyword, first, next - first);
    }
    const Tree *pair[2] = {
        tree_tuple(&program->arena, NULL, 0),
        tree_mapping(&program->arena, "builtins.dict", names, trees, keywords),
    };
    program->input_tree = tree_tuple(&program->arena, pair, 2);
}

static ferry_status unknown_type(const Checkpoint *cp, const Registry *registry,
                                 ferry_error *error) {
    return error_set(
        error, FERRY_UNSUPPORTED, cp->directory,
        "the model type \"%s\" is not built natively (the nearest that is: \"%s\"; see "
        "`ferry models`): export the model with torch.export and give ferry the .pt2",
        cp->model_type, families_nearest(registry, cp->model_type));
}

ferry_status model_components(const Checkpoint *checkpoint, const Registry *registry,
                              const char *const **out, ferry_error *error) {
    static const char *const decoder[] = {"prefill", "decode", NULL};
    const Family *family = registry_find(registry, EXTENSION_FAMILY, checkpoint->model_type);
    if (!family) return unknown_type(checkpoint, registry, error);
    *out = family->components ? family->components : decoder;
    if (family->components || supports(family, TASK_CAUSAL_LM)) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, checkpoint->directory,
                     "model type %s does not generate: export it whole", family->model_type);
}

/* Is the component that is asked for one of the model's? */
static void check_component(Model *m, const Registry *registry) {
    const char *const *names, *wanted = m->request->component;
    ferry_error error;
    if (!wanted) return;
    if (model_components(m->checkpoint, registry, &names, &error) != FERRY_OK) {
        build_fail(&m->b, error.status, "%s", error.message);
        return;
    }
    for (; *names; names++) {
        if (strcmp(*names, wanted) == 0) return;
    }
    build_fail(&m->b, FERRY_INVALID_ARGUMENT, "model type %s has no component \"%s\"",
               m->family->model_type, wanted);
}

/* What a call in Transformers would return besides, because the configuration says so. */
static void note_omitted_results(Model *m) {
    static const char *const keys[] = {"output_attentions", "output_hidden_states"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (config_bool_or(m, keys[i], false))
            model_note(m, "%s sets %s: the program does not return them", m->config_path, keys[i]);
    }
}

static void reject_quantized(Model *m) {
    json_t *scheme = config_get(m, "quantization_config");
    if (!scheme) return;
    const char *method = json_string_value(json_object_get(scheme, "quant_method"));
    build_fail(
        &m->b, FERRY_UNSUPPORTED,
        "%s: the weights are quantized (quant_method \"%s\"), which is not supported: export "
        "the unquantized checkpoint",
        m->config_path, method ? method : "unknown");
}

bool model_is_component(const Model *m, const char *name) {
    return m->request->component && strcmp(m->request->component, name) == 0;
}

/* A step of generation on one token, unless it is to take several. */
static bool takes_one_token(const Model *m) {
    return model_is_component(m, "decode") && !m->request->multi_token;
}

/* A prompt's tokens fit a static cache. */
static void limit_to_cache(Model *m) {
    int64_t length = m->request->static_cache;
    bool prefill = model_is_component(m, "prefill") || model_is_component(m, "language_model");
    if (!prefill || length <= 0 || m->sequence->kind != SYM_SYMBOL) return;
    if (m->sequence->upper > length) sym_narrow(&m->b.program->symbols, m->sequence, length);
}

void model_name_dimensions(Model *m) {
    for (size_t i = 0; i < m->input_count; i++) {
        const InputRequest *input = &m->inputs[i];
        bool main_input =
            is_input(m, input->name, "input_ids") || is_input(m, input->name, "inputs_embeds");
        if (!main_input || input->rank < 2) continue;
        m->batch = input->shape[0];
        m->sequence = input->shape[1];
    }
    SymTable *symbols = &m->b.program->symbols;
    if (!m->batch) m->batch = sym_symbol(symbols, "batch", 1, SYM_UNBOUNDED);
    if (takes_one_token(m))
        m->sequence = sym_const(symbols, 1);
    else if (!m->sequence)
        m->sequence = sym_symbol(symbols, input_name(m, "sequence"), 1, SYM_UNBOUNDED);
    limit_to_cache(m);
}

static size_t string_count(const char *const *strings) {
    size_t count = 0;
    while (strings[count]) count++;
    return count;
}

/* In a component, the shapes of other inputs follow from that of the main one, and of the cache; and what
 * is asked for may concern another component. */
static void adjust_request(const Model *m, InputRequest *input) {
    if (is_input(m, input->name, "attention_mask") || is_input(m, input->name, "position_ids")) {
        input->rank = 0;
        input->optional = true;
    }
    if (is_input(m, input->name, "input_ids") && input->rank == 2 && takes_one_token(m)) {
        input->shape[1] = sym_const(&m->b.program->symbols, 1);
    }
}

/* The inputs called `names`, unless the user gives samples of a whole model, and then those that the
 * user names; where both name one, it has the user's shape. */
static void merge_inputs(Model *m, const char *const *names, bool optional) {
    size_t count = 0;
    bool component = m->request->component != NULL;
    if (!component && !m->request->default_inputs) names += string_count(names);
    m->inputs =
        ARENA_ARRAY(&m->b.program->arena, InputRequest, string_count(names) + m->named_count + 1);
    if (!m->inputs) {
        build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (; *names; names++)
        m->inputs[count++] = (InputRequest){.name = *names, .optional = optional};
    if (model_takes_cache(m)) m->inputs[count++] = (InputRequest){.name = "cache"};
    for (size_t i = 0; i < m->named_count; i++) {
        size_t place = 0;
        while (place < count && strcmp(m->inputs[place].name, m->named[i].name) != 0) place++;
        if (place == count) count++;
        m->inputs[place] = m->named[i];
        if (!component) continue;
        adjust_request(m, &m->inputs[place]);
        m->inputs[place].optional = true; /* it may be for other components */
    }
    m->input_count = count;
}

void model_default_inputs(Model *m, const char *const *names) {
    merge_inputs(m, names, false);
    if (!m->request->component || !m->inputs) return;
    /* what is named besides is for other components, unless it is a leaf of one of these */
    size_t count = string_count(names) + model_takes_cache(m), kept = count;
    for (size_t i = count; i < m->input_count; i++) {
        bool own = false;
        for (size_t j = 0; j < count; j++) own |= is_leaf_of(m->inputs[i].name, m->inputs[j].name);
        if (own) m->inputs[kept++] = m->inputs[i];
    }
    m->input_count = kept;
}

ferry_status model_build(const Checkpoint *checkpoint, const Registry *registry,
                         const ModelRequest *request, InputRequest *inputs, size_t input_count,
                         Program *program, ferry_error *error) {
    static const char *const whole[] = {"input_ids", "attention_mask", NULL};
    static const char *const steps[] = {"input_ids", "attention_mask", "position_ids", NULL};
    const Family *family = registry_find(registry, EXTENSION_FAMILY, checkpoint->model_type);
    if (!family) return unknown_type(checkpoint, registry, error);
    Model m = {.b = build_start(program, error),
               .checkpoint = checkpoint,
               .family = family,
               .registry = registry,
               .request = request,
               .part_prefix = "",
               .input_prefix = "",
               .cache_name = "cache",
               .dtype = request->dtype ? request->dtype : checkpoint_dtype(checkpoint),
               .named = inputs,
               .named_count = input_count};
    config_start(&m);
    merge_inputs(&m, request->component ? steps : whole, request->component != NULL);
    model_name_dimensions(&m);
    program->model_type = family->model_type;
    program->dtype = m.dtype;
    reject_quantized(&m);
    choose_task(&m);
    check_component(&m, registry);
    if (request->component && !family->components && m.task != TASK_CAUSAL_LM) {
        build_fail(&m.b, FERRY_INVALID_ARGUMENT,
                   "%s does not generate: ask for the task text-generation", program->architecture);
    }
    if (build_ok(&m.b)) family->build(&m);
    order_inputs(&m);
    note_omitted_results(&m);
    config_check_unread(&m);
    config_end(&m);
    if (m.weights.failed) program->arena.failed = true;
    ferry_status status = build_finish(&m.b);
    map_free(&m.weights);
    return status;
}
