#include "stream.h"

#include "capture.h"
#include "context.h"
#include "event.h"
#include "pool.h"
#include "usage.h"

enum { LEGACY = 1, PER_THREAD = 2, LOWEST_PRIORITY = 0, HIGHEST_PRIORITY = -5 };

static struct stream *made(struct stream **stream) {
    if (!*stream) {
        *stream = book_new(&phantom.objects, STREAM, sizeof **stream);
        if (*stream)
            (*stream)->device = current_device;
    }
    return *stream;
}

struct stream *stream_of(void *handle) {
    struct device *device = device_now();
    if ((uint64_t)handle > PER_THREAD) {
        struct stream *stream = book_find(&phantom.objects, (uint64_t)handle, STREAM);
        if (stream)
            return stream;
    }
    return made((uint64_t)handle == PER_THREAD ? &device->per_thread : &device->legacy);
}

static int create(void **out, unsigned flags, int priority) {
    if (!out || flags > 1)
        return INVALID_VALUE;
    device_touch(device_now());
    struct stream *stream = book_new(&phantom.objects, STREAM, sizeof *stream);
    if (!stream)
        return OUT_OF_MEMORY;
    stream->device = current_device;
    stream->flags = flags;
    stream->priority = priority > LOWEST_PRIORITY    ? LOWEST_PRIORITY
                       : priority < HIGHEST_PRIORITY ? HIGHEST_PRIORITY
                                                     : priority;
    *out = (void *)stream->object.handle;
    usage_call(PHANTOM_STREAMS);
    return SUCCESS;
}

static int destroy(void *handle) {
    struct stream *stream = book_find(&phantom.objects, (uint64_t)handle, STREAM);
    if (!stream || stream == device_now()->legacy || stream == device_now()->per_thread)
        return misuse(), INVALID_HANDLE;
    capture_leave(stream);
    book_delete(&phantom.objects, stream);
    return SUCCESS;
}

static int synchronize(void *handle) {
    struct stream *stream = stream_of(handle);
    int code = capture_check_wait(stream);
    if (code)
        return code;
    struct device *device = &phantom.device[stream->device];
    device_touch(device);
    device->counter[PHANTOM_STREAM_SYNC]++;
    events_complete(stream->object.handle);
    pool_settle(device);
    return SUCCESS;
}

static int synchronize_device(void) {
    int code = capture_check_wait(NULL);
    if (code)
        return code;
    device_touch(device_now());
    device_now()->counter[PHANTOM_DEVICE_SYNC]++;
    events_complete(0);
    pool_settle(device_now());
    return SUCCESS;
}

static int query(void *handle) {
    struct stream *stream = stream_of(handle);
    int code = capture_check_wait(stream);
    return code ? code : events_pending(stream->object.handle) ? NOT_READY : SUCCESS;
}

static int wait_event(void *handle, void *event) {
    return capture_wait_event(stream_of(handle), (uint64_t)event);
}

static int give(int *out, int value) {
    if (!out)
        return INVALID_VALUE;
    *out = value;
    return SUCCESS;
}

static int give_id(unsigned long long *out, void *handle) {
    if (!out)
        return INVALID_VALUE;
    *out = stream_of(handle)->object.handle;
    return SUCCESS;
}

PHANTOM_API int cudaStreamCreate(void **out) {
    return RUNTIME(create(out, 0, 0));
}

PHANTOM_API int cudaStreamCreateWithFlags(void **out, unsigned flags) {
    return RUNTIME(create(out, flags, 0));
}

PHANTOM_API int cudaStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    return RUNTIME(create(out, flags, priority));
}

PHANTOM_API int cudaStreamDestroy(void *stream) {
    return RUNTIME(destroy(stream));
}

PHANTOM_API int cudaStreamSynchronize(void *stream) {
    return RUNTIME(synchronize(stream));
}

PHANTOM_API int cudaDeviceSynchronize(void) {
    return RUNTIME(synchronize_device());
}

PHANTOM_API int cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}

PHANTOM_API int cudaStreamQuery(void *stream) {
    return RUNTIME(query(stream));
}

PHANTOM_API int cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)flags;
    return RUNTIME(wait_event(stream, event));
}

PHANTOM_API int cudaStreamGetPriority(void *stream, int *out) {
    return RUNTIME(give(out, stream_of(stream)->priority));
}

PHANTOM_API int cudaStreamGetFlags(void *stream, unsigned *out) {
    return RUNTIME(give((int *)out, (int)stream_of(stream)->flags));
}

PHANTOM_API int cudaStreamGetDevice(void *stream, int *out) {
    return RUNTIME(give(out, stream_of(stream)->device));
}

PHANTOM_API int cudaStreamGetId(void *stream, unsigned long long *out) {
    return RUNTIME(give_id(out, stream));
}

PHANTOM_API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least)
        *least = LOWEST_PRIORITY;
    if (greatest)
        *greatest = HIGHEST_PRIORITY;
    return SUCCESS;
}

/* Work that the host does in stream order: the stream is never busy, so it is done at once. During a capture it
 * belongs to the graph and does not run. */
static bool runs_now(void *handle) {
    enter();
    return leave(!capture_note(stream_of(handle), NODE_HOST));
}

PHANTOM_API int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    if (runs_now(stream))
        function(data);
    return SUCCESS;
}

PHANTOM_API int cudaStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags) {
    (void)flags;
    if (runs_now(stream))
        callback(stream, SUCCESS, data);
    return SUCCESS;
}

PHANTOM_API int cuStreamCreate(void **out, unsigned flags) {
    return DRIVER(create(out, flags, 0));
}

PHANTOM_API int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    return DRIVER(create(out, flags, priority));
}

PHANTOM_API int cuStreamDestroy_v2(void *stream) {
    return DRIVER(destroy(stream));
}

PHANTOM_API int cuStreamSynchronize(void *stream) {
    return DRIVER(synchronize(stream));
}

PHANTOM_API int cuStreamQuery(void *stream) {
    return DRIVER(query(stream));
}

PHANTOM_API int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)flags;
    return DRIVER(wait_event(stream, event));
}

PHANTOM_API int cuStreamGetPriority(void *stream, int *out) {
    return DRIVER(give(out, stream_of(stream)->priority));
}

PHANTOM_API int cuStreamGetFlags(void *stream, unsigned *out) {
    return DRIVER(give((int *)out, (int)stream_of(stream)->flags));
}

static int give_context(void **out, void *handle) {
    if (!out)
        return INVALID_VALUE;
    *out = context_of(stream_of(handle)->device);
    return SUCCESS;
}

PHANTOM_API int cuStreamGetCtx(void *stream, void **out) {
    return DRIVER(give_context(out, stream));
}

PHANTOM_API int cuCtxSynchronize(void) {
    return DRIVER(synchronize_device());
}

PHANTOM_API int cuStreamWriteValue32(void *stream, uint64_t address, uint32_t value, unsigned flags) {
    (void)address, (void)value, (void)flags;
    return DRIVER((capture_note(stream_of(stream), NODE_MEMSET), SUCCESS));
}

PHANTOM_API int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags) {
    return cuStreamWriteValue32(stream, address, value, flags);
}
