/* What CUDA's libraries answer where a table cannot say it: algorithms, attributes, code, sizes. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

#include <string.h>

struct result {
    uint32_t algorithm[16];
    uint64_t workspace;
    int status;
    float waves;
    int reserved[4];
};

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t step);
int cublasLtMatrixLayoutInit_internal(void *layout, size_t bytes, int type, uint64_t rows, uint64_t columns,
                                      int64_t step);
int cublasLtMatrixLayoutGetAttribute(void *layout, int attribute, void *out, size_t bytes, size_t *written);
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *from, size_t bytes);
int cublasLtMatrixLayoutDestroy(void *layout);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, struct result *results, int *found);
int cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *out, size_t bytes,
                                         size_t *written);
int cublasSdot_v2(void *handle, int n, const float *x, int x_step, const float *y, int y_step, float *out);
int cublasCreate_v2(void **out);
int cublasGetVector(int n, int element, const void *from, int from_step, void *to, int to_step);
int nvrtcCreateProgram(void **out, const char *source, const char *name, int headers, void *texts, void *names);
int nvrtcAddNameExpression(void *program, const char *text);
int nvrtcGetLoweredName(void *program, const char *text, const char **out);
int nvrtcGetPTXSize(void *program, size_t *out);
int nvrtcGetPTX(void *program, char *out);
int nvrtcDestroyProgram(void **program);
int cufftPlan1d(int *out, int x, int type, int batch);
int cufftDestroy(int plan);
int cusparseLtStructuredDescriptorInit(void *handle, void *out, int64_t rows, int64_t columns, int64_t step,
                                       uint32_t alignment, int type, int order, int sparsity);
int cusparseLtSpMMACompressedSize2(void *handle, void *matrix, size_t *bytes, size_t *buffer);

enum { HALF = 2, ROWS = 2, BATCH = 5, PLANE = 7 };

static void check_layout(void *layout) {
    uint64_t rows = 0;
    int batch = 6;
    size_t written = 0;
    CHECK_EQUAL(cublasLtMatrixLayoutGetAttribute(layout, ROWS, &rows, sizeof rows, &written), 0);
    CHECK_EQUAL(rows, 128);
    CHECK_EQUAL(written, 8);
    CHECK_EQUAL(cublasLtMatrixLayoutSetAttribute(layout, BATCH, &batch, sizeof batch), 0);
    batch = 0;
    CHECK_EQUAL(cublasLtMatrixLayoutGetAttribute(layout, BATCH, &batch, sizeof batch, &written), 0);
    CHECK_EQUAL(batch, 6);
}

static void layouts_keep_their_attributes(void) {
    void *made = NULL;
    uint64_t given[9];
    CHECK_EQUAL(cublasLtMatrixLayoutCreate(&made, HALF, 128, 64, 128), 0);
    check_layout(made);
    CHECK_EQUAL(cublasLtMatrixLayoutDestroy(made), 0);
    /* A layout in the caller's memory is eight words; an attribute that has no room there is not kept. */
    given[8] = 99;
    CHECK_EQUAL(cublasLtMatrixLayoutInit_internal(given, 64, HALF, 128, 64, 128), 0);
    check_layout(given);
    uint64_t plane = 1;
    CHECK_EQUAL(cublasLtMatrixLayoutSetAttribute(given, PLANE, &plane, sizeof plane), 0);
    CHECK_EQUAL(given[8], 99);
}

static void one_algorithm_needs_no_workspace(void) {
    struct result results[2];
    int found = 0, number = 0;
    size_t written = 0;
    memset(results, 0xa5, sizeof results);
    CHECK_EQUAL(cublasLtMatmulAlgoGetHeuristic(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, results, &found), 0);
    CHECK_EQUAL(found, 1);
    CHECK_EQUAL(results[0].workspace, 0);
    CHECK_EQUAL(results[0].status, 0);
    CHECK_EQUAL(cublasLtMatmulAlgoConfigGetAttribute(results, 0, &number, sizeof number, &written), 0);
    CHECK_EQUAL(number, results[0].algorithm[0]);
    CHECK_EQUAL(cublasLtMatmulAlgoGetHeuristic(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, results, &found), 7);
}

static void results_go_where_the_host_can_write(void) {
    void *handle = NULL, *device = NULL;
    float dot = 3, read[4] = {1, 1, 1, 1};
    CHECK_EQUAL(cublasCreate_v2(&handle), 0);
    CHECK_EQUAL(cudaMalloc(&device, MIB), 0);
    CHECK_EQUAL(cublasSdot_v2(handle, 4, device, 1, device, 1, &dot), 0);
    CHECK(dot == 0);
    CHECK_EQUAL(cublasSdot_v2(handle, 4, device, 1, device, 1, device), 0);
    CHECK_EQUAL(cublasGetVector(2, sizeof *read, device, 1, read, 2), 0);
    CHECK(read[0] == 0 && read[1] == 1 && read[2] == 0 && read[3] == 1);
    CHECK_EQUAL(cublasSdot_v2(NULL, 4, device, 1, device, 1, &dot), 1);
}

static void code_has_names_and_a_size(void) {
    void *program = NULL;
    const char *name = NULL;
    char code[256];
    size_t bytes = 0;
    CHECK_EQUAL(nvrtcCreateProgram(&program, "", "", 0, NULL, NULL), 0);
    CHECK_EQUAL(nvrtcAddNameExpression(program, "f<int>"), 0);
    CHECK_EQUAL(nvrtcGetLoweredName(program, "f<int>", &name), 0);
    CHECK(!strcmp(name, "f<int>"));
    CHECK_EQUAL(nvrtcGetLoweredName(program, "g", &name), 10);
    CHECK_EQUAL(nvrtcGetPTXSize(program, &bytes), 0);
    CHECK(bytes > 1 && bytes < sizeof code);
    CHECK_EQUAL(nvrtcGetPTX(program, code), 0);
    CHECK_EQUAL(strlen(code) + 1, bytes);
    CHECK_EQUAL(nvrtcDestroyProgram(&program), 0);
    CHECK(program == NULL);
}

int main(void) {
    uint64_t matrix[128];
    size_t bytes = 0, buffer = 9;
    int plan[2] = {0, 7};
    layouts_keep_their_attributes();
    one_algorithm_needs_no_workspace();
    results_go_where_the_host_can_write();
    code_has_names_and_a_size();
    CHECK_EQUAL(cufftPlan1d(plan, 64, 0x29, 1), 0);
    CHECK_EQUAL(plan[1], 7);
    CHECK_EQUAL(cufftDestroy(plan[0]), 0);
    CHECK_EQUAL(cufftDestroy(plan[0]), 1);
    CHECK_EQUAL(cusparseLtStructuredDescriptorInit(NULL, matrix, 128, 64, 64, 16, HALF, 1, 0), 0);
    CHECK_EQUAL(cusparseLtSpMMACompressedSize2(NULL, matrix, &bytes, &buffer), 0);
    CHECK_EQUAL(bytes, 128 * 64 * 2 / 16 * 9);
    CHECK_EQUAL(buffer, 0);
    uint64_t calls[PHANTOM_LIBRARIES];
    phantom_libraries(calls, PHANTOM_LIBRARIES);
    CHECK(calls[PHANTOM_CUBLAS] >= 4 && calls[PHANTOM_NVRTC] >= 1 && calls[PHANTOM_CUFFT] >= 1);
    return 0;
}
