/* phantom.h: what hotbed calls. */
#include "state.h"

PHANTOM_API int phantom_abi(void) {
    return PHANTOM_ABI;
}

static int counters(int device, uint64_t *out, int n) {
    for (int i = 0; out && device_exists(device) && i < n && i < PHANTOM_COUNTERS; i++)
        out[i] = phantom.device[device].counter[i];
    return PHANTOM_COUNTERS;
}

PHANTOM_API int phantom_counters(int device, uint64_t *out, int n) {
    return DRIVER(counters(device, out, n));
}

static int set_total(uint64_t total) {
    if (phantom.allocated || !total)
        return -1;
    phantom.spec.total = phantom.spec.nvml_total = total;
    return 0;
}

PHANTOM_API int phantom_set_total(uint64_t total) {
    return DRIVER(set_total(total));
}

PHANTOM_API void phantom_set_address_rule(int rule) {
    DRIVER((phantom.addresses.rule = rule, SUCCESS));
}

PHANTOM_API void phantom_set_recorded_segments(const uint64_t *addresses, const uint64_t *sizes, int n) {
    DRIVER((address_record(&phantom.addresses, addresses, sizes, n), SUCCESS));
}
