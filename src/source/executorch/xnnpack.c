/* XNNPACK delegates: the values of the graph, and its nodes in order. */
#include "source/executorch/xnnpack.h"
#include "base/dtype.h"

#include <inttypes.h>
#include <math.h>

enum { HEADER_SIZE = 22, EXTERNAL_INPUT = 1, EXTERNAL_OUTPUT = 2, VALUE_TENSOR_PLAIN = 1 };

static uint32_t number(const unsigned char *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* ---- values ---- */

/* The named data with this key. */
static bool find_named(const Reader *r, const char *key, uint64_t *offset, uint64_t *size) {
    for (size_t i = 0; i < r->f.named.count; i++) {
        FlatTable entry = flat_item_table(&r->f.named, i);
        const char *name = flat_get_string(&entry, 0);
        if (name && strcmp(name, key) == 0) {
            return pte_segment(&r->f, flat_get(&entry, 1, 4, 0), offset, size);
        }
    }
    return false;
}

static Value *read_constant(XnnGraph *x, uint64_t index, ferry_dtype dtype,
                            const FlatVector *dims) {
    FlatTable entry = flat_item_table(&x->data, index);
    const char *key = flat_get_string(&entry, 2);
    uint64_t offset, size;
    int64_t shape[FERRY_MAX_RANK];
    if (!key) pte_read_unsupported(x->r, "a weight inside of the delegate");
    if (key && !find_named(x->r, key, &offset, &size)) {
        pte_read_bad(x->r, "the weight \"%s\" is not in the file", key);
    }
    if (!reader_ok(x->r)) return &x->r->b.poison;
    for (size_t d = 0; d < dims->count; d++) shape[d] = (int64_t)flat_item(dims, d);
    return pte_read_weight(x->r, offset, size, dtype, (uint32_t)dims->count, shape);
}

static void read_value(XnnGraph *x, size_t index) {
    Reader *r = x->r;
    FlatTable entry = flat_item_table(&x->values, index), tensor = flat_get_table(&entry, 1);
    FlatVector dims = flat_get_vector(&tensor, 2, 4);
    uint64_t id = flat_get(&tensor, 6, 4, 0), constant = flat_get(&tensor, 3, 4, 0);
    uint64_t type = flat_get(&tensor, 0, 2, 0), flags = flat_get(&tensor, 5, 4, 0);
    if (flat_get(&entry, 0, 1, 0) != VALUE_TENSOR_PLAIN || (type != 1 && type != 2)) {
        pte_read_unsupported(r, "a value that is quantized, or of XNNPACK's type %" PRIu64, type);
        return;
    }
    if (id >= x->count || dims.count > FERRY_MAX_RANK) {
        pte_read_bad(r,
                     "the value %zu of the delegate has the number %" PRIu64 " and %u dimensions",
                     index, id, dims.count);
        return;
    }
    XnnValue *value = &x->table[id];
    *value = (XnnValue){.dtype = type == 1 ? FERRY_F32 : FERRY_F16, .external = UINT32_MAX};
    if (constant) value->value = read_constant(x, constant, value->dtype, &dims);
    if (!(flags & (EXTERNAL_INPUT | EXTERNAL_OUTPUT))) return;
    value->external = (uint32_t)flat_get(&tensor, 4, 4, 0);
    if (value->external >= x->call->count)
        pte_read_bad(r, "the delegate has the argument %u of %u", value->external, x->call->count);
    else if (flags & EXTERNAL_INPUT)
        value->value = pte_read_tensor(r, x->call->args[value->external]);
}

Value *xnn_read(XnnGraph *x, uint64_t id) {
    if (!reader_ok(x->r)) return &x->r->b.poison;
    if (id < x->count && x->table[id].value) return x->table[id].value;
    pte_read_bad(x->r, "the delegate reads the value %" PRIu64 ", which is not made before", id);
    return &x->r->b.poison;
}

void xnn_give(XnnGraph *x, uint64_t id, Value *value) {
    if (!reader_ok(x->r)) return;
    if (id >= x->count || x->table[id].value) {
        pte_read_bad(x->r,
                     "the delegate makes the value %" PRIu64 " which is not in the graph, or made "
                     "already",
                     id);
        return;
    }
    if (x->clamped) {
        Arg low = isinf(x->low) ? arg_none() : arg_float(x->low);
        Arg high = isinf(x->high) ? arg_none() : arg_float(x->high);
        value = build_clamp(&x->r->b, value, low, high);
    }
    x->table[id].value = value;
    if (x->table[id].external == UINT32_MAX) return;
    pte_read_give(x->r, x->call->args[x->table[id].external], value);
}

/* ---- the graph ---- */

static bool find_blob(Reader *r, uint64_t index, FlatReader *out) {
    FlatTable delegate = flat_item_table(&r->f.delegates, index),
              data = flat_get_table(&delegate, 1);
    const char *id = flat_get_string(&delegate, 0);
    uint64_t offset, size;
    if (!id || strcmp(id, "XnnpackBackend") != 0) {
        return pte_read_unsupported(
            r,
            "a delegate of the backend \"%s\", which is not read back: only "
            "kernels and XNNPACK's delegates are",
            id ? id : "");
    }
    r->where = "XnnpackBackend";
    if (flat_get(&data, 0, 1, 0) != PTE_LOCATION_SEGMENT) {
        return pte_read_unsupported(r, "a delegate inside of the program");
    }
    if (!pte_segment(&r->f, flat_get(&data, 1, 4, 0), &offset, &size)) {
        return pte_read_bad(r, "the delegate %" PRIu64 " is not in the file", index);
    }
    const unsigned char *blob = r->f.file->bytes + offset;
    if (size < HEADER_SIZE || memcmp(blob + 4, "XH00", 4) != 0) {
        return pte_read_bad(r, "expected the header XH00 of a delegate");
    }
    uint32_t start = number(blob + 10), length = number(blob + 14);
    if (start > size || length > size - start) {
        return pte_read_bad(r, "the delegate %" PRIu64 " is larger than its segment", index);
    }
    *out = (FlatReader){.bytes = blob + start, .length = length};
    return true;
}

static void read_graph(XnnGraph *x) {
    Reader *r = x->r;
    FlatTable root = flat_root(&x->buffer, "XN01");
    x->nodes = flat_get_vector(&root, 1, 4);
    x->values = flat_get_vector(&root, 2, 4);
    x->data = flat_get_vector(&root, 8, 4);
    x->count = (uint32_t)x->values.count;
    x->table = ARENA_ARRAY(&r->arena, XnnValue, x->count);
    if (!x->table) pte_read_memory(r);
    for (size_t i = 0; i < x->values.count && reader_ok(r); i++) read_value(x, i);
    for (size_t i = 0; i < x->nodes.count && reader_ok(r); i++) {
        FlatTable entry = flat_item_table(&x->nodes, i), node = flat_get_table(&entry, 1);
        FlatTable range = flat_get_table(&entry, 3);
        xnn_read_node(x, (uint32_t)flat_get(&entry, 0, 1, 0), &node, &range);
        if (x->buffer.failed) pte_read_bad(r, "an offset in the delegate leads outside");
    }
    if (x->buffer.failed) pte_read_bad(r, "the delegate is not a valid graph of XNNPACK (XN01)");
}

void pte_read_delegate(Reader *r, uint64_t delegate, const PteCall *call) {
    XnnGraph x = {.r = r, .call = call};
    if (find_blob(r, delegate, &x.buffer)) read_graph(&x);
    r->where = NULL;
}
