/* Host memory that the device knows: pinned, registered, managed. It is real memory of this process. */
#ifndef HOTBED_PHANTOM_HOST_H
#define HOTBED_PHANTOM_HOST_H

#include "memory.h"

/* Frees PINNED or MANAGED memory that begins at `address`. */
int host_free(uint64_t address, enum memory_kind kind);

#endif
