/* Copies and fills. Device memory has no content: of what is written to it values.c keeps the small part that may be
 * read back, reads.c says what a read gives, and host to host is a real copy. */
#include "capture.h"
#include "inflow.h"
#include "memory.h"
#include "reads.h"
#include "stream.h"
#include "values.h"

#include <stdlib.h>
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

/* `height` rows of `width` bytes that lie a pitch apart. */
struct shape {
    size_t width, height, to_pitch, from_pitch;
};

/* One read, however many rows it has: who hands over an answer need not know how the program copies. */
static int read_rows(char *to, const char *from, const struct shape *shape) {
    bool dense = shape->height == 1 || (shape->to_pitch == shape->width && shape->from_pitch == shape->width);
    char *rows = dense ? to : malloc(shape->width * shape->height);
    if (!rows)
        return OUT_OF_MEMORY;
    reads_answer(rows, (uint64_t)from, shape->width, shape->height, shape->from_pitch);
    for (size_t i = 0; i < shape->height && !dense; i++)
        memcpy(to + i * shape->to_pitch, rows + i * shape->width, shape->width);
    if (!dense)
        free(rows);
    return SUCCESS;
}

static int move(char *to, const char *from, const struct shape *shape, enum direction direction) {
    if (direction == DEVICE_TO_HOST)
        return read_rows(to, from, shape);
    if (direction == HOST_TO_DEVICE)
        inflow_note((uint64_t)to, shape->to_pitch * (shape->height - 1) + shape->width);
    for (size_t i = 0; i < shape->height; i++) {
        if (direction == HOST_TO_HOST)
            memmove(to, from, shape->width);
        else if (direction == HOST_TO_DEVICE)
            values_write((uint64_t)to, from, shape->width);
        else
            values_copy((uint64_t)to, (uint64_t)from, shape->width);
        to += shape->to_pitch;
        from += shape->from_pitch;
    }
    return SUCCESS;
}

static int transfer_rows(void *to, const void *from, const struct shape *shape, enum direction direction,
                         struct stream *stream) {
    if ((unsigned)direction > BY_POINTERS)
        return 21; /* invalid copy direction */
    if (!shape->width || !shape->height)
        return SUCCESS;
    if (!to || !from)
        return INVALID_VALUE;
    device_touch(device_now());
    int code = capture_check_legacy(stream);
    if (code || (stream && capture_note(stream, NODE_MEMCPY)))
        return code;
    return move(to, from, shape, direction == BY_POINTERS ? direction_of(to, from) : direction);
}

static int transfer(void *to, const void *from, size_t size, enum direction direction, struct stream *stream) {
    struct shape shape = {.width = size, .height = 1, .to_pitch = size, .from_pitch = size};
    return transfer_rows(to, from, &shape, direction, stream);
}

static int rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                enum direction direction, struct stream *stream) {
    struct shape shape = {.width = width, .height = height, .to_pitch = to_pitch, .from_pitch = from_pitch};
    if (width > to_pitch || width > from_pitch)
        return 12; /* invalid pitch */
    return transfer_rows(to, from, &shape, direction, stream);
}

/* `pattern` is a byte four times over, or a word for an address that is a multiple of four. */
static int fill(void *to, uint32_t pattern, size_t size, struct stream *stream) {
    device_touch(device_now());
    int code = capture_check_legacy(stream);
    if (code || (stream && capture_note(stream, NODE_MEMSET)))
        return code;
    const struct memory *memory = memory_around((uint64_t)to);
    if (!memory || !memory_is_host(memory))
        values_fill((uint64_t)to, pattern, size);
    else if (size <= memory->place.tie - ((uint64_t)to - memory->place.key))
        for (size_t i = 0; i < size; i++)
            ((unsigned char *)to)[i] = (unsigned char)(pattern >> ((uint64_t)to + i) % 4 * 8);
    return SUCCESS;
}

static uint32_t four_times(int value) {
    return (unsigned char)value * 0x01010101u;
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

PHANTOM_API int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
                                        int direction, void *stream) {
    (void)stream;
    return cudaMemcpyToSymbol(symbol, from, size, offset, direction);
}

/* Variables of kernels have no content either. */
static int read_symbol(void *to, size_t size) {
    if (!to)
        return INVALID_VALUE;
    if (!on_device(to))
        memset(to, 0, size);
    return SUCCESS;
}

PHANTOM_API int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int direction) {
    (void)symbol, (void)offset, (void)direction;
    return RUNTIME(read_symbol(to, size));
}

PHANTOM_API int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, int direction,
                                          void *stream) {
    (void)symbol, (void)offset, (void)direction, (void)stream;
    return RUNTIME(read_symbol(to, size));
}

PHANTOM_API int cudaMemset(void *to, int value, size_t size) {
    return RUNTIME(fill(to, four_times(value), size, NULL));
}

PHANTOM_API int cudaMemsetAsync(void *to, int value, size_t size, void *stream) {
    return RUNTIME(fill(to, four_times(value), size, stream_of(stream)));
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

PHANTOM_API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) {
    return DRIVER(transfer((void *)to, (const void *)from, size, DEVICE_TO_DEVICE, NULL));
}

PHANTOM_API int cuMemcpy(uint64_t to, uint64_t from, size_t size) {
    return DRIVER(transfer((void *)to, (const void *)from, size, BY_POINTERS, NULL));
}

PHANTOM_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
    return DRIVER(transfer((void *)to, (const void *)from, size, BY_POINTERS, stream_of(stream)));
}

PHANTOM_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    return DRIVER(fill((void *)to, four_times(value), count, stream_of(stream)));
}

PHANTOM_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    return DRIVER(fill((void *)to, value, count * 4, stream_of(stream)));
}

PHANTOM_API int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
    return cuMemsetD8Async(to, value, count, NULL);
}

PHANTOM_API int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
    return DRIVER(fill((void *)to, value * 0x10001u, count * 2, stream_of(stream)));
}

PHANTOM_API int cuMemsetD16_v2(uint64_t to, unsigned short value, size_t count) {
    return cuMemsetD16Async(to, value, count, NULL);
}

PHANTOM_API int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
    return cuMemsetD32Async(to, value, count, NULL);
}
