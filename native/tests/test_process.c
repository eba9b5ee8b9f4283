/* Threads share one device; a forked child starts with an empty one and keeps what was set. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STEPS = 5000 };

static uint64_t used(void) {
    uint64_t counters[PHANTOM_COUNTERS];
    phantom_counters(0, counters, PHANTOM_COUNTERS);
    return counters[PHANTOM_USED_BYTES];
}

static void *churn(void *seed) {
    void *held[16] = {0}, *event = NULL;
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int step = 0; step < STEPS; step++) {
        state = state * 1103515245u + 12345u;
        void **slot = &held[state >> 16 & 15];
        if (*slot) {
            CHECK_EQUAL(cudaFree(*slot), 0);
            *slot = NULL;
        } else {
            CHECK_EQUAL(cudaMalloc(slot, (state >> 20 & 31) * MIB + 1), 0);
        }
        cudaEventCreateWithFlags(&event, 2);
        cudaEventRecord(event, NULL);
        CHECK_EQUAL(cudaEventQuery(event), 0);
        CHECK_EQUAL(cudaEventDestroy(event), 0);
    }
    for (int i = 0; i < 16; i++)
        CHECK_EQUAL(cudaFree(held[i]), 0);
    return NULL;
}

static void threads(void) {
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(used(), 0);
}

static int child(void) {
    void *p = NULL;
    size_t available = 0, total = 0;
    CHECK_EQUAL(used(), 0);
    CHECK_EQUAL(phantom_set_total(64 * MIB), 0);
    CHECK_EQUAL(cudaMalloc(&p, 40 * MIB), 0);
    CHECK_EQUAL(phantom_set_total(80 * MIB), -1);
    CHECK_EQUAL(cudaMalloc(&p, 40 * MIB), 2);
    cudaMemGetInfo(&available, &total);
    CHECK_EQUAL(total, 64 * MIB);
    CHECK_EQUAL(available, 24 * MIB);
    return 0;
}

static void fork_and_check(void) {
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQUAL(status, 0);
}

int main(void) {
    void *p = NULL;
    fork_and_check();
    CHECK_EQUAL(cudaMalloc(&p, 10 * MIB), 0);
    fork_and_check();
    CHECK_EQUAL(used(), 10 * MIB);
    CHECK_EQUAL(cudaFree(p), 0);
    threads();
    return 0;
}
