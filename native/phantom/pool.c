#include "pool.h"

#include "capture.h"
#include "memory.h"
#include "stream.h"
#include "virtual.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_BYTES = 32 << 20, UNIT_BYTES = 512 };

/* Attribute numbers of cudaMemPoolGetAttribute and of cudaDeviceGetGraphMemAttribute. */
enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };
enum { GRAPH_USED, GRAPH_USED_HIGH, GRAPH_RESERVED, GRAPH_RESERVED_HIGH };

struct hole {
    struct node by_address; /* key: address, tie: size */
    struct node by_size;    /* key: size, tie: address */
};

struct pool {
    struct object object;
    int device;
    uint64_t begin, room;  /* its reserved addresses */
    uint64_t top;          /* end of the part in use */
    struct tree holes, sizes;
    uint64_t reserved, reserved_high, used, used_high, threshold;
    int reuse[REUSE_LAST + 1];
    bool unsettled; /* something was freed and the host has not synchronised since: trimming has no effect yet */
};

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static struct pool *pool_new(int device) {
    struct pool *pool = book_new(&phantom.objects, POOL, sizeof *pool);
    if (!pool)
        return NULL;
    pool->device = device;
    /* Addresses cost nothing; twice the memory leaves room for ranges that trimming has cut out. */
    pool->room = round_up(2 * phantom.spec.total, (uint64_t)1 << 30) + ((uint64_t)1 << 30);
    pool->begin = pool->top = virtual_reserve(pool->room, PAGE_BYTES, true);
    pool->reuse[1] = pool->reuse[2] = pool->reuse[3] = 1;
    return pool;
}

static struct pool *made(struct pool **pool, int device) {
    if (!*pool)
        *pool = pool_new(device);
    return *pool;
}

static struct pool *default_pool(int device) {
    return made(&phantom.device[device].default_pool, device);
}

static struct pool *current_pool(int device) {
    struct pool *pool = phantom.device[device].current_pool;
    return pool ? pool : default_pool(device);
}

static void hole_strike(struct pool *pool, struct hole *hole) {
    tree_remove(&pool->holes, &hole->by_address);
    tree_remove(&pool->sizes, &hole->by_size);
    free(hole);
}

static int hole_enter(struct pool *pool, uint64_t address, uint64_t size) {
    struct hole *hole = size ? calloc(1, sizeof *hole) : NULL;
    if (!hole)
        return size ? OUT_OF_MEMORY : SUCCESS;
    hole->by_address.key = hole->by_size.tie = address;
    hole->by_address.tie = hole->by_size.key = size;
    tree_insert(&pool->holes, &hole->by_address);
    tree_insert(&pool->sizes, &hole->by_size);
    return SUCCESS;
}

/* Makes [address, address + size) free, joined with the holes beside it. */
static int free_range(struct pool *pool, uint64_t address, uint64_t size) {
    struct hole *below = OWNER(tree_floor(&pool->holes, address), struct hole, by_address);
    if (below && below->by_address.key + below->by_address.tie == address) {
        address = below->by_address.key;
        size += below->by_address.tie;
        hole_strike(pool, below);
    }
    struct hole *above = OWNER(tree_ceiling(&pool->holes, address + size, 0), struct hole, by_address);
    if (above && above->by_address.key == address + size) {
        size += above->by_address.tie;
        hole_strike(pool, above);
    }
    return hole_enter(pool, address, size);
}

/* Adds steps at the top until a free range of `size` ends there. */
static int grow(struct pool *pool, uint64_t size) {
    struct hole *last = OWNER(tree_floor(&pool->holes, pool->top), struct hole, by_address);
    uint64_t free_at_top = last && last->by_address.key + last->by_address.tie == pool->top ? last->by_address.tie : 0;
    uint64_t bytes = round_up(size - free_at_top, STEP_BYTES);
    if (!pool->begin || bytes > pool->begin + pool->room - pool->top)
        return OUT_OF_MEMORY;
    int code = device_take(&phantom.device[pool->device], bytes);
    if (code)
        return code;
    uint64_t address = pool->top;
    pool->top += bytes;
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return free_range(pool, address, bytes);
}

int pool_allocate(struct pool *pool, uint64_t size, uint64_t *out) {
    if (!out || !pool)
        return misuse();
    *out = 0;
    if (!size)
        return SUCCESS;
    if (size > phantom.spec.total)
        return phantom.device[pool->device].counter[PHANTOM_OOM]++, OUT_OF_MEMORY;
    uint64_t bytes = round_up(size, UNIT_BYTES);
    struct hole *hole = OWNER(tree_ceiling(&pool->sizes, bytes, 0), struct hole, by_size);
    if (!hole) {
        int code = grow(pool, bytes);
        if (code)
            return code;
        hole = OWNER(tree_ceiling(&pool->sizes, bytes, 0), struct hole, by_size);
    }
    uint64_t address = hole->by_address.key, left = hole->by_address.tie - bytes;
    struct memory *memory = memory_enter(POOLED, pool->device, address, bytes);
    if (!memory)
        return OUT_OF_MEMORY;
    memory->pool = pool;
    memory->charged = size;
    hole_strike(pool, hole);
    pool->used += size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    phantom.device[pool->device].counter[PHANTOM_MALLOC_ASYNC]++;
    *out = address;
    return hole_enter(pool, address + bytes, left);
}

int pool_free(uint64_t address) {
    if (!address)
        return SUCCESS;
    struct memory *memory = memory_at(address);
    if (!memory || memory->kind != POOLED)
        return misuse();
    struct pool *pool = memory->pool;
    uint64_t size = memory->place.tie;
    pool->used -= memory->charged;
    pool->unsettled = true;
    memory_strike(memory);
    phantom.device[pool->device].counter[PHANTOM_FREE_ASYNC]++;
    return free_range(pool, address, size);
}

/* Gives whole free steps back, the highest first, until at most `keep` bytes stay reserved. What lies between keeps
 * its address: a step that went back is not used again, unless it was the top. */
static void trim(struct pool *pool, uint64_t keep) {
    struct device *device = &phantom.device[pool->device];
    uint64_t limit = pool->top;
    while (pool->reserved > keep && limit > pool->begin) {
        struct hole *hole = OWNER(tree_floor(&pool->holes, limit - 1), struct hole, by_address);
        if (!hole)
            break;
        uint64_t begin = hole->by_address.key, end = begin + hole->by_address.tie;
        uint64_t first = pool->begin + round_up(begin - pool->begin, STEP_BYTES);
        uint64_t last = pool->begin + (end - pool->begin) / STEP_BYTES * STEP_BYTES;
        limit = begin;
        if (last <= first)
            continue;
        uint64_t spare = (pool->reserved - keep) / STEP_BYTES * STEP_BYTES;
        if (last - first > spare)
            first = last - spare;
        if (last == first)
            break;
        hole_strike(pool, hole);
        hole_enter(pool, begin, first - begin);
        hole_enter(pool, last, end - last);
        pool->reserved -= last - first;
        device_return(device, last - first);
        if (last == pool->top)
            pool->top = first;
    }
    if (!pool->reserved)
        pool->top = pool->begin;
}

void pool_settle(struct device *device) {
    struct pool *pool = device->current_pool ? device->current_pool : device->default_pool;
    if (!pool)
        return;
    pool->unsettled = false;
    if (pool->reserved > pool->threshold)
        trim(pool, pool->threshold);
}

static struct pool *pool_of(void *handle) {
    return book_find(&phantom.objects, (uint64_t)handle, POOL);
}

static int set_attribute(struct pool *pool, int attribute, const void *value) {
    if (!pool || !value)
        return misuse();
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
        pool->reuse[attribute] = *(const int *)value;
    else if (attribute == THRESHOLD)
        pool->threshold = *(const uint64_t *)value;
    else if (attribute == RESERVED_HIGH && !*(const uint64_t *)value)
        pool->reserved_high = pool->reserved;
    else if (attribute == USED_HIGH && !*(const uint64_t *)value)
        pool->used_high = pool->used;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

static int get_attribute(const struct pool *pool, int attribute, void *value) {
    if (!pool || !value)
        return misuse();
    const uint64_t figures[] = {[THRESHOLD] = pool->threshold,
                                [RESERVED] = pool->reserved,
                                [RESERVED_HIGH] = pool->reserved_high,
                                [USED] = pool->used,
                                [USED_HIGH] = pool->used_high};
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
        *(int *)value = pool->reuse[attribute];
    else if (attribute >= THRESHOLD && attribute <= USED_HIGH)
        *(uint64_t *)value = figures[attribute];
    else
        return INVALID_VALUE;
    return SUCCESS;
}

static int graph_attribute(int device, int attribute, uint64_t *value, bool reset) {
    static const int pool_attribute[] = {USED, USED_HIGH, RESERVED, RESERVED_HIGH};
    if (!value || attribute < GRAPH_USED || attribute > GRAPH_RESERVED_HIGH)
        return INVALID_VALUE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    struct pool *pool = made(&phantom.device[device].graph_pool, device);
    return reset ? set_attribute(pool, pool_attribute[attribute], value)
                 : get_attribute(pool, pool_attribute[attribute], value);
}

static int give(void **out, int device, struct pool *(*which)(int)) {
    if (!out)
        return INVALID_VALUE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    struct pool *pool = which(device);
    *out = pool ? (void *)pool->object.handle : NULL;
    return pool ? SUCCESS : OUT_OF_MEMORY;
}

/* Caller's struct: two ints, then the location's type and device. */
static int create(void **out, const int *properties) {
    if (!out || !properties)
        return INVALID_VALUE;
    return properties[2] != 1 ? NOT_SUPPORTED : give(out, properties[3], pool_new);
}

static int destroy(struct pool *pool) {
    if (!pool || pool == phantom.device[pool->device].default_pool || pool->used)
        return misuse();
    struct device *device = &phantom.device[pool->device];
    trim(pool, 0);
    if (pool->begin)
        virtual_unreserve(pool->begin);
    if (device->current_pool == pool)
        device->current_pool = NULL;
    pool_empty(pool);
    book_delete(&phantom.objects, pool);
    return SUCCESS;
}

void pool_empty(struct pool *pool) {
    while (pool->holes.root)
        hole_strike(pool, OWNER(pool->holes.root, struct hole, by_address));
}

static int set_current(int device, struct pool *pool) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    if (!pool || pool->device != device)
        return misuse();
    phantom.device[device].current_pool = pool;
    return SUCCESS;
}

/* Memory asked for during a stream capture is the graph's, from a pool of its own. */
static int allocate_on(void **out, size_t size, struct pool *pool, void *handle) {
    struct stream *stream = stream_of(handle);
    int code = stream->capture ? SUCCESS : capture_check_unsafe_call();
    if (code)
        return code;
    if (capture_note(stream, NODE_MEM_ALLOC))
        pool = made(&phantom.device[current_device].graph_pool, current_device);
    code = pool_allocate(pool, size, (uint64_t *)out);
    if (code == SUCCESS && *out)
        capture_keep(stream, (uint64_t)*out);
    return code;
}

/* CUDA takes memory of cudaMalloc here as well. */
static int free_on(void *address, void *handle) {
    const struct memory *memory = memory_at((uint64_t)address);
    if (memory && memory->kind == MALLOCED)
        return memory_free((uint64_t)address);
    struct stream *stream = stream_of(handle);
    int code = stream->capture ? SUCCESS : capture_check_unsafe_call();
    if (code)
        return code;
    capture_note(stream, NODE_MEM_FREE);
    return pool_free((uint64_t)address);
}

static int trim_to(struct pool *pool, size_t keep) {
    int code = pool ? capture_check_unsafe_call() : misuse();
    if (code == SUCCESS && !pool->unsettled)
        trim(pool, keep);
    return code;
}

static int trim_graphs(int device) {
    return device_exists(device) ? trim_to(made(&phantom.device[device].graph_pool, device), 0) : INVALID_DEVICE;
}

PHANTOM_API int cudaMallocAsync(void **out, size_t size, void *stream) {
    return RUNTIME(allocate_on(out, size, current_pool(current_device), stream));
}

PHANTOM_API int cudaMallocFromPoolAsync(void **out, size_t size, void *pool, void *stream) {
    return RUNTIME(allocate_on(out, size, pool_of(pool), stream));
}

PHANTOM_API int cudaFreeAsync(void *address, void *stream) {
    return RUNTIME(free_on(address, stream));
}

PHANTOM_API int cudaDeviceGetDefaultMemPool(void **out, int device) {
    return RUNTIME(give(out, device, default_pool));
}

PHANTOM_API int cudaDeviceGetMemPool(void **out, int device) {
    return RUNTIME(give(out, device, current_pool));
}

PHANTOM_API int cudaDeviceSetMemPool(int device, void *pool) {
    return RUNTIME(set_current(device, pool_of(pool)));
}

PHANTOM_API int cudaMemPoolCreate(void **out, const void *properties) {
    return RUNTIME(create(out, properties));
}

PHANTOM_API int cudaMemPoolDestroy(void *pool) {
    return RUNTIME(destroy(pool_of(pool)));
}

PHANTOM_API int cudaMemPoolSetAttribute(void *pool, int attribute, void *value) {
    return RUNTIME(set_attribute(pool_of(pool), attribute, value));
}

PHANTOM_API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value) {
    return RUNTIME(get_attribute(pool_of(pool), attribute, value));
}

PHANTOM_API int cudaMemPoolTrimTo(void *pool, size_t keep) {
    return RUNTIME(trim_to(pool_of(pool), keep));
}

PHANTOM_API int cudaMemPoolSetAccess(void *pool, const void *descriptions, size_t count) {
    return RUNTIME(pool_of(pool) && (descriptions || !count) ? SUCCESS : misuse());
}

PHANTOM_API int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value) {
    return RUNTIME(graph_attribute(device, attribute, value, false));
}

PHANTOM_API int cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value) {
    return RUNTIME(graph_attribute(device, attribute, value, true));
}

PHANTOM_API int cudaDeviceGraphMemTrim(int device) {
    return RUNTIME(trim_graphs(device));
}

PHANTOM_API int cuMemAllocAsync(uint64_t *out, size_t size, void *stream) {
    return DRIVER(allocate_on((void **)out, size, current_pool(current_device), stream));
}

PHANTOM_API int cuMemFreeAsync(uint64_t address, void *stream) {
    return DRIVER(free_on((void *)address, stream));
}
