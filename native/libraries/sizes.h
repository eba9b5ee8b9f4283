/* How much memory a library asks torch for, where a rule is known. All sizes are bytes. */
#ifndef HOTBED_LIBRARIES_SIZES_H
#define HOTBED_LIBRARIES_SIZES_H

#include <stdint.h>

/* A matrix of `count` values of `element` bytes, two in four kept: the values, and the two-bit places of each. */
uint64_t sizes_compressed(uint64_t count, uint64_t element);

/* Values of the product of two sparse matrices, rows x inner with `left` values and inner x columns with `right`: each
 * value on the left meets those of one row on the right, evenly spread and nowhere the same place twice. */
uint64_t sizes_product_values(uint64_t rows, uint64_t inner, uint64_t columns, uint64_t left, uint64_t right);

#endif
