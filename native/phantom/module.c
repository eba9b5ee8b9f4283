/* Code given at run time: modules and libraries are handles without content, their kernels the same handles. */
#include "stream.h"
#include "usage.h"

#include <string.h>

enum { TENSOR_MAP_BYTES = 128 };

static int load(void **out) {
    struct object *module = out ? book_new(&phantom.objects, MODULE, sizeof *module) : NULL;
    if (!module)
        return out ? OUT_OF_MEMORY : INVALID_VALUE;
    usage_call(PHANTOM_MODULES);
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

PHANTOM_API int cuModuleLoadFatBinary(void **out, const void *image) {
    (void)image;
    return DRIVER(load(out));
}

/* A function is known by the module that it came from. */
static int hand_on(void **out, void *handle) {
    if (!out)
        return INVALID_VALUE;
    *out = handle;
    return SUCCESS;
}

PHANTOM_API int cuModuleGetFunction(void **out, void *module, const char *name) {
    (void)name;
    return hand_on(out, module);
}

PHANTOM_API int cuModuleGetLoadingMode(int *out) {
    enum { LAZY = 2 };
    if (!out)
        return INVALID_VALUE;
    *out = LAZY;
    return SUCCESS;
}

PHANTOM_API int cuFuncGetModule(void **out, void *function) {
    return hand_on(out, function);
}

PHANTOM_API int cuFuncLoad(void *function) {
    (void)function;
    return SUCCESS;
}

PHANTOM_API int cuFuncIsLoaded(int *out, void *function) {
    (void)function;
    if (!out)
        return INVALID_VALUE;
    *out = 1;
    return SUCCESS;
}

/* A variable of a module: like those of the program itself, a page that nothing else uses. */
int cudaGetSymbolAddress(void **out, const void *symbol);
int cudaGetSymbolSize(size_t *out, const void *symbol);

static int variable(uint64_t *address, size_t *bytes, const void *owner) {
    void *at = NULL;
    cudaGetSymbolAddress(&at, owner);
    if (address)
        *address = (uint64_t)at;
    return bytes ? cudaGetSymbolSize(bytes, owner) : SUCCESS;
}

PHANTOM_API int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name) {
    (void)name;
    return variable(address, bytes, module);
}

PHANTOM_API int cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name) {
    (void)name;
    return variable(address, bytes, library);
}

PHANTOM_API int cuLibraryLoadData(void **out, const void *code, int *jit_options, void **jit_values,
                                  unsigned jit_count, int *options, void **values, unsigned count) {
    (void)code, (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return DRIVER(load(out));
}

PHANTOM_API int cuLibraryLoadFromFile(void **out, const char *path, int *jit_options, void **jit_values,
                                      unsigned jit_count, int *options, void **values, unsigned count) {
    (void)path, (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return DRIVER(load(out));
}

PHANTOM_API int cuLibraryUnload(void *library) {
    return DRIVER(unload(library));
}

PHANTOM_API int cuLibraryGetKernel(void **out, void *library, const char *name) {
    (void)name;
    return hand_on(out, library);
}

PHANTOM_API int cuLibraryGetModule(void **out, void *library) {
    return hand_on(out, library);
}

PHANTOM_API int cuKernelGetFunction(void **out, void *kernel) {
    return hand_on(out, kernel);
}

PHANTOM_API int cuKernelGetLibrary(void **out, void *kernel) {
    return hand_on(out, kernel);
}

PHANTOM_API int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
    (void)attribute, (void)value, (void)kernel, (void)device;
    return SUCCESS;
}

PHANTOM_API int cuKernelSetCacheConfig(void *kernel, int config, int device) {
    (void)kernel, (void)config, (void)device;
    return SUCCESS;
}

int cuFuncGetAttribute(int *out, int attribute, void *function);

PHANTOM_API int cuKernelGetAttribute(int *out, int attribute, void *kernel, int device) {
    (void)device;
    return cuFuncGetAttribute(out, attribute, kernel);
}

PHANTOM_API int cudaLibraryLoadData(void **out, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                                    int *options, void **values, unsigned count) {
    (void)code, (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return RUNTIME(load(out));
}

PHANTOM_API int cudaLibraryLoadFromFile(void **out, const char *path, int *jit_options, void **jit_values,
                                        unsigned jit_count, int *options, void **values, unsigned count) {
    (void)path, (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return RUNTIME(load(out));
}

PHANTOM_API int cudaLibraryUnload(void *library) {
    return RUNTIME(unload(library));
}

PHANTOM_API int cudaLibraryGetKernel(void **out, void *library, const char *name) {
    (void)name;
    return remember(hand_on(out, library));
}

PHANTOM_API int cudaLibraryGetGlobal(void **address, size_t *bytes, void *library, const char *name) {
    (void)name;
    return remember(variable((uint64_t *)address, bytes, library));
}

PHANTOM_API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    (void)kernel, (void)attribute, (void)value, (void)device;
    return SUCCESS;
}

/* The linker: pieces of code are taken as they come, and the whole is code without content. */
PHANTOM_API int cuLinkCreate_v2(unsigned count, int *options, void **values, void **out) {
    (void)count, (void)options, (void)values;
    return DRIVER(load(out));
}

PHANTOM_API int cuLinkAddData_v2(void *link, int type, void *data, size_t bytes, const char *name, unsigned count,
                                 int *options, void **values) {
    (void)link, (void)type, (void)data, (void)bytes, (void)name, (void)count, (void)options, (void)values;
    return SUCCESS;
}

PHANTOM_API int cuLinkAddFile_v2(void *link, int type, const char *path, unsigned count, int *options, void **values) {
    (void)link, (void)type, (void)path, (void)count, (void)options, (void)values;
    return SUCCESS;
}

/* Who looks these up without a version, as cuDNN does, calls them as the later ones. */
PHANTOM_API int cuLinkCreate(unsigned count, int *options, void **values, void **out) {
    return cuLinkCreate_v2(count, options, values, out);
}

PHANTOM_API int cuLinkAddData(void *link, int type, void *data, size_t bytes, const char *name, unsigned count,
                              int *options, void **values) {
    return cuLinkAddData_v2(link, type, data, bytes, name, count, options, values);
}

PHANTOM_API int cuLinkAddFile(void *link, int type, const char *path, unsigned count, int *options, void **values) {
    return cuLinkAddFile_v2(link, type, path, count, options, values);
}

PHANTOM_API int cuLinkComplete(void *link, void **out, size_t *bytes) {
    static char code[] = "linked";
    (void)link;
    if (!out)
        return INVALID_VALUE;
    *out = code;
    if (bytes)
        *bytes = sizeof code;
    return SUCCESS;
}

PHANTOM_API int cuLinkDestroy(void *link) {
    return DRIVER(unload(link));
}

/* A tensor map is only ever read by kernels. */
PHANTOM_API int cuTensorMapEncodeTiled(void *out) {
    if (!out)
        return INVALID_VALUE;
    memset(out, 0, TENSOR_MAP_BYTES);
    return SUCCESS;
}

PHANTOM_API int cuTensorMapEncodeIm2col(void *out) {
    return cuTensorMapEncodeTiled(out);
}

PHANTOM_API int cuTensorMapReplaceAddress(void *map, void *address) {
    (void)address;
    return map ? SUCCESS : INVALID_VALUE;
}
