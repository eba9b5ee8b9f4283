/* NVML: the machine's devices, whatever CUDA_VISIBLE_DEVICES hides, this process on them, and another one. */
#include "device.h"
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

/* A handle is the physical index plus one. */
static int index_of(const void *handle) {
    int index = (int)(uintptr_t)handle - 1;
    return index >= 0 && index < phantom.spec.physical ? index : -1;
}

static int give_handle(void **out, int index) {
    if (!out || index < 0 || index >= phantom.spec.physical)
        return NVML_INVALID_ARGUMENT;
    *out = (void *)(uintptr_t)(index + 1);
    return NVML_SUCCESS;
}

/* The program's ordinal of a physical device; -1 if the program does not see it. */
static int ordinal_of(int index) {
    for (int i = 0; i < phantom.spec.count; i++)
        if (phantom.spec.visible[i] == index)
            return i;
    return -1;
}

static uint64_t used_on(int index) {
    int ordinal = ordinal_of(index);
    return ordinal < 0 ? 0 : device_used(&phantom.device[ordinal]);
}

static int give_text(char *out, unsigned room, const char *text) {
    if (!out)
        return NVML_INVALID_ARGUMENT;
    if (room < strlen(text) + 1)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

static int give_unsigned(unsigned *out, const void *handle, unsigned value) {
    if (!out || index_of(handle) < 0)
        return NVML_INVALID_ARGUMENT;
    *out = value;
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlInit_v2(void) {
    return DRIVER(NVML_SUCCESS);
}

PHANTOM_API int nvmlInit(void) {
    return nvmlInit_v2();
}

PHANTOM_API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return nvmlInit_v2();
}

PHANTOM_API int nvmlShutdown(void) {
    return NVML_SUCCESS;
}

PHANTOM_API const char *nvmlErrorString(int code) {
    switch (code) {
    case NVML_SUCCESS: return "Success";
    case 1: return "Uninitialized";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

static int count(unsigned *out) {
    if (!out)
        return NVML_INVALID_ARGUMENT;
    *out = (unsigned)phantom.spec.physical;
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetCount_v2(unsigned *out) {
    return DRIVER(count(out));
}

PHANTOM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    return DRIVER(give_handle(out, (int)index));
}

static int handle_by_bus(const char *text, void **out) {
    const char *colon = text ? strchr(text, ':') : NULL;
    unsigned bus = 0;
    if (!colon || sscanf(strchr(colon + 1, ':') ? colon + 1 : text, "%x", &bus) != 1)
        return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < phantom.spec.physical; i++)
        if ((unsigned)spec_bus_number(i) == bus)
            return give_handle(out, i);
    return NVML_NOT_FOUND;
}

PHANTOM_API int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **out) {
    return DRIVER(handle_by_bus(text, out));
}

static int handle_by_uuid(const char *text, void **out) {
    for (int i = 0; text && i < phantom.spec.physical; i++) {
        char uuid[41];
        spec_uuid(i, uuid);
        if (!strcmp(uuid, text))
            return give_handle(out, i);
    }
    return text ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT;
}

PHANTOM_API int nvmlDeviceGetHandleByUUID(const char *text, void **out) {
    return DRIVER(handle_by_uuid(text, out));
}

PHANTOM_API int nvmlDeviceGetIndex(const void *device, unsigned *out) {
    return DRIVER(give_unsigned(out, device, (unsigned)index_of(device)));
}

PHANTOM_API int nvmlDeviceGetMinorNumber(const void *device, unsigned *out) {
    return nvmlDeviceGetIndex(device, out);
}

PHANTOM_API int nvmlDeviceGetName(const void *device, char *out, unsigned room) {
    return DRIVER(index_of(device) < 0 ? NVML_INVALID_ARGUMENT : give_text(out, room, phantom.spec.name));
}

static int uuid(const void *device, char *out, unsigned room) {
    char text[41];
    if (index_of(device) < 0)
        return NVML_INVALID_ARGUMENT;
    spec_uuid(index_of(device), text);
    return give_text(out, room, text);
}

PHANTOM_API int nvmlDeviceGetUUID(const void *device, char *out, unsigned room) {
    return DRIVER(uuid(device, out, room));
}

struct memory_v1 {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

/* NVML counts what the driver keeps for itself: the memory that CUDA does not show. */
static int memory(const void *device, unsigned long long *total, unsigned long long *reserved,
                  unsigned long long *free_bytes, unsigned long long *used) {
    int index = index_of(device);
    if (index < 0)
        return NVML_INVALID_ARGUMENT;
    *total = phantom.spec.nvml_total;
    *reserved = phantom.spec.nvml_total - phantom.spec.total;
    *used = used_on(index) + phantom.spec.others;
    *free_bytes = phantom.spec.total > *used ? phantom.spec.total - *used : 0;
    return NVML_SUCCESS;
}

static int memory_info(const void *device, struct memory_v1 *out) {
    unsigned long long reserved = 0;
    int code = out ? memory(device, &out->total, &reserved, &out->free, &out->used) : NVML_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        out->used += reserved;
    return code;
}

PHANTOM_API int nvmlDeviceGetMemoryInfo(const void *device, struct memory_v1 *out) {
    return DRIVER(memory_info(device, out));
}

static int memory_info_v2(const void *device, struct memory_v2 *out) {
    if (!out)
        return NVML_INVALID_ARGUMENT;
    if (out->version != (sizeof *out | 2u << 24))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    return memory(device, &out->total, &out->reserved, &out->free, &out->used);
}

PHANTOM_API int nvmlDeviceGetMemoryInfo_v2(const void *device, struct memory_v2 *out) {
    return DRIVER(memory_info_v2(device, out));
}

/* A number that Linux gives to no process: its limit. */
enum { OTHER_PID = 1 << 22, MOST_PROCESSES = 2 };

/* The list of processes: the other one, where the spec has one, and this one once it has a context on the device. */
struct process_v1 {
    unsigned pid;
    unsigned long long used;
};

struct process_v3 {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static unsigned list_processes(int index, struct process_v1 list[MOST_PROCESSES]) {
    int ordinal = ordinal_of(index);
    unsigned count = 0;
    if (phantom.spec.others)
        list[count++] = (struct process_v1){OTHER_PID, phantom.spec.others};
    if (ordinal >= 0 && phantom.device[ordinal].context)
        list[count++] = (struct process_v1){(unsigned)getpid(), used_on(index)};
    return count;
}

static int processes(const void *device, unsigned *room, struct process_v1 *out) {
    struct process_v1 list[MOST_PROCESSES];
    int index = index_of(device);
    if (index < 0 || !room)
        return NVML_INVALID_ARGUMENT;
    unsigned fits = *room;
    *room = list_processes(index, list);
    if (*room > fits)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; out && i < *room; i++)
        out[i] = list[i];
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses(const void *device, unsigned *room, struct process_v1 *out) {
    return DRIVER(processes(device, room, out));
}

static int processes_v3(const void *device, unsigned *room, struct process_v3 *out) {
    struct process_v1 list[MOST_PROCESSES];
    int code = processes(device, room, list);
    for (unsigned i = 0; code == NVML_SUCCESS && out && i < *room; i++)
        out[i] = (struct process_v3){list[i].pid, list[i].used, ~0u, ~0u};
    return code;
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v3(const void *device, unsigned *room, struct process_v3 *out) {
    return DRIVER(processes_v3(device, room, out));
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v2(const void *device, unsigned *room, struct process_v3 *out) {
    return DRIVER(processes_v3(device, room, out));
}

PHANTOM_API int nvmlDeviceGetGraphicsRunningProcesses_v3(const void *device, unsigned *room, struct process_v3 *out) {
    (void)out;
    return DRIVER(give_unsigned(room, device, 0));
}

static int system_name(unsigned pid, char *out, unsigned room) {
    if (pid == OTHER_PID && phantom.spec.others)
        return give_text(out, room, "another process");
    return pid == (unsigned)getpid() ? give_text(out, room, "hotbed phantom") : NVML_NOT_FOUND;
}

PHANTOM_API int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned room) {
    return DRIVER(system_name(pid, out, room));
}

PHANTOM_API int nvmlSystemGetDriverVersion(char *out, unsigned room) {
    return DRIVER(give_text(out, room, phantom.spec.driver));
}

PHANTOM_API int nvmlSystemGetNVMLVersion(char *out, unsigned room) {
    char text[64];
    enter();
    snprintf(text, sizeof text, "%d.%s", phantom.spec.cuda / 1000, phantom.spec.driver);
    return leave(give_text(out, room, text));
}

PHANTOM_API int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    return DRIVER(out ? (*out = phantom.spec.cuda, NVML_SUCCESS) : NVML_INVALID_ARGUMENT);
}

PHANTOM_API int nvmlSystemGetCudaDriverVersion(int *out) {
    return nvmlSystemGetCudaDriverVersion_v2(out);
}

struct utilization {
    unsigned gpu, memory;
};

static int utilization(const void *device, struct utilization *out) {
    if (!out || index_of(device) < 0)
        return NVML_INVALID_ARGUMENT;
    *out = (struct utilization){0, 0};
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetUtilizationRates(const void *device, struct utilization *out) {
    return DRIVER(utilization(device, out));
}

static int capability(const void *device, int *major, int *minor) {
    if (!major || !minor || index_of(device) < 0)
        return NVML_INVALID_ARGUMENT;
    *major = phantom.spec.major;
    *minor = phantom.spec.minor;
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetCudaComputeCapability(const void *device, int *major, int *minor) {
    return DRIVER(capability(device, major, minor));
}

struct pci_info {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

static int pci_info(const void *device, struct pci_info *out) {
    int index = index_of(device);
    if (!out || index < 0)
        return NVML_INVALID_ARGUMENT;
    *out = (struct pci_info){.bus = (unsigned)spec_bus_number(index)};
    device_bus_id(index, out->legacy_bus_id);
    memcpy(out->bus_id, "0000", 4);
    memcpy(out->bus_id + 4, out->legacy_bus_id, sizeof out->legacy_bus_id);
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetPciInfo_v3(const void *device, struct pci_info *out) {
    return DRIVER(pci_info(device, out));
}

PHANTOM_API int nvmlDeviceGetMaxMigDeviceCount(const void *device, unsigned *out) {
    return DRIVER(give_unsigned(out, device, 0));
}

PHANTOM_API int nvmlDeviceIsMigDeviceHandle(const void *device, unsigned *out) {
    return DRIVER(give_unsigned(out, device, 0));
}

PHANTOM_API int nvmlDeviceGetMemoryBusWidth(const void *device, unsigned *out) {
    return DRIVER(give_unsigned(out, device, (unsigned)phantom.spec.bus));
}

struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; /* 0: the card is part of no fabric */
    unsigned health_mask;
};

/* torch asks whether allocations could be shared across machines, and warns where the question fails. */
static int fabric(const void *device, struct fabric *out) {
    if (!out || index_of(device) < 0)
        return NVML_INVALID_ARGUMENT;
    unsigned version = out->version >> 24, size = out->version & 0xffffff;
    if ((version != 2 && version != 3) || size < sizeof *out || size > sizeof *out + 4)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    memset((char *)out + sizeof out->version, 0, size - sizeof out->version);
    return NVML_SUCCESS;
}

PHANTOM_API int nvmlDeviceGetGpuFabricInfoV(const void *device, struct fabric *out) {
    return DRIVER(fabric(device, out));
}

/* What this card does not have or cannot measure, in the way that real cards say so: sensors, multi-instance mode,
 * links, counters. */
#define NOT_AVAILABLE(name)                                                                                        \
    PHANTOM_API int name(void) {                                                                                   \
        return NVML_NOT_SUPPORTED;                                                                                 \
    }
NOT_AVAILABLE(nvmlDeviceGetClockInfo)
NOT_AVAILABLE(nvmlDeviceGetCurrPcieLinkGeneration)
NOT_AVAILABLE(nvmlDeviceGetCurrPcieLinkWidth)
NOT_AVAILABLE(nvmlDeviceGetCurrentClocksThrottleReasons)
NOT_AVAILABLE(nvmlDeviceGetDecoderUtilization)
NOT_AVAILABLE(nvmlDeviceGetEccMode)
NOT_AVAILABLE(nvmlDeviceGetEncoderUtilization)
NOT_AVAILABLE(nvmlDeviceGetEnforcedPowerLimit)
NOT_AVAILABLE(nvmlDeviceGetFanSpeed)
NOT_AVAILABLE(nvmlDeviceGetMaxClockInfo)
NOT_AVAILABLE(nvmlDeviceGetMigMode)
NOT_AVAILABLE(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_AVAILABLE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_AVAILABLE(nvmlDeviceGetNvLinkState)
NOT_AVAILABLE(nvmlDeviceGetPcieThroughput)
NOT_AVAILABLE(nvmlDeviceGetPerformanceState)
NOT_AVAILABLE(nvmlDeviceGetPersistenceMode)
NOT_AVAILABLE(nvmlDeviceGetPowerManagementLimit)
NOT_AVAILABLE(nvmlDeviceGetPowerUsage)
NOT_AVAILABLE(nvmlDeviceGetProcessUtilization)
NOT_AVAILABLE(nvmlDeviceGetTemperature)
NOT_AVAILABLE(nvmlDeviceGetTemperatureV)
NOT_AVAILABLE(nvmlDeviceGetTotalEccErrors)
NOT_AVAILABLE(nvmlDeviceGetTotalEnergyConsumption)
