/* What every file of the phantom shares: the export mark, the result codes, and the two ways to return them. */
#ifndef HOTBED_PHANTOM_API_H
#define HOTBED_PHANTOM_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PHANTOM_API __attribute__((visibility("default")))

/* Codes that the runtime and the driver interface share; their names are in error.c. */
enum result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE_POINTER = 17,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
};

/* The lock over all state. enter() also creates the state when this process uses it for the first time. */
void enter(void);
int leave(int code);

/* Makes `code`, unless it is SUCCESS, this thread's last runtime error. Returns it. */
int remember(int code);

/* Body of an entry point: the runtime interface remembers errors for cudaGetLastError, the driver's does not. */
#define DRIVER(expression) leave((enter(), (expression)))
#define RUNTIME(expression) remember(DRIVER(expression))

#endif
