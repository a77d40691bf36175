/* Matrix products of strided float32 or float64 matrices. */
#ifndef RUN_REFERENCE_PRODUCT_H
#define RUN_REFERENCE_PRODUCT_H

#include "base/pool.h"
#include <ferry/dtype.h>
#include <stdint.h>

/* A matrix in memory; steps in elements. */
typedef struct Matrix {
    unsigned char *data;
    int64_t row, column; /* distance of rows, of columns */
} Matrix;

/* c [m, n] = scale * a [m, k] b [k, n] */
typedef struct Product {
    ferry_dtype dtype; /* float32 or float64 */
    int64_t m, n, k;
    double scale;
    Matrix a, b, c;
} Product;

/* On the calling thread alone. */
void product_run(const Product *product);

/* Split over the pool. */
void product_run_split(const Product *product, Pool *pool);

/* The matrix that starts at (row, column). */
Matrix matrix_at(ferry_dtype dtype, const Matrix *matrix, int64_t row, int64_t column);

#endif
