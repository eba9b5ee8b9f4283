/* What a pointer points to. */
#include "context.h"
#include "memory.h"

/* Memory types of the runtime and of the driver, and the driver's attribute numbers. */
enum { RUNTIME_UNREGISTERED, RUNTIME_HOST, RUNTIME_DEVICE, RUNTIME_MANAGED };
enum { DRIVER_HOST = 1, DRIVER_DEVICE = 2 };
enum {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    SYNC_MEMOPS = 6,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    IS_LEGACY_IPC_CAPABLE = 10,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    IS_MAPPED = 13,
    ALLOWED_HANDLE_TYPES = 14,
    IS_GPU_DIRECT_RDMA_CAPABLE = 15,
};

struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
};

static int describe(struct pointer_attributes *out, void *address) {
    if (!out)
        return INVALID_VALUE;
    const struct memory *memory = memory_around((uint64_t)address);
    *out = (struct pointer_attributes){.type = RUNTIME_UNREGISTERED, .device = -2, .host_pointer = address};
    if (!memory)
        return SUCCESS;
    bool host = memory_is_host(memory);
    out->type = memory->kind == MANAGED ? RUNTIME_MANAGED : host ? RUNTIME_HOST : RUNTIME_DEVICE;
    out->device = memory->device;
    out->device_pointer = address;
    out->host_pointer = host ? address : NULL;
    return SUCCESS;
}

static int attribute(void *out, int which, uint64_t address) {
    const struct memory *memory = memory_around(address);
    if (!out || !memory)
        return INVALID_VALUE;
    bool host = memory_is_host(memory);
    switch (which) {
    case CONTEXT: *(void **)out = context_of(memory->device); return SUCCESS;
    case MEMORY_TYPE: *(int *)out = host ? DRIVER_HOST : DRIVER_DEVICE; return SUCCESS;
    case DEVICE_POINTER: *(uint64_t *)out = address; return SUCCESS;
    case HOST_POINTER: *(uint64_t *)out = host ? address : 0; return host ? SUCCESS : INVALID_VALUE;
    case SYNC_MEMOPS: *(int *)out = 0; return SUCCESS;
    case BUFFER_ID: *(uint64_t *)out = memory->place.key; return SUCCESS;
    case IS_MANAGED: *(int *)out = memory->kind == MANAGED; return SUCCESS;
    case DEVICE_ORDINAL: *(int *)out = memory->device; return SUCCESS;
    case IS_LEGACY_IPC_CAPABLE: *(int *)out = memory->kind == MALLOCED; return SUCCESS;
    case RANGE_START: *(uint64_t *)out = memory->place.key; return SUCCESS;
    case RANGE_SIZE: *(uint64_t *)out = memory->place.tie; return SUCCESS;
    case IS_MAPPED: *(int *)out = 1; return SUCCESS;
    case ALLOWED_HANDLE_TYPES: *(uint64_t *)out = 0; return SUCCESS;
    case IS_GPU_DIRECT_RDMA_CAPABLE: *(int *)out = 0; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

static int range(uint64_t *base, size_t *size, uint64_t address) {
    const struct memory *memory = memory_around(address);
    if (!memory)
        return NOT_FOUND;
    if (base)
        *base = memory->place.key;
    if (size)
        *size = memory->place.tie;
    return SUCCESS;
}

PHANTOM_API int cudaPointerGetAttributes(void *out, const void *address) {
    return RUNTIME(describe(out, (void *)address));
}

PHANTOM_API int cuPointerGetAttribute(void *out, int which, uint64_t address) {
    return DRIVER(attribute(out, which, address));
}

static int attributes(unsigned count, const int *which, void **out, uint64_t address) {
    /* Unlike the single query, an unknown pointer is no error here: its attributes come out as zeros. */
    for (unsigned i = 0; i < count; i++)
        if (attribute(out[i], which[i], address))
            *(int *)out[i] = 0;
    return SUCCESS;
}

PHANTOM_API int cuPointerGetAttributes(unsigned count, int *which, void **out, uint64_t address) {
    return DRIVER(which && out ? attributes(count, which, out, address) : INVALID_VALUE);
}

PHANTOM_API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address) {
    return DRIVER(range(base, size, address));
}
