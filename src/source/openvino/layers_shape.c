/* Layers that ask for or change a shape, ranges, and what is read of a state. */
#include "source/openvino/reader.h"

#include <string.h>

/* Output `i`, which is made, in another dtype. */
void reader_convert(Import *im, const OnnxNode *node, uint32_t i, const char *attribute) {
    OnnxValue *made = i < node->output_count ? node->outputs[i].value : NULL;
    ferry_dtype dtype = (ferry_dtype)import_int(im, node, attribute, FERRY_I64);
    if (!made || !import_ok(im)) return;
    const Known *known = made->known ? known_cast(im, made->known, dtype) : NULL;
    if (known)
        import_give_known(im, node, i, known);
    else
        import_give(im, node, i, build_to(&im->b, known_tensor(im, made), dtype));
}

void net_read_shape_of(Import *im, const OnnxNode *node) {
    const Value *value = import_tensor(im, node, 0);
    import_give_known(im, node, 0, known_of_shape(im, value, 0, value->rank));
    reader_convert(im, node, 0, "output_type");
}

/* The whole number that input `i` is, as one of int64. */
static OnnxValue *bound(Import *im, const OnnxNode *node, uint32_t i) {
    const Known *known = import_known(node, i);
    if (!known) known = import_sizes(im, node, i);
    OnnxValue *value = ARENA_NEW(&im->arena, OnnxValue);
    if (!known || !value) return import_input(node, i);
    *value = (OnnxValue){.name = node->inputs[i].text, .known = known_cast(im, known, FERRY_I64)};
    return value->known ? value : import_input(node, i);
}

/* The bounds may have different types. */
void net_read_range(Import *im, const OnnxNode *node) {
    Retold retold;
    reader_retell(node, "012", &retold);
    for (uint32_t i = 0; i < 3; i++) reader_replace(&retold, i, bound(im, node, i));
    if (import_ok(im)) read_range(im, &retold.node);
    reader_convert(im, node, 0, "output_type");
}

void net_read_strided_slice(Import *im, const OnnxNode *node) {
    (void)node;
    import_unsupported(im, "a stretch of something that is no constant vector");
}

/* No order means the opposite one. */
void net_read_transpose(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count;
    if (!import_ok(im) || !import_constants(im, node, 1, dims, &count)) return;
    if (count == 0) {
        for (; count < x->rank; count++) dims[count] = (int64_t)(x->rank - 1 - count);
    }
    if (count != x->rank)
        import_bad(im, "expected %u dimensions, found %u", x->rank, count);
    else
        import_give(im, node, 0, build_permute(&im->b, x, dims));
}

/* Equal parts, or parts of given sizes, along the dimension that input 1 says. */
void net_read_split(Import *im, const OnnxNode *node) {
    Retold retold;
    int64_t axis;
    if (!reader_number(im, node, 1, &axis)) return;
    reader_retell(node, "02", &retold);
    reader_set_int(&retold, "axis", axis);
    read_split(im, &retold.node);
}

/* ---- states ---- */

/* At the first run a state is what the layer's input says, or zeros. */
void net_read_state(Import *im, const OnnxNode *node) {
    const Sym *sizes[FERRY_MAX_RANK];
    uint32_t rank = 0;
    uint64_t size;
    if (import_input(node, 0)) {
        import_give_same(node, import_input(node, 0));
        return;
    }
    const char *shape = import_string(im, node, "variable_shape", "?");
    ferry_dtype dtype = (ferry_dtype)import_int(im, node, "variable_type", FERRY_DTYPE_NONE);
    while (*shape && rank < FERRY_MAX_RANK) {
        shape += strspn(shape, " ");
        if (!net_number(&shape, &size)) break;
        sizes[rank++] = build_const(&im->b, (int64_t)size);
        shape += strspn(shape, " ");
        if (*shape == ',') shape++;
    }
    if (*shape || !dtype)
        import_unsupported(im, "a state without a first value needs a type and a fixed shape");
    else
        import_give(im, node, 0, build_full(&im->b, sizes, rank, 0, dtype));
}
