/* Code given at run time: modules and libraries are handles without content, their kernels the same handles. */
#include "stream.h"

#include <string.h>

enum { TENSOR_MAP_BYTES = 128 };

static int load(void **out) {
    struct object *module = out ? book_new(&phantom.objects, MODULE, sizeof *module) : NULL;
    if (!module)
        return out ? OUT_OF_MEMORY : INVALID_VALUE;
    device_touch(device_now());
    *out = (void *)module->handle;
    return SUCCESS;
}

static int unload(void *handle) {
    struct object *module = book_find(&phantom.objects, (uint64_t)handle, MODULE);
    if (!module)
        return misuse(), INVALID_HANDLE;
    book_delete(&phantom.objects, module);
    return SUCCESS;
}

PHANTOM_API int cuModuleLoad(void **out, const char *path) {
    (void)path;
    return DRIVER(load(out));
}

PHANTOM_API int cuModuleLoadData(void **out, const void *image) {
    (void)image;
    return DRIVER(load(out));
}

PHANTOM_API int cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *options, void **values) {
    (void)image, (void)count, (void)options, (void)values;
    return DRIVER(load(out));
}

PHANTOM_API int cuModuleUnload(void *module) {
    return DRIVER(unload(module));
}

PHANTOM_API int cuModuleGetFunction(void **out, void *module, const char *name) {
    (void)name;
    if (!out)
        return INVALID_VALUE;
    *out = module;
    return SUCCESS;
}

PHANTOM_API int cudaLibraryLoadData(void **out, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                                    int *options, void **values, unsigned count) {
    (void)code, (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return RUNTIME(load(out));
}

PHANTOM_API int cudaLibraryUnload(void *library) {
    return RUNTIME(unload(library));
}

PHANTOM_API int cudaLibraryGetKernel(void **out, void *library, const char *name) {
    (void)name;
    if (!out)
        return remember(INVALID_VALUE);
    *out = library;
    return SUCCESS;
}

PHANTOM_API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    (void)kernel, (void)attribute, (void)value, (void)device;
    return SUCCESS;
}

/* A tensor map is only ever read by kernels. */
PHANTOM_API int cuTensorMapEncodeTiled(void *out) {
    if (!out)
        return INVALID_VALUE;
    memset(out, 0, TENSOR_MAP_BYTES);
    return SUCCESS;
}
