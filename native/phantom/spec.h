/* What GPU the phantom is: the figures of HOTBED_PHANTOM_GPU, with those of an H200 where it names none. */
#ifndef HOTBED_PHANTOM_SPEC_H
#define HOTBED_PHANTOM_SPEC_H

#include <stdint.h>

enum { MAX_DEVICES = 64, MAX_GPCS = 24, MAX_CLUSTER = 16, MAX_LAYOUTS = 4 };

/* One way in which the multiprocessors may be spread over GPCs; chips of one model differ. */
struct layout {
    int sms[MAX_GPCS];          /* multiprocessors of each GPC, 0 past the last */
    int clusters[MAX_CLUSTER];  /* how many clusters of 1, 2, ... 16 blocks can be active at once */
};

struct spec {
    char name[96];
    char driver[32];        /* as NVML says it, e.g. 580.95.05 */
    uint64_t total;         /* bytes as cudaMemGetInfo gives them */
    uint64_t nvml_total;    /* bytes as NVML gives them */
    uint64_t context;       /* bytes that a process takes by touching a device */
    uint64_t others;        /* bytes of each device that another process holds */
    int cuda;               /* 1000 * major + 10 * minor of the driver */
    int major, minor;       /* compute capability */
    int sm;                 /* multiprocessors */
    int threads_per_sm, blocks_per_sm;
    int l2, smem_sm, smem_optin;
    int bus;                /* memory bus, bits */
    int clock, memory_clock; /* kHz */
    int ecc, peer;
    int behind;             /* not 0: the GPU works only while the program waits for it */
    int physical;           /* devices in the machine; CUDA_VISIBLE_DEVICES picks among them */
    int count;              /* devices that the program sees */
    int visible[MAX_DEVICES]; /* program's ordinal -> physical index */
    struct layout layout[MAX_LAYOUTS]; /* the likely one first */
    int layouts;
};

/* Reads HOTBED_PHANTOM_GPU, HOTBED_PHANTOM_COUNT and CUDA_VISIBLE_DEVICES. */
void spec_read(struct spec *spec);

/* "GPU-…" of a physical device, 40 characters and the end, and the 16 bytes it is the text of. */
void spec_uuid(int physical, char text[41]);
void spec_uuid_bytes(int physical, unsigned char bytes[16]);

/* PCI bus number of a physical device; domain and device are 0. */
int spec_bus_number(int physical);

#endif
