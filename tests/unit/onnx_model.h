/* Small ONNX models, encoded by the protobuf writer, for the tests of the reader. Included after
 * check.h. Attributes are text: "axis=-1 perm=[0,2,1] alpha=0.5 approximate='tanh'". */
#ifndef UNIT_ONNX_MODEL_H
#define UNIT_ONNX_MODEL_H

#include "format/protobuf.h"
#include "source/onnx/onnx_read.h"

typedef struct OnnxModel {
    Buffer graph;
    int opset;        /* 0: 22 */
    const char *path; /* NULL: one without a file */
} OnnxModel;

/* A list separated by commas, each item a string in `field`; an empty item is an empty string. */
static inline void model_names(Buffer *out, uint32_t field, const char *names) {
    for (const char *next = names; *names; next++) {
        size_t length = strcspn(next, ",");
        proto_bytes(out, field, next, length);
        next += length;
        if (!*next) break;
    }
}

/* One attribute; returns what follows it. */
static inline const char *model_attr(Buffer *out, const char *text) {
    size_t mark = proto_open(out, 5), length = strcspn(text, "=");
    char *end = NULL;
    proto_bytes(out, 1, text, length);
    text += length + 1;
    if (*text == '[') {
        for (text++; *text != ']'; text = *end == ',' ? end + 1 : end) {
            proto_int(out, 8, strtoll(text, &end, 10));
        }
        proto_int(out, 20, 7);
        text++;
    } else if (*text == '\'') {
        length = strcspn(++text, "'");
        proto_bytes(out, 4, text, length);
        proto_int(out, 20, 3);
        text += length + 1;
    } else {
        bool whole = strcspn(text, ".") >= strcspn(text, " ");
        double number = strtod(text, &end);
        if (whole)
            proto_int(out, 3, (int64_t)number);
        else
            proto_float(out, 2, (float)number);
        proto_int(out, 20, whole ? 2 : 1);
        text = end;
    }
    proto_close(out, mark);
    return text + (*text == ' ');
}

static inline void model_node_in(OnnxModel *model, const char *domain, const char *op_type,
                                 const char *inputs, const char *outputs, const char *attrs) {
    size_t mark = proto_open(&model->graph, 1);
    model_names(&model->graph, 1, inputs);
    model_names(&model->graph, 2, outputs);
    proto_string(&model->graph, 3, "the node");
    proto_string(&model->graph, 4, op_type);
    if (*domain) proto_string(&model->graph, 7, domain);
    while (*attrs) attrs = model_attr(&model->graph, attrs);
    proto_close(&model->graph, mark);
}

static inline void model_node(OnnxModel *model, const char *op_type, const char *inputs,
                              const char *outputs, const char *attrs) {
    model_node_in(model, "", op_type, inputs, outputs, attrs);
}

/* An input (field 11) or output (12); sizes are numbers or names: "batch,8". NULL: no shape. */
static inline void model_port(OnnxModel *model, uint32_t field, const char *name, int elem_type,
                              const char *sizes) {
    Buffer *out = &model->graph;
    size_t info = proto_open(out, field);
    proto_string(out, 1, name);
    size_t type = proto_open(out, 2), tensor = proto_open(out, 1);
    proto_int(out, 1, elem_type);
    if (sizes) {
        size_t shape = proto_open(out, 2);
        while (*sizes) {
            size_t dim = proto_open(out, 1), length = strcspn(sizes, ",");
            if (length && strspn(sizes, "-0123456789") == length)
                proto_int(out, 1, strtoll(sizes, NULL, 10));
            else if (length)
                proto_bytes(out, 2, sizes, length);
            proto_close(out, dim);
            sizes += length + (sizes[length] == ',');
        }
        proto_close(out, shape);
    }
    proto_close(out, tensor);
    proto_close(out, type);
    proto_close(out, info);
}

static inline void model_input(OnnxModel *model, const char *name, int elem_type,
                               const char *sizes) {
    model_port(model, 11, name, elem_type, sizes);
}

static inline void model_output(OnnxModel *model, const char *name, int elem_type) {
    model_port(model, 12, name, elem_type, NULL);
}

/* An initializer with raw bytes; `rank` at most 2. */
static inline void model_raw(OnnxModel *model, const char *name, int elem_type, uint32_t rank,
                             const int64_t *shape, const void *bytes, size_t size) {
    size_t mark = proto_open(&model->graph, 5);
    for (uint32_t d = 0; d < rank; d++) proto_int(&model->graph, 1, shape[d]);
    proto_int(&model->graph, 2, elem_type);
    proto_string(&model->graph, 8, name);
    proto_bytes(&model->graph, 9, bytes, size);
    proto_close(&model->graph, mark);
}

/* int64[count] */
#define model_ints(model, name, ...)                                                               \
    model_raw(model, name, 7, 1,                                                                   \
              (const int64_t[]){sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)},         \
              (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}))

/* An initializer in the file `location`. NULL: an entry that is not there. */
static inline void model_external(OnnxModel *model, const char *name, int64_t size,
                                  const char *location, const char *offset, const char *length) {
    const char *const entries[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    size_t mark = proto_open(&model->graph, 5);
    proto_int(&model->graph, 1, size);
    proto_int(&model->graph, 2, 1);
    proto_string(&model->graph, 8, name);
    for (size_t i = 0; i < COUNT(entries); i++) {
        if (!entries[i][1]) continue;
        size_t entry = proto_open(&model->graph, 13);
        proto_string(&model->graph, 1, entries[i][0]);
        proto_string(&model->graph, 2, entries[i][1]);
        proto_close(&model->graph, entry);
    }
    proto_int(&model->graph, 14, 1);
    proto_close(&model->graph, mark);
}

/* The whole model around the graph. */
static inline Buffer model_bytes(const OnnxModel *model) {
    Buffer bytes = {0};
    proto_int(&bytes, 1, 10);
    proto_bytes(&bytes, 7, model->graph.bytes, model->graph.length);
    size_t opset = proto_open(&bytes, 8);
    proto_string(&bytes, 1, "");
    proto_int(&bytes, 2, model->opset ? model->opset : 22);
    proto_close(&bytes, opset);
    return bytes;
}

/* What was read, and what it refers to. */
typedef struct ReadModel {
    Buffer bytes;
    MappedFile file;
    MappedFiles files;
    Program *program;
    ferry_error error;
} ReadModel;

/* Read the model, and verify the program. The model is used up. */
static inline ferry_status model_read(OnnxModel *model, ReadModel *read) {
    *read = (ReadModel){.bytes = model_bytes(model), .program = program_new()};
    const char *path = model->path ? model->path : "/nowhere/model.onnx";
    read->file = (MappedFile){path, read->bytes.bytes, read->bytes.length};
    assert_non_null(read->program);
    ferry_status status = onnx_read_model(&read->file, &read->files, read->program, &read->error);
    if (status == FERRY_OK)
        assert_ok(program_verify(read->program, "reading", &read->error), &read->error);
    else
        assert_int_equal(read->error.status, status);
    buffer_free(&model->graph);
    *model = (OnnxModel){0};
    return status;
}

static inline void read_free(ReadModel *read) {
    program_free(read->program);
    files_unmap(&read->files);
    buffer_free(&read->bytes);
}

#endif
