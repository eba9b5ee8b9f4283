/* Prints what a CUDA runtime and driver answer to calls that are easy to get wrong: result codes, accounting, pools,
 * capture. Run on a GPU it gives the expectations that the phantom is compared with:
 *     conformance libcudart.so.13 libcuda.so.1 PART
 * A process a part: a driver that has been asked nonsense may answer the next question differently. */
#define _GNU_SOURCE /* dlfcn.h */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void *runtime, *driver;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is missing\n", name);
        exit(2);
    }
    return found;
}

/* Functions are called without prototypes, so every argument has exactly the width that the callee expects. */
#define RT(name) ((int (*)())symbol(runtime, #name))
#define CU(name) ((int (*)())symbol(driver, #name))
#define CODE(text, call) printf("%s = %d\n", text, (call))
#define FIGURE(text, value) printf("%s = %lld\n", text, (long long)(value))

static size_t free_bytes(void) {
    size_t available = 0, total = 0;
    RT(cudaMemGetInfo)(&available, &total);
    return available;
}

static void *allocate(size_t size) {
    void *address = NULL;
    RT(cudaMalloc)(&address, size);
    return address;
}

static void errors(void) {
    void *p = allocate(2 * MIB), *null = NULL;
    CODE("free inside an allocation", RT(cudaFree)((char *)p + 512));
    CODE("free", RT(cudaFree)(p));
    CODE("free twice", RT(cudaFree)(p));
    CODE("free an unknown address", RT(cudaFree)((void *)0x1234));
    CODE("free null", RT(cudaFree)(NULL));
    CODE("last error", RT(cudaGetLastError)());
    CODE("last error again", RT(cudaGetLastError)());
    CODE("malloc of 0", RT(cudaMalloc)(&p, (size_t)0));
    FIGURE("malloc of 0 gives null", p == NULL);
    CODE("malloc into null", RT(cudaMalloc)(NULL, (size_t)512));
    CODE("malloc of everything", RT(cudaMalloc)(&null, (size_t)1 << 46));
    CODE("peek after out of memory", RT(cudaPeekAtLastError)());
    CODE("last error after out of memory", RT(cudaGetLastError)());
    CODE("driver malloc of 0", CU(cuMemAlloc_v2)(&p, (size_t)0));
    CODE("driver free of an unknown address", CU(cuMemFree_v2)((uint64_t)0x1234));
    CODE("driver errors are not remembered", RT(cudaGetLastError)());
    CODE("set a device that is not there", RT(cudaSetDevice)(99));
    CODE("device properties of none", RT(cudaDeviceGetAttribute)((int *)&p, 16, 99));
    CODE("attribute 0", RT(cudaDeviceGetAttribute)((int *)&p, 0, 0));
    CODE("peer access to itself", RT(cudaDeviceEnablePeerAccess)(0, 0u));
    RT(cudaGetLastError)();
}

/* What an allocation takes from the device, and what freeing it gives back. */
static void accounting(void) {
    static const size_t sizes[] = {1, 1, 1000, MIB / 2, MIB, MIB + 1, 2 * MIB, 3 * MIB, 20 * MIB, 33 * MIB + 5};
    void *held[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t before = free_bytes();
        held[i] = allocate(sizes[i]);
        printf("bytes taken by malloc of %zu (%zu) = %zu\n", sizes[i], i, before - free_bytes());
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t before = free_bytes();
        RT(cudaFree)(held[i]);
        printf("bytes returned by free of %zu (%zu) = %zu\n", sizes[i], i, free_bytes() - before);
    }
}

static void addresses(void) {
    static const size_t sizes[] = {2, 20, 20, 2, 2, 64, 20, 12, 2, 30, 130, 2, 8, 4};
    char *held[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        held[i] = allocate(sizes[i] * MIB);
        /* The first two fit into what the runtime has left over of its own. */
        if (i >= 2)
            printf("address of %zu MiB (%zu), MiB from number 2 = %lld\n", sizes[i], i,
                   (long long)(held[i] - held[2]) >> 20);
    }
    RT(cudaFree)(held[2]);
    RT(cudaFree)(held[5]);
    static const size_t again[] = {20, 32, 16, 64};
    for (size_t i = 0; i < 4; i++)
        printf("address of %zu MiB after frees, MiB from number 2 = %lld\n", again[i],
               (long long)((char *)allocate(again[i] * MIB) - held[2]) >> 20);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (i != 2 && i != 5)
            RT(cudaFree)(held[i]);
    char *small[6];
    for (size_t i = 0; i < 6; i++) {
        size_t before = free_bytes();
        small[i] = allocate(i == 3 ? 100 : MIB / 2);
        printf("small %zu at %lld, takes %zu\n", i, (long long)(small[i] - small[0]), before - free_bytes());
    }
    RT(cudaGetLastError)();
}

/* CUmemAllocationProp and CUmemAccessDesc, as words. */
static int properties[8] = {1, 0, 1, 0};
static int access_device_0[3] = {1, 0, 3};

#define RESERVE(out, size, align) CU(cuMemAddressReserve)(out, size, (size_t)(align), (uint64_t)0, (unsigned long long)0)
#define CREATE(out, size) CU(cuMemCreate)(out, size, properties, (unsigned long long)0)
#define MAP(at, size, offset, handle) CU(cuMemMap)(at, size, (size_t)(offset), handle, (unsigned long long)0)

static void reservations(void) {
    uint64_t va = 0, next[4] = {0};
    CODE("reserve of 1 MiB", RESERVE(&va, MIB, 0));
    CODE("reserve of 0", RESERVE(&va, (size_t)0, 0));
    CODE("reserve with alignment 3", RESERVE(&va, 64 * MIB, 3));
    CODE("reserve", RESERVE(&va, 64 * MIB, 0));
    CODE("free part of a reservation", CU(cuMemAddressFree)(va, 32 * MIB));
    CODE("free a reservation", CU(cuMemAddressFree)(va, 64 * MIB));
    CODE("free a reservation twice", CU(cuMemAddressFree)(va, 64 * MIB));
    for (int i = 0; i < 4; i++) {
        RESERVE(&next[i], (size_t)157 << 30, 0);
        fprintf(stderr, "reservation %d, GiB from the first = %lld\n", i, (long long)(next[i] - next[0]) / (1 << 30));
    }
    CU(cuMemAddressFree)(next[1], (size_t)157 << 30);
    RESERVE(&va, (size_t)20 << 30, 0);
    fprintf(stderr, "reservation after a free, GiB from the first = %lld\n", (long long)(va - next[0]) / (1 << 30));
}

static void mappings(void) {
    uint64_t va = 0, handle = 0, second = 0, kept = 0, none = 0;
    size_t granularity = 0, before = free_bytes();
    CODE("granularity", CU(cuMemGetAllocationGranularity)(&granularity, properties, 0));
    FIGURE("granularity bytes", granularity);
    CODE("create of 1 MiB", CREATE(&handle, MIB));
    CODE("create of 0", CREATE(&handle, (size_t)0));
    CODE("create of everything", CREATE(&handle, (size_t)1 << 46));
    CODE("create", CREATE(&handle, 4 * MIB));
    FIGURE("bytes taken by create", before - free_bytes());
    RESERVE(&va, 64 * MIB, 0);
    CODE("map outside a reservation", MAP(va + 64 * MIB, 4 * MIB, 0, handle));
    CODE("map at an odd address", MAP(va + MIB, 4 * MIB, 0, handle));
    CODE("map more than created", MAP(va, 6 * MIB, 0, handle));
    CODE("map less than created", MAP(va, 2 * MIB, 0, handle));
    CODE("map with an offset", MAP(va, 2 * MIB, 2 * MIB, handle));
    CODE("map of handle 0", MAP(va, 4 * MIB, 0, (uint64_t)0));
    CODE("map", MAP(va, 4 * MIB, 0, handle));
    CODE("map over a mapping", MAP(va + 2 * MIB, 4 * MIB, 0, handle));
    CODE("map one handle twice", MAP(va + 8 * MIB, 4 * MIB, 0, handle));
    CODE("set access", CU(cuMemSetAccess)(va, 4 * MIB, access_device_0, (size_t)1));
    CODE("set access to part", CU(cuMemSetAccess)(va, 2 * MIB, access_device_0, (size_t)1));
    CODE("set access to what is not mapped", CU(cuMemSetAccess)(va + 16 * MIB, 4 * MIB, access_device_0, (size_t)1));
    CODE("set access across a gap", CU(cuMemSetAccess)(va, 12 * MIB, access_device_0, (size_t)1));
    CODE("unmap part of a mapping", CU(cuMemUnmap)(va, 2 * MIB));
    CODE("retain", CU(cuMemRetainAllocationHandle)(&kept, (void *)va));
    CODE("retain inside", CU(cuMemRetainAllocationHandle)(&second, (void *)(va + 4096)));
    CODE("retain nothing", CU(cuMemRetainAllocationHandle)(&none, (void *)(va + 32 * MIB)));
    FIGURE("a retained handle is the same", kept == handle);
    CODE("release", CU(cuMemRelease)(handle));
    CODE("release a retained one", CU(cuMemRelease)(kept));
    FIGURE("bytes taken while mapped twice", before - free_bytes());
    CODE("unmap first", CU(cuMemUnmap)(va, 4 * MIB));
    FIGURE("bytes taken while mapped once", before - free_bytes());
    CODE("unmap second", CU(cuMemUnmap)(va + 8 * MIB, 4 * MIB));
    FIGURE("bytes taken while retained", before - free_bytes());
    CODE("release the last", CU(cuMemRelease)(second));
    FIGURE("bytes taken in the end", before - free_bytes());
}

static void unmappings(void) {
    uint64_t va = 0, handle[3];
    size_t before = free_bytes();
    RESERVE(&va, 64 * MIB, 0);
    for (uint64_t i = 0; i < 3; i++) {
        CREATE(&handle[i], 4 * MIB);
        MAP(va + (i ? i + 1 : 0) * 4 * MIB, 4 * MIB, 0, handle[i]);
        CU(cuMemRelease)(handle[i]);
    }
    CODE("unmap what is not mapped", CU(cuMemUnmap)(va + 32 * MIB, 4 * MIB));
    CODE("unmap outside a reservation", CU(cuMemUnmap)(va + 64 * MIB, 4 * MIB));
    CODE("unmap two at once", CU(cuMemUnmap)(va + 8 * MIB, 8 * MIB));
    FIGURE("bytes left", before - free_bytes());
    CODE("unmap with a gap", CU(cuMemUnmap)(va, 12 * MIB));
    FIGURE("bytes left after", before - free_bytes());
    CODE("unmap again", CU(cuMemUnmap)(va, 4 * MIB));
    CREATE(&handle[0], 4 * MIB);
    MAP(va, 4 * MIB, 0, handle[0]);
    CODE("free a reservation with a mapping", CU(cuMemAddressFree)(va, 64 * MIB));
}

static uint64_t pool_figure(void *pool, int attribute) {
    uint64_t value = 0;
    RT(cudaMemPoolGetAttribute)(pool, attribute, &value);
    return value;
}

static void show_pool(void *pool, const char *when) {
    printf("pool %s: reserved = %llu MiB, high = %llu MiB, used = %llu, high = %llu\n", when,
           (unsigned long long)pool_figure(pool, 5) >> 20, (unsigned long long)pool_figure(pool, 6) >> 20,
           (unsigned long long)pool_figure(pool, 7), (unsigned long long)pool_figure(pool, 8));
}

static void *allocate_async(size_t size) {
    void *address = NULL;
    printf("mallocAsync of %zu = %d\n", size, RT(cudaMallocAsync)(&address, size, NULL));
    return address;
}

static void pools(void) {
    void *pool = NULL, *p, *q, *r;
    uint64_t threshold = UINT64_MAX, zero = 0;
    size_t before = free_bytes();
    CODE("default pool", RT(cudaDeviceGetDefaultMemPool)(&pool, 0));
    FIGURE("default threshold", pool_figure(pool, 4));
    FIGURE("reuse flag", pool_figure(pool, 1));
    CODE("set threshold", RT(cudaMemPoolSetAttribute)(pool, 4, &threshold));
    p = allocate_async(1);
    show_pool(pool, "after 1 byte");
    FIGURE("bytes taken from the device", before - free_bytes());
    q = allocate_async(1000);
    r = allocate_async(40 * MIB);
    show_pool(pool, "after 40 MiB more");
    CODE("freeAsync", RT(cudaFreeAsync)(q, NULL));
    CODE("freeAsync twice", RT(cudaFreeAsync)(q, NULL));
    CODE("freeAsync of null", RT(cudaFreeAsync)(NULL, NULL));
    CODE("freeAsync of the large one", RT(cudaFreeAsync)(r, NULL));
    show_pool(pool, "after frees");
    CODE("trim to 0", RT(cudaMemPoolTrimTo)(pool, (size_t)0));
    show_pool(pool, "after trim");
    CODE("reset high of reserved", RT(cudaMemPoolSetAttribute)(pool, 6, &zero));
    CODE("set reserved", RT(cudaMemPoolSetAttribute)(pool, 5, &zero));
    show_pool(pool, "after reset");
    RT(cudaFreeAsync)(p, NULL);
    RT(cudaMemPoolSetAttribute)(pool, 4, &zero);
    RT(cudaDeviceSynchronize)();
    show_pool(pool, "after synchronisation with threshold 0");
    q = allocate(2 * MIB);
    CODE("freeAsync of cudaMalloc memory", RT(cudaFreeAsync)(q, NULL));
    CODE("mallocAsync of 0", RT(cudaMallocAsync)(&p, (size_t)0, NULL));
    CODE("mallocAsync of everything", RT(cudaMallocAsync)(&p, (size_t)1 << 46, NULL));
    CODE("trim of no pool", RT(cudaMemPoolTrimTo)(NULL, (size_t)0));
    RT(cudaGetLastError)();
}

static void host_memory(void) {
    void *p = NULL, *plain = aligned_alloc(4096, 8192), *seen = NULL;
    struct {
        int type, device;
        void *on_device, *on_host;
        long reserved[8];
    } attributes;
    int type = 0;
    CODE("hostAlloc", RT(cudaHostAlloc)(&p, (size_t)1000, 0u));
    CODE("attributes of pinned", RT(cudaPointerGetAttributes)(&attributes, (char *)p + 10));
    printf("pinned type = %d, device = %d, device pointer moves = %d\n", attributes.type, attributes.device,
           attributes.on_device != (char *)p + 10);
    CODE("attributes of plain", RT(cudaPointerGetAttributes)(&attributes, plain));
    printf("plain type = %d, device = %d, device pointer null = %d, host pointer null = %d\n", attributes.type,
           attributes.device, !attributes.on_device, !attributes.on_host);
    CODE("driver attribute of plain", CU(cuPointerGetAttribute)(&type, 2, (uint64_t)plain));
    CODE("device pointer of plain", RT(cudaHostGetDevicePointer)(&seen, plain, 0u));
    CODE("free pinned by cudaFree", RT(cudaFree)(p));
    CODE("freeHost", RT(cudaFreeHost)(p));
    CODE("freeHost twice", RT(cudaFreeHost)(p));
    CODE("freeHost of plain", RT(cudaFreeHost)(plain));
    CODE("register", RT(cudaHostRegister)(plain, (size_t)4096, 0u));
    CODE("register twice", RT(cudaHostRegister)(plain, (size_t)4096, 0u));
    CODE("register overlapping", RT(cudaHostRegister)((char *)plain + 2048, (size_t)4096, 0u));
    CODE("register of 0 bytes", RT(cudaHostRegister)((char *)plain + 4096, (size_t)0, 0u));
    CODE("unregister inside", RT(cudaHostUnregister)((char *)plain + 8));
    CODE("unregister", RT(cudaHostUnregister)(plain));
    CODE("unregister twice", RT(cudaHostUnregister)(plain));
    CODE("hostAlloc of 0", RT(cudaHostAlloc)(&p, (size_t)0, 0u));
    FIGURE("hostAlloc of 0 gives null", p == NULL);
    p = allocate(4 * MIB);
    CODE("attributes of device memory", RT(cudaPointerGetAttributes)(&attributes, (char *)p + 100));
    printf("device type = %d, device = %d, device pointer moves = %d, host pointer null = %d\n", attributes.type,
           attributes.device, attributes.on_device != (char *)p + 100, !attributes.on_host);
    uint64_t base = 0;
    size_t size = 0;
    CODE("range", CU(cuMemGetAddressRange_v2)(&base, &size, (uint64_t)p + 100));
    printf("range offset = %lld, size = %zu\n", (long long)((uint64_t)p - base), size);
    CODE("range of plain", CU(cuMemGetAddressRange_v2)(&base, &size, (uint64_t)plain));
    CODE("copy in a wrong direction", RT(cudaMemcpy)(plain, p, (size_t)8, 9));
    CODE("copy of 0 bytes to null", RT(cudaMemcpy)(NULL, NULL, (size_t)0, 1));
    RT(cudaFree)(p);
    RT(cudaGetLastError)();
    free(plain);
}

static void streams(void) {
    void *stream = NULL, *event = NULL, *plain = NULL;
    float time = 0;
    int priority = 9;
    CODE("stream", RT(cudaStreamCreateWithPriority)(&stream, 1u, -99));
    CODE("priority", RT(cudaStreamGetPriority)(stream, &priority));
    FIGURE("clamped priority", priority);
    CODE("stream flags 5", RT(cudaStreamCreateWithFlags)(&plain, 5u));
    CODE("event", RT(cudaEventCreate)(&event));
    CODE("event without timing", RT(cudaEventCreateWithFlags)(&plain, 2u));
    CODE("query of an event never recorded", RT(cudaEventQuery)(event));
    CODE("wait for an event never recorded", RT(cudaStreamWaitEvent)(stream, event, 0u));
    CODE("time of events never recorded", RT(cudaEventElapsedTime)(&time, event, event));
    RT(cudaEventRecord)(event, stream);
    RT(cudaEventRecord)(plain, stream);
    RT(cudaStreamSynchronize)(stream);
    CODE("time", RT(cudaEventElapsedTime)(&time, event, event));
    CODE("time without timing", RT(cudaEventElapsedTime)(&time, event, plain));
    CODE("destroy null stream", RT(cudaStreamDestroy)(NULL));
    CODE("destroy null event", RT(cudaEventDestroy)(NULL));
    CODE("query of a null event", RT(cudaEventQuery)(NULL));
    CODE("destroy event", RT(cudaEventDestroy)(event));
    CODE("destroy stream", RT(cudaStreamDestroy)(stream));
    RT(cudaEventDestroy)(plain);
    RT(cudaGetLastError)();
}

/* Begins a capture, makes one call that it may not survive, and shows both codes. */
static void *capture_stream;
static void *finish_capture(const char *text, int code) {
    void *graph = NULL;
    int status = 0;
    RT(cudaGetLastError)();
    RT(cudaStreamIsCapturing)(capture_stream, &status);
    printf("in capture, %s = %d, then status = %d", text, code, status);
    printf(", end = %d\n", RT(cudaStreamEndCapture)(capture_stream, &graph));
    RT(cudaGetLastError)();
    return graph;
}
#define IN_CAPTURE(mode, text, call) \
    (RT(cudaStreamBeginCapture)(capture_stream, mode), finish_capture(text, call))

static void captures(void) {
    void *side = NULL, *event = NULL, *before = NULL, *graph = NULL, *p = NULL, *device = allocate(2 * MIB);
    void *pinned = aligned_alloc(4096, 4096);
    char attributes[128];
    size_t count = 0;
    char host[8];
    RT(cudaStreamCreateWithFlags)(&capture_stream, 1u);
    RT(cudaStreamCreateWithFlags)(&side, 1u);
    RT(cudaEventCreate)(&event);
    RT(cudaEventCreate)(&before);
    RT(cudaEventRecord)(before, side);
    CODE("begin on the default stream", RT(cudaStreamBeginCapture)(NULL, 0));
    CODE("end without begin", RT(cudaStreamEndCapture)(capture_stream, &graph));
    IN_CAPTURE(0, "begin again", RT(cudaStreamBeginCapture)(capture_stream, 0));
    IN_CAPTURE(0, "malloc", RT(cudaMalloc)(&p, 2 * MIB));
    IN_CAPTURE(1, "malloc, thread-local", RT(cudaMalloc)(&p, 2 * MIB));
    IN_CAPTURE(2, "malloc, relaxed", RT(cudaMalloc)(&p, 2 * MIB));
    IN_CAPTURE(0, "free", RT(cudaFree)(p));
    IN_CAPTURE(0, "create physical", CU(cuMemCreate)((uint64_t *)&p, 2 * MIB, properties, (unsigned long long)0));
    IN_CAPTURE(0, "hostAlloc", RT(cudaHostAlloc)(&p, (size_t)8, 0u));
    IN_CAPTURE(0, "malloc of 0", RT(cudaMalloc)(&p, (size_t)0));
    IN_CAPTURE(0, "free of null", RT(cudaFree)(NULL));
    IN_CAPTURE(0, "hostRegister", RT(cudaHostRegister)(pinned, (size_t)4096, 0u));
    IN_CAPTURE(0, "hostUnregister", RT(cudaHostUnregister)(pinned));
    IN_CAPTURE(0, "pointer attributes", RT(cudaPointerGetAttributes)(attributes, device));
    IN_CAPTURE(0, "create a stream", RT(cudaStreamCreateWithFlags)(&p, 1u));
    IN_CAPTURE(0, "destroy a stream", RT(cudaStreamDestroy)(p));
    IN_CAPTURE(0, "create an event", RT(cudaEventCreate)(&p));
    IN_CAPTURE(0, "destroy an event", RT(cudaEventDestroy)(p));
    IN_CAPTURE(0, "trim the pool", (RT(cudaDeviceGetDefaultMemPool)(&p, 0), RT(cudaMemPoolTrimTo)(p, (size_t)0)));
    IN_CAPTURE(0, "mallocAsync elsewhere", RT(cudaMallocAsync)(&p, 2 * MIB, side));
    IN_CAPTURE(0, "freeAsync elsewhere", RT(cudaFreeAsync)(p, side));
    IN_CAPTURE(0, "set device", RT(cudaSetDevice)(0));
    IN_CAPTURE(0, "query the default stream", RT(cudaStreamQuery)(NULL));
    IN_CAPTURE(0, "memset on the default stream", RT(cudaMemsetAsync)(device, 0, (size_t)8, NULL));
    IN_CAPTURE(0, "memset and wait", RT(cudaMemset)(device, 0, (size_t)8));
    IN_CAPTURE(0, "record on the default stream", RT(cudaEventRecord)(before, NULL));
    IN_CAPTURE(0, "memGetInfo", (free_bytes(), RT(cudaGetLastError)()));
    IN_CAPTURE(0, "synchronize the device", RT(cudaDeviceSynchronize)());
    IN_CAPTURE(0, "synchronize the stream", RT(cudaStreamSynchronize)(capture_stream));
    IN_CAPTURE(0, "synchronize another stream", RT(cudaStreamSynchronize)(side));
    IN_CAPTURE(0, "query the stream", RT(cudaStreamQuery)(capture_stream));
    IN_CAPTURE(0, "query another stream", RT(cudaStreamQuery)(side));
    IN_CAPTURE(0, "query an event from before", RT(cudaEventQuery)(before));
    IN_CAPTURE(2, "query an event from before, relaxed", RT(cudaEventQuery)(before));
    IN_CAPTURE(0, "synchronize an event from before", RT(cudaEventSynchronize)(before));
    IN_CAPTURE(0, "wait for an event from before", RT(cudaStreamWaitEvent)(capture_stream, before, 0u));
    IN_CAPTURE(0, "copy and wait", RT(cudaMemcpy)(host, device, (size_t)8, 2));
    IN_CAPTURE(0, "record and query an event",
               (RT(cudaEventRecord)(event, capture_stream), RT(cudaEventQuery)(event)));
    IN_CAPTURE(2, "record and query an event, relaxed",
               (RT(cudaEventRecord)(event, capture_stream), RT(cudaEventQuery)(event)));
    IN_CAPTURE(2, "fork without join",
               (RT(cudaEventRecord)(event, capture_stream), RT(cudaStreamWaitEvent)(side, event, 0u),
                RT(cudaMemsetAsync)(device, 0, (size_t)8, side)));
    IN_CAPTURE(0, "fork and join",
               (RT(cudaEventRecord)(event, capture_stream), RT(cudaStreamWaitEvent)(side, event, 0u),
                RT(cudaMemsetAsync)(device, 0, (size_t)8, side), RT(cudaEventRecord)(event, side),
                RT(cudaStreamWaitEvent)(capture_stream, event, 0u)));
    IN_CAPTURE(0, "end in another stream",
               (RT(cudaEventRecord)(event, capture_stream), RT(cudaStreamWaitEvent)(side, event, 0u),
                RT(cudaStreamEndCapture)(side, &graph)));
    IN_CAPTURE(0, "mallocAsync", RT(cudaMallocAsync)(&p, 2 * MIB, capture_stream));
    graph = IN_CAPTURE(0, "three nodes",
                       (RT(cudaMemsetAsync)(device, 0, (size_t)8, capture_stream),
                        RT(cudaMemsetAsync)(device, 1, (size_t)8, capture_stream),
                        RT(cudaMemcpyAsync)(device, host, (size_t)8, 1, capture_stream)));
    CODE("nodes", RT(cudaGraphGetNodes)(graph, NULL, &count));
    FIGURE("node count", count);
    void *executable = NULL;
    CODE("instantiate", RT(cudaGraphInstantiate)(&executable, graph, (unsigned long long)0));
    CODE("launch", RT(cudaGraphLaunch)(executable, capture_stream));
    RT(cudaStreamSynchronize)(capture_stream);
    CODE("destroy executable", RT(cudaGraphExecDestroy)(executable));
    CODE("destroy graph", RT(cudaGraphDestroy)(graph));
    RT(cudaStreamCreateWithFlags)(&capture_stream, 0u);
    IN_CAPTURE(0, "blocking: memset on the default stream", RT(cudaMemsetAsync)(device, 0, (size_t)8, NULL));
    IN_CAPTURE(0, "blocking: copy and wait", RT(cudaMemcpy)(host, device, (size_t)8, 2));
    IN_CAPTURE(0, "blocking: memset elsewhere", RT(cudaMemsetAsync)(device, 0, (size_t)8, side));
    CODE("instantiate nothing", RT(cudaGraphInstantiate)(&executable, NULL, (unsigned long long)0));
    RT(cudaGetLastError)();
    free(pinned);
}

static void device_figures(void) {
    char properties_13[1024];
    int value = 0, least = 9, greatest = 9;
    for (int i = 1; i <= 147; i++) {
        int code = RT(cudaDeviceGetAttribute)(&value, i, 0);
        printf("attribute %d = %d, code %d\n", i, code ? 0 : value, code);
    }
    RT(cudaGetLastError)();
    RT(cudaDeviceGetStreamPriorityRange)(&least, &greatest);
    printf("stream priorities = %d to %d\n", least, greatest);
    memset(properties_13, 0, sizeof properties_13);
    RT(cudaGetDeviceProperties)(properties_13, 0);
    for (size_t at = 304; at < 760; at += 4) {
        memcpy(&value, properties_13 + at, 4);
        if (value)
            printf("property at %zu = %d\n", at, value);
    }
}

/* Calls after which a real driver may not be trusted any more. */
static void risky(void) {
    uint64_t handle = 0;
    CODE("release handle 0", CU(cuMemRelease)((uint64_t)0));
    CU(cuMemCreate)(&handle, 2 * MIB, properties, (unsigned long long)0);
    CODE("release once", CU(cuMemRelease)(handle));
    CODE("release twice", CU(cuMemRelease)(handle));
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"figures", device_figures}, {"errors", errors},   {"accounting", accounting}, {"addresses", addresses},
    {"reservations", reservations}, {"mappings", mappings}, {"unmappings", unmappings}, {"pools", pools},     {"host", host_memory},      {"streams", streams},
    {"captures", captures},      {"risky", risky},
};

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s LIBCUDART LIBCUDA PART\n", argv[0]);
        return 2;
    }
    runtime = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    driver = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
    if (!runtime || !driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    RT(cudaSetDevice)(0);
    RT(cudaFree)(NULL);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, argv[3]))
            parts[i].run();
    return 0;
}
