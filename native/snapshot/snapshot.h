/* Reader of torch memory snapshots: a pickle of plain values in, columns and tables out. Knows nothing of Python.
 *
 * It understands the binary instructions of pickle protocols 1 to 5 that build containers, numbers and strings.
 * Trace entries become rows while they are read, call stacks become entries of a table, and what is left
 * (memory map, settings) is handed over as JSON. It never imports or calls anything: it could not.
 */
#ifndef HOTBED_SNAPSHOT_H
#define HOTBED_SNAPSHOT_H

#include <stdint.h>

#if defined(__GNUC__)
#define SNAPSHOT_API __attribute__((visibility("default")))
#else
#define SNAPSHOT_API
#endif

#define SNAPSHOT_ABI 1

enum snapshot_status {
    SNAPSHOT_OK = 0,
    SNAPSHOT_CUT_SHORT = 1,   /* the data ends inside an instruction or before STOP */
    SNAPSHOT_DAMAGED = 2,     /* an instruction does not fit the values it works on */
    SNAPSHOT_NOT_PICKLE = 3,  /* `instruction` is none that plain values need */
    SNAPSHOT_REFUSED = 4,     /* `instruction` imports, calls or builds objects; `detail` names the import */
    SNAPSHOT_PROTOCOL = 5,    /* newer protocol than 5 */
    SNAPSHOT_UNSUPPORTED = 6, /* legal but unusual: a slower reader has to look at it */
    SNAPSHOT_NO_MEMORY = 7,   /* more than the allowed memory would be needed */
    SNAPSHOT_NO_SNAPSHOT = 8  /* a plain value, but no snapshot; `detail` names its type */
};

/* Rows of one device: rows start .. start + count - 1, or, where `rows` is not NULL, those listed there. */
struct snapshot_device {
    uint64_t start;
    uint64_t count;
    uint64_t *rows;
};

/* Everything read. Arrays belong to this struct until snapshot_free, or to the caller once set to NULL here. */
struct snapshot {
    uint32_t status;      /* enum snapshot_status */
    uint32_t instruction; /* the byte that was refused */
    uint64_t position;    /* byte at which reading stopped */
    char detail[512];     /* NUL-terminated, UTF-8 not assured */

    uint64_t row_count;
    uint8_t *action;    /* hotbed.trace.Action */
    uint64_t *address;
    int64_t *size;
    uint64_t *stream;
    int64_t *time_us;
    int32_t *pool;      /* index into pools, -1: not said; so for the next three with their tables */
    int32_t *stack;
    int32_t *metadata;  /* text */
    int32_t *compile_context; /* text */

    uint64_t device_count;
    struct snapshot_device *devices;

    uint64_t text_count;
    uint64_t *text_end; /* text i is text_bytes[text_end[i-1] .. text_end[i]], UTF-8 with lone surrogates allowed */
    char *text_bytes;

    uint64_t frame_count;
    int32_t *frame_filename; /* text */
    int64_t *frame_line;
    int32_t *frame_name; /* text */

    uint64_t stack_count;
    uint64_t *stack_end; /* stack i is stack_frames[stack_end[i-1] .. stack_end[i]], innermost first */
    int32_t *stack_frames;

    uint64_t pool_count;
    uint64_t *pools; /* two numbers each */

    char *rest; /* JSON object with segments and allocator_settings, `frames` as index of a stack */
    uint64_t rest_bytes;
};

/* SNAPSHOT_ABI of the library, to be compared before anything else is called. */
SNAPSHOT_API uint32_t snapshot_abi(void);

/* Reads `bytes` bytes at `data` into `out`, using at most about `memory_limit` bytes. Returns out->status. Whatever it
 * is, snapshot_free(out) must follow. */
SNAPSHOT_API uint32_t snapshot_read(const uint8_t *data, uint64_t bytes, uint64_t memory_limit, struct snapshot *out);

/* Frees the arrays that are still in `out`. */
SNAPSHOT_API void snapshot_free(struct snapshot *out);

/* Frees one array that the caller took over. */
SNAPSHOT_API void snapshot_free_array(void *array);

#endif
