/* Kernels: they register, tell plausible attributes, and do nothing when launched. */
#include "launch.h"

#include "capture.h"
#include "memory.h"
#include "seed.h"
#include "stream.h"
#include "usage.h"

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
    int code = capture_check_legacy(stream);
    if (code == SUCCESS)
        capture_note(stream, NODE_KERNEL);
    return code;
}

/* Every way to launch a kernel ends here. */
static int launch(const void *function, void **arguments, void *handle) {
    usage_call(PHANTOM_KERNELS);
    int code = device_work(handle);
    if (code == SUCCESS && !stream_of(handle)->capture)
        seed_launched(function, arguments);
    return code;
}

PHANTOM_API int cudaLaunchKernel(const void *function, struct size3 grid, struct size3 block, void **arguments,
                                 size_t shared, void *stream) {
    (void)grid, (void)block, (void)shared;
    return RUNTIME(launch(function, arguments, stream));
}

PHANTOM_API int cudaLaunchCooperativeKernel(const void *function, struct size3 grid, struct size3 block,
                                            void **arguments, size_t shared, void *stream) {
    (void)grid, (void)block, (void)shared;
    return RUNTIME(launch(function, arguments, stream));
}

PHANTOM_API int __cudaLaunchKernel(void *kernel, struct size3 grid, struct size3 block, void **arguments,
                                   size_t shared, void *stream) {
    (void)grid, (void)block, (void)shared;
    return RUNTIME(launch(kernel, arguments, stream));
}

struct launch_attribute;

struct launch_configuration {
    struct size3 grid, block;
    size_t shared;
    void *stream;
    const struct launch_attribute *attributes;
    unsigned attribute_count;
};

PHANTOM_API int cudaLaunchKernelExC(const struct launch_configuration *launched, const void *function,
                                    void **arguments) {
    return RUNTIME(launched ? launch(function, arguments, launched->stream) : INVALID_VALUE);
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

/* Registration of the code that a library carries. Kernels are known by their stubs on the host. */
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

PHANTOM_API void __cudaRegisterFunction(void **binary, const char *function, char *code, const char *name,
                                        int thread_limit, void *thread, void *block, void *block_size, void *grid_size,
                                        int *warp_size) {
    (void)binary, (void)code, (void)thread_limit, (void)thread, (void)block, (void)block_size, (void)grid_size;
    (void)warp_size;
    seed_register(function, name);
}

PHANTOM_API void __cudaRegisterVar(void) {
}

PHANTOM_API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

PHANTOM_API void __cudaRegisterManagedVar(void) {
}

PHANTOM_API void __cudaRegisterHostVar(void) {
}

PHANTOM_API int __cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return SUCCESS;
}

PHANTOM_API int cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return SUCCESS;
}

PHANTOM_API int cudaGetFuncBySymbol(void **out, const void *symbol) {
    *out = (void *)symbol;
    return SUCCESS;
}

/* A device variable needs an address, and programs may read it back through one: a page that nothing else uses. */
static char variable[65536];

PHANTOM_API int cudaGetSymbolAddress(void **out, const void *symbol) {
    (void)symbol;
    if (!out)
        return remember(INVALID_VALUE);
    *out = variable;
    return SUCCESS;
}

PHANTOM_API int cudaGetSymbolSize(size_t *out, const void *symbol) {
    (void)symbol;
    if (!out)
        return remember(INVALID_VALUE);
    *out = sizeof variable;
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

PHANTOM_API int cudaFuncSetSharedMemConfig(const void *function, int config) {
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

PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, void *function, int block,
                                                                     size_t dynamic_shared, unsigned flags) {
    (void)function, (void)flags;
    return DRIVER(occupancy(out, block, dynamic_shared));
}

/* The largest block, and as many of them as fill the device. */
static int potential(int *grid, int *block, int limit) {
    if (!grid || !block)
        return INVALID_VALUE;
    *block = limit > 0 && limit < BLOCK_THREADS ? limit : BLOCK_THREADS;
    int code = occupancy(grid, *block, 0);
    *grid *= phantom.spec.sm;
    return code;
}

PHANTOM_API int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, void *shared_of_block,
                                                 size_t dynamic_shared, int limit) {
    (void)function, (void)shared_of_block, (void)dynamic_shared;
    return DRIVER(potential(grid, block, limit));
}

static int shared_left(size_t *out, int blocks) {
    if (!out || blocks < 1)
        return INVALID_VALUE;
    size_t share = (size_t)(phantom.spec.smem_sm / blocks), most = (size_t)phantom.spec.smem_optin;
    *out = share < most ? share : most;
    return SUCCESS;
}

PHANTOM_API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *out, const void *function, int blocks, int threads) {
    (void)function, (void)threads;
    return RUNTIME(shared_left(out, blocks));
}

PHANTOM_API int cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, void *function, int blocks, int threads) {
    (void)function, (void)threads;
    return DRIVER(shared_left(out, blocks));
}

/* One block on each multiprocessor. */
enum { PORTABLE_CLUSTER = 8, CLUSTER_DIMENSION = 4 };

/* One attribute of a launch; `value` of a cluster's dimension is its three sides. */
struct launch_attribute {
    int id, padding;
    unsigned value[16];
};

/* A cluster lies within one GPC; where no layout is known it may lie anywhere. */
static int active_clusters(unsigned size) {
    const struct spec *spec = &phantom.spec;
    if (!size || size > MAX_CLUSTER || spec->major < 9)
        return 0;
    return spec->layouts ? spec->layout[0].clusters[size - 1] : spec->sm / (int)size;
}

static int clusters(int *out, const struct launch_attribute *attributes, unsigned count) {
    if (!out)
        return INVALID_VALUE;
    unsigned size = 1;
    for (unsigned i = 0; i < count; i++)
        if (attributes[i].id == CLUSTER_DIMENSION)
            size = attributes[i].value[0] * attributes[i].value[1] * attributes[i].value[2];
    *out = active_clusters(size);
    return SUCCESS;
}

PHANTOM_API int cudaOccupancyMaxActiveClusters(int *out, const void *function,
                                               const struct launch_configuration *launched) {
    (void)function;
    return RUNTIME(launched ? clusters(out, launched->attributes, launched->attribute_count) : INVALID_VALUE);
}

static int cluster_size(int *out) {
    if (!out)
        return INVALID_VALUE;
    *out = phantom.spec.major >= 9 ? PORTABLE_CLUSTER : 1;
    return SUCCESS;
}

PHANTOM_API int cudaOccupancyMaxPotentialClusterSize(int *out, const void *function,
                                                     const struct launch_configuration *launched) {
    (void)function, (void)launched;
    return RUNTIME(cluster_size(out));
}

PHANTOM_API int cuOccupancyMaxPotentialClusterSize(int *out, void *function, const void *launched) {
    (void)function, (void)launched;
    return DRIVER(cluster_size(out));
}

PHANTOM_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                               void **extra) {
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared, (void)extra;
    return DRIVER(launch(function, arguments, stream));
}

PHANTOM_API int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          void *stream, void **arguments) {
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared;
    return DRIVER(launch(function, arguments, stream));
}

struct driver_launch_configuration {
    unsigned grid[3], block[3], shared;
    void *stream;
    const struct launch_attribute *attributes;
    unsigned attribute_count;
};

PHANTOM_API int cuOccupancyMaxActiveClusters(int *out, void *function,
                                             const struct driver_launch_configuration *launched) {
    (void)function;
    return DRIVER(launched ? clusters(out, launched->attributes, launched->attribute_count) : INVALID_VALUE);
}

PHANTOM_API int cuLaunchKernelEx(const struct driver_launch_configuration *launched, void *function, void **arguments,
                                 void **extra) {
    (void)extra;
    return DRIVER(launched ? launch(function, arguments, launched->stream) : INVALID_VALUE);
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
