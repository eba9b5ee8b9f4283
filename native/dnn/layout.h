/* Tells a described device how its multiprocessors are spread over GPCs, which the description cannot say. */
#ifndef HOTBED_DNN_LAYOUT_H
#define HOTBED_DNN_LAYOUT_H

#include "spec.h"

#include <stddef.h>

/* Where the properties of a described device lie in memory. */
struct properties {
    char *first;    /* their first member */
    char *versions; /* device version, driver version */
    size_t bytes;   /* from the first member to the end of the name */
};

/* Finds the properties behind a finalized device descriptor, before layout_write. 0, or -1 where they are not laid out
 * as in a version that was looked at. */
int layout_find(const void *descriptor, const struct spec *spec, struct properties *out);

/* Writes `layout` into the properties and reads it back. 0, or -1 if that failed. */
int layout_write(const struct properties *properties, const struct spec *spec, const struct layout *layout);

/* The device version and driver version as cuDNN keeps them: 900 for compute capability 9.0. */
int layout_device_version(const struct spec *spec);

#endif
