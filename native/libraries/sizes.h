/* How much memory a library asks torch for, where a rule is known; sources and how well each holds are in sizes_*.c.
 * "Elements" are values of the matrix's own type. */
#ifndef HOTBED_LIBRARIES_SIZES_H
#define HOTBED_LIBRARIES_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* cuSOLVER, an m x n or n x n matrix. Bytes: Cholesky, LU on a GPU of so many multiprocessors, eigenvalues of any matrix. */
uint64_t sizes_cholesky(uint64_t n);
uint64_t sizes_lu(uint64_t m, uint64_t n, uint64_t element, uint64_t processors);
uint64_t sizes_general_eigen(uint64_t n, uint64_t element);

/* Elements: QR, the columns of Q, a product with Q from the left, made of k reflections. */
uint64_t sizes_qr(uint64_t n);
uint64_t sizes_qr_columns(uint64_t m, uint64_t n);
uint64_t sizes_qr_product(uint64_t m, uint64_t n, uint64_t k);

/* Elements: singular values and symmetric eigenvalues by Jacobi's method; `economy` is for m > n. */
uint64_t sizes_jacobi_svd(uint64_t m, uint64_t n, bool economy);
uint64_t sizes_jacobi_eigen(uint64_t n);
uint64_t sizes_jacobi_eigen_batch(uint64_t n, uint64_t batch);

/* Elements: eigenvalues of `batch` symmetric matrices. */
uint64_t sizes_symmetric_eigen(uint64_t n, uint64_t batch);

/* cuFFT: a transform of `rank` sizes, the last one contiguous, whose complex values have `element` bytes; `real` if one
 * side is real. Bytes. `sure` is cleared where the size is an estimate. */
uint64_t sizes_transform(int rank, const int64_t *n, uint64_t batch, uint64_t element, bool real, bool *sure);

/* cuSPARSE: a compressed matrix with `values` values, indices of `index` bytes, times a dense matrix. Bytes. */
struct sparse_product {
    uint64_t rows, values, columns, index, type; /* type: a cudaDataType */
    bool balanced; /* the algorithm that spreads values evenly, not rows */
};
uint64_t sizes_sparse_product(struct sparse_product product);

/* A matrix of `count` values of `element` bytes, two in four kept: the values, and the two-bit places of each. */
uint64_t sizes_compressed(uint64_t count, uint64_t element);

/* Values of the product of two sparse matrices, rows x inner with `left` values and inner x columns with `right`: each
 * value on the left meets those of one row on the right, evenly spread and nowhere the same place twice. */
uint64_t sizes_product_values(uint64_t rows, uint64_t inner, uint64_t columns, uint64_t left, uint64_t right);

#endif
