/* Held events: not ready until released, waited for or synchronised; a release does not touch a later recording. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

enum { NOT_READY = 600, INVALID_HANDLE = 400 };

int main(void) {
    void *event = NULL, *other = NULL, *stream = NULL;
    uint64_t first, second;
    cudaEventCreateWithFlags(&event, 2);
    cudaEventCreateWithFlags(&other, 2);
    cudaStreamCreateWithFlags(&stream, 1);
    CHECK_EQUAL(phantom_last_event(&first), 0);
    CHECK_EQUAL(cudaEventRecord(event, stream), 0);
    CHECK_EQUAL(cudaEventQuery(event), 0);

    phantom_hold_events(1);
    cudaEventRecord(event, stream);
    CHECK(phantom_last_event(&first) == (uint64_t)event);
    CHECK_EQUAL(cudaEventQuery(event), NOT_READY);
    CHECK_EQUAL(cudaGetLastError(), NOT_READY);
    CHECK_EQUAL(cudaStreamQuery(stream), NOT_READY);
    CHECK_EQUAL(cudaStreamQuery(NULL), 0);
    cudaEventRecord(event, stream);
    phantom_last_event(&second);
    CHECK(second > first);
    phantom_release_event((uint64_t)event, first);
    CHECK_EQUAL(cudaEventQuery(event), NOT_READY);
    phantom_release_event((uint64_t)event, second);
    CHECK_EQUAL(cudaEventQuery(event), 0);

    cudaEventRecord(event, stream);
    cudaEventRecord(other, NULL);
    cudaStreamSynchronize(stream);
    CHECK_EQUAL(cudaEventQuery(event), 0);
    CHECK_EQUAL(cudaEventQuery(other), NOT_READY);
    CHECK_EQUAL(cudaEventSynchronize(other), 0);
    CHECK_EQUAL(cudaEventQuery(other), 0);

    cudaEventRecord(event, NULL);
    phantom_hold_events(0);
    CHECK_EQUAL(cudaEventQuery(event), NOT_READY);
    cudaDeviceSynchronize();
    CHECK_EQUAL(cudaEventQuery(event), 0);
    CHECK_EQUAL(cudaEventDestroy(event), 0);
    CHECK_EQUAL(cudaEventDestroy(event), INVALID_HANDLE);
    phantom_release_event((uint64_t)event, second);
    cudaEventDestroy(other);
    cudaStreamDestroy(stream);
    return 0;
}
