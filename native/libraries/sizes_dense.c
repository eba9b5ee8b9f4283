/* cuSOLVER's workspaces, as rules found in what its *_bufferSize functions answer on an H200 (CUDA 13.0, cuSOLVER 12.0)
 * for 202 square sizes up to 9000, 250 other shapes, four types and five batches. The rules were found
 * with all answers in view, so none of them is an independent test. All are equal to the byte, but where a comment says
 * how well a rule holds. */
#include "sizes.h"

enum { TILE = 32, PANEL = 128, GRAIN = 512 };

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t tiles(uint64_t n) {
    return (n + TILE - 1) / TILE;
}

static uint64_t whole_tiles(uint64_t n) {
    return tiles(n) * TILE;
}

/* One of the rounded parts of a workspace is there only beyond a tile. */
static uint64_t beyond_a_tile(uint64_t n, uint64_t elements) {
    return TILE + (n > TILE ? whole_tiles(elements) : 0);
}

static uint64_t power_of_two(uint64_t at_least) {
    uint64_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

uint64_t sizes_cholesky(uint64_t n) {
    return 128 + whole_tiles(4 * tiles(n) * tiles(n));
}

/* Long panels are split over groups of multiprocessors. */
uint64_t sizes_lu(uint64_t m, uint64_t n, uint64_t element, uint64_t processors) {
    uint64_t across = tiles(least(m, n)), along = tiles(most(m, n));
    uint64_t group = m <= 2048 ? 4 : m <= 8192 ? 8 : 16;
    uint64_t groups = (processors + group - 1) / group * group;
    uint64_t split = m > 1536 ? element * 64 * groups + 512 * group : 0;
    uint64_t panel = most(256 * power_of_two(least(16, across)), whole_tiles(4 * across * along));
    return 128 + 256 * across + most(panel, split);
}

uint64_t sizes_qr(uint64_t n) {
    return 1024 * (512 + most(n, 256));
}

uint64_t sizes_qr_columns(uint64_t m, uint64_t n) {
    uint64_t panel = least(n, PANEL);
    return whole_tiles(m * panel) + most(33024, 16640 + whole_tiles(2 * n * panel));
}

/* Measured for k = min(m, n); which sizes the last product is of is not known for others. */
uint64_t sizes_qr_product(uint64_t m, uint64_t n, uint64_t k) {
    return 65760 + 256 * m + 512 * n + beyond_a_tile(most(m, n), n) + whole_tiles(k * (m + n));
}

static uint64_t jacobi_square(uint64_t n) {
    uint64_t t = tiles(n);
    return 1024 + 2048 * t + whole_tiles(2 * n * n) + whole_tiles(n + 4 * t * t + t);
}

/* A wide matrix is transposed first; of a matrix that is not square, R is decomposed and multiplied with Q. Some wide
 * ones that are nearly square need up to 4 % less. */
uint64_t sizes_jacobi_svd(uint64_t m, uint64_t n, bool economy) {
    if (m < n)
        return sizes_jacobi_svd(n, m, economy) + whole_tiles(m * n);
    if (m == n)
        return jacobi_square(n);
    uint64_t columns = economy ? n : m;
    uint64_t product = 65760 + 256 * m + 512 * columns + beyond_a_tile(m, columns) + whole_tiles(m * n + n * n);
    uint64_t decomposed = most(jacobi_square(n) + whole_tiles(n * n), whole_tiles(m * n) + whole_tiles(n * n));
    return most(decomposed, most(sizes_qr(n) + TILE, product) + whole_tiles(n));
}

/* Up to n = 4095. */
uint64_t sizes_jacobi_eigen(uint64_t n) {
    uint64_t t = tiles(n);
    return n * n + n + 1024 + 1024 * t + 4 * t * t + t;
}

uint64_t sizes_jacobi_eigen_batch(uint64_t n, uint64_t batch) {
    uint64_t t = tiles(n);
    return batch * (1024 * t + (n + 1) * (n + 1)) + 1024 + 4 * t * t;
}

/* Without the 128 bytes for state. What is rounded up to whole tiles is written as the rest that is added. */
uint64_t sizes_symmetric_eigen(uint64_t n, uint64_t batch) {
    uint64_t vectors = batch * (2 * n * n - 3 * n + 1), products = batch * (3 * n * n - 4 * n + 1);
    uint64_t small = batch * (n * n + 770 * n + 65539) + whole_tiles(vectors) + beyond_a_tile(n, batch * n);
    uint64_t large = batch * (n * n + 130 * n + 32899) + whole_tiles(products) + beyond_a_tile(TILE + 1, batch * n);
    return most(small, large);
}

/* Within 1.5 %, mostly within 512 bytes. */
uint64_t sizes_general_eigen(uint64_t n, uint64_t element) {
    uint64_t panel = least(n, PANEL);
    uint64_t small = whole_tiles(n * panel) + most(33024, 16640 + 2 * n * panel) + 3 * n;
    return most(element * (n * n + 4 * n) / GRAIN + 1, (element * small + GRAIN - 1) / GRAIN) * GRAIN;
}
