/* Virtual memory: reservations of addresses, physical memory behind handles, mappings between the two. */
#ifndef HOTBED_PHANTOM_VIRTUAL_H
#define HOTBED_PHANTOM_VIRTUAL_H

#include "state.h"

/* An unused range of device addresses that no cudaMalloc ever returns; 0 without host memory. */
uint64_t virtual_reserve(uint64_t size, uint64_t align);

/* Gives a reserved range back; false if `address` begins none of `size` bytes. */
bool virtual_unreserve(uint64_t address, uint64_t size);

void virtual_forget(void);

#endif
