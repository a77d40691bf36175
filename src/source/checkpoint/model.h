/* What a model family builds with: the configuration, the weights by name, the inputs that were
 * asked for, and the program under construction.
 *
 * Families are written with graph/build.h and the functions below, which share its sticky error: a
 * missing key, weight or option makes every later call do nothing, and is reported once.
 *
 * Configuration. Every key a family understands is read through config_*; when the program is
 * complete, a key that was never read and is not known to be harmless (config_harmless.def) is an
 * error, because it may change the arithmetic. A null value is as good as absent.
 *
 * Parts. A model inside a model (the vision tower of CLIP) has an object of its own in config.json and a
 * prefix of its own for its weights; between model_enter and model_leave, config_* and model_weight
 * mean these. Errors name the object, and its keys are counted like those of the whole.
 *
 * Weights. Names are those of the checkpoint. A family names its base model's weights without the
 * class's prefix ("layers.0.mlp.up_proj.weight"); they are found with or without the prefix, and with
 * the old spellings gamma/beta. Values come back in the dtype of the computation. */
#ifndef SOURCE_MODEL_H
#define SOURCE_MODEL_H

#include "graph/registry.h"
#include "source/checkpoint/checkpoint.h"

typedef enum Task {
#define TASK(name, cli_name, suffix) TASK_##name,
#include "source/checkpoint/tasks.def"
#undef TASK
    TASK_COUNT
} Task;

/* "text-generation", the name for --task, and "ForCausalLM". */
const char *task_name(Task task);
const char *task_suffix(Task task);

/* The task with this name or class suffix; false when there is none. */
bool task_parse(const char *text, Task *out);

typedef struct ferry_family_model Model;

typedef struct Family {
    const char *model_type;
    const char *class_prefix; /* "Llama", of "LlamaForCausalLM" */
    const char *base_prefix;  /* "model": the base model's attribute in a class with a head */
    void (*build)(Model *model);
    unsigned tasks;     /* bit per Task */
    const void *traits; /* the family's own description of this model type; may be NULL */
    const char *const
        *components; /* of a generation split, with NULL behind the last; NULL: prefill
                                      and decode, where there is text generation */
} Family;

/* An input the user asked for. */
typedef struct InputRequest {
    const char *name;
    uint32_t rank; /* 0: the family's own shape */
    const Sym *shape[FERRY_MAX_RANK];
    ferry_dtype dtype; /* FERRY_DTYPE_NONE: the family's own */
    bool optional;     /* nobody asked for it: left out where the model does not take it */
} InputRequest;

/* Told about what a user should know; may be called any number of times. */
typedef void (*ModelNote)(void *context, const char *text);

typedef struct ModelRequest {
    bool has_task;
    Task task;                /* when has_task; else from the class */
    const char *architecture; /* the class; NULL: the one in config.json */
    ferry_dtype dtype; /* of the computation; FERRY_DTYPE_NONE: that of the checkpoint's weights */
    bool use_cache;    /* decoders return their keys and values, when the config says so too */
    bool default_inputs;   /* those of the family, besides the ones that are named */
    const char *component; /* the step of generation ("prefill", "decode"); NULL: the whole model */
    int64_t static_cache;  /* > 0: caches have this length and are written in place */
    bool multi_token;      /* "decode" takes any number of tokens, not one */
    bool keeps_cache; /* the target's programs keep their caches between runs: prompts go through
                              "decode", too, or, of embeddings, through "language_model" alone */
    const char *const *ignored_keys; /* config keys that the user vouches for */
    size_t ignored_key_count;
    ModelNote note; /* may be NULL */
    void *note_context;
} ModelRequest;

/* An object of config.json, and the keys of it that were read. */
typedef struct ConfigScope ConfigScope;

struct ferry_family_model {
    Builder b;
    const Checkpoint *checkpoint;
    const Family *family;
    const Registry *registry;
    const ModelRequest *request;
    ConfigScope *config;     /* the object that config_* read */
    const char *config_path; /* and how errors call it */
    const char *part_prefix; /* of the part's weights, below the base model's; "": none */
    ConfigScope *scopes;     /* all that were read */
    Task task;
    ferry_dtype dtype;
    InputRequest *inputs;
    size_t input_count;
    InputRequest *named; /* the ones among them that the user named */
    size_t named_count;
    Map weights; /* checkpoint name -> Value in the dtype of the computation */
    const Sym *batch, *sequence;
    bool masks_by_type;     /* with a static cache, layers of each type have a mask of their own */
    bool masks_keys;        /* with a static cache, attention_mask is [batch, keys] all the same */
    bool masks_given;       /* masks are whole without a static cache too */
    Value *slots;           /* model_slots */
    int64_t counting_layer; /* the first layer that keeps keys: its counter stands for all */
    const char
        *input_prefix;      /* of input_ids and so on of the part that is built: "" or "decoder_" */
    const char *cache_name; /* of the cache that model_join_cache means */
    const char *encoder_outputs; /* the class that the input of this name is, where there is one */
    const Tree *cache_tree;      /* of the cache that comes in; NULL: none does */
    const char *output_class; /* of what has logits and a cache; NULL: that of the family's kind */
    int64_t visual_layers;    /* so many layers take features of an image besides, as inputs */
};

/* ---- configuration ---- */

bool config_has(Model *m, const char *key);     /* present and not null */
bool config_is_null(Model *m, const char *key); /* present and null */
json_t *config_get(Model *m, const char *key);  /* NULL when absent or null */
int64_t config_int(Model *m, const char *key);  /* required; positive */
int64_t config_int_or(Model *m, const char *key, int64_t otherwise);
int64_t config_size_or(Model *m, const char *key, int64_t otherwise); /* positive when given */
/* `size` times the number `key`, rounded down. */
int64_t config_scaled(Model *m, int64_t size, const char *key, double otherwise);
double config_float_or(Model *m, const char *key, double otherwise);
bool config_bool_or(Model *m, const char *key, bool otherwise);
const char *config_string_or(Model *m, const char *key, const char *otherwise);

/* Does the user vouch that this key does not matter? */
bool config_is_ignored(const Model *m, const char *key);

/* Mark a key as understood without reading it. */
void config_accept(Model *m, const char *key);

/* All keys of the present object, for a program that needs few of them. */
void config_accept_all(Model *m);

/* Fail unless `key` is absent or has this value: for options that are not implemented. */
void config_require_bool(Model *m, const char *key, bool value);
void config_require_string(Model *m, const char *key, const char *value);

/* Read the whole file from here on: before anything else. */
void config_start(Model *m);

/* Fail for every key that was never read and is not harmless, in the file and in the parts. */
void config_check_unread(Model *m);

/* Free what config_start and config_enter made. */
void config_end(Model *m);

/* Read the object `key` of the present one from here on; when it is absent every key has its
 * default. */
void config_enter(Model *m, const char *key);

/* The same of an object that was made for this, called `name` in errors; it belongs to the model from here
 * on. */
void config_enter_made(Model *m, const char *name, json_t *object);

/* Number of labels of a classification head: num_labels, or the size of id2label, or 2. */
int64_t config_labels(Model *m);

/* ---- parts ---- */

/* Where model_enter was called. */
typedef struct ModelPart {
    ConfigScope *config;
    const char *config_path, *part_prefix;
} ModelPart;

/* Go into a part: its configuration is the object `key` (NULL: the present one), its weights are below
 * the first of `prefixes` (ending with NULL) that the checkpoint has a tensor of, else the last. Returns
 * what model_leave takes to go back. */
ModelPart model_enter(Model *m, const char *key, const char *const *prefixes);
void model_leave(Model *m, ModelPart outer);

/* ---- weights ---- */

/* A tensor of the base model, of exactly this shape; `name` is printf-formatted. */
Value *model_weight(Model *m, uint32_t rank, const int64_t *shape, const char *name, ...)
    __attribute__((format(printf, 4, 5)));

/* The same as it is in the file, to be taken apart and put together; NULL after a failure. What is made
 * of it becomes a value in the dtype of the computation (or in `dtype`) with model_made_weight. */
const Recipe *model_recipe(Model *m, uint32_t rank, const int64_t *shape, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
Value *model_made_weight(Model *m, const Recipe *recipe, ferry_dtype dtype, const char *name, ...)
    __attribute__((format(printf, 4, 5)));

/* Short forms for the common ranks. */
Value *model_vector(Model *m, int64_t size, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
Value *model_matrix(Model *m, int64_t rows, int64_t columns, const char *name, ...)
    __attribute__((format(printf, 4, 5)));

/* The size of a dimension of a tensor of the base model, for what the configuration may not say. */
int64_t model_size(Model *m, uint32_t dim, const char *name);

/* True when the base model (or the head, for full names) has a tensor with this name. */
bool model_has(Model *m, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* x W^T + bias with weights "<name>.weight" [out, in] and, when `bias`, "<name>.bias" [out]. The in
 * size is that of x. */
Value *model_linear(Model *m, Value *x, int64_t out, bool bias, const char *name, ...)
    __attribute__((format(printf, 5, 6)));

/* LayerNorm over the last dimension with "<name>.weight" and, when `bias`, "<name>.bias". */
Value *model_layer_norm(Model *m, Value *x, bool bias, double eps, const char *name, ...)
    __attribute__((format(printf, 5, 6)));

/* Weights of a head are outside the base model: these take the full name. */
Value *model_head_weight(Model *m, uint32_t rank, const int64_t *shape, const char *name);
Value *model_head_linear(Model *m, Value *x, int64_t out, bool bias, const char *name);
Value *model_head_layer_norm(Model *m, Value *x, bool bias, double eps, const char *name);

/* The output projection [vocabulary, features] called `name`, which may be tied to `tied` (the input
 * embedding): when the file lacks it, or holds the same bytes, the embedding itself serves, whatever
 * tie_word_embeddings says; different bytes are used as they are, with a note when the flag claims
 * that they are tied. Absent and tie_word_embeddings false is an error. */
Value *model_output_embedding(Model *m, const char *name, Value *tied);

/* The same, where absence always means tied. */
Value *model_tied_weight(Model *m, const char *name, Value *tied);

/* ---- inputs, outputs, structure ---- */

/* The inputs (ending with NULL) of a program for which the user names none: before any other. Without
 * this call they are input_ids and attention_mask. */
void model_default_inputs(Model *m, const char *const *names);

/* Is this component asked for? */
bool model_is_component(const Model *m, const char *name);

/* Set m->batch and m->sequence, unless they are known: as the user's own shape of the main input has them,
 * else symbols of that name. A family calls this when it changes m->input_prefix. */
void model_name_dimensions(Model *m);

/* The input called `name`, or NULL when it was not asked for. `shape` is the family's own. */
Value *model_input(Model *m, const char *name, ferry_dtype dtype, uint32_t rank,
                   const Sym *const *shape);

/* A leaf of the input called `name`, which is asked for as a whole: "cache.layers" and so on. */
Value *model_input_leaf(Model *m, const char *name, const char *leaf, ferry_dtype dtype,
                        uint32_t rank, const Sym *const *shape);

/* input_ids embedded by `table`, or inputs_embeds [batch, sequence, features]; also sets m->batch and
 * m->sequence from it. `*ids` (may be NULL) receives input_ids or NULL. */
Value *model_embed_inputs(Model *m, Value *table, Value **ids);

/* [batch or 1, sequence] int64: position_ids when given, else 0, 1, 2, ... */
Value *model_positions(Model *m);

/* The input `name` [batch, keys], a mask of padding, as bool; NULL when it was not asked for. */
Value *model_mask_input(Model *m, const char *name, const Sym *keys);

/* attention_mask [batch, keys] as bool, or NULL when it was not asked for, or when the caller of a step
 * with a static cache gives whole masks. */
Value *model_padding_mask(Model *m);

/* Does the caller give masks [batch, 1, sequence, keys], which are all there is to know? So it is in a step
 * with a static cache, and where the model says so. */
bool model_masks_whole(const Model *m);

/* Say something to the user. */
void model_note(Model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The outputs so far are the fields of the ModelOutput class `type` (with its module, or without when that
 * is modeling_outputs: "CausalLMOutputWithPast"), `keys` in order; a field with several leaves (a cache) is in `trees`, a
 * NULL there is a plain tensor. */
void model_output_tree(Model *m, const char *type, const char *const *keys,
                       const Tree *const *trees, uint32_t count);

/* The only output: the field `key` of the ModelOutput class `type`. */
void model_output_one(Model *m, const char *type, const char *key, Value *value);

/* x after the activation called `name` in the configuration (ACT2FN of Transformers). */
Value *model_activation(Model *m, Value *x, const char *name);

/* ---- families ---- */

/* Register the built-in families. */
void families_register(Registry *registry);

/* The names of the components that the checkpoint's model is split into for generation, with NULL behind
 * the last. UNSUPPORTED for a model type that does not generate. */
ferry_status model_components(const Checkpoint *checkpoint, const Registry *registry,
                              const char *const **out, ferry_error *error);

/* Build the program of `checkpoint` with a registered family. `inputs` come from the user; their symbols
 * live in `program`, which the caller made. UNSUPPORTED for an unknown model type names the nearest known one. */
ferry_status model_build(const Checkpoint *checkpoint, const Registry *registry,
                         const ModelRequest *request, InputRequest *inputs, size_t input_count,
                         Program *program, ferry_error *error);

#endif
