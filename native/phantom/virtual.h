/* Virtual memory: reservations of addresses, physical memory behind handles, mappings between the two. */
#ifndef HOTBED_PHANTOM_VIRTUAL_H
#define HOTBED_PHANTOM_VIRTUAL_H

#include "state.h"

/* An unused range of device addresses that no cudaMalloc ever returns, for the program or for a pool; 0 without host
 * memory. */
uint64_t virtual_reserve(uint64_t size, uint64_t align, bool pool);

/* Gives back the range that begins at `address`. */
void virtual_unreserve(uint64_t address);

void virtual_forget(void);

#endif
