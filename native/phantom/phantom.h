/* Control interface of the phantom GPU: what hotbed, not torch, calls. Every function is thread-safe unless it
 * says otherwise. Addresses and sizes are bytes. */
#ifndef HOTBED_PHANTOM_H
#define HOTBED_PHANTOM_H

#include <stdint.h>

#define PHANTOM_ABI 2

/* Counters of one device. The order is part of the ABI: append only. */
enum phantom_counter {
    PHANTOM_MALLOC,          /* cudaMalloc that succeeded */
    PHANTOM_FREE,            /* cudaFree of a live address */
    PHANTOM_CREATE,          /* cuMemCreate that succeeded */
    PHANTOM_RELEASE,         /* cuMemRelease */
    PHANTOM_MAP,             /* cuMemMap */
    PHANTOM_UNMAP,           /* cuMemUnmap */
    PHANTOM_SET_ACCESS,      /* cuMemSetAccess */
    PHANTOM_RESERVE,         /* cuMemAddressReserve */
    PHANTOM_ADDRESS_FREE,    /* cuMemAddressFree */
    PHANTOM_MALLOC_ASYNC,    /* cudaMallocAsync, cudaMallocFromPoolAsync */
    PHANTOM_FREE_ASYNC,      /* cudaFreeAsync */
    PHANTOM_HOST_ALLOC,      /* cudaHostAlloc, cudaMallocHost */
    PHANTOM_HOST_FREE,       /* cudaFreeHost */
    PHANTOM_OOM,             /* device requests refused for lack of memory */
    PHANTOM_MISUSE,          /* double free, unknown address, unmap of what is not mapped, ... */
    PHANTOM_DEVICE_SYNC,     /* cudaDeviceSynchronize, cuCtxSynchronize */
    PHANTOM_EVENT_SYNC,      /* cudaEventSynchronize */
    PHANTOM_STREAM_SYNC,     /* cudaStreamSynchronize */
    PHANTOM_USED_BYTES,      /* device bytes in use now */
    PHANTOM_PEAK_USED_BYTES, /* most device bytes in use at any time */
    PHANTOM_MALLOC_BYTES,    /* sum over cudaMalloc */
    PHANTOM_FREE_BYTES,      /* sum over cudaFree */
    PHANTOM_CREATE_BYTES,    /* sum over cuMemCreate */
    PHANTOM_HOST_BYTES,      /* pinned host bytes in use now */
    PHANTOM_RESERVE_BYTES,   /* sum over cuMemAddressReserve */
    PHANTOM_COUNTERS         /* how many there are */
};

/* How new device addresses are chosen. */
enum phantom_address_rule {
    PHANTOM_ASCENDING = 0,  /* each above the one before, never reused */
    PHANTOM_DESCENDING = 1, /* each below the one before, never reused */
    PHANTOM_DRIVER = 2      /* like driver 580 on H200: 32 MiB slots (4 MiB for a lone 2 MiB request), top down,
                               left-over parts of slots reused lowest address first */
};

int phantom_abi(void);

/* Copies up to `n` counters of `device` to `out`; returns PHANTOM_COUNTERS. */
int phantom_counters(int device, uint64_t *out, int n);

/* Sets the total memory of every device. Only before the first allocation. Returns 0, or -1 if too late. */
int phantom_set_total(uint64_t total_bytes);

void phantom_set_address_rule(int rule);

/* Recorded segments: while cudaMalloc is asked for exactly these sizes in this order it returns these addresses;
 * from the first difference on, the driver rule takes over, placed below the lowest address handed out.
 * The arrays are copied. */
void phantom_set_recorded_segments(const uint64_t *addresses, const uint64_t *sizes, int n);

/* 1: events recorded from now on stay "not ready" until released; 0: events are ready at once (the default). */
void phantom_hold_events(int hold);

/* The event recorded last by the calling thread (0: none) and its sequence number: one event object may be
 * recorded again, and a release must not touch the later recording. */
uint64_t phantom_last_event(uint64_t *sequence);
void phantom_release_event(uint64_t event, uint64_t sequence);

/* Runs the plain ops [begin, end): op i allocates sizes[i] bytes as allocation ids[i], or frees that allocation
 * when sizes[i] is 0. `allocate` and `release` are torch's aoti_torch_cuda_caching_allocator_raw_alloc and
 * ..._raw_delete, which return 0 on success. Returns the index of the first op that failed, or `end`. */
typedef int32_t (*phantom_allocate_fn)(uint64_t size, void **pointer);
typedef int32_t (*phantom_release_fn)(void *pointer);
int64_t phantom_drive(const int32_t *ids, const int64_t *sizes, int64_t begin, int64_t end, void **pointers,
                      phantom_allocate_fn allocate, phantom_release_fn release);

/* CUDA libraries that have a stand-in, and things like them that cost a real process memory. The order is part of the
 * ABI: append only. */
enum phantom_library {
    PHANTOM_KERNELS, /* kernel launches of all kinds */
    PHANTOM_MODULES, /* code loaded at run time: cuModuleLoadData, cuLibraryLoadData (Triton, NVRTC users) */
    PHANTOM_CUBLAS,
    PHANTOM_CUBLASLT,
    PHANTOM_CUDNN,
    PHANTOM_CUSOLVER,
    PHANTOM_CUSPARSE,
    PHANTOM_CUSPARSELT,
    PHANTOM_CUFFT,
    PHANTOM_CURAND,
    PHANTOM_NVRTC,
    PHANTOM_NCCL,
    PHANTOM_CUBLAS_HANDLES, /* made so far, not calls */
    PHANTOM_CUDNN_HANDLES,
    PHANTOM_STREAMS,
    PHANTOM_LIBRARIES /* how many there are */
};

/* Copies up to `n` call counts, by enum phantom_library, to `out`; returns PHANTOM_LIBRARIES. */
int phantom_libraries(uint64_t *out, int n);

enum { PHANTOM_ALTERNATIVES = 3 };

/* Device memory that the program lent to a library for one call or until further notice. `bytes` may be 0, with no
 * address to speak of: then the call needed no workspace, but would have under another layout. An alternative that
 * there is no layout for equals `bytes`. */
struct phantom_workspace {
    uint64_t address, bytes;
    uint64_t alternative_bytes[PHANTOM_ALTERNATIVES]; /* what the call would have wanted under the other GPC layouts */
    int64_t unix_us;                                  /* when, microseconds since 1970 */
    int32_t library, device;
};

/* Copies entries [from, from + n) of the log of workspaces to `out`; returns how many the log has. */
int64_t phantom_workspaces(struct phantom_workspace *out, int64_t from, int64_t n);

/* Sentences that lower the confidence in this run, each once: "cuDNN 9.99: ..."; NULL past the end. */
int phantom_remark_count(void);
const char *phantom_remark(int index);

/* Reads of device memory, which has no content. Bytes are certain where the host wrote them and no kernel or library
 * has run since; anything else is answered by, in this order, what phantom_hand_answers() gave for the call in
 * progress, what phantom_answer_reads() gave for the whole run, and zeros.
 *
 * Writes `note` and ends the process with exit status 77 at the first uncertain read; NULL: never. 0, or -1 without
 * host memory. */
int phantom_stop_at_uncertain_read(const char *note);

/* 1: from now on every read is logged. */
void phantom_log_reads(int on);

/* One read. Threads are numbered from 0 by their first read; `stored` is `size`, or 0 if every byte read was zero. */
struct phantom_read {
    int32_t thread, certain;
    uint64_t size, stored;
};

/* The log: for each thread in turn its reads in order, each a struct phantom_read and the stored bytes after it.
 * Copies it to `out` as far as whole entries fit, returns its size in bytes. */
int64_t phantom_read_log(void *out, int64_t room);

/* Answers the n-th read of each thread as the n-th one in a log. 0, or -1 if that is no log. */
int phantom_answer_reads(const void *log, int64_t size);

enum { PHANTOM_ANSWERS = 16 };

/* Answer to one read of the calling thread. The read has this size, or, for a `number` (an integer, lowest byte
 * first), at most this size. */
struct phantom_answer {
    const void *bytes;
    uint64_t size;
    int32_t number;
};

/* Answers to the reads that the calling thread is about to make, in their order; the last one holds for any further
 * read. The bytes must live until the next call; n = 0 takes them back. At most PHANTOM_ANSWERS. */
void phantom_hand_answers(const struct phantom_answer *answers, int n);

/* How often the calling thread has read, and its number, or -1. */
int64_t phantom_reads_so_far(int32_t *thread);

/* 1 and the bytes of [from, from + size), if they are certain; else 0. This is no read. */
int phantom_certain(uint64_t from, void *to, uint64_t size);

/* A copy from the host to a device. */
struct phantom_inflow {
    uint64_t address, bytes;
    int64_t unix_us; /* when, microseconds since 1970 */
};

/* Copies entries [from, from + n) of the log of such copies to `out`; returns how many the log has. A forked child's
 * log begins with its parent's. */
int64_t phantom_inflows(struct phantom_inflow *out, int64_t from, int64_t n);

/* The beginning of the state that torch's generator on the CPU tells of itself. */
struct phantom_twister {
    uint64_t seed;
    int32_t left, seeded; /* words to come before new ones are made, and one */
    uint64_t next;        /* the word to come */
    uint64_t words[624];  /* of 32 bits each */
};

/* Makes `state` what it is after `draws` more numbers of 32 bits. */
void phantom_pass_over(struct phantom_twister *state, uint64_t draws);

/* Number of distinct entry points called that the phantom does not model, and the name of one of them. */
int phantom_unmodelled_count(void);
const char *phantom_unmodelled_name(int index);

#endif
