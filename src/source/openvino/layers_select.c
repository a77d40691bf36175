/* Layers that choose elements by indices, write to chosen ones, order and reduce them. */
#include "source/openvino/reader.h"

#include <string.h>

void net_read_gather(Import *im, const OnnxNode *node) {
    Retold retold;
    int64_t axis;
    if (!reader_number(im, node, 2, &axis)) return;
    reader_retell(node, "01", &retold);
    reader_set_int(&retold, "axis", axis);
    read_gather(im, &retold.node);
}

/* ---- scatter ---- */

/* The reduction in ONNX's words. */
static void set_reduction(Import *im, const OnnxNode *node, Retold *retold) {
    const char *reduction = import_string(im, node, "reduction", "none");
    if (strcmp(reduction, "sum") == 0) reduction = "add";
    if (strcmp(reduction, "prod") == 0) reduction = "mul";
    reader_set_string(retold, "reduction", reduction);
}

void net_read_scatter_elements(Import *im, const OnnxNode *node) {
    Retold retold;
    int64_t axis;
    if (!reader_number(im, node, 3, &axis)) return;
    reader_retell(node, "012", &retold);
    reader_set_int(&retold, "axis", axis);
    set_reduction(im, node, &retold);
    read_scatter_elements(im, &retold.node);
}

void net_read_scatter_nd(Import *im, const OnnxNode *node) {
    Retold retold;
    reader_retell(node, "012", &retold);
    set_reduction(im, node, &retold);
    read_scatter_nd(im, &retold.node);
}

void net_read_scatter_update(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *index = import_tensor(im, node, 1);
    Value *updates = import_tensor(im, node, 2);
    int64_t number;
    uint32_t axis;
    if (!import_ok(im) || !reader_number(im, node, 3, &number)) return;
    if (!import_axis(im, number, x->rank, &axis)) return;
    if (index->rank != 1) {
        import_unsupported(im, "indices of rank %u", index->rank);
        return;
    }
    import_give(im, node, 0,
                import_op(im, OP_INDEX_COPY, arg_tensor(x), arg_int(&im->b, axis),
                          arg_tensor(index), arg_tensor(updates)));
}

/* ---- order ---- */

void net_read_nonzero(Import *im, const OnnxNode *node) {
    read_nonzero(im, node);
    reader_convert(im, node, 0, "output_type");
}

void net_read_topk(Import *im, const OnnxNode *node) {
    Retold retold;
    const char *mode = import_string(im, node, "mode", "max");
    const char *sort = import_string(im, node, "sort", "value");
    if (strcmp(sort, "index") == 0) import_unsupported(im, "elements in the order of their places");
    if (!import_attr(im, node, "axis", ONNX_INT))
        import_bad(im, "the attribute \"axis\" is missing");
    reader_retell(node, "01", &retold);
    reader_set_int(&retold, "largest", strcmp(mode, "max") == 0);
    if (import_ok(im)) read_topk(im, &retold.node);
    reader_convert(im, node, 1, "index_element_type");
}

/* ---- reduction ---- */

/* All are true when none is false. */
void net_read_reduce_logical(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0);
    bool given, keep = import_int(im, node, "keep_dims", 0) != 0, all = node->rule->op == OP_AND;
    unsigned axes;
    if (!import_ok(im) || !import_axes(im, node, 1, x->rank, &axes, &given)) return;
    if (x->dtype != FERRY_BOOL) {
        import_bad(im, "expected bool, found %s", ferry_dtype_name(x->dtype));
        return;
    }
    uint32_t rank = x->rank;
    if (all) x = build_unary(b, OP_NOT, x);
    for (uint32_t d = rank; d-- > 0;) {
        if (axes & 1u << d) x = build_reduce(b, OP_ANY, x, (int)d, keep);
    }
    import_give(im, node, 0, all ? build_unary(b, OP_NOT, x) : x);
}
