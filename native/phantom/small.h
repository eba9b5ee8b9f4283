/* Allocations of at most 1 MiB. The driver cuts them from pages that they share. */
#ifndef HOTBED_PHANTOM_SMALL_H
#define HOTBED_PHANTOM_SMALL_H

#include <stdbool.h>
#include <stdint.h>

enum { SMALL_BYTES = 1 << 20 };

/* A part of a page of this thread's device; a new page is charged to the device. */
int small_take(uint64_t size, uint64_t *address);

/* Gives it back; a page without parts goes back to the device. */
void small_give_back(int device, uint64_t address);

void small_forget(void);

#endif
