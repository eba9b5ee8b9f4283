/* What the rows of the tables *.def mean: each makes one function of a CUDA library.
 *
 * A row names the function and what it writes for the caller to read, so that no result is ever left as it was. What a
 * function computes in device memory is nothing. Arguments count from 1 and only those that the ABI passes as integers
 * or pointers; a row may look at them without knowing the others, since neither x86-64 nor AArch64 lets a
 * floating-point argument take the place of one of these. Bytes are the size of what is set to zero. */
#ifndef HOTBED_LIBRARIES_STAND_IN_H
#define HOTBED_LIBRARIES_STAND_IN_H

#include "api.h"
#include "unmodelled.h"
#include "usage.h"

#include <stdint.h>

/* What an object of a library remembers: a handle its stream, the rest is numbered by each library. */
enum { STREAM_FIELD, FIELDS = 12 };

/* The status codes that the library of this table returns. Success is 0 in all of them. */
struct status {
    int not_initialized, execution_failed;
};

/* Sets an object's address at `out`. */
int stand_in_create(enum phantom_library library, struct status status, uint64_t out);
int stand_in_destroy(enum phantom_library library, struct status status, uint64_t handle);

/* The fields of an object; NULL if there is none. Needs the lock. */
uint64_t *stand_in_fields(enum phantom_library library, uint64_t handle);
int stand_in_set(enum phantom_library library, struct status status, uint64_t handle, int field, uint64_t value);
int stand_in_get(enum phantom_library library, struct status status, uint64_t handle, int field, uint64_t out,
                 uint64_t bytes);

/* A call that puts work on the stream of `handle` / on `stream`. */
int stand_in_work(enum phantom_library library, struct status status, uint64_t handle);
int stand_in_work_on(struct status status, uint64_t stream);

/* Sets `bytes` bytes at `out` to zero, unless that is NULL or device memory. */
void stand_in_zero(uint64_t out, uint64_t bytes);

/* Copies the `bytes` low bytes of `value` to `out`, likewise. */
void stand_in_put(uint64_t out, uint64_t value, uint64_t bytes);

/* Bytes of an element of cudaDataType `type`; 16, the most, if it is unknown. */
uint64_t data_type_bytes(int type);

/* Says once that the size of the workspace that `function` asks for is not known. Returns SUCCESS. */
int stand_in_remark_size(const char *function);

/* Answer of a library's GetProperty: 0, 1, 2 ask for the parts of `version`, "major, minor, patch". */
int stand_in_property(const int version[3], int property, uint64_t out, int invalid);

#define UNUSED __attribute__((unused)) uint64_t
#define ARGUMENTS                                                                                                  \
    UNUSED a1, UNUSED a2, UNUSED a3, UNUSED a4, UNUSED a5, UNUSED a6, UNUSED a7, UNUSED a8, UNUSED a9, UNUSED a10, \
        UNUSED a11, UNUSED a12, UNUSED a13, UNUSED a14, UNUSED a15, UNUSED a16, UNUSED a17, UNUSED a18,            \
        UNUSED a19, UNUSED a20, UNUSED a21, UNUSED a22, UNUSED a23, UNUSED a24

#define STAND_IN(name, body)                                                                                       \
    PHANTOM_API int name(ARGUMENTS);                                                                               \
    PHANTOM_API int name(ARGUMENTS) {                                                                              \
        usage_call(LIBRARY);                                                                                       \
        body                                                                                                       \
    }

/* Works on the device: argument 1 is the library's handle. */
#define WORK stand_in_work(LIBRARY, STATUS, HANDLE(a1))
#define WORKS(name) STAND_IN(name, return WORK;)
/* Likewise, but an argument says on which stream. */
#define WORKS_ON(name, stream) STAND_IN(name, return stand_in_work_on(STATUS, a##stream);)
/* Works in memory that is lent for the call: as many bytes, or as many elements of so many bytes. */
#define WORKS_IN(name, address, bytes)                                                                             \
    STAND_IN(name, usage_workspace(LIBRARY, (const void *)a##address, a##bytes, NULL); return WORK;)
#define WORKS_IN_ELEMENTS(name, address, count, element)                                                           \
    STAND_IN(name, usage_workspace(LIBRARY, (const void *)a##address, (uint32_t)a##count * (uint64_t)(element), NULL); \
             return WORK;)
/* Works, and returns a number to the host where the handle says so; or numbers, as many as an argument says. */
#define GIVES(name, out, bytes) STAND_IN(name, stand_in_zero(a##out, bytes); return WORK;)
#define GIVES_2(name, out, bytes, out_2, bytes_2)                                                                  \
    STAND_IN(name, stand_in_zero(a##out, bytes); stand_in_zero(a##out_2, bytes_2); return WORK;)
#define GIVES_TYPED(name, out, type) STAND_IN(name, stand_in_zero(a##out, data_type_bytes((int)a##type)); return WORK;)
#define GIVES_MANY(name, out, count, element) STAND_IN(name, stand_in_zero(a##out, a##count * (element)); return WORK;)
/* Tells that it needs no workspace, for want of knowing better. */
#define SIZES(name, out, bytes) STAND_IN(name, stand_in_zero(a##out, bytes); return stand_in_remark_size(#name);)
#define SIZES_2(name, out, bytes, out_2, bytes_2)                                                                  \
    STAND_IN(name, stand_in_zero(a##out, bytes); stand_in_zero(a##out_2, bytes_2);                                 \
             return stand_in_remark_size(#name);)
/* Tells a size that is known; and that it needs nothing on the host, where that is asked, too. */
#define SIZE_IS(name, out, bytes, size) STAND_IN(name, stand_in_put(a##out, size, bytes); return SUCCESS;)
#define SIZE_IS_2(name, out, bytes, size, out_2, bytes_2)                                                          \
    STAND_IN(name, stand_in_put(a##out, size, bytes); stand_in_zero(a##out_2, bytes_2); return SUCCESS;)
/* Does nothing on the device: settings that nothing asks back. */
#define ACCEPTS(name) STAND_IN(name, return SUCCESS;)
/* Tells zero. */
#define TELLS(name, out, bytes) STAND_IN(name, stand_in_zero(a##out, bytes); return SUCCESS;)
#define TELLS_MANY(name, out, bytes) STAND_IN(name, stand_in_zero(a##out, a##bytes); return SUCCESS;)
/* Objects: made and put at argument `out`, ended by argument 1; argument 1 remembers argument 2, or tells it there. */
#define CREATES(name, out) STAND_IN(name, return stand_in_create(LIBRARY, STATUS, a##out);)
#define DESTROYS(name) STAND_IN(name, return stand_in_destroy(LIBRARY, STATUS, HANDLE(a1));)
#define SETS(name, field) STAND_IN(name, return stand_in_set(LIBRARY, STATUS, HANDLE(a1), field, a2);)
#define READS(name, field, bytes) STAND_IN(name, return stand_in_get(LIBRARY, STATUS, HANDLE(a1), field, a2, bytes);)
/* Is lent device memory until further notice. */
#define LENDS(name, address, bytes)                                                                                \
    STAND_IN(name, usage_workspace(LIBRARY, (const void *)a##address, a##bytes, NULL); return SUCCESS;)
/* Fails, and is named at exit. */
#define REFUSES(name)                                                                                              \
    STUB int name(void);                                                                                           \
    STUB int name(void) {                                                                                          \
        usage_call(LIBRARY);                                                                                       \
        return unmodelled_refuse(#name);                                                                           \
    }

/* Families: each of S, D, C and Z is a function of its own; _64 takes 64-bit sizes. */
#define BOTH(ROW, name) ROW(name) ROW(name##_64)

#endif
