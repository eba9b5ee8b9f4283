/* Virtual memory under random use: what a device has given out is what handles and mappings hold. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

enum { PAGES = 64, STEPS = 20000, PAGE = 2 << 20 };

static const int properties[8] = {1, 0, 1, 0};
static uint64_t mapped[PAGES], handles[PAGES]; /* handle mapped at a page; handles that we still hold */

static uint64_t used(void) {
    uint64_t counters[PHANTOM_COUNTERS];
    phantom_counters(0, counters, PHANTOM_COUNTERS);
    return counters[PHANTOM_USED_BYTES];
}

/* Handles in hand or mapped somewhere, each once. */
static uint64_t expected(void) {
    uint64_t alive = 0;
    for (int i = 0; i < PAGES; i++) {
        int seen = 0;
        for (int j = 0; j < PAGES; j++)
            seen = seen || (mapped[i] && handles[j] == mapped[i]) || (j < i && mapped[i] && mapped[j] == mapped[i]);
        alive += (mapped[i] && !seen) + (handles[i] != 0);
    }
    return alive * PAGE;
}

int main(void) {
    uint64_t va = 0;
    srand(4);
    CHECK_EQUAL(cuMemAddressReserve(&va, (size_t)PAGES * PAGE, 0, 0, 0), 0);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % PAGES, j = rand() % PAGES;
        uint64_t at = va + (uint64_t)i * PAGE;
        if (!handles[j]) {
            CHECK_EQUAL(cuMemCreate(&handles[j], PAGE, properties, 0), 0);
        } else if (rand() % 2) {
            CHECK_EQUAL(cuMemRelease(handles[j]), 0);
            CHECK(cuMemRelease(0x999) == 1);
            handles[j] = 0;
        } else if (!mapped[i]) {
            CHECK_EQUAL(cuMemMap(at, PAGE, 0, handles[j], 0), 0);
            mapped[i] = handles[j];
        }
        if (mapped[i] && rand() % 3 == 0) {
            CHECK_EQUAL(cuMemMap(at, PAGE, 0, mapped[i], 0), 1);
            CHECK_EQUAL(cuMemUnmap(at, PAGE), 0);
            mapped[i] = 0;
        }
        CHECK_EQUAL(used(), expected());
    }
    CHECK_EQUAL(cuMemUnmap(va, (size_t)PAGES * PAGE), 0);
    CHECK_EQUAL(cuMemAddressFree(va, (size_t)PAGES * PAGE), 0);
    for (int i = 0; i < PAGES; i++)
        if (handles[i])
            CHECK_EQUAL(cuMemRelease(handles[i]), 0);
    CHECK_EQUAL(used(), 0);
    return 0;
}
