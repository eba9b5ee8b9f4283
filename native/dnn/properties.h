/* The phantom's GPU as cuDNN wants a device described that is not there: one descriptor for each GPC layout. */
#ifndef HOTBED_DNN_PROPERTIES_H
#define HOTBED_DNN_PROPERTIES_H

#include <stddef.h>

/* How many descriptors there are; 0 if this cuDNN cannot describe a device (before 9.8) or is missing. */
int properties_count(void);

/* Descriptor number `layout`; 0 is the likely layout. */
void *properties_descriptor(int layout);

/* Room that begins with the properties of the likely layout, as a handle of cuDNN does. NULL if cuDNN is not one of
 * those for which this is known to answer questions about sizes. Never to be used for work. */
void *properties_handle(void);

/* Writes the description to `out`, as snprintf does. */
size_t properties_describe(char *out, size_t room);

#endif
