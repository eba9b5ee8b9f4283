/* cuBLASLt: descriptors keep their attributes, and every product has one algorithm, which needs no workspace. */
#include "cublas.h"
#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

#define LIBRARY PHANTOM_CUBLASLT
#define STATUS ((struct status){.not_initialized = CUBLAS_NOT_INITIALIZED, .execution_failed = CUBLAS_EXECUTION_FAILED})
#define HANDLE(argument) argument
#include "cublaslt.def"

/* A descriptor: of our making, or in the caller's memory, which is as large as the caller says. */
struct descriptor {
    uint64_t capacity; /* attributes that fit */
    uint64_t attribute[];
};

enum { DESCRIPTOR_ATTRIBUTES = 64 };

static void start(struct descriptor *descriptor, size_t bytes) {
    memset(descriptor, 0, bytes);
    descriptor->capacity = bytes / sizeof(uint64_t) - 1;
}

static void keep(struct descriptor *descriptor, unsigned attribute, uint64_t value) {
    if (attribute < descriptor->capacity)
        descriptor->attribute[attribute] = value;
}

static struct descriptor *create(void **out) {
    size_t bytes = (1 + DESCRIPTOR_ATTRIBUTES) * sizeof(uint64_t);
    struct descriptor *descriptor = out ? malloc(bytes) : NULL;
    usage_call(LIBRARY);
    if (descriptor) {
        start(descriptor, bytes);
        *out = descriptor;
    }
    return descriptor;
}

static int destroy(void *descriptor) {
    free(descriptor);
    return SUCCESS;
}

static int set(struct descriptor *descriptor, unsigned attribute, const void *from, size_t bytes) {
    uint64_t value = 0;
    if (!descriptor || !from)
        return CUBLAS_INVALID_VALUE;
    if (bytes <= sizeof value) {
        memcpy(&value, from, bytes);
        keep(descriptor, attribute, value);
    }
    return SUCCESS;
}

static int get(const struct descriptor *descriptor, unsigned attribute, void *out, size_t bytes, size_t *written) {
    if (!descriptor || (!out && bytes))
        return CUBLAS_INVALID_VALUE;
    uint64_t value = attribute < descriptor->capacity ? descriptor->attribute[attribute] : 0;
    if (bytes) {
        memset(out, 0, bytes);
        memcpy(out, &value, bytes < sizeof value ? bytes : sizeof value);
    }
    if (written)
        *written = bytes ? bytes : sizeof value;
    return SUCCESS;
}

#define ATTRIBUTES(kind)                                                                                           \
    PHANTOM_API int cublasLt##kind##Destroy(void *descriptor) {                                                    \
        return destroy(descriptor);                                                                                \
    }                                                                                                              \
    PHANTOM_API int cublasLt##kind##SetAttribute(void *descriptor, unsigned attribute, const void *from,           \
                                                 size_t bytes) {                                                   \
        return set(descriptor, attribute, from, bytes);                                                            \
    }                                                                                                              \
    PHANTOM_API int cublasLt##kind##GetAttribute(const void *descriptor, unsigned attribute, void *out,            \
                                                 size_t bytes, size_t *written) {                                  \
        return get(descriptor, attribute, out, bytes, written);                                                    \
    }

ATTRIBUTES(MatmulDesc)
ATTRIBUTES(MatrixLayout)
ATTRIBUTES(MatmulPreference)
ATTRIBUTES(MatrixTransformDesc)
ATTRIBUTES(EmulationDesc)

/* The first attributes of each kind are what it is made of, in this order. */
static int describe(struct descriptor *descriptor, const uint64_t *values, unsigned count) {
    for (unsigned i = 0; descriptor && i < count; i++)
        keep(descriptor, i, values[i]);
    return descriptor ? SUCCESS : CUBLAS_ALLOC_FAILED;
}

static struct descriptor *in_place(void *descriptor, size_t bytes) {
    if (!descriptor || bytes < sizeof(struct descriptor))
        return NULL;
    start(descriptor, bytes);
    return descriptor;
}

static int describe_product(struct descriptor *descriptor, int compute, int scale) {
    return describe(descriptor, (const uint64_t[]){(unsigned)compute, (unsigned)scale}, 2);
}

static int describe_layout(struct descriptor *descriptor, int type, uint64_t rows, uint64_t columns, int64_t step) {
    enum { COLUMN_ORDER = 0, ONE_MATRIX = 1 };
    return describe(descriptor,
                    (const uint64_t[]){(unsigned)type, COLUMN_ORDER, rows, columns, (uint64_t)step, ONE_MATRIX}, 6);
}

PHANTOM_API int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    return describe_product(create(out), compute, scale);
}

PHANTOM_API int cublasLtMatmulDescInit_internal(void *descriptor, size_t bytes, int compute, int scale) {
    return describe_product(in_place(descriptor, bytes), compute, scale);
}

PHANTOM_API int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t step) {
    return describe_layout(create(out), type, rows, columns, step);
}

PHANTOM_API int cublasLtMatrixLayoutInit_internal(void *descriptor, size_t bytes, int type, uint64_t rows,
                                                  uint64_t columns, int64_t step) {
    return describe_layout(in_place(descriptor, bytes), type, rows, columns, step);
}

PHANTOM_API int cublasLtMatmulPreferenceCreate(void **out) {
    return describe(create(out), NULL, 0);
}

PHANTOM_API int cublasLtMatmulPreferenceInit_internal(void *descriptor, size_t bytes) {
    return describe(in_place(descriptor, bytes), NULL, 0);
}

PHANTOM_API int cublasLtMatrixTransformDescCreate(void **out, int scale) {
    return describe(create(out), (const uint64_t[]){(unsigned)scale}, 1);
}

PHANTOM_API int cublasLtMatrixTransformDescInit_internal(void *descriptor, size_t bytes, int scale) {
    return describe(in_place(descriptor, bytes), (const uint64_t[]){(unsigned)scale}, 1);
}

PHANTOM_API int cublasLtEmulationDescCreate(void **out) {
    return describe(create(out), NULL, 0);
}

PHANTOM_API int cublasLtEmulationDescInit_internal(void *descriptor, size_t bytes) {
    return describe(in_place(descriptor, bytes), NULL, 0);
}

/* An algorithm: attributes of 32 bits, of which the first is its number. */
enum { ALGORITHM = 66, ALGORITHM_ATTRIBUTES = 16 };

struct algorithm {
    uint32_t attribute[ALGORITHM_ATTRIBUTES];
};

struct heuristic_result {
    struct algorithm algorithm;
    uint64_t workspace;
    int status;
    float waves;
    int reserved[4];
};

static _Thread_local unsigned asked;

unsigned cublaslt_asked(void) {
    return asked;
}

PHANTOM_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                               void *preference, int wanted, struct heuristic_result *results,
                                               int *found) {
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
    usage_call(LIBRARY);
    asked++;
    if (wanted < 1 || !results || !found)
        return CUBLAS_INVALID_VALUE;
    results[0] = (struct heuristic_result){.algorithm = {{ALGORITHM}}, .waves = 1};
    *found = 1;
    return SUCCESS;
}

PHANTOM_API int cublasLtMatmulAlgoCheck(void *handle, void *product, void *a, void *b, void *c, void *d,
                                        const struct algorithm *algorithm, struct heuristic_result *result) {
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d;
    usage_call(LIBRARY);
    if (!algorithm || !result)
        return CUBLAS_INVALID_VALUE;
    *result = (struct heuristic_result){.algorithm = *algorithm, .waves = 1};
    return SUCCESS;
}

PHANTOM_API int cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b, int c, int d, int wanted,
                                         int *numbers, int *found) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    usage_call(LIBRARY);
    if (wanted < 1 || !numbers || !found)
        return CUBLAS_INVALID_VALUE;
    numbers[0] = ALGORITHM;
    *found = 1;
    return SUCCESS;
}

PHANTOM_API int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d, int number,
                                       struct algorithm *out) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    usage_call(LIBRARY);
    if (!out)
        return CUBLAS_INVALID_VALUE;
    *out = (struct algorithm){{(uint32_t)number}};
    return SUCCESS;
}

static int tell(uint32_t value, void *out, size_t bytes, size_t *written) {
    if (!out && bytes)
        return CUBLAS_INVALID_VALUE;
    if (bytes) {
        memset(out, 0, bytes);
        memcpy(out, &value, bytes < sizeof value ? bytes : sizeof value);
    }
    if (written)
        *written = bytes ? bytes : sizeof value;
    return SUCCESS;
}

PHANTOM_API int cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, unsigned attribute, void *out,
                                                     size_t bytes, size_t *written) {
    if (!algorithm)
        return CUBLAS_INVALID_VALUE;
    return tell(attribute < ALGORITHM_ATTRIBUTES ? algorithm->attribute[attribute] : 0, out, bytes, written);
}

PHANTOM_API int cublasLtMatmulAlgoConfigSetAttribute(struct algorithm *algorithm, unsigned attribute,
                                                     const void *from, size_t bytes) {
    if (!algorithm || !from)
        return CUBLAS_INVALID_VALUE;
    if (attribute < ALGORITHM_ATTRIBUTES && bytes <= sizeof *algorithm->attribute)
        memcpy(&algorithm->attribute[attribute], from, bytes);
    return SUCCESS;
}

/* What an algorithm could do: nothing optional. */
PHANTOM_API int cublasLtMatmulAlgoCapGetAttribute(const struct algorithm *algorithm, unsigned attribute, void *out,
                                                  size_t bytes, size_t *written) {
    (void)attribute;
    return algorithm ? tell(0, out, bytes, written) : CUBLAS_INVALID_VALUE;
}

PHANTOM_API int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout,
                               const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,
                               void *d_layout, const struct algorithm *algorithm, void *workspace,
                               size_t workspace_bytes, void *stream) {
    (void)handle, (void)product, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout, (void)beta, (void)c;
    (void)c_layout, (void)d, (void)d_layout, (void)algorithm;
    usage_call(LIBRARY);
    usage_workspace(LIBRARY, workspace, workspace_bytes, NULL);
    return stand_in_work_on(STATUS, (uint64_t)stream);
}

PHANTOM_API size_t cublasLtGetVersion(void) {
    return (size_t)cublas_version();
}

size_t cublasGetCudartVersion(void);

PHANTOM_API size_t cublasLtGetCudartVersion(void) {
    return cublasGetCudartVersion();
}

PHANTOM_API int cublasLtGetProperty(int property, int *out) {
    return cublas_property(property, (uint64_t)out);
}

PHANTOM_API const char *cublasLtGetStatusName(int status) {
    return cublas_status_name(status);
}

PHANTOM_API const char *cublasLtGetStatusString(int status) {
    return cublas_status_name(status);
}

PHANTOM_API unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) {
    (void)mask;
    return 0;
}
