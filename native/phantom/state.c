#include "state.h"

#include "host.h"
#include "memory.h"
#include "objects.h"
#include "users.h"

#include <pthread.h>
#include <string.h>

struct state phantom;
_Thread_local int current_device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void start(void) {
    spec_read(&phantom.spec);
    phantom.hold_events = phantom.spec.behind;
    if (phantom.addresses.ascending == 0)
        address_start(&phantom.addresses, PHANTOM_DRIVER);
    phantom.ready = true;
}

void enter(void) {
    pthread_mutex_lock(&lock);
    if (!phantom.ready)
        start();
}

int leave(int code) {
    pthread_mutex_unlock(&lock);
    return code;
}

/* A child starts as a process of its own: nothing allocated, no context. What control.c has set stays. */
static void forget(void) {
    struct address_space addresses = phantom.addresses;
    uint64_t total = phantom.ready ? phantom.spec.total : 0;
    objects_forget();
    memory_forget();
    if (addresses.ascending)
        address_reset(&addresses, false);
    memset(&phantom, 0, sizeof phantom);
    phantom.addresses = addresses;
    current_device = 0;
    if (total) {
        start();
        phantom.spec.total = total;
    }
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void parent_after_fork(void) {
    pthread_mutex_unlock(&lock);
}

static void child_after_fork(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    forget();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}

uint64_t device_used(const struct device *device) {
    return device->counter[PHANTOM_USED_BYTES];
}

uint64_t device_free(const struct device *device) {
    uint64_t taken = device_used(device) + phantom.spec.others;
    return phantom.spec.total > taken ? phantom.spec.total - taken : 0;
}

static void add_used(struct device *device, uint64_t bytes) {
    uint64_t *counter = device->counter;
    counter[PHANTOM_USED_BYTES] += bytes;
    if (counter[PHANTOM_PEAK_USED_BYTES] < counter[PHANTOM_USED_BYTES])
        counter[PHANTOM_PEAK_USED_BYTES] = counter[PHANTOM_USED_BYTES];
}

void device_touch(struct device *device) {
    if (device->context)
        return;
    device->context = true;
    users_note();
    add_used(device, phantom.spec.context);
}

int device_take(struct device *device, uint64_t bytes) {
    device_touch(device);
    phantom.allocated = true;
    if (bytes > device_free(device)) {
        device->counter[PHANTOM_OOM]++;
        return OUT_OF_MEMORY;
    }
    add_used(device, bytes);
    return SUCCESS;
}

void device_return(struct device *device, uint64_t bytes) {
    device->counter[PHANTOM_USED_BYTES] -= bytes;
}

int misuse(void) {
    device_now()->counter[PHANTOM_MISUSE]++;
    return INVALID_VALUE;
}
