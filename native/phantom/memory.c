/* cudaMalloc, cudaFree, cudaMemGetInfo and the book of all memory ranges. */
#include "memory.h"

#include "capture.h"
#include "host.h"
#include "pool.h"
#include "reads.h"
#include "small.h"
#include "values.h"
#include "virtual.h"

#include <stdlib.h>

static struct tree *tree_of(enum memory_kind kind) {
    return kind >= PINNED ? &phantom.host : &phantom.memory;
}

struct memory *memory_enter(enum memory_kind kind, int device, uint64_t address, uint64_t size) {
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->kind = kind;
    memory->device = device;
    memory->place.key = address;
    memory->place.tie = size;
    tree_insert(tree_of(kind), &memory->place);
    return memory;
}

void memory_strike(struct memory *memory) {
    if (!memory_is_host(memory))
        values_drop(memory->place.key, memory->place.tie);
    tree_remove(tree_of(memory->kind), &memory->place);
    free(memory);
}

static struct memory *around(const struct tree *tree, uint64_t address) {
    struct memory *memory = OWNER(tree_floor(tree, address), struct memory, place);
    return memory && address - memory->place.key < memory->place.tie ? memory : NULL;
}

struct memory *memory_around(uint64_t address) {
    struct memory *memory = around(&phantom.memory, address);
    return memory ? memory : around(&phantom.host, address);
}

struct memory *memory_at(uint64_t address) {
    struct memory *memory = memory_around(address);
    return memory && memory->place.key == address ? memory : NULL;
}

static void free_tree(struct tree *tree) {
    while (tree->root) {
        struct memory *memory = OWNER(tree->root, struct memory, place);
        tree_remove(tree, tree->root);
        free(memory);
    }
}

void memory_forget(void) {
    free_tree(&phantom.memory);
    free_tree(&phantom.host);
    values_launch();
    reads_forget();
    virtual_forget();
    small_forget();
}

/* Takes whole pages, or a part of a shared one. */
static int take(uint64_t size, uint64_t *address, uint64_t *charged) {
    *charged = 0;
    if (size <= SMALL_BYTES)
        return small_take(size, address);
    if (size > phantom.spec.total)
        return device_take(device_now(), size);
    uint64_t bytes = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    int code = device_take(device_now(), bytes);
    if (code)
        return code;
    *charged = bytes;
    *address = address_take(&phantom.addresses, size, &phantom.memory);
    return SUCCESS;
}

static void give_back(int device, uint64_t address, uint64_t charged) {
    if (!charged) {
        small_give_back(device, address);
        return;
    }
    device_return(&phantom.device[device], charged);
    address_give_back(&phantom.addresses, address);
}

int memory_malloc(uint64_t size, uint64_t *out) {
    struct device *device = device_now();
    uint64_t address = 0, charged;
    if (!out)
        return misuse();
    *out = 0;
    int code = size ? capture_check_unsafe_call() : SUCCESS;
    if (code || !size || (code = take(size, &address, &charged)))
        return code;
    struct memory *memory = address ? memory_enter(MALLOCED, current_device, address, size) : NULL;
    if (!memory) {
        give_back(current_device, address, charged);
        return OUT_OF_MEMORY;
    }
    memory->charged = charged;
    device->counter[PHANTOM_MALLOC]++;
    device->counter[PHANTOM_MALLOC_BYTES] += size;
    *out = address;
    return SUCCESS;
}

int memory_free(uint64_t address) {
    int code = capture_check_unsafe_call();
    if (code || !address)
        return code;
    struct memory *memory = memory_at(address);
    if (memory && memory->kind == POOLED)
        return pool_free(address);
    if (memory && memory->kind == MANAGED)
        return host_free(address, MANAGED);
    if (!memory || memory->kind != MALLOCED)
        return misuse();
    struct device *device = &phantom.device[memory->device];
    device->counter[PHANTOM_FREE]++;
    device->counter[PHANTOM_FREE_BYTES] += memory->place.tie;
    give_back(memory->device, address, memory->charged);
    memory_strike(memory);
    return SUCCESS;
}

static int get_info(size_t *free_bytes, size_t *total_bytes) {
    struct device *device = device_now();
    device_touch(device);
    if (!free_bytes || !total_bytes)
        return INVALID_VALUE;
    *free_bytes = device_free(device);
    *total_bytes = phantom.spec.total;
    return SUCCESS;
}

PHANTOM_API int cudaMalloc(void **out, size_t size) {
    return RUNTIME(memory_malloc(size, (uint64_t *)out));
}

PHANTOM_API int cudaFree(void *address) {
    return RUNTIME((device_touch(device_now()), memory_free((uint64_t)address)));
}

PHANTOM_API int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    return RUNTIME(get_info(free_bytes, total_bytes));
}

PHANTOM_API int cuMemAlloc_v2(uint64_t *out, size_t size) {
    return DRIVER(size ? memory_malloc(size, out) : INVALID_VALUE);
}

PHANTOM_API int cuMemFree_v2(uint64_t address) {
    return DRIVER(memory_free(address));
}

PHANTOM_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    return DRIVER(get_info(free_bytes, total_bytes));
}
