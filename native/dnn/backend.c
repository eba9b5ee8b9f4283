/* The backend ("graph") interface of cuDNN as the program sees it. */
#include "backend.h"

#include "api.h"
#include "facts.h"
#include "properties.h"
#include "usage.h"

static int forwarded(void) {
    static int known;
    int way = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!way) {
        way = properties_count() ? 1 : 2;
        __atomic_store_n(&known, way, __ATOMIC_RELAXED);
    }
    return way == 1;
}

PHANTOM_API int cudnnBackendCreateDescriptor(int kind, void **out) {
    return out ? forwarded() ? forward_create(kind, out) : store_create(kind, out) : DNN_BAD_PARAM;
}

PHANTOM_API int cudnnBackendDestroyDescriptor(void *descriptor) {
    if (!descriptor)
        return DNN_SUCCESS;
    return forwarded() ? forward_destroy(descriptor) : store_destroy(descriptor);
}

PHANTOM_API int cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                                         const void *values) {
    return forwarded() ? forward_set(descriptor, attribute, type, count, values)
                       : store_set(descriptor, attribute, type, count, values);
}

PHANTOM_API int cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t room, int64_t *count,
                                         void *values) {
    return forwarded() ? forward_get(descriptor, attribute, type, room, count, values)
                       : store_get(descriptor, attribute, type, room, count, values);
}

PHANTOM_API int cudnnBackendFinalize(void *descriptor) {
    return forwarded() ? forward_finalize(descriptor) : store_finalize(descriptor);
}

PHANTOM_API int cudnnBackendExecute(void *handle, void *plan, void *pack) {
    (void)handle;
    usage_call(PHANTOM_CUDNN);
    return forwarded() ? forward_execute(plan, pack) : store_execute(plan, pack);
}
