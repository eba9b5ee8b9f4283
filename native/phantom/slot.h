/* A stretch of addresses of which parts are in use. */
#ifndef HOTBED_PHANTOM_SLOT_H
#define HOTBED_PHANTOM_SLOT_H

#include <stdbool.h>
#include <stdint.h>

struct extent;

struct slot {
    uint64_t begin, end;
    uint64_t gap; /* no free part is larger */
    struct extent *used;
    int count, room;
};

/* An array with room for one more item; NULL without host memory. */
void *slot_grow(void *array, int count, int *room, uint64_t item_bytes);

/* The lowest free part of `bytes`; 0 if there is none, or no host memory. Makes `gap` exact where it finds none. */
uint64_t slot_take(struct slot *slot, uint64_t bytes);

/* Frees the part that begins at `address`. */
void slot_give_back(struct slot *slot, uint64_t address);

#endif
