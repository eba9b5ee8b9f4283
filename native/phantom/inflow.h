/* What the host copied to devices: where, how much, when. Tells a program's input from what it computed. */
#ifndef HOTBED_PHANTOM_INFLOW_H
#define HOTBED_PHANTOM_INFLOW_H

#include <stdint.h>

/* Notes a copy of `size` bytes to a device address. Needs the lock over the state. */
void inflow_note(uint64_t address, uint64_t size);

#endif
