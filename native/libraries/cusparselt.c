/* cuSPARSELt: products with matrices of which two values in four are kept. */
#include "sizes.h"
#include "stand_in.h"

#include <stdbool.h>

enum { CUSPARSELT_NOT_INITIALIZED = 1, CUSPARSELT_INVALID_VALUE = 3, CUSPARSELT_EXECUTION_FAILED = 6 };

#define LIBRARY PHANTOM_CUSPARSELT
#define STATUS                                                                                                     \
    ((struct status){.not_initialized = CUSPARSELT_NOT_INITIALIZED, .execution_failed = CUSPARSELT_EXECUTION_FAILED})
#include "cusparselt.def"

/* What we keep in the caller's descriptor of a matrix, of a product and of a plan, which have room for more. */
struct described {
    int64_t rows, columns;
    int type;
    bool sparse;
};

static int describe(struct described *out, int64_t rows, int64_t columns, int type, bool sparse) {
    usage_call(LIBRARY);
    if (!out)
        return CUSPARSELT_INVALID_VALUE;
    *out = (struct described){.rows = rows, .columns = columns, .type = type, .sparse = sparse};
    return SUCCESS;
}

PHANTOM_API int cusparseLtDenseDescriptorInit(void *handle, struct described *out, int64_t rows, int64_t columns,
                                              int64_t step, uint32_t alignment, int type, int order) {
    (void)handle, (void)step, (void)alignment, (void)order;
    return describe(out, rows, columns, type, false);
}

PHANTOM_API int cusparseLtStructuredDescriptorInit(void *handle, struct described *out, int64_t rows, int64_t columns,
                                                   int64_t step, uint32_t alignment, int type, int order,
                                                   int sparsity) {
    (void)handle, (void)step, (void)alignment, (void)order, (void)sparsity;
    return describe(out, rows, columns, type, true);
}

/* A product and its plan are described by their sparse matrix. */
PHANTOM_API int cusparseLtMatmulDescriptorInit(void *handle, struct described *out, int a_operation, int b_operation,
                                               const struct described *a, const struct described *b) {
    (void)handle, (void)a_operation, (void)b_operation;
    usage_call(LIBRARY);
    if (!out || !a || !b)
        return CUSPARSELT_INVALID_VALUE;
    *out = a->sparse ? *a : *b;
    return SUCCESS;
}

PHANTOM_API int cusparseLtMatmulPlanInit(void *handle, struct described *out, const struct described *product) {
    (void)handle;
    usage_call(LIBRARY);
    if (!out || !product)
        return CUSPARSELT_INVALID_VALUE;
    *out = *product;
    return SUCCESS;
}

static int compressed(const struct described *matrix, size_t *bytes, size_t *buffer_bytes) {
    usage_call(LIBRARY);
    if (!matrix || !bytes || !buffer_bytes)
        return CUSPARSELT_INVALID_VALUE;
    *bytes = sizes_compressed((uint64_t)(matrix->rows * matrix->columns), data_type_bytes(matrix->type));
    *buffer_bytes = 0;
    return SUCCESS;
}

PHANTOM_API int cusparseLtSpMMACompressedSize(void *handle, const struct described *plan, size_t *bytes,
                                              size_t *buffer_bytes) {
    (void)handle;
    return compressed(plan, bytes, buffer_bytes);
}

PHANTOM_API int cusparseLtSpMMACompressedSize2(void *handle, const struct described *matrix, size_t *bytes,
                                               size_t *buffer_bytes) {
    (void)handle;
    return compressed(matrix, bytes, buffer_bytes);
}

static int multiply(void *const *streams, int count) {
    usage_call(LIBRARY);
    return stand_in_work_on(STATUS, streams && count > 0 ? (uint64_t)streams[0] : 0);
}

PHANTOM_API int cusparseLtMatmul(void *handle, void *plan, const void *alpha, const void *a, const void *b,
                                 const void *beta, const void *c, void *d, void *workspace, void *const *streams,
                                 int count) {
    (void)handle, (void)plan, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)d, (void)workspace;
    return multiply(streams, count);
}

PHANTOM_API int cusparseLtMatmulSearch(void *handle, void *plan, const void *alpha, const void *a, const void *b,
                                       const void *beta, const void *c, void *d, void *workspace,
                                       void *const *streams, int count) {
    (void)handle, (void)plan, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)d, (void)workspace;
    return multiply(streams, count);
}

static const int version[] = {0, 8, 0};

PHANTOM_API int cusparseLtGetVersion(void *handle, int *out) {
    (void)handle;
    if (!out)
        return CUSPARSELT_INVALID_VALUE;
    *out = version[0] * 1000 + version[1] * 100 + version[2];
    return SUCCESS;
}

PHANTOM_API int cusparseLtGetProperty(int property, int *out) {
    return stand_in_property(version, property, (uint64_t)out, CUSPARSELT_INVALID_VALUE);
}

PHANTOM_API const char *cusparseLtGetErrorName(int status) {
    return status ? "CUSPARSE_STATUS_INVALID_VALUE" : "CUSPARSE_STATUS_SUCCESS";
}

PHANTOM_API const char *cusparseLtGetErrorString(int status) {
    return status ? "invalid value" : "success";
}
