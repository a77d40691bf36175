/* One layer as a node of ONNX: its row in the table says which attributes and inputs the node has. */
#include "source/openvino/reader.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ATTRS = 24 };

/* ---- values of attributes ---- */

static bool parse_integer(const char *text, int64_t *out) {
    bool negative = *text == '-';
    uint64_t value;
    const char *end = text + negative;
    bool valid = net_number(&end, &value) && !*end;
    *out = valid && negative ? -(int64_t)value : (int64_t)value;
    return valid;
}

static bool parse_bool(const char *text, int64_t *out) {
    static const char *const words[] = {"false", "true", "False", "True", "0", "1"};
    for (int64_t i = 0; i < 6; i++) {
        if (strcmp(words[i], text) != 0) continue;
        *out = i % 2;
        return true;
    }
    return false;
}

static bool parse_double(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end > text && !*end;
}

/* "1, 2": numbers that may be negative, separated by commas and blanks. */
static bool parse_list(Import *im, const char *text, OnnxAttr *attr) {
    uint64_t *items = ARENA_ARRAY(&im->arena, uint64_t, strlen(text) + 1);
    if (!items) return import_memory(im);
    while (*text) {
        size_t length = strcspn(text, ",");
        const char *word = text + strspn(text, " ");
        size_t size = (size_t)(text + length - word);
        int64_t value;
        while (size && word[size - 1] == ' ') size--;
        if (!parse_integer(arena_string_n(&im->arena, word, size), &value)) return false;
        items[attr->count++] = (uint64_t)value;
        text += length + (text[length] == ',');
    }
    attr->list = items;
    return true;
}

static bool parse_value(Import *im, char kind, const char *text, OnnxAttr *attr) {
    attr->string = text;
    attr->kind = ONNX_INT;
    switch (kind) {
    case 'i': return parse_integer(text, &attr->integer);
    case 'b': return parse_bool(text, &attr->integer);
    case 't': attr->integer = net_dtype(text); return attr->integer != FERRY_DTYPE_NONE;
    case 'f': attr->kind = ONNX_FLOAT; return parse_double(text, &attr->number);
    case 'l': attr->kind = ONNX_INTS; return parse_list(im, text, attr);
    default: attr->kind = ONNX_STRING; return true;
    }
}

/* ---- words of the table ---- */

typedef struct Word {
    const char *name;      /* in the IR */
    const char *told;      /* in the node */
    const char *values;    /* "numpy|none": those that are accepted; NULL: any */
    const char *otherwise; /* the value where it is absent; NULL: none */
    char kind;
    bool opposite;
} Word;

/* The word at the front of `rest`, which is moved on; false at the end. */
static bool next_word(Arena *arena, const char **rest, Word *word) {
    *rest += strspn(*rest, " ");
    size_t length = strcspn(*rest, " ");
    if (length == 0) return false;
    char *text = arena_copy(arena, arena_string_n(arena, *rest, length), length + 1);
    *rest += length;
    *word = (Word){.name = text, .told = text};
    if (!text) return false;
    char *otherwise = strchr(text, '?'), *values = strchr(text, '='), *told = strchr(text, '>'),
         *kind = strchr(text, ':');
    if (otherwise) word->otherwise = otherwise + 1, *otherwise = 0;
    if (values) word->values = values + 1, *values = 0;
    if (kind) {
        word->opposite = kind[1] == '!';
        word->kind = kind[1 + word->opposite];
        *kind = 0;
    }
    if (told) word->told = told + 1, *told = 0;
    if (*text == '+') {
        word->told = text + 1;
        word->kind = 'i';
        word->otherwise = word->values;
        word->values = NULL;
    }
    return true;
}

/* True when `value` is one of those in a list like "a|b". */
static bool is_listed(const char *list, const char *value) {
    size_t length = strlen(value);
    for (const char *next = list; *next; next += *next == '|') {
        size_t size = strcspn(next, "|");
        if (size == length && memcmp(next, value, length) == 0) return true;
        next += size;
    }
    return false;
}

static void add_attr(Import *im, OnnxNode *node, OnnxAttr *attrs, const Word *word,
                     const char *text) {
    OnnxAttr attr = {.name = word->told};
    if (word->values && !is_listed(word->values, text)) {
        import_unsupported(im, "the attribute \"%s\" is \"%s\"; only \"%s\" is supported",
                           word->name, text, word->values);
    } else if (word->kind && !parse_value(im, word->kind, text, &attr)) {
        import_bad(im, "the attribute \"%s\" is \"%s\"", word->name, text);
    } else if (word->kind && node->attr_count == MAX_ATTRS) {
        import_unsupported(im, "more than %d attributes", MAX_ATTRS);
    } else if (word->kind) {
        if (word->opposite) attr.integer = !attr.integer;
        attrs[node->attr_count++] = attr;
    }
}

/* Every attribute of the layer must be known. */
static void check_known(Import *im, const NetLayer *layer, const char *words) {
    for (size_t i = 0; layer->data && i < layer->data->attribute_count; i++) {
        const char *name = layer->data->attributes[i].name, *rest = words;
        bool known = false;
        Word word;
        while (!known && next_word(&im->arena, &rest, &word)) known = strcmp(word.name, name) == 0;
        if (!known) import_unsupported(im, "the attribute \"%s\" is not supported", name);
    }
}

static void make_attrs(Import *im, const NetLayer *layer, OnnxNode *node) {
    const char *rest = node->rule->attributes;
    OnnxAttr *attrs = ARENA_ARRAY(&im->arena, OnnxAttr, MAX_ATTRS);
    Word word;
    if (!attrs) import_memory(im);
    check_known(im, layer, rest);
    node->attrs = attrs;
    while (import_ok(im) && next_word(&im->arena, &rest, &word)) {
        const char *text = xml_value(layer->data, word.name);
        if (!text) text = word.otherwise;
        if (text) add_attr(im, node, attrs, &word, text);
    }
}

/* ---- the node ---- */

/* What a failure and the scope of a layer go by: the last part of the name is the output's. */
static void make_names(Import *im, const NetLayer *layer, OnnxNode *node) {
    const char *slash = strrchr(layer->name, '/');
    node->name = layer->name;
    node->op_type = arena_format(&im->arena, "%s-%d", layer->type, layer->opset);
    for (uint32_t i = 0; node->outputs && i < node->output_count; i++) {
        node->outputs[i].text = slash ? slash + 1 : layer->name;
    }
}

/* An input that the order names and the layer does not have is absent. */
static void make_inputs(Import *im, const NetLayer *layer, const char *order, OnnxNode *node) {
    node->input_count = order ? (uint32_t)strlen(order) : layer->input_count;
    node->inputs = ARENA_ARRAY(&im->arena, OnnxName, node->input_count);
    if (!node->inputs) import_memory(im);
    for (uint32_t i = 0; node->inputs && i < node->input_count; i++) {
        uint32_t from = order ? (uint32_t)(order[i] - '0') : i;
        node->inputs[i].text = "";
        if (from >= layer->input_count) continue;
        const NetInput *input = &layer->inputs[from];
        node->inputs[i].text = input->from->name;
        node->inputs[i].value = input->from->values ? input->from->values[input->output] : NULL;
    }
}

static void keep_values(Import *im, NetLayer *layer, const OnnxNode *node) {
    layer->values = ARENA_ARRAY(&im->arena, OnnxValue *, layer->output_count);
    if (!layer->values) import_memory(im);
    for (uint32_t i = 0; layer->values && i < layer->output_count; i++) {
        layer->values[i] = node->outputs[i].value;
    }
}

void reader_layer(Reader *reader, NetLayer *layer) {
    Import *im = &reader->im;
    OnnxNode node = {.domain = "", .output_count = layer->output_count};
    node.outputs = ARENA_ARRAY(&im->arena, OnnxName, layer->output_count);
    if (!node.outputs) import_memory(im);
    make_names(im, layer, &node);
    im->node = &node;
    const LayerRule *row = reader_rule(layer);
    if (!row) {
        import_unsupported(im, "there is no support for the layer %s of opset%d", layer->type,
                           layer->opset);
    }
    if (import_ok(im)) {
        node.rule = &row->rule;
        make_inputs(im, layer, row->order, &node);
        make_attrs(im, layer, &node);
    }
    if (import_ok(im) && !reader_fold(reader, layer, &node)) import_apply(im);
    if (import_ok(im)) keep_values(im, layer, &node);
    im->node = NULL;
}

/* ---- in other words ---- */

void reader_retell(const OnnxNode *node, const char *order, Retold *out) {
    *out = (Retold){.node = *node};
    out->node.inputs = out->inputs;
    out->node.attrs = out->attrs;
    out->node.input_count = 0;
    for (; *order && out->node.input_count < RETOLD_INPUTS; order++) {
        uint32_t from = (uint32_t)(*order - '0');
        if (from < node->input_count) {
            out->inputs[out->node.input_count++] = node->inputs[from];
        }
    }
    if (out->node.attr_count > RETOLD_ATTRS - 4) out->node.attr_count = RETOLD_ATTRS - 4;
    memcpy(out->attrs, node->attrs, out->node.attr_count * sizeof *out->attrs);
}

void reader_replace(Retold *retold, uint32_t i, OnnxValue *value) {
    retold->inputs[i] = (OnnxName){.text = value ? value->name : "", .value = value};
}

static OnnxAttr *set(Retold *retold, const char *name) {
    uint32_t i = 0;
    while (i < retold->node.attr_count && strcmp(retold->attrs[i].name, name) != 0) i++;
    if (i == retold->node.attr_count) retold->node.attr_count++;
    retold->attrs[i] = (OnnxAttr){.name = name};
    return &retold->attrs[i];
}

void reader_set_int(Retold *retold, const char *name, int64_t value) {
    OnnxAttr *attr = set(retold, name);
    attr->kind = ONNX_INT;
    attr->integer = value;
}

void reader_set_string(Retold *retold, const char *name, const char *value) {
    OnnxAttr *attr = set(retold, name);
    attr->kind = ONNX_STRING;
    attr->string = value;
}

void reader_set_ints(Import *im, Retold *retold, const char *name, const int64_t *items,
                     size_t count) {
    OnnxAttr *attr = set(retold, name);
    attr->kind = ONNX_INTS;
    attr->list = arena_copy(&im->arena, items, count * sizeof *items);
    attr->count = attr->list ? count : 0;
}

bool reader_number(Import *im, const OnnxNode *node, uint32_t i, int64_t *out) {
    int64_t values[FERRY_MAX_RANK];
    uint32_t count;
    if (!import_constants(im, node, i, values, &count)) return false;
    *out = count ? values[0] : 0;
    return count == 1 || import_bad(im, "expected one number as input %u, found %u", i, count);
}
