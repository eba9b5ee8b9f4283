/* What the program used, for whoever asks afterwards: calls into libraries, workspaces, remarks. */
#ifndef HOTBED_PHANTOM_USAGE_H
#define HOTBED_PHANTOM_USAGE_H

#include "phantom.h"

/* Counts one call into `library`, which may have changed any value on the device. */
void usage_call(enum phantom_library library);

/* Notes that the program lent [address, address + bytes) to `library`; `alternatives` may be NULL:
 * the same bytes under every GPC layout. With 0 bytes an entry is kept only if an alternative wants some. */
void usage_workspace(enum phantom_library library, const void *address, uint64_t bytes, const uint64_t *alternatives);

/* Keeps a sentence about this run; the same sentence is kept once. Format as printf. */
void usage_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
