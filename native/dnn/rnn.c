/* Sizes of recurrent networks: the user's own cuDNN computes them; where it cannot be asked, formulas do. */
#include "api.h"
#include "facts.h"
#include "properties.h"
#include "real.h"
#include "rule.h"
#include "usage.h"

#include <stdint.h>

enum { LSTM = 2, GRU = 3, NO_BIAS = 0, TRAINING = 1 };

struct rnn {
    int mode, bias, directions, element, inputs, hidden, projected, layers, gates;
};

PHANTOM_API int cudnnSetRNNDescriptor_v8(void *rnn, int algorithm, int mode, int bias, int direction, int input,
                                         int element, int precision, int math, int32_t inputs, int32_t hidden,
                                         int32_t projected, int32_t layers, void *dropout, uint32_t flags) {
    int (*function)(void *, int, int, int, int, int, int, int, int, int32_t, int32_t, int32_t, int32_t, void *,
                    uint32_t) =
        (int (*)(void *, int, int, int, int, int, int, int, int, int32_t, int32_t, int32_t, int32_t, void *,
                 uint32_t))real_function("cudnnSetRNNDescriptor_v8");
    return function ? function(rnn, algorithm, mode, bias, direction, input, element, precision, math, inputs, hidden,
                               projected, layers, dropout, flags)
                    : DNN_NOT_INITIALIZED;
}

static int read_rnn(void *descriptor, struct rnn *rnn) {
    int (*function)(void *, int *, int *, int *, int *, int *, int *, int *, int *, int32_t *, int32_t *, int32_t *,
                    int32_t *, void **, uint32_t *) =
        (int (*)(void *, int *, int *, int *, int *, int *, int *, int *, int *, int32_t *, int32_t *, int32_t *,
                 int32_t *, void **, uint32_t *))real_function("cudnnGetRNNDescriptor_v8");
    int algorithm, direction, input, precision, math;
    void *dropout;
    uint32_t flags;
    if (!function || function(descriptor, &algorithm, &rnn->mode, &rnn->bias, &direction, &input, &rnn->element,
                              &precision, &math, &rnn->inputs, &rnn->hidden, &rnn->projected, &rnn->layers, &dropout,
                              &flags))
        return DNN_BAD_PARAM;
    rnn->directions = direction ? 2 : 1;
    rnn->gates = rnn->mode == LSTM ? 4 : rnn->mode == GRU ? 3 : 1;
    usage_remark("cuDNN %s: the workspace of recurrent networks is a formula, not cuDNN's own answer",
                 real_version_text());
    return DNN_SUCCESS;
}

/* Elements of matrix `gate` of a pseudo layer: input matrices, recurrent matrices, then the projection. */
static size_t matrix(const struct rnn *rnn, int layer, int gate, int sizes[3]) {
    int first = layer / rnn->directions == 0;
    sizes[0] = 1;
    sizes[1] = gate == 2 * rnn->gates ? rnn->projected : rnn->hidden;
    sizes[2] = gate == 2 * rnn->gates ? rnn->hidden
               : gate >= rnn->gates   ? rnn->projected
               : first                ? rnn->inputs
                                      : rnn->projected * rnn->directions;
    return (size_t)sizes[1] * (size_t)sizes[2];
}

static int matrices(const struct rnn *rnn) {
    return 2 * rnn->gates + (rnn->projected != rnn->hidden);
}

/* Elements of all matrices before matrix `gate` of `layer`. */
static size_t elements_before(const struct rnn *rnn, int layer, int gate) {
    size_t elements = 0;
    int sizes[3];
    for (int i = 0; i <= layer; i++)
        for (int j = 0; j < (i < layer ? matrices(rnn) : gate); j++)
            elements += matrix(rnn, i, j, sizes);
    return elements;
}

static size_t weight_elements(const struct rnn *rnn) {
    int layers = rnn->layers * rnn->directions;
    size_t biases = rnn->bias == NO_BIAS ? 0 : (size_t)layers * 2 * (size_t)rnn->gates * (size_t)rnn->hidden;
    return elements_before(rnn, layers, 0) + biases;
}

PHANTOM_API int cudnnGetRNNWeightSpaceSize(void *handle, void *descriptor, size_t *bytes) {
    (void)handle;
    int (*function)(void *, void *, size_t *) =
        (int (*)(void *, void *, size_t *))real_function("cudnnGetRNNWeightSpaceSize");
    void *stand_in = properties_handle();
    struct rnn rnn;
    if (!bytes)
        return DNN_BAD_PARAM;
    if (function && stand_in && !function(stand_in, descriptor, bytes) && *bytes)
        return DNN_SUCCESS;
    int status = read_rnn(descriptor, &rnn);
    if (!status)
        *bytes = weight_elements(&rnn) * (size_t)rule_element_bytes(rnn.element);
    return status;
}

static int fill_tensor(void *tensor, int element, const int sizes[3]) {
    int (*function)(void *, int, int, const int *, const int *) =
        (int (*)(void *, int, int, const int *, const int *))real_function("cudnnSetTensorNdDescriptor");
    int strides[3] = {sizes[1] * sizes[2], sizes[2], 1};
    return tensor && function ? function(tensor, element, 3, sizes, strides) : DNN_SUCCESS;
}

static int weight_place(const struct rnn *rnn, int layer, int gate, const char *weights, void *matrix_is,
                        void **matrix_at, void *bias_is, void **bias_at) {
    size_t bytes = (size_t)rule_element_bytes(rnn->element);
    int sizes[3], layers = rnn->layers * rnn->directions, bias_sizes[3] = {1, rnn->hidden, 1};
    int has_matrix = gate < matrices(rnn), has_bias = rnn->bias != NO_BIAS && gate < 2 * rnn->gates;
    matrix(rnn, layer, gate, sizes);
    size_t biases_before = ((size_t)layer * 2 * (size_t)rnn->gates + (size_t)gate) * (size_t)rnn->hidden;
    if (matrix_at)
        *matrix_at = has_matrix ? (void *)(weights + elements_before(rnn, layer, gate) * bytes) : NULL;
    if (bias_at)
        *bias_at =
            has_bias ? (void *)(weights + (elements_before(rnn, layers, 0) + biases_before) * bytes) : NULL;
    int status = has_matrix ? fill_tensor(matrix_is, rnn->element, sizes) : DNN_SUCCESS;
    return status || !has_bias ? status : fill_tensor(bias_is, rnn->element, bias_sizes);
}

PHANTOM_API int cudnnGetRNNWeightParams(void *handle, void *descriptor, int32_t layer, size_t bytes,
                                        const void *weights, int32_t gate, void *matrix_is, void **matrix_at,
                                        void *bias_is, void **bias_at) {
    (void)handle;
    int (*function)(void *, void *, int32_t, size_t, const void *, int32_t, void *, void **, void *, void **) =
        (int (*)(void *, void *, int32_t, size_t, const void *, int32_t, void *, void **, void *,
                 void **))real_function("cudnnGetRNNWeightParams");
    void *stand_in = properties_handle();
    struct rnn rnn;
    if (function && stand_in &&
        !function(stand_in, descriptor, layer, bytes, weights, gate, matrix_is, matrix_at, bias_is, bias_at))
        return DNN_SUCCESS;
    int status = read_rnn(descriptor, &rnn);
    return status ? status : weight_place(&rnn, layer, gate, weights, matrix_is, matrix_at, bias_is, bias_at);
}

/* Workspace and reserve as a count of activations; only their order of magnitude is right. */
static int estimate(void *descriptor, int mode, void *data, size_t *work, size_t *reserve) {
    int (*read)(void *, int *, int *, int *, int *, int *, int, int *, void *) =
        (int (*)(void *, int *, int *, int *, int *, int *, int, int *, void *))real_function(
            "cudnnGetRNNDataDescriptor");
    int element, layout, longest, batch, features, length;
    double fill;
    struct rnn rnn;
    if (!read || read_rnn(descriptor, &rnn) ||
        read(data, &element, &layout, &longest, &batch, &features, 1, &length, &fill))
        return DNN_BAD_PARAM;
    size_t step = (size_t)batch * (size_t)rnn.hidden * (size_t)rnn.directions;
    size_t all = step * (size_t)longest * (size_t)rule_element_bytes(rnn.element);
    *work = all * (size_t)rnn.gates + step * 4 * (size_t)rnn.layers;
    *reserve = mode == TRAINING ? all * (size_t)(rnn.gates + 2) * (size_t)rnn.layers : 0;
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnGetRNNTempSpaceSizes(void *handle, void *descriptor, int mode, void *data, size_t *work,
                                          size_t *reserve) {
    (void)handle;
    int (*function)(void *, void *, int, void *, size_t *, size_t *) =
        (int (*)(void *, void *, int, void *, size_t *, size_t *))real_function("cudnnGetRNNTempSpaceSizes");
    void *stand_in = properties_handle();
    size_t work_bytes = SIZE_MAX, reserve_bytes = SIZE_MAX;
    /* It writes the sizes, then looks for the card and fails: the sizes are right all the same. */
    if (function && stand_in)
        function(stand_in, descriptor, mode, data, &work_bytes, &reserve_bytes);
    if (reserve_bytes == SIZE_MAX && mode != TRAINING)
        reserve_bytes = 0;
    int known = work_bytes != SIZE_MAX && reserve_bytes != SIZE_MAX;
    int status = known ? DNN_SUCCESS : estimate(descriptor, mode, data, &work_bytes, &reserve_bytes);
    if (!status && work)
        *work = work_bytes;
    if (!status && reserve)
        *reserve = reserve_bytes;
    return status;
}
