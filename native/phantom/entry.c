/* Functions asked for by name: cudaGetDriverEntryPoint and cuGetProcAddress. */
#include "api.h"
#include "self.h"
#include "unmodelled.h"

#include <string.h>

enum { FOUND = 0, SYMBOL_NOT_FOUND = 1 };

/* Entry points that changed their parameters: from which driver version a caller means the later form. Elsewhere
 * _v2 is a caller's only choice since CUDA 4. */
static const struct {
    const char *name, *suffix;
    unsigned since;
} revised[] = {
    {"cuStreamGetCaptureInfo", "_v3", 12030}, {"cuStreamGetCaptureInfo", "_v2", 0},
    {"cuCtxCreate", "_v4", 12050},            {"cuDevicePrimaryCtxRelease", "_v2", 0},
};

static void *by_version(const char *name, size_t length, unsigned version) {
    for (size_t i = 0; i < sizeof revised / sizeof *revised; i++) {
        bool same = strlen(revised[i].name) == length && !strncmp(revised[i].name, name, length);
        void *function = same && version >= revised[i].since ? self_find(name, length, revised[i].suffix) : NULL;
        if (function)
            return function;
    }
    void *function = self_find(name, length, "_v2");
    return function ? function : self_find(name, length, "");
}

/* Variants for per-thread default streams differ only in what stream 0 means. */
static size_t plain_length(const char *name) {
    size_t length = strlen(name);
    if (length > 5 && (!strcmp(name + length - 5, "_ptsz") || !strcmp(name + length - 5, "_ptds")))
        length -= 5;
    return length;
}

static int resolve(const char *name, void **out, unsigned version, int *status) {
    if (!name || !out)
        return INVALID_VALUE;
    size_t length = plain_length(name);
    *out = by_version(name, length, version);
    if (!*out)
        *out = unmodelled_function(name, length);
    if (status)
        *status = *out ? FOUND : SYMBOL_NOT_FOUND;
    return *out ? SUCCESS : NOT_FOUND;
}

PHANTOM_API int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
    (void)flags;
    return remember(resolve(name, out, 12000, status));
}

PHANTOM_API int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                                 unsigned long long flags, int *status) {
    (void)flags;
    return remember(resolve(name, out, version, status));
}

PHANTOM_API int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    (void)flags;
    return resolve(name, out, (unsigned)version, status);
}

PHANTOM_API int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    (void)flags;
    return resolve(name, out, (unsigned)version, NULL);
}

/* Private tables of the driver: a runtime that is linked into a library asks for them at its start, and works without
 * them as far as anything works without a card. */
PHANTOM_API int cuGetExportTable(const void **out, const void *uuid) {
    (void)uuid;
    if (!out)
        return INVALID_VALUE;
    *out = NULL;
    return NOT_FOUND;
}
