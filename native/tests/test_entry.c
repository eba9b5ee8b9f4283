/* Functions looked up by name: modelled ones are ours, others remember that they were called. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

#include <string.h>

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
int cuMulticastCreate(void);

typedef int (*function)(void);

static function look_up(const char *name) {
    void *found = NULL;
    int status = 9;
    CHECK_EQUAL(cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &status), 0);
    CHECK_EQUAL(status, 0);
    return (function)found;
}

int main(void) {
    CHECK(look_up("cuMemCreate") == (function)(void *)cuMemCreate);
    CHECK(look_up("cuMemGetInfo") == (function)(void *)cuMemGetInfo_v2);
    CHECK(look_up("cuMemUnmap_ptsz") == (function)(void *)cuMemUnmap);
    CHECK(look_up("cuNeverHeardOf") != look_up("cuNeverHeardOfEither"));
    CHECK(look_up("cuNeverHeardOf") == look_up("cuNeverHeardOf"));
    CHECK_EQUAL(phantom_unmodelled_count(), 0);
    CHECK_EQUAL(look_up("cuNeverHeardOf")(), 801);
    CHECK_EQUAL(look_up("cuNeverHeardOf")(), 801);
    CHECK_EQUAL(cuMulticastCreate(), 801);
    CHECK_EQUAL(phantom_unmodelled_count(), 2);
    CHECK(!strcmp(phantom_unmodelled_name(0), "cuNeverHeardOf"));
    CHECK(!strcmp(phantom_unmodelled_name(1), "cuMulticastCreate"));
    CHECK(phantom_unmodelled_name(2) == NULL);
    char name[32];
    void *found = NULL;
    int status = 0;
    for (int i = 0; i < 1100; i++) {
        sprintf(name, "cuMany%d", i);
        cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &status);
    }
    CHECK(found == NULL && status == 1);
    return 0;
}
