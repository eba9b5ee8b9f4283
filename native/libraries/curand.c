/* cuRAND: generators without numbers. */
#include "stand_in.h"

enum { CURAND_NOT_INITIALIZED = 101, CURAND_OUT_OF_RANGE = 104, CURAND_LAUNCH_FAILURE = 201 };

#define LIBRARY PHANTOM_CURAND
#define STATUS ((struct status){.not_initialized = CURAND_NOT_INITIALIZED, .execution_failed = CURAND_LAUNCH_FAILURE})
#define HANDLE(argument) argument
#include "curand.def"

/* Every CUDA since 11 comes with release 10. */
static const int version[] = {10, 3, 9};

PHANTOM_API int curandGetVersion(int *out) {
    if (!out)
        return CURAND_OUT_OF_RANGE;
    *out = version[0] * 10000 + version[1] * 100 + version[2];
    return SUCCESS;
}

PHANTOM_API int curandGetProperty(int property, int *out) {
    return stand_in_property(version, property, (uint64_t)out, CURAND_OUT_OF_RANGE);
}
