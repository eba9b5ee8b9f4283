/* Address rules: no overlap ever, recorded addresses while sizes agree, the driver's order of slots. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

#include <sys/wait.h>
#include <unistd.h>

static uint64_t take(size_t size) {
    void *p = NULL;
    CHECK_EQUAL(cudaMalloc(&p, size), 0);
    return (uint64_t)p;
}

static void give_back(uint64_t address) {
    CHECK_EQUAL(cudaFree((void *)address), 0);
}

static void recorded(void) {
    const uint64_t addresses[] = {0x7a0000000000, 0x7b0000000000, 0x7a0000000000};
    const uint64_t sizes[] = {20 * MIB, 2 * MIB, 20 * MIB};
    phantom_set_recorded_segments(addresses, sizes, 3);
    uint64_t first = take(20 * MIB), second = take(2 * MIB);
    CHECK(first == addresses[0]);
    CHECK(second == addresses[1]);
    /* The recorded program had freed the first one by now; this one has not, so it cannot get its address. */
    uint64_t third = take(20 * MIB);
    CHECK(third == addresses[0] - 32 * MIB);
    CHECK(take(2 * MIB) == third + 20 * MIB);
    give_back(first);
    give_back(second);
    give_back(third);
    give_back(third + 20 * MIB);
    phantom_set_recorded_segments(NULL, NULL, 0);
}

/* The segments of unet_mixed and resnet50 on the H200: first 2 MiB, then 20 MiB or three times 2 MiB far above it. */
static void beginning(void) {
    phantom_set_address_rule(PHANTOM_DRIVER);
    uint64_t first = take(2 * MIB), second = take(20 * MIB), third = take(22 * MIB);
    CHECK(second == first + 74 * MIB);
    CHECK(third < first);
    give_back(second);
    for (int i = 0; i < 3; i++)
        CHECK(take(2 * MIB) == third + (22 + 2 * (uint64_t)i) * MIB);
    CHECK(take(12 * MIB) == first + 74 * MIB);
}

/* A child has allocated nothing yet. */
static void in_child(void (*test)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        test();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
}

static void ascending_and_descending(void) {
    phantom_set_address_rule(PHANTOM_ASCENDING);
    uint64_t a = take(2 * MIB), b = take(2 * MIB);
    CHECK(a < b);
    phantom_set_address_rule(PHANTOM_DESCENDING);
    uint64_t c = take(2 * MIB), d = take(2 * MIB);
    CHECK(d < c);
    give_back(d);
    uint64_t e = take(2 * MIB);
    CHECK(e < d);
    give_back(e);
    give_back(a);
    give_back(b);
    give_back(c);
}

static void no_overlap(int rule) {
    enum { LIVE = 300, STEPS = 6000 };
    static uint64_t address[LIVE], size[LIVE];
    phantom_set_address_rule(rule);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % LIVE;
        if (size[i]) {
            give_back(address[i]);
            size[i] = 0;
            continue;
        }
        size[i] = rand() % 4 ? (size_t)(1 + rand() % 40) * 2 * MIB : (size_t)(1 + rand() % (int)(3 * MIB));
        address[i] = take(size[i]);
        for (int j = 0; j < LIVE; j++)
            CHECK(j == i || !size[j] || address[i] + size[i] <= address[j] || address[j] + size[j] <= address[i]);
    }
    for (int i = 0; i < LIVE; i++)
        if (size[i])
            give_back(address[i]);
    for (int i = 0; i < LIVE; i++)
        size[i] = 0;
}

int main(void) {
    uint64_t counters[PHANTOM_COUNTERS];
    srand(2);
    recorded();
    ascending_and_descending();
    no_overlap(PHANTOM_DRIVER);
    no_overlap(PHANTOM_ASCENDING);
    CHECK_EQUAL(phantom_counters(0, counters, PHANTOM_COUNTERS), PHANTOM_COUNTERS);
    CHECK_EQUAL(counters[PHANTOM_MISUSE], 0);
    CHECK_EQUAL(counters[PHANTOM_MALLOC] - counters[PHANTOM_FREE], 0);
    CHECK_EQUAL(counters[PHANTOM_USED_BYTES], 0);
    in_child(beginning);
    return 0;
}
