/* Scaled dot product attention, for a block of queries of one head at a time: scores by a matrix
 * product, mask and softmax row by row, and a second product. All in float32 or float64. */
#include "run/reference/kernels.h"
#include "run/reference/layers.h"
#include "run/reference/product.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Scores that a block may take, and the most queries of a block. */
enum { BLOCK_SCORES = 1 << 17, BLOCK_QUERIES = 64 };

typedef struct Attention {
    const Tensor *query, *key, *value; /* of the compute type */
    const Tensor *mask;                /* broadcast to [batch, heads, queries, keys], or NULL */
    const Tensor *output;
    bool is_causal;
    double scale;
    int64_t block, blocks; /* queries of a block, blocks of a head */
    atomic_bool exhausted;
} Attention;

/* Matrix [length, size] of a head. */
static Matrix head_matrix(const Tensor *tensor, int64_t batch, int64_t head) {
    int64_t offset = batch * tensor->strides[0] + head * tensor->strides[1];
    return (Matrix){tensor->data + offset * (int64_t)ferry_dtype_size(tensor->dtype),
                    tensor->strides[2], tensor->strides[3]};
}

/* A query may attend to the first `visible` keys. */
#define MASK_ROW(real, suffix)                                                                     \
    do {                                                                                           \
        real *row = (real *)scores;                                                                \
        if (mask && mask->dtype == FERRY_BOOL) {                                                   \
            for (int64_t i = 0; i < visible; i++) {                                                \
                if (!mask->data[place + i * mask->strides[3]]) row[i] = -INFINITY;                 \
            }                                                                                      \
        } else if (mask) {                                                                         \
            const real *added = (const real *)mask->data + place;                                  \
            for (int64_t i = 0; i < visible; i++) row[i] += added[i * mask->strides[3]];           \
        }                                                                                          \
        layers_softmax_##suffix(row, visible, true, row);                                          \
        for (int64_t i = visible; i < keys; i++) row[i] = 0;                                       \
    } while (0)

static void finish_row(const Attention *attention, unsigned char *scores, int64_t batch,
                       int64_t head, int64_t query, int64_t keys) {
    const Tensor *mask = attention->mask;
    int64_t visible = attention->is_causal && query + 1 < keys ? query + 1 : keys, place = 0;
    if (mask) {
        place = batch * mask->strides[0] + head * mask->strides[1] + query * mask->strides[2];
    }
    if (attention->output->dtype == FERRY_F64)
        MASK_ROW(double, f64);
    else
        MASK_ROW(float, f32);
}

static void run_block(void *context, size_t task) {
    Attention *attention = context;
    const Tensor *query = attention->query, *key = attention->key, *value = attention->value;
    ferry_dtype dtype = query->dtype;
    int64_t heads = query->shape[1], index = (int64_t)task / attention->blocks;
    int64_t batch = index / heads, head = index % heads;
    int64_t shared = head / (heads / key->shape[1]);
    int64_t first = (int64_t)task % attention->blocks * attention->block;
    int64_t rows = query->shape[2] - first;
    if (rows > attention->block) rows = attention->block;
    int64_t keys = key->shape[2];
    if (attention->is_causal && first + rows < keys) keys = first + rows;

    int64_t size = (int64_t)ferry_dtype_size(dtype);
    unsigned char *scores = malloc((size_t)(rows * keys * size) + 1);
    if (!scores) {
        atomic_store(&attention->exhausted, true);
        return;
    }
    Matrix queries = head_matrix(query, batch, head), output;
    Matrix keyed = head_matrix(key, batch, shared);
    output = head_matrix(attention->output, batch, head);
    Product product = {.dtype = dtype,
                       .m = rows,
                       .n = keys,
                       .k = query->shape[3],
                       .scale = attention->scale,
                       .a = matrix_at(dtype, &queries, first, 0),
                       .b = {keyed.data, keyed.column, keyed.row},
                       .c = {scores, keys, 1}};
    product_run(&product);
    for (int64_t i = 0; i < rows; i++) {
        finish_row(attention, scores + i * keys * size, batch, head, first + i, keys);
    }
    product = (Product){.dtype = dtype,
                        .m = rows,
                        .n = value->shape[3],
                        .k = keys,
                        .scale = 1,
                        .a = {scores, keys, 1},
                        .b = head_matrix(value, batch, shared),
                        .c = matrix_at(dtype, &output, first, 0)};
    product_run(&product);
    free(scores);
}

static bool shapes_fit(const Tensor *query, const Tensor *key, const Tensor *value) {
    return query->shape[0] == key->shape[0] && key->shape[0] == value->shape[0] &&
           key->shape[1] == value->shape[1] && key->shape[2] == value->shape[2] &&
           query->shape[3] == key->shape[3] && key->shape[1] > 0 &&
           query->shape[1] % key->shape[1] == 0;
}

/* The mask in a type that finish_row reads, broadcast. */
static ferry_status take_mask(Call *call, Attention *attention, ferry_dtype dtype, Tensor *out) {
    const Tensor *mask = call_tensor(call, 3);
    const int64_t shape[] = {attention->query->shape[0], attention->query->shape[1],
                             attention->query->shape[2], attention->key->shape[2]};
    if (!mask) return FERRY_OK;
    if (mask->dtype != FERRY_BOOL) TRY(call_convert(call, &mask, dtype));
    if (!tensor_broadcast(mask, 4, shape, out)) return call_reject_shape(call);
    attention->mask = out;
    return FERRY_OK;
}

ferry_status kernel_attention(Call *call) {
    const Tensor *query = call_tensor(call, 0), *key = call_tensor(call, 1);
    const Tensor *value = call_tensor(call, 2);
    ferry_dtype dtype = call_compute_dtype(query->dtype);
    Attention attention = {.is_causal = call->node->args[4].boolean,
                           .scale = call->node->args[5].number};
    Tensor *output, mask;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, query->dtype);
    if (!shapes_fit(query, key, value)) return call_reject_shape(call);
    TRY(call_convert(call, &query, dtype));
    TRY(call_convert(call, &key, dtype));
    TRY(call_convert(call, &value, dtype));
    attention.query = query;
    attention.key = key;
    attention.value = value;
    TRY(take_mask(call, &attention, dtype, &mask));
    TRY(call_start(call, dtype, &output));
    attention.output = output;
    if (tensor_count(output) == 0) return FERRY_OK;

    int64_t keys = key->shape[2] > 0 ? key->shape[2] : 1;
    attention.block = BLOCK_SCORES / keys;
    if (attention.block > BLOCK_QUERIES) attention.block = BLOCK_QUERIES;
    if (attention.block < 1) attention.block = 1;
    attention.blocks = (query->shape[2] + attention.block - 1) / attention.block;
    int64_t tasks = query->shape[0] * query->shape[1] * attention.blocks;
    pool_run(call->pool, (size_t)tasks, run_block, &attention);
    if (attention.exhausted) {
        return call_memory(call, (uint64_t)(attention.block * keys) * ferry_dtype_size(dtype));
    }
    call_finish(call, output);
    return FERRY_OK;
}
