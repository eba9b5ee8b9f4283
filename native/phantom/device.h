/* What a device says about itself. */
#ifndef HOTBED_PHANTOM_DEVICE_H
#define HOTBED_PHANTOM_DEVICE_H

/* Value of a device attribute by CUDA's number; 0 for those that the phantom does not have. */
int device_attribute(int device, int attribute);

/* "0000:06:00.0" */
enum { BUS_ID_BYTES = 16 };
void device_bus_id(int physical, char text[BUS_ID_BYTES]);

/* Program's ordinal of a bus id in any of CUDA's spellings; -1 if there is none. */
int device_by_bus_id(const char *text);

#endif
