/* Copies and fills. Device memory has no content: reading it gives zeros, writing it does nothing, and host to host
 * is a real copy. */
#include "capture.h"
#include "memory.h"
#include "stream.h"

#include <string.h>

enum direction { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_POINTERS };

static bool on_device(const void *address) {
    const struct memory *memory = memory_around((uint64_t)address);
    return memory && !memory_is_host(memory);
}

static enum direction direction_of(const void *to, const void *from) {
    bool to_device = on_device(to), from_device = on_device(from);
    return to_device ? from_device ? DEVICE_TO_DEVICE : HOST_TO_DEVICE : from_device ? DEVICE_TO_HOST : HOST_TO_HOST;
}

static int transfer(void *to, const void *from, size_t size, enum direction direction, struct stream *stream) {
    if ((unsigned)direction > BY_POINTERS)
        return 21; /* invalid copy direction */
    if (!size)
        return SUCCESS;
    if (!to || !from)
        return INVALID_VALUE;
    device_touch(device_now());
    int code = capture_check_legacy(stream);
    if (code || (stream && capture_note(stream, NODE_MEMCPY)))
        return code;
    if (direction == BY_POINTERS)
        direction = direction_of(to, from);
    if (direction == DEVICE_TO_HOST)
        memset(to, 0, size);
    else if (direction == HOST_TO_HOST)
        memmove(to, from, size);
    return SUCCESS;
}

static int rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                enum direction direction, struct stream *stream) {
    if (width > to_pitch || width > from_pitch)
        return 12; /* invalid pitch */
    int code = SUCCESS;
    for (size_t i = 0; i < height && !code; i++)
        code = transfer(to + i * to_pitch, from + i * from_pitch, width, direction, i ? NULL : stream);
    return code;
}

static int fill(void *to, int value, size_t size, struct stream *stream) {
    device_touch(device_now());
    int code = capture_check_legacy(stream);
    if (code || (stream && capture_note(stream, NODE_MEMSET)))
        return code;
    const struct memory *memory = memory_around((uint64_t)to);
    if (memory && memory_is_host(memory) && size <= memory->place.tie - ((uint64_t)to - memory->place.key))
        memset(to, value, size);
    return SUCCESS;
}

PHANTOM_API int cudaMemcpy(void *to, const void *from, size_t size, int direction) {
    return RUNTIME(transfer(to, from, size, (enum direction)direction, NULL));
}

PHANTOM_API int cudaMemcpyAsync(void *to, const void *from, size_t size, int direction, void *stream) {
    return RUNTIME(transfer(to, from, size, (enum direction)direction, stream_of(stream)));
}

PHANTOM_API int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t height, int direction) {
    return RUNTIME(rows(to, to_pitch, from, from_pitch, width, height, (enum direction)direction, NULL));
}

PHANTOM_API int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                  size_t height, int direction, void *stream) {
    return RUNTIME(rows(to, to_pitch, from, from_pitch, width, height, (enum direction)direction, stream_of(stream)));
}

PHANTOM_API int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
    (void)to_device, (void)from_device;
    return RUNTIME(transfer(to, from, size, DEVICE_TO_DEVICE, NULL));
}

PHANTOM_API int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                    void *stream) {
    (void)to_device, (void)from_device;
    return RUNTIME(transfer(to, from, size, DEVICE_TO_DEVICE, stream_of(stream)));
}

PHANTOM_API int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int direction) {
    (void)symbol, (void)from, (void)size, (void)offset, (void)direction;
    return SUCCESS;
}

PHANTOM_API int cudaMemset(void *to, int value, size_t size) {
    return RUNTIME(fill(to, value, size, NULL));
}

PHANTOM_API int cudaMemsetAsync(void *to, int value, size_t size, void *stream) {
    return RUNTIME(fill(to, value, size, stream_of(stream)));
}

PHANTOM_API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    return DRIVER(transfer((void *)to, from, size, HOST_TO_DEVICE, NULL));
}

PHANTOM_API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    return DRIVER(transfer(to, (const void *)from, size, DEVICE_TO_HOST, NULL));
}

PHANTOM_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    return DRIVER(transfer((void *)to, from, size, HOST_TO_DEVICE, stream_of(stream)));
}

PHANTOM_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    return DRIVER(transfer(to, (const void *)from, size, DEVICE_TO_HOST, stream_of(stream)));
}

PHANTOM_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    return DRIVER(transfer((void *)to, (const void *)from, size, DEVICE_TO_DEVICE, stream_of(stream)));
}

PHANTOM_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
    return DRIVER(transfer((void *)to, (const void *)from, size, BY_POINTERS, stream_of(stream)));
}

PHANTOM_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    return DRIVER(fill((void *)to, value, count, stream_of(stream)));
}

PHANTOM_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    (void)value;
    return DRIVER(fill((void *)to, 0, count * 4, stream_of(stream)));
}
