/* The rules of phantom.h. The driver rule was read off address sequences of a driver 580 on an H200: memory comes
 * in slots of 32 MiB multiples from the top down; a lone request of at most 2 MiB makes a slot of 4 MiB; what is left
 * over in slots serves later requests, lowest address first. All twelve programs of tests/data/h200 agree on how it
 * begins: the context has taken 8 of the 32 MiB of a slot that lies 64 MiB above the first request, and a first request
 * of 2 MiB has no left-over beside it. */
#include "address.h"

#include "phantom.h"

#include <stdlib.h>
#include <string.h>

#define ASCENDING_START 0x400000000000u
#define TOP_START 0x7e0000000000u

enum { SLOT_BYTES = 32 << 20, SMALL_SLOT_BYTES = 4 << 20 };
enum { OWN_ABOVE = 64 << 20, OWN_TAKEN = 8 << 20 };

void address_start(struct address_space *space, int rule) {
    memset(space, 0, sizeof *space);
    space->rule = rule;
    address_reset(space, false);
}

void address_reset(struct address_space *space, bool all) {
    for (int i = 0; i < space->slot_count; i++)
        free(space->slots[i].used);
    free(space->slots);
    space->slots = NULL;
    free(space->own.used);
    space->own = (struct slot){0};
    space->begun = false;
    space->slot_count = space->slot_room = 0;
    space->slot_bytes = space->largest_gap = 0;
    space->ascending = ASCENDING_START;
    space->descending = space->top = TOP_START;
    space->lowest = UINT64_MAX;
    space->recording.next = 0;
    space->recording.followed = space->recording.count > 0;
    if (all) {
        free(space->recording.addresses);
        free(space->recording.sizes);
        memset(&space->recording, 0, sizeof space->recording);
    }
}

void address_record(struct address_space *space, const uint64_t *addresses, const uint64_t *sizes, int n) {
    struct recording *recording = &space->recording;
    size_t bytes = (size_t)(n > 0 ? n : 0) * sizeof *addresses;
    free(recording->addresses);
    free(recording->sizes);
    memset(recording, 0, sizeof *recording);
    if (!bytes)
        return;
    recording->addresses = malloc(bytes);
    recording->sizes = malloc(bytes);
    if (recording->addresses && recording->sizes) {
        memcpy(recording->addresses, addresses, bytes);
        memcpy(recording->sizes, sizes, bytes);
        recording->count = n;
        recording->followed = true;
    }
}

/* Where a new slot of `size` bytes goes: as high as possible. Its place in the array comes back in `index`. */
static uint64_t slot_place(const struct address_space *space, uint64_t size, uint64_t align, int *index) {
    const struct slot *slots = space->slots;
    int n = space->slot_count;
    uint64_t high = space->top;
    *index = n;
    bool holes = n && space->top - slots[n - 1].begin != space->slot_bytes;
    for (int i = 0; holes && i < n; i++) {
        uint64_t begin = (high - size) & ~(align - 1);
        if (begin < high && begin >= slots[i].end) {
            *index = i;
            return begin;
        }
        high = slots[i].begin;
    }
    high = n ? slots[n - 1].begin : space->top;
    return (high - size) & ~(align - 1);
}

/* A left-over part of a slot, lowest address first; 0 if none is large enough. */
static uint64_t left_over_take(struct address_space *space, uint64_t bytes) {
    uint64_t largest = 0;
    if (space->largest_gap < bytes)
        return 0;
    for (int i = space->slot_count - 1; i >= 0; i--) {
        struct slot *slot = &space->slots[i];
        uint64_t address = slot->gap >= bytes ? slot_take(slot, bytes) : 0;
        if (address)
            return address;
        if (slot->gap > largest)
            largest = slot->gap;
    }
    space->largest_gap = largest;
    return 0;
}

static uint64_t own_take(struct address_space *space, uint64_t bytes) {
    return space->own.gap >= bytes ? slot_take(&space->own, bytes) : 0;
}

/* The address of a first request if that is a single page, else 0. */
static uint64_t driver_begin(struct address_space *space, uint64_t bytes) {
    uint64_t own = space->top + OWN_ABOVE;
    space->begun = true;
    space->own = (struct slot){
        .begin = own + OWN_TAKEN, .end = own + SLOT_BYTES, .gap = SLOT_BYTES - OWN_TAKEN};
    if (bytes > PAGE_BYTES)
        return 0;
    uint64_t first = space->top - PAGE_BYTES;
    space->top -= SLOT_BYTES;
    return first;
}

static void note_gap(struct address_space *space, const struct slot *slot) {
    if (space->largest_gap < slot->gap)
        space->largest_gap = slot->gap;
}

static uint64_t driver_take(struct address_space *space, uint64_t bytes) {
    uint64_t address = space->begun ? 0 : driver_begin(space, bytes);
    if (!address)
        address = left_over_take(space, bytes);
    if (!address)
        address = own_take(space, bytes);
    if (address)
        return address;
    uint64_t align = bytes <= PAGE_BYTES ? SMALL_SLOT_BYTES : SLOT_BYTES;
    uint64_t size = (bytes + align - 1) / align * align;
    struct slot *slots = slot_grow(space->slots, space->slot_count, &space->slot_room, sizeof *slots);
    if (!slots)
        return 0;
    space->slots = slots;
    int at;
    uint64_t begin = slot_place(space, size, align, &at);
    struct slot slot = {.begin = begin, .end = begin + size};
    if (!slot_take(&slot, bytes))
        return 0;
    slot.gap = size - bytes;
    note_gap(space, &slot);
    memmove(slots + at + 1, slots + at, (size_t)(space->slot_count - at) * sizeof *slots);
    slots[at] = slot;
    space->slot_count++;
    space->slot_bytes += size;
    return begin;
}

static void driver_give_back(struct address_space *space, uint64_t address) {
    if (address >= space->own.begin && address < space->own.end) {
        slot_give_back(&space->own, address);
        return;
    }
    int low = 0, high = space->slot_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (space->slots[middle].begin > address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == space->slot_count || address >= space->slots[low].end)
        return;
    struct slot *slot = &space->slots[low];
    slot_give_back(slot, address);
    if (slot->count) {
        note_gap(space, slot);
        return;
    }
    space->slot_bytes -= slot->end - slot->begin;
    free(slot->used);
    space->slot_count--;
    memmove(slot, slot + 1, (size_t)(space->slot_count - low) * sizeof *slot);
}

static bool overlaps(const struct tree *live, uint64_t address, uint64_t size) {
    const struct node *below = tree_floor(live, address + size - 1);
    return below && below->key + below->tie > address;
}

/* The next recorded address while sizes agree. At the first difference the driver rule takes over below them. */
static uint64_t recorded_take(struct address_space *space, uint64_t size, const struct tree *live) {
    struct recording *recording = &space->recording;
    int i = recording->next;
    if (i < recording->count && recording->sizes[i] == size && !overlaps(live, recording->addresses[i], size)) {
        recording->next++;
        if (recording->addresses[i] < space->lowest)
            space->lowest = recording->addresses[i];
        return recording->addresses[i];
    }
    recording->followed = false;
    space->rule = PHANTOM_DRIVER;
    space->begun = true;
    if (space->lowest != UINT64_MAX)
        space->top = space->lowest & ~(uint64_t)(SLOT_BYTES - 1);
    return 0;
}

uint64_t address_take(struct address_space *space, uint64_t size, const struct tree *live) {
    uint64_t bytes = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES, address = 0;
    if (space->recording.followed)
        address = recorded_take(space, size, live);
    if (address)
        return address;
    if (space->rule == PHANTOM_DRIVER)
        return driver_take(space, bytes);
    if (space->rule == PHANTOM_DESCENDING)
        return space->descending -= bytes;
    /* A page between neighbours, as if each had a mapping of its own. */
    address = space->ascending;
    space->ascending += bytes + PAGE_BYTES;
    return address;
}

void address_give_back(struct address_space *space, uint64_t address) {
    driver_give_back(space, address);
}
