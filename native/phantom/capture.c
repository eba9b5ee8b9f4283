#include "capture.h"

#include "event.h"
#include "graph.h"
#include "runtime.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
enum status { NONE, ACTIVE, INVALIDATED };

struct capture {
    uint64_t id;
    int mode;
    const void *thread;
    struct graph *graph;
    struct stream *origin;
    bool invalid;
    bool borrowed; /* the graph was the program's before the capture */
    struct capture *next;
};

static struct capture *running;
static _Thread_local int thread_mode; /* its address also tells threads apart */

void dependencies_clear(struct dependencies *set) {
    free(set->nodes);
    memset(set, 0, sizeof *set);
}

int dependencies_add(struct dependencies *set, uint64_t node) {
    if (set->count == set->room) {
        size_t room = set->room ? set->room * 2 : 4;
        uint64_t *nodes = realloc(set->nodes, room * sizeof *nodes);
        if (!nodes)
            return OUT_OF_MEMORY;
        set->nodes = nodes;
        set->room = room;
    }
    set->nodes[set->count++] = node;
    return SUCCESS;
}

static int dependencies_join(struct dependencies *set, const struct dependencies *more) {
    for (size_t i = 0; i < more->count; i++) {
        bool there = false;
        for (size_t j = 0; j < set->count; j++)
            there = there || set->nodes[j] == more->nodes[i];
        if (!there && dependencies_add(set, more->nodes[i]))
            return OUT_OF_MEMORY;
    }
    return SUCCESS;
}

static void drop_out(struct stream *stream) {
    stream->capture = NULL;
    dependencies_clear(&stream->last);
}

/* Ends a capture for every stream in it. */
static void finish(struct capture *capture) {
    size_t cursor = 0;
    for (struct stream *s; (s = book_next(&phantom.objects, STREAM, &cursor));)
        if (s->capture == capture)
            drop_out(s);
    struct capture **place = &running;
    while (*place != capture)
        place = &(*place)->next;
    *place = capture->next;
    free(capture);
}

bool capture_uses(const struct graph *graph) {
    for (const struct capture *capture = running; capture; capture = capture->next)
        if (capture->graph == graph)
            return true;
    return false;
}

void captures_forget(void) {
    while (running) {
        struct capture *capture = running;
        running = capture->next;
        free(capture);
    }
}

void capture_leave(struct stream *stream) {
    if (stream->capture && stream->capture->origin == stream) {
        if (!stream->capture->borrowed)
            graph_delete(stream->capture->graph);
        finish(stream->capture);
    } else if (stream->capture) {
        stream->capture->invalid = true;
    }
    drop_out(stream);
}

bool capture_note(struct stream *stream, enum node_type type) {
    struct capture *capture = stream->capture;
    if (!capture)
        return false;
    uint64_t node = graph_add(capture->graph, type, stream->last.nodes, stream->last.count);
    stream->last.count = 0;
    if (!node || dependencies_add(&stream->last, node))
        capture->invalid = true;
    return true;
}

void capture_keep(struct stream *stream, uint64_t address) {
    if (stream->capture && dependencies_add(&stream->capture->graph->memory, address))
        stream->capture->invalid = true;
}

int capture_record_event(struct stream *stream, struct event *event) {
    event->after.count = 0;
    event->capture = stream->capture ? stream->capture->id : 0;
    return stream->capture ? dependencies_join(&event->after, &stream->last) : SUCCESS;
}

static struct capture *by_id(uint64_t id) {
    for (struct capture *capture = running; capture; capture = capture->next)
        if (capture->id == id)
            return capture;
    return NULL;
}

int capture_wait_event(struct stream *stream, uint64_t handle) {
    struct event *event = book_find(&phantom.objects, handle, EVENT);
    if (!event)
        return misuse(), INVALID_HANDLE;
    struct capture *capture = event->capture ? by_id(event->capture) : NULL;
    if (!capture) /* nothing to follow; in a capture an event from outside is forbidden */
        return stream->capture && event->sequence ? stream->capture->invalid = true, CAPTURE_ISOLATION : SUCCESS;
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CAPTURE_MERGE;
    }
    stream->capture = capture;
    return dependencies_join(&stream->last, &event->after);
}

int capture_check_unsafe_call(void) {
    if (!running || thread_mode == RELAXED)
        return SUCCESS;
    int code = SUCCESS;
    for (struct capture *capture = running; capture; capture = capture->next) {
        bool own = capture->thread == &thread_mode;
        if (own ? capture->mode != RELAXED : capture->mode == GLOBAL && thread_mode == GLOBAL) {
            capture->invalid = true;
            code = CAPTURE_UNSUPPORTED;
        }
    }
    return code;
}

int capture_check_wait(struct stream *stream) {
    if (!running)
        return SUCCESS;
    int code = SUCCESS;
    for (struct capture *capture = running; capture; capture = capture->next) {
        if (stream ? stream->capture == capture : capture->origin->device == current_device) {
            capture->invalid = true;
            code = CAPTURE_UNSUPPORTED;
        }
    }
    return code ? code : capture_check_unsafe_call();
}

int capture_check_legacy(const struct stream *stream) {
    if (!running || (stream && stream != device_now()->legacy))
        return SUCCESS;
    int code = SUCCESS;
    for (struct capture *capture = running; capture; capture = capture->next) {
        if (capture->origin->flags & NON_BLOCKING)
            continue;
        capture->invalid = true;
        code = CAPTURE_IMPLICIT;
    }
    return code;
}

int capture_check_event(const struct event *event) {
    struct capture *capture = event->capture ? by_id(event->capture) : NULL;
    if (capture)
        capture->invalid = true;
    return event->capture ? CAPTURED_EVENT : capture_check_unsafe_call();
}

static int begin(void *handle, struct graph *graph, const uint64_t *after, size_t count, int mode) {
    struct stream *stream = stream_of(handle);
    if (stream == device_now()->legacy)
        return CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return ILLEGAL_STATE;
    if (mode < GLOBAL || mode > RELAXED)
        return INVALID_VALUE;
    struct capture *capture = calloc(1, sizeof *capture);
    struct graph *target = graph ? graph : graph_new();
    if (!capture || !target) {
        free(capture);
        return OUT_OF_MEMORY;
    }
    *capture = (struct capture){.id = ++phantom.captures, .mode = mode, .thread = &thread_mode, .graph = target,
                                .origin = stream, .borrowed = graph != NULL, .next = running};
    running = capture;
    stream->capture = capture;
    struct dependencies first = {(uint64_t *)after, count, count};
    return dependencies_join(&stream->last, &first);
}

/* Whether every stream that joined has been waited for by the origin. */
static bool joined(const struct capture *capture) {
    size_t cursor = 0;
    for (struct stream *s; (s = book_next(&phantom.objects, STREAM, &cursor));)
        for (size_t i = 0; s->capture == capture && s != capture->origin && i < s->last.count; i++)
            if (!graph_reaches(&capture->origin->last, s->last.nodes[i]))
                return false;
    return true;
}

static int end(void *handle, void **out) {
    struct stream *stream = stream_of(handle);
    struct capture *capture = stream->capture;
    if (!out)
        return INVALID_VALUE;
    *out = NULL;
    if (!capture)
        return ILLEGAL_STATE;
    if (capture->origin != stream) {
        capture->invalid = true;
        return CAPTURE_UNMATCHED;
    }
    if (capture->mode != RELAXED && capture->thread != &thread_mode)
        return CAPTURE_WRONG_THREAD;
    int code = capture->invalid ? CAPTURE_INVALIDATED : joined(capture) ? SUCCESS : CAPTURE_UNJOINED;
    if (code == SUCCESS)
        *out = (void *)capture->graph->object.handle;
    else if (!capture->borrowed)
        graph_delete(capture->graph);
    finish(capture);
    return code;
}

static int status_of(const struct stream *stream) {
    return !stream->capture ? NONE : stream->capture->invalid ? INVALIDATED : ACTIVE;
}

static int is_capturing(void *handle, int *status) {
    if (!status)
        return INVALID_VALUE;
    *status = status_of(stream_of(handle));
    return SUCCESS;
}

static int info(void *handle, int *status, unsigned long long *id, void **graph, const void **after, size_t *count) {
    struct stream *stream = stream_of(handle);
    if (!status)
        return INVALID_VALUE;
    *status = status_of(stream);
    if (*status != ACTIVE)
        return SUCCESS;
    if (id)
        *id = stream->capture->id;
    if (graph)
        *graph = (void *)stream->capture->graph->object.handle;
    if (after)
        *after = stream->last.nodes;
    if (count)
        *count = stream->last.count;
    return SUCCESS;
}

static int update(void *handle, const uint64_t *after, size_t count, bool replace) {
    struct stream *stream = stream_of(handle);
    if (!stream->capture)
        return ILLEGAL_STATE;
    for (size_t i = 0; i < count; i++)
        if (!book_find(&phantom.objects, after[i], GRAPH_NODE))
            return INVALID_VALUE;
    if (replace)
        stream->last.count = 0;
    struct dependencies more = {(uint64_t *)after, count, count};
    return dependencies_join(&stream->last, &more);
}

PHANTOM_API int cudaStreamBeginCapture(void *stream, int mode) {
    return RUNTIME(begin(stream, NULL, NULL, 0, mode));
}

PHANTOM_API int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const uint64_t *after, const void *edges,
                                              size_t count, int mode) {
    (void)edges;
    enter();
    struct graph *target = book_find(&phantom.objects, (uint64_t)graph, GRAPH);
    return remember(leave(target ? begin(stream, target, after, count, mode) : INVALID_VALUE));
}

PHANTOM_API int cudaStreamEndCapture(void *stream, void **graph) {
    return RUNTIME(end(stream, graph));
}

PHANTOM_API int cudaStreamIsCapturing(void *stream, int *status) {
    return RUNTIME(is_capturing(stream, status));
}

PHANTOM_API int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                            const void **after, size_t *count) {
    return RUNTIME(info(stream, status, id, graph, after, count));
}

PHANTOM_API int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                            const void **after, const void **edges, size_t *count) {
    if (edges)
        *edges = NULL;
    return RUNTIME(info(stream, status, id, graph, after, count));
}

/* CUDA 12 callers pass the first three arguments only, CUDA 13 ones all. */
PHANTOM_API int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                         const void **after, const void **edges, size_t *count) {
    if (runtime_major() < 13)
        return cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count);
}

PHANTOM_API int cudaStreamUpdateCaptureDependencies_v2(void *stream, const uint64_t *after, const void *edges,
                                                       size_t count, unsigned flags) {
    (void)edges;
    return RUNTIME(update(stream, after, count, flags != 0));
}

/* CUDA 12: (stream, nodes, count, flags); CUDA 13: edge data come third. */
PHANTOM_API int cudaStreamUpdateCaptureDependencies(void *stream, const uint64_t *after, uintptr_t third,
                                                    uintptr_t fourth, unsigned fifth) {
    if (runtime_major() < 13)
        return RUNTIME(update(stream, after, third, (unsigned)fourth != 0));
    return RUNTIME(update(stream, after, fourth, fifth != 0));
}

PHANTOM_API int cudaThreadExchangeStreamCaptureMode(int *mode) {
    if (!mode || *mode < GLOBAL || *mode > RELAXED)
        return remember(INVALID_VALUE);
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return SUCCESS;
}

PHANTOM_API int cuStreamIsCapturing(void *stream, int *status) {
    return DRIVER(is_capturing(stream, status));
}

PHANTOM_API int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph, const void **after,
                                          size_t *count) {
    return DRIVER(info(stream, status, (unsigned long long *)id, graph, after, count));
}

PHANTOM_API int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph, const void **after,
                                          const void **edges, size_t *count) {
    if (edges)
        *edges = NULL;
    return DRIVER(info(stream, status, (unsigned long long *)id, graph, after, count));
}

PHANTOM_API int cuThreadExchangeStreamCaptureMode(int *mode) {
    return cudaThreadExchangeStreamCaptureMode(mode);
}
