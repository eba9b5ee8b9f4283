/* Settings that change how fast a card is and nothing else: taken, and told as the default. */
#include "api.h"

#include <string.h>

static int zero(int *out) {
    if (!out)
        return INVALID_VALUE;
    *out = 0;
    return SUCCESS;
}

#define ACCEPTED(name)                                                                                             \
    PHANTOM_API int name(void);                                                                                    \
    PHANTOM_API int name(void) {                                                                                   \
        return SUCCESS;                                                                                            \
    }
#define TOLD(name)                                                                                                 \
    PHANTOM_API int name(int *out) {                                                                               \
        return zero(out);                                                                                          \
    }

ACCEPTED(cudaDeviceSetCacheConfig)
ACCEPTED(cudaDeviceSetSharedMemConfig)
ACCEPTED(cudaThreadSetCacheConfig)
ACCEPTED(cudaCtxResetPersistingL2Cache)
ACCEPTED(cudaDeviceFlushGPUDirectRDMAWrites)
ACCEPTED(cudaStreamAttachMemAsync)
ACCEPTED(cudaMemAdvise_v2)
ACCEPTED(cudaMemPrefetchAsync_v2)
ACCEPTED(cudaStreamCopyAttributes)
ACCEPTED(cudaStreamSetAttribute)
ACCEPTED(cuCtxSetCacheConfig)
ACCEPTED(cuCtxSetSharedMemConfig)
ACCEPTED(cuCtxResetPersistingL2Cache)
ACCEPTED(cuStreamSetAttribute)
ACCEPTED(cuStreamCopyAttributes)
TOLD(cudaDeviceGetCacheConfig)
TOLD(cudaDeviceGetSharedMemConfig)
TOLD(cudaThreadGetCacheConfig)
TOLD(cuCtxGetCacheConfig)
TOLD(cuCtxGetSharedMemConfig)

enum { STREAM_ATTRIBUTE_BYTES = 64 };

static int stream_attribute(void *out) {
    if (!out)
        return INVALID_VALUE;
    memset(out, 0, STREAM_ATTRIBUTE_BYTES);
    return SUCCESS;
}

PHANTOM_API int cudaStreamGetAttribute(void *stream, int attribute, void *out) {
    (void)stream, (void)attribute;
    return remember(stream_attribute(out));
}

PHANTOM_API int cuStreamGetAttribute(void *stream, int attribute, void *out) {
    (void)stream, (void)attribute;
    return stream_attribute(out);
}
