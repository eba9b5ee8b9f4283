/* The stream-ordered pool under random use: blocks do not overlap, figures add up, everything comes back. */
#include "check.h"
#include "cuda.h"

enum { LIVE = 200, STEPS = 8000, RESERVED = 5, USED = 7, THRESHOLD = 4 };

static void *pool;
static uint64_t address[LIVE], size[LIVE];

static uint64_t figure(int attribute) {
    uint64_t value = 0;
    CHECK_EQUAL(cudaMemPoolGetAttribute(pool, attribute, &value), 0);
    return value;
}

static uint64_t taken_from_device(void) {
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    return total - available;
}

static void check(int i) {
    uint64_t sum = 0;
    for (int j = 0; j < LIVE; j++) {
        sum += size[j];
        CHECK(j == i || !size[i] || !size[j] || address[i] + size[i] <= address[j] ||
              address[j] + size[j] <= address[i]);
    }
    CHECK_EQUAL(figure(USED), sum);
    CHECK(figure(RESERVED) >= sum);
    CHECK_EQUAL(figure(RESERVED) % (32 * MIB), 0);
    CHECK_EQUAL(figure(RESERVED), taken_from_device());
}

int main(void) {
    uint64_t keep_all = UINT64_MAX, keep_nothing = 0;
    srand(3);
    CHECK_EQUAL(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(cudaMemPoolSetAttribute(pool, THRESHOLD, &keep_all), 0);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % LIVE;
        if (size[i]) {
            CHECK_EQUAL(cudaFreeAsync((void *)address[i], NULL), 0);
            size[i] = 0;
        } else {
            void *p = NULL;
            size[i] = (size_t)rand() % (rand() % 5 ? MIB : 100 * MIB) + 1;
            CHECK_EQUAL(cudaMallocAsync(&p, size[i], NULL), 0);
            address[i] = (uint64_t)p;
        }
        check(i);
        if (step % 500 == 499) {
            uint64_t before = figure(RESERVED);
            cudaDeviceSynchronize();
            CHECK_EQUAL(figure(RESERVED), before);
            CHECK_EQUAL(cudaMemPoolTrimTo(pool, before / 2), 0);
            check(i);
        }
    }
    for (int i = 0; i < LIVE; i++)
        if (size[i])
            CHECK_EQUAL(cudaFreeAsync((void *)address[i], NULL), 0);
    CHECK_EQUAL(cudaMemPoolSetAttribute(pool, THRESHOLD, &keep_nothing), 0);
    cudaDeviceSynchronize();
    CHECK_EQUAL(figure(RESERVED), 0);
    CHECK_EQUAL(taken_from_device(), 0);
    return 0;
}
