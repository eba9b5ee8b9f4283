#include "unmodelled.h"

#include "api.h"
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAMPOLINES = 1024 };

/* Its own lock: a destructor prints the names whatever the rest of the phantom is doing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Called names, in the order of their first call. */
static const char **called;
static int called_count, called_room;

static void note(const char *name) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < called_count && strcmp(called[i], name))
        i++;
    if (i == called_room) {
        int room = called_room ? called_room * 2 : 16;
        const char **grown = realloc(called, (size_t)room * sizeof *grown);
        if (grown) {
            called = grown;
            called_room = room;
        }
    }
    if (i == called_count && called_count < called_room)
        called[called_count++] = name;
    pthread_mutex_unlock(&lock);
}

/* "Not supported" in the words of each library; the first prefix that fits counts. The driver is what is left. */
static const struct {
    const char *prefix;
    int code;
} not_supported[] = {
    {"nvml", 3},    {"nvrtc", 11},   {"cublas", 15}, {"cusolver", 9}, {"cusparse", 10},
    {"cufft", 16},  {"curand", 999}, {"cudnn", 3000}, {"cuda", NOT_SUPPORTED}, {"cu", NOT_SUPPORTED},
};

int unmodelled_refuse(const char *name) {
    note(name);
    size_t i = 0;
    while (i + 1 < sizeof not_supported / sizeof *not_supported &&
           strncmp(name, not_supported[i].prefix, strlen(not_supported[i].prefix)))
        i++;
    int code = not_supported[i].code;
    return strncmp(name, "cuda", 4) ? code : remember(code);
}

#define UNMODELLED(name)                                                                                           \
    STUB int name(void) {                                                                                          \
        return unmodelled_refuse(#name);                                                                                      \
    }
#include "unmodelled.def"
#undef UNMODELLED

/* Trampolines: functions that differ only in the name they were given at run time. */
static char *trampoline_name[TRAMPOLINES];
static int trampoline_count;

#define TRAMPOLINE(n)                                                                                              \
    static int trampoline_##n(void) {                                                                              \
        return unmodelled_refuse(trampoline_name[0x##n]);                                                                     \
    }
#define ADDRESS(n) trampoline_##n,
#define TIMES_16(do, n)                                                                                            \
    do(n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7)                                        \
    do(n##8) do(n##9) do(n##a) do(n##b) do(n##c) do(n##d) do(n##e) do(n##f)
#define TIMES_256(do, n)                                                                                           \
    TIMES_16(do, n##0) TIMES_16(do, n##1) TIMES_16(do, n##2) TIMES_16(do, n##3)                                    \
    TIMES_16(do, n##4) TIMES_16(do, n##5) TIMES_16(do, n##6) TIMES_16(do, n##7)                                    \
    TIMES_16(do, n##8) TIMES_16(do, n##9) TIMES_16(do, n##a) TIMES_16(do, n##b)                                    \
    TIMES_16(do, n##c) TIMES_16(do, n##d) TIMES_16(do, n##e) TIMES_16(do, n##f)
#define ALL(do) TIMES_256(do, 0) TIMES_256(do, 1) TIMES_256(do, 2) TIMES_256(do, 3)

ALL(TRAMPOLINE)

static int (*const trampolines[TRAMPOLINES])(void) = {ALL(ADDRESS)};

void *unmodelled_function(const char *name, size_t length) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < trampoline_count && (strncmp(trampoline_name[i], name, length) || trampoline_name[i][length]))
        i++;
    char *copy = i == trampoline_count && i < TRAMPOLINES ? malloc(length + 1) : NULL;
    if (copy) {
        memcpy(copy, name, length);
        copy[length] = 0;
        trampoline_name[trampoline_count++] = copy;
    }
    void *function = i < trampoline_count ? (void *)trampolines[i] : NULL;
    pthread_mutex_unlock(&lock);
    return function;
}

PHANTOM_API int phantom_unmodelled_count(void) {
    pthread_mutex_lock(&lock);
    int count = called_count;
    pthread_mutex_unlock(&lock);
    return count;
}

PHANTOM_API const char *phantom_unmodelled_name(int index) {
    pthread_mutex_lock(&lock);
    const char *name = index >= 0 && index < called_count ? called[index] : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

/* One line at exit, so that an entry point that was missing is never silent. */
__attribute__((destructor)) static void report(void) {
    int count = phantom_unmodelled_count();
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s%s", i ? ", " : "hotbed phantom: not modelled, called by this program: ",
                phantom_unmodelled_name(i));
    if (count)
        fputc('\n', stderr);
}

/* A child reports what it calls itself. */
static void child_after_fork(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    called_count = 0;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, child_after_fork);
}
