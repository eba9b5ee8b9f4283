/* Where device memory lies: the addresses of cudaMalloc and of virtual reservations. Only numbers: nothing is
 * mapped there. Not thread-safe; callers hold the phantom's lock. */
#ifndef HOTBED_PHANTOM_ADDRESS_H
#define HOTBED_PHANTOM_ADDRESS_H

#include "slot.h"
#include "tree.h"

#include <stdbool.h>
#include <stdint.h>

enum { PAGE_BYTES = 2 << 20 }; /* physical pages of the device, and the granularity of virtual memory */

struct recording {
    uint64_t *addresses, *sizes;
    int count, next;
    bool followed; /* the program has asked for the recorded sizes so far */
};

struct address_space {
    int rule;
    uint64_t ascending, descending; /* where the next one goes */
    uint64_t lowest;                /* of the recorded addresses handed out */
    uint64_t top;                   /* the driver rule hands out below this */
    struct slot *slots;             /* of the driver rule, highest address first */
    int slot_count, slot_room;
    uint64_t slot_bytes;
    uint64_t largest_gap; /* no slot has a larger one */
    struct slot own;      /* what the driver left over in a slot that it took for itself, above all others */
    bool begun;           /* the driver rule has given out an address, or recorded ones came before it */
    struct recording recording;
};

void address_start(struct address_space *space, int rule);

/* An address for `size` bytes that overlaps no range of `live` (nodes keyed by address, with the size in tie);
 * 0 without host memory. */
uint64_t address_take(struct address_space *space, uint64_t size, const struct tree *live);
void address_give_back(struct address_space *space, uint64_t address);

void address_record(struct address_space *space, const uint64_t *addresses, const uint64_t *sizes, int n);

/* Forgets what was handed out, keeps rule and recording; frees everything if `all`. */
void address_reset(struct address_space *space, bool all);

#endif
