/* Memory that another process holds: it is not free, cannot be taken, and NVML names its owner. */
#define _DEFAULT_SOURCE /* setenv */
#include "check.h"
#include "cuda.h"

#include <stdlib.h>
#include <unistd.h>

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

struct memory {
    unsigned long long total, free, used;
};

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetMemoryInfo(const void *device, struct memory *out);
int nvmlDeviceGetComputeRunningProcesses_v3(const void *device, unsigned *room, struct process *out);

static void it_is_not_free(void) {
    size_t available = 0, total = 0;
    void *p = NULL;
    CHECK_EQUAL(cudaMemGetInfo(&available, &total), 0);
    CHECK_EQUAL(total, 100 * MIB);
    CHECK_EQUAL(available, 40 * MIB);
    CHECK_EQUAL(cudaMalloc(&p, 50 * MIB), 2);
    CHECK_EQUAL(cudaMalloc(&p, 10 * MIB), 0);
    CHECK_EQUAL(cudaMemGetInfo(&available, &total), 0);
    CHECK_EQUAL(available, 30 * MIB);
}

static void nvml_names_both(void) {
    enum { INSUFFICIENT_SIZE = 7 };
    void *device = NULL;
    struct process list[4];
    struct memory memory;
    unsigned room = 1;
    CHECK_EQUAL(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    CHECK_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, list), INSUFFICIENT_SIZE);
    CHECK_EQUAL(room, 2);
    CHECK_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, list), 0);
    CHECK_EQUAL(list[0].used, 60 * MIB);
    CHECK(list[0].pid != (unsigned)getpid());
    CHECK_EQUAL(list[1].pid, getpid());
    CHECK_EQUAL(list[1].used, 10 * MIB);
    CHECK_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), 0);
    CHECK_EQUAL(memory.used, 70 * MIB);
    CHECK_EQUAL(memory.free, 30 * MIB);
}

int main(void) {
    setenv("HOTBED_PHANTOM_GPU", "total=104857600;others=62914560", 1);
    it_is_not_free();
    nvml_names_both();
    return 0;
}
