/* Entry points that the phantom does not model: they fail, and remember that they were called. */
#ifndef HOTBED_PHANTOM_UNMODELLED_H
#define HOTBED_PHANTOM_UNMODELLED_H

#include <stddef.h>

/* A function that stands for the entry point of that name; NULL when there are too many. */
void *unmodelled_function(const char *name, size_t length);

#endif
