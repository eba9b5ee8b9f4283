/* cuMem*: physical memory is charged when created and returned once nothing refers to it and nothing maps it. */
#include "virtual.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* Reservations lie apart from everything else; the lowest gap that fits is reused. */
#define RESERVATIONS_START 0x100000000000u
#define RESERVATIONS_END 0x400000000000u

struct reservation {
    struct node place; /* key: address, tie: size */
    bool pool;         /* of a pool, and not the program's to use */
};

struct physical {
    struct object object;
    uint64_t size;
    int device;
    bool on_host; /* memory of a host NUMA node: not charged to the device */
    int references, mappings;
    unsigned char properties[32];
};

/* What is read of the caller's structs; the rest is handed back as it came. */
enum { LOCATION_DEVICE = 1, PINNED_TYPE = 1 };
struct allocation_properties {
    int type, handle_types;
    int location_type, location_id;
    unsigned char rest[16];
};

static uint64_t round_up(uint64_t value, uint64_t align) {
    return (value + align - 1) / align * align;
}

uint64_t virtual_reserve(uint64_t size, uint64_t align, bool pool) {
    uint64_t begin = round_up(RESERVATIONS_START, align);
    if (size > RESERVATIONS_END - RESERVATIONS_START || align > RESERVATIONS_END)
        return 0;
    for (struct node *n = tree_first(&phantom.reservations); n; n = tree_ceiling(&phantom.reservations, n->key + 1, 0)) {
        if (n->key >= begin + size)
            break;
        begin = round_up(n->key + n->tie, align);
    }
    struct reservation *reservation = begin + size <= RESERVATIONS_END ? calloc(1, sizeof *reservation) : NULL;
    if (!reservation)
        return 0;
    reservation->place.key = begin;
    reservation->place.tie = size;
    reservation->pool = pool;
    tree_insert(&phantom.reservations, &reservation->place);
    return begin;
}

void virtual_unreserve(uint64_t address) {
    struct reservation *reservation = OWNER(tree_floor(&phantom.reservations, address), struct reservation, place);
    tree_remove(&phantom.reservations, &reservation->place);
    free(reservation);
}

void virtual_forget(void) {
    while (phantom.reservations.root)
        virtual_unreserve(phantom.reservations.root->key);
}

/* The program's reservation around [address, address + size). */
static const struct node *reserved(uint64_t address, uint64_t size) {
    struct node *node = tree_floor(&phantom.reservations, address);
    const struct reservation *reservation = OWNER(node, struct reservation, place);
    bool inside = node && address - node->key < node->tie && size <= node->tie - (address - node->key);
    return inside && !reservation->pool ? node : NULL;
}

static bool whole_pages(uint64_t address, uint64_t size) {
    return size && size % PAGE_BYTES == 0 && address % PAGE_BYTES == 0;
}

/* The first mapping that reaches into [address, address + size). */
static struct memory *first_mapping(uint64_t address, uint64_t size) {
    struct memory *memory = OWNER(tree_floor(&phantom.memory, address), struct memory, place);
    if (!memory || memory->place.key + memory->place.tie <= address)
        memory = OWNER(tree_ceiling(&phantom.memory, address, 0), struct memory, place);
    return memory && memory->place.key < address + size ? memory : NULL;
}

static int reserve(uint64_t *out, size_t size, size_t align) {
    if (!out || !whole_pages(0, size) || (align & (align - 1)))
        return misuse();
    *out = virtual_reserve(size, align > PAGE_BYTES ? align : PAGE_BYTES, false);
    if (!*out)
        return OUT_OF_MEMORY;
    device_now()->counter[PHANTOM_RESERVE]++;
    device_now()->counter[PHANTOM_RESERVE_BYTES] += size;
    return SUCCESS;
}

static int unreserve(uint64_t address, size_t size) {
    const struct node *node = reserved(address, size);
    if (!node || node->key != address || node->tie != size || first_mapping(address, size))
        return misuse();
    virtual_unreserve(address);
    device_now()->counter[PHANTOM_ADDRESS_FREE]++;
    return SUCCESS;
}

static int create(uint64_t *out, size_t size, const struct allocation_properties *wanted) {
    if (!out || !wanted || !whole_pages(0, size) || wanted->type != PINNED_TYPE || wanted->location_type < 1)
        return misuse();
    bool on_host = wanted->location_type != LOCATION_DEVICE;
    int ordinal = on_host ? current_device : wanted->location_id;
    if (!device_exists(ordinal))
        return INVALID_DEVICE;
    struct device *device = &phantom.device[ordinal];
    int code = on_host ? SUCCESS : device_take(device, size);
    if (code)
        return code;
    struct physical *physical = book_new(&phantom.objects, PHYSICAL, sizeof *physical);
    if (!physical) {
        device_return(device, on_host ? 0 : size);
        return OUT_OF_MEMORY;
    }
    physical->size = size;
    physical->device = ordinal;
    physical->on_host = on_host;
    physical->references = 1;
    memcpy(physical->properties, wanted, sizeof physical->properties);
    device->counter[PHANTOM_CREATE]++;
    device->counter[PHANTOM_CREATE_BYTES] += size;
    *out = physical->object.handle;
    return SUCCESS;
}

static void drop_if_unused(struct physical *physical) {
    if (physical->references || physical->mappings)
        return;
    if (!physical->on_host)
        device_return(&phantom.device[physical->device], physical->size);
    book_delete(&phantom.objects, physical);
}

/* A handle released to zero is dead for the program even while a mapping keeps the memory. */
static struct physical *held(uint64_t handle) {
    struct physical *physical = book_find(&phantom.objects, handle, PHYSICAL);
    return physical && physical->references ? physical : NULL;
}

static int release(uint64_t handle) {
    struct physical *physical = held(handle);
    if (!physical)
        return misuse();
    phantom.device[physical->device].counter[PHANTOM_RELEASE]++;
    physical->references--;
    drop_if_unused(physical);
    return SUCCESS;
}

/* A handle is mapped as a whole or not at all. */
static int map(uint64_t address, size_t size, size_t offset, uint64_t handle) {
    struct physical *physical = held(handle);
    if (!physical || !whole_pages(address, size) || !reserved(address, size) || first_mapping(address, size))
        return misuse();
    if (offset || size != physical->size)
        return misuse(), NOT_SUPPORTED;
    struct memory *memory = memory_enter(MAPPED, physical->device, address, size);
    if (!memory)
        return OUT_OF_MEMORY;
    memory->physical = physical;
    physical->mappings++;
    phantom.device[physical->device].counter[PHANTOM_MAP]++;
    return SUCCESS;
}

static uint64_t end_of(const struct memory *memory) {
    return memory->place.key + memory->place.tie;
}

/* Whether no mapping lies across an end of [address, address + size). */
static bool cuts_nothing(uint64_t address, uint64_t size) {
    const struct memory *first = first_mapping(address, size), *last = first_mapping(address + size - 1, 1);
    return (!first || first->place.key >= address) && (!last || end_of(last) <= address + size);
}

static bool without_gap(uint64_t address, uint64_t size) {
    for (uint64_t at = address; at < address + size;) {
        const struct memory *memory = first_mapping(at, 1);
        if (!memory || memory->kind != MAPPED)
            return false;
        at = end_of(memory);
    }
    return true;
}

/* The driver is content to unmap a reserved range with holes, even one that is all hole; it is counted all the same. */
static int unmap(uint64_t address, size_t size) {
    if (!whole_pages(address, size) || !reserved(address, size) || !cuts_nothing(address, size))
        return misuse();
    if (!without_gap(address, size))
        misuse();
    for (struct memory *memory; (memory = first_mapping(address, size));) {
        struct physical *physical = memory->physical;
        memory_strike(memory);
        physical->mappings--;
        drop_if_unused(physical);
    }
    device_now()->counter[PHANTOM_UNMAP]++;
    return SUCCESS;
}

/* The driver skips holes here too, as long as there is a mapping. */
static int set_access(uint64_t address, size_t size, const void *descriptions, size_t count) {
    if (!descriptions || !count || !whole_pages(address, size) || !cuts_nothing(address, size) ||
        !first_mapping(address, size))
        return misuse();
    if (!without_gap(address, size))
        misuse();
    device_now()->counter[PHANTOM_SET_ACCESS]++;
    return SUCCESS;
}

static int retain(uint64_t *out, uint64_t address) {
    struct memory *memory = memory_around(address);
    if (!out || !memory || memory->kind != MAPPED)
        return misuse();
    memory->physical->references++;
    *out = memory->physical->object.handle;
    return SUCCESS;
}

static int properties(void *out, uint64_t handle) {
    struct physical *physical = held(handle);
    if (!out || !physical)
        return misuse();
    memcpy(out, physical->properties, sizeof physical->properties);
    return SUCCESS;
}

static int granularity(size_t *out, const void *wanted) {
    if (!out || !wanted)
        return INVALID_VALUE;
    *out = PAGE_BYTES;
    return SUCCESS;
}

PHANTOM_API int cuMemAddressReserve(uint64_t *out, size_t size, size_t align, uint64_t hint, unsigned long long flags) {
    (void)hint;
    return DRIVER(flags ? misuse() : reserve(out, size, align));
}

PHANTOM_API int cuMemAddressFree(uint64_t address, size_t size) {
    return DRIVER(unreserve(address, size));
}

PHANTOM_API int cuMemCreate(uint64_t *out, size_t size, const void *wanted, unsigned long long flags) {
    return DRIVER(flags ? misuse() : create(out, size, wanted));
}

PHANTOM_API int cuMemRelease(uint64_t handle) {
    return DRIVER(release(handle));
}

PHANTOM_API int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags) {
    return DRIVER(flags ? misuse() : map(address, size, offset, handle));
}

PHANTOM_API int cuMemUnmap(uint64_t address, size_t size) {
    return DRIVER(unmap(address, size));
}

PHANTOM_API int cuMemSetAccess(uint64_t address, size_t size, const void *descriptions, size_t count) {
    return DRIVER(set_access(address, size, descriptions, count));
}

PHANTOM_API int cuMemRetainAllocationHandle(uint64_t *out, void *address) {
    return DRIVER(retain(out, (uint64_t)address));
}

PHANTOM_API int cuMemGetAllocationPropertiesFromHandle(void *out, uint64_t handle) {
    return DRIVER(properties(out, handle));
}

PHANTOM_API int cuMemGetAllocationGranularity(size_t *out, const void *wanted, int option) {
    (void)option;
    return DRIVER(granularity(out, wanted));
}
