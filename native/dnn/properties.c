#define _POSIX_C_SOURCE 200809L /* pthread_atfork */
#include "properties.h"

#include "facts.h"
#include "layout.h"
#include "real.h"
#include "state.h"
#include "usage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Versions whose properties and handles were looked at, one by one or with both neighbours. */
enum { FIRST_TESTED = 90900, LAST_TESTED = 92801, FIRST_DESCRIBING = 90800 };

enum { HANDLE_BYTES = 1 << 20, HANDLE_POINTERS = 0x400, HANDLE_POINTERS_END = 0x2000, HANDLE_TARGET = 0x80000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int known, count, handle_tried;
    void *descriptor[MAX_LAYOUTS];
    struct properties place; /* of the likely layout; first is NULL if not recognised */
    char *handle;
} made;

static const struct spec *spec_now(void) {
    enter();
    leave(SUCCESS);
    return &phantom.spec;
}

static void copy_name(char *to, const char *from) {
    for (; *from; from++)
        *to++ = *from == '"' || *from == '\\' ? ' ' : *from;
    *to = 0;
}

size_t properties_describe(char *out, size_t room) {
    const struct spec *spec = spec_now();
    char name[sizeof spec->name];
    copy_name(name, spec->name);
    return (size_t)snprintf(
        out, room,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,\"maxRegistersPerSM\":65536,"
        "\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":%d,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":%llu,\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,"
        "\"memoryBusWidth\":%d,\"oversizedSharedMemoryPerBlock\":0,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":%d,\"deviceName\":\"%s\"}",
        spec->sm, spec->smem_optin, spec->major >= 8 ? 1024 : 0, spec->blocks_per_sm, spec->threads_per_sm,
        spec_bus_number(0), (unsigned long long)spec->total, spec->clock, spec->memory_clock, spec->bus, spec->l2,
        layout_device_version(spec), spec->cuda, name);
}

static void *describe(const struct backend *real) {
    char text[1024];
    size_t length = properties_describe(text, sizeof text);
    void *descriptor = NULL;
    if (real->create(DNN_DEVICE_PROPERTIES, &descriptor))
        return NULL;
    if (!real->set(descriptor, DNN_DEVICE_JSON, DNN_TYPE_CHAR, (long long)length, text) && !real->finalize(descriptor))
        return descriptor;
    real->destroy(descriptor);
    return NULL;
}

/* Before Hopper there are no clusters, and cuDNN does not ask for GPCs. */
static int needs_layout(const struct spec *spec) {
    return spec->major >= 9;
}

static void remark_on_layouts(const struct spec *spec, int failed) {
    if (!spec->layouts)
        usage_remark("cuDNN: how the multiprocessors of %s are spread over GPCs is not known, so convolutions may "
                     "choose other workspaces than on the card",
                     spec->name);
    else if (failed)
        usage_remark("cuDNN %s: this version cannot be told the card's GPC layout, so convolutions may choose other "
                     "workspaces than on the card",
                     real_version_text());
    else if (real_version() > LAST_TESTED)
        usage_remark("cuDNN %s is newer than the versions that hotbed was tested with", real_version_text());
}

static void make(void) {
    const struct spec *spec = spec_now();
    const struct backend *real = real_backend();
    made.known = 1;
    if (!real->ready || real_version() < FIRST_DESCRIBING)
        return;
    int wanted = needs_layout(spec) && spec->layouts > 1 ? spec->layouts : 1, failed = 0;
    for (int i = 0; i < wanted && !failed; i++) {
        struct properties place = {0};
        void *descriptor = describe(real);
        if (!descriptor)
            break;
        made.descriptor[made.count++] = descriptor;
        failed = layout_find(descriptor, spec, &place);
        if (!failed && needs_layout(spec) && spec->layouts)
            failed = layout_write(&place, spec, &spec->layout[i]);
        if (!i)
            made.place = place;
    }
    if (needs_layout(spec) && made.count)
        remark_on_layouts(spec, failed);
}

int properties_count(void) {
    pthread_mutex_lock(&lock);
    if (!made.known)
        make();
    int count = made.count;
    pthread_mutex_unlock(&lock);
    return count;
}

void *properties_descriptor(int layout) {
    return layout < properties_count() ? made.descriptor[layout] : NULL;
}

/* Where a handle has other members, they point to zeros; a question about sizes reads none that matters. */
static void make_handle(void) {
    int tested = real_version() >= FIRST_TESTED && real_version() <= LAST_TESTED;
    char *handle = made.place.first && tested ? calloc(1, HANDLE_BYTES) : NULL;
    if (!handle)
        return;
    memcpy(handle, made.place.first, made.place.bytes);
    char *target = handle + HANDLE_TARGET;
    for (int at = HANDLE_POINTERS; at < HANDLE_POINTERS_END; at += (int)sizeof target)
        memcpy(handle + at, &target, sizeof target);
    made.handle = handle;
}

void *properties_handle(void) {
    properties_count();
    pthread_mutex_lock(&lock);
    if (!made.handle && !made.handle_tried) {
        made.handle_tried = 1;
        make_handle();
    }
    void *handle = made.handle;
    pthread_mutex_unlock(&lock);
    return handle;
}

/* A child may be told to be another GPU. What the parent made is left behind: it lies in memory that they share. */
static void child_after_fork(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    memset(&made, 0, sizeof made);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, child_after_fork);
}
