/* cuSOLVER: factorisations without numbers; every one reports success through device memory. */
#include "runtime.h"
#include "stand_in.h"

enum { CUSOLVER_NOT_INITIALIZED = 1, CUSOLVER_INVALID_VALUE = 3, CUSOLVER_EXECUTION_FAILED = 6 };

enum { DETERMINISTIC_MODE = STREAM_FIELD + 1, MATH_MODE };

#define LIBRARY PHANTOM_CUSOLVER
#define STATUS                                                                                                     \
    ((struct status){.not_initialized = CUSOLVER_NOT_INITIALIZED, .execution_failed = CUSOLVER_EXECUTION_FAILED})
#define HANDLE(argument) argument

/* Doubles for the host, one for each matrix of a batch. */
#define RESIDUALS(name, out, count) STAND_IN(name, stand_in_zero(a##out, (uint32_t)a##count * UINT64_C(8)); return WORK;)
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
