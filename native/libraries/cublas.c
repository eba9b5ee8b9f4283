/* cuBLAS: a handle remembers what it was told; products are not computed. */
#include "cublas.h"

#include "runtime.h"
#include "stand_in.h"

#define LIBRARY PHANTOM_CUBLAS
#define STATUS ((struct status){.not_initialized = CUBLAS_NOT_INITIALIZED, .execution_failed = CUBLAS_EXECUTION_FAILED})
#define HANDLE(argument) argument

enum {
    MATH_MODE = STREAM_FIELD + 1,
    POINTER_MODE,
    ATOMICS_MODE,
    SM_COUNT,
    EMULATION_STRATEGY,
    SPECIAL_VALUES,
    MANTISSA_CONTROL,
    MANTISSA_BITS,
    MANTISSA_OFFSET,
    MANTISSA_POINTER,
};

#include "cublas.def"

STAND_IN(cublasCreate_v2, usage_call(PHANTOM_CUBLAS_HANDLES); return stand_in_create(LIBRARY, STATUS, a1);)

/* The releases that come with CUDA 12.8 and 13.0. */
static const int *version(void) {
    static const int of_12[] = {12, 8, 4}, of_13[] = {13, 1, 0};
    return runtime_major() < 13 ? of_12 : of_13;
}

int cublas_version(void) {
    return version()[0] * 10000 + version()[1] * 100 + version()[2];
}

int cublas_property(int property, uint64_t out) {
    return stand_in_property(version(), property, out, CUBLAS_INVALID_VALUE);
}

const char *cublas_status_name(int status) {
    switch (status) {
    case SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case 8: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16: return "CUBLAS_STATUS_LICENSE_ERROR";
    default: return "CUBLAS_STATUS_<unknown>";
    }
}

PHANTOM_API int cublasGetVersion_v2(void *handle, int *out) {
    (void)handle;
    if (!out)
        return CUBLAS_INVALID_VALUE;
    *out = cublas_version();
    return SUCCESS;
}

PHANTOM_API int cublasGetProperty(int property, int *out) {
    return cublas_property(property, (uint64_t)out);
}

PHANTOM_API size_t cublasGetCudartVersion(void) {
    return runtime_major() < 13 ? 12080 : 13000;
}

PHANTOM_API const char *cublasGetStatusName(int status) {
    return cublas_status_name(status);
}

PHANTOM_API const char *cublasGetStatusString(int status) {
    return cublas_status_name(status);
}

/* Copies between host and device: a vector is a matrix with one element in each column. */
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                 int direction);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      int direction, void *stream);

enum { TO_DEVICE = 1, TO_HOST = 2 };

static int copied(int code) {
    return code ? CUBLAS_MAPPING_ERROR : SUCCESS;
}

static int copy(int64_t rows, int64_t columns, int64_t element, const void *from, int64_t from_step, void *to,
                int64_t to_step, int direction) {
    usage_call(PHANTOM_CUBLAS);
    return copied(cudaMemcpy2D(to, (size_t)(to_step * element), from, (size_t)(from_step * element),
                               (size_t)(rows * element), (size_t)columns, direction));
}

static int copy_async(int64_t rows, int64_t columns, int64_t element, const void *from, int64_t from_step, void *to,
                      int64_t to_step, int direction, void *stream) {
    usage_call(PHANTOM_CUBLAS);
    return copied(cudaMemcpy2DAsync(to, (size_t)(to_step * element), from, (size_t)(from_step * element),
                                    (size_t)(rows * element), (size_t)columns, direction, stream));
}

#define COPIES(way, direction, suffix, integer)                                                                    \
    PHANTOM_API int cublas##way##Vector##suffix(integer n, integer element, const void *from, integer from_step,   \
                                                void *to, integer to_step) {                                       \
        return copy(1, n, element, from, from_step, to, to_step, direction);                                       \
    }                                                                                                              \
    PHANTOM_API int cublas##way##VectorAsync##suffix(integer n, integer element, const void *from,                 \
                                                     integer from_step, void *to, integer to_step, void *stream) { \
        return copy_async(1, n, element, from, from_step, to, to_step, direction, stream);                         \
    }                                                                                                              \
    PHANTOM_API int cublas##way##Matrix##suffix(integer rows, integer columns, integer element, const void *from,  \
                                                integer from_step, void *to, integer to_step) {                    \
        return copy(rows, columns, element, from, from_step, to, to_step, direction);                              \
    }                                                                                                              \
    PHANTOM_API int cublas##way##MatrixAsync##suffix(integer rows, integer columns, integer element,               \
                                                     const void *from, integer from_step, void *to,                \
                                                     integer to_step, void *stream) {                              \
        return copy_async(rows, columns, element, from, from_step, to, to_step, direction, stream);                \
    }

COPIES(Set, TO_DEVICE, , int)
COPIES(Get, TO_HOST, , int)
COPIES(Set, TO_DEVICE, _64, int64_t)
COPIES(Get, TO_HOST, _64, int64_t)
