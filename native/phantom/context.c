#include "context.h"

#include "caller.h"
#include "state.h"

/* A context handle names its device; nothing else stands behind it. */
enum { CONTEXT_BASE = 0x1000, CONTEXT_STEP = 0x10, STACK_DEPTH = 16 };

static _Thread_local struct {
    void *contexts[STACK_DEPTH];
    int depth;
} stack;

void *context_of(int device) {
    return (void *)(uintptr_t)(CONTEXT_BASE + CONTEXT_STEP * device);
}

static int device_of(const void *context) {
    uintptr_t offset = (uintptr_t)context - CONTEXT_BASE;
    return offset % CONTEXT_STEP == 0 && offset / CONTEXT_STEP < MAX_DEVICES ? (int)(offset / CONTEXT_STEP) : -1;
}

static void *current_context(void) {
    return device_exists(current_device) && device_now()->context ? context_of(current_device) : NULL;
}

static int set_current(void *context) {
    int device = context ? device_of(context) : current_device;
    if (!device_exists(device))
        return INVALID_CONTEXT;
    current_device = device;
    return SUCCESS;
}

static int get_current(void **out) {
    if (!out)
        return INVALID_VALUE;
    *out = current_context();
    return SUCCESS;
}

static int get_device(int *out) {
    if (!out)
        return INVALID_VALUE;
    if (!current_context())
        return INVALID_CONTEXT;
    *out = current_device;
    return SUCCESS;
}

static int push(void *context) {
    if (stack.depth == STACK_DEPTH)
        return INVALID_VALUE;
    void *before = current_context();
    int code = set_current(context);
    if (code == SUCCESS)
        stack.contexts[stack.depth++] = before;
    return code;
}

static int pop(void **out) {
    if (out)
        *out = current_context();
    return stack.depth ? set_current(stack.contexts[--stack.depth]) : INVALID_CONTEXT;
}

static int retain(void **out, int device) {
    if (!out)
        return INVALID_VALUE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    device_touch(&phantom.device[device]);
    *out = context_of(device);
    return SUCCESS;
}

static int state(int device, unsigned *flags, int *active) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    if (flags)
        *flags = phantom.device[device].flags;
    if (active)
        *active = phantom.device[device].context;
    return SUCCESS;
}

static int set_flags(int device, unsigned flags) {
    if (!device_exists(device))
        return INVALID_DEVICE;
    phantom.device[device].flags = flags;
    return SUCCESS;
}

PHANTOM_API int cuInit(unsigned flags) {
    caller_note(__builtin_return_address(0));
    return DRIVER(flags ? INVALID_VALUE : phantom.spec.count ? SUCCESS : NO_DEVICE);
}

PHANTOM_API int cuCtxGetCurrent(void **out) {
    return DRIVER(get_current(out));
}

PHANTOM_API int cuCtxSetCurrent(void *context) {
    return DRIVER(set_current(context));
}

PHANTOM_API int cuCtxPushCurrent_v2(void *context) {
    return DRIVER(push(context));
}

PHANTOM_API int cuCtxPopCurrent_v2(void **out) {
    return DRIVER(pop(out));
}

PHANTOM_API int cuCtxPushCurrent(void *context) {
    return DRIVER(push(context));
}

PHANTOM_API int cuCtxPopCurrent(void **out) {
    return DRIVER(pop(out));
}

PHANTOM_API int cuCtxGetDevice(int *out) {
    return DRIVER(get_device(out));
}

PHANTOM_API int cuCtxGetLimit(size_t *out, int limit) {
    (void)limit;
    if (!out)
        return INVALID_VALUE;
    *out = 1024;
    return SUCCESS;
}

PHANTOM_API int cuCtxSetLimit(int limit, size_t value) {
    (void)limit, (void)value;
    return SUCCESS;
}

PHANTOM_API int cuDevicePrimaryCtxRetain(void **out, int device) {
    return DRIVER(retain(out, device));
}

PHANTOM_API int cuDevicePrimaryCtxRelease_v2(int device) {
    return DRIVER(device_exists(device) ? SUCCESS : INVALID_DEVICE);
}

PHANTOM_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    return DRIVER(state(device, flags, active));
}

PHANTOM_API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    return DRIVER(set_flags(device, flags));
}

/* The phantom has nothing to log. */
PHANTOM_API int cuLogsRegisterCallback(void *callback, void *data, void **out) {
    (void)callback, (void)data;
    if (out)
        *out = NULL;
    return SUCCESS;
}

PHANTOM_API int cuLogsUnregisterCallback(void *callback) {
    (void)callback;
    return SUCCESS;
}
