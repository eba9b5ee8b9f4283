/* Algorithms of the legacy convolutions, which torch uses only if TORCH_CUDNN_V8_API_DISABLED is set. cuDNN's own choice
 * cannot be asked here: number 1 of each kind is the answer, which runs everywhere, without workspace. */
#include "api.h"
#include "facts.h"
#include "usage.h"

#include <string.h>

enum { ALGORITHM = 1, DETERMINISTIC = 1 };

struct performance {
    int algorithm, status;
    float milliseconds;
    size_t bytes;
    int determinism, math, reserved[3];
};

static int answer(int room, int *count, struct performance *out) {
    if (room < 1 || !count || !out)
        return DNN_BAD_PARAM;
    usage_remark("cuDNN: the legacy convolution interface was used; its algorithms and workspaces are not those of the "
                 "card");
    *out = (struct performance){.algorithm = ALGORITHM, .milliseconds = 0.01f, .determinism = DETERMINISTIC};
    *count = 1;
    return DNN_SUCCESS;
}

static int no_workspace(size_t *bytes) {
    if (!bytes)
        return DNN_BAD_PARAM;
    *bytes = 0;
    return DNN_SUCCESS;
}

/* Parameters but the last have no part in the answer. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define GET(name)                                                                                                  \
    PHANTOM_API int name(void *handle, void *a, void *b, void *convolution, void *c, int room, int *count,         \
                         struct performance *out) {                                                                \
        return answer(room, count, out);                                                                           \
    }
GET(cudnnGetConvolutionForwardAlgorithm_v7)
GET(cudnnGetConvolutionBackwardDataAlgorithm_v7)
GET(cudnnGetConvolutionBackwardFilterAlgorithm_v7)

#define FIND(name)                                                                                                 \
    PHANTOM_API int name(void *handle, void *a_is, void *a, void *b_is, void *b, void *convolution, void *c_is,    \
                         void *c, int room, int *count, struct performance *out, void *workspace, size_t bytes) {  \
        return answer(room, count, out);                                                                           \
    }
FIND(cudnnFindConvolutionForwardAlgorithmEx)
FIND(cudnnFindConvolutionBackwardDataAlgorithmEx)
FIND(cudnnFindConvolutionBackwardFilterAlgorithmEx)

#define SIZE(name)                                                                                                 \
    PHANTOM_API int name(void *handle, void *a, void *b, void *convolution, void *c, int algorithm,                \
                         size_t *bytes) {                                                                          \
        return no_workspace(bytes);                                                                                \
    }
SIZE(cudnnGetConvolutionForwardWorkspaceSize)
SIZE(cudnnGetConvolutionBackwardDataWorkspaceSize)
SIZE(cudnnGetConvolutionBackwardFilterWorkspaceSize)

#pragma GCC diagnostic pop
