/* Device attributes by CUDA's numbers. */
#include "device.h"
#include "state.h"

int device_attribute(int device, int attribute) {
    const struct spec *spec = &phantom.spec;
    int cc = spec->major * 10 + spec->minor;
    switch (attribute) {
    case 1: return 1024;          /* threads of a block */
    case 2: case 3: return 1024;  /* block x, y */
    case 4: return 64;            /* block z */
    case 5: return 2147483647;    /* grid x */
    case 6: case 7: return 65535; /* grid y, z */
    case 8: return 49152;         /* shared memory of a block */
    case 9: return 65536;         /* constant memory */
    case 10: return 32;           /* warp */
    case 11: return 2147483647;   /* pitch */
    case 12: return 65536;        /* registers of a block */
    case 13: return spec->clock;
    case 14: return 512;          /* texture alignment */
    case 15: return 1;            /* copies overlap kernels */
    case 16: return spec->sm;
    case 19: return 1;            /* maps host memory */
    case 30: return 512;          /* surface alignment */
    case 31: return 1;            /* concurrent kernels */
    case 32: return spec->ecc;
    case 33: return spec_bus_number(spec->visible[device]);
    case 36: return spec->memory_clock;
    case 37: return spec->bus;
    case 38: return spec->l2;
    case 39: return spec->threads_per_sm;
    case 40: return 3;            /* copy engines */
    case 41: return 1;            /* unified addressing */
    case 51: return 32;           /* texture pitch alignment */
    case 75: return spec->major;
    case 76: return spec->minor;
    case 78: return 1;            /* stream priorities */
    case 79: case 80: return 1;   /* L1 caches */
    case 81: return spec->smem_sm;
    case 82: return 65536;        /* registers of a multiprocessor */
    case 83: return 1;            /* managed memory */
    case 87: return 2;            /* single to double speed */
    case 89: return 1;            /* concurrent managed access */
    case 90: return 1;            /* preemption */
    case 91: return 1;            /* registered memory at the host's pointer */
    case 95: case 96: return 1;   /* cooperative launch */
    case 97: return spec->smem_optin;
    case 99: return 1;            /* host registration */
    case 102: return 1;           /* virtual memory management */
    case 106: return spec->blocks_per_sm;
    case 108: return spec->l2 / 8 * 5; /* persisting L2 */
    case 109: return 134217728;   /* access policy window */
    case 111: return cc >= 80 ? 1024 : 0; /* shared memory kept by the system, per block */
    case 113: return 1;           /* read-only host registration */
    case 115: return 1;           /* memory pools */
    case 120: return cc >= 90;    /* cluster launch */
    case 122: case 123: return 1; /* stream memory operations */
    case 126: return cc >= 90 ? 4 : 1; /* memory synchronisation domains */
    case 127: return cc >= 90;    /* tensor maps */
    case 129: return 1;           /* unified function pointers */
    case 131: return -1;          /* host NUMA node: unknown */
    default: return 0;
    }
}

static int get(int *out, int attribute, int device) {
    if (!out || attribute < 1 || attribute > 255)
        return INVALID_VALUE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    *out = device_attribute(device, attribute);
    return SUCCESS;
}

PHANTOM_API int cudaDeviceGetAttribute(int *out, int attribute, int device) {
    return RUNTIME(get(out, attribute, device));
}

PHANTOM_API int cuDeviceGetAttribute(int *out, int attribute, int device) {
    return DRIVER(get(out, attribute, device));
}
