/* Calls torch's allocator for a replay without an interpreter between two calls. */
#include "phantom.h"

__attribute__((visibility("default")))
int64_t phantom_drive(const int32_t *ids, const int64_t *sizes, int64_t begin, int64_t end, void **pointers,
                      phantom_allocate_fn allocate, phantom_release_fn release)
{
    for (int64_t i = begin; i < end; i++) {
        void **pointer = &pointers[ids[i]];
        int32_t failed = sizes[i] ? allocate((uint64_t)sizes[i], pointer) : release(*pointer);
        if (failed)
            return i;
    }
    return end;
}
