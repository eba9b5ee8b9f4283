#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "inflow.h"

#include "state.h"

#include <stdlib.h>
#include <time.h>

/* 8 MiB of log; a program that copies more often has shown what it copies. */
static const int64_t MOST = 1 << 18;

static struct phantom_inflow *entries;
static int64_t count, room;

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool grow(void) {
    int64_t wanted = room ? room * 2 : 1024;
    struct phantom_inflow *grown = wanted <= MOST ? realloc(entries, (size_t)wanted * sizeof *grown) : NULL;
    if (!grown)
        return false;
    entries = grown;
    room = wanted;
    return true;
}

void inflow_note(uint64_t address, uint64_t size) {
    if (count == room && !grow())
        return;
    entries[count++] = (struct phantom_inflow){.address = address, .bytes = size, .unix_us = now_us()};
}

static int64_t copied(struct phantom_inflow *out, int64_t from, int64_t n) {
    for (int64_t i = 0; i < n && from >= 0 && from + i < count; i++)
        out[i] = entries[from + i];
    return count;
}

PHANTOM_API int64_t phantom_inflows(struct phantom_inflow *out, int64_t from, int64_t n) {
    int64_t found = 0;
    DRIVER((found = copied(out, from, n), SUCCESS));
    return found;
}
