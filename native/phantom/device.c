/* Devices: how many, which is current, how they are called, who may reach whom. */
#include "device.h"

#include "capture.h"
#include "memory.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void device_bus_id(int physical, char text[BUS_ID_BYTES]) {
    snprintf(text, BUS_ID_BYTES, "0000:%02x:00.0", spec_bus_number(physical) & 0xff);
}

int device_by_bus_id(const char *text) {
    const char *colon = strchr(text, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
    long bus = strtol(second ? colon + 1 : text, NULL, 16);
    for (int i = 0; colon && i < phantom.spec.count; i++)
        if (spec_bus_number(phantom.spec.visible[i]) == bus)
            return i;
    return -1;
}

static int count(int *out) {
    if (!out)
        return INVALID_VALUE;
    *out = phantom.spec.count;
    return phantom.spec.count ? SUCCESS : NO_DEVICE;
}

static int select_device(int device) {
    if (!phantom.spec.count)
        return NO_DEVICE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    current_device = device;
    device_touch(device_now());
    return SUCCESS;
}

static int give(int *out, int device, int value) {
    if (!out)
        return INVALID_VALUE;
    *out = value;
    return device_exists(device) ? SUCCESS : INVALID_DEVICE;
}

static int bus_id(char *out, int room, int device) {
    char text[BUS_ID_BYTES];
    if (!device_exists(device))
        return INVALID_DEVICE;
    device_bus_id(phantom.spec.visible[device], text);
    if (!out || room < (int)strlen(text) + 1)
        return INVALID_VALUE;
    strcpy(out, text);
    return SUCCESS;
}

static int by_bus_id(int *out, const char *text) {
    int device = text ? device_by_bus_id(text) : -1;
    if (!out || device < 0)
        return out && text ? INVALID_DEVICE : INVALID_VALUE;
    *out = device;
    return SUCCESS;
}

static int can_access(int *out, int device, int peer) {
    if (!device_exists(device) || !device_exists(peer))
        return INVALID_DEVICE;
    return give(out, device, device != peer && phantom.spec.peer);
}

static int set_access(int peer, bool enable) {
    if (!device_exists(peer))
        return INVALID_DEVICE;
    if (peer == current_device || !phantom.spec.peer)
        return PEER_ACCESS_UNSUPPORTED;
    uint64_t bit = (uint64_t)1 << peer;
    bool enabled = device_now()->peers & bit;
    if (enabled == enable)
        return enable ? PEER_ACCESS_ALREADY_ENABLED : PEER_ACCESS_NOT_ENABLED;
    device_now()->peers ^= bit;
    return SUCCESS;
}

static int name(char *out, int room, int device) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    if (!out || room <= 0)
        return INVALID_VALUE;
    snprintf(out, (size_t)room, "%s", phantom.spec.name);
    return SUCCESS;
}

static int uuid(unsigned char *out, int device) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    spec_uuid_bytes(phantom.spec.visible[device], out);
    return SUCCESS;
}

static int total(size_t *out, int device) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    *out = phantom.spec.total;
    return SUCCESS;
}

PHANTOM_API int cudaGetDeviceCount(int *out) {
    return RUNTIME(count(out));
}

PHANTOM_API int cudaGetDevice(int *out) {
    return RUNTIME(phantom.spec.count ? give(out, current_device, current_device) : NO_DEVICE);
}

PHANTOM_API int cudaSetDevice(int device) {
    return RUNTIME(select_device(device));
}

PHANTOM_API int cudaInitDevice(int device, unsigned flags, unsigned more) {
    (void)flags, (void)more;
    return RUNTIME(device_exists(device) ? (device_touch(&phantom.device[device]), SUCCESS) : INVALID_DEVICE);
}

PHANTOM_API int cudaGetDeviceFlags(unsigned *out) {
    return RUNTIME(give((int *)out, current_device, (int)device_now()->flags));
}

PHANTOM_API int cudaSetDeviceFlags(unsigned flags) {
    return RUNTIME((device_now()->flags = flags, SUCCESS));
}

PHANTOM_API int cudaDeviceGetPCIBusId(char *out, int room, int device) {
    return RUNTIME(bus_id(out, room, device));
}

PHANTOM_API int cudaDeviceGetByPCIBusId(int *out, const char *text) {
    return RUNTIME(by_bus_id(out, text));
}

PHANTOM_API int cudaDeviceCanAccessPeer(int *out, int device, int peer) {
    return RUNTIME(can_access(out, device, peer));
}

PHANTOM_API int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    (void)flags;
    return RUNTIME(set_access(peer, true));
}

PHANTOM_API int cudaDeviceDisablePeerAccess(int peer) {
    return RUNTIME(set_access(peer, false));
}

PHANTOM_API int cudaDeviceGetLimit(size_t *out, int limit) {
    (void)limit;
    if (!out)
        return remember(INVALID_VALUE);
    *out = 1024;
    return SUCCESS;
}

PHANTOM_API int cudaDeviceSetLimit(int limit, size_t value) {
    (void)limit, (void)value;
    return SUCCESS;
}

PHANTOM_API int cuDeviceGetCount(int *out) {
    return DRIVER(out ? (*out = phantom.spec.count, SUCCESS) : INVALID_VALUE);
}

PHANTOM_API int cuDeviceGet(int *out, int ordinal) {
    return DRIVER(give(out, ordinal, ordinal));
}

PHANTOM_API int cuDeviceGetName(char *out, int room, int device) {
    return DRIVER(name(out, room, device));
}

PHANTOM_API int cuDeviceGetUuid_v2(unsigned char *out, int device) {
    return DRIVER(out ? uuid(out, device) : INVALID_VALUE);
}

PHANTOM_API int cuDeviceGetUuid(unsigned char *out, int device) {
    return cuDeviceGetUuid_v2(out, device);
}

PHANTOM_API int cuDeviceTotalMem_v2(size_t *out, int device) {
    return DRIVER(out ? total(out, device) : INVALID_VALUE);
}

PHANTOM_API int cuDeviceGetPCIBusId(char *out, int room, int device) {
    return DRIVER(bus_id(out, room, device));
}

PHANTOM_API int cuDeviceGetByPCIBusId(int *out, const char *text) {
    return DRIVER(by_bus_id(out, text));
}

PHANTOM_API int cuDeviceCanAccessPeer(int *out, int device, int peer) {
    return DRIVER(can_access(out, device, peer));
}
