/* What the environment makes of the phantom. */
#define _DEFAULT_SOURCE /* setenv */
#include "check.h"
#include "spec.h"

#include <string.h>

static struct spec read_spec(const char *gpu, const char *count, const char *visible) {
    struct spec spec;
    setenv("HOTBED_PHANTOM_GPU", gpu, 1);
    setenv("HOTBED_PHANTOM_COUNT", count, 1);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    spec_read(&spec);
    return spec;
}

int main(void) {
    struct spec spec = read_spec("", "1", NULL);
    CHECK(!strcmp(spec.name, "NVIDIA H200"));
    CHECK_EQUAL(spec.total, 150109880320);
    spec = read_spec("name=Tesla T4;total=15655829504;cc=75;sm=40;future=7;l2=;=;;bus", "2", NULL);
    CHECK(!strcmp(spec.name, "Tesla T4"));
    CHECK_EQUAL(spec.total, 15655829504);
    CHECK_EQUAL(spec.nvml_total, spec.total);
    CHECK_EQUAL(spec.major * 10 + spec.minor, 75);
    CHECK_EQUAL(spec.threads_per_sm, 1024);
    CHECK_EQUAL(spec.l2, 62914560);
    CHECK_EQUAL(spec.count, 2);
    CHECK_EQUAL(spec.behind, 0);
    CHECK_EQUAL(read_spec("behind=1", "1", NULL).behind, 1);
    CHECK_EQUAL(read_spec("", "4", "2,0").visible[0], 2);
    CHECK_EQUAL(read_spec("", "4", "2,0").count, 2);
    CHECK_EQUAL(read_spec("", "4", "1,-1,2").count, 1);
    CHECK_EQUAL(read_spec("", "4", "1,9,2").count, 1);
    CHECK_EQUAL(read_spec("", "4", "1,1").count, 0);
    CHECK_EQUAL(read_spec("", "4", "").count, 0);
    CHECK_EQUAL(read_spec("", "999", NULL).count, MAX_DEVICES);
    CHECK_EQUAL(read_spec("", "4", "GPU-686f7462-6564-7068-616e-746f6d000003").visible[0], 3);
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name, "name=", 5);
    long_name[sizeof long_name - 1] = 0;
    CHECK_EQUAL(strlen(read_spec(long_name, "1", NULL).name), sizeof spec.name - 1);
    return 0;
}
