/* cuSPARSE: matrices know their size, and how many values they hold as far as that can be known. */
#include "stand_in.h"

#include "sizes.h"

enum { CUSPARSE_NOT_INITIALIZED = 1, CUSPARSE_INVALID_VALUE = 3, CUSPARSE_EXECUTION_FAILED = 6 };

enum { POINTER_MODE = STREAM_FIELD + 1 };
enum { MATRIX_TYPE, FILL_MODE, DIAGONAL_TYPE, INDEX_BASE };
enum { ROWS, COLUMNS, VALUES, INDEX_TYPE, VALUE_TYPE, COMPRESSED_ROWS };
/* Types of indices, and algorithms of cusparseSpMM(). */
enum { INDEX_64_BITS = 3, BY_ROWS = 4, BALANCED = 6 };
enum { SAMPLED_PRODUCT_BYTES = 1 }; /* of any size; H200, CUDA 13.0 */

#define LIBRARY PHANTOM_CUSPARSE
#define STATUS                                                                                                     \
    ((struct status){.not_initialized = CUSPARSE_NOT_INITIALIZED, .execution_failed = CUSPARSE_EXECUTION_FAILED})
#define HANDLE(argument) argument

static int create_matrix(uint64_t out, uint64_t rows, uint64_t columns, uint64_t values) {
    int code = stand_in_create(LIBRARY, STATUS, out);
    if (code)
        return code;
    enter();
    uint64_t *matrix = stand_in_fields(LIBRARY, *(uint64_t *)out);
    matrix[ROWS] = rows;
    matrix[COLUMNS] = columns;
    matrix[VALUES] = values;
    return leave(SUCCESS);
}

static int create_compressed(uint64_t out, uint64_t rows, uint64_t columns, uint64_t values, uint64_t index,
                             uint64_t type) {
    int code = create_matrix(out, rows, columns, values);
    if (code)
        return code;
    enter();
    uint64_t *matrix = stand_in_fields(LIBRARY, *(uint64_t *)out);
    matrix[INDEX_TYPE] = (uint32_t)index;
    matrix[VALUE_TYPE] = (uint32_t)type;
    matrix[COMPRESSED_ROWS] = true;
    return leave(SUCCESS);
}

/* The size of the workspace for a product with a sparse matrix; `product` is NULL if it is a vector. */
static int tell_product_size(const char *name, uint64_t sparse, uint64_t product, uint64_t algorithm, uint64_t out) {
    bool vector = !product, known_way = vector || algorithm == BY_ROWS || algorithm == BALANCED;
    enter();
    const uint64_t *left = stand_in_fields(LIBRARY, sparse), *result = stand_in_fields(LIBRARY, product);
    bool known = known_way && left && left[COMPRESSED_ROWS] && (vector || result);
    uint64_t bytes = 0;
    if (known)
        bytes = sizes_sparse_product((struct sparse_product){
            .rows = left[ROWS],
            .values = left[VALUES],
            .columns = vector ? 1 : result[COLUMNS],
            .index = left[INDEX_TYPE] == INDEX_64_BITS ? 8 : 4,
            .type = left[VALUE_TYPE],
            .balanced = algorithm == BALANCED,
        });
    leave(SUCCESS);
    stand_in_put(out, bytes, sizeof bytes);
    return known ? SUCCESS : stand_in_remark_size(name);
}

/* A setting that is returned, not written. */
static int setting(uint64_t handle, int field) {
    enter();
    const uint64_t *fields = stand_in_fields(LIBRARY, handle);
    int value = fields ? (int)fields[field] : 0;
    leave(SUCCESS);
    return value;
}

#define MATRIX(name, rows, columns, values) STAND_IN(name, return create_matrix(a1, a##rows, a##columns, a##values);)
#define DENSE(name, rows, columns) STAND_IN(name, return create_matrix(a1, a##rows, a##columns, 0);)
#define COMPRESSED(name, rows, columns, values, index, type)                                                       \
    STAND_IN(name, return create_compressed(a1, a##rows, a##columns, a##values, a##index, a##type);)
#define VECTOR_SIZE(name, sparse, out) STAND_IN(name, return tell_product_size(#name, a##sparse, 0, 0, a##out);)
#define PRODUCT_SIZE(name, sparse, product, algorithm, out)                                                        \
    STAND_IN(name, return tell_product_size(#name, a##sparse, a##product, (uint32_t)a##algorithm, a##out);)
#define RETURNS(name, field) STAND_IN(name, return setting(a1, field);)
#include "cusparse.def"

PHANTOM_API int cusparseSpMatGetSize(void *matrix, int64_t *rows, int64_t *columns, int64_t *values) {
    usage_call(LIBRARY);
    if (!rows || !columns || !values)
        return CUSPARSE_INVALID_VALUE;
    enter();
    const uint64_t *fields = stand_in_fields(LIBRARY, (uint64_t)matrix);
    *rows = fields ? (int64_t)fields[ROWS] : 0;
    *columns = fields ? (int64_t)fields[COLUMNS] : 0;
    *values = fields ? (int64_t)fields[VALUES] : 0;
    return leave(fields ? SUCCESS : CUSPARSE_INVALID_VALUE);
}

/* The product is then known to have some number of values, which depends on where those of the factors lie. */
PHANTOM_API int cusparseSpGEMM_compute(void *handle, int a_operation, int b_operation, const void *alpha, void *a,
                                       void *b, const void *beta, void *c, int compute, int algorithm,
                                       void *description, size_t *bytes, void *buffer) {
    (void)a_operation, (void)b_operation, (void)alpha, (void)beta, (void)compute, (void)algorithm, (void)description;
    usage_call(LIBRARY);
    if (!bytes)
        return CUSPARSE_INVALID_VALUE;
    if (!buffer)
        *bytes = 0;
    enter();
    const uint64_t *left = stand_in_fields(LIBRARY, (uint64_t)a), *right = stand_in_fields(LIBRARY, (uint64_t)b);
    uint64_t *product = stand_in_fields(LIBRARY, (uint64_t)c);
    bool known = left && right && product;
    if (known)
        product[VALUES] = sizes_product_values(left[ROWS], left[COLUMNS], right[COLUMNS], left[VALUES], right[VALUES]);
    leave(SUCCESS);
    usage_remark("a product of sparse matrices: its number of values is an estimate, for values evenly spread");
    return known ? stand_in_work(LIBRARY, STATUS, (uint64_t)handle) : CUSPARSE_INVALID_VALUE;
}

/* A sum has at most the values of both. */
PHANTOM_API int cusparseXcsrgeam2Nnz(void *handle, int rows, int columns, void *a, int a_values, const int *a_rows,
                                     const int *a_columns, void *b, int b_values, const int *b_rows,
                                     const int *b_columns, void *c, int *c_rows, int *total, void *workspace) {
    (void)rows, (void)columns, (void)a, (void)a_rows, (void)a_columns, (void)b, (void)b_rows, (void)b_columns, (void)c;
    (void)c_rows, (void)workspace;
    usage_call(LIBRARY);
    stand_in_put((uint64_t)total, (uint64_t)((int64_t)a_values + b_values), sizeof *total);
    usage_remark("a sum of sparse matrices: it is taken to have as many values as both together");
    return stand_in_work(LIBRARY, STATUS, (uint64_t)handle);
}

/* -1: no pivot is zero. */
#define NO_ZERO_PIVOT(name)                                                                                        \
    PHANTOM_API int name(void *handle, void *info, int *position) {                                                \
        (void)info;                                                                                                \
        usage_call(LIBRARY);                                                                                       \
        stand_in_put((uint64_t)position, UINT32_MAX, sizeof *position);                                            \
        return stand_in_work(LIBRARY, STATUS, (uint64_t)handle);                                                   \
    }

NO_ZERO_PIVOT(cusparseXbsrsv2_zeroPivot)
NO_ZERO_PIVOT(cusparseXbsrsm2_zeroPivot)

/* Every CUDA since 12 comes with release 12. */
static const int version[] = {12, 6, 2};

PHANTOM_API int cusparseGetVersion(void *handle, int *out) {
    (void)handle;
    if (!out)
        return CUSPARSE_INVALID_VALUE;
    *out = version[0] * 1000 + version[1] * 100 + version[2];
    return SUCCESS;
}

PHANTOM_API int cusparseGetProperty(int property, int *out) {
    return stand_in_property(version, property, (uint64_t)out, CUSPARSE_INVALID_VALUE);
}

PHANTOM_API const char *cusparseGetErrorName(int status) {
    switch (status) {
    case SUCCESS: return "CUSPARSE_STATUS_SUCCESS";
    case CUSPARSE_NOT_INITIALIZED: return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case CUSPARSE_INVALID_VALUE: return "CUSPARSE_STATUS_INVALID_VALUE";
    case CUSPARSE_EXECUTION_FAILED: return "CUSPARSE_STATUS_EXECUTION_FAILED";
    case 10: return "CUSPARSE_STATUS_NOT_SUPPORTED";
    default: return "unrecognized error code";
    }
}

PHANTOM_API const char *cusparseGetErrorString(int status) {
    return cusparseGetErrorName(status);
}
