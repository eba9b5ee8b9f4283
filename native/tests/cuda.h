/* The entry points that the tests call, as a program would declare them. */
#ifndef HOTBED_TEST_CUDA_H
#define HOTBED_TEST_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)

int cudaMalloc(void **out, size_t size);
int cudaFree(void *address);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaMallocAsync(void **out, size_t size, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaDeviceGetDefaultMemPool(void **out, int device);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolTrimTo(void *pool, size_t keep);
int cudaHostAlloc(void **out, size_t size, unsigned flags);
int cudaFreeHost(void *address);
int cudaMemcpy(void *to, const void *from, size_t size, int direction);
int cudaSetDevice(int device);
int cudaGetDevice(int *out);
int cudaGetDeviceCount(int *out);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
int cudaStreamCreateWithFlags(void **out, unsigned flags);
int cudaStreamDestroy(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamQuery(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, const void **after,
                                size_t *count);
int cudaEventCreateWithFlags(void **out, unsigned flags);
int cudaEventDestroy(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaMemsetAsync(void *to, int value, size_t size, void *stream);
int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value);
int cudaGraphCreate(void **out, unsigned flags);
int cudaGraphDestroy(void *graph);
int cudaGraphGetNodes(void *graph, uint64_t *out, size_t *room);
int cudaGraphNodeGetDependencies(void *node, uint64_t *out, void *edges, size_t *room);
int cudaGraphInstantiate(void **out, void *graph, unsigned long long flags);
int cudaGraphExecDestroy(void *exec);
int cudaUserObjectCreate(void **out, void *data, void (*destroy)(void *), unsigned references, unsigned flags);
int cudaGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags);
int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                     int *status);
int cuMemAddressReserve(uint64_t *out, size_t size, size_t align, uint64_t hint, unsigned long long flags);
int cuMemAddressFree(uint64_t address, size_t size);
int cuMemCreate(uint64_t *out, size_t size, const void *wanted, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(uint64_t address, size_t size);
int nvmlDeviceGetCount_v2(unsigned *out);

#endif
