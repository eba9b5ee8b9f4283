/* Calls in random order with random handles, dead ones and numbers that never were any: nothing may crash, and what
 * the device has in use is what the live allocations say. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphNodeGetType(void *node, int *type);
int cuStreamGetCtx(void *stream, void **out);
int cudaPointerGetAttributes(void *out, const void *address);
int cudaMallocHost(void **out, size_t size);
int cuMemRetainAllocationHandle(uint64_t *out, void *address);

enum { VALUES = 64, STEPS = 200000 };

static uint64_t values[VALUES];

static uint64_t any(void) {
    return values[rand() % VALUES];
}

static void *any_pointer(void) {
    return (void *)any();
}

static uint64_t *somewhere(void) {
    return &values[8 + rand() % (VALUES - 8)];
}

static void step(void) {
    char attributes[128];
    int number = 0;
    size_t count = 0, size = (size_t)(rand() % 40) * MIB / 4;
    if (rand() % 20 == 0)
        size = any();
    switch (rand() % 34) {
    case 0: cudaMalloc((void **)somewhere(), size); break;
    case 1: cudaFree(any_pointer()); break;
    case 2: cudaMallocAsync((void **)somewhere(), size, any_pointer()); break;
    case 3: cudaFreeAsync(any_pointer(), any_pointer()); break;
    case 4: cudaStreamCreateWithFlags((void **)somewhere(), (unsigned)(rand() % 2)); break;
    case 5: cudaStreamDestroy(any_pointer()); break;
    case 6: cudaStreamSynchronize(any_pointer()); break;
    case 7: cudaStreamWaitEvent(any_pointer(), any_pointer(), 0); break;
    case 8: cudaStreamBeginCapture(any_pointer(), rand() % 4); break;
    case 9: cudaStreamEndCapture(any_pointer(), (void **)somewhere()); break;
    case 10: cudaEventCreateWithFlags((void **)somewhere(), 2); break;
    case 11: cudaEventDestroy(any_pointer()); break;
    case 12: cudaEventRecord(any_pointer(), any_pointer()); break;
    case 13: cudaEventQuery(any_pointer()); break;
    case 14: cudaEventSynchronize(any_pointer()); break;
    case 15: cudaMemsetAsync((void *)0x400000000000, 0, 8, any_pointer()); break;
    case 16: cudaGraphDestroy(any_pointer()); break;
    case 17: cudaGraphInstantiate((void **)somewhere(), any_pointer(), 0); break;
    case 18: cudaGraphExecDestroy(any_pointer()); break;
    case 19: cudaGraphLaunch(any_pointer(), any_pointer()); break;
    case 20: cudaGraphGetNodes(any_pointer(), NULL, &count); break;
    case 21: cudaGraphNodeGetType(any_pointer(), &number); break;
    case 22: cudaPointerGetAttributes(attributes, any_pointer()); break;
    case 23: cudaMallocHost((void **)somewhere(), size % (rand() % 9 ? 8192 : SIZE_MAX)); break;
    case 24: cudaFreeHost(any_pointer()); break;
    case 25: cuMemAddressReserve(somewhere(), size, rand() % 8 ? 0 : any(), 0, 0); break;
    case 26: cuMemAddressFree(any(), size); break;
    case 27: cuMemCreate(somewhere(), size, (const int[8]){1, 0, 1, 0}, 0); break;
    case 28: cuMemRelease(any()); break;
    case 29: cuMemMap(any(), size, 0, any(), 0); break;
    case 30: cuMemUnmap(any(), size); break;
    case 31: cuMemRetainAllocationHandle(somewhere(), any_pointer()); break;
    case 32: phantom_hold_events(rand() % 2); break;
    case 33: phantom_release_event(any(), any() % 1000); break;
    }
}

int main(void) {
    const uint64_t odd[8] = {0, 1, 2, 0x1234, 0x10000, UINT64_MAX, (uint64_t)1 << 63, 0x100000000000};
    size_t available = 0, total = 0;
    uint64_t counters[PHANTOM_COUNTERS];
    srand(5);
    for (int i = 0; i < 8; i++)
        values[i] = odd[i];
    for (int i = 0; i < STEPS; i++)
        step();
    CHECK_EQUAL(cuStreamGetCtx(NULL, NULL), 1);
    CHECK_EQUAL(cudaMemGetInfo(&available, &total), 0);
    phantom_counters(0, counters, PHANTOM_COUNTERS);
    CHECK_EQUAL(total - available, counters[PHANTOM_USED_BYTES]);
    CHECK(counters[PHANTOM_MISUSE] > STEPS / 10);
    CHECK(counters[PHANTOM_MALLOC] > counters[PHANTOM_FREE]);
    return 0;
}
