/* The properties of a described device are a private struct. What is known of it: the device and the driver version
 * are neighbours; before them lies the number of multiprocessors; the device's name ends it; in between are the
 * multiprocessors of up to 24 GPCs and, from 9.19 on, how many clusters of 1 to 16 blocks can be active. A real
 * handle measures both; a described device has one GPC of the architecture's usual size.
 *
 * Nothing is dereferenced or written through a guessed pointer: all goes through /proc/self/mem, and an arrangement
 * counts as known only if every part is where one of the versions below has it. */
#define _GNU_SOURCE /* pread */
#include "layout.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_INTS = 256, GPCS = 24, SIZES = 16, MOST_BEFORE = 30 };

/* Places in ints from the device version. */
static const struct arrangement {
    short name, gpcs, clusters; /* clusters: 0 = none */
} arrangements[] = {
    {26, 2, 0},   /* 9.9 to 9.18 */
    {42, 2, 26},  /* 9.19, 9.20 */
    {58, 2, 26},  /* 9.21 to 9.23 */
    {59, 3, 27},  /* 9.24 to 9.28 */
};

static int memory_file(void) {
    return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

/* Reads as much of [from, from + bytes) as is mapped, up to the first gap between pages. */
static size_t read_mapped(int file, const char *from, void *to, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        size_t rest = 4096 - ((uintptr_t)from + done) % 4096;
        if (rest > bytes - done)
            rest = bytes - done;
        if (pread(file, (char *)to + done, rest, (off_t)((uintptr_t)from + done)) != (ssize_t)rest)
            break;
        done += rest;
    }
    return done;
}

int layout_device_version(const struct spec *spec) {
    return spec->major * 100 + spec->minor * 10;
}

/* The first member is the largest grid. Returns how many ints before `at` it lies, or 0; the multiprocessors are in
 * between. */
static int first_member(const int *ints, int at, const struct spec *spec) {
    int multiprocessors = 0;
    for (int i = at - 1; i >= 0 && i >= at - MOST_BEFORE; i--) {
        multiprocessors |= ints[i] == spec->sm;
        if (ints[i] == INT32_MAX && ints[i + 1] == 65535 && ints[i + 2] == 65535)
            return multiprocessors ? at - i : 0;
    }
    return 0;
}

/* A described device has one GPC, and clusters to match or none. */
static int as_described(const int *pair, const struct arrangement *known) {
    const int *gpcs = pair + known->gpcs, *clusters = pair + known->clusters;
    for (int i = 1; i < GPCS; i++)
        if (gpcs[i])
            return 0;
    for (int i = 0; known->clusters && i < SIZES; i++)
        if (clusters[i] && clusters[i] != gpcs[0] / (i + 1))
            return 0;
    return gpcs[0] >= 0 && gpcs[0] <= 64;
}

static const struct arrangement *arrangement_of(const int *pair, size_t ints, const struct spec *spec) {
    for (size_t i = 0; i < sizeof arrangements / sizeof *arrangements; i++) {
        const struct arrangement *known = &arrangements[i];
        size_t end = (size_t)known->name + (strlen(spec->name) + sizeof(int)) / sizeof(int);
        if (end <= ints && !strcmp((const char *)(pair + known->name), spec->name))
            return known;
    }
    return NULL;
}

static int recognise(const int *ints, int at, size_t count, const char *from, const struct spec *spec,
                     struct properties *out) {
    int before = first_member(ints, at, spec);
    const struct arrangement *known = before ? arrangement_of(ints + at, count - (size_t)at, spec) : NULL;
    if (!known || !as_described(ints + at, known))
        return 0;
    out->versions = (char *)from + at * (int)sizeof(int);
    out->first = out->versions - before * (int)sizeof(int);
    out->bytes = (size_t)(before + known->name) * sizeof(int) + strlen(spec->name) + 1;
    return 1;
}

/* Searches the block at `from`; with `depth`, also the blocks that it points to. */
static int search(int file, const char *from, const struct spec *spec, int depth, struct properties *out) {
    int ints[WINDOW_INTS] = {0};
    size_t count = read_mapped(file, from, ints, sizeof ints - sizeof *ints) / sizeof *ints;
    for (size_t i = 1; i + 1 < count; i++)
        if (ints[i] == layout_device_version(spec) && ints[i + 1] == spec->cuda &&
            recognise(ints, (int)i, count, from, spec, out))
            return 0;
    for (size_t i = 0; depth && i + 1 < count; i += 2) {
        uintptr_t next;
        memcpy(&next, ints + i, sizeof next);
        if (next >= 4096 && next % 8 == 0 && next != (uintptr_t)from &&
            !search(file, (const char *)next, spec, depth - 1, out))
            return 0;
    }
    return -1;
}

int layout_find(const void *descriptor, const struct spec *spec, struct properties *out) {
    int file = memory_file();
    if (file < 0)
        return -1;
    int status = search(file, descriptor, spec, 2, out);
    close(file);
    return status;
}

static int put(int file, char *at, const int *values, size_t bytes) {
    int back[GPCS];
    return pwrite(file, values, bytes, (off_t)(uintptr_t)at) == (ssize_t)bytes &&
                   read_mapped(file, at, back, bytes) == bytes && !memcmp(back, values, bytes)
               ? 0
               : -1;
}

int layout_write(const struct properties *properties, const struct spec *spec, const struct layout *layout) {
    int ints[WINDOW_INTS] = {0}, file = memory_file();
    if (file < 0)
        return -1;
    size_t count = read_mapped(file, properties->versions, ints, sizeof ints - sizeof *ints) / sizeof *ints;
    const struct arrangement *known = arrangement_of(ints, count, spec);
    int failed = !known || put(file, properties->versions + known->gpcs * sizeof(int), layout->sms, sizeof layout->sms);
    if (!failed && known->clusters)
        failed = put(file, properties->versions + known->clusters * sizeof(int), layout->clusters, sizeof layout->clusters);
    close(file);
    return failed ? -1 : 0;
}
