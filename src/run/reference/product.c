#define _GNU_SOURCE
#include "run/reference/product.h"
#include "run/reference/blas.h"

/* Products below this many multiplications are not worth another thread. */
enum { GRAIN = 1 << 18 };

void product_run(const Product *p) {
    rntm_t threads;
    if (p->m == 0 || p->n == 0) return;
    bli_rntm_init(&threads);
    bli_rntm_set_num_threads(1, &threads);
    if (p->dtype == FERRY_F32) {
        float scale = (float)p->scale, zero = 0;
        bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, p->m, p->n, p->k, &scale,
                     (float *)p->a.data, p->a.row, p->a.column, (float *)p->b.data, p->b.row,
                     p->b.column, &zero, (float *)p->c.data, p->c.row, p->c.column, NULL, &threads);
    } else {
        double scale = p->scale, zero = 0;
        bli_dgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, p->m, p->n, p->k, &scale,
                     (double *)p->a.data, p->a.row, p->a.column, (double *)p->b.data, p->b.row,
                     p->b.column, &zero, (double *)p->c.data, p->c.row, p->c.column, NULL,
                     &threads);
    }
}

Matrix matrix_at(ferry_dtype dtype, const Matrix *matrix, int64_t row, int64_t column) {
    Matrix part = *matrix;
    part.data += (row * matrix->row + column * matrix->column) * (int64_t)ferry_dtype_size(dtype);
    return part;
}

typedef struct Split {
    const Product *product;
    bool by_rows;
    int64_t share; /* rows or columns of each task */
} Split;

static void run_share(void *context, size_t task) {
    const Split *split = context;
    Product part = *split->product;
    int64_t first = (int64_t)task * split->share;
    int64_t *size = split->by_rows ? &part.m : &part.n;
    int64_t row = split->by_rows ? first : 0, column = split->by_rows ? 0 : first;
    *size = *size - first < split->share ? *size - first : split->share;
    part.a = matrix_at(part.dtype, &part.a, row, 0);
    part.b = matrix_at(part.dtype, &part.b, 0, column);
    part.c = matrix_at(part.dtype, &part.c, row, column);
    product_run(&part);
}

void product_run_split(const Product *product, Pool *pool) {
    Split split = {.product = product, .by_rows = product->m > product->n};
    int64_t size = split.by_rows ? product->m : product->n;
    double work = (double)product->m * (double)product->n * (double)product->k;
    int64_t tasks = (int64_t)pool_threads(pool);
    if (work / GRAIN < (double)tasks) tasks = work < 2 * GRAIN ? 1 : (int64_t)(work / GRAIN);
    /* whole register tiles for every task */
    split.share = ((size + tasks - 1) / tasks + 15) / 16 * 16;
    if (size == 0) return;
    pool_run(pool, (size_t)((size + split.share - 1) / split.share), run_share, &split);
}
