/* Backend descriptors without a cuDNN that can be asked: they are counted references to lists of attributes. Every
 * operation graph has one engine, whose workspace is a rule of thumb. */
#include "backend.h"
#include "facts.h"
#include "real.h"
#include "rule.h"
#include "usage.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct attribute {
    int name, type;
    int64_t count;
    void *values;
};

struct stored {
    int kind, references, count;
    struct attribute *attributes;
};

static size_t element_bytes(int type) {
    switch (type) {
    case DNN_TYPE_HANDLE:
    case DNN_TYPE_INT64:
    case DNN_TYPE_DOUBLE:
    case DNN_TYPE_POINTER:
    case DNN_TYPE_DESCRIPTOR:
        return 8;
    case DNN_TYPE_BOOLEAN:
    case DNN_TYPE_CHAR:
        return 1;
    case DNN_TYPE_FRACTION:
        return 16;
    default:
        return 4;
    }
}

static void drop(struct stored *stored);

static void clear(struct attribute *attribute) {
    if (attribute->type == DNN_TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++)
            drop(((struct stored **)attribute->values)[i]);
    free(attribute->values);
    attribute->values = NULL;
    attribute->count = 0;
}

static void drop(struct stored *stored) {
    if (!stored || __atomic_sub_fetch(&stored->references, 1, __ATOMIC_ACQ_REL))
        return;
    for (int i = 0; i < stored->count; i++)
        clear(&stored->attributes[i]);
    free(stored->attributes);
    free(stored);
}

static struct stored *make(int kind) {
    struct stored *stored = calloc(1, sizeof *stored);
    if (stored)
        *stored = (struct stored){.kind = kind, .references = 1};
    return stored;
}

static struct attribute *find(struct stored *stored, int name) {
    for (int i = 0; stored && i < stored->count; i++)
        if (stored->attributes[i].name == name)
            return &stored->attributes[i];
    return NULL;
}

static struct attribute *find_or_add(struct stored *stored, int name) {
    struct attribute *found = find(stored, name);
    if (found)
        return found;
    struct attribute *grown = realloc(stored->attributes, (size_t)(stored->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    stored->attributes = grown;
    found = &grown[stored->count++];
    memset(found, 0, sizeof *found);
    found->name = name;
    return found;
}

static int set(struct stored *stored, int name, int type, int64_t count, const void *values) {
    size_t bytes = count > 0 && values ? (size_t)count * element_bytes(type) : 0;
    void *copy = bytes ? malloc(bytes) : NULL;
    struct attribute *attribute = find_or_add(stored, name);
    if (!attribute || (bytes && !copy)) {
        free(copy);
        return DNN_ALLOCATION_FAILED;
    }
    if (bytes)
        memcpy(copy, values, bytes);
    if (type == DNN_TYPE_DESCRIPTOR)
        for (int64_t i = 0; bytes && i < count; i++)
            if (((struct stored **)copy)[i])
                __atomic_fetch_add(&((struct stored **)copy)[i]->references, 1, __ATOMIC_RELAXED);
    clear(attribute);
    *attribute = (struct attribute){.name = name, .type = type, .count = bytes ? count : 0, .values = copy};
    return DNN_SUCCESS;
}

static struct stored *part(struct stored *stored, int name) {
    struct attribute *attribute = find(stored, name);
    return attribute && attribute->count ? *(struct stored **)attribute->values : NULL;
}

static int64_t read_sizes(struct stored *tensor, int name, int64_t *out) {
    struct attribute *attribute = find(tensor, name);
    int64_t count = attribute && attribute->count < RULE_DIMENSIONS ? attribute->count : 0;
    if (count)
        memcpy(out, attribute->values, (size_t)count * sizeof *out);
    return count;
}

static struct rule_tensor tensor_of(struct stored *operation, int name) {
    struct stored *tensor = part(operation, name);
    struct attribute *element = find(tensor, DNN_TENSOR_TYPE);
    struct rule_tensor result = {.element = element && element->count ? *(int *)element->values : DNN_FLOAT};
    result.count = (int)read_sizes(tensor, DNN_TENSOR_SIZES, result.sizes);
    read_sizes(tensor, DNN_TENSOR_STRIDES, result.strides);
    return result;
}

static int all_ones(struct stored *convolution) {
    int64_t strides[RULE_DIMENSIONS], count = read_sizes(convolution, DNN_CONVOLUTION_STRIDES, strides);
    for (int64_t i = 0; i < count; i++)
        if (strides[i] != 1)
            return 0;
    return 1;
}

static int64_t operation_bytes(struct stored *operation) {
    int first = operation->kind == DNN_CONVOLUTION_FORWARD  ? DNN_FORWARD_CONVOLUTION
                : operation->kind == DNN_CONVOLUTION_DATA   ? DNN_DATA_CONVOLUTION
                : operation->kind == DNN_CONVOLUTION_FILTER ? DNN_FILTER_CONVOLUTION
                                                            : 0;
    if (!first)
        return 0;
    struct rule_tensor w = tensor_of(operation, first + 1), x = tensor_of(operation, first + 2);
    struct rule_tensor y = tensor_of(operation, first + 3);
    return rule_convolution(&x, &w, &y, all_ones(part(operation, first)));
}

static int64_t graph_bytes(struct stored *graph) {
    struct attribute *operations = find(graph, DNN_GRAPH_OPERATIONS);
    int64_t most = 0;
    for (int64_t i = 0; operations && i < operations->count; i++) {
        int64_t bytes = operation_bytes(((struct stored **)operations->values)[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* One result: an engine with index 0, no knobs and no notes. */
static int answer_search(struct stored *heuristics) {
    struct stored *graph = part(heuristics, DNN_HEURISTICS_GRAPH);
    struct stored *engine = make(DNN_ENGINE), *config = make(DNN_ENGINE_CONFIG);
    int64_t zero = 0, bytes = graph_bytes(graph);
    int32_t shared_memory = 48 << 10;
    int failed = !engine || !config || !graph ||
                 set(engine, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph) ||
                 set(engine, DNN_ENGINE_INDEX, DNN_TYPE_INT64, 1, &zero) ||
                 set(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &engine) ||
                 set(config, DNN_CONFIG_WORKSPACE, DNN_TYPE_INT64, 1, &bytes) ||
                 set(config, DNN_CONFIG_SHARED_MEMORY, DNN_TYPE_INT32, 1, &shared_memory) ||
                 set(heuristics, DNN_HEURISTICS_RESULTS, DNN_TYPE_DESCRIPTOR, 1, &config);
    drop(engine);
    drop(config);
    return failed ? DNN_BAD_PARAM : DNN_SUCCESS;
}

static int answer_plan(struct stored *plan) {
    struct stored *config = part(plan, DNN_PLAN_CONFIG);
    int64_t bytes = graph_bytes(part(part(config, DNN_CONFIG_ENGINE), DNN_ENGINE_GRAPH));
    return set(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &bytes);
}

int store_create(int kind, void **out) {
    usage_remark("cuDNN %s cannot be asked without a GPU (9.9 and later can): workspaces of convolutions are rules of "
                 "thumb",
                 real_version_text());
    *out = make(kind);
    return *out ? DNN_SUCCESS : DNN_ALLOCATION_FAILED;
}

int store_destroy(void *descriptor) {
    drop(descriptor);
    return DNN_SUCCESS;
}

int store_set(void *descriptor, int attribute, int type, int64_t count, const void *values) {
    return descriptor ? set(descriptor, attribute, type, count, values) : DNN_BAD_PARAM;
}

int store_finalize(void *descriptor) {
    struct stored *stored = descriptor;
    int64_t one = 1;
    if (!stored)
        return DNN_BAD_PARAM;
    if (stored->kind == DNN_GRAPH)
        return set(stored, DNN_GRAPH_ENGINES, DNN_TYPE_INT64, 1, &one);
    return stored->kind == DNN_HEURISTICS ? answer_search(stored)
           : stored->kind == DNN_PLAN     ? answer_plan(stored)
                                          : DNN_SUCCESS;
}

/* As cuDNN does: results are copied into descriptors that the caller has made. */
static int copy_into(struct stored *to, const struct stored *from) {
    int status = DNN_SUCCESS;
    for (int i = 0; to && to != from && i < from->count && !status; i++)
        status = set(to, from->attributes[i].name, from->attributes[i].type, from->attributes[i].count,
                     from->attributes[i].values);
    return status;
}

int store_get(void *descriptor, int name, int type, int64_t room, int64_t *count, void *values) {
    struct attribute *attribute = find(descriptor, name);
    int64_t has = attribute ? attribute->count : 0, given = has < room ? has : room;
    int status = DNN_SUCCESS;
    if (count)
        *count = has;
    if (!values || room <= 0)
        return DNN_SUCCESS;
    if (!attribute && type != DNN_TYPE_DESCRIPTOR)
        memset(values, 0, (size_t)room * element_bytes(type));
    else if (type != DNN_TYPE_DESCRIPTOR)
        memcpy(values, attribute->values, (size_t)given * element_bytes(attribute->type));
    for (int64_t i = 0; type == DNN_TYPE_DESCRIPTOR && i < given && !status; i++)
        status = copy_into(((struct stored **)values)[i], ((struct stored **)attribute->values)[i]);
    return status;
}

int store_execute(void *plan, void *pack) {
    struct attribute *bytes = find(plan, DNN_PLAN_WORKSPACE), *workspace = find(pack, DNN_PACK_WORKSPACE);
    if (bytes && bytes->count && workspace && workspace->count)
        usage_workspace(PHANTOM_CUDNN, *(void **)workspace->values, (uint64_t)*(int64_t *)bytes->values, NULL);
    return DNN_SUCCESS;
}
