/* The structure of OpenVINO's IR: layers, their ports, and what connects them.
 *
 * OpenVINO believes the structure of a file, and some mistakes end the process that reads it. Everything
 * that is needed to walk the graph and to find the constants is checked here, so that neither our reader
 * nor the runtime meets them. What layers mean is not looked at. */
#ifndef SOURCE_OPENVINO_NET_H
#define SOURCE_OPENVINO_NET_H

#include "base/file.h"
#include "format/xml.h"
#include <ferry/dtype.h>
#include <ferry/tensor.h>
#include <stdint.h>

typedef struct NetLayer NetLayer;

typedef struct NetInput {
    uint64_t id;
    NetLayer *from; /* whose output is read here */
    uint32_t output;
} NetInput;

typedef struct NetOutput {
    uint64_t id;
    const char *names; /* of the tensor, separated by commas; "" for none */
} NetOutput;

struct NetLayer {
    uint64_t id;
    const char *name, *type;
    int opset;                 /* 13 of "opset13" */
    const XmlElement *element; /* <layer> */
    const XmlElement *data;    /* <data>, which has the attributes; NULL: none */
    NetInput *inputs;
    NetOutput *outputs;
    uint32_t input_count, output_count;
    bool entered, left;        /* of the walk that orders the layers */
    bool needed;               /* for a result */
    struct OnnxValue **values; /* what the outputs are read as */
};

typedef struct Net {
    const char *path;
    const XmlElement *root;
    const MappedFile *weights; /* NULL: there is no file, and no constant needs one */
    Arena *arena;
    NetLayer *layers; /* as in the file */
    size_t count;
    NetLayer **order; /* each after those that it reads */
    ferry_error *error;
} Net;

/* The structure of a model in memory; all of it is in the arena. */
ferry_status net_parse(const MappedFile *model, const MappedFile *weights, Arena *arena, Net *out,
                       ferry_error *error);

/* Map NAME.xml and, where it exists, NAME.bin. */
ferry_status net_map(const char *path, MappedFiles *files, const MappedFile **model,
                     const MappedFile **weights, ferry_error *error);

/* A constant: where its bytes are. One without elements may have any rank: its shape alone is of use. */
typedef struct NetConstant {
    const char *type; /* "f32" */
    uint32_t bits;    /* of one element */
    uint32_t rank;
    int64_t *shape;
    uint64_t offset, size; /* bytes of the weights */
} NetConstant;

/* What a Const layer says, checked against the weights. */
ferry_status net_constant(const Net *net, const NetLayer *layer, NetConstant *out);

/* What a Parameter or Result is called: the first name of its tensor, or that of the layer. In the
 * arena. */
const char *net_port_name(const NetLayer *layer, Arena *arena);

/* "f32" as a dtype; FERRY_DTYPE_NONE for a type that ferry does not have. */
ferry_dtype net_dtype(const char *type);

/* The number at `*text`, decimal digits alone, which is moved behind it; false when there is none or it
 * does not fit 63 bits. */
bool net_number(const char **text, uint64_t *out);

/* Fail, naming the layer (NULL: the model). */
ferry_status net_fail(const Net *net, const NetLayer *layer, ferry_status status,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#define RETURN_BAD(net, layer, ...) return net_fail(net, layer, FERRY_BAD_FORMAT, __VA_ARGS__)

#endif
