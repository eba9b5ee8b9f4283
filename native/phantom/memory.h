/* Ranges of memory: what lies at an address, of which device, and what it is charged. */
#ifndef HOTBED_PHANTOM_MEMORY_H
#define HOTBED_PHANTOM_MEMORY_H

#include "state.h"

enum memory_kind { MALLOCED, POOLED, MAPPED, PINNED, REGISTERED, MANAGED };

struct physical;

struct memory {
    struct node place; /* key: address, tie: size */
    enum memory_kind kind;
    int device;
    unsigned flags;
    struct pool *pool;         /* POOLED */
    struct physical *physical; /* MAPPED */
    uint64_t charged; /* MALLOCED: pages of its own, in bytes; PINNED, MANAGED: bytes mapped on the host; POOLED: bytes
                         that the program asked for */
};

/* Enters a range into phantom.memory or phantom.host, by its kind; NULL without host memory. */
struct memory *memory_enter(enum memory_kind kind, int device, uint64_t address, uint64_t size);
void memory_strike(struct memory *memory);

/* The range that begins at / contains `address`; device memory goes first. */
struct memory *memory_at(uint64_t address);
struct memory *memory_around(uint64_t address);

static inline bool memory_is_host(const struct memory *memory) {
    return memory->kind >= PINNED;
}

int memory_malloc(uint64_t size, uint64_t *address);
int memory_free(uint64_t address);

/* Frees the books without touching what they describe. */
void memory_forget(void);

#endif
