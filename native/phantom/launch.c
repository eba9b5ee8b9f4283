/* Kernels: they register, tell plausible attributes, and do nothing when launched. */
#include "launch.h"

#include "capture.h"
#include "memory.h"
#include "stream.h"
#include "usage.h"
#include "values.h"

#include <string.h>

struct size3 {
    unsigned x, y, z;
};

enum { BLOCK_THREADS = 1024, KERNEL_REGISTERS = 32, BLOCK_SHARED_BYTES = 49152 };

static _Thread_local struct {
    struct size3 grid, block;
    size_t shared;
    void *stream;
} configuration;

int device_work(void *handle) {
    struct stream *stream = stream_of(handle);
    device_touch(device_now());
    values_launch();
    int code = capture_check_legacy(stream);
    if (code == SUCCESS)
        capture_note(stream, NODE_KERNEL);
    return code;
}

/* Every way to launch a kernel ends here. */
static int launch(void *stream) {
    usage_call(PHANTOM_KERNELS);
    return device_work(stream);
}

PHANTOM_API int cudaLaunchKernel(const void *function, struct size3 grid, struct size3 block, void **arguments,
                                 size_t shared, void *stream) {
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared;
    return RUNTIME(launch(stream));
}

PHANTOM_API int cudaLaunchCooperativeKernel(const void *function, struct size3 grid, struct size3 block,
                                            void **arguments, size_t shared, void *stream) {
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared;
    return RUNTIME(launch(stream));
}

PHANTOM_API int __cudaLaunchKernel(void *kernel, struct size3 grid, struct size3 block, void **arguments,
                                   size_t shared, void *stream) {
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared;
    return RUNTIME(launch(stream));
}

struct launch_configuration {
    struct size3 grid, block;
    size_t shared;
    void *stream;
};

PHANTOM_API int cudaLaunchKernelExC(const struct launch_configuration *launched, const void *function,
                                    void **arguments) {
    (void)function, (void)arguments;
    return RUNTIME(launched ? launch(launched->stream) : INVALID_VALUE);
}

PHANTOM_API unsigned __cudaPushCallConfiguration(struct size3 grid, struct size3 block, size_t shared, void *stream) {
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return SUCCESS;
}

PHANTOM_API int __cudaPopCallConfiguration(struct size3 *grid, struct size3 *block, size_t *shared, void **stream) {
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *stream = configuration.stream;
    return SUCCESS;
}

/* Registration of the code that a library carries: nothing to keep. */
static void *registered[4];

PHANTOM_API void **__cudaRegisterFatBinary(void *binary) {
    (void)binary;
    return registered;
}

PHANTOM_API void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

PHANTOM_API void __cudaUnregisterFatBinary(void **handle) {
    (void)handle;
}

PHANTOM_API void __cudaRegisterFunction(void) {
}

PHANTOM_API void __cudaRegisterVar(void) {
}

PHANTOM_API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

PHANTOM_API int __cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return SUCCESS;
}

PHANTOM_API int cudaGetFuncBySymbol(void **out, const void *symbol) {
    *out = (void *)symbol;
    return SUCCESS;
}

/* A device variable needs an address, and programs may read it back through one: a page that nothing else uses. */
PHANTOM_API int cudaGetSymbolAddress(void **out, const void *symbol) {
    static char variable[65536];
    (void)symbol;
    *out = variable;
    return SUCCESS;
}

/* Beginning of the struct that both CUDA 12 and 13 fill. */
struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared, carveout;
};

static int attributes(struct function_attributes *out) {
    int version = phantom.spec.major * 10 + phantom.spec.minor;
    if (!out)
        return INVALID_VALUE;
    *out = (struct function_attributes){.max_threads = BLOCK_THREADS,
                                        .registers = KERNEL_REGISTERS,
                                        .ptx_version = version,
                                        .binary_version = version,
                                        .max_dynamic_shared = BLOCK_SHARED_BYTES};
    return SUCCESS;
}

PHANTOM_API int cudaFuncGetAttributes(struct function_attributes *out, const void *function) {
    (void)function;
    return RUNTIME(attributes(out));
}

PHANTOM_API int cudaFuncSetAttribute(const void *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return SUCCESS;
}

PHANTOM_API int cudaFuncSetCacheConfig(const void *function, int config) {
    (void)function, (void)config;
    return SUCCESS;
}

static int occupancy(int *out, int block, size_t dynamic_shared) {
    const struct spec *spec = &phantom.spec;
    if (!out || block <= 0)
        return INVALID_VALUE;
    int by_threads = spec->threads_per_sm / block, blocks = spec->blocks_per_sm;
    size_t by_shared = dynamic_shared ? (size_t)spec->smem_sm / dynamic_shared : (size_t)blocks;
    blocks = by_threads < blocks ? by_threads : blocks;
    *out = by_shared < (size_t)blocks ? (int)by_shared : blocks;
    return SUCCESS;
}

PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int block,
                                                              size_t dynamic_shared) {
    (void)function;
    return RUNTIME(occupancy(out, block, dynamic_shared));
}

PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *function, int block,
                                                                       size_t dynamic_shared, unsigned flags) {
    (void)function, (void)flags;
    return RUNTIME(occupancy(out, block, dynamic_shared));
}

PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int block,
                                                            size_t dynamic_shared) {
    (void)function;
    return DRIVER(occupancy(out, block, dynamic_shared));
}

PHANTOM_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                               void **extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)arguments, (void)extra;
    return DRIVER(launch(stream));
}

PHANTOM_API int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          void *stream, void **arguments) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)arguments;
    return DRIVER(launch(stream));
}

struct driver_launch_configuration {
    unsigned grid[3], block[3], shared;
    void *stream;
};

PHANTOM_API int cuLaunchKernelEx(const struct driver_launch_configuration *launched, void *function, void **arguments,
                                 void **extra) {
    (void)function, (void)arguments, (void)extra;
    return DRIVER(launched ? launch(launched->stream) : INVALID_VALUE);
}

PHANTOM_API int cuFuncGetAttribute(int *out, int attribute, void *function) {
    static const int values[] = {[0] = BLOCK_THREADS, [4] = KERNEL_REGISTERS, [8] = BLOCK_SHARED_BYTES, [15] = 0};
    (void)function;
    if (!out || attribute < 0 || attribute > 15)
        return INVALID_VALUE;
    *out = values[attribute];
    if (attribute == 5 || attribute == 6) { /* PTX and binary version */
        enter();
        *out = phantom.spec.major * 10 + phantom.spec.minor;
        leave(SUCCESS);
    }
    return SUCCESS;
}

PHANTOM_API int cuFuncSetAttribute(void *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return SUCCESS;
}

PHANTOM_API int cuFuncSetCacheConfig(void *function, int config) {
    (void)function, (void)config;
    return SUCCESS;
}

PHANTOM_API int cudaProfilerStart(void) {
    return SUCCESS;
}

PHANTOM_API int cudaProfilerStop(void) {
    return SUCCESS;
}
