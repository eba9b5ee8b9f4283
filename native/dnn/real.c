#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "real.h"

#include "usage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static const char LIBRARY[] = "libcudnn.so.9";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static size_t version;
static char version_text[32] = "none";
static struct backend backend;

/* A lookup through the library's own handle never finds what the phantom exports under the same name. */
static void open_library(void) {
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        usage_remark("cuDNN: %s cannot be loaded, so its workspaces are rules of thumb", LIBRARY);
        return;
    }
    size_t (*get_version)(void) = (size_t(*)(void))dlsym(library, "cudnnGetVersion");
    version = get_version ? get_version() : 0;
    snprintf(version_text, sizeof version_text, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    backend = (struct backend){
        .create = (int (*)(int, void **))dlsym(library, "cudnnBackendCreateDescriptor"),
        .destroy = (int (*)(void *))dlsym(library, "cudnnBackendDestroyDescriptor"),
        .set = (int (*)(void *, int, int, long long, const void *))dlsym(library, "cudnnBackendSetAttribute"),
        .get = (int (*)(void *, int, int, long long, long long *, void *))dlsym(library, "cudnnBackendGetAttribute"),
        .finalize = (int (*)(void *))dlsym(library, "cudnnBackendFinalize"),
    };
    backend.ready = backend.create && backend.destroy && backend.set && backend.get && backend.finalize;
}

void *real_function(const char *name) {
    pthread_once(&once, open_library);
    return library ? dlsym(library, name) : NULL;
}

size_t real_version(void) {
    pthread_once(&once, open_library);
    return version;
}

const char *real_version_text(void) {
    pthread_once(&once, open_library);
    return version_text;
}

const struct backend *real_backend(void) {
    pthread_once(&once, open_library);
    return &backend;
}
