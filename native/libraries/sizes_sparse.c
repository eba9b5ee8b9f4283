#include "sizes.h"

enum { FLOAT_32 = 0, FLOAT_16 = 2, COMPLEX_32 = 4, BFLOAT_16 = 14 };

/* How many values one block of a matrix-vector product takes. */
static uint64_t values_a_block(uint64_t type, uint64_t index) {
    if (type == FLOAT_16 || type == BFLOAT_16)
        return index == 4 ? 1024 : 896;
    if (type == COMPLEX_32)
        return index == 4 ? 896 : 512;
    return index == 8 ? 3072 : type == FLOAT_32 ? 4096 : 3584;
}

/* Found in the answers of an H200 (CUDA 13.0, cuSPARSE 12.6) and equal to all of 324 products of 64 to 4096 rows with up to
 * 2**24 values; the constant of complex vectors rests on a few of them: an index for each block of values, and
 * room to align it. A 16-bit product of one column is summed up in 32 bits before it is rounded. */
uint64_t sizes_sparse_product(struct sparse_product p) {
    bool vector = p.columns == 1;
    uint64_t block = vector ? values_a_block(p.type, p.index) : p.balanced ? 24 : 256;
    uint64_t blocks = (p.values + block - 1) / block + (vector || !p.balanced);
    uint64_t sums = vector && (p.type == FLOAT_16 || p.type == BFLOAT_16) ? 4 * p.rows + 127 : 0;
    return p.index * blocks + p.index - 1 + sums;
}

/* torch reckons likewise (torch/sparse/semi_structured.py): 9/16 of a matrix of 16-bit values, 10/16 of 8-bit ones. */
uint64_t sizes_compressed(uint64_t count, uint64_t element) {
    return count * element / 16 * (element == 1 ? 10 : 9);
}

uint64_t sizes_product_values(uint64_t rows, uint64_t inner, uint64_t columns, uint64_t left, uint64_t right) {
    double met = inner ? (double)left * (double)right / (double)inner : 0;
    double most = (double)rows * (double)columns;
    return (uint64_t)(met < most ? met : most);
}
