/* Plug-ins: shared libraries that teach ferry model types, operators, fixes and lowerings.
 *
 * A plug-in is a shared object, written in C or anything that speaks its calling convention, that
 * defines one function:
 *
 *     #include <ferry/plugin.h>
 *
 *     FERRY_PLUGIN
 *     ferry_status ferry_plugin_register(ferry_registry *registry, ferry_error *error) {
 *         ferry_register_translation(registry, "my_ops.scale.default", translate_scale);
 *         return FERRY_OK;
 *     }
 *
 * and is given as `ferry export --plugin PATH` or in ferry_export_config.plugins. What ferry has built
 * in is registered in the same way, before any plug-in: the last one registered under a name counts.
 *
 * Values, nodes and sizes belong to the program and stay valid as long as it is being exported.
 * Builders have a sticky error: after the first failure every call does nothing and returns something
 * harmless, so code that builds checks nothing; ferry reports the first failure, with the module it
 * happened in. Functions never return NULL where a comment does not say so. */
#ifndef FERRY_PLUGIN_H
#define FERRY_PLUGIN_H

#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a plug-in that was built with this header would no longer work. */
#define FERRY_PLUGIN_ABI 1

/* Stands before the definition of ferry_plugin_register. */
#ifdef __cplusplus
#define FERRY_PLUGIN                                                                               \
    extern "C" {                                                                                   \
    FERRY_API extern const int ferry_plugin_abi;                                                   \
    const int ferry_plugin_abi = FERRY_PLUGIN_ABI;                                                 \
    }                                                                                              \
    FERRY_API
#else
#define FERRY_PLUGIN                                                                               \
    FERRY_API const int ferry_plugin_abi = FERRY_PLUGIN_ABI;                                       \
    FERRY_API
#endif

typedef struct ferry_registry ferry_registry;
typedef struct ferry_program ferry_program;
typedef struct ferry_node ferry_node;
typedef struct ferry_value ferry_value;     /* a tensor */
typedef struct ferry_size ferry_size;       /* a symbolic integer: a number, or an expression */
typedef struct ferry_builder ferry_builder; /* adds nodes to a program */
typedef struct ferry_call ferry_call;       /* a call of a torch operator */
typedef struct ferry_onnx ferry_onnx;       /* an ONNX graph being written */
typedef struct ferry_family_model ferry_family_model; /* a checkpoint being built */

/* What a plug-in defines. */
FERRY_API ferry_status ferry_plugin_register(ferry_registry *registry, ferry_error *error);

/* ---- loading ---- */

/* Load shared objects in this order. They run code: load only what you trust. The plug-ins must stay
 * loaded until the exports that were made with them are freed. */
FERRY_API ferry_status ferry_plugins_load(const char *const *paths, size_t count,
                                          ferry_plugins **out, ferry_error *error);
FERRY_API void ferry_plugins_free(ferry_plugins *plugins);

/* ---- registering ----
 *
 * Names are copied. Operations go by their full names in `ferry ops`, "aten::gelu". A name that is not
 * an operation, or a target that takes no lowerings, makes loading fail with INVALID_ARGUMENT. */

/* What a call of the torch operator "namespace.name.overload" becomes, for programs from a .pt2: also
 * for operators that torch does not have, but a library of yours adds. */
typedef void (*ferry_translate)(ferry_call *call);
FERRY_API void ferry_register_translation(ferry_registry *registry, const char *torch_operator,
                                          ferry_translate translate);

/* What an operation with one result becomes where a target does not take it. */
typedef ferry_value *(*ferry_rewrite)(ferry_builder *builder, const ferry_node *node);
FERRY_API void ferry_register_decomposition(ferry_registry *registry, const char *operation,
                                            ferry_rewrite decompose);

/* A node fix sees every node with one result before the program is made fit for the target. It returns
 * what replaces the result, or NULL when the node is not its business; the first that replaces a node
 * ends its turn. `target`: "onnx", "dynamo", ..., or NULL for all. `name` is for messages. */
FERRY_API void ferry_register_node_fix(ferry_registry *registry, const char *target,
                                       const char *name, ferry_rewrite fix);

/* A program fix runs after the node fixes, on the whole. */
typedef ferry_status (*ferry_fix_program)(ferry_program *program, ferry_error *error);
FERRY_API void ferry_register_program_fix(ferry_registry *registry, const char *target,
                                          const char *name, ferry_fix_program fix);

/* What an operation becomes in ONNX, from the opset `since` on (0: any). */
typedef void (*ferry_lower_onnx)(ferry_onnx *onnx, const ferry_node *node);
FERRY_API void ferry_register_onnx_lowering(ferry_registry *registry, const char *operation,
                                            int since, ferry_lower_onnx lower);

/* A model type that is built from its checkpoint. */
typedef struct ferry_family_definition {
    const char *model_type;   /* "model_type" in config.json */
    const char *class_prefix; /* "Llama", of "LlamaForCausalLM" */
    const char *base_prefix;  /* "model": the base model's attribute in a class with a head */
    const char *tasks[8];     /* "feature-extraction", ...; ends with NULL */
    void (*build)(ferry_family_model *model);
} ferry_family_definition;
FERRY_API void ferry_register_family(ferry_registry *registry,
                                     const ferry_family_definition *family);

/* ---- reading nodes and values ---- */

typedef enum ferry_arg_kind {
    FERRY_ARG_NONE,
    FERRY_ARG_TENSOR,
    FERRY_ARG_TENSORS,
    FERRY_ARG_SIZE,
    FERRY_ARG_SIZES,
    FERRY_ARG_FLOAT,
    FERRY_ARG_BOOL,
    FERRY_ARG_STRING,
    FERRY_ARG_DTYPE,
} ferry_arg_kind;

/* An argument of an operation. */
typedef struct ferry_arg {
    ferry_arg_kind kind;
    union {
        ferry_value *tensor;
        ferry_value *const *tensors;
        const ferry_size *size;
        const ferry_size *const *sizes;
        double number;
        bool boolean;
        const char *string;
        ferry_dtype dtype;
    } as;
    size_t count; /* of tensors or sizes */
} ferry_arg;

static inline ferry_arg ferry_arg_none(void) {
    ferry_arg arg = {FERRY_ARG_NONE, {NULL}, 0};
    return arg;
}
static inline ferry_arg ferry_arg_tensor(ferry_value *value) {
    ferry_arg arg = {FERRY_ARG_TENSOR, {NULL}, 0};
    arg.as.tensor = value;
    return arg;
}
static inline ferry_arg ferry_arg_size(const ferry_size *size) {
    ferry_arg arg = {FERRY_ARG_SIZE, {NULL}, 0};
    arg.as.size = size;
    return arg;
}
static inline ferry_arg ferry_arg_sizes(const ferry_size *const *sizes, size_t count) {
    ferry_arg arg = {FERRY_ARG_SIZES, {NULL}, count};
    arg.as.sizes = sizes;
    return arg;
}
static inline ferry_arg ferry_arg_float(double number) {
    ferry_arg arg = {FERRY_ARG_FLOAT, {NULL}, 0};
    arg.as.number = number;
    return arg;
}
static inline ferry_arg ferry_arg_dtype(ferry_dtype dtype) {
    ferry_arg arg = {FERRY_ARG_DTYPE, {NULL}, 0};
    arg.as.dtype = dtype;
    return arg;
}
static inline ferry_arg ferry_arg_bool(bool boolean) {
    ferry_arg arg = {FERRY_ARG_BOOL, {NULL}, 0};
    arg.as.boolean = boolean;
    return arg;
}

/* "aten::gelu", and the module that the node belongs to, such as "encoder.layer.0". */
FERRY_API const char *ferry_node_operation(const ferry_node *node);
FERRY_API const char *ferry_node_scope(const ferry_node *node);

/* An argument by its name in the operation's schema; FERRY_ARG_NONE when it is absent. */
FERRY_API ferry_arg ferry_node_arg(const ferry_node *node, const char *name);
FERRY_API ferry_value *ferry_node_result(const ferry_node *node, size_t index);

FERRY_API const char *ferry_value_name(const ferry_value *value);
FERRY_API ferry_dtype ferry_value_dtype(const ferry_value *value);
FERRY_API size_t ferry_value_rank(const ferry_value *value);
FERRY_API const ferry_size *ferry_value_size(const ferry_value *value, size_t dim);

/* Does the size stand for one number only? Then it goes to `*number` (which may be NULL). */
FERRY_API bool ferry_size_is_number(const ferry_size *size, int64_t *number);

/* ---- building ---- */

/* Any operation: arguments in the order of its schema, missing ones with their defaults. The result
 * is the first one; the others follow by index. */
FERRY_API ferry_value *ferry_build(ferry_builder *builder, const char *operation,
                                   const ferry_arg *args, size_t count);
FERRY_API ferry_value *ferry_build_result(ferry_builder *builder, ferry_value *first, size_t index);

/* A constant tensor; the bytes, in row-major order, are copied. */
FERRY_API ferry_value *ferry_build_constant(ferry_builder *builder, const char *name,
                                            ferry_dtype dtype, size_t rank, const int64_t *shape,
                                            const void *bytes);

/* Short forms. */
FERRY_API ferry_value *ferry_build_unary(ferry_builder *builder, const char *operation,
                                         ferry_value *x);
FERRY_API ferry_value *ferry_build_binary(ferry_builder *builder, const char *operation,
                                          ferry_value *x, ferry_value *y);
FERRY_API ferry_value *ferry_build_scalar(ferry_builder *builder, const char *operation,
                                          ferry_value *x, double scalar);

/* Arithmetic on sizes: '+', '-', '*', '/' (rounding down), '%'. */
FERRY_API const ferry_size *ferry_build_number(ferry_builder *builder, int64_t number);
FERRY_API const ferry_size *ferry_build_size(ferry_builder *builder, const ferry_size *x,
                                             char operation, const ferry_size *y);

/* Fail, unless the builder has failed before. Returns a value that later calls ignore. */
FERRY_API ferry_value *ferry_build_fail(ferry_builder *builder, ferry_status status,
                                        const char *message);

/* ---- programs, for program fixes ---- */

/* The node after `node`, or the first for NULL; NULL at the end. */
FERRY_API ferry_node *ferry_program_next(const ferry_program *program, const ferry_node *node);

FERRY_API size_t ferry_program_output_count(const ferry_program *program);
FERRY_API const char *ferry_program_output_name(const ferry_program *program, size_t index);
FERRY_API ferry_value *ferry_program_output(const ferry_program *program, size_t index);

/* Make `value` what the program returns under this index. */
FERRY_API void ferry_program_set_output(ferry_program *program, size_t index, ferry_value *value);

/* Build before `node`, or at the end for NULL: `build` is called once with a builder. */
typedef void (*ferry_build_callback)(ferry_builder *builder, void *context);
FERRY_API ferry_status ferry_program_build(ferry_program *program, ferry_node *node,
                                           ferry_build_callback build, void *context,
                                           ferry_error *error);

/* Every node and output that reads `from` reads `to`. */
FERRY_API void ferry_program_replace(ferry_program *program, const ferry_value *from,
                                     ferry_value *to);

/* ---- calls of torch operators, for translations ---- */

FERRY_API ferry_builder *ferry_call_builder(ferry_call *call);

/* Arguments by their names in the operator's schema. A tensor is required. */
FERRY_API bool ferry_call_has(ferry_call *call, const char *name); /* present, not None */
FERRY_API ferry_value *ferry_call_tensor(ferry_call *call, const char *name);
FERRY_API const ferry_size *ferry_call_size(ferry_call *call, const char *name, int64_t otherwise);
FERRY_API int64_t ferry_call_int(ferry_call *call, const char *name, int64_t otherwise);
FERRY_API double ferry_call_float(ferry_call *call, const char *name, double otherwise);
FERRY_API bool ferry_call_bool(ferry_call *call, const char *name, bool otherwise);
FERRY_API const char *ferry_call_string(ferry_call *call, const char *name, const char *otherwise);

/* Set a result; every result must be set. */
FERRY_API void ferry_call_result(ferry_call *call, size_t index, ferry_value *value);

/* ---- writing ONNX, for lowerings ---- */

typedef enum ferry_onnx_attr_kind {
    FERRY_ONNX_INT,
    FERRY_ONNX_FLOAT,
    FERRY_ONNX_STRING,
    FERRY_ONNX_INTS,
} ferry_onnx_attr_kind;

typedef struct ferry_onnx_attr {
    const char *name;
    ferry_onnx_attr_kind kind;
    int64_t integer;
    double number;
    const char *string;
    const int64_t *integers;
    size_t count; /* of integers */
} ferry_onnx_attr;

/* The name of a tensor argument in the graph; NULL when it is absent. */
FERRY_API const char *ferry_onnx_input(ferry_onnx *onnx, const ferry_node *node, const char *name);

/* The node becomes one ONNX node with its results. `domain`: "" for ONNX's own, else it is imported in
 * `version`. NULL among the inputs stands for an absent one. */
FERRY_API void ferry_onnx_emit(ferry_onnx *onnx, const ferry_node *node, const char *domain,
                               int version, const char *op_type, const char *const *inputs,
                               size_t input_count, const ferry_onnx_attr *attrs, size_t attr_count);

/* ---- building a model from its checkpoint, for families ---- */

FERRY_API ferry_builder *ferry_family_builder(ferry_family_model *model);

/* Keys of config.json. A key that nothing reads, and that is not known to be harmless, fails the
 * export. The first is required and positive. */
FERRY_API int64_t ferry_config_int(ferry_family_model *model, const char *key);
FERRY_API int64_t ferry_config_int_or(ferry_family_model *model, const char *key,
                                      int64_t otherwise);
FERRY_API double ferry_config_float_or(ferry_family_model *model, const char *key,
                                       double otherwise);
FERRY_API bool ferry_config_bool_or(ferry_family_model *model, const char *key, bool otherwise);
FERRY_API const char *ferry_config_string_or(ferry_family_model *model, const char *key,
                                             const char *otherwise);

/* A weight of the base model, of exactly this shape, in the dtype of the computation. */
FERRY_API ferry_value *ferry_family_weight(ferry_family_model *model, const char *name, size_t rank,
                                           const int64_t *shape);

/* x W^T + b with "<name>.weight" [out, in] and, when `bias`, "<name>.bias" [out]. */
FERRY_API ferry_value *ferry_family_linear(ferry_family_model *model, ferry_value *x, int64_t out,
                                           bool bias, const char *name);

/* LayerNorm over the last dimension, with "<name>.weight" and, when `bias`, "<name>.bias". */
FERRY_API ferry_value *ferry_family_layer_norm(ferry_family_model *model, ferry_value *x, bool bias,
                                               double eps, const char *name);

/* The task, "text-generation", that the program is for: one of those registered. */
FERRY_API const char *ferry_family_task(const ferry_family_model *model);

/* The same as ferry_family_linear for a head, outside the base model: `name` is the full one. */
FERRY_API ferry_value *ferry_family_head_linear(ferry_family_model *model, ferry_value *x,
                                                int64_t out, bool bias, const char *name);

/* x after an activation by its name in Transformers, "gelu_new". */
FERRY_API ferry_value *ferry_family_activation(ferry_family_model *model, ferry_value *x,
                                               const char *name);

/* input_ids [batch, sequence] int64 looked up in `table` [vocabulary, features], or inputs_embeds. */
FERRY_API ferry_value *ferry_family_embed(ferry_family_model *model, ferry_value *table);

/* attention_mask [batch, sequence] as bool; NULL when the program is exported without. */
FERRY_API ferry_value *ferry_family_padding_mask(ferry_family_model *model);

/* The model returns the ModelOutput class `type`, "BaseModelOutput", with the field `key`. */
FERRY_API void ferry_family_output(ferry_family_model *model, const char *type, const char *key,
                                   ferry_value *value);

#ifdef __cplusplus
}
#endif
#endif
