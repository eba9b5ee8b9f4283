#include "graph.h"

#include "memory.h"
#include "pool.h"
#include "runtime.h"
#include "stream.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>

struct graph_exec {
    struct object object;
    struct dependencies users, memory;
};

struct user_object {
    struct object object;
    void (*destroy)(void *);
    void *data;
    uint64_t references;
    struct user_object *next_doomed;
};

/* Objects without references; their destructors are the program's code and run after the lock is given up. */
static _Thread_local struct user_object *doomed;

static int run_destructors(int code) {
    while (doomed) {
        struct user_object *object = doomed;
        doomed = object->next_doomed;
        void (*destroy)(void *) = object->destroy;
        void *data = object->data;
        enter();
        book_delete(&phantom.objects, object);
        leave(SUCCESS);
        if (destroy)
            destroy(data);
    }
    return code;
}

static void drop_reference(uint64_t handle) {
    struct user_object *object = book_find(&phantom.objects, handle, USER_OBJECT);
    if (!object || !object->references || --object->references)
        return;
    object->next_doomed = doomed;
    doomed = object;
}

static void drop_users(struct dependencies *users) {
    for (size_t i = 0; i < users->count; i++)
        drop_reference(users->nodes[i]);
    dependencies_clear(users);
}

struct graph *graph_new(void) {
    return book_new(&phantom.objects, GRAPH, sizeof(struct graph));
}

/* Memory of a capture that nobody has freed goes with the graph. */
static void drop_memory(struct dependencies *memory) {
    for (size_t i = 0; i < memory->count; i++)
        if (memory_at(memory->nodes[i]))
            pool_free(memory->nodes[i]);
    dependencies_clear(memory);
}

void graph_empty(struct graph *graph) {
    dependencies_clear(&graph->nodes);
    dependencies_clear(&graph->users);
    dependencies_clear(&graph->memory);
}

void graph_exec_empty(struct object *exec) {
    dependencies_clear(&((struct graph_exec *)exec)->users);
    dependencies_clear(&((struct graph_exec *)exec)->memory);
}

static struct graph *graph_of(void *handle) {
    return book_find(&phantom.objects, (uint64_t)handle, GRAPH);
}

static struct graph_node *node_of(uint64_t handle) {
    return book_find(&phantom.objects, handle, GRAPH_NODE);
}

void graph_delete(struct graph *graph) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct graph_node *node = node_of(graph->nodes.nodes[i]);
        dependencies_clear(&node->after);
        book_delete(&phantom.objects, node);
    }
    drop_users(&graph->users);
    drop_memory(&graph->memory);
    dependencies_clear(&graph->nodes);
    book_delete(&phantom.objects, graph);
}

uint64_t graph_add(struct graph *graph, enum node_type type, const uint64_t *after, size_t count) {
    struct graph_node *node = book_new(&phantom.objects, GRAPH_NODE, sizeof *node);
    if (!node)
        return 0;
    node->type = type;
    node->graph = graph;
    for (size_t i = 0; i < count; i++)
        if (dependencies_add(&node->after, after[i]))
            return 0;
    return dependencies_add(&graph->nodes, node->object.handle) ? 0 : node->object.handle;
}

/* Handles grow, and a node depends on older ones only, so nothing older than `wanted` needs a look. */
bool graph_reaches(const struct dependencies *ends, uint64_t wanted) {
    static uint64_t search;
    struct dependencies open = {0};
    bool found = false;
    search++;
    for (size_t i = 0; i < ends->count; i++)
        dependencies_add(&open, ends->nodes[i]);
    while (open.count && !found) {
        struct graph_node *node = node_of(open.nodes[--open.count]);
        found = node && node->object.handle == wanted;
        if (!node || node->object.handle <= wanted || node->visited == search)
            continue;
        node->visited = search;
        for (size_t i = 0; i < node->after.count; i++)
            dependencies_add(&open, node->after.nodes[i]);
    }
    dependencies_clear(&open);
    return found;
}

/* CUDA's way to return a list: without an array the count alone, else as many as fit and zeros behind them. */
static int give(const uint64_t *nodes, size_t count, uint64_t *out, size_t *room) {
    if (!room)
        return INVALID_VALUE;
    for (size_t i = 0; out && i < *room; i++)
        out[i] = i < count ? nodes[i] : 0;
    *room = !out || count < *room ? count : *room;
    return SUCCESS;
}

static int get_nodes(const struct graph *graph, uint64_t *out, size_t *room) {
    return graph ? give(graph->nodes.nodes, graph->nodes.count, out, room) : INVALID_VALUE;
}

static int get_dependencies(const struct graph_node *node, uint64_t *out, size_t *room) {
    return node ? give(node->after.nodes, node->after.count, out, room) : INVALID_VALUE;
}

static int get_type(const struct graph_node *node, int *type) {
    if (!node || !type)
        return INVALID_VALUE;
    *type = (int)node->type;
    return SUCCESS;
}

static int add(uint64_t *out, struct graph *graph, const uint64_t *after, size_t count, enum node_type type) {
    if (!out || !graph || (count && !after))
        return INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!node_of(after[i]))
            return INVALID_VALUE;
    *out = graph_add(graph, type, after, count);
    return *out ? SUCCESS : OUT_OF_MEMORY;
}

static int create(void **out) {
    struct graph *graph = out ? graph_new() : NULL;
    if (!graph)
        return out ? OUT_OF_MEMORY : INVALID_VALUE;
    *out = (void *)graph->object.handle;
    return SUCCESS;
}

static int destroy(struct graph *graph) {
    if (!graph || capture_uses(graph))
        return misuse();
    graph_delete(graph);
    return SUCCESS;
}

/* The executable graph takes the memory over: it may be launched when the graph is long gone. */
static int instantiate(void **out, struct graph *graph) {
    struct graph_exec *exec = out && graph ? book_new(&phantom.objects, GRAPH_EXEC, sizeof *exec) : NULL;
    if (!exec)
        return out && graph ? OUT_OF_MEMORY : INVALID_VALUE;
    for (size_t i = 0; i < graph->users.count; i++) {
        struct user_object *user = book_find(&phantom.objects, graph->users.nodes[i], USER_OBJECT);
        if (user && !dependencies_add(&exec->users, user->object.handle))
            user->references++;
    }
    exec->memory = graph->memory;
    graph->memory = (struct dependencies){0};
    *out = (void *)exec->object.handle;
    return SUCCESS;
}

static struct graph_exec *exec_of(void *handle) {
    return book_find(&phantom.objects, (uint64_t)handle, GRAPH_EXEC);
}

static int destroy_exec(struct graph_exec *exec) {
    if (!exec)
        return misuse();
    drop_users(&exec->users);
    drop_memory(&exec->memory);
    book_delete(&phantom.objects, exec);
    return SUCCESS;
}

static int launch(void *exec, void *stream) {
    if (!exec_of(exec))
        return misuse();
    device_touch(device_now());
    values_launch();
    capture_note(stream_of(stream), NODE_GRAPH);
    return SUCCESS;
}

static int print_dot(const struct graph *graph, const char *path) {
    FILE *file = graph && path ? fopen(path, "w") : NULL;
    if (!file)
        return INVALID_VALUE;
    fputs("digraph dot {\n", file);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct graph_node *node = node_of(graph->nodes.nodes[i]);
        fprintf(file, "\"%llx\" [label=\"%d\"];\n", (unsigned long long)node->object.handle, (int)node->type);
        for (size_t j = 0; j < node->after.count; j++)
            fprintf(file, "\"%llx\" -> \"%llx\";\n", (unsigned long long)node->after.nodes[j],
                    (unsigned long long)node->object.handle);
    }
    fputs("}\n", file);
    return fclose(file) ? INVALID_VALUE : SUCCESS;
}

static int create_user(void **out, void *data, void (*destroy_data)(void *), unsigned references) {
    struct user_object *object = out && references ? book_new(&phantom.objects, USER_OBJECT, sizeof *object) : NULL;
    if (!object)
        return out && references ? OUT_OF_MEMORY : INVALID_VALUE;
    object->destroy = destroy_data;
    object->data = data;
    object->references = references;
    *out = (void *)object->object.handle;
    return SUCCESS;
}

static struct user_object *user_of(void *handle) {
    return book_find(&phantom.objects, (uint64_t)handle, USER_OBJECT);
}

static int change_user(struct user_object *object, unsigned count, bool more) {
    if (!object || !count || (!more && count > object->references))
        return misuse();
    if (more)
        object->references += count;
    for (unsigned i = 0; !more && i < count; i++)
        drop_reference(object->object.handle);
    return SUCCESS;
}

/* flags 1: the graph takes over the caller's references. */
static int graph_retain(struct graph *graph, struct user_object *object, unsigned count, unsigned flags) {
    if (!graph || !object || !count)
        return misuse();
    for (unsigned i = 0; i < count; i++)
        if (dependencies_add(&graph->users, object->object.handle))
            return OUT_OF_MEMORY;
    if (!(flags & 1))
        object->references += count;
    return SUCCESS;
}

PHANTOM_API int cudaGraphCreate(void **out, unsigned flags) {
    (void)flags;
    return RUNTIME(create(out));
}

PHANTOM_API int cudaGraphDestroy(void *graph) {
    return run_destructors(RUNTIME(destroy(graph_of(graph))));
}

PHANTOM_API int cudaGraphGetNodes(void *graph, uint64_t *out, size_t *room) {
    return RUNTIME(get_nodes(graph_of(graph), out, room));
}

PHANTOM_API int cudaGraphNodeGetType(void *node, int *type) {
    return RUNTIME(get_type(node_of((uint64_t)node), type));
}

/* CUDA 12: (node, array, count); CUDA 13: edge data come third. The phantom's edges carry no data: zeros. */
PHANTOM_API int cudaGraphNodeGetDependencies(void *node, uint64_t *out, void *third, size_t *fourth) {
    bool edges = runtime_major() >= 13;
    return RUNTIME(get_dependencies(node_of((uint64_t)node), out, edges ? fourth : third));
}

PHANTOM_API int cudaGraphAddEmptyNode(uint64_t *out, void *graph, const uint64_t *after, size_t count) {
    return RUNTIME(add(out, graph_of(graph), after, count, NODE_EMPTY));
}

/* CUDA 12: (out, graph, nodes, count, parameters); CUDA 13: edge data before the count. The type comes first in
 * the parameters. */
PHANTOM_API int cudaGraphAddNode(uint64_t *out, void *graph, const uint64_t *after, uintptr_t fourth, uintptr_t fifth,
                                 const int *sixth) {
    bool edges = runtime_major() >= 13;
    const int *type = edges ? sixth : (const int *)fifth;
    size_t count = edges ? fifth : fourth;
    return RUNTIME(type ? add(out, graph_of(graph), after, count, (enum node_type)*type) : INVALID_VALUE);
}

PHANTOM_API int cudaGraphInstantiate(void **out, void *graph, unsigned long long flags) {
    (void)flags;
    return RUNTIME(instantiate(out, graph_of(graph)));
}

PHANTOM_API int cudaGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
    return cudaGraphInstantiate(out, graph, flags);
}

PHANTOM_API int cudaGraphExecDestroy(void *exec) {
    return run_destructors(RUNTIME(destroy_exec(exec_of(exec))));
}

PHANTOM_API int cudaGraphLaunch(void *exec, void *stream) {
    return RUNTIME(launch(exec, stream));
}

PHANTOM_API int cudaGraphUpload(void *exec, void *stream) {
    (void)stream;
    return RUNTIME(exec_of(exec) ? SUCCESS : misuse());
}

PHANTOM_API int cudaGraphDebugDotPrint(void *graph, const char *path, unsigned flags) {
    (void)flags;
    return RUNTIME(print_dot(graph_of(graph), path));
}

PHANTOM_API int cudaGraphConditionalHandleCreate(uint64_t *out, void *graph, unsigned value, unsigned flags) {
    (void)value, (void)flags;
    return RUNTIME(out && graph_of(graph) ? (*out = ++phantom.captures, SUCCESS) : INVALID_VALUE);
}

PHANTOM_API int cudaUserObjectCreate(void **out, void *data, void (*destroy_data)(void *), unsigned references,
                                     unsigned flags) {
    (void)flags;
    return RUNTIME(create_user(out, data, destroy_data, references));
}

PHANTOM_API int cudaUserObjectRetain(void *object, unsigned count) {
    return RUNTIME(change_user(user_of(object), count, true));
}

PHANTOM_API int cudaUserObjectRelease(void *object, unsigned count) {
    return run_destructors(RUNTIME(change_user(user_of(object), count, false)));
}

PHANTOM_API int cudaGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags) {
    return RUNTIME(graph_retain(graph_of(graph), user_of(object), count, flags));
}
