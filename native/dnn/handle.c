/* Handles of the phantom's cuDNN, its version, and its messages. */
#include "api.h"
#include "facts.h"
#include "real.h"
#include "usage.h"

#include <stdio.h>
#include <stdlib.h>

struct handle {
    void *stream;
};

PHANTOM_API int cudnnCreate(struct handle **out) {
    if (!out)
        return DNN_BAD_PARAM;
    usage_call(PHANTOM_CUDNN);
    usage_call(PHANTOM_CUDNN_HANDLES);
    *out = calloc(1, sizeof **out);
    return *out ? DNN_SUCCESS : DNN_ALLOCATION_FAILED;
}

PHANTOM_API int cudnnDestroy(struct handle *handle) {
    free(handle);
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnSetStream(struct handle *handle, void *stream) {
    if (!handle)
        return DNN_BAD_PARAM;
    handle->stream = stream;
    return DNN_SUCCESS;
}

PHANTOM_API int cudnnGetStream(struct handle *handle, void **out) {
    if (!handle || !out)
        return DNN_BAD_PARAM;
    *out = handle->stream;
    return DNN_SUCCESS;
}

PHANTOM_API size_t cudnnGetVersion(void) {
    return real_version();
}

PHANTOM_API size_t cudnnGetCudartVersion(void) {
    size_t (*function)(void) = (size_t(*)(void))real_function("cudnnGetCudartVersion");
    return function ? function() : 0;
}

PHANTOM_API const char *cudnnGetErrorString(int status) {
    const char *(*function)(int) = (const char *(*)(int))real_function("cudnnGetErrorString");
    return function ? function(status) : "cuDNN is not installed";
}

PHANTOM_API void cudnnGetLastErrorString(char *out, size_t room) {
    void (*function)(char *, size_t) = (void (*)(char *, size_t))real_function("cudnnGetLastErrorString");
    if (function)
        function(out, room);
    else if (out && room)
        snprintf(out, room, "%s", "cuDNN is not installed");
}
