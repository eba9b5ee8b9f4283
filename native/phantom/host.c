#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "host.h"

#include "capture.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HOST_PAGE_BYTES = 4096 };

/* Zeroed pages of their own: large buffers that are never touched cost nothing. */
static int allocate(void **out, size_t size, unsigned flags, enum memory_kind kind) {
    if (!out)
        return misuse();
    *out = NULL;
    int code = capture_check_unsafe_call();
    if (code)
        return code;
    if (!size)
        return kind == MANAGED ? misuse() : SUCCESS;
    if (size > SIZE_MAX - HOST_PAGE_BYTES)
        return OUT_OF_MEMORY;
    size_t bytes = (size + HOST_PAGE_BYTES - 1) / HOST_PAGE_BYTES * HOST_PAGE_BYTES;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return OUT_OF_MEMORY;
    struct memory *memory = memory_enter(kind, current_device, (uint64_t)pages, size);
    if (!memory) {
        munmap(pages, bytes);
        return OUT_OF_MEMORY;
    }
    memory->charged = bytes;
    memory->flags = flags;
    device_touch(device_now());
    if (kind == PINNED) {
        device_now()->counter[PHANTOM_HOST_ALLOC]++;
        device_now()->counter[PHANTOM_HOST_BYTES] += size;
    }
    *out = pages;
    return SUCCESS;
}

static struct memory *host_at(uint64_t address, enum memory_kind kind) {
    struct memory *memory = OWNER(tree_floor(&phantom.host, address), struct memory, place);
    return memory && memory->place.key == address && memory->kind == kind ? memory : NULL;
}

int host_free(uint64_t address, enum memory_kind kind) {
    if (!address)
        return SUCCESS;
    struct memory *memory = host_at(address, kind);
    if (!memory)
        return misuse();
    struct device *device = &phantom.device[memory->device];
    if (kind == PINNED) {
        device->counter[PHANTOM_HOST_FREE]++;
        device->counter[PHANTOM_HOST_BYTES] -= memory->place.tie;
    }
    munmap((void *)address, memory->charged);
    memory_strike(memory);
    return SUCCESS;
}

static bool known(uint64_t address, uint64_t size) {
    const struct node *below = tree_floor(&phantom.host, address + size - 1);
    return below && below->key + below->tie > address;
}

static int enrol(uint64_t address, size_t size, unsigned flags) {
    if (!address || !size || address + size < address)
        return misuse();
    int code = capture_check_unsafe_call();
    if (code)
        return code;
    if (known(address, size))
        return HOST_MEMORY_ALREADY_REGISTERED;
    struct memory *memory = memory_enter(REGISTERED, current_device, address, size);
    if (!memory)
        return OUT_OF_MEMORY;
    memory->flags = flags;
    device_touch(device_now());
    return SUCCESS;
}

static int withdraw(uint64_t address) {
    int code = capture_check_unsafe_call();
    if (code)
        return code;
    struct memory *memory = host_at(address, REGISTERED);
    if (!memory)
        return misuse(), known(address, 1) ? INVALID_VALUE : HOST_MEMORY_NOT_REGISTERED;
    memory_strike(memory);
    return SUCCESS;
}

static int device_pointer(void **out, void *address) {
    const struct memory *memory = memory_around((uint64_t)address);
    if (!out || !memory || !memory_is_host(memory))
        return misuse();
    *out = address;
    return SUCCESS;
}

static int get_flags(unsigned *out, void *address) {
    const struct memory *memory = memory_around((uint64_t)address);
    if (!out || !memory || !memory_is_host(memory))
        return misuse();
    *out = memory->flags;
    return SUCCESS;
}

PHANTOM_API int cudaHostAlloc(void **out, size_t size, unsigned flags) {
    return RUNTIME(allocate(out, size, flags, PINNED));
}

PHANTOM_API int cudaMallocHost(void **out, size_t size) {
    return RUNTIME(allocate(out, size, 0, PINNED));
}

PHANTOM_API int cudaFreeHost(void *address) {
    return RUNTIME(host_free((uint64_t)address, PINNED));
}

/* Managed memory is the host's until a kernel touches it, and kernels here touch nothing. */
PHANTOM_API int cudaMallocManaged(void **out, size_t size, unsigned flags) {
    return RUNTIME(allocate(out, size, flags, MANAGED));
}

PHANTOM_API int cudaHostRegister(void *address, size_t size, unsigned flags) {
    return RUNTIME(enrol((uint64_t)address, size, flags));
}

PHANTOM_API int cudaHostUnregister(void *address) {
    return RUNTIME(withdraw((uint64_t)address));
}

PHANTOM_API int cudaHostGetDevicePointer(void **out, void *address, unsigned flags) {
    (void)flags;
    return RUNTIME(device_pointer(out, address));
}

PHANTOM_API int cudaHostGetFlags(unsigned *out, void *address) {
    return RUNTIME(get_flags(out, address));
}

PHANTOM_API int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
    return DRIVER(allocate(out, size, flags, PINNED));
}

PHANTOM_API int cuMemAllocHost_v2(void **out, size_t size) {
    return DRIVER(allocate(out, size, 0, PINNED));
}

PHANTOM_API int cuMemFreeHost(void *address) {
    return DRIVER(host_free((uint64_t)address, PINNED));
}

PHANTOM_API int cuMemAllocManaged(uint64_t *out, size_t size, unsigned flags) {
    return DRIVER(allocate((void **)out, size, flags, MANAGED));
}

PHANTOM_API int cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
    return DRIVER(enrol((uint64_t)address, size, flags));
}

PHANTOM_API int cuMemHostUnregister(void *address) {
    return DRIVER(withdraw((uint64_t)address));
}

PHANTOM_API int cuMemHostGetDevicePointer_v2(uint64_t *out, void *address, unsigned flags) {
    (void)flags;
    return DRIVER(device_pointer((void **)out, address));
}

PHANTOM_API int cudaMemAdvise(void) {
    return SUCCESS;
}

PHANTOM_API int cudaMemPrefetchAsync(void) {
    return SUCCESS;
}
