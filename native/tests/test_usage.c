/* What the program used: the log of workspaces, remarks, and what the host copied to the device. */
#define _DEFAULT_SOURCE /* fork */
#include "check.h"
#include "cuda.h"
#include "phantom.h"
#include "usage.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void workspaces_are_logged_in_order(void) {
    struct phantom_workspace log[4];
    char lent[2] = {0};
    const uint64_t larger[PHANTOM_ALTERNATIVES] = {0, 64, 0}, none[PHANTOM_ALTERNATIVES] = {0};
    usage_workspace(PHANTOM_CUDNN, lent, 100, NULL);
    usage_workspace(PHANTOM_CUDNN, NULL, 100, NULL); /* nothing was lent */
    usage_workspace(PHANTOM_CUDNN, NULL, 0, NULL);   /* nothing was wanted */
    usage_workspace(PHANTOM_CUDNN, NULL, 0, none);
    usage_workspace(PHANTOM_CUDNN, NULL, 0, larger);
    usage_workspace(PHANTOM_CUBLAS, lent + 1, 50, NULL);
    CHECK_EQUAL(phantom_workspaces(log, 0, 4), 3);
    CHECK(log[0].address == (uintptr_t)lent && log[0].bytes == 100 && log[0].alternative_bytes[2] == 100);
    CHECK(!log[1].address && !log[1].bytes && log[1].alternative_bytes[0] == 0 && log[1].alternative_bytes[1] == 64);
    CHECK(log[2].library == PHANTOM_CUBLAS && log[2].unix_us >= log[0].unix_us);
    CHECK_EQUAL(phantom_workspaces(log, 2, 1), 3);
    CHECK_EQUAL(log[0].bytes, 50);
    CHECK_EQUAL(phantom_workspaces(log, 3, 4), 3);
    CHECK_EQUAL(phantom_workspaces(log, -1, 4), 3);
}

static void remarks_are_kept_once(void) {
    char number[16];
    for (int i = 0; i < 3; i++)
        usage_remark("version %d is new", 7);
    CHECK_EQUAL(phantom_remark_count(), 1);
    CHECK(!strcmp(phantom_remark(0), "version 7 is new"));
    CHECK(!phantom_remark(1) && !phantom_remark(-1));
    for (int i = 0; i < 1000; i++) {
        snprintf(number, sizeof number, "%d", i);
        usage_remark("%s", number);
    }
    CHECK(phantom_remark_count() > 1 && phantom_remark_count() < 1000);
}

static void copies_from_the_host_are_logged(void) {
    enum { TO_DEVICE = 1, TO_HOST = 2 };
    char host[256] = {0};
    void *device = NULL;
    struct phantom_inflow log[2];
    CHECK_EQUAL(cudaMalloc(&device, MIB), 0);
    int64_t before = phantom_inflows(NULL, 0, 0);
    CHECK_EQUAL(cudaMemcpy((char *)device + 512, host, 200, TO_DEVICE), 0);
    CHECK_EQUAL(cudaMemcpy(host, device, 200, TO_HOST), 0);
    CHECK_EQUAL(phantom_inflows(log, before, 2), before + 1);
    CHECK_EQUAL(log[0].address, (uintptr_t)device + 512);
    CHECK_EQUAL(log[0].bytes, 200);
}

static void a_child_tells_of_its_own_calls(void) {
    uint64_t calls[PHANTOM_LIBRARIES];
    usage_call(PHANTOM_CUFFT);
    CHECK_EQUAL(phantom_libraries(calls, PHANTOM_LIBRARIES), PHANTOM_LIBRARIES);
    CHECK_EQUAL(calls[PHANTOM_CUFFT], 1);
    pid_t child = fork();
    if (!child) {
        phantom_libraries(calls, PHANTOM_LIBRARIES);
        _exit(calls[PHANTOM_CUFFT] || phantom_remark_count() || phantom_workspaces(NULL, 0, 0) ? 1 : 0);
    }
    int status = -1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

int main(void) {
    workspaces_are_logged_in_order();
    remarks_are_kept_once();
    copies_from_the_host_are_logged();
    a_child_tells_of_its_own_calls();
    return 0;
}
