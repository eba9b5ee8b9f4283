#include "sizes.h"

/* torch reckons likewise (torch/sparse/semi_structured.py): 9/16 of a matrix of 16-bit values, 10/16 of 8-bit ones. */
uint64_t sizes_compressed(uint64_t count, uint64_t element) {
    return count * element / 16 * (element == 1 ? 10 : 9);
}

uint64_t sizes_product_values(uint64_t rows, uint64_t inner, uint64_t columns, uint64_t left, uint64_t right) {
    double met = inner ? (double)left * (double)right / (double)inner : 0;
    double most = (double)rows * (double)columns;
    return (uint64_t)(met < most ? met : most);
}
