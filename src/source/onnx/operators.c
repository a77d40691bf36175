/* The operators that are understood, and what their functions share: inputs, outputs, dimensions. */
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <string.h>

static const OnnxOperator operators[] = {
    {"Abs", read_unary, OP_ABS, "", 1, 1, 0},
    {"Add", read_binary, OP_ADD, "", 2, 2, 0},
    {"And", read_logical, OP_AND, "", 2, 2, 0},
    {"ArgMax", read_argmax, OP_ARGMAX, "axis keepdims select_last_index", 1, 1, 0},
    {"Atan", read_unary, OP_ATAN, "", 1, 1, 0},
    {"AveragePool", read_pool, OP_AVG_POOL,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", 1, 1, 0},
    {"BatchNormalization", read_batch_norm, OP_BATCH_NORM, "epsilon momentum training_mode", 5, 5,
     0},
    {"BitwiseAnd", read_bitwise, OP_AND, "", 2, 2, 18},
    {"BitwiseNot", read_bitwise_not, OP_NOT, "", 1, 1, 18},
    {"BitwiseOr", read_bitwise, OP_OR, "", 2, 2, 18},
    {"Cast", read_cast, OP_TO, "to saturate round_mode", 1, 1, 0},
    {"CastLike", read_cast_like, OP_TO, "saturate round_mode", 2, 2, 15},
    {"Ceil", read_unary, OP_CEIL, "", 1, 1, 0},
    {"Clip", read_clip, OP_CLAMP, "", 1, 3, 0},
    {"Concat", read_concat, OP_CAT, "axis", 1, 0, 0},
    {"Constant", read_constant, OP_FULL, "value value_float value_floats value_int value_ints", 0,
     0, 0},
    {"ConstantOfShape", read_constant_of_shape, OP_FULL, "value", 1, 1, 0},
    {"Conv", read_convolution, OP_CONVOLUTION, "auto_pad dilations group kernel_shape pads strides",
     2, 3, 0},
    {"ConvTranspose", read_convolution, OP_CONVOLUTION,
     "auto_pad dilations group kernel_shape output_padding pads strides", 2, 3, 0},
    {"Cos", read_unary, OP_COS, "", 1, 1, 0},
    {"CumSum", read_cumsum, OP_CUMSUM, "exclusive reverse", 2, 2, 0},
    {"Div", read_binary, OP_DIV, "", 2, 2, 0},
    {"Elu", read_alpha, OP_ELU, "alpha", 1, 1, 0},
    {"Equal", read_binary, OP_EQ, "", 2, 2, 0},
    {"Erf", read_unary, OP_ERF, "", 1, 1, 0},
    {"Exp", read_unary, OP_EXP, "", 1, 1, 0},
    {"Expand", read_expand, OP_EXPAND, "", 2, 2, 0},
    {"Flatten", read_flatten, OP_VIEW, "axis", 1, 1, 0},
    {"Floor", read_unary, OP_FLOOR, "", 1, 1, 0},
    {"Gather", read_gather, OP_INDEX_SELECT, "axis", 2, 2, 0},
    {"GatherElements", read_gather_elements, OP_GATHER, "axis", 2, 2, 0},
    {"GatherND", read_gather_nd, OP_INDEX_SELECT, "batch_dims", 2, 2, 0},
    {"Gelu", read_gelu, OP_GELU, "approximate", 1, 1, 20},
    {"Gemm", read_gemm, OP_LINEAR, "alpha beta transA transB", 2, 3, 0},
    {"Greater", read_binary, OP_GT, "", 2, 2, 0},
    {"GreaterOrEqual", read_binary, OP_GE, "", 2, 2, 0},
    {"GridSample", read_grid_sample, OP_GRID_SAMPLER, "align_corners mode padding_mode", 2, 2, 16},
    {"Identity", read_identity, OP_TO, "", 1, 1, 0},
    {"InstanceNormalization", read_instance_norm, OP_GROUP_NORM, "epsilon", 3, 3, 0},
    {"IsNaN", read_is_nan, OP_NE, "", 1, 1, 0},
    {"LayerNormalization", read_norm, OP_LAYER_NORM, "axis epsilon stash_type", 2, 3, 17},
    {"LeakyRelu", read_alpha, OP_LEAKY_RELU, "alpha", 1, 1, 0},
    {"Less", read_binary, OP_LT, "", 2, 2, 0},
    {"LessOrEqual", read_binary, OP_LE, "", 2, 2, 0},
    {"Log", read_unary, OP_LOG, "", 1, 1, 0},
    {"MatMul", read_matmul, OP_MATMUL, "", 2, 2, 0},
    {"Max", read_variadic, OP_MAXIMUM, "", 1, 0, 0},
    {"MaxPool", read_pool, OP_MAX_POOL, "auto_pad ceil_mode dilations kernel_shape pads strides", 1,
     1, 0},
    {"Min", read_variadic, OP_MINIMUM, "", 1, 0, 0},
    {"Mod", read_mod, OP_DIV, "fmod", 2, 2, 0},
    {"Mul", read_binary, OP_MUL, "", 2, 2, 0},
    {"Neg", read_unary, OP_NEG, "", 1, 1, 0},
    {"NonZero", read_nonzero, OP_NONZERO, "", 1, 1, 0},
    {"Not", read_not, OP_NOT, "", 1, 1, 0},
    {"Or", read_logical, OP_OR, "", 2, 2, 0},
    {"Pad", read_pad, OP_PAD, "mode", 2, 4, 0},
    {"Pow", read_pow, OP_POW_SCALAR, "", 2, 2, 0},
    {"RMSNormalization", read_norm, OP_RMS_NORM, "axis epsilon stash_type", 2, 2, 23},
    {"Range", read_range, OP_ARANGE, "", 3, 3, 0},
    {"Reciprocal", read_unary, OP_RECIPROCAL, "", 1, 1, 0},
    {"ReduceMax", read_reduce, OP_AMAX, "axes keepdims noop_with_empty_axes", 1, 2, 0},
    {"ReduceMean", read_reduce, OP_MEAN, "axes keepdims noop_with_empty_axes", 1, 2, 0},
    {"ReduceMin", read_reduce, OP_AMIN, "axes keepdims noop_with_empty_axes", 1, 2, 0},
    {"ReduceProd", read_product, OP_PROD, "axes keepdims noop_with_empty_axes", 1, 2, 0},
    {"ReduceSum", read_reduce, OP_SUM, "axes keepdims noop_with_empty_axes", 1, 2, 0},
    {"Relu", read_unary, OP_RELU, "", 1, 1, 0},
    {"Reshape", read_reshape, OP_VIEW, "allowzero", 2, 2, 0},
    {"Resize", read_resize, OP_UPSAMPLE_NEAREST,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside mode "
     "nearest_mode",
     1, 4, 18},
    {"RotaryEmbedding", read_rotary, OP_ROTARY_EMBEDDING,
     "interleaved num_heads rotary_embedding_dim", 3, 4, 23},
    {"Round", read_unary, OP_ROUND, "", 1, 1, 0},
    {"ScatterElements", read_scatter_elements, OP_SCATTER, "axis reduction", 3, 3, 16},
    {"ScatterND", read_scatter_nd, OP_INDEX_PUT, "reduction", 3, 3, 16},
    {"Shape", read_shape, OP_VIEW, "start end", 1, 1, 0},
    {"Sigmoid", read_unary, OP_SIGMOID, "", 1, 1, 0},
    {"Sign", read_unary, OP_SIGN, "", 1, 1, 0},
    {"Sin", read_unary, OP_SIN, "", 1, 1, 0},
    {"Size", read_size, OP_VIEW, "", 1, 1, 0},
    {"Slice", read_slice, OP_SLICE, "", 3, 5, 0},
    {"Softmax", read_softmax, OP_SOFTMAX, "axis", 1, 1, 0},
    {"Softplus", read_softplus, OP_SOFTPLUS, "", 1, 1, 0},
    {"Split", read_split, OP_SPLIT, "axis num_outputs", 1, 2, 0},
    {"Sqrt", read_unary, OP_SQRT, "", 1, 1, 0},
    {"Squeeze", read_squeeze, OP_SQUEEZE, "", 1, 2, 0},
    {"Sub", read_binary, OP_SUB, "", 2, 2, 0},
    {"Sum", read_variadic, OP_ADD, "", 1, 0, 0},
    {"Tanh", read_unary, OP_TANH, "", 1, 1, 0},
    {"Tile", read_tile, OP_EXPAND, "", 2, 2, 0},
    {"TopK", read_topk, OP_TOPK, "axis largest sorted", 2, 2, 0},
    {"Transpose", read_transpose, OP_PERMUTE, "perm", 1, 1, 0},
    {"Trilu", read_trilu, OP_WHERE, "upper", 1, 2, 14},
    {"Unsqueeze", read_unsqueeze, OP_UNSQUEEZE, "", 2, 2, 0},
    {"Where", read_where, OP_WHERE, "", 3, 3, 0},
    {"Xor", read_logical, OP_NE, "", 2, 2, 0},
};

/* ---- inputs ---- */

Value *import_tensor(Import *im, const OnnxNode *node, uint32_t i) {
    OnnxValue *input = import_input(node, i);
    return input ? known_tensor(im, input) : NULL;
}

const Sym *import_symbol(Import *im, int64_t lower) {
    SymTable *symbols = &im->b.program->symbols;
    const char *name = "";
    for (size_t k = im->b.program->sources.count; !*name || sym_lookup(symbols, name); k++) {
        name = arena_format(&im->arena, "u%zu", k);
    }
    return sym_symbol(symbols, name, lower, SYM_UNBOUNDED);
}

const Known *import_data_dependent(Import *im, OnnxValue *input) {
    Value *value = known_tensor(im, input), *item = value;
    bool is_integer = value->dtype == FERRY_I64 || value->dtype == FERRY_I32;
    bool has_items = value->rank == 1 && sym_is_const(value->shape[0]) &&
                     value->shape[0]->value <= KNOWN_MAX_COUNT;
    if (!import_ok(im) || !is_integer || (value->rank && !has_items)) return NULL;
    uint32_t count = value->rank ? (uint32_t)value->shape[0]->value : 1;
    Known *known = known_make(im, value->dtype, value->rank == 0, count);
    for (uint32_t i = 0; known && i < count; i++) {
        if (value->rank) item = build_select(&im->b, value, 0, i);
        known->items[i] = import_symbol(im, INT64_MIN);
        VEC_PUSH(&im->b.program->sources, (SymSource){known->items[i], item, -1});
    }
    input->known = known;
    return known;
}

const Known *import_sizes(Import *im, const OnnxNode *node, uint32_t i) {
    OnnxValue *input = import_input(node, i);
    const Known *known = input ? input->known : NULL;
    if (known_is_integer(known)) return known;
    if (input && !known) known = import_data_dependent(im, input);
    if (known_is_integer(known)) return known;
    import_unsupported(im, "input %u (\"%s\") is no short vector of whole numbers", i,
                       i < node->input_count ? node->inputs[i].text : "");
    return NULL;
}

bool import_constants(Import *im, const OnnxNode *node, uint32_t i, int64_t *out, uint32_t *count) {
    int64_t values[KNOWN_MAX_COUNT];
    const Known *known = import_sizes(im, node, i);
    if (!known) return false;
    if (!known_constants(known, values))
        return import_unsupported(im, "input %u must be constant", i);
    if (known->count > FERRY_MAX_RANK) {
        return import_unsupported(im, "input %u has %u numbers; at most %d are supported", i,
                                  known->count, FERRY_MAX_RANK);
    }
    *count = known->count;
    memcpy(out, values, known->count * sizeof *out);
    return true;
}

bool import_scalar(Import *im, const OnnxNode *node, uint32_t i, Arg *out) {
    const OnnxValue *input = import_input(node, i);
    unsigned char bytes[sizeof(double)];
    double number;
    if (!input) return false;
    if (known_is_integer(input->known) && input->known->count == 1 && input->known->items[0]) {
        *out = arg_sym(input->known->items[0]);
        return true;
    }
    const Recipe *recipe = input->recipe;
    if (!recipe || recipe_count(recipe) != 1 || !ferry_dtype_is_float(recipe->dtype)) return false;
    recipe_read(recipe, 0, 1, bytes);
    dtype_convert(recipe->dtype, bytes, FERRY_F64, &number, 1);
    const Known *whole = known_of_recipe(im, recipe);
    *out = whole ? arg_sym(whole->items[0]) : arg_float(number);
    return true;
}

bool import_axis(Import *im, int64_t axis, uint32_t rank, uint32_t *out) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        return import_bad(im, "axis %lld is outside a tensor of rank %u", (long long)axis, rank);
    }
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool import_axes(Import *im, const OnnxNode *node, uint32_t i, uint32_t rank, unsigned *out,
                 bool *given) {
    int64_t axes[FERRY_MAX_RANK];
    uint32_t count = 0, axis;
    const OnnxAttr *attr = import_attr(im, node, "axes", ONNX_INTS);
    *out = 0;
    *given = import_input(node, i) || attr;
    if (import_input(node, i)) {
        if (!import_constants(im, node, i, axes, &count)) return false;
    } else if (attr && attr->count <= FERRY_MAX_RANK) {
        for (; count < attr->count; count++) axes[count] = (int64_t)attr->list[count];
    } else if (attr) {
        return import_bad(im, "more than %d axes", FERRY_MAX_RANK);
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!import_axis(im, axes[k], rank, &axis)) return false;
        if (*out & 1u << axis) return import_bad(im, "axis %u is given twice", axis);
        *out |= 1u << axis;
    }
    *given = *given && count > 0;
    return import_ok(im);
}

/* ---- outputs ---- */

static void give(Import *im, const OnnxNode *node, uint32_t i, OnnxValue value) {
    OnnxValue *made = ARENA_NEW(&im->arena, OnnxValue);
    if (i >= node->output_count || !import_ok(im)) return;
    value.name = node->outputs[i].text;
    if (!made) {
        import_memory(im);
        return;
    }
    *made = value;
    node->outputs[i].value = made;
}

void import_give(Import *im, const OnnxNode *node, uint32_t i, Value *value) {
    give(im, node, i, (OnnxValue){.value = value});
}

void import_give_known(Import *im, const OnnxNode *node, uint32_t i, const Known *known) {
    if (known) give(im, node, i, (OnnxValue){.known = known});
}

void import_give_same(const OnnxNode *node, OnnxValue *value) {
    if (node->output_count) node->outputs[0].value = value;
}

static void register_outputs(Import *im, const OnnxNode *node) {
    for (uint32_t i = 0; i < node->output_count && import_ok(im); i++) {
        const OnnxName *output = &node->outputs[i];
        if (!*output->text) continue;
        if (map_find(&im->values, output->text)) {
            import_bad(im, "makes \"%s\", which there is already", output->text);
        } else if (!output->value) {
            import_unsupported(im, "output %u (\"%s\") is not supported", i, output->text);
        } else {
            map_put(&im->values, output->text, output->value);
        }
    }
}

/* ---- nodes ---- */

static const OnnxOperator *find_operator(Import *im, const OnnxNode *node) {
    bool standard = !*node->domain || strcmp(node->domain, "ai.onnx") == 0;
    for (size_t i = 0; standard && i < sizeof operators / sizeof *operators; i++) {
        const OnnxOperator *rule = &operators[i];
        if (strcmp(rule->type, node->op_type) == 0 && im->opset >= rule->since) return rule;
    }
    import_unsupported(im, "there is no support for the operator %s of domain \"%s\" at opset %lld",
                       node->op_type, *node->domain ? node->domain : "ai.onnx",
                       (long long)im->opset);
    return NULL;
}

/* True when `word` is one of the words of `list`. */
static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *next = list; *next; next += strspn(next, " ")) {
        size_t size = strcspn(next, " ");
        if (size == length && memcmp(next, word, length) == 0) return true;
        next += size;
    }
    return false;
}

static bool check_attributes(Import *im, const OnnxNode *node) {
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const char *name = node->attrs[i].name;
        if (has_word(node->rule->attributes, name)) continue;
        return import_unsupported(im, "the attribute \"%s\" is not supported", name);
    }
    return true;
}

static bool check_inputs(Import *im, const OnnxNode *node) {
    const OnnxOperator *rule = node->rule;
    for (uint32_t i = 0; i < rule->least; i++) {
        if (!import_input(node, i)) return import_bad(im, "input %u is missing", i);
    }
    if (rule->most && node->input_count > rule->most) {
        return import_bad(im, "expected at most %u inputs, found %u", rule->most,
                          node->input_count);
    }
    return true;
}

/* The module that a node belongs to: its name without the last part. ferry writes "module/output",
 * where an output may have slashes too. */
static const char *scope_of(Import *im, const OnnxNode *node) {
    const char *name = node->name, *output = node->output_count ? node->outputs[0].text : "";
    size_t length = strlen(name), tail = strlen(output);
    if (strcmp(name, output) == 0) return "";
    if (length > tail + 1 && strcmp(name + length - tail, output) == 0 &&
        name[length - tail - 1] == '/') {
        return arena_string_n(&im->b.program->arena, name, length - tail - 1);
    }
    const char *last = strrchr(name, '/');
    while (*name == '/' && name < last) name++;
    return last ? arena_string_n(&im->b.program->arena, name, (size_t)(last - name)) : "";
}

/* A failure of the builder, told as one of the node. */
void import_explain(Import *im) {
    if (import_ok(im) || im->told) return;
    ferry_status status = im->b.status;
    if (status == FERRY_INVALID_ARGUMENT) status = FERRY_BAD_FORMAT;
    im->b.status = FERRY_OK;
    const char *message = arena_string(&im->arena, im->problem.message);
    import_fail(im, status, "%s", message);
}

void import_apply(Import *im) {
    const OnnxNode *node = im->node;
    if (!check_inputs(im, node)) return;
    im->b.scope = scope_of(im, node);
    node->rule->read(im, node);
    if (import_ok(im) && im->b.program->symbols.overflow) build_finish(&im->b);
    import_explain(im);
}

void import_node(Import *im, ProtoReader message) {
    OnnxNode node;
    im->node = NULL;
    if (!import_parse_node(im, message, &node)) return;
    node.rule = find_operator(im, &node);
    if (!node.rule || !check_attributes(im, &node)) return;
    import_apply(im);
    register_outputs(im, &node);
    im->node = NULL;
}
