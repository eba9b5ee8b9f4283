#define _GNU_SOURCE /* dl_iterate_phdr */
#include "runtime.h"

#include "state.h"

#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The major version in an object's dependency on libcudart.so.12 or .13; 0 if it has none. The loader has made the
 * address of the strings absolute on most machines, not on all. */
static int needed_runtime(const struct dl_phdr_info *info, const ElfW(Dyn) *dynamic) {
    static const char name[] = "libcudart.so.";
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)(entry->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + entry->d_un.d_ptr
                                                                         : entry->d_un.d_ptr);
    for (const ElfW(Dyn) *entry = dynamic; strings && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && !strncmp(strings + entry->d_un.d_val, name, sizeof name - 1))
            return atoi(strings + entry->d_un.d_val + sizeof name - 1);
    return 0;
}

static int note_runtime(struct dl_phdr_info *info, size_t size, void *major) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            int needed = needed_runtime(info, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
            if (needed)
                *(int *)major = needed;
            return needed;
        }
    return 0;
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
