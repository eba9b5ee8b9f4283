/* Workspaces against answers of an H200 (CUDA 13.0); tests/data/h200 has more of them. */
#include "check.h"

#include "../libraries/sizes.h"

enum { H200_PROCESSORS = 132, BFLOAT_16 = 14 };

static void factorisations(void) {
    CHECK_EQUAL(sizes_cholesky(64), 160);
    CHECK_EQUAL(sizes_cholesky(8192), 262272);
    CHECK_EQUAL(sizes_lu(1024, 1024, 8, H200_PROCESSORS), 12416);
    CHECK_EQUAL(sizes_lu(2048, 2048, 8, H200_PROCESSORS), 86144);
    CHECK_EQUAL(sizes_lu(22, 4071, 4, H200_PROCESSORS), 896);
    CHECK_EQUAL(sizes_qr(2048) * 4 + 128, 10485888);
    CHECK_EQUAL(sizes_qr_columns(5147, 383), 773504);
    CHECK_EQUAL(sizes_qr_product(1024, 1024, 1024), 2950400);
    CHECK_EQUAL(sizes_qr_product(34, 6, 6), 77856);
}

static void decompositions(void) {
    CHECK_EQUAL(sizes_jacobi_svd(256, 256, false), 149024);
    CHECK_EQUAL(sizes_jacobi_svd(946, 16, false), 808704);
    CHECK_EQUAL(sizes_jacobi_svd(792, 555, true), 1301472);
    CHECK_EQUAL(sizes_jacobi_svd(2, 38, false), 786592);
    CHECK_EQUAL(sizes_jacobi_eigen(64), 7250);
    CHECK_EQUAL(sizes_jacobi_eigen_batch(32, 100), 212328);
    CHECK_EQUAL(sizes_symmetric_eigen(16, 8) * 4 + 128, 2514912);
    CHECK_EQUAL(sizes_symmetric_eigen(8192, 1) * 4 + 128, 1078035340);
    CHECK_EQUAL(sizes_general_eigen(1024, 8), 8421888);
}

static uint64_t transform(int64_t n, uint64_t batch, bool real) {
    bool sure = false;
    return sizes_transform(1, &n, batch, 8, real, &sure);
}

static void transforms(void) {
    bool sure = true;
    const int64_t plane[] = {512, 513};
    CHECK_EQUAL(transform(16384, 1, false), 0);
    CHECK_EQUAL(transform(100000, 8, false), 6400000);
    CHECK_EQUAL(transform(1000003, 1, false), 32401408);
    CHECK_EQUAL(transform(1009, 8, true), 65056);
    CHECK_EQUAL(transform(8191, 64, true), 10487552);
    CHECK_EQUAL(transform(189386, 1, true), 3831592);
    CHECK_EQUAL(sizes_transform(2, plane, 1, 8, true, &sure), 4202496);
    const int64_t between = 12000;
    sizes_transform(1, &between, 1, 8, false, &sure);
    CHECK(!sure);
}

static void sparse_products(void) {
    struct sparse_product product = {.rows = 256, .values = 661, .columns = 16, .index = 4, .balanced = true};
    CHECK_EQUAL(sizes_sparse_product(product), 115);
    product.columns = 1;
    product.type = BFLOAT_16;
    product.values = 634;
    CHECK_EQUAL(sizes_sparse_product(product), 1162);
}

int main(void) {
    factorisations();
    decompositions();
    transforms();
    sparse_products();
    return 0;
}
