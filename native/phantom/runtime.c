#define _GNU_SOURCE /* dl_iterate_phdr */
#include "runtime.h"

#include "state.h"

#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int note_runtime(struct dl_phdr_info *info, size_t size, void *major) {
    (void)size;
    const char *at = info->dlpi_name ? strstr(info->dlpi_name, "libcudart.so.") : NULL;
    if (at)
        *(int *)major = atoi(at + strlen("libcudart.so."));
    return at != NULL;
}

int runtime_major(void) {
    static atomic_int known;
    int major = atomic_load_explicit(&known, memory_order_relaxed);
    if (!major) {
        major = 13;
        if (dl_iterate_phdr(note_runtime, &major))
            atomic_store_explicit(&known, major, memory_order_relaxed);
    }
    return major;
}

PHANTOM_API int cudaRuntimeGetVersion(int *out) {
    if (!out)
        return remember(INVALID_VALUE);
    *out = runtime_major() < 13 ? 12080 : 13000;
    return SUCCESS;
}

static int driver_version(int *out) {
    if (!out)
        return INVALID_VALUE;
    *out = phantom.spec.cuda;
    return SUCCESS;
}

PHANTOM_API int cudaDriverGetVersion(int *out) {
    return RUNTIME(driver_version(out));
}

PHANTOM_API int cuDriverGetVersion(int *out) {
    return DRIVER(driver_version(out));
}
