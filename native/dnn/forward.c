/* Hands the backend interface on to the user's own cuDNN: its handle is never set, a described device is. Plans that
 * would compile kernels are not finalized: their workspace is known before. */
#include "backend.h"
#include "config.h"
#include "cublas.h"
#include "facts.h"
#include "nodes.h"
#include "properties.h"
#include "real.h"
#include "usage.h"
#include "whatif.h"

#include <stddef.h>

/* Places of a convolution's weights and input after its description; most dimensions of a tensor. */
enum { WEIGHTS = 1, INPUT = 2, DIMENSIONS = 8 };

static int is_convolution(int kind) {
    return kind == DNN_CONVOLUTION_FORWARD || kind == DNN_CONVOLUTION_FILTER || kind == DNN_CONVOLUTION_DATA;
}

/* Kinds of which something has to be remembered. */
static int is_remembered(int kind) {
    return is_convolution(kind) || kind == DNN_GRAPH || kind == DNN_HEURISTICS || kind == DNN_ENGINE ||
           kind == DNN_ENGINE_CONFIG || kind == DNN_PLAN;
}

int forward_create(int kind, void **out) {
    int status = real_backend()->create(kind, out);
    if (!status && is_remembered(kind))
        node_add(*out, kind);
    return status;
}

int forward_destroy(void *descriptor) {
    node_remove(descriptor);
    return real_backend()->destroy(descriptor);
}

static void take_problem(struct node *to, const struct node *from) {
    to->plain = from->plain;
    to->channels_last = from->channels_last;
    to->product = from->product;
}

static void belong(struct node *node, struct search *search, int index) {
    search_drop(node->search);
    node->search = search_share(search);
    node->index = index;
}

static struct node *first_node(const void *values, int64_t count) {
    return count > 0 && values ? node_find(*(void *const *)values) : NULL;
}

static void note_operations(struct node *graph, const void *values, int64_t count) {
    struct node *operation = first_node(values, count);
    graph->plain = count == 1 && operation && is_convolution(operation->kind) ? operation->kind : 0;
    graph->channels_last = graph->plain && operation->channels_last && operation->pointwise;
}

static int is_tensor(const struct node *node, int attribute, int place) {
    return (node->kind == DNN_CONVOLUTION_FORWARD && attribute == DNN_FORWARD_CONVOLUTION + place) ||
           (node->kind == DNN_CONVOLUTION_FILTER && attribute == DNN_FILTER_CONVOLUTION + place);
}

static void note_weights(struct node *operation, void *tensor) {
    int64_t sizes[DIMENSIONS];
    long long count = 0;
    operation->pointwise =
        !real_backend()->get(tensor, DNN_TENSOR_SIZES, DNN_TYPE_INT64, DIMENSIONS, &count, sizes) && count > 2;
    for (long long i = 2; i < count && i < DIMENSIONS; i++)
        operation->pointwise &= sizes[i] == 1;
}

static void note_input(struct node *operation, void *tensor) {
    int64_t sizes[DIMENSIONS], strides[DIMENSIONS];
    long long count = 0;
    const struct backend *real = real_backend();
    operation->channels_last =
        !real->get(tensor, DNN_TENSOR_SIZES, DNN_TYPE_INT64, DIMENSIONS, &count, sizes) && count > 2 &&
        !real->get(tensor, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, DIMENSIONS, &count, strides) && count > 2 &&
        sizes[1] > 1 && strides[1] == 1;
}

static void note_config(struct node *plan, const void *values, int64_t count) {
    struct node *config = first_node(values, count);
    if (!config)
        return;
    plan->made_from = config->descriptor;
    take_problem(plan, config);
    belong(plan, config->search, config->index);
    if (config->search)
        search_tried(config->search, config->index);
}

/* A program may ask an engine of its own choice instead of the heuristics. */
static void note_engine(struct node *to, const void *values, int64_t count) {
    struct node *from = first_node(values, count);
    if (from)
        take_problem(to, from);
}

int forward_set(void *descriptor, int attribute, int type, int64_t count, const void *values) {
    if (attribute == DNN_GRAPH_HANDLE || attribute == DNN_PLAN_HANDLE)
        return DNN_SUCCESS;
    int status = real_backend()->set(descriptor, attribute, type, count, values);
    struct node *node = status ? NULL : node_find(descriptor);
    if (!node)
        return status;
    if (is_tensor(node, attribute, WEIGHTS) && count == 1)
        note_weights(node, *(void *const *)values);
    if (is_tensor(node, attribute, INPUT) && count == 1)
        note_input(node, *(void *const *)values);
    if (attribute == DNN_GRAPH_OPERATIONS)
        note_operations(node, values, count);
    else if (attribute == DNN_PLAN_CONFIG)
        note_config(node, values, count);
    else if (attribute == DNN_HEURISTICS_GRAPH || attribute == DNN_ENGINE_GRAPH || attribute == DNN_CONFIG_ENGINE)
        note_engine(node, values, count);
    if (attribute == DNN_HEURISTICS_GRAPH && count == 1)
        node->made_from = *(void *const *)values;
    if (attribute == DNN_HEURISTICS_MODE && count == 1)
        node->mode = *(const int *)values;
    return status;
}

static int name_device(void *descriptor, int attribute) {
    void *device = properties_descriptor(0);
    return real_backend()->set(descriptor, attribute, DNN_TYPE_DESCRIPTOR, 1, &device);
}

static int finalize_heuristics(struct node *node) {
    name_device(node->descriptor, DNN_HEURISTICS_DEVICE);
    int status = real_backend()->finalize(node->descriptor);
    if (!status && node->plain && !node->search)
        node->search = search_begin(node->made_from, node->mode);
    return status;
}

static int finalize_plan(struct node *node) {
    const struct backend *real = real_backend();
    long long count = 0;
    if (node->made_from && (!node->plain || config_compiles(node->made_from)))
        node->workspace = config_workspace(node->made_from);
    if (node->workspace >= 0)
        return DNN_SUCCESS;
    name_device(node->descriptor, DNN_PLAN_DEVICE);
    int status = real->finalize(node->descriptor);
    if (!status)
        real->get(node->descriptor, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &node->workspace);
    return status;
}

int forward_finalize(void *descriptor) {
    struct node *node = node_find(descriptor);
    if (node && node->kind == DNN_HEURISTICS)
        return finalize_heuristics(node);
    if (node && node->kind == DNN_PLAN)
        return finalize_plan(node);
    if (node && node->kind == DNN_ENGINE)
        name_device(descriptor, DNN_ENGINE_DEVICE);
    return real_backend()->finalize(descriptor);
}

static void note_results(const struct node *from, void *const *results, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        struct node *config = node_find(results[i]);
        if (!config)
            continue;
        take_problem(config, from);
        belong(config, from->search, (int)i);
    }
}

static void note_answer(struct node *node, int attribute, int64_t count, void *values) {
    if (attribute == DNN_HEURISTICS_RESULTS)
        note_results(node, values, count);
    else if (attribute == DNN_ENGINE_NUMERICAL_NOTE && node->search)
        search_note(node->search, node->index, values, count);
    else if (attribute == DNN_CONFIG_ENGINE && count == 1 && node_find(*(void **)values)) {
        struct node *engine = node_find(*(void **)values);
        take_problem(engine, node);
        belong(engine, node->search, node->index);
    }
}

int forward_get(void *descriptor, int attribute, int type, int64_t room, int64_t *count, void *values) {
    struct node *node = node_find(descriptor);
    if (attribute == DNN_PLAN_WORKSPACE && node && node->workspace >= 0) {
        if (count)
            *count = 1;
        if (values && room > 0)
            *(int64_t *)values = node->workspace;
        return DNN_SUCCESS;
    }
    long long got = 0;
    unsigned asked = cublaslt_asked();
    int status = real_backend()->get(descriptor, attribute, type, room, &got, values);
    if (node && cublaslt_asked() != asked)
        node->product = 1;
    if (count)
        *count = got;
    if (!status && values && node)
        note_answer(node, attribute, got < room ? got : room, values);
    return status;
}

/* Measured on an H200: see docs/internals/cudnn.md. */
static void remark_product(const struct node *plan) {
    if (plan->product && plan->channels_last && plan->plain == DNN_CONVOLUTION_FILTER)
        usage_remark("cuDNN: gradients of the weights of 1x1 convolutions with channels last are products that cuBLASLt "
                     "splits over the multiprocessors: on a card each may want up to 17 MiB more for as long as it runs");
    else if (plan->product && plan->channels_last)
        usage_remark("cuDNN: 1x1 convolutions with channels last are products of cuBLASLt: on a card one in eight wants "
                     "up to 8 MiB more for as long as it runs");
}

int forward_execute(void *plan, void *pack) {
    struct node *node = node_find(plan);
    void *workspace = NULL;
    long long count = 0;
    if (!node || node->workspace < 0)
        return DNN_SUCCESS;
    remark_product(node);
    uint64_t bytes = (uint64_t)node->workspace, alternatives[PHANTOM_ALTERNATIVES];
    if (bytes)
        real_backend()->get(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &count, &workspace);
    if (!node->search) {
        usage_workspace(PHANTOM_CUDNN, workspace, bytes, NULL);
        return DNN_SUCCESS;
    }
    search_run(node->search, node->index, bytes, alternatives);
    usage_workspace(PHANTOM_CUDNN, workspace, bytes, alternatives);
    return DNN_SUCCESS;
}
