/* Entry points that the phantom does not model: they fail, and remember that they were called. */
#ifndef HOTBED_PHANTOM_UNMODELLED_H
#define HOTBED_PHANTOM_UNMODELLED_H

#include <stddef.h>

/* Notes that `name` was called; returns what its library calls "not supported". */
int unmodelled_refuse(const char *name);

/* Marks the named functions that only refuse: tools tell them from the modelled ones by their section. */
#define STUB __attribute__((visibility("default"), section("hotbed_unmodelled")))

/* A function that stands for the entry point of that name; NULL when there are too many. */
void *unmodelled_function(const char *name, size_t length);

#endif
