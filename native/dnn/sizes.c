/* Questions about sizes that take a handle: dropout states, batch norm, CTC, and the legacy convolutions. */
#include "api.h"
#include "facts.h"
#include "properties.h"
#include "real.h"
#include "rule.h"
#include "state.h"
#include "usage.h"

#include <string.h>

/* Calls the real function with the stand-in handle; evaluates to its status, or -1 if there is nobody to ask. */
#define ASK(name, parameters, ...)                                                                                 \
    __extension__({                                                                                                \
        int(*function) parameters = (int(*) parameters)real_function(#name);                                       \
        void *stand_in = properties_handle();                                                                      \
        function && stand_in ? function(__VA_ARGS__) : -1;                                                         \
    })

PHANTOM_API int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) {
    (void)handle;
    if (!bytes)
        return DNN_BAD_PARAM;
    if (ASK(cudnnDropoutGetStatesSize, (void *, size_t *), stand_in, bytes)) {
        properties_count();
        *bytes = (size_t)phantom.spec.sm * 2048 * 24;
    }
    return DNN_SUCCESS;
}

/* The real function would fill the states with a kernel, unless there are none. */
PHANTOM_API int cudnnSetDropoutDescriptor(void *descriptor, void *handle, float p, void *states, size_t bytes,
                                          unsigned long long seed) {
    (void)handle;
    if (states)
        ASK(cudnnRestoreDropoutDescriptor, (void *, void *, float, void *, size_t, unsigned long long), descriptor,
            stand_in, p, states, bytes, seed);
    else
        ASK(cudnnSetDropoutDescriptor, (void *, void *, float, void *, size_t, unsigned long long), descriptor,
            stand_in, p, NULL, 0, seed);
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnRestoreDropoutDescriptor(void *descriptor, void *handle, float p, void *states, size_t bytes,
                                              unsigned long long seed) {
    return cudnnSetDropoutDescriptor(descriptor, handle, p, states, bytes, seed);
}

PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *handle, int mode, int ops, void *x,
                                                                         void *z, void *y, void *scale,
                                                                         void *activation, size_t *bytes) {
    (void)handle;
    *bytes = 0;
    ASK(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
        (void *, int, int, void *, void *, void *, void *, void *, size_t *), stand_in, mode, ops, x, z, y, scale,
        activation, bytes);
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *handle, int mode, int ops, void *x, void *y,
                                                                  void *dy, void *dz, void *dx, void *scale,
                                                                  void *activation, size_t *bytes) {
    (void)handle;
    *bytes = 0;
    ASK(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
        (void *, int, int, void *, void *, void *, void *, void *, void *, void *, size_t *), stand_in, mode, ops, x,
        y, dy, dz, dx, scale, activation, bytes);
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int ops, void *activation,
                                                                     void *x, size_t *bytes) {
    (void)handle;
    *bytes = 0;
    ASK(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, (void *, int, int, void *, void *, size_t *), stand_in,
        mode, ops, activation, x, bytes);
    return DNN_SUCCESS;
}

/* As a rule two floats for each probability. */
static size_t ctc_bytes(void *probabilities) {
    int (*read)(void *, int, int *, int *, int *, int *) =
        (int (*)(void *, int, int *, int *, int *, int *))real_function("cudnnGetTensorNdDescriptor");
    int type, count = 0, sizes[RULE_DIMENSIONS], strides[RULE_DIMENSIONS];
    size_t bytes = 2 * sizeof(float);
    if (!read || read(probabilities, RULE_DIMENSIONS, &type, &count, sizes, strides))
        return 0;
    for (int i = 0; i < count && i < RULE_DIMENSIONS; i++)
        bytes *= (size_t)sizes[i];
    return bytes;
}

PHANTOM_API int cudnnGetCTCLossWorkspaceSize(void *handle, void *x, void *gradients, const int *labels,
                                             const int *label_lengths, const int *lengths, int algorithm,
                                             void *descriptor, size_t *bytes) {
    (void)handle;
    if (ASK(cudnnGetCTCLossWorkspaceSize,
            (void *, void *, void *, const int *, const int *, const int *, int, void *, size_t *), stand_in, x,
            gradients, labels, label_lengths, lengths, algorithm, descriptor, bytes))
        *bytes = ctc_bytes(x);
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnGetCTCLossWorkspaceSize_v8(void *handle, int algorithm, void *descriptor, void *x,
                                                void *gradients, size_t *bytes) {
    (void)handle;
    if (ASK(cudnnGetCTCLossWorkspaceSize_v8, (void *, int, void *, void *, void *, size_t *), stand_in, algorithm,
            descriptor, x, gradients, bytes))
        *bytes = ctc_bytes(x);
    return DNN_SUCCESS;
}
