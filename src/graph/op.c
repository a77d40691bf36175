/* Schemas are parsed once, on first use, into a table that is read-only from then on. */
#include "graph/op.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *schema;
} ops[OP_COUNT] = {
#define OP(name, overload, schema) [OP_##name] = {overload, schema},
#include "graph/ops.def"
#undef OP
};

static OpSchema schemas[OP_COUNT];
static pthread_once_t schemas_once = PTHREAD_ONCE_INIT;

static const struct {
    const char *text;
    ArgType type;
} arg_types[] = {
    {"Tensor?[]", ARG_OPTIONAL_TENSORS},
    {"Tensor[]", ARG_TENSORS},
    {"Tensor", ARG_TENSOR},
    {"int[]", ARG_INTS},
    {"int", ARG_INT},
    {"float", ARG_FLOAT},
    {"bool", ARG_BOOL},
    {"Scalar", ARG_SCALAR},
    {"str", ARG_STRING},
    {"ScalarType", ARG_DTYPE},
};

static bool starts_with_word(const char *text, const char *word) {
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == '?');
}

/* One argument, such as "Tensor? bias=None"; returns what follows it. */
static const char *parse_arg(const char *text, OpArg *arg) {
    for (size_t i = 0; i < sizeof arg_types / sizeof *arg_types; i++) {
        if (!starts_with_word(text, arg_types[i].text)) continue;
        arg->type = arg_types[i].type;
        text += strlen(arg_types[i].text);
        break;
    }
    if (*text == '?') {
        arg->optional = true;
        text++;
    }
    while (*text == ' ') text++;
    size_t length = strcspn(text, "=,)");
    memcpy(arg->name, text, length);
    text += length;
    if (*text != '=') return text;
    text++;
    arg->has_default = true;
    length = strcspn(text, ",)");
    if (strncmp(text, "None", 4) == 0)
        arg->default_none = true;
    else if (strncmp(text, "True", 4) == 0)
        arg->default_number = 1;
    else if (*text == '\'')
        memcpy(arg->default_string, text + 1, length - 2);
    else
        arg->default_number = strtod(text, NULL);
    return text + length;
}

static void parse_schemas(void) {
    for (int op = 0; op < OP_COUNT; op++) {
        OpSchema *schema = &schemas[op];
        const char *text = ops[op].schema + 1;
        bool keyword = false;
        while (*text != ')') {
            if (*text == ' ' || *text == ',') {
                text++;
            } else if (strncmp(text, "*,", 2) == 0) {
                text += 2;
                keyword = true;
            } else {
                OpArg *arg = &schema->args[schema->arg_count++];
                text = parse_arg(text, arg);
                arg->keyword = keyword;
            }
        }
        schema->returns_list = strcmp(text, ") -> Tensor[]") == 0;
    }
}

const char *op_name(Op op) {
    return ops[op].name;
}

const char *op_schema_text(Op op) {
    return ops[op].schema;
}

const OpSchema *op_schema(Op op) {
    pthread_once(&schemas_once, parse_schemas);
    return &schemas[op];
}

void op_short_name(Op op, char *out, unsigned long size) {
    const char *name = strstr(ops[op].name, "::") + 2;
    while (*name == '_') name++;
    unsigned long length = strcspn(name, ".");
    if (length >= size) length = size - 1;
    memcpy(out, name, length);
    out[length] = 0;
}

bool op_lookup(const char *name, Op *out) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (strcmp(ops[op].name, name) != 0) continue;
        *out = (Op)op;
        return true;
    }
    return false;
}
