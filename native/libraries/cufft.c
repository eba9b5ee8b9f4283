/* cuFFT: plans without content. */
#include "runtime.h"
#include "sizes.h"
#include "stand_in.h"

enum { CUFFT_INVALID_PLAN = 1, CUFFT_ALLOC_FAILED = 2, CUFFT_INVALID_VALUE = 4, CUFFT_EXEC_FAILED = 6 };
enum { MOST_DIMENSIONS = 3 };

#define LIBRARY PHANTOM_CUFFT
#define STATUS ((struct status){.not_initialized = CUFFT_INVALID_PLAN, .execution_failed = CUFFT_EXEC_FAILED})
#define HANDLE(argument) (uint32_t)(argument)
#include "cufft.def"

static int create(int *out) {
    uint64_t handle = 0;
    usage_call(LIBRARY);
    if (!out)
        return CUFFT_INVALID_VALUE;
    if (stand_in_create(LIBRARY, STATUS, (uint64_t)&handle) || handle > INT32_MAX)
        return CUFFT_ALLOC_FAILED;
    *out = (int)handle;
    return SUCCESS;
}

PHANTOM_API int cufftCreate(int *out) {
    return create(out);
}

PHANTOM_API int cufftPlan1d(int *out, int x, int type, int batch) {
    (void)x, (void)type, (void)batch;
    return create(out);
}

PHANTOM_API int cufftPlan2d(int *out, int x, int y, int type) {
    (void)x, (void)y, (void)type;
    return create(out);
}

PHANTOM_API int cufftPlan3d(int *out, int x, int y, int z, int type) {
    (void)x, (void)y, (void)z, (void)type;
    return create(out);
}

PHANTOM_API int cufftPlanMany(int *out, int rank) {
    (void)rank;
    return create(out);
}

/* The plan that torch makes. Of the two types one is complex, or both; a complex value is the greater. */
PHANTOM_API int cufftXtMakePlanMany(int plan, int rank, const int64_t *n, const int64_t *in_embed, int64_t in_step,
                                    int64_t in_distance, int in_type, const int64_t *out_embed, int64_t out_step,
                                    int64_t out_distance, int out_type, int64_t batch, size_t *bytes, int type) {
    (void)plan, (void)in_embed, (void)in_step, (void)in_distance, (void)out_embed, (void)out_step, (void)out_distance;
    (void)type;
    usage_call(LIBRARY);
    if (!n || !bytes || rank < 1 || rank > MOST_DIMENSIONS || batch < 1)
        return CUFFT_INVALID_VALUE;
    for (int i = 0; i < rank; i++)
        if (n[i] < 1)
            return CUFFT_INVALID_VALUE;
    uint64_t in = data_type_bytes(in_type), out = data_type_bytes(out_type);
    bool sure = true;
    *bytes = sizes_transform(rank, n, (uint64_t)batch, in > out ? in : out, in != out, &sure);
    if (!sure)
        usage_remark("cuFFT: workspaces of lengths up to 32768 that are not powers of two are estimates");
    return SUCCESS;
}

PHANTOM_API int cufftDestroy(int plan) {
    return stand_in_destroy(LIBRARY, STATUS, (uint32_t)plan);
}

/* Its size is what the plan was told to need. */
PHANTOM_API int cufftSetWorkArea(int plan, void *address) {
    (void)plan, (void)address;
    usage_call(LIBRARY);
    return SUCCESS;
}

/* The releases that come with CUDA 12.8 and 13.0. */
static const int *version(void) {
    static const int of_12[] = {11, 3, 3}, of_13[] = {12, 0, 0};
    return runtime_major() < 13 ? of_12 : of_13;
}

PHANTOM_API int cufftGetVersion(int *out) {
    if (!out)
        return CUFFT_INVALID_VALUE;
    *out = version()[0] * 1000 + version()[1] * 100 + version()[2];
    return SUCCESS;
}

PHANTOM_API int cufftGetProperty(int property, int *out) {
    return stand_in_property(version(), property, (uint64_t)out, CUFFT_INVALID_VALUE);
}
