#define _POSIX_C_SOURCE 200809L /* clock_gettime, pthread_atfork */
#include "usage.h"

#include "state.h"
#include "values.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REMARKS = 64, REMARK_BYTES = 400 };
/* 48 MiB of log: enough for days of convolutions at a few thousand a second, in steps that repeat. */
static const int64_t MOST_WORKSPACES = 1 << 20;

/* Its own lock: a library may be called from any thread, and none of this concerns the devices. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls[PHANTOM_LIBRARIES];
static struct phantom_workspace *workspaces;
static int64_t workspace_count, workspace_room;
static char remarks[REMARKS][REMARK_BYTES];
static int remark_count;

void usage_call(enum phantom_library library) {
    values_launch();
    __atomic_fetch_add(&calls[library], 1, __ATOMIC_RELAXED);
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct phantom_workspace *next_workspace(void) {
    if (workspace_count == workspace_room) {
        int64_t room = workspace_room ? workspace_room * 2 : 1024;
        struct phantom_workspace *grown =
            room <= MOST_WORKSPACES ? realloc(workspaces, (size_t)room * sizeof *grown) : NULL;
        if (!grown)
            return NULL;
        workspaces = grown;
        workspace_room = room;
    }
    return &workspaces[workspace_count++];
}

void usage_workspace(enum phantom_library library, const void *address, uint64_t bytes, const uint64_t *alternatives) {
    uint64_t most = bytes;
    for (int i = 0; alternatives && i < PHANTOM_ALTERNATIVES; i++)
        most = alternatives[i] > most ? alternatives[i] : most;
    if (!most || (bytes && !address))
        return;
    pthread_mutex_lock(&lock);
    struct phantom_workspace *entry = next_workspace();
    if (entry) {
        *entry = (struct phantom_workspace){.address = (uint64_t)address, .bytes = bytes, .unix_us = now_us(),
                                            .library = library, .device = current_device};
        for (int i = 0; i < PHANTOM_ALTERNATIVES; i++)
            entry->alternative_bytes[i] = alternatives ? alternatives[i] : bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!entry)
        usage_remark("more than %lld library workspaces: the later ones are not told apart from other memory",
                     (long long)MOST_WORKSPACES);
}

void usage_remark(const char *format, ...) {
    char text[REMARK_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < remark_count && strcmp(remarks[i], text))
        i++;
    if (i == remark_count && remark_count < REMARKS)
        memcpy(remarks[remark_count++], text, sizeof text);
    pthread_mutex_unlock(&lock);
}

PHANTOM_API int phantom_libraries(uint64_t *out, int n) {
    for (int i = 0; i < n && i < PHANTOM_LIBRARIES; i++)
        out[i] = __atomic_load_n(&calls[i], __ATOMIC_RELAXED);
    return PHANTOM_LIBRARIES;
}

PHANTOM_API int64_t phantom_workspaces(struct phantom_workspace *out, int64_t from, int64_t n) {
    pthread_mutex_lock(&lock);
    int64_t count = workspace_count;
    for (int64_t i = 0; i < n && from >= 0 && from + i < count; i++)
        out[i] = workspaces[from + i];
    pthread_mutex_unlock(&lock);
    return count;
}

PHANTOM_API int phantom_remark_count(void) {
    pthread_mutex_lock(&lock);
    int count = remark_count;
    pthread_mutex_unlock(&lock);
    return count;
}

PHANTOM_API const char *phantom_remark(int index) {
    return index >= 0 && index < phantom_remark_count() ? remarks[index] : NULL;
}

/* A child tells of its own calls. */
static void child_after_fork(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    memset(calls, 0, sizeof calls);
    workspace_count = 0;
    remark_count = 0;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, child_after_fork);
}
