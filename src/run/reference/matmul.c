/* linear and matmul. Halves compute in float32 and round once; the weight of a half linear is
 * converted block by block, so that it never exists in float32 as a whole. */
#include "run/reference/kernels.h"
#include "run/reference/product.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a weight that are converted at a time. */
enum { WEIGHT_BLOCK = 1 << 18 };

typedef struct Linear {
    const Call *call;
    Product product; /* of the whole */
    const Tensor *weight, *bias;
    const Tensor *output; /* contiguous, of the compute type */
    int64_t share;        /* output features of each task */
    atomic_bool exhausted;
} Linear;

/* [rows, features] of a tensor; a temporary when its rows do not lie at one distance. */
static ferry_status take_matrix(Call *call, const Tensor *tensor, Matrix *out, int64_t *rows) {
    int64_t features = tensor->shape[tensor->rank - 1];
    Tensor matrix;
    *rows = 1;
    for (uint32_t d = 0; d + 1 < tensor->rank; d++) *rows *= tensor->shape[d];
    const int64_t shape[] = {*rows, features};
    if (!tensor_view(tensor, 2, shape, &matrix)) {
        TRY(call_contiguous(call, &tensor));
        tensor_view(tensor, 2, shape, &matrix);
    }
    *out = (Matrix){matrix.data, matrix.strides[0], matrix.strides[1]};
    return FERRY_OK;
}

static void add_bias(const Linear *linear) {
    int64_t m = linear->product.m, n = linear->product.n, step = linear->bias->strides[0];
    for (int64_t row = 0; row < m; row++) {
        if (linear->output->dtype == FERRY_F32) {
            const float *bias = (const float *)linear->bias->data;
            float *out = (float *)linear->output->data + row * n;
            for (int64_t i = 0; i < n; i++) out[i] += bias[i * step];
        } else {
            const double *bias = (const double *)linear->bias->data;
            double *out = (double *)linear->output->data + row * n;
            for (int64_t i = 0; i < n; i++) out[i] += bias[i * step];
        }
    }
}

/* A block of output features from a weight that must be converted first. */
static void run_block(void *context, size_t task) {
    Linear *linear = context;
    Product part = linear->product;
    int64_t first = (int64_t)task * linear->share;
    part.n = part.n - first < linear->share ? part.n - first : linear->share;
    part.c = matrix_at(part.dtype, &part.c, 0, first);
    size_t bytes = (size_t)part.n * (size_t)part.k * ferry_dtype_size(part.dtype);
    unsigned char *block = malloc(bytes ? bytes : 1);
    if (!block) {
        atomic_store(&linear->exhausted, true);
        return;
    }
    Tensor rows = tensor_slice(linear->weight, 0, first, part.n, 1), converted = rows;
    converted.dtype = part.dtype;
    converted.data = block;
    tensor_row_major(&converted);
    Call alone = {.node = linear->call->node};
    call_copy(&alone, &rows, &converted);
    part.b = (Matrix){block, 1, part.k};
    product_run(&part);
    free(block);
}

static ferry_status run_converting(Call *call, Linear *linear) {
    const Product *product = &linear->product;
    int64_t threads = (int64_t)pool_threads(call->pool);
    int64_t most = WEIGHT_BLOCK / (product->k > 0 ? product->k : 1);
    int64_t even = (product->n + threads - 1) / threads;
    linear->share = most < even ? most : even;
    linear->share = (linear->share + 15) / 16 * 16;
    if (linear->share == 0) linear->share = 16;
    pool_run(call->pool, (size_t)((product->n + linear->share - 1) / linear->share), run_block,
             linear);
    return linear->exhausted ? call_memory(call, WEIGHT_BLOCK * sizeof(float)) : FERRY_OK;
}

ferry_status kernel_linear(Call *call) {
    const Tensor *input = call_tensor(call, 0), *weight = call_tensor(call, 1);
    const Tensor *bias = call_tensor(call, 2);
    ferry_dtype dtype = call_compute_dtype(input->dtype);
    int64_t rows, features = weight->shape[0], size = weight->shape[1];
    Tensor *output;
    if (dtype != FERRY_F32 && dtype != FERRY_F64) return call_reject_dtype(call, input->dtype);
    if (input->shape[input->rank - 1] != size || (bias && bias->shape[0] != features)) {
        return call_reject_shape(call);
    }
    TRY(call_convert(call, &input, dtype));
    if (bias) TRY(call_convert(call, &bias, dtype));
    TRY(call_start(call, dtype, &output));
    Linear linear = {.call = call, .weight = weight, .bias = bias, .output = output};
    Product *product = &linear.product;
    *product = (Product){.dtype = dtype, .n = features, .k = size, .scale = 1};
    TRY(take_matrix(call, input, &product->a, &rows));
    product->m = rows;
    product->c = (Matrix){output->data, features, 1};
    if (weight->dtype == dtype) {
        product->b = (Matrix){weight->data, weight->strides[1], weight->strides[0]};
        product_run_split(product, call->pool);
    } else {
        TRY(run_converting(call, &linear));
    }
    if (bias) add_bias(&linear);
    call_finish(call, output);
    return FERRY_OK;
}

/* ---- matmul ---- */

typedef struct Batches {
    Product product;              /* of one; the data pointers are those of the first */
    const Tensor *a, *b, *output; /* broadcast to one batch shape */
    uint32_t batch_rank;
} Batches;

static unsigned char *batch_data(const Batches *batches, const Tensor *tensor, int64_t batch) {
    int64_t offset = 0;
    for (uint32_t d = batches->batch_rank; d-- > 0;) {
        offset += batch % tensor->shape[d] * tensor->strides[d];
        batch /= tensor->shape[d];
    }
    return tensor->data + offset * (int64_t)ferry_dtype_size(tensor->dtype);
}

static Product batch_product(const Batches *batches, int64_t batch) {
    Product product = batches->product;
    product.a.data = batch_data(batches, batches->a, batch);
    product.b.data = batch_data(batches, batches->b, batch);
    product.c.data = batch_data(batches, batches->output, batch);
    return product;
}

static void run_batch(void *context, size_t batch) {
    Product product = batch_product(context, (int64_t)batch);
    if (product.dtype != FERRY_I64) {
        product_run(&product);
        return;
    }
    const int64_t *a = (const int64_t *)product.a.data, *b = (const int64_t *)product.b.data;
    int64_t *c = (int64_t *)product.c.data;
    for (int64_t i = 0; i < product.m; i++) {
        for (int64_t j = 0; j < product.n; j++) {
            uint64_t sum = 0;
            for (int64_t k = 0; k < product.k; k++) {
                sum += (uint64_t)a[i * product.a.row + k * product.a.column] *
                       (uint64_t)b[k * product.b.row + j * product.b.column];
            }
            c[i * product.c.row + j * product.c.column] = (int64_t)sum;
        }
    }
}

/* `tensor` with its batch dimensions broadcast to those of `output`. */
static bool broadcast_batch(const Tensor *tensor, const Tensor *output, Tensor *out) {
    int64_t shape[FERRY_MAX_RANK];
    memcpy(shape, output->shape, sizeof shape);
    shape[output->rank - 2] = tensor->shape[tensor->rank - 2];
    shape[output->rank - 1] = tensor->shape[tensor->rank - 1];
    return tensor_broadcast(tensor, output->rank, shape, out);
}

static Matrix last_matrix(const Tensor *tensor) {
    return (Matrix){tensor->data, tensor->strides[tensor->rank - 2],
                    tensor->strides[tensor->rank - 1]};
}

ferry_status kernel_matmul(Call *call) {
    const Tensor *a = call_tensor(call, 0), *b = call_tensor(call, 1);
    ferry_dtype dtype = call_compute_dtype(a->dtype);
    Tensor *output, left, right;
    if (dtype == FERRY_DTYPE_NONE || a->dtype == FERRY_BOOL) {
        return call_reject_dtype(call, a->dtype);
    }
    TRY(call_convert(call, &a, dtype));
    TRY(call_convert(call, &b, dtype));
    TRY(call_start(call, dtype, &output));
    uint32_t rank = output->rank;
    if (a->shape[a->rank - 1] != b->shape[b->rank - 2] || !broadcast_batch(a, output, &left) ||
        !broadcast_batch(b, output, &right)) {
        return call_reject_shape(call);
    }
    Batches batches = {.a = &left, .b = &right, .output = output, .batch_rank = rank - 2};
    batches.product = (Product){.dtype = dtype,
                                .m = output->shape[rank - 2],
                                .n = output->shape[rank - 1],
                                .k = a->shape[a->rank - 1],
                                .scale = 1,
                                .a = last_matrix(&left),
                                .b = last_matrix(&right),
                                .c = last_matrix(output)};
    int64_t count = 1;
    for (uint32_t d = 0; d < batches.batch_rank; d++) count *= output->shape[d];
    if (count < (int64_t)pool_threads(call->pool) && dtype != FERRY_I64) {
        for (int64_t batch = 0; batch < count; batch++) {
            Product product = batch_product(&batches, batch);
            product_run_split(&product, call->pool);
        }
    } else {
        pool_run(call->pool, (size_t)count, run_batch, &batches);
    }
    call_finish(call, output);
    return FERRY_OK;
}
