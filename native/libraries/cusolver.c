/* cuSOLVER: factorisations without numbers; every one reports success through device memory. */
#include "runtime.h"
#include "sizes.h"
#include "stand_in.h"
#include "state.h"

enum { CUSOLVER_NOT_INITIALIZED = 1, CUSOLVER_INVALID_VALUE = 3, CUSOLVER_EXECUTION_FAILED = 6 };

enum { DETERMINISTIC_MODE = STREAM_FIELD + 1, MATH_MODE };

#define LIBRARY PHANTOM_CUSOLVER
#define STATUS                                                                                                     \
    ((struct status){.not_initialized = CUSOLVER_NOT_INITIALIZED, .execution_failed = CUSOLVER_EXECUTION_FAILED})
#define HANDLE(argument) argument

/* Doubles for the host, one for each matrix of a batch. */
#define RESIDUALS(name, out, count) STAND_IN(name, stand_in_zero(a##out, (uint32_t)a##count * UINT64_C(8)); return WORK;)

/* Of an argument that is an int, the upper half of a register is anything. */
#define INT(argument) ((uint64_t)(uint32_t)(argument))

/* Beside a workspace of elements, functions for any type keep state. */
enum { STATE_BYTES = 128, SIDE_LEFT = 0, JACOBI_LIMIT = 4096 };

/* gesvdjBatched() needs as much for every size and batch (sizes up to its limit of 32, H200, CUDA 13.0). */
enum { SMALL_SVD_ELEMENTS = 992 };

static uint64_t with_state(uint64_t elements, uint64_t type) {
    return elements * data_type_bytes((int)type) + STATE_BYTES;
}

static uint64_t lu_bytes(uint64_t m, uint64_t n, uint64_t element) {
    enter();
    uint64_t multiprocessors = (uint64_t)phantom.spec.sm;
    leave(SUCCESS);
    return sizes_lu(m, n, element, multiprocessors);
}

static uint64_t product_elements(uint64_t side, uint64_t m, uint64_t n, uint64_t k) {
    if (side == SIDE_LEFT)
        return sizes_qr_product(m, n, k);
    stand_in_remark_size("cusolverDn?ormqr, from the right,");
    return 0;
}

static uint64_t jacobi_elements(uint64_t n) {
    if (n < JACOBI_LIMIT)
        return sizes_jacobi_eigen(n);
    stand_in_remark_size("cusolverDn?syevj for 4096 rows or more");
    return 0;
}

#include "cusolver.def"

/* The releases that come with CUDA 12.8 and 13.0. */
static const int *version(void) {
    static const int of_12[] = {11, 7, 3}, of_13[] = {12, 0, 4};
    return runtime_major() < 13 ? of_12 : of_13;
}

PHANTOM_API int cusolverGetVersion(int *out) {
    if (!out)
        return CUSOLVER_INVALID_VALUE;
    *out = version()[0] * 1000 + version()[1] * 100 + version()[2];
    return SUCCESS;
}

PHANTOM_API int cusolverGetProperty(int property, int *out) {
    return stand_in_property(version(), property, (uint64_t)out, CUSOLVER_INVALID_VALUE);
}
