#include "event.h"

#include "pool.h"
#include "stream.h"

#include <stddef.h>

enum { DISABLE_TIMING = 2 };

static struct event *first_pending;
static _Thread_local uint64_t last_event, last_sequence;

static struct event *event_of(void *handle) {
    return book_find(&phantom.objects, (uint64_t)handle, EVENT);
}

static void complete(struct event *event) {
    if (!event->pending)
        return;
    event->pending = false;
    if (event->previous_pending)
        event->previous_pending->next_pending = event->next_pending;
    else
        first_pending = event->next_pending;
    if (event->next_pending)
        event->next_pending->previous_pending = event->previous_pending;
}

static void hold(struct event *event) {
    event->pending = true;
    event->previous_pending = NULL;
    event->next_pending = first_pending;
    if (first_pending)
        first_pending->previous_pending = event;
    first_pending = event;
}

void events_complete(uint64_t stream) {
    for (struct event *event = first_pending, *next; event; event = next) {
        next = event->next_pending;
        if (!stream || event->stream == stream)
            complete(event);
    }
}

bool events_pending(uint64_t stream) {
    for (struct event *event = first_pending; event; event = event->next_pending)
        if (event->stream == stream)
            return true;
    return false;
}

void events_forget(void) {
    first_pending = NULL;
    last_event = last_sequence = 0;
}

static int create(void **out, unsigned flags) {
    if (!out || flags > 7)
        return INVALID_VALUE;
    device_touch(device_now());
    struct event *event = book_new(&phantom.objects, EVENT, sizeof *event);
    if (!event)
        return OUT_OF_MEMORY;
    event->flags = flags;
    *out = (void *)event->object.handle;
    return SUCCESS;
}

static int destroy(struct event *event) {
    if (!event)
        return misuse(), INVALID_HANDLE;
    complete(event);
    dependencies_clear(&event->after);
    book_delete(&phantom.objects, event);
    return SUCCESS;
}

static int record(struct event *event, void *handle) {
    struct stream *stream = stream_of(handle);
    if (!event)
        return misuse(), INVALID_HANDLE;
    complete(event);
    event->sequence = ++phantom.sequence;
    event->stream = stream->object.handle;
    int code = capture_record_event(stream, event);
    if (phantom.hold_events && !event->capture)
        hold(event);
    last_event = event->object.handle;
    last_sequence = event->sequence;
    return code;
}

static int query(struct event *event) {
    int code = event ? capture_check_event(event) : (misuse(), INVALID_HANDLE);
    return code ? code : event->pending ? NOT_READY : SUCCESS;
}

static int synchronize(struct event *event) {
    int code = query(event);
    if (code && code != NOT_READY)
        return code;
    complete(event);
    device_now()->counter[PHANTOM_EVENT_SYNC]++;
    pool_settle(device_now());
    return SUCCESS;
}

/* Nothing takes time here; a small constant keeps programs that divide by it alive. */
static int elapsed(float *milliseconds, struct event *start, struct event *end) {
    if (!milliseconds)
        return INVALID_VALUE;
    if (!start || !end || !start->sequence || !end->sequence || ((start->flags | end->flags) & DISABLE_TIMING))
        return misuse(), INVALID_HANDLE;
    if (start->pending || end->pending)
        return NOT_READY;
    *milliseconds = 0.01f;
    return SUCCESS;
}

static void release(uint64_t handle, uint64_t sequence) {
    struct event *event = book_find(&phantom.objects, handle, EVENT);
    if (event && event->sequence == sequence)
        complete(event);
}

PHANTOM_API int cudaEventCreate(void **out) {
    return RUNTIME(create(out, 0));
}

PHANTOM_API int cudaEventCreateWithFlags(void **out, unsigned flags) {
    return RUNTIME(create(out, flags));
}

PHANTOM_API int cudaEventDestroy(void *event) {
    return RUNTIME(destroy(event_of(event)));
}

PHANTOM_API int cudaEventRecord(void *event, void *stream) {
    return RUNTIME(record(event_of(event), stream));
}

PHANTOM_API int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    (void)flags;
    return RUNTIME(record(event_of(event), stream));
}

PHANTOM_API int cudaEventQuery(void *event) {
    return RUNTIME(query(event_of(event)));
}

PHANTOM_API int cudaEventSynchronize(void *event) {
    return RUNTIME(synchronize(event_of(event)));
}

PHANTOM_API int cudaEventElapsedTime(float *milliseconds, void *start, void *end) {
    return RUNTIME(elapsed(milliseconds, event_of(start), event_of(end)));
}

PHANTOM_API int cudaEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return cudaEventElapsedTime(milliseconds, start, end);
}

PHANTOM_API int cuEventCreate(void **out, unsigned flags) {
    return DRIVER(create(out, flags));
}

PHANTOM_API int cuEventDestroy_v2(void *event) {
    return DRIVER(destroy(event_of(event)));
}

PHANTOM_API int cuEventRecord(void *event, void *stream) {
    return DRIVER(record(event_of(event), stream));
}

PHANTOM_API int cuEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    (void)flags;
    return DRIVER(record(event_of(event), stream));
}

PHANTOM_API int cuEventQuery(void *event) {
    return DRIVER(query(event_of(event)));
}

PHANTOM_API int cuEventSynchronize(void *event) {
    return DRIVER(synchronize(event_of(event)));
}

PHANTOM_API int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    return DRIVER(elapsed(milliseconds, event_of(start), event_of(end)));
}

PHANTOM_API uint64_t phantom_last_event(uint64_t *sequence) {
    if (sequence)
        *sequence = last_sequence;
    return last_event;
}

PHANTOM_API void phantom_release_event(uint64_t event, uint64_t sequence) {
    DRIVER((release(event, sequence), SUCCESS));
}

PHANTOM_API void phantom_hold_events(int hold_them) {
    DRIVER((phantom.hold_events = hold_them != 0, SUCCESS));
}
