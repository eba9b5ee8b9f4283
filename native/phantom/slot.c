#include "slot.h"

#include <stdlib.h>
#include <string.h>

struct extent {
    uint64_t begin, end;
};

void *slot_grow(void *array, int count, int *room, uint64_t item_bytes) {
    if (count < *room)
        return array;
    int wanted = *room ? *room * 2 : 4;
    void *grown = realloc(array, (size_t)wanted * item_bytes);
    if (grown)
        *room = wanted;
    return grown;
}

/* Enters [begin, begin + bytes) as extent number `at`. */
static bool use(struct slot *slot, int at, uint64_t begin, uint64_t bytes) {
    struct extent *used = slot_grow(slot->used, slot->count, &slot->room, sizeof *used);
    if (!used)
        return false;
    slot->used = used;
    memmove(used + at + 1, used + at, (size_t)(slot->count - at) * sizeof *used);
    used[at] = (struct extent){begin, begin + bytes};
    slot->count++;
    return true;
}

uint64_t slot_take(struct slot *slot, uint64_t bytes) {
    uint64_t begin = slot->begin, largest = 0;
    for (int i = 0; i <= slot->count; i++) {
        uint64_t end = i < slot->count ? slot->used[i].begin : slot->end;
        if (end - begin >= bytes)
            return use(slot, i, begin, bytes) ? begin : 0;
        if (end - begin > largest)
            largest = end - begin;
        if (i < slot->count)
            begin = slot->used[i].end;
    }
    slot->gap = largest;
    return 0;
}

void slot_give_back(struct slot *slot, uint64_t address) {
    int at = 0;
    while (at < slot->count && slot->used[at].begin != address)
        at++;
    if (at == slot->count)
        return;
    uint64_t begin = at ? slot->used[at - 1].end : slot->begin;
    uint64_t end = at + 1 < slot->count ? slot->used[at + 1].begin : slot->end;
    slot->count--;
    memmove(slot->used + at, slot->used + at + 1, (size_t)(slot->count - at) * sizeof *slot->used);
    if (slot->gap < end - begin)
        slot->gap = end - begin;
}
