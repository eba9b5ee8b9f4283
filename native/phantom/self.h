/* Finds an exported function of this object by name. */
#ifndef HOTBED_PHANTOM_SELF_H
#define HOTBED_PHANTOM_SELF_H

#include <stddef.h>

/* The address of the exported symbol whose name is the first `length` bytes of `name` followed by `suffix`;
 * NULL if this object exports none. */
void *self_find(const char *name, size_t length, const char *suffix);

#endif
