/* The state of the phantom: one per process, made on first use, gone in a forked child. */
#ifndef HOTBED_PHANTOM_STATE_H
#define HOTBED_PHANTOM_STATE_H

#include "address.h"
#include "api.h"
#include "book.h"
#include "phantom.h"
#include "spec.h"
#include "tree.h"

struct pool;
struct stream;

struct device {
    uint64_t counter[PHANTOM_COUNTERS];
    bool context; /* its primary context exists */
    unsigned flags;
    uint64_t peers;          /* bit per device that this one may access */
    struct pool *default_pool, *current_pool, *graph_pool;
    struct stream *legacy, *per_thread; /* the streams that need no creation */
};

struct state {
    bool ready, allocated;
    struct spec spec;
    struct device device[MAX_DEVICES];
    struct address_space addresses;
    struct tree memory;       /* struct memory: everything of a device that has an address */
    struct tree host;         /* struct memory: pinned, registered and managed host memory */
    struct tree reservations; /* struct reservation */
    struct book objects;
    uint64_t sequence; /* event recordings so far */
    bool hold_events;
    uint64_t captures; /* stream captures begun so far */
};

extern struct state phantom;

/* This thread's device, as the program numbers it. */
extern _Thread_local int current_device;

static inline struct device *device_now(void) {
    return &phantom.device[current_device];
}

static inline bool device_exists(int device) {
    return device >= 0 && device < phantom.spec.count;
}

/* Bytes of the device that this process uses, and those that nobody uses. */
uint64_t device_used(const struct device *device);
uint64_t device_free(const struct device *device);

/* Creates the primary context, which takes spec.context bytes. */
void device_touch(struct device *device);

/* Takes or returns device bytes. Taking fails with OUT_OF_MEMORY. */
int device_take(struct device *device, uint64_t bytes);
void device_return(struct device *device, uint64_t bytes);

/* Counts a misuse and returns INVALID_VALUE. */
int misuse(void);

#endif
