/* What cuBLAS and cuBLASLt share: status codes and versions. */
#ifndef HOTBED_LIBRARIES_CUBLAS_H
#define HOTBED_LIBRARIES_CUBLAS_H

#include <stdint.h>

enum {
    CUBLAS_NOT_INITIALIZED = 1,
    CUBLAS_ALLOC_FAILED = 3,
    CUBLAS_INVALID_VALUE = 7,
    CUBLAS_MAPPING_ERROR = 11,
    CUBLAS_EXECUTION_FAILED = 13,
    CUBLAS_NOT_SUPPORTED = 15,
};

/* Of the release that comes with the program's CUDA, as 10000 major + 100 minor + patch. */
int cublas_version(void);

/* Sets *out to the major, minor or patch number (property 0, 1, 2). */
int cublas_property(int property, uint64_t out);

/* How often this thread has asked cuBLASLt which algorithm to take, and so how much workspace. */
unsigned cublaslt_asked(void);

const char *cublas_status_name(int status);

#endif
